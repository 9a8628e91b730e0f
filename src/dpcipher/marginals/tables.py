"""Tables over axes: projection, broadcasting, and the counts of coded rows."""

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpcipher.marginals.arrays import Axes, Codes, Counts

Cell = TypeVar("Cell", bound=np.generic)


@lru_cache(maxsize=4096)
def dropped(axes: Axes, keep: Axes) -> Axes:
    """The dimensions of a table on `axes` that its margin on `keep` sums over."""
    return tuple(place for place, axis in enumerate(axes) if axis not in keep)


def margin(table: NDArray[Cell], axes: Axes, keep: Axes) -> NDArray[Cell]:
    """The projection of a table on `axes` to `keep`; the table itself where nothing is summed."""
    drop = dropped(axes, keep)
    return np.asarray(table.sum(axis=drop)) if drop else table


def broadcast_over(table: NDArray[Cell], keep: Axes, axes: Sequence[int]) -> NDArray[Cell]:
    """A table on `keep`, shaped to broadcast over one on `axes`."""
    sizes = iter(table.shape)
    return table.reshape([next(sizes) if axis in keep else 1 for axis in axes])


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
