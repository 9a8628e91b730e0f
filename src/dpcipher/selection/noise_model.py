"""What shares of a budget buy, and what follows from that for how many tables are looked at. Public numbers only."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpcipher.privacy.budget import Budget
from dpcipher.privacy.unit import Unit
from dpcipher.selection.risk import MEAN_SIZE

ONE_WAY = Fraction(1, 20)  # a first look at every column
CHOICE = Fraction(1, 20)  # of a round; twice as much where pairs need a shortlist
LIST = Fraction(3, 4)  # of such a choice: the list itself; the rest is for the distances of those on it
SECOND = Fraction(1, 5)  # kept for the second round, its own choice included
CLEAR, BLURRED = 0.1, 0.4  # noise of a choice, in L1 distance over rows: good enough, and the most
FEW = 2  # tables per column on a shortlist that would otherwise be shorter
# Mean TVD from noise alone, if all pairs were measured alike, above which most are left out unread. A rough line: in single runs on eight
# tables, reading all was better below about .1 and a shortlist above about .3; between them it went either way.
MOSTLY_NOISE = 0.2
GUMBEL = math.pi / math.sqrt(6)  # the deviation of a standard Gumbel variable, the noise of a choice


@dataclass(frozen=True)
class Prices:
    """Deviations of noise, in rows, for shares of a whole budget that is rho or pure epsilon; close enough for a plan.

    One person moves a count by `unit.l1` in L1, and every distance and score by as much.
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

    def looked(self, sizes: Sequence[int], columns: int, rows: float) -> int:
        """How many of the pairs, of so many cells each, are looked at.

        All, where their distances can be read clearly, or where measuring all of them would not be mostly noise; else as many as a
        shortlist can have, unless that is most of them.
        """
        pairs = len(sizes)
        if not pairs or self.noise_tvd(sizes, rows) < MOSTLY_NOISE:
            return pairs
        return self.clear(pairs, pairs, columns, rows, 2 * CHOICE)

    def clear(self, wanted: int, candidates: int, columns: int, rows: float, share: Fraction) -> int:
        """How many of the `wanted` tables can be looked at: all if clearly, else what a shortlist of the candidates can have.

        A shortlist, for which there is a share, has as many as are chosen clearly, or a few per column if they are not chosen quite blindly.
        """
        if self.distance(wanted, float(CHOICE)) <= CLEAR * rows:
            return wanted
        one = self.choice(1, float(LIST * share))
        clear, blurred = ((level * rows / one) ** (2 if self.is_zcdp else 1) for level in (CLEAR, BLURRED))
        length = max(int(clear), min(FEW * columns, int(blurred)), 1)
        return wanted if 2 * length > candidates else min(length, wanted)

    def noise_tvd(self, sizes: Sequence[int], rows: float) -> float:
        """The mean TVD from noise alone, if all tables were measured alike with the whole budget; above 1 where noise outweighs rows."""
        deviation = 1 / math.sqrt(self.precision(1 / len(sizes)))
        mean = deviation * (MEAN_SIZE if self.is_zcdp else math.sqrt(0.5))
        return mean * sum(sizes) / len(sizes) / (2 * rows)

    def triple_noise(self, levels: float, share: float) -> float:
        """The error, in rows, that noise leaves in what a triple of columns of so many levels shows beyond its pairs."""
        return MEAN_SIZE / 2 * math.pow(levels * (levels - 1), 1.5) / math.sqrt(self.precision(share))

    @property
    def _amount(self) -> float:
        amount = self.whole.rho if self.whole.rho is not None else self.whole.epsilon
        assert amount is not None  # composable budgets are rho or pure epsilon
        return float(amount)
