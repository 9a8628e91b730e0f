"""Columns with `bins: auto`, whose edges `measure` finds privately on a public grid: the fine cells on which rows are coded until then.

The grid follows from the declaration alone. Where every whole number, day or second can have a cell, it has one; longer ranges are cut at the
multiples of a round step, so that the edges that are found among them are numbers that people write. A range that is open itself has
a floating-point grid: bands between powers of two, each of both signs cut alike.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpcipher.errors import SchemaError, SizeError
from dpcipher.files.codec import Rule
from dpcipher.schema.bins import BinValues
from dpcipher.schema.columns import Kind
from dpcipher.schema.cut import AUTO, ClosedCut, Cut, Date, Integer, Number, Time
from dpcipher.schema.scale import DAY_SECONDS, CutKind, Grid, Scale, declared_grid, parse_day

Points = NDArray[np.int64] | NDArray[np.float64]

MAX_GRID = 2**17
MAX_FOUND = 64  # bins, unless `max_bins` says otherwise
MOST_FOUND = 2**12
# A range that is open: powers of two of the bands, and the cells of each band.
BAND_CELLS = 256
_POWERS = {"integer": range(52), "number": range(-20, 60)}
_DATES = ("1900-01-01", "2078-12-31")
CUTS: dict[str, type[ClosedCut]] = {"integer": Integer, "number": Number, "date": Date, "time": Time}


@dataclass(frozen=True, kw_only=True)
class OpenBins(Cut):
    """A cut column whose edges are found privately: at most `max_bins` bins, with the `edges` among them that are declared.

    `min` and `max` are public values, or `auto`. Until edges are found, its domain has as many bins as may be found: what a plan counts with.
    """

    cut: CutKind
    max_bins: Annotated[
        int | None,
        Rule(
            f"must be a whole number from 1 to {MOST_FOUND}; try max_bins: 64",
            lambda most: most is None or 1 <= most <= MOST_FOUND,
        ),
    ] = None

    bins: ClassVar[str] = AUTO
    is_open: ClassVar[bool] = True

    @property
    def kind(self) -> Kind:
        """The kind of the column that it becomes."""
        return self.cut

    def _check(self) -> None:
        if AUTO in (self.min, self.max) and self.other not in ("refuse", "nearest"):
            raise SchemaError(
                f"other ({self.other!r:.60}) must be nearest beside a min or max that is auto: values outside the range that is found "
                "go to the end bins"
            )
        if len(self.forced) >= self.most:
            raise SizeError(
                f"max_bins ({self.most}) must exceed the {len(self.forced)} edges that are declared; say more, or fewer edges"
            )
        super()._check()

    @property
    def most(self) -> int:
        """The most bins that may be found."""
        return MAX_FOUND if self.max_bins is None else self.max_bins

    @cached_property
    def forced(self) -> tuple[float, ...]:
        """The edges that it must have, as points of its grid."""
        low, high = self.ends
        forced = tuple(self.scale.parse(edge, "edges") for edge in self.edges or ())
        if any(first >= second for first, second in pairwise(forced)):
            raise SchemaError(
                "edges beside bins: auto must be increasing values that are to be edges; try edges: [18, 65]"
            )
        if any((low is not None and edge <= low) or (high is not None and edge >= high) for edge in forced):
            raise SchemaError("edges beside bins: auto must lie between min and max; leave out the ends")
        return forced

    @cached_property
    def ends(self) -> tuple[float | None, float | None]:
        """Both ends of its range, the upper one an edge; None where an end is to be found."""
        low = None if self.min == AUTO else self.scale.parse(self.min, "min")
        high = None if self.max == AUTO else self.scale.parse(self.max, "max") + self.scale.whole
        if low is not None and high is not None and low >= high:
            raise SchemaError(
                f"min ({self.min}) must be below max ({self.max}); swap them or widen the range"
            )
        return low, high

    def _edges(self) -> tuple[tuple[float, ...], Grid | None]:
        points = self.points
        inner = np.setdiff1d(points[1:-1], self.forced)
        wanted = min(self.most - 1 - len(self.forced), len(inner))
        places = np.linspace(0, max(len(inner) - 1, 0), wanted).astype(int)
        edges = np.concatenate([points[:1], np.union1d(inner[places], self.forced), points[-1:]])
        return tuple(edges.tolist()), None

    @property
    def points(self) -> Points:
        """The points of its grid: every cell holds a value that the column can take, so that every bin will."""
        special = tuple(self.scale.parse(value, "special") for value in self.special)
        return _points(self.scale, *self.ends, self.forced, special, self.step, self.decimals)

    def on_grid(self) -> ClosedCut:
        """The closed column whose bins are the cells of the grid; of a range that is open, values beyond it go to the end cells."""
        return self.closed(self.points.tolist())

    def closed(self, points: Sequence[float]) -> ClosedCut:
        """The column with these edges, the last one an edge too: of whole numbers, one past the last."""
        whole, declared = self.scale.whole, self.scale.declared
        if whole and len(points) > 2 and all(second - first == 1 for first, second in pairwise(points)):
            ends: dict[str, Any] = {"min": declared(points[0]), "max": declared(points[-1] - 1)}
        else:
            ends = {"edges": tuple(map(declared, [*points[:-1], points[-1] - 1 if whole else points[-1]]))}
        kept = (
            "missing",
            "missing_values",
            "value_labels",
            "title",
            "description",
            "unit",
            "step",
            "decimals",
            "special",
        )
        facts: dict[str, Any] = {key: getattr(self, key) for key in kept}
        other = "nearest" if AUTO in (self.min, self.max) else self.other
        return CUTS[self.cut](self.name, **facts, other=other, **ends)

    def with_cuts(self, cuts: Iterable[float]) -> "OpenBins":
        """The column with these edges too, as far as they lie inside its range: the thresholds of rules."""
        points = self.points
        edges = {*self.forced, *cuts}
        inside = sorted(edge for edge in edges if points[0] < edge < points[-1])
        return replace(self, edges=tuple(map(self.scale.declared, inside)) or None)

    def cuts_of(self, condition: object) -> Iterator[float]:
        """The edges that a condition needs, such as that of a structural zero: where its range, or the cells of its values, begin and end."""
        if isinstance(condition, Mapping):
            if condition.get("min") is not None:
                yield self.scale.parse(condition["min"], "min")
            if condition.get("max") is not None:
                yield self.scale.parse(condition["max"], "max") + self.scale.whole
            return
        points = self.points
        for value in condition if isinstance(condition, list | tuple | set | frozenset) else [condition]:
            code = self.find(value)
            if (
                code is not None and code >= self.domain.n_bins
            ):  # special values and missing levels have no edges
                continue
            point = self.scale.parse(value, f"column {self.name!r}: a condition on open bins")
            if not points[0] <= point <= points[-1] - self.scale.whole:
                raise SchemaError(
                    f"column {self.name!r}: a condition ({value!r:.60}) must lie between its min and max, or be a range"
                )
            cell = min(int(np.searchsorted(points, point, "right")) - 1, len(points) - 2)
            # A number that is no point of the grid becomes one, so that the cell begins with it.
            yield from (max(float(points[cell]), min(point, float(points[-2]))), float(points[cell + 1]))


def grid_points(
    scale: Scale,
    low: float | None,
    high: float | None,
    forced: Iterable[float] = (),
) -> Points:
    """The edges of the grid's cells from `low` to `high`, with the `forced` edges among them; `high` is an edge, None an open end."""
    points = _bands(scale, low, high) if low is None or high is None else _steps(scale, low, high)
    inside = [edge for edge in forced if points[0] < edge < points[-1]]
    return np.union1d(points, np.asarray(inside, dtype=points.dtype))


