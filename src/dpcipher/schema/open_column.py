"""Open columns: `bins: auto`, whose edges `measure` finds privately on a public grid; and what becomes of them when edges are found."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, cast

import numpy as np

from dpcipher.errors import SchemaError, SizeError
from dpcipher.schema.bin_values import BinValues
from dpcipher.schema.binned import Binned
from dpcipher.schema.grid import Grid, declared_grid
from dpcipher.schema.open_grid import MAX_GRID, Points, grid_points
from dpcipher.schema.points import BinnedKind, day_text, parse_point, second_text

if TYPE_CHECKING:
    from dpcipher.schema.column import Column

AUTO = "auto"
MAX_FOUND = 64  # bins, unless `max_bins` says otherwise
MOST_FOUND = 2**12
_CUT_KINDS = ("integer", "number", "date", "time")


def check_open(column: "Column") -> None:
    """Refuse a declaration from which no grid follows."""
    if column.kind not in _CUT_KINDS:
        raise SchemaError(
            f"bins (auto) is for {', '.join(_CUT_KINDS)} columns; a {column.kind} column lists its levels"
        )
    if column.levels is not None or column.min is None or column.max is None:
        raise SchemaError(
            "bins (auto) needs min and max, each a value or auto; try {min: 0, max: 1000000, bins: auto}"
        )
    most = MAX_FOUND if column.max_bins is None else column.max_bins
    if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= MOST_FOUND:
        raise SchemaError(
            f"max_bins ({most!r:.60}) must be a whole number from 1 to {MOST_FOUND}; try max_bins: 64"
        )
    if AUTO in (column.min, column.max) and column.other not in ("refuse", "nearest"):
        raise SchemaError(
            f"other ({column.other!r:.60}) must be nearest beside a min or max that is auto: values outside the range that is found "
            "go to the end bins"
        )
    _, _, forced = _facts(column)
    if len(forced) >= most:
        raise SizeError(
            f"max_bins ({most}) must exceed the {len(forced)} edges that are declared; say more, or fewer edges"
        )


def encode_refusal(name: str) -> SchemaError:
    """What to say where rows would be coded before there are bins or levels."""
    return SchemaError(
        f"column {name!r}: its bins or levels are open (auto, discover) until measure has found them; "
        "use the release's own schema: a command takes the release file in place of a schema, Python has release.schema"
    )


def stand_in(column: "Column") -> Binned:
    """As many bins as may be found, between points of the grid: what a plan counts with."""
    forced = declared_edges(column)
    most = MAX_FOUND if column.max_bins is None else column.max_bins
    points = grid_of(column)
    inner = np.setdiff1d(points[1:-1], forced)
    wanted = min(most - 1 - len(forced), len(inner))
    places = np.linspace(0, max(len(inner) - 1, 0), wanted).astype(int)
    edges = np.concatenate([points[:1], np.union1d(inner[places], forced), points[-1:]])
    return Binned(cast(BinnedKind, column.kind), tuple(edges.tolist()))


def declared_edges(column: "Column") -> list[float]:
    """The edges that an open column must have, as points of its grid."""
    return list(_facts(column)[2])


def on_grid(column: "Column", most: int = MAX_GRID) -> "Column":
    """The closed column whose bins are the cells of the grid; of a range that is open, values beyond it go to the end cells."""
    return closed(column, grid_of(column, most).tolist())


def grid_of(column: "Column", most: int = MAX_GRID) -> Points:
    """The points of a column's grid: every cell holds a value that its column can take, so that every bin will."""
    low, high, forced = _facts(column)
    kind = cast(BinnedKind, column.kind)
    special = tuple(parse_point(kind, value, "special") for value in column.special or ())
    return _points(kind, low, high, forced, most, special, column.step, column.decimals)


def closed(column: "Column", points: Sequence[float]) -> "Column":
    """The column with these edges, the last one an edge too: of whole numbers, one past the last."""
    other = column.other if AUTO not in (column.min, column.max) else "nearest"
    whole = column.kind != "number"
    low, high, edges = None, None, None
    if whole and len(points) > 2 and all(second - first == 1 for first, second in pairwise(points)):
        low, high = _declared(column.kind, points[0]), _declared(column.kind, points[-1] - 1)
    else:
        ends = [*points[:-1], points[-1] - 1 if whole else points[-1]]
        edges = tuple(_declared(column.kind, end) for end in ends)
    return replace(column, min=low, max=high, edges=edges, bins=None, max_bins=None, other=other)


def with_thresholds(
    columns: Sequence["Column"], conditions: Iterable[Mapping[str, object]]
) -> tuple["Column", ...]:
    """The columns, the open ones with an edge wherever a condition of the schema begins or ends."""
    named: dict[str, list[object]] = {}
    for condition in conditions:
        for name, wanted in condition.items() if isinstance(condition, Mapping) else ():
            named.setdefault(str(name), []).append(wanted)
    return tuple(
        _with_edges(column, named[column.name]) if column.bins == AUTO and column.name in named else column
        for column in columns
    )


