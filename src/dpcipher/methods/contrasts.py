"""Whole-number contrasts of any number of levels: the Fourier basis of Barak et al. (2007), beyond binary columns.

A column of K levels has K−1 Helmert contrasts (1, −1, 0, …), (1, 1, −2, 0, …), …; for K = 2 that is (1, −1), the parity. The absolute values
in every column of the matrix add up to K−1, so one row moves the coefficients of a set S of columns by Π(K_i−1) in L1: exactly as much as there
are coefficients, which is the source's count |F| for parities.
"""

from collections.abc import Sequence
from functools import lru_cache, reduce
from math import prod

import numpy as np
from numpy.typing import NDArray

from dpcipher.marginals.arrays import Axes, Counts


@lru_cache(maxsize=64)
def helmert(levels: int) -> Counts:
    """The K−1 contrasts of a column of K levels, as rows.

    >>> helmert(3).tolist()
    [[1, -1, 0], [1, 1, -2]]
    """
    matrix = np.tril(np.ones((levels - 1, levels), dtype=np.int64))
    matrix[np.arange(levels - 1), np.arange(1, levels)] = -np.arange(1, levels)
    return matrix


def coefficients(table: Counts) -> Counts:
    """The coefficients of a table on its own columns, each contrasted; of no column, the total."""
    result = table
    for axis, size in enumerate(table.shape):
        result = np.moveaxis(np.tensordot(helmert(size), result, axes=(1, axis)), 0, axis)
    return result.reshape(-1)


def design(shape: Sequence[int], sets: Sequence[Axes]) -> NDArray[np.float64]:
    """The matrix that takes the full table's cells to all coefficients of `sets`."""
    blocks = []
    for axes in sets:
        factors = [
            helmert(size) if axis in axes else np.ones((1, size), dtype=np.int64)
            for axis, size in enumerate(shape)
        ]
        blocks.append(reduce(np.kron, factors))
    return np.concatenate(blocks).astype(np.float64)


def n_coefficients(shape: Sequence[int], sets: Sequence[Axes]) -> int:
    """How many coefficients the sets have together: also how far one row moves them in L1."""
    return sum(prod(shape[axis] - 1 for axis in axes) for axes in sets)


def l2_squared(shape: Sequence[int], sets: Sequence[Axes]) -> int:
    """An upper bound on the squared L2 norm of what one row adds to the coefficients."""
    most = [int((helmert(size) ** 2).sum(axis=0).max()) if size > 1 else 0 for size in shape]
    return sum(prod(most[axis] for axis in axes) for axes in sets)
