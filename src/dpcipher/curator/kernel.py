"""The counting kernel: coded columns to counts of every table, a block of rows at a time, on all cores.

Counting a row costs as much in a table of ten cells as in one of ten thousand. Tables that overlap are therefore counted together, as margins of one
joint table that still fits into a processor's cache: the 91 pairs of Adult's 14 columns are margins of 31. Counts are integers, so that their sum is the
same whatever is counted together, in which blocks, by which thread.

Where there are very many tables, many rows are sorted first, and those that repeat are counted once, with the number of times that they occur.
"""

import math
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from itertools import takewhile
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpcipher.tables.covering import BLOCK_ROWS, JOINT_ROWS, few_joint_tables
from dpcipher.tables.domain import Axes, CodeColumn, Counts
from dpcipher.tables.table import margin

Columns = Sequence[CodeColumn]  # the codes of some rows, attribute by attribute
Item = TypeVar("Item")
Result = TypeVar("Result")
Kind = Literal["joint", "table"]  # counted as margins of joint tables, or one by one

SORTED_ROWS = 2**20  # rows that are sorted at a time, so that those that repeat are counted once
SORTING_TABLES = 64  # joint tables that counting must take for sorting to be the lesser work
MOST_TABLES = 5_000  # for which it is found out beforehand
REPEATED = 4  # times that a row must occur, on average
LARGEST_UINT16, LARGEST_INT32, LARGEST_INT64 = 2**16 - 1, 2**31 - 1, 2**63 - 1
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


def distinct_rows(columns: Columns, shape: Sequence[int]) -> tuple[Columns, Counts]:
    """The rows that differ, and how often each occurs: sorted by their cells of the full table.

    >>> distinct_rows([np.array([1, 0, 1]), np.array([2, 0, 2])], (2, 3))
    ([array([0, 1]), array([0, 2])], array([1, 2]))
    """
    starts = range(0, len(columns[0]), BLOCK_ROWS)
    blocks = ([column[start : start + BLOCK_ROWS] for column in columns] for start in starts)
    cells = np.concatenate([np.ravel_multi_index(block, tuple(shape)) for block in blocks])
    distinct, times = np.unique(cells, return_counts=True)
    codes = np.unravel_index(distinct, shape)
    return [code.astype(column.dtype) for code, column in zip(codes, columns, strict=True)], times


def joined_columns(pieces: Sequence[Columns]) -> Columns:
    """Rows one piece after the other."""
    return pieces[0] if len(pieces) == 1 else [np.concatenate(parts) for parts in zip(*pieces, strict=True)]


class TableCounter:
    """Adds up the counts of given tables over blocks of rows; several threads may add at once."""

    def __init__(self, shape: Sequence[int], tables: Sequence[Axes]) -> None:
        self._shape, self._tables = tuple(shape), tuple(tables)
        self._lock = threading.Lock()
        self._counts: dict[tuple[Kind, Axes], Counts] = {}
        self.n_rows, self._together = 0, False

    @cached_property
    def _joints(self) -> dict[Axes, Axes]:
        return few_joint_tables(self._shape, [axes for axes in self._tables if axes])

    @cached_property
    def sorts(self) -> bool:
        """Whether rows are sorted, `SORTED_ROWS` at a time, before they are counted; the first such piece tells whether they repeat."""
        if not SORTING_TABLES <= len(self._tables) <= MOST_TABLES or math.prod(self._shape) > LARGEST_INT64:
            return False
        return len(set(self._joints.values())) >= SORTING_TABLES

    def add(self, columns: Columns) -> None:
        """Count rows; the codes of one row stand at one place of every column."""
        n_rows, times = len(columns[0]), None
        kind: Kind = "joint" if n_rows >= JOINT_ROWS else "table"
        with self._lock:
            self.n_rows += n_rows
            self._together |= kind == "joint"
            tables = dict.fromkeys(self._joints.values() if kind == "joint" else self._tables)
        if n_rows >= SORTED_ROWS and self.sorts:
            distinct, occur = distinct_rows(columns, self._shape)
            self.sorts = REPEATED * len(occur) <= n_rows
            columns, times = (distinct, occur) if self.sorts else (columns, None)
        self._count(kind, [axes for axes in tables if axes], columns, times)

    def _count(self, kind: Kind, tables: Sequence[Axes], columns: Columns, times: Counts | None) -> None:
        """Count tables, a block of rows at a time; every column is asked for once, since it may have to be read."""
        held = {axis: columns[axis] for axis in {axis for axes in tables for axis in axes}}
        for start in range(0, len(columns[0]), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            block = {axis: column[rows] for axis, column in held.items()}
            for axes, numbers in cell_numbers(block, self._shape, tables):
                self._add(kind, axes, numbers, None if times is None else times[rows])

    def _add(self, kind: Kind, axes: Axes, numbers: NDArray[Any], times: Counts | None) -> None:
        """Add rows to a table; one of more cells than rows is counted in place, since a table of these rows alone would be mostly zeros."""
        sizes = [self._shape[axis] for axis in axes]
        n_cells = math.prod(sizes)
        counts = np.bincount(numbers, times, n_cells) if n_cells <= len(numbers) else None
        with self._lock:
            if (kind, axes) not in self._counts:
                self._counts[kind, axes] = np.zeros(sizes, dtype=np.int64)
            total = self._counts[kind, axes].reshape(-1)
            if counts is None:
                np.add.at(total, numbers, 1 if times is None else times)
            else:
                total += counts.astype(np.int64, copy=False)  # of rows that repeat, whole numbers as floats

    def tables(self) -> tuple[Counts, ...]:
        """The counts of every table so far."""
        return tuple(self._table(axes) for axes in self._tables)

    def _table(self, axes: Axes) -> Counts:
        if not axes:
            return np.array(self.n_rows, dtype=np.int64)
        counts = np.zeros([self._shape[axis] for axis in axes], dtype=np.int64)
        if self._together:
            joint = self._joints[axes]
            counts += margin(self._counts["joint", joint], joint, axes)
        if ("table", axes) in self._counts:
            counts += self._counts["table", axes]
        return counts


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
