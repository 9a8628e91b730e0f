"""Reconcile: the best estimate of every table from overlapping noisy ones, with the variance of every cell.

Generalised least squares, no more: nothing is clipped, shrunk or rounded, so every estimate is unbiased and its variance is
known. Complete tables go through `components` (closed form); structural zeros through `gls` (small dense systems).
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpcipher.errors import ReleaseError, SizeError
from dpcipher.marginals.arrays import Axes, Floats
from dpcipher.marginals.tables import closure
from dpcipher.release.components import Components, Noisy, cells, merge_repeats
from dpcipher.release.gls import WithZeros, check_shared, zero_cells

__all__ = ["Disagreement", "Misfit", "Noisy", "Reconciled", "check_zeros", "reconcile"]

MAX_SETS = 2**25

Zeros = tuple[tuple[Axes, NDArray[np.bool_]], ...]


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


class Estimate(Protocol):
    """A least-squares fit that can say what the margin of a measured table is, and how sure."""

    def table(self, cover: Axes, axes: Axes) -> Floats:
        """The estimate of the margin of table `cover` on `axes`."""

    def variance(self, cover: Axes, axes: Axes) -> Floats:
        """The variance of every cell of that estimate."""

    def mean_variance(self, cover: Axes, axes: Axes) -> float:
        """The mean of those variances."""

    def linear_variance(self, cover: Axes, axes: Axes, weights: Floats) -> float:
        """The variance of `sum(weights * table)`."""

    def interaction_variance(self, cover: Axes, axes: Axes) -> float:
        """The variance of a unit contrast of the interaction on `axes`, which no smaller table sees."""

    def misfit(self, one: Noisy) -> tuple[float, int]:
        """χ² and degrees of freedom of one measured table."""

    def parameters(self) -> int:
        """How many free numbers the noisy tables estimate together."""


@dataclass(frozen=True)
class Reconciled:
    """Overlapping noisy tables made to agree: counts, and variances, for every set of attributes they cover."""

    shape: tuple[int, ...]
    total: float
    total_variance: float
    zeros: Zeros
    measured: tuple[Noisy, ...]
    estimate: Estimate

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
        each = tuple(Misfit(one.axes, *self.estimate.misfit(one)) for one in self.measured)
        return Disagreement(each, self._overall())

    def _overall(self) -> Misfit:
        noisy = [one for one in self.measured if one.variance > 0]
        chi2, observed = 0.0, 0
        for one in noisy:
            seen = ~zero_cells(one.axes, self.shape, self.zeros)
            chi2 += float((((one.counts - self.table(one.axes)) ** 2)[seen]).sum()) / one.variance
            observed += int(seen.sum())
        return Misfit((), chi2, observed - self.estimate.parameters())

    @cached_property
    def _tables(self) -> dict[Axes, None]:
        return dict.fromkeys(one.axes for one in self.measured)

    @cached_property
    def _holding(self) -> dict[int, list[Axes]]:
        """The measured sets that hold each attribute, narrow ones first."""
        found: dict[int, list[Axes]] = defaultdict(list)
        for axes in sorted(self._tables, key=lambda axes: (len(axes), cells(axes, self.shape))):
            for axis in axes:
                found[axis].append(axes)
        return found

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
    shape: Sequence[int], measured: Sequence[Noisy], *, total: float | None = None, zeros: Zeros = ()
) -> Reconciled:
    """Combine overlapping noisy tables by generalised least squares.

    `total` is a public, exact number of rows; `zeros` are the cells that no row can be in, `(axes, mask)`. Exact tables
    (variance 0) that contradict one another, the total or the zeros are a `ReleaseError`.
    """
    shape = tuple(shape)
    _check(shape, measured)
    tables = merge_repeats(measured)
    estimate: Estimate = (
        WithZeros.fit(shape, tables, total, zeros)
        if _touched(shape, tables, zeros)
        else Components.fit(shape, tables, total)
    )
    first = next(iter(tables))
    return Reconciled(
        shape,
        float(estimate.table(first, ())),
        float(estimate.variance(first, ())),
        tuple(zeros),
        tuple(measured),
        estimate,
    )


def check_zeros(shape: Sequence[int], tables: Sequence[Axes], zeros: Zeros) -> None:
    """Refuse tables that structural zeros make too many to reconcile: a `SizeError` before anything is measured."""
    if _touched(tuple(shape), tables, zeros):
        check_shared(tuple(shape), tables)


def _touched(shape: tuple[int, ...], tables: Iterable[Axes], zeros: Zeros) -> bool:
    """Whether a structural zero leaves a whole cell of some table empty."""
    return bool(zeros) and any(zero_cells(axes, shape, zeros).any() for axes in tables)


def _check(shape: tuple[int, ...], measured: Sequence[Noisy]) -> None:
    if not measured:
        raise ReleaseError("measured (none) must hold at least one table")
    for one in measured:
        if (one.axes and one.axes[-1] >= len(shape)) or one.counts.shape != tuple(
            shape[axis] for axis in one.axes
        ):
            raise ReleaseError(
                f"the table on axes {one.axes} must have the levels of its axes, got {one.counts.shape}"
            )
