"""How much of private rows is held and counted at a time: public numbers, which a plan needs too."""

import math
from collections.abc import Sequence

from dpcipher.tables.covering import joint_tables
from dpcipher.tables.domain import Axes

FULL_TABLE_CELLS = (
    2**20
)  # up to so many cells the full table answers every question; beyond, the coded rows are kept
MEMORY_BYTES = 2**28  # of codes that are held in memory
JOINT_CELLS = (2**15, 2**11, 2**7)  # of the largest joint table; less where there would be very many of them
ALL_JOINT_CELLS = 2**23  # of all joint tables together
JOINT_ROWS = 2**13  # rows from which joint tables pay
BLOCK_ROWS = 2**17


def few_joint_tables(shape: tuple[int, ...], tables: Sequence[Axes]) -> dict[Axes, Axes]:
    """Joint tables for given ones: as few as memory for their counts allows."""
    for most_cells in JOINT_CELLS:
        joints = joint_tables(shape, tables, most_cells)
        if sum(math.prod(shape[axis] for axis in axes) for axes in set(joints.values())) <= ALL_JOINT_CELLS:
            return joints
    return {axes: axes for axes in tables}
