"""The two distributions that are sampled where tables overlap, as potentials with gradients over stacks of points (a table by itself: `one_table`).

With s the tables of the rows themselves and y the noisy ones, the population's coefficients depend on y only through s:

    p(population, table | y) = p(table | y) · p(population | s).

`TableTarget` is the first: the coefficients φ of the log-linear fit to the rows' own tables, s = n·A·π(φ), with the noise's own law around s. Its
prior is that of the population widened by the sampling error of a table of n rows: covariance I + M⁻¹ where M is the information of
the rows, taken at the mode. `PopulationTarget` is the second, exact: log p(s | θ) = s·θ - n·log Z(θ) for multinomial rows, whatever
their number. No normal approximation of the rows' sampling error is made.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from dpcipher.posteriors.evidence import Evidence
from dpcipher.posteriors.hamiltonian import Whitening
from dpcipher.posteriors.log_linear import LogLinear
from dpcipher.tables.domain import Bools, Floats
from dpcipher.tables.table import broadcast_over, margin

# Numbers that are worked on at once: what fits a processor's cache is read several times faster than what does not.
BLOCK = 250_000
# Multiplications of a matrix product that take as long as one addition along scattered cells.
PER_ADDITION = 20
NOTHING = np.empty(0)  # beside which arrays are put together, of which there may be none


@dataclass(frozen=True)
class Observations(ABC):
    """Sums over cells that were seen with noise, how a stack of cells makes them, and the way back."""

    model: LogLinear
    evidence: Evidence

    @property
    @abstractmethod
    def seen(self) -> Floats:
        """The noisy sums."""

    @property
    @abstractmethod
    def variance(self) -> Floats:
        """The noise variance of every sum."""

    @property
    @abstractmethod
    def law(self) -> tuple[Floats, Floats]:
        """α and δ of the noise of every sum."""

    @abstractmethod
    def sums(self, cells: Floats) -> Floats:
        """The sums of every row of a stack of cells."""

    @abstractmethod
    def back(self, slopes: Floats) -> Floats:
        """The transpose of `sums`: every cell gets what the sums that hold it say."""


class Tables(Observations):
    """The tables of the evidence, one after the other."""

    @cached_property
    def seen(self) -> Floats:
        """The noisy counts of all tables."""
        return np.concatenate([NOTHING, *(table.counts.ravel() for table in self.evidence.tables)])

    @cached_property
    def variance(self) -> Floats:
        """The noise variance of every count; infinite where no row can be, and the count is noise alone."""
        parts = (table.law.variance.ravel() for table in self.evidence.tables)
        return np.where(self._can_be, np.concatenate([NOTHING, *parts]), np.inf)

    @cached_property
    def law(self) -> tuple[Floats, Floats]:
        """α and δ of every count."""
        laws = zip(*(table.law.hyperbolic for table in self.evidence.tables), strict=True)
        alpha, delta = (
            np.concatenate(parts) for parts in (laws if self.evidence.tables else ([NOTHING],) * 2)
        )
        return np.where(self._can_be, alpha, 0.0), delta

    @cached_property
    def _can_be(self) -> Bools:
        margins = self._margins(self.model.possible.reshape(1, -1).astype(float))
        return np.asarray(np.concatenate([NOTHING, *(part.ravel() for part in margins)]) > 0)

    @cached_property
    def _weights(self) -> tuple[Floats, Floats]:
        """The tables as sums over coefficients, which are fewer than cells: every column of the design has a part in each count, and so has their number.

        Columns of the design are orthogonal to one another and to a constant.
        """
        design, cells = self.model.design, self.model.cells
        parts = self._by_table(design.T) / (design**2).sum(axis=0)[:, None]
        return parts, self._by_table(np.ones((1, cells)))[0] / cells

    @cached_property
    def _by_cells(self) -> bool:
        """Whether few large tables are summed faster cell by cell than over coefficients."""
        additions = len(self.evidence.tables) * self.model.cells
        return self.seen.size * self.model.size > PER_ADDITION * additions

    def sums(self, cells: Floats) -> Floats:
        """All tables of every row of a stack of cells."""
        if self._by_cells:
            return self._by_table(cells)
        parts, even = self._weights
        return np.asarray(self.model.pull(cells) @ parts + cells.sum(axis=1, keepdims=True) * even)

    def _by_table(self, cells: Floats) -> Floats:
        parts = zip(self._margins(cells), self.evidence.tables, strict=True)
        return _flat([table.query.less_means(part, 1) for part, table in parts])

    def _margins(self, cells: Floats) -> list[Floats]:
        """The counts of all tables, for every row of a stack of cells."""
        stack, axes = cells.reshape(len(cells), *self.model.shape), tuple(range(-1, len(self.model.shape)))
        return [
            table.query.merge(margin(stack, axes, (-1, *table.axes)), 1) for table in self.evidence.tables
        ]

    def _spread(self, slopes: Floats) -> Floats:
        """Slopes by count, added up in every cell that the count is of."""
        total, start = np.zeros((len(slopes), *self.model.shape)), 0
        for table in self.evidence.tables:
            own, start = slopes[:, start : start + table.counts.size], start + table.counts.size
            own = table.query.less_means(own.reshape(-1, *table.counts.shape), 1)
            by_level = table.query.spread(own, 1)
            total += broadcast_over(by_level, (-1, *table.axes), range(-1, len(self.model.shape)))
        return total.reshape(len(slopes), self.model.cells)

    @property
    def by_cell(self) -> Floats:
        """The weight of every cell in every count: cells by counts."""
        return self._spread(np.eye(self.seen.size)).T

    def back(self, slopes: Floats) -> Floats:
        """The transpose of `sums`: every cell gets what the tables that hold it say."""
        if self._by_cells:
            return self._spread(slopes)
        parts, even = self._weights
        return np.asarray(self.model.scores(slopes @ parts.T) + (slopes @ even)[:, None])


def _flat(stacks: Sequence[Floats]) -> Floats:
    """Stacks of tables as rows of numbers, side by side."""
    return np.concatenate([stack.reshape(len(stack), -1) for stack in stacks], axis=1)


@dataclass(frozen=True)
class RowsTarget(ABC):
    """A target whose points are coefficients of a model, then the logarithm of the number of rows where it is not known."""

    model: LogLinear
    n_rows: float | None

    @property
    def size(self) -> int:
        """How many numbers a point has."""
        return self.model.size + (self.n_rows is None)

    def split(self, points: Floats) -> tuple[Floats, Floats]:
        """Coefficients, and the number of rows, of every point."""
        if self.n_rows is not None:
            return points, np.full(len(points), self.n_rows)
        with np.errstate(over="ignore"):
            return points[:, :-1], np.exp(points[:, -1])

    def rates(self, point: Floats) -> Floats:
        """The rows of every cell at one point."""
        coefficients, rows = self.split(point[None])
        return np.asarray(rows[0] * self.model.probabilities(coefficients)[0])

    def within(self, model: LogLinear) -> Self:
        """The same target in a model with another prior."""
        return replace(self, model=model)

    @abstractmethod
    def __call__(self, points: Floats) -> tuple[Floats, Floats]:
        """The potential of every point, and its gradient."""

    @abstractmethod
    def curvature(self, point: Floats) -> Floats:
        """About the second derivative of the potential at a point: a matrix that is positive."""

    def whitening(self, point: Floats) -> Whitening:
        """Coordinates around a point that are white for the curvature there."""
        curvature = self.curvature(point)
        least = 1e-9 * np.trace(curvature) / len(curvature)
        return Whitening.of(point, curvature + least * np.eye(len(curvature)))


@dataclass(frozen=True)
class TableTarget(RowsTarget):
    """The rows' own table given the noisy ones.

    `shrink` is the precision of the prior of the coefficients. With `normal` the noise is taken for normal, which
    has the smooth mode that the sampler starts from.
    """

    tables: Observations
    shrink: Floats
    normal: bool = False

    def within(self, model: LogLinear) -> Self:
        """The same target in a model with another prior."""
        return replace(self, model=model, tables=replace(self.tables, model=model))

    def __call__(self, points: Floats) -> tuple[Floats, Floats]:
        """The potential of every point, and its gradient."""
        coefficients, rows = self.split(points)
        chances = self.model.probabilities(coefficients)
        rates = rows[:, None] * chances
        gaps = self.tables.seen - self.tables.sums(rates)
        noise, slopes = self._noise(gaps)
        by_cell = self.tables.back(-slopes)
        mean = (chances * by_cell).sum(axis=1)
        prior = coefficients @ self.shrink
        gradient = self.model.pull(rates * (by_cell - mean[:, None])) + prior
        potential = noise + 0.5 * (coefficients * prior).sum(axis=1)
        if self.n_rows is None:  # flat in the number of rows
            potential = potential - points[:, -1]
            gradient = np.concatenate([gradient, (rows * mean - 1)[:, None]], axis=1)
        return potential, gradient

    def _noise(self, gaps: Floats) -> tuple[Floats, Floats]:
        """The potential of the noise, summed over cells, and its slope by cell."""
        if self.normal:
            slopes = gaps / self.tables.variance
            return 0.5 * (gaps * slopes).sum(axis=1), slopes
        alpha, delta = self.tables.law
        root = np.sqrt(delta**2 + gaps**2)
        slopes = alpha * gaps
        # √(δ² + x²) - δ without cancellation, for noise that is nearly normal.
        return (slopes * gaps / (root + delta)).sum(axis=1), slopes / root

    def curvature(self, point: Floats) -> Floats:
        """The Gauss-Newton matrix: how the tables answer to each number, in units of their noise, and the prior."""
        rates, design = self.rates(point), self.model.design
        directions = (design - rates @ design / rates.sum()).T * rates
        if self.n_rows is None:
            directions = np.concatenate([directions, rates[None]])
        answers = self.tables.sums(directions)
        curvature = (answers / self.tables.variance) @ answers.T
        curvature[: self.model.size, : self.model.size] += self.shrink
        return np.asarray(curvature)


@dataclass(frozen=True)
class PopulationTarget:
    """The population given the tables of n multinomial rows: one target for every point of the stack, exact."""

    model: LogLinear
    statistics: Floats
    rows: Floats

    @property
    def size(self) -> int:
        """How many numbers a point has."""
        return self.model.size

    def __call__(self, points: Floats) -> tuple[Floats, Floats]:
        """The potential of every point, and its gradient."""
        partition, moments = np.empty(len(points)), np.empty_like(points)
        block = max(1, BLOCK // self.model.cells)
        for start in range(0, len(points), block):
            part = slice(start, start + block)
            partition[part], chances = self.model.log_partition(points[part])
            moments[part] = self.model.pull(chances)
        gradient = points + self.rows[:, None] * moments - self.statistics
        potential = (
            self.rows * partition - (self.statistics * points).sum(axis=1) + 0.5 * (points**2).sum(axis=1)
        )
        return potential, gradient

    def whitening(self, point: Floats) -> Whitening:
        """Coordinates around a point that are white for the curvature there, with the first target's number of rows."""
        rates = self.rows[0] * self.model.probabilities(point[None])[0]
        return Whitening.of(point, np.eye(self.size) + self.model.information(rates))
