"""The prior of an interaction: independent normal coefficients of orthonormal contrasts of every column's levels.

A contrast of order k (the difference of two levels; the log odds ratio of two pairs of levels; …) has the standard deviation CONTRAST_SD[k], halved
for each order beyond the last. That is weak in the sense of Gelman et al. (2008): log odds ratios of 4 are possible, of 40 are not, and
interactions of many columns are smaller than those of few.

Levels without an order are unrelated. In a pair of columns the levels of an ordered one are a random walk: as far apart as unrelated levels
after two steps, and further apart beyond. A trend over ten levels is a large interaction although each step of it is small; unrelated levels
would each be drawn towards 0 by noise of their own size, and the slope, which many levels know well together, with them.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from dpcipher.marginals.arrays import Floats
from dpcipher.schema.schema import Schema

CONTRAST_SD = {1: 3.0, 2: 2.0, 3: 1.0}
# Steps after which levels of a walk are as far apart as unrelated ones; shorter columns than this have no room for a trend.
STEPS_APART, LEAST_ORDERED = 2, 4


def contrast_sd(order: int) -> float:
    """The prior standard deviation of a contrast of so many columns with unrelated levels.

    >>> contrast_sd(2), contrast_sd(3), contrast_sd(5)
    (2.0, 1.0, 0.25)
    """
    last = max(CONTRAST_SD)
    return CONTRAST_SD[min(order, last)] * 0.5 ** max(0, order - last)


class Levels(NamedTuple):
    """How many levels a column has, and how many of them, from the first, follow one another."""

    size: int
    ordered: int = 0


def levels_of(schema: Schema, attr: str) -> Levels:
    """The levels of an attribute; those of a compound have no order."""
    parts = schema.parts(attr)
    return Levels(prod(part.size for part in parts), parts[0].ordered_levels if len(parts) == 1 else 0)


@lru_cache(maxsize=256)
def contrasts(levels: Levels) -> tuple[Floats, Floats]:
    """Orthonormal contrasts of the levels of a column (levels by contrasts), and their spread in a pair, 1 for unrelated levels.

    >>> contrasts(Levels(10, ordered=10))[1].round(1).tolist()
    [3.2, 1.6, 1.1, 0.9, 0.7, 0.6, 0.6, 0.5, 0.5]
    """
    size, ordered = levels
    if ordered < LEAST_ORDERED:
        return _helmert(size), np.ones(size - 1)
    # What follows one another is a walk around a level of its own, unrelated to the levels that do not.
    covariance = 0.5 * np.eye(size)
    covariance[:ordered, :ordered] = 0.5 + _walk(ordered)
    centre = np.eye(size) - 1 / size
    variance, axes = np.linalg.eigh(centre @ covariance @ centre)
    # The constant has no variance: it is the first, and left out.
    return np.ascontiguousarray(axes[:, :0:-1]), np.sqrt(2 * variance[:0:-1])


def _helmert(size: int) -> Floats:
    """Each level against the mean of those before it."""
    basis = np.zeros((size, size - 1))
    for k in range(1, size):
        basis[:k, k - 1] = (k * (k + 1)) ** -0.5
        basis[k, k - 1] = -k * (k * (k + 1)) ** -0.5
    return basis


def _walk(levels: int) -> Floats:
    """The covariance of a centred random walk along so many levels; unrelated levels differ with variance 1."""
    apart = np.abs(np.subtract.outer(np.arange(levels), np.arange(levels))) / STEPS_APART
    centre = np.eye(levels) - 1 / levels
    return np.asarray(-0.5 * centre @ apart @ centre)


def coefficient_sd(levels: Sequence[Levels]) -> Floats:
    """The prior standard deviation of every coefficient of an interaction of columns with these levels."""
    order = len(levels)
    unit = contrast_sd(order) * 2 ** (-order / 2)
    if order != 2:
        return np.full(prod(size - 1 for size, _ in levels), unit)
    first, second = (contrasts(one)[1] for one in levels)
    return np.asarray(unit * np.outer(first, second).ravel())
