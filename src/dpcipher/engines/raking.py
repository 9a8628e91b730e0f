"""Raking of a dense table: multiply until its margins are the wanted ones.

Classical raking (iterative proportional fitting) passes over the whole table twice for every goal. Here goals whose attributes
together make a small table are raked as one block: the table is summed down to the block, the block is raked, and the table is
multiplied by the ratio. That is the I-projection on all goals of the block at once, since they say something about that margin
only, so cyclic raking over blocks has the same limit as over single goals (Csiszár 1975), with three passes over the table of ten
attributes instead of forty-five.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpcipher.engines.raking import meet
from dpcipher.marginals.arrays import Axes, Floats
from dpcipher.marginals.tables import broadcast_over, margin

Cell = TypeVar("Cell", bound=np.generic)

# A table with no more cells than this is raked goal by goal: blocks would save nothing.
_DIRECT_CELLS = 1 << 15
# A block may have this fraction of the table's cells: raking it then costs less than one pass over the table.
_BLOCK_SHARE = 64
_INNER_SWEEPS = 12
# A raking ends when this many sweeps have left more than this share of the misfit.
_PATIENCE, _GAIN = 10, 0.9


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
    blocks = _blocks(goals, table.shape)
    return _repeat(
        lambda: max(_rake_block(table, *block, tolerance) for block in blocks), sweeps, tolerance, gain
    )


def _repeat(sweep: Callable[[], float], sweeps: int, tolerance: float, gain: float) -> Raked:
    """Sweep until the misfit before a sweep is within `tolerance`, or has stopped falling."""
    misfits: list[float] = []
    while len(misfits) < sweeps:
        misfits.append(sweep())
        stalled = len(misfits) > _PATIENCE and misfits[-1] > gain * misfits[-1 - _PATIENCE]
        if misfits[-1] <= tolerance or stalled:
            return Raked(len(misfits) - 1, misfits[-1])
    return Raked(sweeps, misfits[-1] if misfits else np.inf)


def gaps(table: Floats, goals: Sequence[Goal]) -> dict[Axes, Floats]:
    """The table's margin minus each goal; summed down by blocks first, so that many goals cost few passes."""
    blocks = (
        _blocks(goals, table.shape)
        if table.size > _DIRECT_CELLS
        else [(tuple(range(table.ndim)), list(goals))]
    )
    found: dict[Axes, Floats] = {}
    for axes, members in blocks:
        small = collapse(table, axes)
        found |= {
            tuple(axes[i] for i in goal.axes): collapse(small, goal.axes) - goal.table for goal in members
        }
    return found


def _distance(miss: Floats) -> float:
    """The total variation distance between two tables, from their difference."""
    return 0.5 * float(np.abs(miss).sum())


def _rake_directly(
    table: Floats, goals: Sequence[Goal], *, sweeps: int, tolerance: float, gain: float = _GAIN
) -> Raked:
    """Rake goal by goal; how each goal lies in the table is worked out once, because small tables take many quick sweeps."""
    steps = [_step(table, goal) for goal in goals]
    return _repeat(lambda: max((_rake_goal(*step) for step in steps), default=0.0), sweeps, tolerance, gain)


def _step(table: Floats, goal: Goal) -> tuple[Floats, Floats, Axes]:
    """The table with adjacent axes merged, the goal shaped to broadcast over it, and the axes to sum over."""
    shape, kept = _runs(table.shape, goal.axes)
    wide = [size if run in kept else 1 for run, size in enumerate(shape)]
    return (
        table.reshape(shape),
        goal.table.reshape(wide),
        tuple(run for run in range(len(shape)) if run not in kept),
    )


def _rake_goal(view: Floats, wanted: Floats, drop: Axes) -> float:
    """One factor of one goal, in place; returns the misfit before it."""
    now = view.sum(axis=drop, keepdims=True)
    meet(view, wanted, now)
    return _distance(now - wanted)


