"""Where true counts come from: private rows that are opened once and read once, before anything is charged.

    receive (open) ─▶ open_counts (read, encode, count) ─▶ counts of any table, on demand

Nothing goes back to the source after a charge: what a later question may need is held as counts or as coded rows. Only the session asks.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, final

import numpy as np
import pyarrow as pa

from dpcipher.curator.count import Tally, coded_rows, columns_of, count_batches, count_columns
from dpcipher.curator.request import Person
from dpcipher.marginals.arrays import Axes, Codes, Counts
from dpcipher.schema.schema import Schema
from dpcipher.tables.read import Source, open_table

# Up to so many cells the full table answers every question; beyond, the coded rows are kept.
FULL_TABLE_CELLS = 2**20
CHUNK_ROWS = 2**17  # coded rows are kept in pieces of about so many


class Incoming(ABC):
    """Private rows that have not been read yet; `kind` is the library that holds them. Either method reads them, once."""

    kind: str

    @abstractmethod
    def tally(self, tables: Sequence[Axes]) -> Tally:
        """The true counts of these tables."""

    @abstractmethod
    def rows(self) -> list[Codes]:
        """The codes of all rows that count, in pieces."""


@final
class LocalRows(Incoming):
    """Rows of a file, a frame or a stream."""

    def __init__(self, source: Source, schema: Schema, person: Person | None) -> None:
        self.kind, self._source, self._schema, self._person = source.kind, source, schema, person

    def tally(self, tables: Sequence[Axes]) -> Tally:
        """Counted batch by batch, in one pass."""
        return count_batches(self._batches(), self._schema, tables, self._person)

    def rows(self) -> list[Codes]:
        """Kept in memory."""
        return list(_joined(coded_rows(self._batches(), self._schema, self._person)))

    def _batches(self) -> Iterator[pa.RecordBatch]:
        return self._source.batches(wanted_columns(self._schema, self._person))


@final
class SparkRows(Incoming):
    """Rows of a Spark data frame, encoded where they are."""

    kind = "spark"

    def __init__(self, frame: Any, schema: Schema, person: Person | None) -> None:
        self._frame, self._schema, self._person = frame, schema, person

    def tally(self, tables: Sequence[Axes]) -> Tally:
        """Counted by Spark; only counts reach this process."""
        from dpcipher.curator.spark import spark_tally

        return spark_tally(self._frame, self._schema, tables, self._person)

    def rows(self) -> list[Codes]:
        """Codes on a file of this process that has no name, since Spark would read its source again for every question."""
        from dpcipher.curator.spark import spark_rows

        return spark_rows(self._frame, self._schema, self._person)


def is_spark(data: object) -> bool:
    """Whether `data` is a Spark data frame, told without importing Spark."""
    return any(
        base.__module__.startswith("pyspark.sql") and base.__name__ == "DataFrame"
        for base in type(data).__mro__
    )


def receive(data: Any, schema: Schema, person: Person | None = None) -> Incoming:
    """Open private rows, of whatever kind, without reading them."""
    if is_spark(data):
        return SparkRows(data, schema, person)
    return LocalRows(open_table(data), schema, person)


def wanted_columns(schema: Schema, person: Person | None) -> list[str]:
    """The columns to read, each once."""
    return list(dict.fromkeys([*schema.names, *([] if person is None else [person.column])]))


def _joined(pieces: Iterable[Codes]) -> Iterator[Codes]:
    """Pieces put together until they are worth a round of their own."""
    waiting: list[Codes] = []
    for piece in pieces:
        waiting.append(piece)
        if sum(map(len, waiting)) >= CHUNK_ROWS:
            yield np.concatenate(waiting)
            waiting = []
    if waiting:
        yield np.concatenate(waiting)


class CountSource(ABC):
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
class TableCounts(CountSource):
    """The full table of counts."""

    def __init__(self, table: Counts) -> None:
        self._table = np.ascontiguousarray(table, dtype=np.int64)
        self.n_rows = int(self._table.sum())

    def _counts(self, axes: Axes) -> Counts:
        drop = tuple(axis for axis in range(self._table.ndim) if axis not in axes)
        return np.asarray(self._table.sum(axis=drop)) if drop else self._table


@final
class RowCounts(CountSource):
    """Coded rows, in one piece or several, counted anew for every question."""

    def __init__(self, codes: Codes | Sequence[Codes], shape: tuple[int, ...]) -> None:
        pieces = [codes] if isinstance(codes, np.ndarray) else codes
        self._pieces, self._shape = [columns_of(piece) for piece in pieces], shape
        self.n_rows = sum(map(len, pieces))

    def _counts(self, axes: Axes) -> Counts:
        blank = np.zeros([self._shape[axis] for axis in axes], dtype=np.int64)
        return sum((count_columns(columns, self._shape, axes) for columns in self._pieces), blank)


@final
class CountedTables(CountSource):
    """The counts of tables that were known beforehand, counted in one pass; nothing else can be asked."""

    def __init__(self, tally: Tally, tables: Sequence[Axes]) -> None:
        self.n_rows, self._tables = tally.n_rows, dict(zip(tables, tally.tables, strict=True))

    def _counts(self, axes: Axes) -> Counts:
        return self._tables[axes]


def open_counts(incoming: Incoming, schema: Schema, tables: Sequence[Axes] | None = None) -> CountSource:
    """Read and encode private rows; every refusal of a row happens here, and the source is not needed again.

    Where it is known beforehand which `tables` will be asked for, those are counted and nothing else is kept.
    """
    if tables is not None:
        return CountedTables(incoming.tally(tables), tables)
    whole = tuple(range(len(schema.attrs)))
    if math.prod(schema.shape) <= FULL_TABLE_CELLS:
        return TableCounts(incoming.tally([whole]).tables[0])
    return RowCounts(incoming.rows(), schema.shape)
