"""Tables made non-negative and made to agree: the nearest table, raking to wanted margins, and consensus between tables.

Classical raking (iterative proportional fitting) passes over the whole table twice for every goal. Here goals whose attributes
together make a small table are raked as one block: the table is summed down to the block, the block is raked, and the table is
multiplied by the ratio. That is the I-projection on all goals of the block at once, since they say something about that margin
only, so cyclic raking over blocks has the same limit as over single goals (Csiszár 1975), with three passes over the table of ten
attributes instead of forty-five.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import prod

import numpy as np

from dpcipher.tables.domain import Axes, Floats, Shape
from dpcipher.tables.table import broadcast_over, margin, pair_margins

# Sweeps of small tables to agreement: at the most, and the distance, as a share of the total, that ends them.
SWEEPS = 100
CLOSE = 1e-10
# Margins that contradict one another drive cells toward nothing; below this a ratio of margins could overflow.
VANISHING = 1e-150
# A table with no more cells than this is raked goal by goal: blocks would save nothing.
_DIRECT_CELLS = 1 << 15
# A block may have this fraction of the table's cells: raking it then costs less than one pass over the table.
_BLOCK_SHARE = 64
_INNER_SWEEPS = 12
# A raking ends when this many sweeps have left more than this share of the misfit.
_PATIENCE, _GAIN = 10, 0.9


def nearest(table: Floats, total: float) -> Floats:
    """The non-negative table with sum `total` that is nearest in least squares (subtract a constant, clip at zero).

    >>> nearest(np.array([3.0, 1.0, -2.0]), 2.0)
    array([2., 0., 0.])
    """
    if table.min(initial=0.0) >= 0 and abs(float(table.sum()) - total) <= 1e-12 * abs(total):
        return table
    flat = np.sort(table, axis=None)[::-1]
    excess = (np.cumsum(flat) - total) / np.arange(1, flat.size + 1)
    return np.asarray(np.maximum(table - excess[np.nonzero(flat > excess)[0][-1]], 0.0))


def ratio(wanted: Floats, have: Floats) -> Floats:
    """wanted / have, 0 where there is nothing to scale."""
    if have.min(initial=np.inf) > 0:
        return wanted / have
    return np.divide(wanted, have, out=np.zeros_like(have), where=have > 0)


def meet(table: Floats, wanted: Floats, have: Floats) -> None:
    """Scale `table`, in place, so that its margin `have` becomes `wanted`; all of the same number of dimensions.

    A margin that has all but vanished is met by the shares of its cells, which are at most one, instead of by a ratio.
    """
    if have.min(initial=np.inf) > VANISHING or not ((have > 0) & (have <= VANISHING)).any():
        table *= ratio(wanted, have)
    else:
        np.divide(table, have, out=table, where=have > 0)
        table *= wanted


@dataclass(frozen=True)
class Goal:
    """A margin to reach: the axes of the table it keeps, and its probabilities."""

    axes: Axes
    table: Floats


@dataclass(frozen=True)
class Raked:
    """How a raking ended: the sweeps used, and the worst TVD between a goal and the table's margin."""

    sweeps: int
    misfit: float


def rake(
    table: Floats, goals: Sequence[Goal], *, sweeps: int, tolerance: float, gain: float = _GAIN
) -> Raked:
    """Rake `table`, contiguous in memory, in place until every goal is met within `tolerance` (a TVD), or nothing is gained any more.

    Goals that no table has (noisy ones seldom have one) are approached and then circled: ten sweeps that leave
    more than the share `gain` of the misfit end it.
    """
    if table.size <= _DIRECT_CELLS:
        return _rake_directly(table, goals, sweeps=sweeps, tolerance=tolerance, gain=gain)
    blocks, misfits = _blocks(goals, table.shape), list[float]()
    while len(misfits) < sweeps:
        misfits.append(max(_rake_block(table, *block, tolerance) for block in blocks))
        stalled = len(misfits) > _PATIENCE and misfits[-1] > gain * misfits[-1 - _PATIENCE]
        if misfits[-1] <= tolerance or stalled:
            return Raked(len(misfits) - 1, misfits[-1])
    return Raked(sweeps, misfits[-1] if misfits else np.inf)


