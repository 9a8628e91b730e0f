"""Where an open column begins, ends and is cut, from noisy counts of intervals of its grid; public numbers only.

A cut pays where it lowers the error of what will be measured. Two errors fall with more bins, two grow. A bin is taken to be even inside: what is not
even is lost (a total variation distance, in rows). And what other columns say along the bin is lost: of a dependence that changes
steadily with the rank, bins of the masses m lose the fraction Σ(m/n)². Against that, each bin is a cell more in the column's own table,
and many cells more in the tables it is in, each with noise. All four come from the formulas that allocate the budget (`selection.allocation`), at
the noise that the tables will have, so that the number of bins is a result and not a parameter.

Rows beyond the ends of a range are lost to it, while an end too far out costs one bin that is nearly empty. So bands, which cover all numbers, are judged by runs: the rows of a skewed
column stand out of the noise together where no band of them does by itself. Each band of a run must make up for some of its noise, so that a run
ends where nothing seems to follow. Where noise could as well be rows, numbers near one are likelier than very large and very small ones.
"""

import heapq
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from dpcipher.request.request import Request
from dpcipher.schema.schema import Schema
from dpcipher.selection.allocation import MEAN_SIZE, NoiseModel, one_way_risk
from dpcipher.selection.rounds import FEW, TYPICAL
from dpcipher.tables.domain import Floats

Places = NDArray[np.int64]

CHANCE = 5  # one in so many: the chance that noise alone is taken for rows; settled on generated columns (benchmarks/search.py)
BOTH = 2  # a pair is an error of two columns: half of it counts for each, and a column is in twice as many pairs as there are pairs per column


@dataclass(frozen=True)
class BinRisk:
    """What one more bin of a column costs, and what it saves, in rows.

    `partner_cells` is the number of cells of a table beside those of the column itself, `tables` how many such tables the column is in, and
    `precision` that of the noise on a cell of each; `own_precision` that of the column's own table, where it is measured.
    """

    rows: float
    partner_cells: float
    tables: int
    precision: float
    own_precision: float = 0.0

    @cached_property
    def one_way(self) -> float:
        """The precision of a count of the column, which larger tables add up to."""
        return self.own_precision + self.tables * self.precision / self.partner_cells

    def mass(self, first: float, second: float) -> float:
        """What is saved of the dependence on other columns when a bin is cut into two of these masses."""
        if not self.tables:
            return 0.0
        return BOTH * TYPICAL * self.rows * max(first, 0.0) * max(second, 0.0) / self.rows**2

    def noise(self, masses: Floats) -> float:
        """The error, in rows, that noise leaves in a table with other columns, of bins with these masses; a bin of few rows has little to lose."""
        if not self.tables or len(masses) < 2:
            return 0.0
        freedom = (1 - 1 / len(masses)) * (1 - 1 / self.partner_cells)
        if freedom <= 0:
            return 0.0
        roots = np.sqrt(np.maximum(masses, 1.0))
        deviations = TYPICAL * self.rows / (MEAN_SIZE * self.partner_cells) * roots / roots.sum()
        left = deviations / np.sqrt(1 + self.precision / freedom * deviations**2)
        return float(BOTH * MEAN_SIZE / 2 * self.partner_cells * left.sum())

    def even_noise(self, bins: int) -> float:
        """The same of so many bins of equal mass."""
        return self.noise(np.full(bins, self.rows / bins))

    def own_noise(self, counts: Sequence[float]) -> float:
        """The noise that bins of these counts have in the column's own table."""
        kept = np.maximum(np.asarray(counts, dtype=float), 1.0)
        return float(
            sum(one_way_risk(np.array([count, count]), np.array([self.one_way / 2]))[0] / 2 for count in kept)
        )

    def total(self, bins: int) -> float:
        """The error in tables with other columns, of so many bins of equal mass."""
        return BOTH * TYPICAL * self.rows / (2 * bins) + self.even_noise(bins)

    def best_bins(self, most: int) -> int:
        """The number of bins of equal mass with the least error."""
        return min(range(1, most + 1), key=self.total)

    def price(self, most: int) -> float:
        """What one more bin costs beside the best number of them."""
        bins = self.best_bins(most)
        more = max(self.even_noise(bins + 1) - self.even_noise(bins), 0.0)
        return self.own_noise([self.rows / (bins + 1)]) + more


@dataclass(frozen=True)
class Leaves:
    """Intervals that follow one another: where they begin on the grid, their widths, noisy counts and the variance of each."""

    starts: Places
    stop: int
    widths: Floats
    counts: Floats
    variances: Floats

    def within(self, start: int, stop: int) -> "Leaves":
        """The leaves between two places of the grid."""
        return self._part(int(np.searchsorted(self.starts, start)), int(np.searchsorted(self.starts, stop)))

    def _part(self, first: int, last: int) -> "Leaves":
        stop = int(self.starts[last]) if last < len(self.starts) else self.stop
        part = slice(first, last)
        return Leaves(self.starts[part], stop, self.widths[part], self.counts[part], self.variances[part])


