"""Shrink interactions by empirical Bayes: how much of them is signal is learnt from all tables of one order together.

Let D be what a table on S shows beyond its prediction from lower-order tables: centred along every axis, with white noise of
known variance W on that space. Three shapes of signal are considered, each with a size g (its mean square contingency φ²):

    even           Var D = g·N²/d · ⊗ (I − 11ᵀ/K)/K               the same in all cells
    proportional   Var D = g·N²/d · ⊗ (diag(p) − ppᵀ)             like a product of multinomials: where the rows are
    smooth         Var D = g·N²/d · ⊗ M C M  +  N · ⊗ M           M = diag(p) − ppᵀ: the ratio to the prediction is a smooth function

with p the one-way probabilities and d = ∏(K − 1). The smooth shape is for tables of several attributes with an ordered one among them; on the axis of any
other attribute it is proportional. C is a covariance of smooth functions of the ordered levels (`shapes.smooth_basis`), and N · ⊗ M is
the chance of N rows, which is not smooth; of it only the diagonal in the basis of the first part is used. The second is diagonal in a product of orthonormal bases of the axes, in which the
noise is white, so a coefficient z with prior variance A shrinks to z·A/(A + W), exactly, at the cost of one small matrix product
per axis; the first is so in any basis, and all of D shrinks alike. D stays centred, so margins do not move. The weights of a grid of (shape, g) are estimated from all tables of the
order by EM on their marginal likelihoods, with one pseudo-table spread over the grid; each table then gets its own posterior
mean, less of it the clearer the table is (`CLEAR`). With W = 0 nothing is shrunk.

The grid of g runs from what N rows drawn from the prediction would show by chance, d/N, to `LARGEST`. (A point mass at g = 0 would
be wrong, since the tables to estimate are counts of a sample, and costs up to 5 % at moderate noise.) One-way tables are hardly
ever as close to uniform as chance, so theirs starts at `LEAST_ONE_WAY`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from dpcipher.engines.denoise.shapes import (
    Basis,
    Even,
    Proportional,
    Stack,
    proportional_basis,
    smooth_basis,
)
from dpcipher.tables.domain import Axes, Floats

LEAST_ONE_WAY = 0.03
LARGEST_ONE_WAY = 3.0
LARGEST = 30.0
GRID = 12
PRIOR_TABLES = 1.0
STEPS = 50
# A table that would keep the share CLEAR of its freedom or more is left alone, one that would keep NOISY or less is shrunk in full: in
# a clear table the gain in squared error is small, and cells that are truly empty would be moved off zero, which costs more.
CLEAR, NOISY = 0.75, 0.35
MOST_SMOOTH = 512  # levels: the smooth axes of more would take minutes
FALL = 1.5  # of the smooth shape: the amplitude of the cosine of frequency j is j^(−FALL)
Ordered = NDArray[np.intp]
_EVENLY = np.linspace(0.0, 1.0, GRID)


@dataclass(frozen=True)
class Deviations:
    """What tables of one shape show beyond their prediction: centred counts, one table after another, and the noise variance of each table's directions.

    Either all of the tables are exact, with variance 0, or none is.
    """

    sets: Sequence[Axes]
    counts: Floats
    variance: Floats

    @property
    def exact(self) -> bool:
        """Whether the tables are free of noise."""
        return not self.variance.any()


# From deviations, all of tables of one order, the probabilities of each attribute and the number of rows to what is kept of the deviations.
Shrinker = Callable[[Sequence[Deviations], Mapping[int, Floats], float], list[Floats]]


def sizes(order: int, free: int, total: float) -> Floats:
    """The grid of φ² for tables of one order with `free` free numbers."""
    least, largest = (
        (LEAST_ONE_WAY, LARGEST_ONE_WAY) if order == 1 else (min(free / total, LARGEST / 10), LARGEST)
    )
    return np.asarray(least * (largest / least) ** _EVENLY)


def shrink(
    deviations: Sequence[Deviations],
    one_way: Mapping[int, Floats],
    total: float,
    *,
    orders: Mapping[int, Ordered] = MappingProxyType({}),
) -> list[Floats]:
    """The posterior mean of all deviations; `one_way` holds the probabilities of each attribute, `orders` the levels that have an order."""
    sets = [axes for part in deviations if not part.exact for axes in part.sets]
    if not sets:
        return [part.counts for part in deviations]
    attributes = {axis for axes in sets for axis in axes}
    uniform = all((one_way[axis] == one_way[axis][0]).all() for axis in attributes)
    bases = None if uniform else {axis: proportional_basis(one_way[axis]) for axis in attributes}
    smooth = None if bases is None else _smooth_bases(sets, bases, one_way, orders)
    parts = [None if part.exact else _Part(part, bases, smooth, total) for part in deviations]
    weights = _mix(np.concatenate([part.evidence for part in parts if part]))
    pairs = zip(parts, deviations, strict=True)
    return [part.means(weights) if part else exact.counts for part, exact in pairs]


def _smooth_bases(
    noisy: Sequence[Axes],
    bases: Mapping[int, Basis],
    one_way: Mapping[int, Floats],
    orders: Mapping[int, Ordered],
) -> dict[int, Basis] | None:
    """The bases of the smooth shape; None where no table of several attributes has an ordered one."""
    tables = (axes for axes in noisy if len(axes) > 1)
    axes = {a for axes in tables for a in axes if a in orders and len(one_way[a]) <= MOST_SMOOTH}
    smooth = {axis: smooth_basis(one_way[axis], orders[axis], FALL) for axis in axes}
    return {**bases, **smooth} if smooth else None


class _Part:
    """Some tables under all shapes; under the even one where `bases` is None, because uniform probabilities make it the proportional one."""

    def __init__(
        self,
        deviations: Deviations,
        bases: Mapping[int, Basis] | None,
        smooth: Mapping[int, Basis] | None,
        total: float,
    ) -> None:
        self.counts, sets = deviations.counts, deviations.sets
        free = prod(levels - 1 for levels in self.counts.shape[1:])
        scale = total**2 / free * sizes(len(sets[0]), free, total)
        stack = Stack(self.counts, deviations.variance, free, scale)
        self.shapes: list[Even | Proportional] = [Even(stack)]
        if bases is not None:
            self.shapes.append(Proportional(stack, Basis.product(sets, bases)))
        if smooth is not None:
            self.shapes.append(Proportional(stack, Basis.product(sets, smooth), chance=total))
        self.evidence = np.concatenate([shape.evidence() for shape in self.shapes]).T

    def means(self, weights: Floats) -> Floats:
        """The posterior mean of each table."""
        likelihood = weights * np.exp(self.evidence - self.evidence.max(axis=1, keepdims=True))
        belief = (likelihood / likelihood.sum(axis=1, keepdims=True)).T.reshape(len(self.shapes), GRID, -1)
        found = [shape.posterior(part) for shape, part in zip(self.shapes, belief, strict=True)]
        mean = reduce(np.add, [means for means, _ in found])
        freedom = reduce(np.add, [kept for _, kept in found])
        if self.counts.ndim == 2:
            return mean
        return trusted(mean, self.counts, freedom.reshape(-1, *[1] * (mean.ndim - 1)))


def trusted(mean: Floats, counts: Floats, freedom: Floats | float) -> Floats:
    """The posterior mean of tables of several attributes, less of it the clearer they are."""
    trust = np.clip((CLEAR - freedom) / (CLEAR - NOISY), 0.0, 1.0)
    return np.asarray(trust * mean + (1 - trust) * counts)


def _mix(evidence: Floats) -> Floats:
    """The weights of the grid, by EM with a few pseudo-tables spread evenly over it."""
    tables, size = evidence.shape
    likelihood = np.exp(evidence - evidence.max(axis=1, keepdims=True))
    share = likelihood / (tables + PRIOR_TABLES)
    floor = np.full(size, PRIOR_TABLES / (size * (tables + PRIOR_TABLES)))
    weights, seen, mean = np.full(size, 1 / size), np.empty(tables), np.empty(size)
    for _ in range(STEPS):
        # The mean belief of the tables, as two products: one EM step, in place because the arrays are small and the steps many.
        likelihood.dot(weights, out=seen)
        np.reciprocal(seen, out=seen).dot(share, out=mean)
        weights *= mean
        weights += floor
    return weights
