"""What private rows say, once they are read: the counts of any table. Only a session asks, and nothing of it leaves without noise.

Counts are held as one full table, as tables that were known beforehand, or as coded rows that are counted when something is asked.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import final

import numpy as np

from dpcipher.curator.kernel import Columns, TableCounter, in_threads
from dpcipher.curator.spill import recoded_columns
from dpcipher.curator.texts import PrivateTexts
from dpcipher.request.session import Recoding
from dpcipher.schema.narrow import code_type
from dpcipher.tables.covering import joint_tables
from dpcipher.tables.domain import Axes, Codes, Counts
from dpcipher.tables.table import margin

PASS_CELLS = 2**22  # of the tables that are counted in one pass over held rows
SHARED_CELLS = 2**10  # of a joint table that smaller ones are added up from


@dataclass(frozen=True)
class Tally:
    """True counts of every table, and the number of rows behind them. Never leaves the private side."""

    n_rows: int
    tables: tuple[Counts, ...]

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(
            self.n_rows + other.n_rows, tuple(a + b for a, b in zip(self.tables, other.tables, strict=True))
        )


class CountSource(ABC):
    """What the private rows say: the counts of any table, and the number of rows."""

    n_rows: int
    texts: Mapping[int, PrivateTexts] = MappingProxyType({})  # of the axes whose levels are yet to be found

    @final
    def text_counts(self, axis: int) -> dict[str, int]:
        """The number of rows of each text that is in them. Private."""
        return self.texts[axis].counted(self.counts((axis,)))

    @final
    def counts(self, axes: Axes) -> Counts:
        """The true counts over `axes`; over none, the number of rows."""
        return self._counts(axes) if axes else np.array(self.n_rows, dtype=np.int64)

    def many(self, tables: Sequence[Axes]) -> Iterator[Counts]:
        """The true counts of many tables, in their order, counted when they are asked for."""
        return (self.counts(axes) for axes in tables)

    def expect(self, tables: Sequence[Axes]) -> None:  # noqa: B027 - most have their counts at hand
        """Tables that will be asked for next, one by one: what must count rows for them does so together."""

    @abstractmethod
    def recoded(self, codes: Recoding, shape: tuple[int, ...]) -> "CountSource":
        """The same rows with other codes on some axes: a public look-up of each, so that every row goes its own way (stability 1)."""

    @abstractmethod
    def _counts(self, axes: Axes) -> Counts:
        """The true counts over at least one axis."""


@final
class TableCounts(CountSource):
    """The full table of counts."""

    def __init__(self, table: Counts) -> None:
        self._table = np.ascontiguousarray(table, dtype=np.int64)
        self.n_rows = int(self._table.sum())

    def _counts(self, axes: Axes) -> Counts:
        return margin(self._table, tuple(range(self._table.ndim)), axes)

    def many(self, tables: Sequence[Axes]) -> Iterator[Counts]:
        """Tables that overlap are margins of a joint one, which is added up once."""
        joints, held = joint_tables(self._table.shape, tables, SHARED_CELLS), dict[Axes, Counts]()
        for axes in tables:
            joint = joints[axes]
            if joint != axes and joint not in held:
                held[joint] = self.counts(joint)
            yield margin(held[joint], joint, axes) if joint != axes else self.counts(axes)

    def recoded(self, codes: Recoding, shape: tuple[int, ...]) -> CountSource:
        """Cells that get the same code are added up."""
        table = self._table
        for axis, code in codes.items():
            merged = np.zeros([*table.shape[:axis], shape[axis], *table.shape[axis + 1 :]], dtype=np.int64)
            np.add.at(np.moveaxis(merged, axis, 0), code, np.moveaxis(table, axis, 0))
            table = merged
        return TableCounts(table)


@final
class RowCounts(CountSource):
    """Coded rows, in one piece or several, counted anew for every question, but for those that are expected together."""

    def __init__(self, codes: Codes | Sequence[Codes | Columns], shape: tuple[int, ...]) -> None:
        pieces = [codes] if isinstance(codes, np.ndarray) else codes
        self._pieces, self._shape = [columns_of(piece) for piece in pieces], shape
        self.n_rows = sum(len(columns[0]) for columns in self._pieces)
        self._expected: list[list[Axes]] = []
        self._counted: dict[Axes, Counts] = {}

    def expect(self, tables: Sequence[Axes]) -> None:
        """Nothing is counted until the first is asked for; then some at a time are, and kept until the next are."""
        self._expected = list(_within(list(dict.fromkeys(tables)), self._shape, PASS_CELLS))
        self._counted = {}

    def _counts(self, axes: Axes) -> Counts:
        if axes not in self._counted:
            together = next((some for some in self._expected if axes in some), None)
            if together is None:
                return next(self.many([axes]))
            self._counted = dict(zip(together, self.many(together), strict=True))
        return self._counted[axes]

    def many(self, tables: Sequence[Axes]) -> Iterator[Counts]:
        """Some tables at a time, each time in one pass over the rows."""
        for some in _within(tables, self._shape, PASS_CELLS):
            counter = TableCounter(self._shape, some)
            counting = in_threads if len(self._pieces) > 1 else map
            for _ in counting(counter.add, self._pieces):
                pass
            yield from counter.tables()

    def recoded(self, codes: Recoding, shape: tuple[int, ...]) -> CountSource:
        """The columns of those axes anew, the others as they are."""
        other = RowCounts([], shape)
        narrow = {axis: code.astype(code_type(shape[axis])) for axis, code in codes.items()}
        other._pieces = [recoded_columns(columns, narrow) for columns in self._pieces]
        other.n_rows = self.n_rows
        return other


@final
class CountedTables(CountSource):
    """The counts of tables that were known beforehand, counted in one pass; nothing else can be asked."""

    def __init__(self, tally: Tally, tables: Sequence[Axes]) -> None:
        self.n_rows, self._tables = tally.n_rows, dict(zip(tables, tally.tables, strict=True))

    def _counts(self, axes: Axes) -> Counts:
        return self._tables[axes]

    def recoded(self, codes: Recoding, shape: tuple[int, ...]) -> CountSource:
        """Never: tables that are counted beforehand have their codes, and the rows of an open schema are kept."""
        raise AssertionError("rows of an open schema are kept")


def columns_of(codes: Codes | Columns) -> Columns:
    """The columns of coded rows, each in one piece of memory."""
    if not isinstance(codes, np.ndarray):
        return codes
    return [np.ascontiguousarray(codes[:, axis]) for axis in range(codes.shape[1])]


def _within(tables: Sequence[Axes], shape: tuple[int, ...], most_cells: int) -> Iterator[list[Axes]]:
    """Tables in their order, so many at a time that their cells are within bounds; at least one."""
    some: list[Axes] = []
    n_cells = 0
    for axes in tables:
        cells = math.prod(shape[axis] for axis in axes)
        if some and n_cells + cells > most_cells:
            yield some
            some, n_cells = [], 0
        some.append(axes)
        n_cells += cells
    if some:
        yield some
