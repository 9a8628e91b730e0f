"""Interaction components: the orthogonal pieces of a table, and least squares over overlapping tables in closed form.

For S ⊆ q the component of table q on S is its margin on S, centred along every axis; table q is the sum over S ⊆ q of its
components, each spread evenly over the cells of q. When the noise is independent between cells and of variance v in every
cell of q, the component on S is noise of variance v·∏_{q∖S} K times a projector, independent between different S. Hence
generalised least squares over any set of complete tables is an inverse-variance mean, component by component (the basis of
ResidualPlanner, arXiv 2305.08175; there it is used to plan the noise, here to combine whatever was measured).

Only components that two tables share need work: a table equals its own counts plus, for each shared S, the difference between
the mean component and its own. So an isolated table of any width costs nothing.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from math import prod

import numpy as np
from numpy.typing import NDArray

from dpcipher.errors import ReleaseError

Axes = tuple[int, ...]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Noisy:
    """One measured table: counts, and the variance of the noise in each cell (0 = exact)."""

    axes: Axes
    counts: Floats
    variance: float

    def __post_init__(self) -> None:
        if list(self.axes) != sorted(set(self.axes)):
            raise ReleaseError(f"axes {self.axes} must be strictly ascending")
        if self.counts.ndim != len(self.axes) or not np.isfinite(self.counts).all():
            raise ReleaseError(
                f"the table on axes {self.axes} must have one dimension per axis and finite counts"
            )
        if not (np.isfinite(self.variance) and self.variance >= 0):
            raise ReleaseError(
                f"variance ({self.variance}) of the table on axes {self.axes} must be finite and 0 or more"
            )


def subsets(axes: Axes) -> Iterable[Axes]:
    """Every subset of `axes`, the empty one first."""
    return chain.from_iterable(combinations(axes, k) for k in range(len(axes) + 1))


def sum_to(table: Floats, axes: Axes, keep: Axes) -> Floats:
    """The margin of `table` on `keep`."""
    drop = tuple(i for i, axis in enumerate(axes) if axis not in keep)
    return np.asarray(table.sum(axis=drop)) if drop else table


def centre(table: Floats) -> Floats:
    """Subtract the mean along every axis in turn: what no lower-order margin sees."""
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def spread(component: Floats, keep: Axes, axes: Axes, shape: Sequence[int]) -> Floats:
    """Shape a component on `keep` so that it broadcasts, evenly shared, over a table on `axes`."""
    inside = [shape[axis] if axis in keep else 1 for axis in axes]
    return component.reshape(inside) / prod(shape[axis] for axis in axes if axis not in keep)


def cells(axes: Iterable[int], shape: Sequence[int]) -> int:
    """How many cells a table on `axes` has."""
    return prod(shape[axis] for axis in axes)


def freedom(axes: Axes, shape: Sequence[int]) -> int:
    """How many free numbers the component on `axes` holds: ∏ (K − 1)."""
    return prod(shape[axis] - 1 for axis in axes)


def merge_repeats(measured: Sequence[Noisy]) -> dict[Axes, Noisy]:
    """One table per set of axes: repeats are averaged with inverse-variance weights."""
    groups: dict[Axes, list[Noisy]] = defaultdict(list)
    for one in measured:
        groups[one.axes].append(one)
    return {axes: group[0] if len(group) == 1 else _merge(axes, group) for axes, group in groups.items()}


def _merge(axes: Axes, group: list[Noisy]) -> Noisy:
    values, variance = weighted_mean([(one.axes, one.counts, one.variance) for one in group])
    return Noisy(axes, values, variance)


def weighted_mean(sources: Sequence[tuple[Axes, Floats, float]]) -> tuple[Floats, float]:
    """The inverse-variance mean of `(axes, values, variance)` sources and its variance; exact sources win and must agree."""
    exact = [(axes, values) for axes, values, variance in sources if variance == 0]
    if exact:
        _check_agreement(exact)
        return exact[0][1], 0.0
    precision = sum(1 / variance for _, _, variance in sources)
    mean = sum((values / variance for _, values, variance in sources), np.zeros(1)) / precision
    return np.asarray(mean).reshape(sources[0][1].shape), 1 / precision


def _check_agreement(exact: Sequence[tuple[Axes, Floats]]) -> None:
    first_axes, first = exact[0]
    for axes, values in exact[1:]:
        size = 1.0 + float(np.abs(first).max(initial=0.0))
        if float(np.abs(values - first).max(initial=0.0)) > 1e-6 * size:
            raise ReleaseError(
                f"the exact tables on axes {first_axes} and {axes} contradict each other; "
                "correct one of them, or declare its noise with a scale above 0"
            )


def shared_sets(tables: Iterable[Axes]) -> dict[Axes, list[Axes]]:
    """The subsets that at least two tables cover, each with the tables that cover it."""
    everything = list(tables)
    found: dict[Axes, list[Axes]] = defaultdict(list)
    for axes in everything:
        for sub in _candidates(axes, everything):
            found[sub].append(axes)
    return {sub: covers for sub, covers in found.items() if len(covers) > 1}


def _candidates(axes: Axes, everything: Sequence[Axes]) -> Iterable[Axes]:
    """The subsets of `axes` that another table may share: all of them, or the intersections, whichever are fewer."""
    if 2 ** len(axes) <= max(len(everything), 64):
        return subsets(axes)
    mine = set(axes)
    overlaps = {tuple(sorted(mine & set(other))) for other in everything if other != axes}
    return set(chain.from_iterable(subsets(overlap) for overlap in overlaps))


@dataclass(frozen=True)
class Components:
    """Closed-form least squares: each table, corrected by the mean of every component that it shares."""

    shape: tuple[int, ...]
    tables: Mapping[Axes, Noisy]
    shared: Mapping[Axes, tuple[Floats, float]]

    @classmethod
    def fit(cls, shape: tuple[int, ...], tables: Mapping[Axes, Noisy], total: float | None) -> "Components":
        """Average what the tables share; a public `total` is one more, exact, source of the empty component."""
        covers = shared_sets(tables)
        if total is not None:
            covers.setdefault((), list(tables))
        shared = {}
        for sub, covering in covers.items():
            sources = [(axes, *own_component(tables[axes], sub, shape)) for axes in covering]
            if total is not None and sub == ():
                sources.insert(0, ((), np.asarray(float(total)), 0.0))
            shared[sub] = weighted_mean(sources)
        return cls(shape, tables, shared)

    def table(self, cover: Axes, axes: Axes) -> Floats:
        """The estimate of the margin of table `cover` on `axes`."""
        counts = sum_to(self.tables[cover].counts, cover, axes)
        result = counts
        for sub in self._corrections(axes):
            own = centre(sum_to(counts, axes, sub))
            result = result + spread(self.shared[sub][0] - own, sub, axes, self.shape)
        return result

    def variance(self, cover: Axes, axes: Axes) -> Floats:
        """The variance of every cell of `table(cover, axes)`; the same in all of them."""
        base = self._scale(cover, axes)
        value = base
        for sub in self._corrections(axes):
            others = cells(set(axes) - set(sub), self.shape)
            centred = prod(1 - 1 / self.shape[axis] for axis in sub)
            value += (self.shared[sub][1] - base * others) * centred / others**2
        return np.full([self.shape[axis] for axis in axes], max(value, 0.0))

    def linear_variance(self, cover: Axes, axes: Axes, weights: Floats) -> float:
        """The variance of `sum(weights * table)`."""
        base = self._scale(cover, axes)
        value = base * float((weights**2).sum())
        for sub in self._corrections(axes):
            others = cells(set(axes) - set(sub), self.shape)
            seen = float((centre(sum_to(weights, axes, sub)) ** 2).sum()) / others**2
            value += (self.shared[sub][1] - base * others) * seen
        return max(value, 0.0)

    def misfit(self, one: Noisy) -> tuple[float, int]:
        """χ² and degrees of freedom of one measured table against everything else (repeats of itself included)."""
        merged = self.tables[one.axes]
        rest = one.counts - merged.counts
        chi2, dof, left, left_dof = 0.0, 0, float((rest**2).sum()), rest.size
        for sub in self._corrections(one.axes):
            others = cells(set(one.axes) - set(sub), self.shape)
            own, variance = own_component(one, sub, self.shape)
            gap, spare = own - self.shared[sub][0], variance - self.shared[sub][1]
            left -= float((centre(sum_to(rest, one.axes, sub)) ** 2).sum()) / others
            left_dof -= freedom(sub, self.shape)
            if spare > 1e-12 * variance:
                chi2, dof = chi2 + float((gap**2).sum()) / spare, dof + freedom(sub, self.shape)
        if one.variance > merged.variance * (1 + 1e-12):
            chi2, dof = chi2 + max(left, 0.0) / (one.variance - merged.variance), dof + left_dof
        return chi2, dof

    def parameters(self) -> int:
        """How many free numbers the noisy tables estimate together (what exact tables fix is not counted)."""
        noisy = [axes for axes, one in self.tables.items() if one.variance > 0]
        count = sum(cells(axes, self.shape) for axes in noisy)
        for sub, covers in self._covers(noisy).items():
            estimated = 1 if self.shared[sub][1] > 0 else 0
            count -= (len(covers) - estimated) * freedom(sub, self.shape)
        return count

    def _covers(self, noisy: list[Axes]) -> dict[Axes, list[Axes]]:
        found: dict[Axes, list[Axes]] = defaultdict(list)
        for axes in noisy:
            for sub in self._corrections(axes):
                found[sub].append(axes)
        return found

    def _corrections(self, axes: Axes) -> list[Axes]:
        if 2 ** len(axes) <= len(self.shared):
            return [sub for sub in subsets(axes) if sub in self.shared]
        mine = set(axes)
        return [sub for sub in self.shared if mine.issuperset(sub)]

    def _scale(self, cover: Axes, axes: Axes) -> float:
        return self.tables[cover].variance * cells(set(cover) - set(axes), self.shape)


def own_component(one: Noisy, sub: Axes, shape: Sequence[int]) -> tuple[Floats, float]:
    """The component of one table on `sub`, and the variance scale of its noise (times a projector)."""
    variance = one.variance * cells(set(one.axes) - set(sub), shape)
    return centre(sum_to(one.counts, one.axes, sub)), variance
