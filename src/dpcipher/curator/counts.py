"""Counting private rows: opened once and read once, before anything is charged; then counts of any table, on demand.

    receive (open) ─▶ open_counts (read, encode, count) ─▶ CountSource

One kernel turns coded rows into partial counts of every table, whatever holds the rows. Partial counts are integers, so their sum is the same
whatever the chunks, their order or the threads. Stability: a row counts once in every table, so that one row more or less changes one cell of each by
one. Counts are held as one full table, as tables that were known beforehand, or as coded rows that are counted when something is asked: nothing goes back to the
source after a charge. Only a session asks, and nothing leaves without noise.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, final

import numpy as np
import pyarrow as pa

from dpcipher.curator.held import HeldRows, recoded_columns
from dpcipher.curator.kernel import SORTED_ROWS, Columns, TableCounter, in_threads, joined_columns
from dpcipher.curator.persons import limited_rows
from dpcipher.curator.texts import NO_TEXTS, Dictionaries, PrivateTexts, numbered
from dpcipher.errors import ParameterError, Progress, silent
from dpcipher.io.header import describe_ignored
from dpcipher.io.source import Source, open_declared
from dpcipher.privacy.terms import Privacy
from dpcipher.request.session import Recoding
from dpcipher.schema.cells import code_type
from dpcipher.schema.open_levels import OpenLevels
from dpcipher.schema.schema import Schema
from dpcipher.tables.covering import FULL_TABLE_CELLS, at_once, joint_tables
from dpcipher.tables.domain import Axes, Codes, Counts
from dpcipher.tables.table import margin

if TYPE_CHECKING:
    from dpcipher.curator.spark import SparkRows

PASS_CELLS = 2**22  # of the tables that are counted in one pass over held rows
SHARED_CELLS = 2**10  # of a joint table that smaller ones are added up from


@dataclass(frozen=True)
class Tally:
    """True counts of every table, and the number of rows behind them. Never leaves the private side."""

    n_rows: int
    tables: tuple[Counts, ...]


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
        self._expected = list(self._passes(list(dict.fromkeys(tables))))
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
        for some in self._passes(tables):
            counter = TableCounter(self._shape, some)
            counting = in_threads if len(self._pieces) > 1 else map
            for _ in counting(counter.add, self._pieces):
                pass
            yield from counter.tables()

    def _passes(self, tables: Sequence[Axes]) -> Iterator[list[Axes]]:
        return at_once(tables, lambda axes: math.prod(self._shape[axis] for axis in axes), PASS_CELLS)

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


def count_codes(codes: Codes | Columns, shape: tuple[int, ...], tables: Sequence[Axes]) -> Tally:
    """Coded rows to counts of every table."""
    counter = TableCounter(shape, tables)
    counter.add(columns_of(codes))
    return Tally(counter.n_rows, counter.tables())


def count_batches(
    batches: Iterable[pa.RecordBatch], schema: Schema, tables: Sequence[Axes], privacy: Privacy | None = None
) -> Tally:
    """Add up the kernel's counts over a stream of batches, each encoded and counted by whichever core is free."""
    counter = TableCounter(schema.shape, tables)
    if counter.sorts:
        counted = in_threads(counter.add, _joined(coded_rows(batches, schema, privacy), SORTED_ROWS))
    elif privacy is None or privacy.cap is None:
        counted = in_threads(lambda batch: counter.add(schema.encode_columns(batch)), batches)
    else:
        counted = map(counter.add, coded_rows(batches, schema, privacy))
    for _ in counted:
        pass
    return Tally(counter.n_rows, counter.tables())


def coded_rows(
    batches: Iterable[pa.RecordBatch],
    schema: Schema,
    privacy: Privacy | None = None,
    texts: Dictionaries = NO_TEXTS,
) -> Iterator[Columns]:
    """The codes of the rows that count: of all, or of at most `max_rows` for each person."""
    if privacy is None or privacy.cap is None:
        return in_threads(lambda batch: schema.encode_columns(numbered(batch, texts)), batches)
    return limited_rows(batches, schema, privacy.cap, privacy.unit.max_rows, texts)


CHUNK_ROWS = 2**17  # coded rows are kept in pieces of about so many


