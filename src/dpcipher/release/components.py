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
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from math import isfinite, prod

import numpy as np

from dpcipher.errors import ReleaseError, SizeError
from dpcipher.marginals.arrays import Axes, Floats
from dpcipher.marginals.tables import margin, subsets

_FREE_SETS = 2**20


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
        if not (isfinite(self.variance) and self.variance >= 0):
            raise ReleaseError(
                f"variance ({self.variance}) of the table on axes {self.axes} must be finite and 0 or more"
            )


def centre(table: Floats) -> Floats:
    """Subtract the mean along every axis in turn: what no lower-order margin sees."""
    for axis, levels in enumerate(table.shape):
        table = table - table.sum(axis=axis, keepdims=True) / levels
    return table


def spread(component: Floats, keep: Axes, axes: Axes, shape: tuple[int, ...]) -> Floats:
    """Shape a component on `keep` so that it broadcasts, evenly shared, over a table on `axes`."""
    inside, others = _place(keep, axes, shape)
    return component.reshape(inside) / others


@lru_cache(maxsize=4096)
def _place(keep: Axes, axes: Axes, shape: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    """The shape of a table on `keep` that broadcasts over one on `axes`, and how many cells there share one of its own."""
    inside = tuple(shape[axis] if axis in keep else 1 for axis in axes)
    return inside, cells(axes, shape) // prod(inside)


@lru_cache(maxsize=4096)
def cells(axes: Axes, shape: tuple[int, ...]) -> int:
    """How many cells a table on `axes` has."""
    return prod(shape[axis] for axis in axes)


@lru_cache(maxsize=4096)
def freedom(axes: Axes, shape: tuple[int, ...]) -> int:
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


def shared_sets(tables: Iterable[Axes], shape: tuple[int, ...]) -> dict[Axes, list[Axes]]:
    """The subsets that at least two tables cover, each with the tables that cover it.

    Attributes of one level double the subsets of a table and leave its cells as they are, so that a tiny release could hold
    endless work: more subsets than eight for each cell are a `SizeError`.
    """
    everything = list(tables)
    room = _FREE_SETS + 8 * sum(cells(axes, shape) for axes in everything)
    found: dict[Axes, list[Axes]] = defaultdict(list)
    for axes in everything:
        narrow = 2 ** len(axes) <= max(len(everything), 64)
        room = _left(room, 0 if narrow else len(everything))
        overlaps = {axes} if narrow else _overlaps(axes, everything)
        room = _left(room, sum(2 ** len(overlap) for overlap in overlaps))
        for sub in subsets(axes) if narrow else set(chain.from_iterable(map(subsets, overlaps))):
            found[sub].append(axes)
    return {sub: covers for sub, covers in found.items() if len(covers) > 1}


def _overlaps(axes: Axes, everything: Sequence[Axes]) -> set[Axes]:
    """What a table shares with each of the others: fewer sets than all of its own, where it is wide."""
    mine = set(axes)
    return {tuple(sorted(mine & set(other))) for other in everything if other != axes}


def _left(room: int, work: int) -> int:
    if work > room:
        raise SizeError("the tables share too many sets of attributes; measure tables of fewer columns")
    return room - work


def inside(axes: Axes, known: Collection[Axes]) -> list[Axes]:
    """The known sets that lie inside `axes`, found by going through whichever are fewer."""
    if 2 ** len(axes) <= len(known):
        return [sub for sub in subsets(axes) if sub in known]
    mine = set(axes)
    return [sub for sub in known if mine.issuperset(sub)]


@dataclass(frozen=True)
class Components:
    """Closed-form least squares: each table, corrected by the mean of every component that it shares.

    `shared` holds those means and the scale of their variance, `gaps` what separates each from the component of (a table, on a set).
    """

    shape: tuple[int, ...]
    tables: Mapping[Axes, Noisy]
    shared: Mapping[Axes, tuple[Floats, float]]
    gaps: Mapping[tuple[Axes, Axes], Floats]

    @classmethod
    def fit(cls, shape: tuple[int, ...], tables: Mapping[Axes, Noisy], total: float | None) -> "Components":
        """Average what the tables share; a public `total` is one more, exact, source of the empty component."""
        covers = shared_sets(tables, shape)
        if total is not None:
            covers.setdefault((), list(tables))
        shared, gaps = {}, {}
        for sub, covering in covers.items():
            sources = [(axes, *own_component(tables[axes], sub, shape)) for axes in covering]
            public = [((), np.asarray(float(total)), 0.0)] if total is not None and sub == () else []
            shared[sub] = weighted_mean([*public, *sources])
            gaps.update({(axes, sub): shared[sub][0] - own for axes, own, _ in sources})
        return cls(shape, tables, shared, gaps)

    def table(self, cover: Axes, axes: Axes) -> Floats:
        """The estimate of the margin of table `cover` on `axes`."""
        result = margin(self.tables[cover].counts, cover, axes)
        for sub in self._corrections(axes):
            result = result + spread(self.gaps[cover, sub], sub, axes, self.shape)
        return result

    def variance(self, cover: Axes, axes: Axes) -> Floats:
        """The variance of every cell of `table(cover, axes)`; the same in all of them."""
        return np.full([self.shape[axis] for axis in axes], self.mean_variance(cover, axes))

    def mean_variance(self, cover: Axes, axes: Axes) -> float:
        """The variance of any cell of `table(cover, axes)`."""
        base = self._scale(cover, axes)
        value = base
        for sub in self._corrections(axes):
            others = _place(sub, axes, self.shape)[1]
            centred = freedom(sub, self.shape) / cells(sub, self.shape)
            value += (self.shared[sub][1] - base * others) * centred / others**2
        # Where exact tables fix every component, what is left is rounding, and exact means 0.
        return value if value > 1e-14 * base else 0.0

    def linear_variance(self, cover: Axes, axes: Axes, weights: Floats) -> float:
        """The variance of `sum(weights * table)`."""
        base = self._scale(cover, axes)
        value = base * float((weights**2).sum())
        for sub in self._corrections(axes):
            others = _place(sub, axes, self.shape)[1]
            seen = float((centre(margin(weights, axes, sub)) ** 2).sum()) / others**2
            value += (self.shared[sub][1] - base * others) * seen
        return max(value, 0.0)

    def interaction_variance(self, cover: Axes, axes: Axes) -> float:
        """The noise variance of a unit contrast that only the component on `axes` sees; 0 where there is none."""
        if not freedom(axes, self.shape):
            return 0.0
        return self.shared[axes][1] if axes in self.shared else self._scale(cover, axes)

    def misfit(self, one: Noisy) -> tuple[float, int]:
        """χ² and degrees of freedom of one measured table against everything else (repeats of itself included)."""
        merged = self.tables[one.axes]
        rest = one.counts - merged.counts
        chi2, dof, left, left_dof = 0.0, 0, float((rest**2).sum()), rest.size
        for sub in self._corrections(one.axes):
            others = _place(sub, one.axes, self.shape)[1]
            own, variance = own_component(one, sub, self.shape)
            gap, spare = own - self.shared[sub][0], variance - self.shared[sub][1]
            left -= float((centre(margin(rest, one.axes, sub)) ** 2).sum()) / others
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
        return inside(axes, self.shared)

    def _scale(self, cover: Axes, axes: Axes) -> float:
        return self.tables[cover].variance * _place(axes, cover, self.shape)[1]


def own_component(one: Noisy, sub: Axes, shape: tuple[int, ...]) -> tuple[Floats, float]:
    """The component of one table on `sub`, and the variance scale of its noise (times a projector)."""
    variance = one.variance * _place(sub, one.axes, shape)[1]
    return centre(margin(one.counts, one.axes, sub)), variance