def band_edges(scale: Scale, points: Points) -> list[int]:
    """The places among the points of an open range at which its bands begin: the powers of two, zero, or for dates the decades."""
    if scale.kind == "date":
        starts: list[float] = [parse_day(f"{year}-01-01", "min") for year in range(1910, 2078, 10)]
    else:
        powers = [2.0**power for power in _POWERS[scale.kind]]
        starts = [*(-power for power in powers), 0, *powers]
    places = np.flatnonzero(np.isin(points[:-1], starts))
    return [0, *(int(place) for place in places if place > 0)]


def _steps(scale: Scale, low: float, high: float) -> Points:
    """Every whole number where they are few enough, else the multiples of the finest round step that leaves at most MAX_GRID cells."""
    width = high - low
    if scale.whole and width <= MAX_GRID:
        return np.arange(int(low), int(high) + 1)
    inner = _multiples(low, high, width / (MAX_GRID - 1), whole=scale.whole)
    inner = inner[(inner > low) & (inner < high)]
    ends = np.asarray([low, high], dtype=inner.dtype)
    return np.union1d(inner, ends)


def _multiples(low: float, high: float, least: float, *, whole: bool) -> Points:
    """The multiples, between two numbers, of the first of 1, 2, 5, 10 … (or of their inverses) that is at least `least`."""
    power = math.floor(math.log10(least))
    digit, power = next(
        (digit, power + up) for up in (0, 1) for digit in (1, 2, 5) if digit * 10.0 ** (power + up) >= least
    )
    if power >= 0:
        step = digit * 10**power
        numbers = np.arange(math.ceil(low / step), math.floor(high / step) + 1)
        return np.asarray(numbers * (np.int64(step) if whole else float(step)))
    inverse = 10**-power // digit  # dividing by a whole number rounds once: 3 tenths is 0.3
    return np.asarray(np.arange(math.ceil(low * inverse), math.floor(high * inverse) + 1) / inverse)


