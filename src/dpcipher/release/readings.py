"""Readings: what least squares says of the table of a query, from a measured table that is as fine as it."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice
from math import prod

import numpy as np

from dpcipher.release.least_squares import Fitted, LeastSquares
from dpcipher.release.structure import Group
from dpcipher.tables.domain import Bools, Floats
from dpcipher.tables.query import Groups, Query, outer
from dpcipher.tables.table import PART, broadcast_over, centre, margin

# Where exact tables fix every component of a sum, a share like this of its noise is left by rounding; exact means 0.
_ROUNDING = 1e-13
_MOST_TRIED = 100  # pairs of levels of an axis, when two are looked for that zeros leave alone


@dataclass(frozen=True, eq=False)
class Reading:
    """A query as sums of cells of a measured table, its home. Variances are those of `least_squares`, Var(wᵀμ)."""

    fit: LeastSquares
    home: Fitted
    query: Query

    @property
    def counts(self) -> Floats:
        """The estimate of every cell."""
        return self._narrowed(self.home.counts)

    @property
    def variance(self) -> Floats:
        """The variance of every cell."""
        alone = self.home.grid.variance * self.width
        value = alone.copy()
        for coefficient, squares in self._products():
            value += coefficient * outer(squares)
        for changes, sums in self._directions():
            value += np.tensordot(changes, sums**2, axes=1)
        return np.where(value > _ROUNDING * alone, value, 0.0)

    @property
    def mean_variance(self) -> float:
        """The mean variance of the cells."""
        if self._tied is not None:
            return float(self.variance.mean())
        alone = self.home.grid.variance * float(np.mean(self.width))
        terms = (change * prod(float(one.mean()) for one in squares) for change, squares in self._products())
        return _at_least_rounding(alone + sum(terms), alone)

    def linear_variance(self, weights: Floats) -> float:
        """The variance of a weighted sum of the cells."""
        cells = self._widened(weights)
        seen, owner = self.home.structure.read(cells[None])[0], self.home.structure.owner
        alone = self.home.grid.variance * float((cells**2).sum())
        untied = self.fit.untied(self.home)
        value = alone + sum(change * float((seen[owner == place] ** 2).sum()) for place, _, change in untied)
        if self._tied is not None:
            reads = seen[self._tied.slots]
            value += float(reads @ self._change @ reads)
        return _at_least_rounding(value, alone)

    @property
    def interaction_variance(self) -> float:
        """The variance of a unit contrast that no smaller table sees, as a mean over all of them; 0 where there is none."""
        shape = self.query.shape(self.fit.domain.sizes)
        if any(cells < 2 for cells in shape):
            return 0.0
        if self.home.structure.possible is not None:
            return self._possible_contrast()
        freedom = prod(cells - 1 for cells in shape)
        alone = value = self.home.grid.variance * self.home.counts.size / prod(shape)
        for change, squares in self._products(centred=True):
            value += change * prod(float(one.sum()) for one in squares) / freedom
        for changes, sums in self._directions():
            centred = centre(sums, first=1).reshape(len(sums), -1)
            value += float(changes @ (centred**2).sum(axis=1)) / freedom
        return _at_least_rounding(value, alone)

    def _possible_contrast(self) -> float:
        """The variance of a unit contrast of two levels of every column, between which all cells are possible; 0 where a column has one possible level.

        Where zeros leave no such levels, the mean variance of a cell stands for it: a noisy table must not pass for an exact one.
        """
        possible = self.width > 0
        axes = tuple(range(possible.ndim))
        if any(np.count_nonzero(margin(possible, axes, (axis,))) < 2 for axis in axes):
            return 0.0
        levels = _possible_pairs(possible)
        if levels is None:
            return self.mean_variance
        steps = [np.zeros(cells) for cells in possible.shape]
        for step, (first, second) in zip(steps, levels, strict=True):
            step[first], step[second] = 0.5**0.5, -(0.5**0.5)
        return self.linear_variance(outer(steps))

    @property
    def width(self) -> Floats:
        """How many possible cells of the home each cell sums."""
        possible = self.home.structure.possible
        return self._narrowed(
            np.ones(self.home.structure.shape) if possible is None else possible.astype(float)
        )

    @cached_property
    def _tied(self) -> Group | None:
        return self.fit.tied(self.home)

    @cached_property
    def _change(self) -> Floats:
        """What knowing correlated components changes in the variance of what they read: −v G⁻¹ + G⁻¹ C G⁻¹."""
        assert self._tied is not None
        levers = self._tied.told(self._tied.inverse)
        known = self.fit.covariance(self.home.components[list(self._tied.choices)].tolist())
        return np.asarray(levers @ known @ levers.T - self.home.grid.variance * self._tied.inverse)

    def _directions(self) -> Iterator[tuple[Floats, Floats]]:
        """Sums of the functions of correlated components as the cells read them, which change the variance each by itself: how much, and a stack of tables."""
        if self._tied is not None:
            changes, vectors = np.linalg.eigh(self._change)
            structure = self.home.structure
            step = max(1, PART // prod(structure.shape))
            for some in (slice(start, start + step) for start in range(0, len(changes), step)):
                cells = structure.functions(self._tied.slots, vectors[:, some].T)
                yield changes[some], np.stack([self._narrowed(one) for one in cells])

    def _products(self, *, centred: bool = False) -> Iterator[tuple[float, list[Floats]]]:
        """What each uncorrelated component changes in the variance of all cells: a product of one vector for each column.

        Where `centred`, the means of what is seen along each column are left out.
        """
        for number, _, change in self.fit.untied(self.home):
            choice, squares = self.home.structure.choices[number], []
            for place, axis in enumerate(self.home.grid.query.axes):
                square = self._square(place, choice[place], centred)
                if axis in self.query.axes:
                    squares.append(square)
                else:
                    change *= float(square[0])
            yield change, squares

    def _square(self, place: int, band: int, centred: bool) -> Floats:
        """For each cell along one column of the home, the squared length of what a band sees of it."""
        resolution, axis = self.home.structure.form.resolutions[place], self.home.grid.query.axes[place]
        between = self._between(axis)
        if axis not in self.query.axes:
            weights = np.ones((resolution.cells, 1))
        elif between is not None:
            weights = between.matrix.T
        elif band and resolution.functions is not None:
            weights = np.eye(resolution.cells)
        else:
            return np.full(resolution.cells, 1 - 1 / resolution.cells if band else float(not centred))
        seen = weights.sum(axis=0, keepdims=True)
        if band:
            seen = resolution.transform(weights, 0)[resolution.rows[band]]
        if centred and axis in self.query.axes:
            seen = centre(seen, first=1)
        return np.asarray((seen**2).sum(axis=0))

    def _between(self, axis: int) -> Groups | None:
        """How cells of the home are grouped along a column of the query; None where they are the same."""
        if axis not in self.query.axes:
            return None
        fine, coarse = (one.forms[one.axes.index(axis)] for one in (self.home.grid.query, self.query))
        if coarse is None or fine == coarse:
            return None
        return coarse if fine is None else Groups(tuple(coarse.of[first] for first in fine.starts))

    def _narrowed(self, cells: Floats) -> Floats:
        """Cells of the home summed into those of the query."""
        cells = margin(cells, self.home.grid.query.axes, self.query.axes)
        for place, axis in enumerate(self.query.axes):
            between = self._between(axis)
            cells = cells if between is None else between.merge(cells, place)
        return np.asarray(cells)

    def _widened(self, weights: Floats) -> Floats:
        """Weights of the cells of the query as weights of the possible cells of the home."""
        own, structure = self.home.grid.query.axes, self.home.structure
        weights = broadcast_over(weights, self.query.axes, own)
        for place, axis in enumerate(own):
            between = self._between(axis)
            weights = weights if between is None else between.spread(weights, place)
        return np.where(
            True if structure.possible is None else structure.possible, weights, np.zeros(structure.shape)
        )


def _at_least_rounding(value: float, alone: float) -> float:
    return value if value > _ROUNDING * alone else 0.0


def _possible_pairs(possible: Bools) -> list[tuple[int, int]] | None:
    """Two levels of every axis between which all cells are possible, among the levels with the most of them; None where none are found."""
    if not possible.ndim:
        return [] if possible else None
    rank = np.argsort(-possible.reshape(len(possible), -1).sum(axis=1), kind="stable")
    for first, second in islice(combinations(rank.tolist(), 2), _MOST_TRIED):
        others = _possible_pairs(np.asarray(possible[first] & possible[second]))
        if others is not None:
            return [(first, second), *others]
    return None