def with_cuts(column: "Column", cuts: Sequence[float | str]) -> "Column":
    """An open column with these edges too, as far as they lie inside its range: the thresholds of rules."""
    kind, points = cast(BinnedKind, column.kind), grid_of(column)
    edges = {*declared_edges(column), *(parse_point(kind, cut, "a threshold") for cut in cuts)}
    inside = sorted(edge for edge in edges if points[0] < edge < points[-1])
    return replace(column, edges=tuple(_declared(kind, edge) for edge in inside) or None)


def _with_edges(column: "Column", wanted: Iterable[object]) -> "Column":
    kind, points = cast(BinnedKind, column.kind), grid_of(column)
    edges = set(declared_edges(column))
    for condition in wanted:
        edges.update(
            _range_ends(kind, condition)
            if isinstance(condition, Mapping)
            else _cell_ends(column, condition, points)
        )
    inside = sorted(edge for edge in edges if points[0] < edge < points[-1])
    return replace(column, edges=tuple(_declared(kind, edge) for edge in inside) or None)


def _range_ends(kind: BinnedKind, condition: Mapping[str, object]) -> Iterable[float]:
    """The edges between which the bins of a range lie."""
    if condition.get("min") is not None:
        yield parse_point(kind, condition["min"], "min")
    if condition.get("max") is not None:
        yield parse_point(kind, condition["max"], "max") + (kind != "number")


def _cell_ends(column: "Column", condition: object, points: Points) -> Iterable[float]:
    """The edges of the grid's cells that hold the values of a condition; special values and missing levels have none."""
    kind = cast(BinnedKind, column.kind)
    for value in condition if isinstance(condition, list | tuple | set | frozenset) else [condition]:
        code = column.find(value)
        if code is not None and code >= cast(Binned, column.domain).n_bins:
            continue
        point = parse_point(kind, value, f"column {column.name!r}: a condition on open bins")
        if not points[0] <= point <= points[-1] - (kind != "number"):
            raise SchemaError(
                f"column {column.name!r}: a condition ({value!r:.60}) must lie between its min and max, or be a range"
            )
        cell = min(int(np.searchsorted(points, point, "right")) - 1, len(points) - 2)
        # A number that is no point of the grid becomes one, so that the cell begins with it.
        yield from (max(float(points[cell]), min(point, float(points[-2]))), float(points[cell + 1]))


def _facts(column: "Column") -> tuple[float | None, float | None, tuple[float, ...]]:
    """Both ends, the upper one an edge, None where it is to be found; and the edges that are declared between them."""
    kind, whole = cast(BinnedKind, column.kind), column.kind != "number"
    low = None if column.min == AUTO else parse_point(kind, column.min, "min")
    high = None if column.max == AUTO else parse_point(kind, column.max, "max") + whole
    if low is not None and high is not None and low >= high:
        raise SchemaError(
            f"min ({column.min}) must be below max ({column.max}); swap them or widen the range"
        )
    forced = tuple(parse_point(kind, edge, "edges") for edge in column.edges or ())
    if any(first >= second for first, second in pairwise(forced)):
        raise SchemaError(
            "edges beside bins: auto must be increasing values that are to be edges; try edges: [18, 65]"
        )
    if any((low is not None and edge <= low) or (high is not None and edge >= high) for edge in forced):
        raise SchemaError("edges beside bins: auto must lie between min and max; leave out the ends")
    return low, high, forced


@lru_cache(maxsize=64)
def _points(
    kind: BinnedKind,
    low: float | None,
    high: float | None,
    forced: tuple[float, ...],
    most: int,
    special: tuple[float, ...],
    step: float | str | None,
    decimals: int | None,
) -> Points:
    points = grid_points(kind, low, high, forced, most)
    if low is None or high is None:  # an end that is found lies where floats can tell the values apart
        values = declared_grid(kind, step, decimals, (0.0,))
        points = points if values is None else points[[values.holds((float(point),)) for point in points]]
    values = declared_grid(kind, step, decimals, (float(points[0]), float(points[-1]), *special))
    if values is None and kind != "number":
        values = Grid()
    if values is not None:
        if kind in ("integer", "number"):
            points = _with_zero(points, values)
        points = _with_values(
            points, forced, BinValues(tuple(points.tolist()), kind == "number", special, values)
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


def _declared(kind: str, edge: float) -> float | str:
    """An edge as a schema says it."""
    if kind == "date":
        return day_text(int(edge))
    if kind == "time":
        return second_text(int(edge))
    return float(edge) + 0.0 if kind == "number" else int(edge)  # no negative zero
