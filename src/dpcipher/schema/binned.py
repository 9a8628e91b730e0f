"""The values of a column whose range is cut into bins."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import ceil, floor
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpcipher.errors import SchemaError, SizeError
from dpcipher.schema.bin_values import BinValues
from dpcipher.schema.cells import as_day, as_number, as_time
from dpcipher.schema.grid import Grid, declared_grid, default_grid
from dpcipher.schema.points import BinnedKind, day_text, parse_point, second_text
from dpcipher.tables.domain import Codes, Floats

MAX_BINS = 2**20


@dataclass(frozen=True)
class Binned:
    """Bins that follow one another: bin i holds `edges[i] <= value < edges[i + 1]`, and then special values, each a level of its own.

    Dates are days since 1970-01-01, times of day seconds since midnight. The last bin of numbers also holds its right edge. One bin for each whole number is a
    `range`, so that a column of a billion levels is refused for its size rather than built. A special value is in no bin, wherever it lies.
    Values are drawn on the `grid`; None is for reals. Codes for missing values are `barred`: none is drawn inside a bin.
    """

    kind: BinnedKind
    edges: range | tuple[float, ...]
    special: tuple[float, ...] = ()
    grid: Grid | None = None
    barred: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.edges, range) and any(low >= high for low, high in pairwise(self.edges)):
            raise SchemaError("bins must have increasing edges; use fewer or wider bins")
        if self.grid is None and self.whole:
            object.__setattr__(self, "grid", Grid())
        if len(set(self.special)) < len(self.special):
            raise SchemaError("special must list each value once; remove the repeats")
        self._check_bins_hold_values()

    def _check_bins_hold_values(self) -> None:
        """A bin without a value could be filled by the noise, but never drawn from."""
        if isinstance(self.edges, range):
            if self.grid != Grid() or any(value in self.edges[:-1] for value in self.special):
                raise SchemaError(
                    "every whole number of the range is a level of its own already; use bins or edges beside step and special"
                )
        elif not (np.diff(self._values.starts) > 0).all():
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
    def whole(self) -> bool:
        """Whether values are whole: integers, days or seconds."""
        return self.kind != "number"

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Bins as text, `17`, `20..29`, `[0.5, 1)`, `2020-01-01..2020-01-31`, then the special values."""
        if self.kind == "number":
            inner = [f"[{low:.12g}, {high:.12g})" for low, high in pairwise(self.edges)]
            return (*inner[:-1], inner[-1][:-1] + "]", *map(self.text, self.special))
        spans = ((self.text(low), self.text(high - 1)) for low, high in pairwise(self.edges))
        bins = (low if low == high else f"{low}..{high}" for low, high in spans)
        return (*bins, *map(self.text, self.special))

    def text(self, value: float) -> str:
        """A value of the column as text: a number, an ISO date or a time of day."""
        return f"{value:.12g}" if self.kind == "number" else _SHOWN.get(self.kind, str)(int(value))

    @property
    def ends(self) -> tuple[Floats, Floats]:
        """The first and last value of each level."""
        points, special = np.asarray(self.edges, dtype=float), np.asarray(self.special, dtype=float)
        last = points[1:] - self.whole
        return np.concatenate([points[:-1], special]), np.concatenate([last, special])

    def codes(self, cells: pa.Array, *, nearest: bool = False) -> Codes:
        """The level of each cell, -1 where there is none; `nearest` puts values outside the range into the end bins."""
        numbers = self.numbers(cells)
        codes = self._bin_codes(numbers, nearest)
        for code, value in enumerate(self.special, start=self.n_bins):
            codes[numbers == value] = code
        return codes

    def numbers(self, cells: pa.Array) -> Floats:
        """Each cell as a number, or as days or seconds; NaN where it is none."""
        return _READ.get(self.kind, as_number)(cells)

    def _bin_codes(self, numbers: Floats, nearest: bool) -> Codes:
        low, high = self.edges[0], self.edges[-1]
        if self.whole:
            numbers = np.where(numbers == np.floor(numbers), numbers, np.nan)
        if nearest:
            numbers = np.clip(numbers, low, high - 1 if self.whole else high)
        inside = (numbers >= low) & ((numbers < high) if self.whole else (numbers <= high))
        if isinstance(self.edges, range):
            place: NDArray[np.floating] = numbers - low
        else:
            place = np.searchsorted(self._points, numbers, side="right") - 1.0
        return np.where(inside, np.minimum(place, self.n_bins - 1), -1).astype(np.int32)

    def between(self, low: float, high: float) -> slice:
        """The bins that lie entirely within `low..high`."""
        if isinstance(self.edges, range):
            first, last = self.edges[0], self.edges[-1]
            start, stop = ceil(min(max(low, first), last)), floor(min(max(high, first - 1), last - 1)) + 1
            return slice(start - first, stop - first)
        starts, ends = self._points[:-1], self._points[1:] - self.whole
        return slice(int(np.searchsorted(starts, low)), int(np.searchsorted(ends, high, side="right")))

    def draw(
        self,
        codes: Codes,
        rng: np.random.Generator,
        *,
        masses: Floats | None = None,
        within: tuple[float, float] | None = None,
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
            values = self._values.draw(bins, rng, masses=bin_masses, within=within)
            values = values if self.whole else values.astype(float)
        if special.any():
            values[special] = np.asarray(self.special)[codes[special] - self.n_bins]
        return self.arrow(values)

    @property
    def middles(self) -> NDArray[Any]:
        """The value nearest to the middle of each bin, as a number, day or second."""
        low, high = (ends[: self.n_bins] for ends in self.ends)
        return low if isinstance(self.edges, range) else self._values.nearest((low + high) / 2)

    @cached_property
    def _values(self) -> BinValues:
        edges, closed = tuple(self.edges), self.kind == "number"
        values = BinValues(edges, closed, self.special + self.barred, self.grid)
        full = bool((np.diff(values.starts) > 0).all())  # a bin of a barred value alone keeps it
        return values if full else BinValues(edges, closed, self.special, self.grid)

    @cached_property
    def _points(self) -> NDArray[Any]:
        return np.asarray(self.edges)

    def arrow(self, values: NDArray[Any]) -> pa.Array:
        """Numbers, days or seconds as cells of the column's own type."""
        if self.kind == "number":
            return pa.array(values)
        whole = values.astype(np.int64)
        if self.kind in _ARROW_TYPES:
            return pa.array(whole.astype(np.int32)).cast(_ARROW_TYPES[self.kind])
        return pa.array(whole)


def from_edges(kind: BinnedKind, edges: Sequence[object]) -> Binned:
    """Bins between given edges; the last bin also holds the last edge, and may hold that one whole number alone."""
    points = tuple(parse_point(kind, edge, "edges") for edge in edges)
    if kind != "number" and len(points) > 1:
        points = (*points[:-1], points[-1] + 1)
    if len(points) < 2 or any(low >= high for low, high in pairwise(points)):
        raise SchemaError("edges must be two or more increasing values; try edges: [0, 18, 65, 120]")
    return Binned(kind, points, grid=default_grid(points, points) if kind == "number" else None)


def from_range(kind: BinnedKind, low: object, high: object, bins: object) -> Binned:
    """`bins` bins of equal width from `low` to `high`; without `bins`, one for each whole number or day."""
    first, last = parse_point(kind, low, "min"), parse_point(kind, high, "max")
    if first > last or (kind == "number" and first == last):
        raise SchemaError(f"min ({low}) must be below max ({high}); swap them or widen the range")
    if bins is None and kind == "number":
        raise SchemaError("a number column must say its bins; add bins: 10, or edges: [...]")
    if bins is None:
        return Binned(kind, range(int(first), int(last) + 2))
    if isinstance(bins, bool) or not isinstance(bins, int) or bins < 1:
        raise SchemaError(
            f"bins ({bins!r:.60}) must be a whole number from 1 up, or auto; try bins: 10, or bins: auto to find them privately"
        )
    if bins > MAX_BINS:
        raise SizeError(f"bins ({bins!r:.60}) must be at most {MAX_BINS}; use wider bins")
    if kind == "number":
        edges = tuple(float(edge) for edge in np.linspace(first, last, bins + 1))
        return Binned(kind, edges, grid=default_grid((first, last), edges))
    start, width = int(first), int(last) - int(first) + 1
    if bins > width:
        raise SchemaError(f"bins ({bins}) must not exceed the {width} values from min to max; leave bins out")
    return Binned(kind, tuple(start + i * width // bins for i in range(bins + 1)))


def with_values(
    domain: Binned, *, special: object, step: object, decimals: object, barred: tuple[float, ...]
) -> Binned:
    """The bins with the special values and the grid that their column declares; `barred` are its codes for missing values."""
    if not isinstance(special, tuple | None):
        raise SchemaError(f"special ({special!r:.60}) must be a list of values; try special: [0, 99999]")
    points = tuple(parse_point(domain.kind, value, "special") for value in special or ())
    reach = (domain.edges[0], domain.edges[-1], *points)
    grid = declared_grid(domain.kind, step, decimals, reach) or domain.grid
    if set(points) & set(barred):
        raise SchemaError("a special value must not be among missing_values; leave it out of one of them")
    return replace(domain, special=points, grid=grid, barred=barred)


_SHOWN: dict[str, Callable[[int], str]] = {"date": day_text, "time": second_text}
_READ: dict[str, Callable[[pa.Array], Floats]] = {"date": as_day, "time": as_time}
_ARROW_TYPES = {"date": pa.date32(), "time": pa.time32("s")}
