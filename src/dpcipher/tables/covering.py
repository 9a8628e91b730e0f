"""Few joint tables that have many given tables among their margins, so that counting the few is counting all."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpcipher.tables.domain import Axes, Shape

# How much of private rows is kept and counted at a time: public numbers, which a plan needs too.
FULL_TABLE_CELLS = (
    2**20
)  # up to so many cells the full table answers every question; beyond, the coded rows are kept
MEMORY_BYTES = 2**28  # of codes that are held in memory
JOINT_CELLS = (2**15, 2**11, 2**7)  # of the largest joint table; less where there would be very many of them
ALL_JOINT_CELLS = 2**23  # of all joint tables together
JOINT_ROWS = 2**13  # rows from which joint tables pay
BLOCK_ROWS = 2**17

Item = TypeVar("Item")


def joint_tables(shape: Shape, tables: Sequence[Axes], most_cells: int) -> dict[Axes, Axes]:
    """For each table a joint table that holds it: one of the tables, or one of at most `most_cells` cells. Greedily, the largest tables first.

    >>> joint_tables((2, 2, 2, 9), [(0, 1), (0, 2), (1, 2), (0, 3)], 8)
    {(0, 3): (0, 3), (0, 1): (0, 1, 2), (0, 2): (0, 1, 2), (1, 2): (0, 1, 2)}
    """
    wanted = set(tables)
    orders = sorted({len(axes) for axes in wanted})
    pairs = np.zeros((len(shape), len(shape)), dtype=np.int32)
    _add_pairs(pairs, wanted, 1)
    joints: dict[Axes, Axes] = {}
    for seed in sorted(wanted, key=lambda axes: (-math.prod(shape[axis] for axis in axes), axes)):
        if seed not in joints:
            joint = _grown(seed, shape, pairs, most_cells)
            inside = [axes for order in orders for axes in combinations(joint, order)]
            covered = [axes for axes in inside if axes in wanted and axes not in joints]
            joints |= dict.fromkeys(covered, joint)
            _add_pairs(pairs, covered, -1)
    return joints


def _add_pairs(pairs: NDArray[np.int32], tables: Iterable[Axes], times: int) -> None:
    """How many of the tables bring each pair of axes together."""
    for axes in tables:
        for first, second in combinations(axes, 2):
            pairs[first, second] += times
            pairs[second, first] += times


def _grown(seed: Axes, shape: Shape, pairs: NDArray[np.int32], most_cells: int) -> Axes:
    """A table and further axes, as long as it stays small: each the one that brings most pairs, the smallest among equals."""
    joint, cells = list(seed), math.prod(shape[axis] for axis in seed)
    sizes = np.asarray(shape)
    gained = pairs[joint].sum(axis=0)
    while True:
        possible = (gained > 0) & (sizes <= most_cells // cells)
        possible[joint] = False
        axes = np.flatnonzero(possible)
        if not len(axes):
            return tuple(sorted(joint))
        best = int(axes[np.lexsort((sizes[axes], -gained[axes]))[0]])
        joint.append(best)
        cells *= shape[best]
        gained = gained + pairs[best]


def few_joint_tables(shape: tuple[int, ...], tables: Sequence[Axes]) -> dict[Axes, Axes]:
    """Joint tables for given ones: as few as memory for their counts allows."""
    for most_cells in JOINT_CELLS:
        joints = joint_tables(shape, tables, most_cells)
        if sum(math.prod(shape[axis] for axis in axes) for axes in set(joints.values())) <= ALL_JOINT_CELLS:
            return joints
    return {axes: axes for axes in tables}


def at_once(items: Sequence[Item], cells: Callable[[Item], int], most: int) -> Iterator[list[Item]]:
    """Items in their order, as many at a time as have at most so many cells together; at least one."""
    some: list[Item] = []
    n_cells = 0
    for item in items:
        if some and n_cells + cells(item) > most:
            yield some
            some, n_cells = [], 0
        some.append(item)
        n_cells += cells(item)
    if some:
        yield some
