"""The search for the bins of one open column: intervals of its grid, their noisy counts, and the edges that follow from them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeVar

import numpy as np

from dpcipher.privacy.terms import Unit
from dpcipher.request.request import finding_share
from dpcipher.schema.columns import Column
from dpcipher.schema.cut import AUTO, Cut
from dpcipher.schema.open_bins import OpenBins, band_edges
from dpcipher.schema.schema import Schema
from dpcipher.selection.edges import (
    BinRisk,
    Leaves,
    choose_cuts,
    clear_of_noise,
    inhabited_bands,
    powers_from_one,
    rows_to_find,
    sides_of_zero,
    stand_out,
    with_margin,
)
from dpcipher.tables.domain import Codes, Counts, Floats

Interval = tuple[int, int]  # the first cell of the grid, and one past the last
Judged = TypeVar("Judged")
Known = tuple[float, float]  # the noisy count of an interval, and its variance
# Parts that an interval is cut into, beside the cuts that are declared. More parts make fewer levels, and each more noise in their sums; levels share the
# budget, which the noise of zCDP feels with their root and that of pure epsilon in full. Settled on generated columns (benchmarks/bins.py).
ZCDP_PARTS, PURE_PARTS = 2, 8


@dataclass(frozen=True)
class Split:
    """An interval and the parts that it is cut into; no interval at first, since nothing is known yet of the whole.

    The parts are asked for one by one or, where there are two, by how many more rows the first holds than the second: with what is known of the
    interval, that tells as much as two counts with half of the noise variance.
    """

    whole: Interval | None
    parts: tuple[Interval, ...]
    by_difference: bool

    @property
    def n_asked(self) -> int:
        """How many numbers are asked for."""
        return 1 if self.by_difference else len(self.parts)

    def asked(self, sums: Counts) -> list[int]:
        """What is asked for, from the running sums of the true counts. Private."""
        counts = [int(sums[stop] - sums[start]) for start, stop in self.parts]
        return [counts[0] - counts[1]] if self.by_difference else counts


class Search:
    """One open column: the intervals that are asked next, and what is known of those that were.

    All of it follows from public facts and noisy answers. `differences` is for Gaussian noise where rows are added or removed: a row that is replaced
    would move a difference by two.
    """

    def __init__(self, column: OpenBins, grid: Cut, axis: int, *, zcdp: bool, differences: bool) -> None:
        self.column, self.axis = column, axis
        self._differences = differences
        self._laplace, self._n_parts = not zcdp, ZCDP_PARTS if zcdp else PURE_PARTS
        self.most = column.domain.n_bins
        self.points = np.asarray(grid.domain.edges)
        places = np.flatnonzero(np.isin(self.points, column.forced))
        self.forced = [int(place) for place in places]
        self._marks = {*self.forced, *self._zero()}  # where the first intervals are cut, whatever their width
        self._top = self._first()
        self.splits = [Split(None, tuple(self._top), by_difference=False)]
        self._known: dict[Interval, Known] = {}
        self._parts: dict[Interval, Sequence[Interval]] = {}
        self.total = 0.0

    @property
    def is_unbounded(self) -> bool:
        """Whether an end of the range is to be found; a day has its ends."""
        return AUTO in (self.column.min, self.column.max) and self.column.kind != "time"

    @property
    def levels(self) -> int:
        """How many levels are asked at most."""
        return 1 + max(self._levels_of(stop - start) for start, stop in self._top)

    @property
    def first_shares(self) -> int:
        """How many shares of a later level the first takes: of a range that is to be found, as much as all later ones, for rows beyond its ends are lost."""
        return max(1, self.levels - 1) if self.is_unbounded else 1

    @property
    def shares(self) -> int:
        """How many equal shares all levels take."""
        return self.first_shares + self.levels - 1

    def update(self, noisy: Floats, variance: float) -> None:
        """Take in noisy answers; the parts of an interval are made to agree with it, by least squares."""
        answers = iter(noisy.tolist())
        for split in self.splits:
            numbers = [next(answers) for _ in range(split.n_asked)]
            if split.whole is None:
                self._known |= {
                    part: (count, variance) for part, count in zip(split.parts, numbers, strict=True)
                }
            else:
                self._known |= self._agreeing(split, self._known[split.whole], numbers, variance)
                self._parts[split.whole] = split.parts
        if not self._parts:
            start, stop = self._bounds()
            self.total = sum(count for part, (count, _) in self._known.items() if start <= part[0] < stop)

    def refine(self, risk: BinRisk) -> bool:
        """Choose what is asked next: the parts of intervals that hold clearly more rows than one more bin costs. False where there are none."""
        price, clear = risk.price(self.most), clear_of_noise(self.most, laplace=self._laplace)
        frontier, self.splits = [part for split in self.splits for part in split.parts], []
        for interval in frontier:
            count, variance = self._known[interval]
            if interval[1] - interval[0] > 1 and count > price + clear * math.sqrt(variance):
                parts = tuple(self._cut(*interval))
                self.splits.append(Split(interval, parts, self._differences and len(parts) == 2))
        return bool(self.splits)

    def settled(self, variance: float) -> float:
        """The variance of the count of an interval after a few levels with noise of this variance: v = (v + variance) / 4 for differences."""
        return variance / 3 if self._differences else variance

    def edges(self, risk: BinRisk) -> list[float]:
        """The edges of the bins; an end in which rows are not clearly there is one bin."""
        bounds = self._bounds()
        start, stop = self._inhabited(0, bounds), self._inhabited(1, bounds)
        first, last = self._range(bounds, start, stop)
        if len({first, start, stop, *self.forced}) > self.most:
            (first, last), (start, stop) = bounds, bounds
        outside = {place for place in (first, stop, *self.forced) if not start <= place < stop} - {last}
        inside = [place for place in self.forced if start < place < stop]
        cuts = choose_cuts(self._leaves().within(start, stop), risk, self.most - len(outside), inside)
        return [*self.points[sorted(outside.union(cuts))].tolist(), self.points[last].item()]

    @property
    def is_guess(self) -> bool:
        """Whether the range is to be found, and no rows stood out of the noise: it may lie anywhere."""
        return self.is_unbounded and not self._judge_bands(stand_out)

    @property
    def rows_to_find(self) -> int:
        """How many rows stood out of the noise of the bands, wherever they lay: fewer in a tail may have gone unseen."""
        return self.rows_to_find_at(self._known[self._top[0]][1])

    def rows_to_find_at(self, variance: float) -> int:
        """The same of noise of this variance."""
        return rows_to_find(len(self._top), math.sqrt(variance), laplace=self._laplace)

    def recoding(self, column: Column, edges: Sequence[float]) -> Codes:
        """The bin of each cell of the grid; cells beyond the ends go to the end bins, special values and missing levels follow, as they did."""
        bins = len(edges) - 1
        codes = np.clip(np.searchsorted(np.asarray(edges), self.points[:-1], "right") - 1, 0, bins - 1)
        return np.concatenate([codes, np.arange(bins, column.size)]).astype(np.int32)

    def _bounds(self) -> Interval:
        """The ends of what the first intervals seem to hold rows in; declared ends and cuts stay."""
        if not self.is_unbounded:
            return 0, len(self.points) - 1
        first, last = self._judge_bands(inhabited_bands)
        kept = [*self._top[first:last], *(band for band in self._top if {*band} & {*self.forced})]
        return self._with_declared_ends(min(start for start, _ in kept), max(stop for _, stop in kept))

    def _judge_bands(self, judge: Callable[..., Judged]) -> Judged:
        """What the counts of the bands say: how far from one each lies, and on which side of zero, are public."""
        counts, variances = np.array([self._known[band] for band in self._top]).T
        lows, highs = self.points[np.array(self._top)].T.astype(float)
        days = self.column.kind == "date"
        powers = np.zeros(len(counts)) if days else powers_from_one(lows, highs)
        sides = [slice(0, len(counts))] if days else sides_of_zero(lows)
        return judge(counts, powers, sides, float(np.sqrt(variances[0])), laplace=self._laplace)

    def _range(self, bounds: Interval, start: int, stop: int) -> Interval:
        """The range around the rows that are clearly there, with the bands beside theirs that seem to hold some; declared ends and cuts stay."""
        if not self.is_unbounded:
            return bounds
        signed = self.column.kind != "date"
        low, high = with_margin(self.points[start].item(), self.points[stop].item(), signed=signed)
        first, last = np.searchsorted(self.points, low, "right") - 1, np.searchsorted(self.points, high)
        places = [int(first), int(last), *(place + side for place in self.forced for side in (-1, 1))]
        places += [end for band in self._bands(bounds) if band[1] <= start or stop <= band[0] for end in band]
        return self._with_declared_ends(max(0, min(places)), min(len(self.points) - 1, max(places)))

    def _bands(self, bounds: Interval) -> list[Interval]:
        """The first intervals between two places."""
        return [part for part in self._top if bounds[0] <= part[0] and part[1] <= bounds[1]]

    def _with_declared_ends(self, first: int, last: int) -> Interval:
        """A range of places with the ends that are declared in place of its own."""
        return (
            first if self.column.min == AUTO else 0,
            last if self.column.max == AUTO else len(self.points) - 1,
        )

    def _inhabited(self, end: Literal[0, 1], bounds: Interval) -> int:
        """Where rows clearly begin (0) or end (1): at the outermost part that clearly holds some; inside it, at its outermost such part, and so on."""
        parts: Sequence[Interval] = self._bands(bounds)
        place = parts[-end][end]
        clear = clear_of_noise(self.most, laplace=self._laplace)
        while parts:
            holding = [
                part for part in parts if self._known[part][0] > clear * math.sqrt(self._known[part][1])
            ]
            if not holding:
                break
            place = holding[-end][end]
            parts = self._parts.get(holding[-end], [])
        return place

    def _first(self) -> list[Interval]:
        """The first level: the bands of a range that is to be found, else intervals of equal width."""
        cells = len(self.points) - 1
        if not self.is_unbounded:
            return self._cut(0, cells)
        places = sorted({*band_edges(self.column.scale, self.points), *self.forced})
        return list(zip(places, [*places[1:], cells], strict=True))

    def _cut(self, start: int, stop: int) -> list[Interval]:
        """Parts of about equal width, with the declared cuts among them, and zero by itself."""
        cells, levels = stop - start, max(1, self._levels_of(stop - start))
        parts = min(cells, math.ceil(cells ** (1 / levels) - 1e-9))
        even = {start + part * cells // parts for part in range(parts)}
        places = sorted(even | {place for place in self._marks if start < place < stop})
        return list(zip(places, [*places[1:], stop], strict=True))

    def _zero(self) -> list[int]:
        """The two ends of the cell of zero: amounts and counts often have many zeros, and to ask about them at once costs nothing more."""
        if self.column.kind not in ("integer", "number"):
            return []
        return [int(place + end) for place in np.flatnonzero(self.points[:-1] == 0) for end in (0, 1)]

    def _levels_of(self, cells: int) -> int:
        """How many times an interval of so many cells is cut until there are cells."""
        return 0 if cells == 1 else math.ceil(math.log(cells, self._n_parts) - 1e-9)

    @staticmethod
    def _agreeing(
        split: Split, whole: Known, numbers: Sequence[float], variance: float
    ) -> dict[Interval, Known]:
        """The parts of an interval, from the answers about them and what is known of the whole."""
        count, own = whole
        if split.by_difference:
            values, variance = [(count + sign * numbers[0]) / 2 for sign in (1, -1)], (own + variance) / 4
        else:
            spread = variance * len(numbers)
            weight = spread / (spread + own) / len(numbers)
            values, variance = (
                [value + (count - sum(numbers)) * weight for value in numbers],
                variance * (1 - weight),
            )
        return {part: (value, variance) for part, value in zip(split.parts, values, strict=True)}

    def _leaves(self) -> Leaves:
        """The finest intervals that were asked about, in order."""
        finest: list[Interval] = []
        stack = list(self._top[::-1])
        while stack:
            interval = stack.pop()
            if interval in self._parts:
                stack += self._parts[interval][::-1]
            else:
                finest.append(interval)
        starts, stops = np.array(finest).T
        counts, variances = np.array([self._known[interval] for interval in finest]).T
        return Leaves(starts, int(stops[-1]), self.points[stops] - self.points[starts], counts, variances)


def level_share(searches: Sequence[Search], schema: Schema) -> Fraction:
    """What one level of one column takes: all have the same, and what is not asked for is left for the tables."""
    return finding_share(schema) / sum(search.shares for search in searches)


def open_searches(schema: Schema, unit: Unit, *, zcdp: bool) -> list[Search]:
    """A search for every column with open bins."""
    differences = zcdp and unit.relation == "add-remove"
    return [
        Search(column, column.on_grid(), axis, zcdp=zcdp, differences=differences)
        for axis, column in enumerate(schema.columns)
        if isinstance(column, OpenBins)
    ]
