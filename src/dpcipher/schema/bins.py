"""The values of a column whose range is cut into bins: which bin a number is in, and which values are drawn inside it."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import ceil, floor
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpcipher.errors import SchemaError
from dpcipher.schema.cells import flat
from dpcipher.schema.inside_bins import Spread
from dpcipher.schema.scale import Grid, Places, Scale
from dpcipher.tables.domain import Codes, Floats

MAX_BINS = 2**20
Range = tuple[float, float]


@dataclass(frozen=True)
class BinValues:
    """The values of bins between `edges`: those of the grid but for the special ones, or all reals where there is no grid.

    `closed` says that the last edge belongs to the last bin.
    """

    edges: tuple[float, ...]
    closed: bool
    special: tuple[float, ...]
    grid: Grid | None

    def draw(
        self,
        bins: NDArray[np.integer],
        rng: np.random.Generator,
        *,
        masses: Floats | None = None,
        within: Range | None = None,
    ) -> NDArray[Any]:
        """A value in each bin, along the density that the `masses` of all bins suggest; uniform without them.

        `within` keeps to the values from `low` to `high`, both included: each of the bins must have one.
        """
        spread, uniforms = self._spread(masses), rng.random(len(bins))
        if within is not None:
            within = max(within[0], self.edges[0]), min(within[1], self.edges[-1])
        if self.grid is None:
            return self._reals(bins, spread.draw(bins, uniforms, within=within), within)
        first, last, span = self.starts[bins], self.starts[bins + 1] - 1, None
        if within is not None:
            low, high = self._ranks(self.grid, np.array([within[0], np.nextafter(within[1], np.inf)]))
            first, last, span = np.maximum(first, low), np.minimum(last, high - 1), (float(low), float(high))
        ranks = np.floor(spread.draw(bins, uniforms, within=span)).astype(np.int64)
        return self.grid.values(self._places(np.clip(ranks, first, last)))  # rounding may reach the next bin

    def nearest(self, points: Floats) -> NDArray[Any]:
        """The value of each bin that is nearest to a point in it, given in the order of the bins; the higher one of two."""
        if self.grid is None:
            return points
        ranks = self._ranks(self.grid, points)
        above, below = (
            self.grid.values(self._places(np.clip(rank, self.starts[:-1], self.starts[1:] - 1)))
            for rank in (ranks, ranks - 1)
        )
        return np.where(np.abs(above - points) <= np.abs(points - below), above, below)

    def _reals(self, bins: NDArray[np.integer], points: Floats, within: Range | None) -> Floats:
        """The points, kept in their bins and in the range: rounding may reach the next bin's edge."""
        low, high = self.starts[bins], self.starts[bins + 1]
        low, high = low, np.nextafter(high, low)
        if within is not None:
            low, high = np.maximum(low, within[0]), np.minimum(high, within[1])
        return np.clip(points, low, high)

    def _spread(self, masses: Floats | None) -> Spread:
        if masses is None:
            return Spread.uniform(self.starts)
        return Spread.smooth(self.starts, masses, single=0.0 if self.grid is None else 1.0)

    @cached_property
    def starts(self) -> NDArray[Any]:
        """Where each bin begins and the last one ends, as ranks on the grid; the edges themselves where there is none."""
        points = np.asarray(self.edges, dtype=float)
        if self.grid is None:
            return points
        if self.closed:
            points[-1] = np.nextafter(points[-1], np.inf)
        return self._ranks(self.grid, points)

    def _ranks(self, grid: Grid, points: Floats) -> Places:
        """The number of values below each point, counted from zero and without the special ones."""
        places = grid.places(points)
        return np.asarray(places - np.searchsorted(self._taken, places))

    def _places(self, ranks: Places) -> Places:
        """The places on the grid of values with these ranks."""
        return np.asarray(
            ranks + np.searchsorted(self._taken - np.arange(len(self._taken)), ranks, side="right")
        )

    @cached_property
    def _taken(self) -> Places:
        """The places of the special values on the grid, ascending."""
        if self.grid is None or not self.special:
            return np.empty(0, dtype=np.int64)
        points = np.sort(np.asarray(self.special, dtype=float))
        places = self.grid.places(points)
        return np.asarray(places[self.grid.values(places) == points])


