"""CIPHER: measure low-order tables, solve for the joint (Eugenio and Liu, arXiv 1812.05671)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from dpcipher.engines.denoise.resolutions import check_cells
from dpcipher.engines.engine import Engine
from dpcipher.engines.independent import unknown
from dpcipher.engines.paper import Paper
from dpcipher.engines.paper import check_size as check_paper_size
from dpcipher.engines.solve import AUTO, as_engine, pick, solve_set
from dpcipher.errors import JointError, SizeError, SolveError
from dpcipher.joint.joint import Joint
from dpcipher.methods.base import Synthesizer, check_whole
from dpcipher.privacy.budget import Budget
from dpcipher.release.reconcile import check_size
from dpcipher.release.release import Release
from dpcipher.request.request import FINEST, Auto, parse_auto, table_shares
from dpcipher.request.session import Session
from dpcipher.schema.grouped import query_of
from dpcipher.schema.schema import Schema
from dpcipher.schema.workload import Workload
from dpcipher.selection.edges import PlannedTables, chosen_pairs, typical_tables
from dpcipher.selection.select import select
from dpcipher.selection.target import SelectionTarget, check_auto, foreseen_tables
from dpcipher.tables.domain import Attrs, Axes
from dpcipher.tables.query import Query


@dataclass(frozen=True)
class Cipher(Synthesizer):
    """Noisy tables of a workload, then the joint behind them.

    `workload` is an order (2 = all pairs), a list of attrs and `dc.Grouped` tables, or "auto" or `dc.Auto(...)`: chosen with part of the budget. `rho` may stand in the place of `epsilon`. `weights` split the budget unequally over given
    tables; `sets` are independent sanitizations, each with an equal share. `mechanism` is "laplace" or "gaussian" (with `delta`); `engine` is
    that of `solve`.

    >>> import pandas as pd
    >>> import dpcipher as dc
    >>> schema = dc.Schema.from_domain({"smokes": 2, "ill": 2})
    >>> people = pd.DataFrame({"smokes": [0, 0, 1, 1] * 250, "ill": [0, 0, 0, 1] * 250})
    >>> fitted = dc.Cipher(epsilon=1.0, unit="add-remove", workload=2).fit(people, schema)
    >>> fitted.sample(100, seed=1).shape
    (100, 2)
    >>> fitted.release.workload
    (('smokes', 'ill'),)
    """

    title: ClassVar[str] = "CIPHER"

    rho: float | None = None
    workload: int | str | Auto | Sequence[Sequence[str]] = 2
    engine: str | Engine = AUTO
    sets: int = 1
    mechanism: str | None = None
    weights: Mapping[Attrs, float] | None = None

    def _check(self) -> None:
        self._auto()
        check_whole("sets", self.sets, 1, 5)
        if self.engine != AUTO:
            as_engine(self.engine)

    @cached_property
    def budget(self) -> Budget:
        """The whole budget, exactly: also as rho, and with a mechanism that must fit it."""
        return Budget.parse(
            epsilon=self.epsilon, delta=self.delta, rho=self.rho, mechanism=self.mechanism, may_fail=True
        )

    def check_schema(self, schema: Schema) -> None:
        """The workload and its weights must fit the schema, and the schema the engine."""
        (engine, _), auto = pick(self.engine, schema), self._auto()
        queries = [] if auto is not None else [query_of(schema, attrs) for attrs, _ in self._shares(schema)]
        if isinstance(engine, Paper) and Query(tuple(range(len(schema.shape)))) not in queries:
            check_paper_size(schema.shape)
        if auto is not None:
            check_auto(auto, schema)
            return
        in_groups = any(query.groups for query in queries)
        if schema.zero_masks or in_groups:
            check_size(schema.domain, queries)
        if in_groups:
            check_cells(schema.shape, (query.axes for query in queries))

    def _finest(self, schema: Schema) -> Fraction:
        # Chosen tables get whole parts, at least a ten-thousandth of what is left, and distances are read of many tables at once.
        if self._auto() is not None:
            return Fraction(1, FINEST * self.sets)
        return min(share for _, share in self._shares(schema))

    def _foreseen(self, schema: Schema) -> Sequence[Axes] | None:
        auto = self._auto()
        if auto is not None:
            return foreseen_tables(SelectionTarget.of(auto, schema))
        return [schema.axes(attrs) for attrs, _ in self._shares(schema)]

    def _planned_tables(self, schema: Schema) -> PlannedTables:
        if self._auto() is not None:
            return chosen_pairs(schema, self.sets)
        return typical_tables([len(attrs) for attrs, _ in self._shares(schema)], self.sets)

    @property
    def _coarse_sets(self) -> int:
        return self.sets

    def _learn(self, session: Session) -> Sequence[Joint]:
        auto = self._auto()
        if auto is None:
            tables = tuple(
                session.measure(query_of(session.schema, attrs), share, set=number)
                for number in range(self.sets)
                for attrs, share in self._shares(session.schema)
            )
        else:
            tables = tuple(select(session, auto, sets=self.sets))
        release = session.release(tables)
        return [self._solved(release, number) for number in range(self.sets)]

    def _auto(self) -> Auto | None:
        """How to choose tables; None where they are given."""
        return parse_auto(self.workload, weights=self.weights)

    def _shares(self, schema: Schema) -> list[tuple[Attrs, Fraction]]:
        """Each table with its share of the budget in one set."""
        assert not isinstance(self.workload, str | Auto)  # then tables are chosen
        pairs_of_one = self.workload == 2 and len(schema.attrs) == 1  # the default, where there is no pair
        workload = Workload.parse(schema, 1 if pairs_of_one else self.workload)
        return list(zip(workload.tables, table_shares(workload, self.weights, self.sets), strict=True))

    def _solved(self, release: Release, number: int) -> Joint:
        """The joint of one set; the budget is spent, so where the tables allow no answer, that is the answer."""
        try:
            return solve_set(release, number, engine=self.engine)
        except (SolveError, JointError, SizeError, np.linalg.LinAlgError) as error:
            why = "the tables could not be solved"
            warning = f"nothing is known, because {why}: {error}. All rows are equally likely here"
            return unknown(release, n_rows=release.n_rows, why=why, warning=warning)
