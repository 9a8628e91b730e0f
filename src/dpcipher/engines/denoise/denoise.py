"""Denoise: shrink every interaction toward what the lower-order tables predict, by the amount its known noise justifies.

Order by order, small sets first. A one-way table is shrunk toward uniform; a table on S toward the table of largest entropy with
the already denoised margins (for a pair: the product of its one-way tables). What it shows beyond that is shrunk by the
empirical Bayes rule of `interactions`; one-way tables of many levels use the rule of `one_way`. Both use the order of levels, where there is one, as far as the
counts themselves speak for it. Then negative cells are removed and
proportional sweeps restore the margins, so that every table agrees with its own margins and with the others. Where the full table is
small, the joint itself is fitted as well (`joint_fit`), and the answer is halfway between the two. The noise level is public and nothing
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
from dpcipher.engines.denoise.interactions import Deviations, Ordered, Shrinker, shrink
from dpcipher.engines.denoise.joint_fit import JointFit, fit_joint
from dpcipher.engines.denoise.one_way import one_way_table
from dpcipher.engines.denoise.predicted import Known, deviations, parts, predict, rebuild
from dpcipher.engines.denoise.resolutions import Resolutions
from dpcipher.engines.denoise.wide import PAIRS, fit_wide
from dpcipher.engines.targets import Targets
from dpcipher.errors import SolveError
from dpcipher.release.reconcile import Reconciled
from dpcipher.tables.domain import Axes, Floats, zero_cells
from dpcipher.tables.raking import CALL, consensus
from dpcipher.tables.table import margin

NARROW = 3  # attributes of the widest table that is built order by order


def denoise(reconciled: Reconciled, orders: Mapping[int, Ordered] = MappingProxyType({})) -> Targets:
    """Shrunk, non-negative tables that agree: what an engine should reproduce.

    `orders` says which attributes have levels in an order, and which levels those are.
    """
    _check(reconciled)
    known = Resolutions(reconciled) if reconciled.merged else reconciled
    orders = known.orders(orders) if isinstance(known, Resolutions) else orders
    rule = partial(shrink, orders=orders)
    plain = ShrinkageInput(known.table, 1.0)
    one_way_tables = _one_way_tables(known, plain, rule, orders)
    # No joint ties single columns together; and the joint fit knows no order of levels, by which columns gain that are finer than their tables.
    alone = all(len(one.query.axes) < 2 for one in reconciled.measured) or isinstance(known, Resolutions)
    whole = (
        None if alone else fit_joint(reconciled, {axes[0]: table for axes, table in one_way_tables.items()})
    )
    if whole is None:
        return _targets(known, plain, one_way_tables, rule)
    seen = _positive(reconciled, whole) if prod(reconciled.shape) <= reconciled.total else plain
    one_way_tables = _one_way_tables(known, seen, rule, orders)
    shrunk = _targets(known, seen, one_way_tables, rule)
    return _mean(shrunk, whole.joint)


@dataclass(frozen=True)
class ShrinkageInput:
    """The counts the shrinkage looks at, and the share of the noise that is left in the one-way tables."""

    table: Callable[[Axes], Floats]
    noise_left: float


def _positive(reconciled: Reconciled, whole: JointFit) -> ShrinkageInput:
    """The tables of the nearest joint, whose cells are not negative.

    For joints with at least one row per cell: in a large sparse table that would only add bias, since many cells at zero add up.
    """
    everything, counts = tuple(range(len(reconciled.shape))), reconciled.total * whole.nearest
    return ShrinkageInput(lambda axes: margin(counts, everything, axes), whole.noise_left)


def _mean(targets: Targets, joint: Floats) -> Targets:
    """Halfway between the shrunk tables and those of the fitted joint: each errs where the other does not."""
    everything = tuple(range(joint.ndim))
    tables = {axes: 0.5 * (table + margin(joint, everything, axes)) for axes, table in targets.tables.items()}
    return replace(targets, tables=tables)


def _targets(
    reconciled: Known,
    seen: ShrinkageInput,
    one_way_tables: dict[Axes, Floats],
    rule: Shrinker,
) -> Targets:
    built = dict(one_way_tables)
    orders = _orders(reconciled)
    for order in sorted(orders)[1:]:
        coarser = reconciled.coarser(orders[order]) if isinstance(reconciled, Resolutions) else {}
        finest = [axes for axes in orders[order] if axes not in coarser]
        predicted = [predict(sets, built, reconciled, seen.table) for sets in parts(finest, reconciled)]
        tables = rebuild(predicted, built, reconciled, rule)
        built.update(tables)
        if isinstance(reconciled, Resolutions):
            built.update(
                {axes: reconciled.merged(tables[fine], fine, axes) for axes, fine in coarser.items()}
            )
    for axes in reconciled.maximal():
        if len(axes) > NARROW:
            built[axes] = fit_wide(
                axes, seen.table(axes), built, reconciled, rule, reconciled.mean_variance(axes)
            )
    return _finish(reconciled, built)


def _orders(reconciled: Known) -> dict[int, list[Axes]]:
    """The sets to build one from another, by order: all inside narrow tables, and the pairs inside wide ones."""
    found: dict[int, set[Axes]] = defaultdict(set)
    for axes in reconciled.maximal():
        for order in range(1, (len(axes) if len(axes) <= NARROW else PAIRS) + 1):
            found[order].update(combinations(axes, order))
    return {order: sorted(sets) for order, sets in found.items()}


def _check(reconciled: Reconciled) -> None:
    covered = {axis for one in reconciled.measured for axis in one.query.axes}
    missing = [axis for axis in range(len(reconciled.shape)) if axis not in covered]
    if missing:
        raise SolveError(
            f"axes {missing} are in no measured table; measure them, or leave those columns out of the schema"
        )
    if reconciled.total <= 0:
        raise SolveError(
            "the noise is larger than the counts: the reconciled number of rows is not positive; "
            "a larger epsilon, fewer tables, fewer columns or mechanism='gaussian' would help"
        )


def _one_way_tables(
    reconciled: Known, seen: ShrinkageInput, rule: Shrinker, orders: Mapping[int, Ordered]
) -> dict[Axes, Floats]:
    """Every one-way table, shrunk toward uniform (over its possible levels)."""
    total, start = reconciled.total, _uniform(reconciled)
    found = [_seen_beyond(start, sets, reconciled, seen) for sets in parts(start, reconciled)]
    kept = rule(found, {axes[0]: table / total for axes, table in start.items()}, total)
    tables = dict(start)
    for part, means in zip(found, kept, strict=True):
        for axes, beyond, variance, mean in zip(part.sets, part.counts, part.variance, means, strict=True):
            ordered = orders.get(axes[0])
            tables[axes] = one_way_table(start[axes], beyond, variance, mean, total, ordered)
    return reconciled.with_all_columns(tables) if isinstance(reconciled, Resolutions) else tables


def _seen_beyond(
    start: Mapping[Axes, Floats], sets: Sequence[Axes], reconciled: Known, seen: ShrinkageInput
) -> Deviations:
    """What one-way tables show beyond `start`, and the noise that is left in that."""
    found = deviations(sets, np.stack([start[axes] for axes in sets]), reconciled, seen.table)
    return replace(found, variance=found.variance * seen.noise_left)


def _uniform(reconciled: Known) -> dict[Axes, Floats]:
    """The total spread evenly over the possible levels of every attribute."""
    start: dict[Axes, Floats] = {}
    seen = reconciled.seen if isinstance(reconciled, Resolutions) else range(len(reconciled.shape))
    for axis, size in ((axis, reconciled.shape[axis]) for axis in seen):
        empty = zero_cells((axis,), reconciled.shape, reconciled.domain.zeros)
        start[(axis,)] = np.where(empty, 0.0, reconciled.total / (size - np.count_nonzero(empty)))
    return start


def _finish(reconciled: Known, built: Mapping[Axes, Floats]) -> Targets:
    """Probabilities of the maximal sets and of every attribute, in agreement."""
    sets = reconciled.maximal()
    largest = {axes: built[axes] / built[axes].sum() for axes in sets}
    sigma = {axes: _sigma(axes, reconciled) for axes in sets}
    if max(map(len, sets)) > 2:
        largest = consensus(largest, {axes: 1 / max(sigma[axes], 1e-12) ** 2 for axes in sets})
    if isinstance(reconciled, Resolutions):
        return reconciled.targets(largest, {axes: table for axes, table in built.items() if len(axes) == 1})
    tables = dict(largest)
    for axis in range(len(reconciled.shape)):
        if (axis,) not in tables:
            cover = next(axes for axes in sets if axis in axes)
            tables[(axis,)] = margin(largest[cover], cover, (axis,))
            sigma[(axis,)] = _sigma((axis,), reconciled)
    return Targets(reconciled.shape, reconciled.total, tables, sigma, reconciled.domain.zeros)


def _sigma(axes: Axes, reconciled: Known) -> float:
    """The standard deviation of the noise of a cell, on the scale of probabilities."""
    return sqrt(reconciled.mean_variance(axes)) / reconciled.total


def work(shape: tuple[int, ...], tables: Sequence[Axes]) -> tuple[float, int]:
    """Operations (passes over one number) and peak bytes of reconciling and denoising.

    Every table of the closure is shrunk over a grid of sizes, those of one shape together; tables of three and more columns are then swept to
    agreement, some twenty times over each of their faces.
    """
    closure = {part for axes in tables for k in range(1, len(axes) + 1) for part in combinations(axes, k)}
    cells = sum(prod(shape[axis] for axis in axes) for axes in tables)
    shapes = {tuple(shape[axis] for axis in axes) for axes in closure}
    calls = 27 * len(shapes) + 7 * len(closure) + sum(30 * len(axes) for axes in tables if len(axes) > 2)
    operations, peak = joint_fit.work(shape, tables)
    return operations + CALL * calls + 1_100 * cells, peak + 140 * cells + 3_000 * len(tables)