def clear_of_noise(n: int, *, laplace: bool, chance: int = CHANCE) -> float:
    """In standard deviations, what none of so many noises reaches, but for one time in `chance`."""
    if laplace:
        return math.log(n * chance / 2) / math.sqrt(2)
    return NormalDist().inv_cdf(1 - 1 / (n * chance))


def choose_cuts(leaves: Leaves, risk: BinRisk, most: int, forced: Sequence[int] = ()) -> list[int]:
    """The starts of the bins, at most `most` of them: from the forced cuts on, the cut that saves most, while it saves more than it costs."""
    cuts = _Cuts(leaves, risk)
    inner = sorted({int(np.searchsorted(leaves.starts, start)) for start in forced} - {0, len(leaves.starts)})
    ends = [0, *inner, len(leaves.starts)]
    chosen = set(ends[:-1])
    waiting = [cuts.best(first, last) for first, last in itertools.pairwise(ends)]
    heapq.heapify(waiting)
    while waiting and len(chosen) < most:
        loss, place, first, last = heapq.heappop(waiting)
        before, after = (cuts.masses(sorted(starts)) for starts in (chosen, {*chosen, place}))
        if -loss <= max(risk.noise(after) - risk.noise(before), 0.0):
            continue
        chosen.add(place)
        for part in (cuts.best(first, place), cuts.best(place, last)):
            heapq.heappush(waiting, part)
    return [int(leaves.starts[place]) for place in sorted(chosen)]


@dataclass(frozen=True)
class PlannedTables:
    """The tables that will be measured with the bins: how many columns each crosses, and how many there are; each gets an equal share."""

    order: int
    number: int


def planned_tables(request: Request) -> PlannedTables:
    """Tables that will be measured: as many as were asked for in all sets, of their typical order, or a few pairs per column."""
    if request.auto is not None:
        return chosen_pairs(request.schema, request.sets)
    return typical_tables([len(attrs) for attrs in request.given.tables], request.sets)


def typical_tables(orders: Sequence[int], sets: int) -> PlannedTables:
    """So many tables as there are orders, in every set, of the mean order."""
    return PlannedTables(round(sum(orders) / len(orders)), len(orders) * sets)


def chosen_pairs(schema: Schema, sets: int) -> PlannedTables:
    """Tables that are yet to be chosen: a few pairs per column, as a shortlist has them, or all."""
    columns = len(schema.attrs)
    return PlannedTables(2, max(1, min(math.comb(columns, 2), FEW * columns)) * sets)


def bin_risk(schema: Schema, axis: int, noise: NoiseModel, rows: float, tables: PlannedTables) -> BinRisk:
    """The risk of a column's bins, where other open columns have the number of bins that is best for all of them."""
    columns = len(schema.shape)
    order, precision = min(tables.order, columns), noise.precision(1 / tables.number)
    if order == 1:
        return BinRisk(rows, 1.0, 0, 0.0, precision)
    is_open = [column.is_open and not column.discovers for column in schema.columns]
    holding = max(1, round(tables.number * order / columns))

    def risk(bins: int) -> BinRisk:
        sizes = [bins if is_open[place] else size for place, size in enumerate(schema.shape) if place != axis]
        beside = math.exp(float(np.mean(np.log(sizes))) * (order - 1))  # a typical table
        return BinRisk(rows, max(beside, 1.0), holding, precision)

    choices = [risk(bins) for bins in range(1, schema.shape[axis] + 1)]
    return min(enumerate(choices, 1), key=lambda choice: choice[1].total(choice[0]))[1]


# What a cut saves, negative; the leaf that begins the second part; the first leaf, and one past the last.
Cut = tuple[float, int, int, int]


class _Cuts:
    """Sums over leaves, and the best cut of any run of them."""

    def __init__(self, leaves: Leaves, risk: BinRisk) -> None:
        self._risk = risk
        self._counts, self._widths = (
            np.concatenate([[0.0], np.cumsum(values)]) for values in (leaves.counts, leaves.widths)
        )
        self._own: Callable[[Floats], Floats] = np.vectorize(
            lambda count: risk.own_noise([count]), otypes=[float]
        )

    def masses(self, starts: Sequence[int]) -> Floats:
        """The noisy counts of the bins that begin at these leaves."""
        return np.diff(self._counts[[*starts, -1]])

    def best(self, first: int, last: int) -> Cut:
        """The cut that saves most, its own noise subtracted; nothing where there is no place to cut."""
        if last - first < 2:
            return (math.inf, first, first, last)
        inner = slice(first + 1, last)
        count, width = (sums[last] - sums[first] for sums in (self._counts, self._widths))
        left, part = (sums[inner] - sums[first] for sums in (self._counts, self._widths))
        saved = np.abs(left - count * part / width) + self._mass(left, count - left)
        place = int(np.argmax(saved))
        cost = self._own(np.array([left[place], count - left[place]])).sum() - self._own(np.array([count]))[0]
        return (float(cost - saved[place]), first + 1 + place, first, last)

    def _mass(self, left: Floats, right: Floats) -> Floats:
        if not self._risk.tables:
            return np.zeros_like(left)
        return np.asarray(self._risk.mass(1.0, 1.0) * np.maximum(left, 0.0) * np.maximum(right, 0.0))


