"""Denoise: shrink every interaction toward what the lower-order tables predict, by the amount its known noise justifies.

Order by order, small sets first. A one-way table is shrunk toward uniform; a table on S toward the table of largest entropy with
the already denoised margins (for a pair: the product of its one-way tables). What it shows beyond that is shrunk by the
empirical Bayes rule of `shrink`; one-way tables of many levels use the rule of `oneway`. Both use the order of levels, where there is one, as far as the
counts themselves speak for it. Pairs are done twice: the strongest of them
form a tree, and the second time every other pair is shrunk toward what that tree implies (`implied`), not toward independence, as far
as its own counts agree: the prediction is made without them, so that their noise is independent. Then negative cells are removed and
proportional sweeps restore the margins, so that every table agrees with its own margins and with the others. Where the full table is
small, the joint itself is fitted as well (`whole`), and the answer is halfway between the two. The noise level is public and nothing
else is used: no budget is spent. Without noise all of this is the identity.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from math import prod, sqrt
from types import MappingProxyType

import numpy as np

from dpcipher.engines.denoise import joint_fit
from dpcipher.engines.denoise.joint_fit import Whole, fit_whole
from dpcipher.engines.denoise.oneway import one_way_table
from dpcipher.engines.denoise.shrink import Deviation, Ordered, Shrinker, shrink
from dpcipher.engines.denoise.tree_prediction import implied, share
from dpcipher.engines.raking import CALL, consensus, sweep_to
from dpcipher.engines.targets import Targets
from dpcipher.engines.wide import PAIRS, fit_wide
from dpcipher.errors import SolveError
from dpcipher.marginals.arrays import Axes, Floats
from dpcipher.marginals.tables import margin
from dpcipher.release.components import centre, freedom
from dpcipher.release.gls import zero_cells
from dpcipher.release.reconcile import Reconciled

TRACE = 0.05  # of independence, in what a tree implies: its zeros are estimates and must not bind an engine
ROUNDS = 20
NARROW = 3  # attributes of the widest table that is built order by order


def denoise(reconciled: Reconciled, orders: Mapping[int, Ordered] = MappingProxyType({})) -> Targets:
    """Shrunk, non-negative tables that agree: what an engine should reproduce.

    `orders` says which attributes have levels in an order, and which levels those are.
    """
    _check(reconciled)
    rule = partial(shrink, orders=orders)
    plain = Seen(reconciled.table, 1.0)
    one_way_tables = _one_way_tables(reconciled, plain, rule, orders, shrunk=True)
    alone = all(len(one.axes) < 2 for one in reconciled.measured)  # then no joint ties them together
    whole = (
        None if alone else fit_whole(reconciled, {axes[0]: table for axes, table in one_way_tables.items()})
    )
    if whole is None:
        return _targets(reconciled, plain, one_way_tables, rule, tree=True)
    seen = _positive(reconciled, whole) if prod(reconciled.shape) <= reconciled.total else plain
    one_way_tables = _one_way_tables(reconciled, seen, rule, orders, shrunk=True)
    shrunk = _targets(reconciled, seen, one_way_tables, rule, tree=seen is plain)
    return _mean(shrunk, whole.joint)


def undenoised(reconciled: Reconciled) -> Targets:
    """The same without shrinkage: non-negative and consistent only."""
    _check(reconciled)
    seen = Seen(reconciled.table, 1.0)
    one_way_tables = _one_way_tables(reconciled, seen, _keep, {}, shrunk=False)
    return _targets(reconciled, seen, one_way_tables, _keep, tree=False)


def _keep(found: Mapping[Axes, Deviation], one_way: Mapping[int, Floats], total: float) -> dict[Axes, Floats]:
    """No shrinkage."""
    return {axes: one.counts for axes, one in found.items()}


@dataclass(frozen=True)
class Seen:
    """The counts the shrinkage looks at, and the share of the noise that is left in the one-way tables."""

    table: Callable[[Axes], Floats]
    passed: float


def _positive(reconciled: Reconciled, whole: Whole) -> Seen:
    """The tables of the nearest joint, whose cells are not negative.

    For joints with at least one row per cell: in a large sparse table that would only add bias, since many cells at zero add up.
    """
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
    tree: bool,
) -> Targets:
    built = dict(one_way_tables)
    orders = _orders(reconciled)
    for order in sorted(orders)[1:]:
        predicted = {axes: _predicted(axes, built, reconciled, seen) for axes in orders[order]}
        tables = _shrunk(predicted, built, reconciled, rule)
        if order == 2 and tree:
            moved = _toward_tree(predicted, built, tables, reconciled)
            tables = _shrunk({**predicted, **moved}, built, reconciled, rule) if moved else tables
        built.update(tables)
    for axes in reconciled.maximal():
        if len(axes) > NARROW:
            noise = 0.0 if rule is _keep else reconciled.mean_variance(axes)
            built[axes] = fit_wide(axes, seen.table(axes), built, reconciled, rule, noise)
    return _finish(reconciled, built)


def _orders(reconciled: Reconciled) -> dict[int, list[Axes]]:
    """The sets to build one from another, by order: all inside narrow tables, and the pairs inside wide ones."""
    found: dict[int, set[Axes]] = defaultdict(set)
    for axes in reconciled.maximal():
        for order in range(1, (len(axes) if len(axes) <= NARROW else PAIRS) + 1):
            found[order].update(combinations(axes, order))
    return {order: sorted(sets) for order, sets in found.items()}


@dataclass(frozen=True)
class Predicted:
    """A table as the others predict it, and what its own counts show beyond that."""

    table: Floats
    beyond: Deviation

    def moved(self, step: Floats) -> "Predicted":
        """The same after a step that leaves the margins alone."""
        return Predicted(self.table + step, Deviation(self.beyond.counts - step, self.beyond.variance))


def _predicted(axes: Axes, built: Mapping[Axes, Floats], reconciled: Reconciled, seen: Seen) -> Predicted:
    start = _prediction(axes, built, reconciled)
    return Predicted(start, _deviation(axes, start, reconciled, seen))


def _shrunk(
    predicted: Mapping[Axes, Predicted], built: Mapping[Axes, Floats], reconciled: Reconciled, rule: Shrinker
) -> dict[Axes, Floats]:
    """Tables of one order, each between its prediction and its counts; `built` are the smaller ones."""
    one_way = {axis: built[(axis,)] / reconciled.total for axis in range(len(reconciled.shape))}
    kept = rule({axes: one.beyond for axes, one in predicted.items()}, one_way, reconciled.total)
    return {
        axes: reconciled.table(axes)
        if _is_exact(axes, one, reconciled)
        else _rebuild(axes, one.table, kept[axes], one.beyond.variance, built)
        for axes, one in predicted.items()
    }


def _is_exact(axes: Axes, one: Predicted, reconciled: Reconciled) -> bool:
    """Without noise; with a column of one level there is no interaction to be exact: the table is its prediction."""
    return one.beyond.variance == 0 and freedom(axes, reconciled.shape) > 0


def _toward_tree(
    predicted: Mapping[Axes, Predicted],
    one_way: Mapping[Axes, Floats],
    pairs: Mapping[Axes, Floats],
    reconciled: Reconciled,
) -> dict[Axes, Predicted]:
    """Noisy pairs outside the tree of the strongest `pairs`, moved toward what it implies as far as their own counts agree."""
    total = reconciled.total
    noisy = [axes for axes, one in predicted.items() if one.beyond.variance > 0]
    if not noisy:
        return {}
    found = {axes: table / total for axes, table in pairs.items()}
    tables = implied(found, {axes[0]: table / total for axes, table in one_way.items()}, noisy)
    moved = {}
    for axes, table in tables.items():
        one = predicted[axes]
        goal = np.where(one.table > 0, (1 - TRACE) * total * table + TRACE * one.table, 0.0)
        step = (sweep_to(goal, axes, _faces(axes, one_way)) if reconciled.zeros else goal) - one.table
        taken = share(one.beyond, step)
        if taken > 0:
            moved[axes] = one.moved(taken * step)
    return moved


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
    reconciled: Reconciled, seen: Seen, rule: Shrinker, orders: Mapping[int, Ordered], *, shrunk: bool
) -> dict[Axes, Floats]:
    """Every one-way table, shrunk toward uniform (over its possible levels)."""
    total, start = reconciled.total, _uniform(reconciled)
    found = {axes: _deviation(axes, start[axes], reconciled, seen) for axes in start}
    found = {axes: Deviation(one.counts, one.variance * seen.passed) for axes, one in found.items()}
    kept = rule(found, {axes[0]: table / total for axes, table in start.items()}, total)
    return {
        axes: one_way_table(table, found[axes], kept[axes], total, shrunk, orders.get(axes[0]))
        for axes, table in start.items()
    }


def _uniform(reconciled: Reconciled) -> dict[Axes, Floats]:
    """The total spread evenly over the possible levels of every attribute."""
    start: dict[Axes, Floats] = {}
    for axis, size in enumerate(reconciled.shape):
        empty = zero_cells((axis,), reconciled.shape, reconciled.zeros)
        start[(axis,)] = np.where(empty, 0.0, reconciled.total / (size - np.count_nonzero(empty)))
    return start


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
    return sqrt(reconciled.mean_variance(axes)) / reconciled.total


def work(shape: tuple[int, ...], tables: Sequence[Axes]) -> tuple[float, int]:
    """Operations (passes over one number) and peak bytes of reconciling and denoising.

    Every table of the closure is shrunk over a grid of sizes; tables of three and more columns are then swept to agreement, some twenty times
    over each of their faces.
    """
    closure = {part for axes in tables for k in range(1, len(axes) + 1) for part in combinations(axes, k)}
    cells = sum(prod(shape[axis] for axis in axes) for axes in tables)
    calls = 26 * len(closure) + sum(30 * len(axes) for axes in tables if len(axes) > 2)
    operations, peak = joint_fit.work(shape, tables)
    return operations + CALL * calls + 1_100 * cells, peak + 140 * cells + 3_000 * len(tables)