@final
class LocalRows:
    """Rows of a file, a frame or a stream, which have not been read yet; either method reads them, once.

    `kind` is the library that holds them, `extra` says how many columns are not in the schema. Where the reader drops blank rows, the number of
    rows that are read is not the table's.
    """

    def __init__(
        self,
        source: Source,
        schema: Schema,
        privacy: Privacy | None,
        texts: Dictionaries = NO_TEXTS,
        progress: Progress = silent,
    ) -> None:
        self.kind, self._source, self._schema, self._privacy = source.kind, source, schema, privacy
        self.texts, self._progress = texts, progress
        self.drops_blank_rows = source.drops_blank_rows
        self.extra = describe_ignored(source.names, wanted_columns(schema, privacy))

    def tally(self, tables: Sequence[Axes]) -> Tally:
        """Counted batch by batch, in one pass."""
        with self._batches() as batches:
            return count_batches(batches, self._schema, tables, self._privacy)

    def rows(self) -> list[Columns]:
        """Kept in memory, or in a file without a name where they are many."""
        held = HeldRows()
        with self._batches() as batches:
            for columns in _joined(coded_rows(batches, self._schema, self._privacy, self.texts), CHUNK_ROWS):
                held.add(columns)
        return held.blocks

    def _batches(self) -> AbstractContextManager[Iterator[pa.RecordBatch]]:
        """After it, nothing is left open in an engine that the rows come from, even where a row was refused."""
        return closing(
            self._source.with_progress(wanted_columns(self._schema, self._privacy), self._progress)
        )


def is_spark(data: object) -> bool:
    """Whether `data` is a Spark data frame, told without importing Spark."""
    return any(
        base.__module__.startswith("pyspark.sql") and base.__name__ == "DataFrame"
        for base in type(data).__mro__
    )


def receive(
    data: Any, schema: Schema, privacy: Privacy | None = None, *, progress: Progress = silent
) -> "LocalRows | SparkRows":
    """Open private rows, of whatever kind, without reading them. Those of an open schema will be coded on its grid."""
    texts = {column.name: PrivateTexts(column) for column in schema.columns if isinstance(column, OpenLevels)}
    if privacy is not None and privacy.cap is not None and privacy.cap.column in texts:
        raise ParameterError(
            f"person column ({privacy.cap.column}) must not be one whose levels are found and published; leave it out of the schema"
        )
    declared, schema = schema, schema.on_grid()
    if is_spark(data):
        if texts:
            raise ParameterError(
                "data (Spark data frame) must be a file or a local table where levels are found (levels: discover): the texts are told apart "
                "in one process; write the frame to Parquet and measure that"
            )
        from dpcipher.curator.spark import SparkRows

        return SparkRows(data, schema, privacy)
    return LocalRows(open_declared(data, declared), schema, privacy, texts, progress)


def wanted_columns(schema: Schema, privacy: Privacy | None) -> list[str]:
    """The columns to read, each once."""
    owner = [] if privacy is None or privacy.cap is None else [privacy.cap.column]
    return list(dict.fromkeys([*schema.names, *owner]))


def _joined(pieces: Iterable[Columns], n_rows: int) -> Iterator[Columns]:
    """Pieces put together until they have so many rows."""
    waiting: list[Columns] = []
    for piece in pieces:
        waiting.append(piece)
        if sum(len(columns[0]) for columns in waiting) >= n_rows:
            yield joined_columns(waiting)
            waiting = []
    if waiting:
        yield joined_columns(waiting)


def open_counts(
    incoming: "LocalRows | SparkRows",
    schema: Schema,
    tables: Sequence[Axes] | None = None,
    *,
    foreseen: Sequence[Axes] | None = None,
) -> CountSource:
    """Read and encode private rows; every refusal of a row happens here, and the source is not needed again.

    Where it is known beforehand which `tables` will be asked for, those are counted and nothing else is kept; so too where it is known that all that
    will be asked for is among few `foreseen` ones. The rows of an open schema are coded on its grid.
    """
    schema = schema.on_grid()
    if tables is not None:
        return CountedTables(incoming.tally(tables), tables)
    whole = tuple(range(len(schema.attrs)))
    if math.prod(schema.shape) <= FULL_TABLE_CELLS:
        return TableCounts(incoming.tally([whole]).tables[0])
    if foreseen is not None:
        return CountedTables(incoming.tally(foreseen), foreseen)
    return _kept_rows(incoming, schema)


def _kept_rows(incoming: "LocalRows | SparkRows", schema: Schema) -> RowCounts:
    """Coded rows with the private dictionaries of their texts, whose sizes are known only now."""
    pieces = incoming.rows()
    texts = {schema.attrs.index(name): dictionary for name, dictionary in incoming.texts.items()}
    shape = tuple(texts[axis].size if axis in texts else size for axis, size in enumerate(schema.shape))
    kept = RowCounts(pieces, shape)
    kept.texts = texts
    return kept