def _rake_directly(
    table: Floats, goals: Sequence[Goal], *, sweeps: int, tolerance: float, gain: float = _GAIN
) -> Raked:
    """Rake one table goal by goal."""
    own = [Goal(goal.axes, goal.table[None]) for goal in goals]
    return rake_stack(table[None], own, sweeps=sweeps, tolerance=np.array([tolerance]), gain=gain)


def rake_stack(
    tables: Floats,
    goals: Sequence[Goal],
    *,
    sweeps: int = SWEEPS,
    tolerance: Floats | None = None,
    gain: float | None = None,
) -> Raked:
    """Rake tables of one shape, one after another in an array, in place; each goal holds a margin for every table.

    A table that has all of its margins, each within its `tolerance` (a TVD; by default next to nothing of its total), is left alone from then on. Zeros stay zero.
    """
    if tolerance is None:
        total = np.min([_sums(goal.table) for goal in goals], axis=0)
        tolerance = CLOSE / 2 * np.maximum(total, 1e-300)
    left, part = np.arange(len(tables)), np.ascontiguousarray(tables)
    steps = _steps(part, goals)
    misfits: list[float] = []
    while len(misfits) < sweeps:
        worst = np.zeros(len(left))
        for view, wanted, drop in steps:
            have = view.sum(axis=drop, keepdims=True)
            np.maximum(worst, 0.5 * _sums(np.abs(have - wanted)), out=worst)
            meet(view, wanted, have)
        misfits.append(float(worst.max(initial=0.0)))
        if part is not tables:
            tables[left] = part
        going = worst > tolerance[left]
        stalled = (
            gain is not None and len(misfits) > _PATIENCE and misfits[-1] > gain * misfits[-1 - _PATIENCE]
        )
        if stalled or not going.any():
            return Raked(len(misfits) - 1, misfits[-1])
        if not going.all():
            left = left[going]
            part = tables[left]
            steps = _steps(part, [Goal(goal.axes, goal.table[left]) for goal in goals])
    return Raked(sweeps, misfits[-1] if misfits else np.inf)


def _steps(tables: Floats, goals: Sequence[Goal]) -> list[tuple[Floats, Floats, Axes]]:
    """For each goal the tables with neighbouring axes merged, its margins over these, and the axes that are summed; worked out once, because
    small tables take many quick sweeps."""
    steps = []
    for goal in goals:
        shape, wide, drop = _runs(tables.shape[1:], goal.axes)
        view, wanted = tables.reshape(-1, *shape), goal.table.reshape(-1, *wide)
        steps.append((view, wanted, tuple(1 + axis for axis in drop)))
    return steps


def _sums(tables: Floats) -> Floats:
    """The sum of each table."""
    return np.asarray(tables.reshape(len(tables), -1).sum(axis=1))


def gaps(table: Floats, goals: Sequence[Goal]) -> dict[Axes, Floats]:
    """The table's margin minus each goal; all pairs by matrix products, others summed down by blocks, so that many goals cost few passes."""
    large = table.size > _DIRECT_CELLS
    if large and all(len(goal.axes) == 2 for goal in goals):
        pairs = pair_margins(table)
        return {goal.axes: pairs[goal.axes[0], goal.axes[1]] - goal.table for goal in goals}
    blocks = _blocks(goals, table.shape) if large else [(tuple(range(table.ndim)), list(goals))]
    differences: dict[Axes, Floats] = {}
    for axes, members in blocks:
        small = collapse(table, axes)
        for goal in members:
            differences[tuple(axes[i] for i in goal.axes)] = collapse(small, goal.axes) - goal.table
    return differences


def _distance(miss: Floats) -> float:
    """The total variation distance between two tables, from their difference."""
    return 0.5 * float(np.abs(miss).sum())


def _rake_block(table: Floats, axes: Axes, goals: Sequence[Goal], tolerance: float) -> float:
    """Rake the margin on `axes` and carry the ratio back; returns the worst misfit before it."""
    before = collapse(table, axes)
    worst = max(_distance(collapse(before, goal.axes) - goal.table) for goal in goals)
    if worst > tolerance:
        after = before.copy()
        _rake_directly(after, goals, sweeps=_INNER_SWEEPS, tolerance=tolerance / 10)
        carry(table, after, before, axes)
    return worst