def _bands(scale: Scale, low: float | None, high: float | None) -> Points:
    """A floating-point grid, cut at the end that is declared."""
    if scale.kind == "time":
        points: Points = np.arange(DAY_SECONDS + 1)
    elif scale.kind == "date":
        first, last = (parse_day(day, "min") for day in _DATES)
        points = np.arange(first, last + 2)
    else:
        points = _floating(scale)
    if low is not None:
        points = np.union1d(points[points > low], np.asarray([low], dtype=points.dtype))
    if high is not None:
        points = np.union1d(points[points < high], np.asarray([high], dtype=points.dtype))
    return points


def _floating(scale: Scale) -> Points:
    powers = _POWERS[scale.kind]
    parts = np.arange(BAND_CELLS, 2 * BAND_CELLS) / BAND_CELLS
    above = np.concatenate([[0.0], *(parts * 2.0**power for power in powers), [2.0**powers.stop]])
    if scale.kind == "integer":
        above = np.unique(np.floor(above)).astype(np.int64)
    return np.union1d(-above, above)


@lru_cache(maxsize=64)
def _points(
    scale: Scale,
    low: float | None,
    high: float | None,
    forced: tuple[float, ...],
    special: tuple[float, ...],
    step: float | str | None,
    decimals: int | None,
) -> Points:
    points = grid_points(scale, low, high, forced)
    if low is None or high is None:  # an end that is found lies where floats can tell the values apart
        values = declared_grid(scale, step, decimals, (0.0,))
        points = points if values is None else points[[values.holds((float(point),)) for point in points]]
    values = declared_grid(scale, step, decimals, (float(points[0]), float(points[-1]), *special))
    if values is None and scale.whole:
        values = Grid()
    if values is not None:
        if scale.kind in ("integer", "number"):
            points = _with_zero(points, values)
        points = _with_values(
            points, forced, BinValues(tuple(points.tolist()), not scale.whole, special, values)
        )
    points.flags.writeable = False
    return points


def _with_zero(points: Points, values: Grid) -> Points:
    """The points with those of a cell of zero alone: amounts and counts often have many zeros."""
    if not points[0] <= 0 < points[-1]:
        return points
    cell = values.values(np.arange(2))
    return np.union1d(points, cell[cell < points[-1]].astype(points.dtype))


def _with_values(points: Points, forced: tuple[float, ...], values: BinValues) -> Points:
    """The points without those that leave a cell between them no value; ends and forced edges stay."""
    _, group = np.unique(values.starts, return_inverse=True)  # points of one group have no value between them
    fixed = np.isin(points, forced)
    fixed[[0, -1]] = True
    if len(set(group[fixed])) < fixed.sum():
        raise SchemaError(
            "edges, step and special must leave a value between any two edges; leave one of them out"
        )
    kept = np.zeros(len(points), dtype=np.bool_)
    kept[np.flatnonzero(np.diff(group, append=group[-1] + 1))] = (
        True  # the last of each group: a value itself
    )
    kept[np.isin(group, group[fixed])] = False
    return points[kept | fixed]
