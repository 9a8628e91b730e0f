"""The values of a column cut into bins: integer, number and date columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from itertools import pairwise
from math import ceil, floor
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpcipher.errors import SchemaError, SizeError
from dpcipher.marginals.arrays import Codes, Floats
from dpcipher.schema.cells import as_day, as_number
from dpcipher.schema.listed import EXACT

BinnedKind = Literal["integer", "number", "date"]

MAX_BINS = 2**20
MAX_NUMBER = 1e300  # so that the width of a range is finite too
_EPOCH = date(1970, 1, 1)


@dataclass(frozen=True)
class Binned:
    """Bins that follow one another: bin i holds `edges[i] <= value < edges[i + 1]`.

    Dates are days since 1970-01-01. The last bin of numbers also holds its right edge. One bin for each whole number is a
    `range`, so that a column of a billion levels is refused for its size rather than built.
    """

    kind: BinnedKind
    edges: range | tuple[float, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.edges, range) and any(low >= high for low, high in pairwise(self.edges)):
            raise SchemaError("bins must have increasing edges; use fewer or wider bins")

    @property
    def size(self) -> int:
        """How many bins there are."""
        return len(self.edges) - 1

    @property
    def whole(self) -> bool:
        """Whether values are whole: integers, or days."""
        return self.kind != "number"

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Bins as text: `17`, `20..29`, `[0.5, 1)`, `2020-01-01..2020-01-31`."""
        if self.kind == "number":
            inner = [f"[{low:.12g}, {high:.12g})" for low, high in pairwise(self.edges)]
            return (*inner[:-1], inner[-1][:-1] + "]")
        spans = ((self.show(low), self.show(high - 1)) for low, high in pairwise(self.edges))
        return tuple(low if low == high else f"{low}..{high}" for low, high in spans)

    def show(self, value: float) -> str:
        """One value as the schema file writes it."""
        if self.kind == "date":
            return day_text(int(value))
        return str(int(value)) if self.whole else f"{value:.12g}"

    def read(self, cells: pa.Array) -> Floats:
        """Each cell as a number; NaN where it is none, or not whole in a column of whole numbers."""
        numbers = as_day(cells) if self.kind == "date" else as_number(cells)
        return np.where(numbers == np.floor(numbers), numbers, np.nan) if self.whole else numbers

    def codes(self, cells: pa.Array) -> Codes:
        """The bin of each cell, -1 where there is none."""
        return self._bins(self.read(cells))

    def nearest(self, cells: pa.Array) -> Codes:
        """As `codes`, with values outside the range put into the end bins."""
        last = self.edges[-1] - 1 if self.whole else self.edges[-1]
        return self._bins(np.clip(self.read(cells), self.edges[0], last))

    def between(self, low: float, high: float) -> slice:
        """The bins that lie entirely within `low..high`."""
        if isinstance(self.edges, range):
            first, last = self.edges[0], self.edges[-1]
            start, stop = ceil(min(max(low, first), last)), floor(min(max(high, first - 1), last - 1)) + 1
            return slice(start - first, stop - first)
        starts, ends = np.asarray(self.edges[:-1]), np.asarray(self.edges[1:]) - self.whole
        return slice(int(np.searchsorted(starts, low)), int(np.searchsorted(ends, high, side="right")))

    def draw(self, codes: Codes, rng: np.random.Generator) -> pa.Array:
        """A value in each code's bin, uniform over its whole numbers, days or reals."""
        if isinstance(self.edges, range):
            return self._arrow(codes.astype(np.int64) + self.edges.start)
        edges = np.asarray(self.edges)
        low, high = edges[codes], edges[codes + 1]
        if self.whole:
            return self._arrow(rng.integers(low, high, dtype=np.int64))
        drawn = low + rng.random(len(codes)) * (high - low)
        return pa.array(np.minimum(drawn, np.nextafter(high, low)))  # rounding may reach the next bin's edge

    @cached_property
    def _points(self) -> Floats:
        return np.asarray(self.edges, dtype=np.float64)

    def _arrow(self, whole: NDArray[np.int64]) -> pa.Array:
        return pa.array(whole.astype(np.int32)).cast(pa.date32()) if self.kind == "date" else pa.array(whole)

    def _bins(self, numbers: Floats) -> Codes:
        low, high = self.edges[0], self.edges[-1]
        inside = (numbers >= low) & ((numbers < high) if self.whole else (numbers <= high))
        if isinstance(self.edges, range):
            place: NDArray[np.floating] = numbers - low
        else:
            place = np.searchsorted(self._points, numbers, side="right") - 1.0
        return np.where(inside, np.minimum(place, self.size - 1), -1).astype(np.int32)


def from_edges(kind: BinnedKind, edges: Sequence[object]) -> Binned:
    """Bins between given edges; the last bin also holds the last edge."""
    points = tuple(_point(kind, edge, "edges") for edge in edges)
    if len(points) < 2 or any(low >= high for low, high in pairwise(points)):
        raise SchemaError("edges must be two or more increasing values; try edges: [0, 18, 65, 120]")
    return Binned(kind, points if kind == "number" else (*points[:-1], points[-1] + 1))


def from_range(kind: BinnedKind, low: object, high: object, bins: object) -> Binned:
    """`bins` bins of equal width from `low` to `high`; without `bins`, one for each whole number or day."""
    first, last = _point(kind, low, "min"), _point(kind, high, "max")
    if first > last or (kind == "number" and first == last):
        raise SchemaError(f"min ({low}) must be below max ({high}); swap them or widen the range")
    if bins is None:
        return _unit_bins(kind, first, last)
    if isinstance(bins, bool) or not isinstance(bins, int) or bins < 1:
        raise SchemaError(f"bins ({bins!r:.60}) must be a whole number from 1 up; try bins: 10")
    if bins > MAX_BINS:
        raise SizeError(f"bins ({bins!r:.60}) must be at most {MAX_BINS}; use wider bins")
    if kind == "number":
        return Binned(kind, tuple(float(edge) for edge in np.linspace(first, last, bins + 1)))
    return _whole_bins(kind, int(first), int(last), bins)


def _unit_bins(kind: BinnedKind, first: float, last: float) -> Binned:
    if kind == "number":
        raise SchemaError("a number column must say its bins; add bins: 10, or edges: [...]")
    return Binned(kind, range(int(first), int(last) + 2))


def _whole_bins(kind: BinnedKind, first: int, last: int, bins: int) -> Binned:
    width = last - first + 1
    if bins > width:
        raise SchemaError(f"bins ({bins}) must not exceed the {width} values from min to max; leave bins out")
    return Binned(kind, tuple(first + i * width // bins for i in range(bins + 1)))


def _point(kind: BinnedKind, value: object, name: str) -> float:
    """A declared value as a number, checked for the kind of its column."""
    if kind == "date":
        return parse_day(value, name)
    limit = EXACT if kind == "integer" else MAX_NUMBER
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < limit:
        raise SchemaError(f"{name} ({value!r:.60}) must be a finite number below {limit:.3g} in size")
    if kind == "integer" and value != int(value):
        raise SchemaError(f"{name} ({value!r}) must be whole in an integer column; use kind: number")
    return int(value) if kind == "integer" else float(value)


def parse_day(value: object, name: str) -> int:
    """An ISO date as days since 1970-01-01."""
    try:
        return (date.fromisoformat(str(value)) - _EPOCH).days
    except ValueError:
        raise SchemaError(f"{name} ({value!r:.60}) must be a date such as 2024-01-31") from None


def day_text(days: int) -> str:
    """Days since 1970-01-01 as an ISO date."""
    return (_EPOCH + timedelta(days=days)).isoformat()