BAND_CHANCE = (
    10_000  # one in so many: the chance that noise alone is taken for the rows of a band, wherever it lies
)
RUN_CHANCE = 100  # and for those of a run of them, beside the fullest one
# In standard deviations, what a band must hold to lengthen a run, and what it must hold more for every power of two from one: settled in benchmarks/ranges.py.
BAND_NOISE, POWER_NOISE = 1.0, 0.05
SPREAD = 10  # bands over which rows are taken to lie where it is said how many make a range stand out
MARGIN = 1.0  # of the width of the rows that are clearly there: the noise hides the tails beyond them


def inhabited_bands(
    counts: Floats, powers: Floats, sides: Sequence[slice], sd: float, *, laplace: bool
) -> tuple[int, int]:
    """The first band with rows, and one past the last: the fullest run, and all other runs and bands that clearly hold rows.

    `powers` says how many powers of two from one a band lies, and `sides` are the bands below, at and above zero: a run lies on one of them, since what is
    empty between two sides tells nothing of either. The noise on the counts has the standard deviation `sd`.
    """
    runs, sums = _runs(counts, powers, sides, sd)
    clear_run, clear_band = _clear(len(counts), sd, laplace=laplace)
    kept = [run for run, value in zip(runs, sums, strict=True) if value >= min(clear_run, sums.max())]
    places = [
        *np.flatnonzero(counts > clear_band),
        *(place for run in kept for place in (run.start, run.stop - 1)),
    ]
    return int(min(places)), int(max(places)) + 1


def stand_out(counts: Floats, powers: Floats, sides: Sequence[slice], sd: float, *, laplace: bool) -> bool:
    """Whether a run or a band clearly holds rows; where none does, the fullest run may be noise alone, and a range around it is a guess."""
    clear_run, clear_band = _clear(len(counts), sd, laplace=laplace)
    return bool(_runs(counts, powers, sides, sd)[1].max() >= clear_run or counts.max() > clear_band)


def rows_to_find(bands: int, sd: float, *, laplace: bool) -> int:
    """How many rows stand out of the noise 19 times out of 20, be they spread over a thousandfold range: `SPREAD` bands, up to so many powers of two from one."""
    clear_run, _ = _clear(bands, sd, laplace=laplace)
    hidden = sum(BAND_NOISE + POWER_NOISE * power for power in range(1, SPREAD + 1))
    return math.ceil(clear_run + sd * (hidden + NormalDist().inv_cdf(0.95) * math.sqrt(SPREAD)))


def _runs(counts: Floats, powers: Floats, sides: Sequence[slice], sd: float) -> tuple[list[slice], Floats]:
    """The fullest run of each side, and what it holds beyond the noise of its bands."""
    values = counts - (BAND_NOISE + POWER_NOISE * powers) * sd
    runs = [fullest_run(values[side], side.start) for side in sides]
    return runs, np.array([values[run].sum() for run in runs])


def _clear(bands: int, sd: float, *, laplace: bool) -> tuple[float, float]:
    """What a run, and a band, must hold to be clear of the noise."""
    run, band = (
        sd * clear_of_noise(bands, laplace=laplace, chance=chance) for chance in (RUN_CHANCE, BAND_CHANCE)
    )
    return run, band


def fullest_run(values: Floats, start: int = 0) -> slice:
    """The run of neighbours with the largest sum, at least one of them; the first has the number `start`.

    >>> fullest_run(np.array([-2.0, 3.0, -1.0, 4.0, -5.0, 5.0]))
    slice(1, 4, None)
    """
    sums = np.concatenate([[0.0], np.cumsum(values)])
    stop = int(np.argmax(sums[1:] - np.minimum.accumulate(sums[:-1]))) + 1
    return slice(start + int(np.argmin(sums[:stop])), start + stop)


def sides_of_zero(starts: Floats) -> list[slice]:
    """The bands below, at and above zero, where there are any.

    >>> sides_of_zero(np.array([-2.0, -1.0, 0.0, 1.0]))
    [slice(0, 2, None), slice(2, 3, None), slice(3, 4, None)]
    """
    cuts = [0, *(np.flatnonzero(np.diff(np.sign(starts))) + 1).tolist(), len(starts)]
    return [slice(first, last) for first, last in itertools.pairwise(cuts)]


def powers_from_one(lows: Floats, highs: Floats) -> Floats:
    """How many powers of two from one the far end of each band lies."""
    return np.asarray(np.abs(np.log2(np.maximum(np.abs(lows), np.abs(highs)))))


def with_margin(low: float, high: float, *, signed: bool = True) -> tuple[float, float]:
    """A range that goes on beyond the rows that are clearly there by as much as they reach themselves; of `signed` numbers not to the other side of zero.

    >>> with_margin(10.0, 40.0), with_margin(-5.0, 3.0)
    ((0.0, 70.0), (-13.0, 11.0))
    """
    reach = MARGIN * (high - low)
    least, most = low - reach, high + reach
    return max(least, 0.0) if signed and low >= 0 else least, min(most, 0.0) if signed and high <= 0 else most
