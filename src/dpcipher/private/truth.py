"""True counts of any table, on demand. Private: only the door asks."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import final

import numpy as np

from dpcipher.private.count import Axes, Codes, Counts, Tally, columns_of, count_columns
from dpcipher.private.incoming import Incoming
from dpcipher.schema.schema import Schema

# Up to so many cells the full table answers every question; beyond, the coded rows are kept.
FULL_TABLE_CELLS = 2**20


class Truth(ABC):
    """What the private rows say: the counts of any table, and the number of rows."""

    n_rows: int

    @final
    def counts(self, axes: Axes) -> Counts:
        """The true counts over `axes`; over none, the number of rows."""
        return self._counts(axes) if axes else np.array(self.n_rows, dtype=np.int64)

    def many(self, tables: Sequence[Axes]) -> Iterator[Counts]:
        """The true counts of many tables, in their order, counted when they are asked for."""
        return (self.counts(axes) for axes in tables)

    @abstractmethod
    def _counts(self, axes: Axes) -> Counts:
        """The true counts over at least one axis."""


@final
class TableTruth(Truth):
    """The full table of counts."""

    def __init__(self, table: Counts) -> None:
        self._table = np.ascontiguousarray(table, dtype=np.int64)
        self.n_rows = int(self._table.sum())

    def _counts(self, axes: Axes) -> Counts:
        drop = tuple(axis for axis in range(self._table.ndim) if axis not in axes)
        return np.asarray(self._table.sum(axis=drop)) if drop else self._table


@final
class RowsTruth(Truth):
    """Coded rows, in one piece or several, counted anew for every question."""

    def __init__(self, codes: Codes | Sequence[Codes], shape: tuple[int, ...]) -> None:
        pieces = [codes] if isinstance(codes, np.ndarray) else codes
        self._pieces, self._shape = [columns_of(piece) for piece in pieces], shape
        self.n_rows = sum(map(len, pieces))

    def _counts(self, axes: Axes) -> Counts:
        blank = np.zeros([self._shape[axis] for axis in axes], dtype=np.int64)
        return sum((count_columns(columns, self._shape, axes) for columns in self._pieces), blank)


@final
class CountedTables(Truth):
    """The counts of tables that were known beforehand, counted in one pass; nothing else can be asked."""

    def __init__(self, tally: Tally, tables: Sequence[Axes]) -> None:
        self.n_rows, self._tables = tally.n_rows, dict(zip(tables, tally.tables, strict=True))

    def _counts(self, axes: Axes) -> Counts:
        return self._tables[axes]


def open_truth(incoming: Incoming, schema: Schema, tables: Sequence[Axes] | None = None) -> Truth:
    """Read and encode private rows; every refusal of a row happens here, and the source is not needed again.

    Where it is known beforehand which `tables` will be asked for, those are counted and nothing else is kept.
    """
    if tables is not None:
        return CountedTables(incoming.tally(tables), tables)
    whole = tuple(range(len(schema.attrs)))
    if math.prod(schema.shape) <= FULL_TABLE_CELLS:
        return TableTruth(incoming.tally([whole]).tables[0])
    return RowsTruth(incoming.rows(), schema.shape)