def _rake_block(table: Floats, axes: Axes, goals: Sequence[Goal], tolerance: float) -> float:
    """Rake the margin on `axes` and carry the ratio back; returns the worst misfit before it."""
    before = collapse(table, axes)
    worst = max(_distance(collapse(before, goal.axes) - goal.table) for goal in goals)
    if worst > tolerance:
        after = before.copy()
        _rake_directly(after, goals, sweeps=_INNER_SWEEPS, tolerance=tolerance / 10)
        carry(table, after, before, axes)
    return worst


def _blocks(goals: Sequence[Goal], shape: tuple[int, ...]) -> list[tuple[Axes, list[Goal]]]:
    """Group goals whose attributes together have few cells; first fit, in lexicographic order."""
    limit = max(_DIRECT_CELLS, prod(shape) // _BLOCK_SHARE)
    unions: list[set[int]] = []
    members: list[list[Goal]] = []
    for goal in sorted(goals, key=lambda goal: goal.axes):
        for union, group in zip(unions, members, strict=True):
            if prod(shape[axis] for axis in union.union(goal.axes)) <= limit:
                union.update(goal.axes)
                group.append(goal)
                break
        else:
            unions.append(set(goal.axes))
            members.append([goal])
    blocks = [tuple(sorted(union)) for union in unions]
    return [
        (axes, [_within(goal, axes) for goal in group]) for axes, group in zip(blocks, members, strict=True)
    ]


def _within(goal: Goal, axes: Axes) -> Goal:
    """The same goal, its axes counted inside the block."""
    return Goal(tuple(axes.index(axis) for axis in goal.axes), goal.table)


def collapse(table: Floats, keep: Axes) -> Floats:
    """The margin of `table` on the axes `keep`, adjacent axes merged first so that the sum runs over few, long dimensions."""
    shape, kept = _runs(table.shape, keep)
    summed = margin(table.reshape(shape), tuple(range(len(shape))), kept)
    return summed.reshape([table.shape[axis] for axis in keep])


def carry(table: Floats, after: Floats, before: Floats, axes: Axes) -> None:
    """Make the margin `before` of `table` on `axes` the margin `after`, in place, adjacent axes merged first."""
    shape, kept = _runs(table.shape, axes)
    wide = [size if run in kept else 1 for run, size in enumerate(shape)]
    meet(table.reshape(shape), after.reshape(wide), before.reshape(wide))


def cells_within(shape: tuple[int, ...], axes: Axes, union: Axes) -> NDArray[np.intp]:
    """For every cell of the table on `union`, the number of its cell in the table on `axes`."""
    numbers = np.arange(prod(shape[axis] for axis in axes)).reshape([shape[axis] for axis in axes])
    inside = tuple(union.index(axis) for axis in axes)
    return np.broadcast_to(
        broadcast_over(numbers, inside, range(len(union))), [shape[axis] for axis in union]
    ).ravel()


@lru_cache(maxsize=4096)
def _runs(shape: tuple[int, ...], keep: Axes) -> tuple[Axes, Axes]:
    """Merge neighbouring axes that are both kept or both not: the merged shape, and which of it is kept."""
    merged: list[int] = []
    flags: list[bool] = []
    for axis, size in enumerate(shape):
        if flags and flags[-1] == (axis in keep):
            merged[-1] *= size
        else:
            merged.append(size)
            flags.append(axis in keep)
    return tuple(merged), tuple(run for run, flag in enumerate(flags) if flag)


# Calling numpy costs about as much as passing over this many numbers.
CALL = 4_000


def work(shape: tuple[int, ...], goals: Sequence[Axes]) -> float:
    """The operations of one sweep over a table, an operation being a pass over one number."""
    cells = prod(shape)
    if cells <= _DIRECT_CELLS:
        return 2.0 * len(goals) * (CALL + cells)
    blocks = _blocks([Goal(axes, np.empty(0)) for axes in goals], shape)
    inner = sum(len(members) * (CALL + prod(shape[axis] for axis in axes)) for axes, members in blocks)
    return 3.0 * len(blocks) * (CALL + cells) + 2.0 * _INNER_SWEEPS * inner
