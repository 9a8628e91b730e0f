"""The prior of an interaction: independent normal coefficients of orthonormal contrasts of every column's levels.

A contrast of order k (the difference of two levels; the log odds ratio of two pairs of levels; …) has the standard deviation CONTRAST_SD[k], halved
for each order beyond the last. That is weak in the sense of Gelman et al. (2008): log odds ratios of 4 are possible, of 40 are not, and
interactions of many columns are smaller than those of few.

Levels without an order are unrelated. In an interaction the levels of an ordered column are a random walk. In a pair they are as far apart as
unrelated levels after two steps, and further apart beyond: a trend over ten levels is a large interaction although each step of it is small; unrelated
levels would each be drawn towards 0 by noise of their own size, and the slope, which many levels know well together, with them. In larger
interactions the first level and the last are as far apart as unrelated levels: trends there bend slopes, while what is unrelated cancels out.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dpcipher.posteriors.halves import kronecker
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Axes, Floats
from dpcipher.tables.query import Groups

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
    """The levels of an column."""
    column = schema.column(attr)
    return Levels(column.size, column.ordered_levels)


def grouped(levels: Levels, groups: Groups) -> Levels:
    """Groups of levels as levels: they follow one another as far as they are runs of levels that do."""
    ordered = (
        sum(stop <= levels.ordered for stop in (*groups.starts[1:], levels.size)) if groups.are_runs else 0
    )
    return Levels(groups.size, ordered)


def contrasts(levels: Levels, groups: Groups | None = None) -> Floats:
    """Orthonormal contrasts of the levels of a column (levels by contrasts): along an order, the slowest waves first.

    With `groups` they are those that are equal inside each group.
    """
    if groups is None and levels.ordered < LEAST_ORDERED:
        return _helmert(levels.size)
    covariance = _covariance(levels, groups, STEPS_APART)
    # The last eigenvectors, without the constant, which has no variance, and what differs inside groups.
    count = (levels.size if groups is None else groups.size) - 1
    return np.ascontiguousarray(np.linalg.eigh(covariance)[1][:, : levels.size - count - 1 : -1])


def _helmert(size: int) -> Floats:
    """Each level against the mean of those before it."""
    basis = np.zeros((size, size - 1))
    for k in range(1, size):
        basis[:k, k - 1] = (k * (k + 1)) ** -0.5
        basis[k, k - 1] = -k * (k * (k + 1)) ** -0.5
    return basis


def _covariance(levels: Levels, groups: Groups | None, steps_apart: int) -> Floats:
    """The covariance of centred levels: unrelated ones differ with variance 1, and so do those of a walk after so many steps.

    What follows one another is a walk around a level of its own, unrelated to the levels that do not. Groups are levels of their own: those of a
    group have one value.
    """
    if groups is not None:
        of_groups = _covariance(grouped(levels, groups), None, steps_apart)
        return _centred(groups.spread(groups.spread(of_groups, 0), 1))
    size, ordered = levels
    covariance = 0.5 * np.eye(size)
    if ordered >= LEAST_ORDERED and steps_apart:
        apart = np.abs(np.subtract.outer(np.arange(ordered), np.arange(ordered))) / steps_apart
        covariance[:ordered, :ordered] = 0.5 - 0.5 * _centred(apart)
    return _centred(covariance)


def _centred(matrix: Floats) -> Floats:
    """Rows and columns less their means."""
    rows = matrix - matrix.mean(axis=0)
    return np.asarray(rows - rows.mean(axis=1, keepdims=True))


def spread(levels: Levels, order: int, groups: Groups | None = None) -> Floats:
    """The spread of every contrast of a column in an interaction of so many columns, 1 for unrelated levels.

    >>> spread(Levels(10, ordered=10), 2).round(1).tolist()
    [3.2, 1.6, 1.1, 0.9, 0.7, 0.6, 0.6, 0.5, 0.5]
    """
    own = levels if groups is None else grouped(levels, groups)
    walks = order > 1 and own.ordered >= LEAST_ORDERED
    if groups is None and not walks:
        return np.ones(levels.size - 1)
    axes = contrasts(levels, groups)
    steps_apart = 0 if not walks else STEPS_APART if order == 2 else own.ordered - 1
    return np.asarray(np.sqrt(2 * (axes * (_covariance(levels, groups, steps_apart) @ axes)).sum(axis=0)))


def coefficient_sd(levels: Sequence[Levels], forms: Sequence[Groups | None] | None = None) -> Floats:
    """The prior standard deviation of every coefficient of an interaction of columns with these levels, or groups of levels."""
    order, forms = len(levels), forms or [None] * len(levels)
    unit = contrast_sd(order) * 2 ** (-order / 2)
    spreads = [spread(one, order, groups)[None] for one, groups in zip(levels, forms, strict=True)]
    return np.asarray(unit * kronecker(spreads)[0])


def draw_interaction(draws: int, levels: Sequence[Levels], part: Axes, rng: np.random.Generator) -> Floats:
    """Draws from the prior of the interaction of the columns in `part`, as tables of all columns, with one level of those that it leaves out."""
    own = [levels[axis] for axis in part]
    deviation = coefficient_sd(own)
    table = deviation * rng.normal(size=(draws, len(deviation)))
    table = table @ kronecker([contrasts(one) for one in own]).T
    return table.reshape(draws, *(size if axis in part else 1 for axis, (size, _) in enumerate(levels)))
