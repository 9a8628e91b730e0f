"""The bar: max-entropy fitted to the same noisy tables (what private-pgm solves), in the open and to convergence.

Minimises the squared misfit to all noisy tables over all joints with one shared total, by entropic mirror descent from the uniform
table, so that among equally good joints it finds the one of largest entropy. Many noisy releases are fitted side by side.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Axes = tuple[int, ...]
Floats = NDArray[np.float64]


def design(shape: Sequence[int], tables: Sequence[Axes]) -> Floats:
    """The 0/1 matrix that takes a joint to all cells of all tables."""
    cells = np.indices(shape).reshape(len(shape), -1)
    blocks = []
    for axes in tables:
        sizes = [shape[axis] for axis in axes]
        index = np.ravel_multi_index([cells[axis] for axis in axes], sizes)
        blocks.append(np.eye(int(np.prod(sizes)))[:, index])
    return np.concatenate(blocks)


def max_entropy(
    matrix: Floats, observed: Floats, *, tolerance: float = 1e-7, most: int = 200_000
) -> tuple[Floats, float]:
    """Joints (one row each) that fit rows of observed probabilities, and the worst optimality gap left.

    The gap is the Frank–Wolfe bound on how far the misfit is above its minimum, relative to the misfit's own size.
    """
    joint = np.full((len(observed), matrix.shape[1]), 1 / matrix.shape[1])
    miss = joint @ matrix.T - observed
    value = 0.5 * (miss**2).sum(1)
    scale = 0.5 * (observed**2).sum(1)
    step = np.ones(len(observed))
    gap = np.inf
    for count in range(most):
        gradient = miss @ matrix
        if count % 100 == 0:
            gap = float(np.max(((gradient * joint).sum(1) - gradient.min(1)) / scale))
            if gap < tolerance:
                break
        move = -step[:, None] * gradient
        trial = joint * np.exp(move - move.max(1, keepdims=True))
        trial /= trial.sum(1, keepdims=True)
        trial_miss = trial @ matrix.T - observed
        trial_value = 0.5 * (trial_miss**2).sum(1)
        better = trial_value <= value
        joint = np.where(better[:, None], trial, joint)
        miss = np.where(better[:, None], trial_miss, miss)
        value = np.where(better, trial_value, value)
        step *= np.where(better, 1.1, 0.5)
    return joint, gap
