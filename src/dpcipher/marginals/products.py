"""All pair margins of a dense table by matrix products.

The axes are split in two halves, and the table becomes a matrix. A margin on one axis of each half is then I'TJ, where I and J say which rows and columns have
which level: one product gives the margins of every axis of the one half with every axis of the other. Margins inside a half are those of the table summed
over the other half, which is small. So the whole table is read three times, whatever the number of pairs.
"""

from itertools import combinations
from math import prod

import numpy as np

from dpcipher.marginals.arrays import Axes, Floats, Shape

_DIRECT_CELLS = 2**10  # a smaller table is summed pair by pair
_LEVELS = 8  # for each pair, up to which a product with all levels costs less than a sum for every pair


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
