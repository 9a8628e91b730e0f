"""Counting private rows: opened once and read once, before anything is charged; then counts of any table, on demand.

    receive (open) ─▶ open_counts (read, encode, count) ─▶ CountSource

One kernel turns coded rows into partial counts of every table, whatever holds the rows. Partial counts are integers, so their sum is the same
whatever the chunks, their order or the threads. Stability: a row counts once in every table, so that one row more or less changes one cell of each by
one. Nothing goes back to the source after a charge: what a later question may need is held as counts or as coded rows. Only the session asks.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpcipher.curator.request import Person
from dpcipher.errors import DataError
from dpcipher.marginals.arrays import Axes, Codes, Counts
from dpcipher.schema.cells import as_id, by_type
from dpcipher.schema.schema import Schema
from dpcipher.tables.header import said_extra
from dpcipher.tables.read import Source, open_declared

Owned = tuple[pa.Array, Codes]
LARGEST_INT32 = 2**31 - 1


@dataclass(frozen=True)
class Tally:
    """True counts of every table, and the number of rows behind them. Never leaves the private side."""

    n_rows: int
    tables: tuple[Counts, ...]

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(
            self.n_rows + other.n_rows, tuple(a + b for a, b in zip(self.tables, other.tables, strict=True))
        )


def empty_tally(schema: Schema, tables: Sequence[Axes]) -> Tally:
    """Zero rows."""
    return Tally(0, tuple(np.zeros([schema.shape[a] for a in axes], dtype=np.int64) for axes in tables))


def count_codes(codes: Codes, shape: tuple[int, ...], tables: Sequence[Axes]) -> Tally:
    """The kernel: coded rows to counts of every table."""
    columns = columns_of(codes)
    return Tally(len(codes), tuple(count_columns(columns, shape, axes) for axes in tables))


def columns_of(codes: Codes) -> list[Codes]:
    """The columns of coded rows, each in one piece of memory."""
    return [np.ascontiguousarray(codes[:, axis], dtype=np.int32) for axis in range(codes.shape[1])]


def count_columns(columns: Sequence[Codes], shape: tuple[int, ...], axes: Axes) -> Counts:
    """The counts of one table: every row is the number of its cell, and those are counted."""
    sizes = [shape[axis] for axis in axes]
    n_cells = math.prod(sizes)
    # 32 bits are half the memory to go through; only a table that large needs more for the number of a cell.
    width: type[np.signedinteger[Any]] = np.int32 if n_cells <= LARGEST_INT32 else np.int64
    number: NDArray[Any] = columns[axes[0]].astype(width, copy=len(axes) > 1)
    for axis in axes[1:]:
        number *= shape[axis]
        number += columns[axis]
    return np.bincount(number, minlength=n_cells).astype(np.int64, copy=False).reshape(sizes)


def count_batches(
    batches: Iterable[pa.RecordBatch], schema: Schema, tables: Sequence[Axes], person: Person | None = None
) -> Tally:
    """Add up the kernel's counts over a stream of batches."""
    tally = empty_tally(schema, tables)
    for codes in coded_rows(batches, schema, person):
        tally += count_codes(codes, schema.shape, tables)
    return tally


def coded_rows(
    batches: Iterable[pa.RecordBatch], schema: Schema, person: Person | None = None
) -> Iterator[Codes]:
    """The codes of the rows that count: of all, or of at most `max_rows` for each person."""
    if person is None:
        return (schema.encode(batch) for batch in batches)
    owned = [owned_rows(batch, schema, person) for batch in batches]
    return iter([limit_person(owned, person.max_rows)] if owned else [])


def owned_rows(batch: pa.RecordBatch, schema: Schema, person: Person) -> Owned:
    """Whose row each is, and its codes. A row that names nobody is refused, or left out as if it had never been there."""
    owner = by_type(batch.column(person.column), as_id).cast(pa.large_string())
    if owner.null_count and person.missing == "refuse":
        raise DataError(
            f"person column ({person.column}) has rows without a person; every row must say whose it is. Curator only: "
            "fill the column, or leave such rows out with missing_person='drop'"
        )
    named = pc.is_valid(owner)
    batch = batch.select(list(schema.names))
    return (owner.filter(named), schema.encode(batch.filter(named) if owner.null_count else batch))


def limit_person(owned: Sequence[Owned], max_rows: int) -> Codes:
    """Coded rows, at most `max_rows` of them for each person.

    Stability `max_rows`: which rows stay depends on each person's own rows alone (those with the smallest hash), not on the order of the
    table, so one person more or less changes the counts by that person's rows and no others.
    """
    rows = np.concatenate([codes for _, codes in owned])
    owner = pa.concat_arrays([ids for ids, _ in owned]).dictionary_encode().indices.to_numpy()
    order = np.lexsort((_row_hash(rows), owner))
    ranked = owner[order]
    starts = (
        np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1]]) if len(ranked) else np.empty(0, dtype=np.int64)
    )
    rank = np.arange(len(ranked)) - np.repeat(starts, np.diff(np.r_[starts, len(ranked)]))
    return np.asarray(rows[order[rank < max_rows]])


def _row_hash(rows: Codes) -> NDArray[np.uint64]:
    """A fixed mix of a row's codes; equal rows hash alike, and then it does not matter which of them stays."""
    mixed = np.full(len(rows), 0x9E3779B97F4A7C15, dtype=np.uint64)
    for column in rows.T:
        mixed ^= (
            column.astype(np.uint64)
            + np.uint64(0x9E3779B97F4A7C15)
            + (mixed << np.uint64(6))
            + (mixed >> np.uint64(2))
        )
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
    return mixed


# Up to so many cells the full table answers every question; beyond, the coded rows are kept.
FULL_TABLE_CELLS = 2**20
CHUNK_ROWS = 2**17  # coded rows are kept in pieces of about so many


class Incoming(ABC):
    """Private rows that have not been read yet; `kind` is the library that holds them. Either method reads them, once."""

    kind: str
    extra = ""  # how many columns are not in the schema, in words

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
        self.extra = said_extra(source.names, wanted_columns(schema, person))

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
    return LocalRows(open_declared(data, schema), schema, person)


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
