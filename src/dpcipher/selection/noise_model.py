"""The noise that a share of the budget pays for, of each kind of question. Public numbers only."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpcipher.privacy.budget import Budget
from dpcipher.privacy.unit import Unit
from dpcipher.selection.risk import MEAN_SIZE
from dpcipher.tables.measurement import SMALLEST_SCALE, Noise, NoiseKind

GUMBEL = math.pi / math.sqrt(6)  # the standard deviation of a standard Gumbel variable, the noise of a choice


@dataclass(frozen=True)
class NoiseModel:
    """Standard deviations of noise, in rows, for shares of a whole budget that is rho or pure epsilon.

    Continuous noise stands for discrete noise, which differs only far below one row. One person changes a table of counts by `unit.l1`
    in L1, and every distance and score by as much. Tables split their share over the `sets`; questions of the selection do not.
    """

    whole: Budget
    unit: Unit
    sets: int = 1

    @property
    def is_zcdp(self) -> bool:
        """Whether shares add up as rho."""
        return self.whole.rho is not None

    def precision(self, share: float) -> float:
        """The inverse variance of the noise on a cell, in each set, of a table that gets a share."""
        part = share / self.sets
        if self.is_zcdp:
            return 2 * self._amount * part / self.unit.l2_squared
        return (self._amount * part / self.unit.l1) ** 2 / 2

    def discrete_precision(self, share: float) -> float:
        """The same of discrete noise, as a session draws it: more where the noise is below one row."""
        return 1 / self._mechanism(share).variance

    def cell(self, share: Fraction) -> float:
        """The standard deviation of the discrete noise on a cell of a table that gets a share, as a session draws it."""
        return math.sqrt(self._mechanism(float(share)).variance)

    def _mechanism(self, share: float) -> Noise:
        scale = 1 / math.sqrt(self.precision(share) * (1 if self.is_zcdp else 2))
        name: NoiseKind = "gaussian" if self.is_zcdp else "laplace"
        return Noise(name, max(scale, SMALLEST_SCALE[name]))

    def distance(self, tables: int, share: float) -> float:
        """The noise on each of so many distances that are read together."""
        if self.is_zcdp:
            return self.unit.l1 * math.sqrt(tables / (2 * self._amount * share))
        return math.sqrt(2) * self.unit.l1 * tables / (self._amount * share)

    def choice(self, tables: int, share: float) -> float:
        """The noise on a score when so many tables are chosen by the exponential mechanism."""
        if self.is_zcdp:
            return GUMBEL * self.unit.l1 * math.sqrt(tables / (2 * self._amount * share))
        return GUMBEL * 2 * self.unit.l1 * tables / (self._amount * share)

    def mean_tvd(self, sizes: Sequence[int], rows: float) -> float:
        """The mean TVD from noise alone if all tables, of so many cells each, shared the whole budget; above 1 where noise outweighs rows."""
        deviation = 1 / math.sqrt(self.precision(1 / len(sizes)))
        mean = deviation * (MEAN_SIZE if self.is_zcdp else math.sqrt(0.5))
        return mean * sum(sizes) / len(sizes) / (2 * rows)

    def triple_error(self, levels: float, share: float) -> float:
        """The error, in rows, that noise leaves in the three-way interaction of columns of so many levels."""
        return MEAN_SIZE / 2 * math.pow(levels * (levels - 1), 1.5) / math.sqrt(self.precision(share))

    @property
    def _amount(self) -> float:
        amount = self.whole.rho if self.whole.rho is not None else self.whole.epsilon
        assert amount is not None  # composable budgets are rho or pure epsilon
        return float(amount)
