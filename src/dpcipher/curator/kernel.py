"""The counting kernel: coded columns to counts of every table, a block of rows at a time, on all cores.

Counting a row costs as much in a table of ten cells as in one of ten thousand. Tables that overlap are therefore counted together, as margins of one
joint table that still fits into a processor's cache: the 91 pairs of Adult's 14 columns are margins of 31. Counts are integers, so that their sum is the
same whatever is counted together, in which blocks, by which thread.
"""

import math
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import takewhile
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


def cell_numbers(
    block: Mapping[int, CodeColumn], shape: Sequence[int], tables: Iterable[Axes]
) -> Iterator[tuple[Axes, NDArray[Any]]]:
    """Each table with the number of every row's cell in it; sorted, since tables that begin with the same axes share the numbers of those."""
    before: Axes = ()
    begun: list[NDArray[Any]] = []  # the numbers in the tables of the first axes of the last table
    for axes in sorted(tables):
        shared = sum(1 for _ in takewhile(lambda two: two[0] == two[1], zip(before, axes, strict=False)))
        del begun[shared:]
        for order in range(shared, len(axes)):
            begun.append(_extended(begun, block[axes[order]], [shape[axis] for axis in axes[: order + 1]]))
        yield axes, begun[-1]
        before = axes


def _extended(begun: Sequence[NDArray[Any]], column: CodeColumn, sizes: Sequence[int]) -> NDArray[Any]:
    """The numbers of one axis more, in an integer that holds every number of the table."""
    n_cells = math.prod(sizes)
    width: Any = (
        np.uint16 if n_cells <= LARGEST_UINT16 else np.int32 if n_cells <= LARGEST_INT32 else np.int64
    )
    if not begun:
        return np.asarray(column, dtype=width)
    numbers: NDArray[Any] = begun[-1].astype(width, copy=False) * width(sizes[-1])
    numbers += column.astype(width, copy=False)
    return numbers


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
        kind, tables = ("joint", self._joints.values()) if together else ("table", self._tables)
        self._count(kind, [axes for axes in dict.fromkeys(tables) if axes], columns)

    def _count(self, kind: str, tables: Sequence[Axes], columns: Columns) -> None:
        """Count tables, a block of rows at a time; every column is asked for once, since it may have to be read."""
        held = {axis: columns[axis] for axis in {axis for axes in tables for axis in axes}}
        for start in range(0, len(columns[0]), BLOCK_ROWS):
            block = {axis: column[start : start + BLOCK_ROWS] for axis, column in held.items()}
            for axes, numbers in cell_numbers(block, self._shape, tables):
                self._add(kind, axes, numbers)

    def _add(self, kind: str, axes: Axes, numbers: NDArray[Any]) -> None:
        """Add rows to a table; one of more cells than rows is counted in place, since a table of these rows alone would be mostly zeros."""
        sizes = [self._shape[axis] for axis in axes]
        n_cells = math.prod(sizes)
        counts = np.bincount(numbers, minlength=n_cells) if n_cells <= len(numbers) else None
        with self._lock:
            if (kind, axes) not in self._counts:
                self._counts[kind, axes] = np.zeros(sizes, dtype=np.int64)
            total = self._counts[kind, axes].reshape(-1)
            if counts is None:
                np.add.at(total, numbers, 1)
            else:
                total += counts

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
