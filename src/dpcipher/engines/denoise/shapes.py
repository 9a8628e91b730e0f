"""The shapes of signal that `shrink` looks for in its tables: even, proportional and, where levels are ordered, smooth.

Each gives the evidence for every size of the grid, and the posterior mean of every table, for many tables side by side: arrays have a
row for each size, and a column for each table or, end to end, for each coefficient of the tables.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce

import numpy as np
from numpy.typing import NDArray

from dpcipher.engines.denoise.multinomial_axes import multinomial_axes
from dpcipher.marginals.arrays import Floats

MANY_LEVELS = (
    128  # from here on the general eigenproblem, whose time grows with their cube, is the slower way
)


@dataclass(frozen=True)
class Stack:
    """Centred tables side by side: the noise variance and the free numbers of each, and g·N²/d for every size g."""

    tables: Sequence[Floats]
    noise: Floats
    free: NDArray[np.int64]
    scale: Floats


class Even:
    """The same prior variance for all coefficients of a table: it shrinks as a whole, and no basis is needed."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.prior = stack.scale / [table.size for table in stack.tables]

    def evidence(self) -> Floats:
        """The log marginal likelihood of every table for every size."""
        variance = self.prior + self.stack.noise
        squares = [float(np.vdot(table, table)) for table in self.stack.tables]
        return np.asarray(-0.5 * (self.stack.free * np.log(variance) + squares / variance))

    def posterior(self, belief: Floats) -> tuple[list[Floats], Floats]:
        """What this shape adds to the mean of each table, and the share of its freedom that it keeps."""
        kept = (belief * self.prior / (self.prior + self.stack.noise)).sum(axis=0)
        return [share * table for share, table in zip(kept, self.stack.tables, strict=True)], kept


class Proportional:
    """Prior variances like those of a product of multinomials, or of smooth functions, in the basis of each table.

    `chance` times the variance of a multinomial comes on top: what is by chance is not smooth.
    """

    def __init__(self, stack: Stack, bases: Sequence["Basis"], chance: float = 0.0) -> None:
        self.stack, self.bases = stack, bases
        pairs = zip(bases, stack.tables, strict=True)
        self.coefficients = np.concatenate([basis.coefficients(table) for basis, table in pairs])
        self.noise = np.repeat(stack.noise, stack.free)
        self.starts = np.cumsum(stack.free) - stack.free
        self.chance = chance * np.concatenate([basis.chance for basis in bases]) if chance else None

    def evidence(self) -> Floats:
        """The log marginal likelihood of every table for every size."""
        variance = self._prior() + self.noise
        return -0.5 * self._sums(np.log(variance) + self.coefficients**2 / variance)

    def posterior(self, belief: Floats) -> tuple[list[Floats], Floats]:
        """What this shape adds to the mean of each table, and the share of its freedom that it keeps."""
        prior = self._prior()
        kept = (np.repeat(belief, self.stack.free, axis=1) * prior / (prior + self.noise)).sum(axis=0)
        signals = np.split(kept * self.coefficients, self.starts[1:])
        parts = zip(self.bases, signals, self.stack.tables, strict=True)
        means = [basis.table(signal).reshape(table.shape) for basis, signal, table in parts]
        return means, self._sums(kept) / self.stack.free

    def _prior(self) -> Floats:
        """The prior variance of every coefficient, not kept because it is the largest array."""
        each = np.concatenate([basis.variance for basis in self.bases])
        prior = np.repeat(self.stack.scale, self.stack.free, axis=1) * each
        if self.chance is not None:
            prior += self.chance
        return np.asarray(prior)

    def _sums(self, values: Floats) -> Floats:
        """Sums over the coefficients of each table."""
        return np.asarray(np.add.reduceat(values, self.starts, axis=-1))


@dataclass(frozen=True)
class Basis:
    """An orthonormal basis of centred tables, as a product: one matrix of contrasts per axis, and the variance of each coefficient.

    The variance is that of its shape at g·N²/d = 1; `chance` is that of one row drawn from the prediction.
    """

    vectors: tuple[Floats, ...]
    variance: Floats
    chance: Floats

    def coefficients(self, table: Floats) -> Floats:
        """The coefficients of a table, flat."""
        return _turn(table, self.vectors)

    def table(self, coefficients: Floats) -> Floats:
        """The table of some coefficients, flat."""
        return _turn(coefficients, [matrix.T for matrix in self.vectors])


def _turn(table: Floats, matrices: Iterable[Floats]) -> Floats:
    """Multiply every axis by its matrix; the first axis goes to the end each time, so that all are back in place after the last."""
    for matrix in matrices:
        table = table.reshape(len(matrix), -1).T.dot(matrix)
    return table.ravel()


def proportional_basis(probability: Floats) -> Basis:
    """The principal axes of diag(p) − ppᵀ among the contrasts of one attribute."""
    if len(probability) > MANY_LEVELS:
        variance, vectors = multinomial_axes(probability)
        return Basis((vectors,), variance, variance)
    contrasts = _contrasts(len(probability))
    mean = contrasts.T.dot(probability)
    inner = contrasts.T.dot(probability[:, None] * contrasts) - mean[:, None] * mean
    variance, turn = np.linalg.eigh(inner)
    variance = np.maximum(variance, 0.0)
    return Basis((contrasts.dot(turn),), variance, variance)


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
    return Basis((turned,), variance * scale, chance)


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
    """An orthonormal basis of the contrasts of one attribute."""
    square = np.linalg.qr(np.column_stack([np.ones(levels), np.eye(levels)[:, : levels - 1]]))[0]
    square.setflags(write=False)  # everybody gets the same array
    return np.asarray(square[:, 1:])


def product(bases: Sequence[Basis]) -> Basis:
    """The basis of a table from those of its attributes."""
    vectors = tuple(matrix for basis in bases for matrix in basis.vectors)
    variance, chance = (
        reduce(np.multiply.outer, [getattr(basis, name) for basis in bases]).ravel()
        for name in ("variance", "chance")
    )
    return Basis(vectors, variance, chance)
