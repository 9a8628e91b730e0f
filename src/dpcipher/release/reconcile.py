"""Reconcile: the best estimate of every table from overlapping noisy ones, with the variance of every cell.

Generalised least squares, no more: nothing is clipped, shrunk or rounded, so every estimate is unbiased and its variance is
known. Complete tables go through `components` (closed form), with counts of runs of levels through `coarse`; structural zeros through `gls` (small dense
systems), which join tables by the columns they share and not by counts that only zeros make equal.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpcipher.errors import ReleaseError, SizeError
from dpcipher.release.coarse import Coarse, WithCoarse, with_coarse
from dpcipher.release.components import Components, Noisy, cells, merge_repeats
from dpcipher.release.gls import WithZeros, shared_positions
from dpcipher.tables.domain import Axes, Bools, Floats, Shape, closure, zero_cells

__all__ = [
    "Coarse",
    "Disagreement",
    "Misfit",
    "Noisy",
    "Reconciled",
    "check_zeros",
    "in_counts",
    "reconcile",
]

MAX_SETS = 2**25

Zeros = tuple[tuple[Axes, Bools], ...]


@dataclass(frozen=True)
class Misfit:
    """How far one table is from all the others: a χ² (approximate for Laplace noise) and its size in standard deviations."""

    axes: Axes
    chi2: float
    dof: int

    @property
    def sigmas(self) -> float:
        """The χ² as a standard normal quantile (Wilson & Hilferty 1931); 0 when nothing can disagree."""
        if self.dof == 0:
            return 0.0
        spread = 2 / (9 * self.dof)
        return float(((self.chi2 / self.dof) ** (1 / 3) - (1 - spread)) / spread**0.5)


@dataclass(frozen=True)
class Disagreement:
    """The misfit of every measured table, in the order they were given, and of all together."""

    tables: tuple[Misfit, ...]
    overall: Misfit


@dataclass(frozen=True)
class Reconciled:
    """Overlapping noisy tables made to agree: counts, and variances, for every set of attributes they cover.

    `estimate` is the least-squares fit, which knows the margins of each measured table; `coarse` are the counts of runs of levels beside the tables.
    """

    shape: Shape
    total: float
    total_variance: float
    zeros: Zeros
    measured: tuple[Noisy, ...]
    estimate: Components | WithCoarse | WithZeros
    coarse: tuple[Coarse, ...] = ()

    def closure(self) -> list[Axes]:
        """Every non-empty set of attributes that some measured table covers, small sets first."""
        if sum(2 ** len(axes) for axes in self._tables) > MAX_SETS:
            raise SizeError(
                f"the tables hold more than {MAX_SETS:,} sets of attributes; measure tables of fewer columns"
            )
        return closure(self._tables)[1:]

    def maximal(self) -> list[Axes]:
        """The measured sets that no other measured set contains, in order."""
        return sorted(axes for axes in self._tables if axes and not self._is_inside(axes))

    def table(self, axes: Axes) -> Floats:
        """The reconciled counts on `axes`; they may be negative."""
        return self.estimate.table(self._cover(axes), axes)

    def variance(self, axes: Axes) -> Floats:
        """The variance of every cell of `table(axes)`."""
        return self.estimate.variance(self._cover(axes), axes)

    def mean_variance(self, axes: Axes) -> float:
        """The mean variance of the cells of `table(axes)`."""
        return self.estimate.mean_variance(self._cover(axes), axes)

    def linear_variance(self, axes: Axes, weights: Floats) -> float:
        """The variance of `sum(weights * table(axes))`, covariances included."""
        return self.estimate.linear_variance(self._cover(axes), axes, np.asarray(weights, dtype=float))

    def interaction_variance(self, axes: Axes) -> float:
        """The variance of one direction of the interaction on `axes`: of a unit contrast that no smaller table sees."""
        return self.estimate.interaction_variance(self._cover(axes), axes)

    @cached_property
    def disagreement(self) -> Disagreement:
        """How many sigmas the measured tables disagree by, one by one and together."""
        each = tuple(Misfit(table.axes, *self.estimate.misfit(table)) for table in self.measured)
        return Disagreement(each, self._overall())

    def _overall(self) -> Misfit:
        noisy = [table for table in self.measured if table.variance > 0]
        chi2, observed = 0.0, 0
        for table in noisy:
            seen = ~zero_cells(table.axes, self.shape, self.zeros)
            gaps = table.counts - self.table(table.axes)
            if table.centred:
                gaps, observed = gaps - gaps.mean(), observed - 1
            chi2 += float(((gaps**2)[seen]).sum()) / table.variance
            observed += int(seen.sum())
        for one in self.coarse:
            runs = one.runs(self.shape[one.axis])
            seen = runs @ ~zero_cells((one.axis,), self.shape, self.zeros) > 0
            chi2 += float((((one.counts - runs @ self.table((one.axis,))) ** 2)[seen]).sum()) / one.variance
            observed += int(seen.sum())
        return Misfit((), chi2, observed - self.estimate.parameters())

    @cached_property
    def _tables(self) -> dict[Axes, None]:
        return dict.fromkeys(table.axes for table in self.measured)

    @cached_property
    def _holding(self) -> dict[int, list[Axes]]:
        """The measured sets that hold each attribute, narrow ones first."""
        holding: dict[int, list[Axes]] = defaultdict(list)
        for axes in sorted(self._tables, key=lambda axes: (len(axes), cells(axes, self.shape))):
            for axis in axes:
                holding[axis].append(axes)
        return holding

    def _is_inside(self, axes: Axes) -> bool:
        if any(len(self._holding[axis][-1]) == len(axes) for axis in axes):
            return False
        rarest = min((self._holding[axis] for axis in axes), key=len)
        return any(len(other) > len(axes) and set(axes) < set(other) for other in rarest)

    def _cover(self, axes: Axes) -> Axes:
        """The narrowest measured set that holds `axes`, found once."""
        if axes not in self._covers:
            self._covers[axes] = self._find_cover(axes)
        return self._covers[axes]

    @cached_property
    def _covers(self) -> dict[Axes, Axes]:
        return {axes: axes for axes in self._tables}

    def _find_cover(self, axes: Axes) -> Axes:
        rarest = min((self._holding.get(axis, []) for axis in axes), key=len, default=list(self._tables))
        for other in rarest:
            if set(axes) <= set(other):
                return other
        raise ReleaseError(
            f"no measured table covers axes {axes}; measure one that does, or ask within closure()"
        )


def reconcile(
    shape: Sequence[int],
    measured: Sequence[Noisy],
    *,
    total: float | None = None,
    zeros: Zeros = (),
    coarse: Sequence[Coarse] = (),
) -> Reconciled:
    """Combine overlapping noisy tables, and coarse counts of their attributes, by generalised least squares.

    `total` is a public, exact number of rows; `zeros` are the cells that no row can be in, `(axes, mask)`. Exact tables
    (variance 0) that contradict one another, the total or the zeros are a `ReleaseError`.
    """
    shape = tuple(shape)
    _check(shape, measured, zeros)
    tables = merge_repeats(measured)
    estimate: Components | WithCoarse | WithZeros = (
        WithZeros.fit(shape, tables, total, zeros, coarse)
        if _touched(shape, tables, zeros)
        else with_coarse(Components.fit(shape, tables, total), coarse)
    )
    first = next(iter(tables))
    return Reconciled(
        shape,
        float(estimate.table(first, ())),
        float(estimate.variance(first, ())),
        tuple(zeros),
        tuple(measured),
        estimate,
        tuple(coarse),
    )


def in_counts(reconciled: Reconciled) -> list[Noisy]:
    """The measured tables, repeats of one as one table, all in counts: centred ones get back their part of the estimated number of rows."""
    return [
        replace(table, counts=table.counts + reconciled.total / table.counts.size, centred=False)
        if table.centred
        else table
        for table in merge_repeats(reconciled.measured).values()
        if table.axes
    ]


def check_zeros(shape: Sequence[int], tables: Sequence[Axes], zeros: Zeros) -> None:
    """Refuse tables that structural zeros make too many to reconcile: a `SizeError` before anything is measured."""
    if _touched(tuple(shape), tables, zeros):
        shared_positions(tuple(shape), tables)


def _touched(shape: Shape, tables: Iterable[Axes], zeros: Zeros) -> bool:
    """Whether a structural zero leaves a whole cell of some table empty."""
    return bool(zeros) and any(zero_cells(axes, shape, zeros).any() for axes in tables)


def _check(shape: Shape, measured: Sequence[Noisy], zeros: Zeros) -> None:
    if not measured:
        raise ReleaseError("measured (none) must hold at least one table")
    if any(table.centred for table in measured) and _touched(
        shape, [table.axes for table in measured], zeros
    ):
        raise ReleaseError("centred tables cannot be reconciled with structural zeros")
    for table in measured:
        known = all(axis < len(shape) for axis in table.axes)
        if not known or table.counts.shape != tuple(shape[axis] for axis in table.axes):
            raise ReleaseError(
                f"the table on axes {table.axes} must have the levels of its axes, got {table.counts.shape}"
            )
