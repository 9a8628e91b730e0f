"""The multinomial-Dirichlet synthesizer (Machanavajjhala et al. 2008): the draw itself is the mechanism.

Rows are drawn from the posterior of the full table under a Dirichlet prior that is strong enough to hide any one person. Adding a row
to cell j multiplies the chance of an output that holds c rows there by (A+N)/(A+N+ñ)·(α+n_j+c)/(α+n_j); with c ≤ ñ that is at most 1 + ñ/α and at least
1/(1 + ñ/α). A replaced row multiplies two such factors of which one is at most 1, so the bound is the same. Hence α ≥ ñ/(e^ε − 1),
for k rows a person ñ/(e^(ε/k) − 1).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from dpcipher.curator.find import after_finding
from dpcipher.curator.session import Session
from dpcipher.errors import BudgetError
from dpcipher.joint.dense import DenseTable
from dpcipher.joint.joint import Joint, with_rule_cost
from dpcipher.joint.report import SolveReport
from dpcipher.methods.base import Synthesizer, check_whole
from dpcipher.methods.outcome import possible, require_table
from dpcipher.privacy.budget import Budget
from dpcipher.schema.schema import Schema
from dpcipher.selection.binning import PlannedTables

# The prior is a multiple of 1/1024, rounded up, after a margin for the float logarithm.
_GRAIN = 1024
_MARGIN = 1 + 1e-12
# The weights of the urn, all cells together, and the drawn rows stay within 64 bits.
_MOST_CELLS = 2**24
_LARGEST_PRIOR = 2**27


def least_prior(n_rows: int, epsilon: Fraction, max_rows: int) -> Fraction:
    """The smallest α that makes `n_rows` draws cost at most epsilon, rounded up.

    >>> float(least_prior(200, Fraction(1), 1))
    116.3955078125
    """
    exact = n_rows / math.expm1(float(epsilon / max_rows)) if epsilon < 700 * max_rows else 0.0
    return Fraction(max(1, math.ceil(exact * _MARGIN * _GRAIN)), _GRAIN)


@dataclass(frozen=True)
class MultinomialDirichlet(Synthesizer):
    """Rows from the Dirichlet posterior of the full table.

    `n_rows`, how many, is part of the promise: it is fixed here, drawn once at `fit` with secure randomness and charged; `sample` only
    resamples those rows. Pure epsilon only.

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
        if self.delta is not None:
            raise BudgetError(
                f"delta ({self.delta!r}) must not be given: the draw costs pure epsilon; leave it out"
            )
        if self.prior > _LARGEST_PRIOR:
            raise BudgetError(
                f"epsilon ({self.epsilon!r}) needs too strong a prior for {self.n_rows} rows; raise epsilon"
            )

    @property
    def prior(self) -> Fraction:
        """The α of every cell, where the whole budget pays for the draw."""
        return self._prior(self.budget)

    def _prior(self, budget: Budget) -> Fraction:
        return least_prior(self.n_rows, budget.amount, self.protects.max_rows)  # pure: _check sees to it

    def sized(self, n_rows: int) -> "MultinomialDirichlet":
        """The same method for so many rows."""
        return replace(self, n_rows=n_rows)

    def check_schema(self, schema: Schema) -> None:
        """The full table must fit in memory, and what finding bins leaves of the budget must do."""
        require_table(schema, "MultinomialDirichlet", _MOST_CELLS)
        if self._prior(after_finding(self.budget, schema)) > _LARGEST_PRIOR:
            raise BudgetError(
                f"epsilon ({self.epsilon!r}) needs too strong a prior for {self.n_rows} rows; raise epsilon"
            )

    def _planned_tables(self, schema: Schema) -> PlannedTables:
        return PlannedTables(len(schema.attrs), 1)

    def _learn(self, session: Session) -> Sequence[Joint]:
        prior = self._prior(session.part(Fraction(1)))
        drawn = session.urn(prior, self.n_rows, Fraction(1), possible(session.schema))
        core = DenseTable(drawn / self.n_rows)
        return [
            with_rule_cost(
                Joint(
                    session.schema, core, self.n_rows, SolveReport("multinomial-Dirichlet"), kind=session.kind
                )
            )
        ]
