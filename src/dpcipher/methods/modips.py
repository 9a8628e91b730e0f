"""modips (Liu 2016): sanitized sufficient statistics, a draw of the parameters from their posterior, then rows; m times over."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dpcipher.curator.session import Session
from dpcipher.joint.joint import Joint
from dpcipher.methods.base import Synthesizer, check_between, check_whole
from dpcipher.methods.outcome import dense_joint, require_table
from dpcipher.schema.schema import Schema
from dpcipher.selection.binning import PlannedTables


@dataclass(frozen=True)
class Modips(Synthesizer):
    """Noisy counts of the full table, bounded to [0, n]; probabilities from Dirichlet(α + counts); `sets` independent times.

    Each set takes an equal share of the budget. n is public under replacement; otherwise the sum of the noisy counts stands for it.

    >>> import pandas as pd
    >>> import dpcipher as dc
    >>> schema = dc.Schema.from_domain({"smokes": 2, "ill": 2})
    >>> people = pd.DataFrame({"smokes": [0, 0, 1, 1] * 250, "ill": [0, 0, 0, 1] * 250})
    >>> fitted = dc.Modips(epsilon=1.0, unit="add-remove", sets=2).fit(people, schema)
    >>> len(fitted.joint)
    2
    """

    title: ClassVar[str] = "modips"

    sets: int = 1
    alpha: float = 0.5

    def _check(self) -> None:
        check_whole("sets", self.sets, 1, 5)
        check_between("alpha", self.alpha, 0, 1e6, 0.5)

    def check_schema(self, schema: Schema) -> None:
        """The full table must fit in memory."""
        require_table(schema, "Modips", 2**24)

    def _finest(self, schema: Schema) -> Fraction:
        return Fraction(1, self.sets)

    def _planned_tables(self, schema: Schema) -> PlannedTables:
        return PlannedTables(len(schema.attrs), self.sets)

    def _learn(self, session: Session) -> Sequence[Joint]:
        return [self._one(session, number) for number in range(self.sets)]

    def _one(self, session: Session, number: int) -> Joint:
        noisy = session.measure(session.schema.attrs, Fraction(1, self.sets), set=number).counts.astype(float)
        total = max(0.0, float(noisy.sum())) if session.n_rows is None else float(session.n_rows)
        bounded = np.clip(noisy, 0.0, total)
        if bounded.sum() > 0:
            bounded *= total / bounded.sum()
        # A Dirichlet draw as normalised gammas; post-processing, so plain randomness serves.
        drawn = session.rng.gamma(self.alpha + bounded)
        return dense_joint(session, drawn, n_rows=total, engine="modips")
