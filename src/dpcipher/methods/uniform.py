"""The uniform table: what a method must beat. It asks for the number of rows and nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpcipher.engines.independent import independent, uniform
from dpcipher.joint.joint import Joint, with_rule_cost
from dpcipher.joint.report import SolveReport
from dpcipher.methods.base import Synthesizer
from dpcipher.methods.outcome import product_joint
from dpcipher.request.session import Session
from dpcipher.schema.schema import Schema
from dpcipher.selection.edges import PlannedTables


@dataclass(frozen=True)
class Uniform(Synthesizer):
    """Every cell equally likely. A budget buys the number of rows where that is private; without one nothing is read or spent.

    >>> import pandas as pd
    >>> import dpcipher as dc
    >>> schema = dc.Schema.from_domain({"smokes": 2, "ill": 2})
    >>> people = pd.DataFrame({"smokes": [0, 0, 1, 1] * 250, "ill": [0, 0, 0, 1] * 250})
    >>> fitted = dc.Uniform(unit="replace").fit(people, schema)
    >>> fitted.sample(100, seed=1).groupby(["smokes", "ill"]).size().tolist()
    [25, 25, 25, 25]
    """

    title: ClassVar[str] = "uniform"
    needs_budget: ClassVar[bool] = False

    def _blind(self, schema: Schema) -> Joint:
        core = independent(uniform(schema.shape), schema.zero_masks)
        return with_rule_cost(Joint(schema, core, 0, SolveReport("uniform", why="nothing was asked")))

    def _planned_tables(self, schema: Schema) -> PlannedTables:
        return PlannedTables(1, 1)

    def _learn(self, session: Session) -> Sequence[Joint]:
        n_rows = int(session.count_rows(Fraction(1)).values) if session.n_rows is None else session.n_rows
        return [product_joint(session, uniform(session.schema.shape), n_rows=n_rows, engine="uniform")]
