"""The multinomial-Dirichlet synthesizer (Machanavajjhala et al. 2008): the draw itself is the mechanism.

Rows are drawn from the posterior of the full table under a Dirichlet prior that is strong enough to hide any one person (`dirichlet_prior`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from dpcipher.errors import BudgetError
from dpcipher.joint.dense import DenseTable
from dpcipher.joint.joint import Joint, with_rule_cost
from dpcipher.joint.report import SolveReport
from dpcipher.methods.base import Synthesizer, check_whole
from dpcipher.methods.dirichlet_prior import least_prior, probable_prior
from dpcipher.methods.outcome import possible, require_table
from dpcipher.privacy.budget import Budget
from dpcipher.request.request import after_finding
from dpcipher.request.session import Session
from dpcipher.schema.schema import Schema
from dpcipher.selection.edges import PlannedTables

# The weights of the urn, all cells together, and the drawn rows stay within 64 bits.
_MOST_CELLS = 2**24
_LARGEST_PRIOR = 2**27
# A square root in floats, rounded down.
_BELOW = 1 - 1e-14


@dataclass(frozen=True)
class MultinomialDirichlet(Synthesizer):
    """Rows from the Dirichlet posterior of the full table.

    `n_rows`, how many, is part of the promise: it is fixed here, drawn once at `fit` with secure randomness and charged; `sample` only
    resamples those rows. With `delta` an output that would tell more is only improbable: a weaker prior does where cells are many. The charge is then
    rho with half of delta, as for everything that may fail.

    >>> import pandas as pd
    >>> import dpcipher as dc
    >>> schema = dc.Schema.from_domain({"smokes": 2, "ill": 2})
    >>> people = pd.DataFrame({"smokes": [0, 0, 1, 1] * 250, "ill": [0, 0, 0, 1] * 250})
    >>> fitted = dc.MultinomialDirichlet(epsilon=1.0, unit="add-remove", n_rows=100).fit(people, schema)
    >>> fitted.sample(100, seed=1).shape
    (100, 2)
    """

    title: ClassVar[str] = "multinomial-Dirichlet"

    n_rows: int = 1000

    def _check(self) -> None:
        check_whole("n_rows", self.n_rows, 1, 1000)
        if self.delta is None:
            self._check_prior(self.prior)

    def _check_prior(self, prior: Fraction) -> None:
        if prior > _LARGEST_PRIOR:
            raise BudgetError(
                f"epsilon ({self.epsilon!r}) needs too strong a prior for {self.n_rows} rows; raise epsilon"
            )

    @property
    def _may_fail(self) -> bool:
        return self.delta is not None

    @property
    def _charge(self) -> Budget:
        return self.privacy.charge(self._may_fail)

    @property
    def prior(self) -> Fraction:
        """The α of every cell, where the whole budget pays for the draw; with `delta`, the most that any table needs."""
        return self._prior(self._charge, cells=1)

    def _prior(self, part: Budget, cells: int) -> Fraction:
        """The α that a part of the charge pays for, over so many cells."""
        max_rows = self.protects.max_rows
        if self.delta is None:
            return least_prior(self.n_rows, part.amount, max_rows)
        epsilon = Fraction(math.sqrt(2 * part.amount) * _BELOW)
        return probable_prior(self.n_rows, epsilon, max_rows, cells=cells, delta=self._charge.failure)

    def sized(self, n_rows: int) -> "MultinomialDirichlet":
        """The same method for so many rows."""
        return replace(self, n_rows=n_rows)

    def check_schema(self, schema: Schema) -> None:
        """The full table must fit in memory, what finding bins leaves of the budget must do, and delta is for the draw alone."""
        require_table(schema, "MultinomialDirichlet", _MOST_CELLS)
        if self.delta is not None and schema.discovers:
            raise BudgetError(
                f"delta ({self.delta!r}) pays for the draw, and nothing of it is left to find levels (levels: discover); declare them"
            )
        self._check_prior(self._prior(after_finding(self._charge, schema), _cells(schema)))

    def _planned_tables(self, schema: Schema) -> PlannedTables:
        return PlannedTables(len(schema.attrs), 1)

    def _learn(self, session: Session) -> Sequence[Joint]:
        prior = self._prior(session.part(Fraction(1)), _cells(session.schema))
        allowed = possible(session.schema)
        drawn = session.draw_rows(prior, self.n_rows, Fraction(1), allowed, delta=session.failure)
        core = DenseTable(drawn / self.n_rows)
        return [
            with_rule_cost(
                Joint(
                    session.schema, core, self.n_rows, SolveReport("multinomial-Dirichlet"), kind=session.kind
                )
            )
        ]


def _cells(schema: Schema) -> int:
    """How many cells may hold rows, and have a prior."""
    allowed = possible(schema)
    return math.prod(schema.shape) if allowed is None else int(allowed.sum())
