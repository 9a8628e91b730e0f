"""Interaction components: the orthogonal pieces of a table, and least squares over overlapping tables in closed form.

For S ⊆ q the component of table q on S is its margin on S, centred along every axis; table q is the sum over S ⊆ q of its
components, each spread evenly over the cells of q. When the noise is independent between cells and of variance v in every
cell of q, the component on S is noise of variance v·∏_{q∖S} K times a projector, independent between different S. Hence
generalised least squares over any set of complete tables is an inverse-variance mean, component by component (the basis of
ResidualPlanner, arXiv 2305.08175; there it is used to plan the noise, here to combine whatever was measured).

Only components that two tables share need work: a table equals its own counts plus, for each shared S, the difference between
the mean component and its own. So an isolated table of any width costs nothing.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf, isfinite, prod

import numpy as np

from dpcipher.errors import ReleaseError, SizeError
from dpcipher.tables.domain import Axes, Floats, Shape, dropped, subsets
from dpcipher.tables.table import alike, margin

_FREE_SETS = 2**20
# Where exact tables fix every component of a sum, a share like this of its noise is left by rounding; exact means 0.
ROUNDING = 1e-13


@dataclass(frozen=True)
class Noisy:
    """One measured table: counts, and the variance of the noise in each cell (0 = exact).

    A `centred` one holds counts less their mean, and says nothing of the number of rows.
    """

    axes: Axes
    counts: Floats
    variance: float
    centred: bool = False

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
        if self.centred and abs(self.counts.sum()) > 1e-6 * (1 + np.abs(self.counts).sum()):
            raise ReleaseError(f"the centred table on axes {self.axes} must add up to 0")


def centre(table: Floats, *, first: int = 0) -> Floats:
    """Subtract the mean along every axis in turn: what no lower-order margin sees.

    Axes before `first` are left alone: `first=1` is for tables of one shape, one after another in an array.
    """
    for axis in range(first, table.ndim):
        table = table - table.sum(axis=axis, keepdims=True) / table.shape[axis]
    return table


def spread(component: Floats, keep: Axes, axes: Axes, shape: Shape) -> Floats:
    """Shape a component on `keep` so that it broadcasts, evenly shared, over a table on `axes`."""
    inside, others = _place(keep, axes, shape)
    return component.reshape(inside) / others


def _place(keep: Axes, axes: Axes, shape: Shape) -> tuple[tuple[int, ...], int]:
    """The shape of a table on `keep` that broadcasts over one on `axes`, and how many cells there share one of its own."""
    inside = tuple(shape[axis] if axis in keep else 1 for axis in axes)
    return inside, cells(axes, shape) // prod(inside)


def cells(axes: Axes, shape: Shape) -> int:
    """How many cells a table on `axes` has."""
    return prod(shape[axis] for axis in axes)


def freedom(axes: Axes, shape: Shape) -> int:
    """How many free numbers the component on `axes` holds: ∏ (K − 1)."""
    return prod(shape[axis] - 1 for axis in axes)


def merge_repeats(measured: Sequence[Noisy]) -> dict[Axes, Noisy]:
    """One table per set of axes: repeats are averaged with inverse-variance weights."""
    groups: dict[Axes, list[Noisy]] = defaultdict(list)
    for table in measured:
        groups[table.axes].append(table)
    return {axes: group[0] if len(group) == 1 else _merge(axes, group) for axes, group in groups.items()}


def _merge(axes: Axes, group: list[Noisy]) -> Noisy:
    variances = np.array([table.variance for table in group])
    mean, variance = weighted_mean(group, np.stack([table.counts for table in group]), variances)
    return Noisy(axes, mean, variance, group[0].centred)


def weighted_mean(tables: Sequence[Noisy], values: Floats, variances: Floats) -> tuple[Floats, float]:
    """The inverse-variance mean of what each table says, and its variance; exact tables win and must agree."""
    exact = np.flatnonzero(variances == 0)
    if exact.size:
        _check_agreement([tables[int(place)].axes for place in exact], values[exact])
        return values[exact[0]], 0.0
    precision = 1 / variances
    return np.tensordot(precision, values, axes=1) / precision.sum(), 1 / float(precision.sum())


def _check_agreement(axes: Sequence[Axes], values: Floats) -> None:
    """Refuse exact tables that do not say the same."""
    size = 1.0 + float(np.abs(values[0]).max(initial=0.0))
    apart = np.abs(values - values[0]).reshape(len(values), -1).max(axis=1, initial=0.0) > 1e-6 * size
    if apart.any():
        raise ReleaseError(
            f"the exact tables on axes {axes[0]} and {axes[int(apart.argmax())]} contradict each other; "
            "correct one of them, or declare its noise with a scale above 0"
        )


def shared_sets(tables: Iterable[Axes], shape: Shape) -> dict[Axes, list[Axes]]:
    """The subsets that at least two tables cover, each with the tables that cover it.

    Attributes of one level double the subsets of a table and leave its cells as they are, so that a tiny release could hold
    endless work: more subsets than eight for each cell are a `SizeError`.
    """
    all_axes = list(tables)
    room = _FREE_SETS + 8 * sum(cells(axes, shape) for axes in all_axes)
    covering: dict[Axes, list[Axes]] = defaultdict(list)
    for axes in all_axes:
        narrow = 2 ** len(axes) <= max(len(all_axes), 64)
        room = _left(room, 0 if narrow else len(all_axes))
        overlaps = {axes} if narrow else _overlaps(axes, all_axes)
        room = _left(room, sum(2 ** len(overlap) for overlap in overlaps))
        for sub in subsets(axes) if narrow else set(chain.from_iterable(map(subsets, overlaps))):
            covering[sub].append(axes)
    return {sub: covers for sub, covers in covering.items() if len(covers) > 1}


def _overlaps(axes: Axes, all_axes: Sequence[Axes]) -> set[Axes]:
    """What a table shares with each of the others: fewer sets than all of its own, where it is wide."""
    wide = set(axes)
    return {tuple(sorted(wide & set(other))) for other in all_axes if other != axes}


def _left(room: int, work: int) -> int:
    if work > room:
        raise SizeError("the tables share too many sets of attributes; measure tables of fewer columns")
    return room - work


def inside(axes: Axes, known: Collection[Axes]) -> list[Axes]:
    """The known sets that lie inside `axes`, found by going through whichever are fewer."""
    if 2 ** len(axes) <= len(known):
        return [sub for sub in subsets(axes) if sub in known]
    wide = set(axes)
    return [sub for sub in known if wide.issuperset(sub)]


@dataclass(frozen=True)
class Components:
    """Closed-form least squares: each table, corrected by the mean of every component that it shares.

    `shared` holds those means and the scale of their variance, `fitted` the corrected counts of every table.
    """

    shape: Shape
    tables: Mapping[Axes, Noisy]
    shared: Mapping[Axes, tuple[Floats, float]]
    fitted: Mapping[Axes, Floats]

    @classmethod
    def fit(cls, shape: Shape, tables: Mapping[Axes, Noisy], total: float | None) -> "Components":
        """Average what the tables share; a public `total` is one more, exact, source of the empty component."""
        covers = shared_sets(tables, shape)
        if total is not None:
            covers.setdefault((), list(tables))
        elif all(table.centred for table in tables.values()):
            raise ReleaseError("tables that are all centred need the number of rows beside them")
        public = [] if total is None else [[Noisy((), np.asarray(float(total)), 0.0)]]
        shared = {}
        fitted = {axes: table.counts.copy() for axes, table in tables.items()}
        for sub, covering in covers.items():
            parts = list(_alike(sub, [tables[axes] for axes in covering]))
            sources = parts if sub else [*public, *parts]
            own = [_own_components(part, sub, shape) for part in sources]
            values, variances = (np.concatenate(column) for column in zip(*own, strict=True))
            shared[sub] = weighted_mean(list(chain(*sources)), values, variances)
            for part, (component, _) in zip(parts, own[len(sources) - len(parts) :], strict=True):
                gaps = _spread_alike(shared[sub][0] - component, sub, part[0].axes, shape)
                for table, gap in zip(part, gaps, strict=True):
                    fitted[table.axes] += gap
        return cls(shape, tables, shared, fitted)

    def table(self, cover: Axes, axes: Axes) -> Floats:
        """The estimate of the margin of table `cover` on `axes`."""
        return margin(self.fitted[cover], cover, axes)

    def variance(self, cover: Axes, axes: Axes) -> Floats:
        """The variance of every cell of `table(cover, axes)`; the same in all of them."""
        return np.full([self.shape[axis] for axis in axes], self.mean_variance(cover, axes))

    def mean_variance(self, cover: Axes, axes: Axes) -> float:
        """The variance of any cell of `table(cover, axes)`."""
        base = self._scale(cover, axes)
        value = base
        for sub in inside(axes, self.shared):
            others = _place(sub, axes, self.shape)[1]
            centred = freedom(sub, self.shape) / cells(sub, self.shape)
            value += (self.shared[sub][1] - base * others) * centred / others**2
        return value if value > ROUNDING * base else 0.0

    def linear_variance(self, cover: Axes, axes: Axes, weights: Floats) -> float:
        """The variance of `sum(weights * table)`."""
        base = self._scale(cover, axes)
        alone = value = base * float((weights**2).sum())
        for sub in inside(axes, self.shared):
            others = _place(sub, axes, self.shape)[1]
            seen = float((centre(margin(weights, axes, sub)) ** 2).sum()) / others**2
            value += (self.shared[sub][1] - base * others) * seen
        return value if value > ROUNDING * alone else 0.0

    def interaction_variance(self, cover: Axes, axes: Axes) -> float:
        """The noise variance of a unit contrast that only the component on `axes` sees; 0 where there is none."""
        if not freedom(axes, self.shape):
            return 0.0
        return self.shared[axes][1] if axes in self.shared else self._scale(cover, axes)

    def misfit(self, table: Noisy) -> tuple[float, int]:
        """χ² and degrees of freedom of one measured table against everything else (repeats of itself included)."""
        merged = self.tables[table.axes]
        rest = table.counts - merged.counts
        chi2, dof, left, left_dof = 0.0, 0, float((rest**2).sum()), rest.size
        for sub in inside(table.axes, self.shared):
            others = _place(sub, table.axes, self.shape)[1]
            own, variance = own_component(table, sub, self.shape)
            gap, spare = own - self.shared[sub][0], variance - self.shared[sub][1]
            left -= float((centre(margin(rest, table.axes, sub)) ** 2).sum()) / others
            left_dof -= freedom(sub, self.shape)
            if isfinite(variance) and spare > 1e-12 * variance:
                chi2, dof = chi2 + float((gap**2).sum()) / spare, dof + freedom(sub, self.shape)
        if table.variance > merged.variance * (1 + 1e-12):
            chi2, dof = chi2 + max(left, 0.0) / (table.variance - merged.variance), dof + left_dof
        return chi2, dof

    def parameters(self) -> int:
        """How many free numbers the noisy tables estimate together (what exact tables fix is not counted)."""
        noisy = [axes for axes, table in self.tables.items() if table.variance > 0]
        count = sum(cells(axes, self.shape) for axes in noisy)
        covers = Counter(sub for axes in noisy for sub in inside(axes, self.shared))
        for sub, number in covers.items():
            estimated = 1 if self.shared[sub][1] > 0 else 0
            count -= (number - estimated) * freedom(sub, self.shape)
        return count

    def _scale(self, cover: Axes, axes: Axes) -> float:
        return self.tables[cover].variance * _place(axes, cover, self.shape)[1]


def own_component(table: Noisy, sub: Axes, shape: Shape) -> tuple[Floats, float]:
    """The component of one table on `sub`, and the variance scale of its noise (times a projector)."""
    (component,), (variance,) = _own_components([table], sub, shape)
    return component, float(variance)


def _alike(sub: Axes, covering: Sequence[Noisy]) -> Iterator[list[Noisy]]:
    """Those tables together that have one shape, and `sub` at one place in it."""
    return alike(
        covering,
        lambda table: (table.counts.shape, dropped(table.axes, sub)),
        lambda table: table.counts.size,
    )


def _own_components(tables: Sequence[Noisy], sub: Axes, shape: Shape) -> tuple[Floats, Floats]:
    """The component on `sub` of each of some tables that are alike, and the variance scale of its noise."""
    axes = tables[0].axes
    summed = tuple(1 + place for place in dropped(axes, sub))
    counts = tables[0].counts[None] if len(tables) == 1 else np.stack([table.counts for table in tables])
    component = centre(counts.sum(axis=summed), first=1)
    # A centred table knows nothing of the total.
    known = [inf if table.centred and not sub else table.variance for table in tables]
    return component, np.array(known) * _place(sub, axes, shape)[1]


def _spread_alike(components: Floats, keep: Axes, axes: Axes, shape: Shape) -> Floats:
    """`spread`, for the components of some tables like the one on `axes`."""
    inside, others = _place(keep, axes, shape)
    return components.reshape(len(components), *inside) / others