@dataclass(frozen=True)
class Bins:
    """Bins that follow one another: bin i holds `edges[i] <= value < edges[i + 1]`, and then special values, each a level of its own.

    The last bin of numbers also holds its right edge. One bin for each whole number is a `range`, so that a column of a billion levels is refused for
    its size rather than built. A special value is in no bin, wherever it lies. Values are drawn on the `grid`; None is for reals. Codes for missing
    values are `never_drawn` inside a bin.
    """

    scale: Scale
    edges: range | tuple[float, ...]
    special: tuple[float, ...] = ()
    grid: Grid | None = None
    never_drawn: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.edges, range) and any(low >= high for low, high in pairwise(self.edges)):
            raise SchemaError("bins must have increasing edges; use fewer or wider bins")
        if self.grid is None and self.scale.whole:
            object.__setattr__(self, "grid", Grid())
        if len(set(self.special)) < len(self.special):
            raise SchemaError("special must list each value once; remove the repeats")
        if set(self.special) & set(self.never_drawn):
            raise SchemaError("a special value must not be among missing_values; leave it out of one of them")
        self._check_bins_hold_values()

    def _check_bins_hold_values(self) -> None:
        """A bin without a value could be filled by the noise, but never drawn from."""
        if isinstance(self.edges, range):
            if self.grid != Grid() or any(value in self.edges[:-1] for value in self.special):
                raise SchemaError(
                    "every whole number of the range is a level of its own already; use bins or edges beside step and special"
                )
        elif not (np.diff(self._inside.starts) > 0).all():
            raise SchemaError(
                "step and special must leave a value in every bin; use wider bins, or leave out the special value"
            )

    @property
    def n_bins(self) -> int:
        """How many bins there are."""
        return len(self.edges) - 1

    @property
    def size(self) -> int:
        """How many levels there are: bins and special values."""
        return self.n_bins + len(self.special)

    @property
    def last(self) -> float:
        """The last value of the last bin."""
        return self.edges[-1] - self.scale.whole

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Bins as text, `17`, `20..29`, `[0.5, 1)`, `2020-01-01..2020-01-31`, then the special values."""
        text = self.scale.text
        if not self.scale.whole:
            inner = [f"[{low:.12g}, {high:.12g})" for low, high in pairwise(self.edges)]
            return (*inner[:-1], inner[-1][:-1] + "]", *map(text, self.special))
        spans = ((text(low), text(high - 1)) for low, high in pairwise(self.edges))
        bins = (low if low == high else f"{low}..{high}" for low, high in spans)
        return (*bins, *map(text, self.special))

    @property
    def ends(self) -> tuple[Floats, Floats]:
        """The first and last value of each level."""
        points, special = np.asarray(self.edges, dtype=float), np.asarray(self.special, dtype=float)
        last = points[1:] - self.scale.whole
        return np.concatenate([points[:-1], special]), np.concatenate([last, special])

    @cached_property
    def bounds(self) -> tuple[Floats, Floats]:
        """The least and the greatest number of each level; a bin of numbers ends just before the next."""
        low, high = self.ends
        if not self.scale.whole:
            inner = slice(self.n_bins - 1)
            high[inner] = np.nextafter(high[inner], -np.inf)
        return low, high

    def codes(self, numbers: Floats, *, nearest: bool = False) -> Codes:
        """The level of each number, -1 where there is none; `nearest` puts numbers outside the range into the end bins."""
        codes = self._bin_codes(numbers, nearest)
        for code, value in enumerate(self.special, start=self.n_bins):
            codes[numbers == value] = code
        return codes

    def _bin_codes(self, numbers: Floats, nearest: bool) -> Codes:
        low, high, whole = self.edges[0], self.edges[-1], self.scale.whole
        if whole:
            numbers = np.where(numbers == np.floor(numbers), numbers, np.nan)
        if nearest:
            numbers = np.clip(numbers, low, high - 1 if whole else high)
        inside = (numbers >= low) & ((numbers < high) if whole else (numbers <= high))
        if isinstance(self.edges, range):
            place: NDArray[np.floating] = numbers - low
        else:
            place = np.searchsorted(self._points, numbers, side="right") - 1.0
        return np.where(inside, np.minimum(place, self.n_bins - 1), -1).astype(np.int32)

    def number_named(self, value: object) -> float:
        """The number, day or second that a condition names; NaN where it names a bin by its label, or what is missing."""
        cell = flat(pa.array([value]))
        return float("nan") if pa.types.is_null(cell.type) else float(self.scale.read(cell)[0])

    def between(self, low: float, high: float) -> slice:
        """The bins that lie entirely within `low..high`."""
        if isinstance(self.edges, range):
            first, last = self.edges[0], self.edges[-1]
            start, stop = ceil(min(max(low, first), last)), floor(min(max(high, first - 1), last - 1)) + 1
            return slice(start - first, stop - first)
        starts, ends = self._points[:-1], self._points[1:] - self.scale.whole
        return slice(int(np.searchsorted(starts, low)), int(np.searchsorted(ends, high, side="right")))

    def draw(
        self,
        codes: Codes,
        rng: np.random.Generator,
        *,
        masses: Floats | None = None,
        within: Range | None = None,
    ) -> pa.Array:
        """A value of each code's level, on the grid; special values come back as they are.

        Inside a bin values follow the density that `masses`, the probabilities of all levels, suggest (`inside_bins`); without them they are
        uniform. `within` keeps to the values from `low` to `high`, both included: every code's bin must have one.
        """
        special = codes >= self.n_bins
        bins = np.where(special, 0, codes)
        if isinstance(self.edges, range):
            values: NDArray[Any] = bins.astype(np.int64) + self.edges.start
        else:
            bin_masses = None if masses is None else np.asarray(masses)[: self.n_bins]
            values = self._inside.draw(bins, rng, masses=bin_masses, within=within)
            values = values if self.scale.whole else values.astype(float)
        if special.any():
            values[special] = np.asarray(self.special)[codes[special] - self.n_bins]
        return self.scale.cells(values)

    def homes(self, fine: "Bins", size: int) -> Codes:
        """The bin of each bin of a finer grid with the edges among its points, those beyond the ends in the end bins; then the levels up to `size`."""
        places = np.searchsorted(np.asarray(self.edges), np.asarray(fine.edges)[:-1], "right") - 1
        home = np.clip(places, 0, self.n_bins - 1)
        return np.concatenate([home, np.arange(self.n_bins, size)]).astype(np.int32)

    @property
    def middles(self) -> NDArray[Any]:
        """The value nearest to the middle of each bin, as a number, day or second."""
        low, high = (ends[: self.n_bins] for ends in self.ends)
        return low if isinstance(self.edges, range) else self._inside.nearest((low + high) / 2)

    @cached_property
    def _inside(self) -> BinValues:
        edges, closed = tuple(self.edges), not self.scale.whole
        values = BinValues(edges, closed, self.special + self.never_drawn, self.grid)
        full = bool((np.diff(values.starts) > 0).all())  # a bin that holds only a code for missing keeps it
        return values if full else BinValues(edges, closed, self.special, self.grid)

    @cached_property
    def _points(self) -> NDArray[Any]:
        return np.asarray(self.edges)
