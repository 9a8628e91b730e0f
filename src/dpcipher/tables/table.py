"""Tables as arrays over columns by number: projection, broadcasting, stacks of one shape, all pair margins, counts of coded rows.

All pair margins of a table are made by matrix products. The axes are split in two halves, and the table becomes a matrix. A margin on one axis of each half
is then I'TJ, where I and J say which rows and columns have which level: one product gives the margins of every axis of the one half with every axis of the
other. Margins inside a half are those of the table summed over the other half, which is small. So the whole table is read three times, whatever the number
of pairs.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from math import prod
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpcipher.tables.domain import Axes, Codes, Counts, Floats, Shape, dropped

Cell = TypeVar("Cell", bound=np.generic)
Item = TypeVar("Item")

_DIRECT_CELLS = 2**10  # a smaller table is summed pair by pair
_LEVELS = 8  # for each pair, up to which a product with all levels costs less than a sum for every pair
PART = 50_000  # numbers in the array of some tables of one shape: it stays in the processor's cache


def margin(table: NDArray[Cell], axes: Axes, keep: Axes) -> NDArray[Cell]:
    """The projection of a table on `axes` to `keep`; the table itself where nothing is summed."""
    drop = dropped(axes, keep)
    return np.asarray(table.sum(axis=drop)) if drop else table


def broadcast_over(table: NDArray[Cell], keep: Axes, axes: Sequence[int]) -> NDArray[Cell]:
    """A table on `keep`, shaped to broadcast over one on `axes`."""
    sizes = iter(table.shape)
    return table.reshape([next(sizes) if axis in keep else 1 for axis in axes])


def centre(table: Floats, *, first: int = 0) -> Floats:
    """Subtract the mean along every axis in turn: what no lower-order margin sees.

    Axes before `first` are left alone: `first=1` is for tables of one shape, one after another in an array.
    """
    for axis in range(first, table.ndim):
        table = table - table.sum(axis=axis, keepdims=True) / table.shape[axis]
    return table


def spread(component: Floats, keep: Axes, axes: Axes, shape: Shape) -> Floats:
    """Shape a component on `keep` so that it broadcasts, evenly shared, over a table on `axes`."""
    return broadcast_over(component, keep, axes) / (cells(axes, shape) // component.size)


def cells(axes: Axes, shape: Shape) -> int:
    """How many cells a table on `axes` has."""
    return prod(shape[axis] for axis in axes)


def freedom(axes: Axes, shape: Shape) -> int:
    """How many free numbers the component on `axes` holds: ∏ (K − 1)."""
    return prod(shape[axis] - 1 for axis in axes)


def alike(
    items: Iterable[Item], kind: Callable[[Item], Hashable], numbers: Callable[[Item], int]
) -> Iterator[list[Item]]:
    """The items of one kind after those of another, in parts of few numbers; `numbers` says how many an item has.

    What is done to many small tables at once is done much faster.
    """
    kinds: dict[Hashable, list[Item]] = defaultdict(list)
    for item in items:
        kinds[kind(item)].append(item)
    for group in kinds.values():
        step = max(1, PART // max(1, numbers(group[0])))
        yield from (group[start : start + step] for start in range(0, len(group), step))


def stacked(tables: Mapping[Axes, NDArray[Cell]]) -> Iterator[tuple[list[Axes], NDArray[Cell]]]:
    """The tables of one shape after those of another, each time some of them as one array."""
    for sets in alike(tables, lambda axes: tables[axes].shape, lambda axes: tables[axes].size):
        yield sets, np.stack([tables[axes] for axes in sets])


def cell_numbers(codes: Codes, axes: Axes, shape: Sequence[int]) -> Counts:
    """The number of the cell on `axes` that each coded row falls in, in row-major order."""
    number = np.zeros(len(codes), dtype=np.int64)
    for axis in axes:
        number = number * shape[axis] + codes[:, axis]
    return number


def count_rows(codes: Codes, axes: Axes, shape: Sequence[int]) -> Counts:
    """The counts of coded rows in the table on `axes`."""
    sizes = [shape[axis] for axis in axes]
    return np.bincount(cell_numbers(codes, axes, shape), minlength=prod(sizes)).reshape(sizes)


def pair_margins(table: Floats) -> dict[tuple[int, int], Floats]:
    """The margin of every two axes of a table, the lower axis first.

    >>> margins = pair_margins(np.arange(24.0).reshape(2, 3, 4))
    >>> margins[0, 2].tolist()
    [[12.0, 15.0, 18.0, 21.0], [48.0, 51.0, 54.0, 57.0]]
    """
    margins: dict[tuple[int, int], Floats] = {}
    _collect(table, tuple(range(table.ndim)), margins)
    return {pair: margins[pair] for pair in combinations(range(table.ndim), 2)}


def _collect(table: Floats, axes: Axes, margins: dict[tuple[int, int], Floats]) -> None:
    """Put the margins of every two of a table's axes, which have these numbers, into `margins`."""
    if table.ndim < 2:
        return
    cut = _halfway(table.shape)
    left, right = table.shape[:cut], table.shape[cut:]
    pairs = table.ndim * (table.ndim - 1) // 2
    if table.ndim == 2 or table.size <= _DIRECT_CELLS or min(sum(left), sum(right)) > _LEVELS * pairs:
        for first, second in combinations(range(table.ndim), 2):
            others = tuple(axis for axis in range(table.ndim) if axis not in (first, second))
            margins[axes[first], axes[second]] = np.asarray(table.sum(axis=others))
        return
    matrix = table.reshape(prod(left), prod(right))
    rows, columns = _levels_of(left).T, _levels_of(right)
    crossed = (rows @ matrix) @ columns if sum(left) < sum(right) else rows @ (matrix @ columns)
    for first, down in enumerate(_slices(left)):
        for second, across in enumerate(_slices(right)):
            margins[axes[first], axes[cut + second]] = crossed[down, across]
    _collect(matrix.sum(axis=1).reshape(left), axes[:cut], margins)
    _collect((np.ones(len(matrix)) @ matrix).reshape(right), axes[cut:], margins)


def _halfway(shape: Shape) -> int:
    """After how many axes to cut, so that both parts have about as many cells."""
    return min(range(1, len(shape)), key=lambda cut: abs(np.log(prod(shape[:cut]) / prod(shape[cut:]))))


def _levels_of(shape: Shape) -> Floats:
    """Cells by levels of all axes: a one where a cell has a level."""
    cells, parts = np.arange(prod(shape)), []
    for axis, size in enumerate(shape):
        level = cells // prod(shape[axis + 1 :]) % size
        parts.append((level[:, None] == np.arange(size)).astype(np.float64))
    return np.concatenate(parts, axis=1)


def _slices(shape: Shape) -> list[slice]:
    stops = np.cumsum(shape).tolist()
    return [slice(stop - size, stop) for stop, size in zip(stops, shape, strict=True)]
