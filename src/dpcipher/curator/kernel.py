"""The counting kernel: coded columns to counts of every table, a block of rows at a time, on all cores.

Counting a row costs as much in a table of ten cells as in one of ten thousand. Tables that overlap are therefore counted together, as margins of one
joint table that still fits into a processor's cache: the 91 pairs of Adult's 14 columns are margins of 31. Counts are integers, so that their sum is the
same whatever is counted together, in which blocks, by which thread.
"""

import math
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpcipher.marginals.arrays import Axes, CodeColumn, Counts
from dpcipher.marginals.covering import joint_tables
from dpcipher.marginals.tables import margin

Columns = Sequence[CodeColumn]  # the codes of some rows, attribute by attribute
Item = TypeVar("Item")
Result = TypeVar("Result")

JOINT_CELLS = (2**15, 2**11, 2**7)  # of the largest joint table; less where there would be very many of them
ALL_JOINT_CELLS = 2**23  # of all joint tables together
JOINT_ROWS = 2**13  # rows from which joint tables pay
BLOCK_ROWS = 2**17
LARGEST_UINT16, LARGEST_INT32 = 2**16 - 1, 2**31 - 1
MAX_THREADS = 4


def count_columns(columns: Columns, shape: Sequence[int], axes: Axes) -> Counts:
    """The counts of one table: every row is the number of its cell, and those are counted."""
    sizes = [shape[axis] for axis in axes]
    counts = np.zeros(math.prod(sizes), dtype=np.int64)
    rows = max(BLOCK_ROWS, 4 * counts.size)  # every block writes all cells
    for start in range(0, len(columns[axes[0]]), rows):
        block = [columns[axis][start : start + rows] for axis in axes]
        counts += np.bincount(_cell_numbers(block, sizes), minlength=counts.size)
    return counts.reshape(sizes)


def _cell_numbers(block: Columns, sizes: Sequence[int]) -> NDArray[Any]:
    """The number of each row's cell, in an integer that holds every number of the table."""
    n_cells = math.prod(sizes)
    width: Any = (
        np.uint16 if n_cells <= LARGEST_UINT16 else np.int32 if n_cells <= LARGEST_INT32 else np.int64
    )
    number = block[0].astype(width)
    for column, size in zip(block[1:], sizes[1:], strict=True):
        number *= width(size)
        number += column.astype(width, copy=False)
    return number


def joined_columns(pieces: Sequence[Columns]) -> Columns:
    """Rows one piece after the other."""
    return pieces[0] if len(pieces) == 1 else [np.concatenate(parts) for parts in zip(*pieces, strict=True)]


class TableCounter:
    """Adds up the counts of given tables over blocks of rows; several threads may add at once."""

    def __init__(self, shape: Sequence[int], tables: Sequence[Axes]) -> None:
        self._shape, self._tables = tuple(shape), tuple(tables)
        self._lock = threading.Lock()
        self._joints: dict[Axes, Axes] = {}
        self._counts: dict[tuple[str, Axes], Counts] = {}
        self.n_rows = 0

    def add(self, columns: Columns) -> None:
        """Count rows; the codes of one row stand at one place of every column."""
        n_rows = len(columns[0])
        with self._lock:
            self.n_rows += n_rows
            if n_rows >= JOINT_ROWS and not self._joints:
                self._joints = few_joint_tables(self._shape, [axes for axes in self._tables if axes])
        together = n_rows >= JOINT_ROWS
        for axes in dict.fromkeys(self._joints.values() if together else self._tables):
            if axes:
                self._count("joint" if together else "table", axes, columns)

    def _count(self, kind: str, axes: Axes, columns: Columns) -> None:
        """Count one table; one with more cells than there are rows is counted in place, since a table of these rows alone would be mostly zeros."""
        sizes = [self._shape[axis] for axis in axes]
        if math.prod(sizes) <= len(columns[0]):
            self._add(kind, axes, count_columns(columns, self._shape, axes))
            return
        numbers = _cell_numbers([columns[axis] for axis in axes], sizes)
        with self._lock:
            if (kind, axes) not in self._counts:
                self._counts[kind, axes] = np.zeros(sizes, dtype=np.int64)
            np.add.at(self._counts[kind, axes].reshape(-1), numbers, 1)

    def _add(self, kind: str, axes: Axes, counts: Counts) -> None:
        with self._lock:
            if (kind, axes) in self._counts:
                self._counts[kind, axes] += counts
            else:
                self._counts[kind, axes] = counts

    def tables(self) -> tuple[Counts, ...]:
        """The counts of every table so far."""
        return tuple(self._table(axes) for axes in self._tables)

    def _table(self, axes: Axes) -> Counts:
        if not axes:
            return np.array(self.n_rows, dtype=np.int64)
        counts = np.zeros([self._shape[axis] for axis in axes], dtype=np.int64)
        joint = self._joints.get(axes, axes)
        if ("joint", joint) in self._counts:
            counts += margin(self._counts["joint", joint], joint, axes)
        if ("table", axes) in self._counts:
            counts += self._counts["table", axes]
        return counts


def few_joint_tables(shape: tuple[int, ...], tables: Sequence[Axes]) -> dict[Axes, Axes]:
    """Joint tables for given ones: as few as memory for their counts allows."""
    for most_cells in JOINT_CELLS:
        joints = joint_tables(shape, tables, most_cells)
        if sum(math.prod(shape[axis] for axis in axes) for axes in set(joints.values())) <= ALL_JOINT_CELLS:
            return joints
    return {axes: axes for axes in tables}


def n_threads() -> int:
    """How many cores this process may use, within reason."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(usable, MAX_THREADS)


def in_threads(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """`work` on every item, on all cores; results, and what is raised, come in the order of the items, few of which are held at a time."""
    threads = n_threads()
    if threads == 1:
        yield from map(work, items)
        return
    waiting: deque[Future[Result]] = deque()
    pool = ThreadPoolExecutor(threads)
    try:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
