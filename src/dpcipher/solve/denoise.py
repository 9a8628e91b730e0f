"""Denoise: shrink every interaction toward what the lower-order tables predict, by the amount its known noise justifies.

Order by order, small sets first. A one-way table is shrunk toward uniform; a table on S toward the table of largest entropy with
the already denoised margins (for a pair: the product of its one-way tables). What it shows beyond that is shrunk by the
empirical Bayes rule of `shrink`; one-way tables of many levels use the rule of `oneway`. Pairs are done twice: the strongest of them
form a tree, and the second time every other pair is shrunk toward what that tree implies (`implied`), not toward independence. That
prediction is made without the pair's own measurement, so that their noise is independent. Then negative cells are removed and
proportional sweeps restore the margins, so that every table agrees with its own margins and with the others. Where the full table is
small, the joint itself is fitted as well (`whole`), and the answer is halfway between the two. The noise level is public and nothing
else is used: no budget is spent. Without noise all of this is the identity.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from math import prod, sqrt

import numpy as np

from dpcipher.errors import SolveError
from dpcipher.release.components import centre, freedom
from dpcipher.release.gls import zero_cells
from dpcipher.release.reconcile import Reconciled
from dpcipher.solve.agree import consensus, nearest, sweep_to
from dpcipher.solve.implied import implied
from dpcipher.solve.oneway import posterior_counts, smooth
from dpcipher.solve.shrink import Deviation, shrink
from dpcipher.solve.targets import Axes, Floats, Targets, margin
from dpcipher.solve.whole import Whole, fit_whole

MANY_LEVELS = 12
TRACE = 0.1
ROUNDS = 20
Shrinker = Callable[[Mapping[Axes, Deviation], Mapping[int, Floats], float], dict[Axes, Floats]]


def denoise(reconciled: Reconciled) -> Targets:
    """Shrunk, non-negative tables that agree: what an engine should reproduce."""
    _check(reconciled)
    plain = Seen(reconciled.table, 1.0)
    one_way_tables = _one_way_tables(reconciled, plain, shrink, shrunk=True)
    alone = all(len(one.axes) < 2 for one in reconciled.measured)  # then no joint ties them together
    whole = (
        None if alone else fit_whole(reconciled, {axes[0]: table for axes, table in one_way_tables.items()})
    )
    if whole is None:
        return _targets(reconciled, plain, one_way_tables, shrink, tree=True)
    seen = _positive(reconciled, whole)
    shrunk = _targets(reconciled, seen, _one_way_tables(reconciled, seen, shrink, shrunk=True), shrink)
    return _mean(shrunk, whole.joint)


def undenoised(reconciled: Reconciled) -> Targets:
    """The same without shrinkage: non-negative and consistent only."""
    _check(reconciled)
    seen = Seen(reconciled.table, 1.0)
    return _targets(reconciled, seen, _one_way_tables(reconciled, seen, _keep, shrunk=False), _keep)


def _keep(found: Mapping[Axes, Deviation], one_way: Mapping[int, Floats], total: float) -> dict[Axes, Floats]:
    """No shrinkage."""
    return {axes: one.counts for axes, one in found.items()}


@dataclass(frozen=True)
class Seen:
    """The counts the shrinkage looks at, and the share of the noise that is left in the one-way tables."""

    table: Callable[[Axes], Floats]
    passed: float


def _positive(reconciled: Reconciled, whole: Whole) -> Seen:
    """With at least one row per cell, the tables of the nearest joint, whose cells are not negative; else the tables as they are.

    In a large sparse table that would only add bias: many cells at zero add up.
    """
    if prod(reconciled.shape) > reconciled.total:
        return Seen(reconciled.table, 1.0)
    everything, counts = tuple(range(len(reconciled.shape))), reconciled.total * whole.nearest
    return Seen(lambda axes: margin(counts, everything, axes), whole.passed)


def _mean(targets: Targets, joint: Floats) -> Targets:
    """Halfway between the shrunk tables and those of the fitted joint: each errs where the other does not."""
    everything = tuple(range(joint.ndim))
    tables = {axes: 0.5 * (table + margin(joint, everything, axes)) for axes, table in targets.tables.items()}
    return replace(targets, tables=tables)


def _targets(
    reconciled: Reconciled,
    seen: Seen,
    one_way_tables: dict[Axes, Floats],
    rule: Shrinker,
    *,
    tree: bool = False,
) -> Targets:
    built = dict(one_way_tables)
    one_way = {axes[0]: table / reconciled.total for axes, table in built.items()}
    orders: dict[int, list[Axes]] = defaultdict(list)
    for axes in reconciled.closure():
        orders[len(axes)].append(axes)
    shrinking = Shrinking(reconciled, seen, rule, one_way)
    for order in sorted(orders)[1:]:
        start = {axes: _prediction(axes, built, reconciled) for axes in orders[order]}
        first = shrinking.toward(start, built)
        better = _toward_tree(start, first, shrinking) if order == 2 and tree else {}
        built.update(shrinking.toward({**start, **better}, built) if better else first)
    return _finish(reconciled, built)


@dataclass(frozen=True)
class Shrinking:
    """How the tables of one order are shrunk toward a start."""

    reconciled: Reconciled
    seen: Seen
    rule: Shrinker
    one_way: Mapping[int, Floats]

    def toward(self, start: Mapping[Axes, Floats], built: Mapping[Axes, Floats]) -> dict[Axes, Floats]:
        """Each table between its start and what was measured, with the margins that are built."""
        found = {axes: _deviation(axes, start[axes], self.reconciled, self.seen) for axes in start}
        kept = self.rule(found, self.one_way, self.reconciled.total)
        return {
            axes: self.reconciled.table(axes)
            if self.is_exact(axes, found[axes])
            else _rebuild(axes, start[axes], kept[axes], found[axes].variance, built)
            for axes in start
        }

    def is_exact(self, axes: Axes, found: Deviation) -> bool:
        """Without noise; with a column of one level there is no interaction to be exact: the table is its prediction."""
        return found.variance == 0 and freedom(axes, self.reconciled.shape) > 0


def _toward_tree(
    start: Mapping[Axes, Floats], first: Mapping[Axes, Floats], shrinking: Shrinking
) -> dict[Axes, Floats]:
    """What the tree implies for noisy pairs that are not in it, where that is nearer to what was measured than independence is.

    A trace of independence is mixed in: a zero of the tree is an estimate, and must not bind an engine.
    """
    reconciled, total = shrinking.reconciled, shrinking.reconciled.total
    noisy = [axes for axes in start if freedom(axes, reconciled.shape) and reconciled.variance(axes).any()]
    tables = implied({axes: table / total for axes, table in first.items()}, shrinking.one_way, noisy)
    found = {}
    for axes, table in tables.items():
        mixed = np.where(start[axes] > 0, (1 - TRACE) * total * table + TRACE * start[axes], 0.0)
        better = sweep_to(mixed, axes, {(axis,): total * shrinking.one_way[axis] for axis in axes})
        seen = shrinking.seen.table(axes)
        if ((seen - better) ** 2).sum() < ((seen - start[axes]) ** 2).sum():
            found[axes] = better
    return found


def _check(reconciled: Reconciled) -> None:
    covered = {axis for one in reconciled.measured for axis in one.axes}
    missing = [axis for axis in range(len(reconciled.shape)) if axis not in covered]
    if missing:
        raise SolveError(
            f"axes {missing} are in no measured table; measure them, or leave those columns out of the schema"
        )
    if reconciled.total <= 0:
        raise SolveError(
            "the noise has drowned the data: the reconciled number of rows is not positive; "
            "a larger epsilon, fewer tables, fewer columns or mechanism='gaussian' would help"
        )


def _one_way_tables(
    reconciled: Reconciled, seen: Seen, rule: Shrinker, *, shrunk: bool
) -> dict[Axes, Floats]:
    """Every one-way table, shrunk toward uniform (over its possible levels)."""
    total, start = reconciled.total, _uniform(reconciled)
    found = {axes: _deviation(axes, start[axes], reconciled, seen) for axes in start}
    found = {axes: Deviation(one.counts, one.variance * seen.passed) for axes, one in found.items()}
    kept = rule(found, {axes[0]: table / total for axes, table in start.items()}, total)
    return {
        axes: _one_way_table(table, found[axes], kept[axes], total, shrunk) for axes, table in start.items()
    }


def _uniform(reconciled: Reconciled) -> dict[Axes, Floats]:
    """The total spread evenly over the possible levels of every attribute."""
    start: dict[Axes, Floats] = {}
    for axis, size in enumerate(reconciled.shape):
        empty = zero_cells((axis,), reconciled.shape, reconciled.zeros)
        start[(axis,)] = np.where(empty, 0.0, reconciled.total / (size - np.count_nonzero(empty)))
    return start


def _one_way_table(start: Floats, one: Deviation, kept: Floats, total: float, shrunk: bool) -> Floats:
    """Non-negative counts of the possible levels: their posterior mean where there are many, else the nearest to what is kept."""
    possible, built = start > 0, np.zeros_like(start)
    if shrunk and one.variance > 0 and np.count_nonzero(possible) >= MANY_LEVELS:
        counts = (start + one.counts)[possible]
        built[possible] = posterior_counts(*smooth(counts, one.variance**0.5), total)
    else:
        built[possible] = nearest((start + kept)[possible], total)
    return built


def _deviation(axes: Axes, start: Floats, reconciled: Reconciled, seen: Seen) -> Deviation:
    """What the counts show beyond the prediction, seen by no smaller table, and its noise."""
    return Deviation(centre(seen.table(axes) - start), reconciled.interaction_variance(axes))


def _prediction(axes: Axes, built: Mapping[Axes, Floats], reconciled: Reconciled) -> Floats:
    """The table of largest entropy that has the denoised margins and the structural zeros."""
    table = np.ones(()) * reconciled.total
    for axis in axes:
        table = np.multiply.outer(table, built[(axis,)] / reconciled.total)
    if reconciled.zeros:
        table = table * ~zero_cells(axes, reconciled.shape, reconciled.zeros)
    elif len(axes) == 2:
        return table
    return sweep_to(table, axes, _faces(axes, built))


def _faces(axes: Axes, built: Mapping[Axes, Floats]) -> dict[Axes, Floats]:
    return {face: built[face] for face in combinations(axes, len(axes) - 1)}


def _rebuild(
    axes: Axes, start: Floats, kept: Floats, variance: float, built: Mapping[Axes, Floats]
) -> Floats:
    """Prediction plus what is kept, made non-negative, with the denoised margins.

    Alternating projections take negative cells to zero at the least squared change that leaves the margins alone; a cell that is
    still below zero becomes a trace of its prediction, or a sweep could not restore an emptied row.
    """
    table, held = start + kept, np.zeros_like(start)
    for _ in range(ROUNDS if float(table.min()) < 0 else 0):
        clipped = np.maximum(table + held, 0.0)
        held = table + held - clipped
        table = start + centre(clipped - start)
    trace = np.minimum(1e-2 * start, 1e-3 * variance**0.5)
    table = np.where(start > 0, np.maximum(table, trace), 0.0)
    return sweep_to(table, axes, _faces(axes, built))


def _finish(reconciled: Reconciled, built: Mapping[Axes, Floats]) -> Targets:
    """Probabilities of the maximal sets and of every attribute, in agreement."""
    sets = reconciled.maximal()
    largest = {axes: built[axes] / built[axes].sum() for axes in sets}
    sigma = {axes: _sigma(axes, reconciled) for axes in sets}
    if max(map(len, sets)) > 2:
        largest = consensus(largest, {axes: 1 / max(sigma[axes], 1e-12) ** 2 for axes in sets})
    tables = dict(largest)
    for axis in range(len(reconciled.shape)):
        if (axis,) not in tables:
            cover = next(axes for axes in sets if axis in axes)
            tables[(axis,)] = margin(largest[cover], cover, (axis,))
            sigma[(axis,)] = _sigma((axis,), reconciled)
    return Targets(reconciled.shape, reconciled.total, tables, sigma, reconciled.zeros)


def _sigma(axes: Axes, reconciled: Reconciled) -> float:
    """The standard deviation of the noise of a cell, on the scale of probabilities."""
    variance = reconciled.variance(axes)
    return sqrt(float(variance.sum()) / variance.size) / reconciled.total
