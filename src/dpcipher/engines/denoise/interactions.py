"""Shrink interactions by empirical Bayes: how much of them is signal is learnt from all tables of one order together.

Let D be what a table on S shows beyond its prediction from lower-order tables: centred along every axis, with white noise of
known variance W on that space. Three shapes of signal are considered, each with a size g (its mean square contingency φ²):

    even           Var D = g·N²/d · ⊗ (I − 11ᵀ/K)/K               the same in all cells
    proportional   Var D = g·N²/d · ⊗ (diag(p) − ppᵀ)             like a product of multinomials: where the rows are
    smooth         Var D = g·N²/d · ⊗ M C M  +  N · ⊗ M           M = diag(p) − ppᵀ: the ratio to the prediction is a smooth function

with p the one-way probabilities and d = ∏(K − 1). The smooth shape is for tables of several attributes with an ordered one among them; on the axis of any
other attribute it is proportional. C is a covariance of smooth functions of the ordered levels (`smooth_basis`), and N · ⊗ M is
the chance of N rows, which is not smooth; of it only the diagonal in the basis of the first part is used. The second is diagonal in a product of orthonormal bases of the axes, in which the
noise is white, so a coefficient z with prior variance A shrinks to z·A/(A + W), exactly, at the cost of one small matrix product
per axis; the first is so in any basis, and all of D shrinks alike. D stays centred, so margins do not move. The weights of a grid of (shape, g) are estimated from all tables of the
order by EM on their marginal likelihoods, with one pseudo-table spread over the grid; each table then gets its own posterior
mean, less of it the clearer the table is (`CLEAR`). With W = 0 nothing is shrunk.

The grid of g runs from what N rows drawn from the prediction would show by chance, d/N, to `LARGEST`. (A point mass at g = 0 would
be wrong, since the tables to estimate are counts of a sample, and costs up to 5 % at moderate noise.) One-way tables are hardly
ever as close to uniform as chance, so theirs starts at `LEAST_ONE_WAY`.

A class for each shape gives the evidence for every size of the grid and the posterior mean of every table, for many tables of one shape at once: arrays have a
row for each size, then one for each table and, where they are about coefficients, then one for each of these.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from math import prod
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from dpcipher.tables.domain import Axes, Floats

MANY_LEVELS = (
    1024  # beyond, the eigenproblem takes seconds, and contrasts of single levels are nearly principal axes
)


@dataclass(frozen=True)
class Stack:
    """Centred tables of one shape, one after another: the noise variance of each, the free numbers of any, and g·N²/d for every size g."""

    tables: Floats
    noise: Floats
    free: int
    scale: Floats


class Even:
    """The same prior variance for all coefficients of a table: it shrinks as a whole, and no basis is needed."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.flat = stack.tables.reshape(len(stack.tables), -1)
        self.prior = stack.scale[:, None] / self.flat.shape[1]

    def evidence(self) -> Floats:
        """The log marginal likelihood of every table for every size."""
        variance = self.prior + self.stack.noise
        squares = np.einsum("ij,ij->i", self.flat, self.flat)
        return np.asarray(-0.5 * (self.stack.free * np.log(variance) + squares / variance))

    def posterior(self, belief: Floats) -> tuple[Floats, Floats]:
        """What this shape adds to the mean of each table, and the share of its freedom that it keeps."""
        kept = (belief * self.prior / (self.prior + self.stack.noise)).sum(axis=0)
        return (kept[:, None] * self.flat).reshape(self.stack.tables.shape), kept


class Proportional:
    """Prior variances like those of a product of multinomials, or of smooth functions, in the basis of each table.

    `chance` times the variance of a multinomial comes on top: what is by chance is not smooth.
    """

    def __init__(self, stack: Stack, basis: "Basis", chance: float = 0.0) -> None:
        self.stack, self.basis, self.chance = stack, basis, chance
        self.coefficients = basis.coefficients(stack.tables)

    def evidence(self) -> Floats:
        """The log marginal likelihood of every table for every size."""
        variance = self._prior() + self.stack.noise[:, None]
        return np.asarray(-0.5 * (np.log(variance) + self.coefficients**2 / variance).sum(axis=-1))

    def posterior(self, belief: Floats) -> tuple[Floats, Floats]:
        """What this shape adds to the mean of each table, and the share of its freedom that it keeps."""
        prior = self._prior()
        kept = (belief[:, :, None] * prior / (prior + self.stack.noise[:, None])).sum(axis=0)
        means = self.basis.tables(kept * self.coefficients).reshape(self.stack.tables.shape)
        return means, kept.mean(axis=-1)

    def _prior(self) -> Floats:
        """The prior variance of every coefficient, not kept because it is the largest array."""
        prior = self.stack.scale[:, None, None] * self.basis.variance
        return prior + self.chance * self.basis.chance if self.chance else prior


