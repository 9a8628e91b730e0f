"""The shapes of signal that `shrink` looks for in its tables: even, proportional and, where levels are ordered, smooth.

Each gives the evidence for every size of the grid, and the posterior mean of every table, for many tables of one shape at once: arrays have a
row for each size, then one for each table and, where they are about coefficients, then one for each of these.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

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
