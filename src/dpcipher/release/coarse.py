"""Coarse counts: rows in runs of levels of one attribute, and least squares of tables and coarse counts together.

A sum of many noisy cells has the noise of all of them; the count of a run of levels, measured by itself, has that of one. Such counts tell of two components
alone, the total t and that of their attribute: a run r of the attribute A with K levels counts t·|r|/K + g·c, with g the 0/1 vector of its levels and c the
component on A (`components`). From the tables these have the variances τ and v (times a projector), independent between attributes. So the counts of
all runs have, before their own noise s², the covariance

    τ·(|r|/K)(|r'|/K')  +  v·⟨g − |r|/K, g' − |r'|/K⟩   where both are of one attribute,

and with M that matrix plus s² on its diagonal, a linear function of the tables whose covariance with the runs is a moves by aᵀM⁻¹(counts − predicted), and its
variance falls by aᵀM⁻¹a: generalised least squares of everything, at the cost of one matrix as large as there are runs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from dpcipher.errors import ReleaseError
from dpcipher.release.components import Components, Noisy, cells, spread
from dpcipher.tables.domain import Axes, Floats
from dpcipher.tables.table import broadcast_over, margin


@dataclass(frozen=True)
class Coarse:
    """Measured counts of runs of levels of one attribute, which follow one another from the first level to the last; `starts` are their first levels."""

    axis: int
    starts: NDArray[np.int64]
    counts: Floats
    variance: float

    def __post_init__(self) -> None:
        check_runs(self.starts.tolist())
        if self.counts.shape != self.starts.shape or not np.isfinite(self.counts).all():
            raise ReleaseError("coarse counts must be finite, one for each run of levels")
        if not (isfinite(self.variance) and self.variance > 0):
            raise ReleaseError(f"variance ({self.variance}) of coarse counts must be finite and above 0")

    def runs(self, levels: int) -> Floats:
        """The 0/1 rows that sum the levels of each run."""
        return np.asarray(np.add.reduceat(np.eye(levels), self.starts, axis=0))


def check_runs(starts: Sequence[int], levels: int | None = None) -> None:
    """Refuse runs that do not follow one another from level 0, or begin beyond the last level."""
    ascending = all(first < second for first, second in pairwise(starts))
    if not starts or starts[0] != 0 or not ascending or (levels is not None and starts[-1] >= levels):
        raise ReleaseError(
            f"starts ({list(starts)!s:.60}) of runs must ascend from level 0, below the number of levels"
        )


@dataclass(frozen=True)
class WithCoarse:
    """A least-squares fit over complete tables and coarse counts; `tables` is that over the tables alone."""

    tables: Components
    coarse: tuple[Coarse, ...]
    covers: dict[int, Axes]  # of each attribute with runs, a measured set that holds it

    def table(self, cover: Axes, axes: Axes) -> Floats:
        """The estimate of the margin of table `cover` on `axes`."""
        shape = self.tables.shape
        moved = self.tables.table(cover, axes) + self._total @ self._pull / cells(axes, shape)
        for axis in self._seen(axes):
            moved = moved + spread(self._levels(axis) @ self._pull, (axis,), axes, shape)
        return np.asarray(moved)

    def variance(self, cover: Axes, axes: Axes) -> Floats:
        """The variance of every cell of `table(cover, axes)`."""
        known = [(axis, self._narrowed(self._levels(axis), axis, axes)) for axis in self._seen(axes)]
        total = self._whitened(self._total) / cells(axes, self.tables.shape)
        fall = np.full([self.tables.shape[axis] for axis in axes], float(total @ total))
        for axis, rows in known:
            fall = fall + broadcast_over(((rows + 2 * total) * rows).sum(axis=1), (axis,), axes)
        for (first, left), (second, right) in combinations(known, 2):
            fall = fall + 2 * broadcast_over(left @ right.T, (first, second), axes)
        return np.asarray(np.maximum(self.tables.variance(cover, axes) - fall, 0.0))

    def mean_variance(self, cover: Axes, axes: Axes) -> float:
        """The mean variance of the cells of `table(cover, axes)`: the parts of different components add up."""
        total = self._whitened(self._total) / cells(axes, self.tables.shape)
        fall = float(total @ total)
        for axis in self._seen(axes):
            rows = self._narrowed(self._levels(axis), axis, axes)
            fall += float((rows**2).sum()) / len(rows)
        return max(self.tables.mean_variance(cover, axes) - fall, 0.0)

    def linear_variance(self, cover: Axes, axes: Axes, weights: Floats) -> float:
        """The variance of `sum(weights * table)`."""
        seen = self._total * float(weights.sum()) / cells(axes, self.tables.shape)
        for axis in self._seen(axes):
            others = cells(axes, self.tables.shape) // self.tables.shape[axis]
            seen = seen + margin(weights, axes, (axis,)) @ self._levels(axis) / others
        fall = self._whitened(seen)
        return max(self.tables.linear_variance(cover, axes, weights) - float(fall @ fall), 0.0)

    def interaction_variance(self, cover: Axes, axes: Axes) -> float:
        """The noise variance of a unit contrast that only the component on `axes` sees: the mean over them where coarse counts know some better."""
        own = self.tables.interaction_variance(cover, axes)
        if len(axes) > 1 or not set(axes) <= set(self.covers) or own == 0:
            return own
        rows = self._whitened(self._levels(axes[0]) if axes else self._total[None])
        return max(own - float((rows**2).sum()) / max(len(rows) - 1, 1), 0.0)

    def misfit(self, table: Noisy) -> tuple[float, int]:
        """χ² and degrees of freedom of one measured table against the others (repeats of itself included)."""
        return self.tables.misfit(table)

    def parameters(self) -> int:
        """How many free numbers are estimated: coarse counts add none."""
        return self.tables.parameters()

    def _seen(self, axes: Axes) -> Iterator[int]:
        """The attributes among `axes` that have runs."""
        return (axis for axis in axes if axis in self.covers)

    def _narrowed(self, rows: Floats, axis: int, axes: Axes) -> Floats:
        """The whitened covariances of the component of an attribute, as it is spread over a table."""
        return self._whitened(rows) * self.tables.shape[axis] / cells(axes, self.tables.shape)

    def _whitened(self, covariances: Floats) -> Floats:
        """Rows whose inner products are aᵀM⁻¹a."""
        return np.asarray(np.linalg.solve(self._root, covariances.T).T)

    def _levels(self, axis: int) -> Floats:
        """The covariance of each entry of an attribute's component with all runs."""
        return np.asarray(self._scale(axis) * self._centred[axis].T)

    def _scale(self, axis: int) -> float:
        return self.tables.interaction_variance(self.covers[axis], (axis,))

    @cached_property
    def _total(self) -> Floats:
        """The covariance of the total with all runs."""
        return self._total_variance * self._parts

    @cached_property
    def _total_variance(self) -> float:
        return self.tables.mean_variance(next(iter(self.covers.values())), ())

    @cached_property
    def _parts(self) -> Floats:
        """The part of its attribute's levels that each run holds."""
        shape = self.tables.shape
        return np.concatenate([one.runs(shape[one.axis]).mean(axis=1) for one in self.coarse])

    @cached_property
    def _centred(self) -> dict[int, Floats]:
        """For each attribute the centred 0/1 rows of all runs, zero for those of others."""
        shape = self.tables.shape
        found = {axis: np.zeros((len(self._parts), shape[axis])) for axis in self.covers}
        stop = 0
        for one in self.coarse:
            start, stop = stop, stop + len(one.counts)
            runs = one.runs(shape[one.axis])
            found[one.axis][start:stop] = runs - runs.mean(axis=1, keepdims=True)
        return found

    @cached_property
    def _covariance(self) -> Floats:
        """M: the covariance of what the tables say of the runs, and the noise of the runs themselves."""
        own = np.concatenate([np.full(len(one.counts), one.variance) for one in self.coarse])
        known = np.diag(own) + np.outer(self._total, self._parts)
        for axis, rows in self._centred.items():
            known += self._scale(axis) * (rows @ rows.T)
        return known

    @cached_property
    def _root(self) -> Floats:
        return np.asarray(np.linalg.cholesky(self._covariance))

    @cached_property
    def _pull(self) -> Floats:
        """M⁻¹(counts − predicted)."""
        shape = self.tables.shape
        gaps = [
            one.counts - one.runs(shape[one.axis]) @ self.tables.table(self.covers[one.axis], (one.axis,))
            for one in self.coarse
        ]
        return np.asarray(np.linalg.solve(self._covariance, np.concatenate(gaps)))


def with_coarse(tables: Components, coarse: Sequence[Coarse]) -> Components | WithCoarse:
    """The fit of tables and coarse counts; that of the tables where there are none."""
    if not coarse:
        return tables
    covers = {one.axis: min((axes for axes in tables.tables if one.axis in axes), key=len) for one in coarse}
    return WithCoarse(tables, tuple(coarse), covers)