def _blocks(goals: Sequence[Goal], shape: Shape) -> list[tuple[Axes, list[Goal]]]:
    """Group goals whose attributes together have few cells, first fit, in lexicographic order; a goal's axes count inside its block."""
    limit = max(_DIRECT_CELLS, prod(shape) // _BLOCK_SHARE)
    groups: list[tuple[set[int], list[Goal]]] = []
    for goal in sorted(goals, key=lambda goal: goal.axes):
        for union, members in groups:
            if prod(shape[axis] for axis in union.union(goal.axes)) <= limit:
                union.update(goal.axes)
                members.append(goal)
                break
        else:
            groups.append((set(goal.axes), [goal]))
    blocks = [(tuple(sorted(union)), members) for union, members in groups]
    return [
        (axes, [Goal(tuple(axes.index(axis) for axis in goal.axes), goal.table) for goal in members])
        for axes, members in blocks
    ]


def collapse(table: Floats, keep: Axes) -> Floats:
    """The margin of `table` on the axes `keep`, adjacent axes merged first so that the sum runs over few, long dimensions."""
    shape, _, drop = _runs(table.shape, keep)
    summed = table.reshape(shape).sum(axis=drop) if drop else table
    return summed.reshape([table.shape[axis] for axis in keep])


def carry(table: Floats, after: Floats, before: Floats, axes: Axes) -> None:
    """Make the margin `before` of `table` on `axes` the margin `after`, in place, adjacent axes merged first."""
    shape, wide, _ = _runs(table.shape, axes)
    meet(table.reshape(shape), after.reshape(wide), before.reshape(wide))


@lru_cache(maxsize=4096)
def _runs(shape: Shape, keep: Axes) -> tuple[Shape, Shape, Axes]:
    """Merge neighbouring axes that are both kept or both not: the merged shape, that of the margin over it, and the axes summed."""
    merged: list[int] = []
    kept: list[bool] = []
    for axis, size in enumerate(shape):
        if kept and kept[-1] == (axis in keep):
            merged[-1] *= size
        else:
            merged.append(size)
            kept.append(axis in keep)
    wide = tuple(size if own else 1 for size, own in zip(merged, kept, strict=True))
    return tuple(merged), wide, tuple(run for run, own in enumerate(kept) if not own)


def consensus(
    tables: Mapping[Axes, Floats], weight: Mapping[Axes, float], *, sweeps: int = SWEEPS
) -> dict[Axes, Floats]:
    """Make tables agree on what they share: sweep each to the weighted mean of the shared margins, until none moves."""
    shared = _shared(tables)
    result = {axes: table.copy() for axes, table in tables.items()}
    for _ in range(sweeps):
        worst = 0.0
        for keep, covers in shared.items():
            have = {axes: margin(result[axes], axes, keep) for axes in covers}
            total = sum(weight[axes] for axes in covers)
            mean = sum((weight[axes] / total * have[axes] for axes in covers), np.zeros(1))
            for axes in covers:
                worst = max(worst, float(np.abs(have[axes] - mean).sum()))
                meet(result[axes], broadcast_over(mean, keep, axes), broadcast_over(have[axes], keep, axes))
        if worst < CLOSE:
            break
    return result


def _shared(tables: Collection[Axes]) -> dict[Axes, list[Axes]]:
    """The largest sets that two tables have in common, each with all the tables that hold it."""
    if len(tables) == 1:
        return {}
    holding: dict[Axes, list[Axes]] = {}
    for axes in tables:
        for k in range(1, len(axes)):
            for sub in combinations(axes, k):
                holding.setdefault(sub, []).append(axes)
    shared = {sub: covers for sub, covers in holding.items() if len(covers) > 1}
    inside = {
        (small, axes)
        for sub, covers in shared.items()
        for small in combinations(sub, len(sub) - 1)
        for axes in covers
    }
    return {
        sub: covers for sub, covers in shared.items() if any((sub, axes) not in inside for axes in covers)
    }


# Calling numpy costs about as much as passing over this many numbers.
CALL = 4_000


def work(shape: Shape, goals: Sequence[Axes]) -> float:
    """The operations of one sweep over a table, an operation being a pass over one number."""
    cells = prod(shape)
    if cells <= _DIRECT_CELLS:
        return 2.0 * len(goals) * (CALL + cells)
    blocks = _blocks([Goal(axes, np.empty(0)) for axes in goals], shape)
    inner = sum(len(members) * (CALL + prod(shape[axis] for axis in axes)) for axes, members in blocks)
    return 3.0 * len(blocks) * (CALL + cells) + 2.0 * _INNER_SWEEPS * inner