@dataclass(frozen=True)
class Basis:
    """For each of some tables an orthonormal basis of centred tables, as a product: a matrix of contrasts per axis, and the variance of each coefficient.

    The variance is that of its shape at g·N²/d = 1; `chance` is that of one row drawn from the prediction.
    """

    vectors: tuple[Floats, ...]
    variance: Floats
    chance: Floats

    @classmethod
    def product(cls, sets: Sequence[Axes], bases: Mapping[int, "Basis"]) -> "Basis":
        """The bases of tables from those of their attributes, of which each is the basis of one table."""
        places = [[bases[axis] for axis in column] for column in zip(*sets, strict=True)]
        vectors = tuple(_joined([basis.vectors[0] for basis in column]) for column in places)
        variance, chance = (
            _outer([_joined([getattr(basis, name) for basis in column]) for column in places])
            for name in ("variance", "chance")
        )
        return cls(vectors, variance, chance)

    def coefficients(self, tables: Floats) -> Floats:
        """The coefficients of the tables, each time flat."""
        return _turn(tables, self.vectors)

    def tables(self, coefficients: Floats) -> Floats:
        """The tables of some coefficients, each time flat."""
        return _turn(coefficients, [matrix.swapaxes(1, 2) for matrix in self.vectors])


def _joined(arrays: Sequence[Floats]) -> Floats:
    """Arrays, each for one table, as one for all of the tables."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _outer(factors: Sequence[Floats]) -> Floats:
    """For each table the products of all its factors' numbers, flat."""
    product = factors[0]
    for factor in factors[1:]:
        product = (product[:, :, None] * factor[:, None, :]).reshape(len(product), -1)
    return product


def _turn(tables: Floats, matrices: Sequence[Floats]) -> Floats:
    """Multiply every axis by its matrix; the first axis goes to the end each time, so that all are back in place after the last."""
    for matrix in matrices:
        tables = tables.reshape(*matrix.shape[:2], -1).swapaxes(1, 2) @ matrix
    return tables.reshape(len(tables), -1)


def proportional_basis(probability: Floats) -> Basis:
    """The principal axes of diag(p) − ppᵀ among the contrasts of one attribute.

    Of many levels they are nearly the contrasts of each level with all others; these are taken, with their own variances.
    """
    contrasts = _contrasts(len(probability))
    if len(probability) > MANY_LEVELS:
        vectors = np.empty_like(contrasts)
        vectors[np.argsort(probability, kind="stable")] = (
            contrasts  # the rarest level has no contrast of its own
        )
        variance = probability @ vectors**2 - (probability @ vectors) ** 2
    else:
        mean = contrasts.T.dot(probability)
        inner = contrasts.T.dot(probability[:, None] * contrasts) - mean[:, None] * mean
        variance, turn = np.linalg.eigh(inner)
        vectors = contrasts.dot(turn)
    variance = np.maximum(variance, 0.0)[None]
    return Basis((vectors[None],), variance, variance)


def smooth_basis(probability: Floats, ordered: NDArray[np.intp], fall: float) -> Basis:
    """The principal axes of M K Mᵀ with M = diag(p) − ppᵀ: the counts over their prediction are a smooth function of the ordered levels.

    K is a sum of cosines over the ordered levels, whose variance falls with frequency j as j^(−2·fall); levels without order are independent. It
    is scaled so that the mean square contingency has the same mean as in the proportional shape.
    """
    contrasts, factor = _contrasts(len(probability)), _smooth_factor(len(probability), tuple(ordered), fall)
    spread = probability[:, None] * (factor - probability.dot(factor))
    size = np.divide(
        (spread**2).sum(axis=1), probability, out=np.zeros_like(probability), where=probability > 0
    )
    inner = contrasts.T.dot(spread)
    vectors, values, _ = np.linalg.svd(inner)
    variance = np.zeros(len(vectors))
    variance[: len(values)] = values**2
    scale = len(vectors) / float(size.sum()) if size.sum() > 0 else 0.0
    turned = contrasts.dot(vectors)
    chance = np.maximum(probability.dot(turned**2) - probability.dot(turned) ** 2, 0.0)
    return Basis((turned[None],), (variance * scale)[None], chance[None])


@lru_cache(maxsize=256)
def _smooth_factor(levels: int, ordered: tuple[int, ...], fall: float) -> Floats:
    """A matrix F with K = F Fᵀ."""
    place = (np.arange(len(ordered)) + 0.5) / len(ordered)
    frequency = np.arange(1, len(ordered))
    waves = frequency**-fall * np.cos(np.pi * place[:, None] * frequency)
    apart = [level for level in range(levels) if level not in set(ordered)]
    factor = np.zeros((levels, len(frequency) + len(apart)))
    factor[list(ordered), : len(frequency)] = waves
    factor[apart, np.arange(len(frequency), factor.shape[1])] = np.sqrt((waves**2).sum(axis=1).mean())
    factor.setflags(write=False)  # everybody gets the same array
    return factor


@lru_cache(maxsize=256)
def _contrasts(levels: int) -> Floats:
    """An orthonormal basis of the contrasts of one attribute: the reflection that turns the constant vector into an axis, without that axis."""
    normal = np.full(levels, levels**-0.5)
    normal[0] += 1.0
    contrasts = (np.eye(levels) - np.outer(normal, normal / normal[0]))[:, 1:]
    contrasts.setflags(write=False)  # everybody gets the same array
    return np.asarray(contrasts)


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
