"""Stacks of tables: the same step on many tables of one shape, which run along the first axis."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcipher.marginals.arrays import Axes, Counts, Floats

Stack = NDArray[Any]


def margins(stack: Stack, axes: Axes) -> Stack:
    """The margin on `axes` of every table."""
    drop = tuple(1 + axis for axis in range(stack.ndim - 1) if axis not in axes)
    return np.ascontiguousarray(stack.sum(axis=drop)) if drop else stack


def normalised(stack: Stack) -> Floats:
    """Negative cells to zero, every table to sum one; uniform where nothing is left."""
    flat = np.maximum(stack.reshape(len(stack), -1), 0.0)
    flat[flat.sum(axis=1) <= 0] = 1.0
    return np.asarray(flat / flat.sum(axis=1, keepdims=True)).reshape(stack.shape)


def draw_rows(distributions: Floats, n_rows: int, rng: np.random.Generator) -> Counts:
    """The counts of `n_rows` independent draws from each distribution."""
    # The engines' sums differ from one by rounding, which the multinomial sampler refuses.
    flat = normalised(distributions).reshape(len(distributions), -1)
    return rng.multinomial(n_rows, flat).reshape(distributions.shape)


def tvd(first: Stack, second: Stack, orders: Sequence[int] = (1, 2, 3)) -> Floats:
    """The total variation distance, averaged over all tables of an order: pairs of tables by orders."""
    gaps = normalised(first) - normalised(second)
    return np.stack(
        [np.mean([0.5 * gap.sum(axis=1) for gap in _tables(gaps, k)], axis=0) for k in orders], axis=1
    )


def linf(first: Stack, second: Stack, orders: Sequence[int] = (2, 3)) -> Floats:
    """The largest difference of any cell of any table of an order: pairs of tables by orders."""
    gaps = normalised(first) - normalised(second)
    return np.stack([np.max([gap.max(axis=1) for gap in _tables(gaps, k)], axis=0) for k in orders], axis=1)


def _tables(gaps: Floats, order: int) -> list[Floats]:
    """The absolute differences in every table of an order, cells flat."""
    return [
        np.abs(margins(gaps, axes)).reshape(len(gaps), -1)
        for axes in combinations(range(gaps.ndim - 1), order)
    ]
