"""The log-linear model: the log-probability of a cell is a sum of interactions, one for each set of columns that some table holds.

Interactions are written in orthonormal contrasts of every axis, so that no level is a reference, and scaled so that each coefficient is
standard normal a priori: a contrast of order k (the difference of two levels; the log odds ratio of two pairs of levels; …) has the standard
deviation CONTRAST_SD[k], halved for each order beyond the last. That is weak in the sense of Gelman et al. (2008): log odds ratios of 4 are
possible, of 40 are not, and interactions of many columns are smaller than those of few. Pairs with a column of more than three levels get more, as
a random walk along its levels would: a trend over ten levels, which ordered columns have, is a large interaction although each step of it is small.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from dpcipher.errors import SizeError
from dpcipher.marginals.arrays import Axes, Bools, Floats, Shape
from dpcipher.marginals.tables import closure
from dpcipher.posteriors.nested import Nested

CONTRAST_SD = {1: 3.0, 2: 2.0, 3: 1.0}
# Steps between levels up to which a column is as short as those that CONTRAST_SD is about.
FEW_STEPS = 2
# From this mean square of its coefficients on, an interaction is larger than the prior expects, which then widens, so many times at most.
UNEXPECTED, WIDEST = 1.5, 4.0
# Up to this many numbers the design is one matrix, and a product with it the fastest way; beyond it, axis by axis.
DENSE = 200_000
# The curvature is a matrix of the coefficients, made from one of cells by coefficients; beyond these it takes minutes.
MOST_COEFFICIENTS, MOST_NUMBERS = 1_000, 6_000_000


def contrast_sd(sizes: Shape) -> float:
    """The prior standard deviation of a contrast of columns with so many levels.

    >>> contrast_sd((2, 2)), contrast_sd((3, 3)), contrast_sd((9, 2)), contrast_sd((9, 9, 2, 2))
    (2.0, 2.0, 4.0, 0.5)
    """
    order, last = len(sizes), max(CONTRAST_SD)
    if order > last:
        return CONTRAST_SD[last] * 0.5 ** (order - last)
    longer = max(1.0, (max(sizes) - 1) / FEW_STEPS) if order == 2 else 1.0
    return CONTRAST_SD[order] * math.sqrt(longer)


def orthonormal(size: int) -> Floats:
    """An orthonormal basis: the constant first, then Helmert contrasts."""
    basis = np.zeros((size, size))
    basis[:, 0] = size**-0.5
    for k in range(1, size):
        basis[:k, k] = (k * (k + 1)) ** -0.5
        basis[k, k] = -k * (k * (k + 1)) ** -0.5
    return basis


@dataclass(frozen=True)
class _Factor:
    """The interactions that live on one maximal set: where their coefficients stand in the array of its basis, and their scale."""

    axes: Axes
    sizes: Shape
    slots: NDArray[np.intp]
    scale: Floats
    start: int
    parts: tuple[tuple[Axes, int], ...]

    @property
    def stop(self) -> int:
        return self.start + len(self.slots)


@dataclass(frozen=True)
class LogLinear:
    """All interactions inside `tables` (maximal sets), over the possible cells of a shape.

    `wider` holds factors of the prior's scale for interactions that are larger than it expects (`widened`). `scores` and `pull` are each other's transpose; both take stacks, one row for each chain.
    """

    shape: Shape
    tables: tuple[Axes, ...]
    possible: Bools
    wider: Mapping[Axes, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.size > MOST_COEFFICIENTS or self.size * self.cells > MOST_NUMBERS:
            raise SizeError(
                f"the tables of these columns show {self.size:,} interactions over {self.cells:,} cells; the posterior takes at most "
                f"{MOST_COEFFICIENTS:,}, and {MOST_NUMBERS:,} for both multiplied. Name fewer columns, or columns of fewer levels"
            )

    @cached_property
    def factors(self) -> tuple[_Factor, ...]:
        """Each interaction is given to the first maximal set that holds it."""
        made, taken, start = [], set(), 0
        for axes in self.tables:
            sizes = tuple(self.shape[axis] for axis in axes)
            numbers = np.arange(prod(sizes)).reshape(sizes)
            slots, scale, parts = [], [], []
            for part in closure([axes])[1:]:
                if part in taken:
                    continue
                taken.add(part)
                inside = tuple(slice(1, None) if axis in part else 0 for axis in axes)
                here = numbers[inside].ravel()
                others = prod(self.shape[axis] for axis in axes if axis not in part)
                slots.append(here)
                unit = (
                    contrast_sd(tuple(self.shape[axis] for axis in part))
                    * 2 ** (-len(part) / 2)
                    * self.wider.get(part, 1.0)
                )
                scale.append(np.full(len(here), unit * others**0.5))
                parts.append((part, len(here)))
            factor = _Factor(axes, sizes, np.concatenate(slots), np.concatenate(scale), start, tuple(parts))
            made.append(factor)
            start = factor.stop
        return tuple(made)

    @property
    def scales(self) -> Floats:
        """The scale of every coefficient."""
        return np.concatenate([factor.scale for factor in self.factors])

    def widened(self, coefficients: Floats) -> "LogLinear":
        """The model whose prior expects interactions as large as these, where they are far larger than it does; else itself.

        Tables with empty cells have log odds ratios beyond any weak prior. Its scale then follows the data (empirical Bayes), upwards only.
        """
        wider, place = dict(self.wider), 0
        for part, size in (pair for factor in self.factors for pair in factor.parts):
            square = float((coefficients[place : place + size] ** 2).mean()) if size else 0.0
            if square > UNEXPECTED:
                wider[part] = min(self.wider.get(part, 1.0) * square**0.5, WIDEST)
            place += size
        return self if wider == self.wider else replace(self, wider=wider)

    @cached_property
    def size(self) -> int:
        """How many coefficients there are."""
        return sum(prod(self.shape[axis] - 1 for axis in axes) for axes in closure(self.tables)[1:])

    @cached_property
    def cells(self) -> int:
        """How many cells there are, impossible ones included."""
        return prod(self.shape)

    @cached_property
    def _impossible(self) -> NDArray[np.intp]:
        return np.flatnonzero(~self.possible)

    @cached_property
    def _bases(self) -> list[Floats]:
        return [orthonormal(size) for size in self.shape]

    @cached_property
    def is_dense(self) -> bool:
        """Whether the design is small enough to be one matrix."""
        return self.size * self.cells <= DENSE

    @cached_property
    def design(self) -> Floats:
        """The design as a matrix, cells by coefficients."""
        return np.ascontiguousarray(self._by_axes(np.eye(self.size)).reshape(self.size, -1).T)

    @cached_property
    def _design_t(self) -> Floats:
        return np.ascontiguousarray(self.design.T)

    def scores(self, coefficients: Floats) -> Floats:
        """The unnormalised log-probability of every cell: chains by cells."""
        if self.is_dense:
            return np.asarray(coefficients @ self._design_t)
        return self._by_axes(coefficients).reshape(len(coefficients), -1)

    def _by_axes(self, coefficients: Floats) -> Floats:
        tables = []
        for factor, matrix in zip(self.factors, self._matrices, strict=True):
            own = coefficients[:, factor.start : factor.stop]
            table = self._by_slots(factor, own) if matrix is None else own @ matrix
            tables.append(table.reshape(-1, *factor.sizes))
        return self._nested.spread(tables, self.shape)

    @cached_property
    def _nested(self) -> Nested:
        return Nested.of(tuple(range(len(self.shape))), self.tables)

    @cached_property
    def _matrices(self) -> list[Floats | None]:
        """Of every factor: the table of each of its coefficients as a row, where that is small enough to be a matrix."""
        return [
            self._by_slots(factor, np.eye(len(factor.slots)))
            if len(factor.slots) * prod(factor.sizes) <= DENSE
            else None
            for factor in self.factors
        ]

    def _by_slots(self, factor: _Factor, coefficients: Floats) -> Floats:
        table = np.zeros((len(coefficients), prod(factor.sizes)))
        table[:, factor.slots] = coefficients * factor.scale
        return self._turn(table.reshape(-1, *factor.sizes), factor.axes).reshape(len(coefficients), -1)

    def _turn(self, table: Floats, axes: Axes, *, back: bool = False) -> Floats:
        """Change the basis along every axis: coefficients to cells, or back."""
        for place, axis in enumerate(axes, 1):
            table = np.moveaxis(
                np.tensordot(table, self._bases[axis], axes=(place, 0 if back else 1)), -1, place
            )
        return table

    def pull(self, slopes: Floats) -> Floats:
        """What slopes by cell (chains by cells) say about each coefficient."""
        if self.is_dense:
            return np.asarray(slopes @ self.design)
        sums, parts = self._nested.sums(slopes.reshape(len(slopes), *self.shape)), []
        for number, factor in enumerate(self.factors):
            matrix = self._matrices[number]
            if matrix is not None:
                parts.append(sums[number].reshape(len(slopes), -1) @ matrix.T)
                continue
            table = self._turn(sums[number], factor.axes, back=True)
            parts.append(table.reshape(len(slopes), -1)[:, factor.slots] * factor.scale)
        return np.concatenate(parts, axis=1)

    def probabilities(self, coefficients: Floats) -> Floats:
        """The probability of every cell, 0 where no row can be: chains by cells."""
        return self.log_partition(coefficients)[1]

    def log_partition(self, coefficients: Floats) -> tuple[Floats, Floats]:
        """The logarithm of the sum over cells of exp(score), and the probabilities."""
        scores = self.scores(coefficients)
        if self._impossible.size:
            scores[:, self._impossible] = -np.inf
        top = scores.max(axis=1, keepdims=True)
        np.subtract(scores, top, out=scores)
        np.exp(scores, out=scores)
        total = scores.sum(axis=1, keepdims=True)
        scores /= total
        return (top + np.log(total))[:, 0], scores

    def information(self, rates: Floats) -> Floats:
        """The information of the coefficients, X'(diag λ - λλ'/n)X, for rates λ by cell."""
        weighted = self.design * rates[:, None]
        mean = weighted.sum(axis=0)
        return np.asarray(self.design.T @ weighted - np.outer(mean, mean) / rates.sum())
