"""Any table as Arrow record batches. The reader decides nothing private and never quotes a cell.

The type of a column never follows from its cells. Typed sources (Arrow, polars, Parquet, DuckDB, typed pandas columns) hand on the type that they
declare; untyped ones hand on each cell by itself: text files as text, Python objects (pandas objects, Excel, SQLite, PostgreSQL) by the type of each
(`io.objects`). What a cell means is then read from that cell alone (`schema.cells`), as its column asks.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from os import PathLike
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dpcipher.errors import DpcipherError, ParameterError, TableFileError
from dpcipher.files.codec import is_number
from dpcipher.io.databases import ibis_backend, is_ibis, postgres_batches
from dpcipher.io.excel import warn_of_sheets
from dpcipher.io.files import find_files
from dpcipher.io.header import check_names
from dpcipher.io.objects import frame_batches
from dpcipher.schema.columns import Categorical
from dpcipher.schema.format import PLAIN, FileFormat
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Codes

STREAM_ROWS = 2**18
TableKind = Literal["pandas", "polars", "pyarrow", "duckdb", "path", "arrow"]
Batches = Iterator[pa.RecordBatch]
# Closing it lets an engine go, whoever still holds what failed.
Closable = Generator[pa.RecordBatch, None, None]


@runtime_checkable
class ArrowStream(Protocol):
    """Whatever speaks the Arrow stream protocol."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """A capsule that holds the stream."""


@dataclass(frozen=True)
class Source:
    """A table to read: its column names, and how to get at its rows in batches.

    `share` says how much of it was read, where that is known, and `is_text` that a separator sets apart names and cells. `drops_blank_rows` says that
    a row without any value cannot be told from the end of the table: such rows are left out one by one, so that the number of rows is not the table's.
    """

    kind: TableKind
    names: tuple[str, ...]
    read: Callable[[tuple[str, ...]], Batches]
    share: Callable[[], float] = lambda: 0.0
    is_text: bool = False
    drops_blank_rows: bool = False

    def batches(self, columns: Sequence[str]) -> Closable:
        """The rows in batches, these columns only; every batch holds each of them once."""
        check_names(self.names, columns, is_text=self.is_text)
        return (_checked(batch) for batch in self.read(tuple(columns)))

    def with_progress(self, columns: Sequence[str], progress: Callable[[str], None]) -> Closable:
        """The rows in batches; of files, `progress` hears of each quarter. It hears the same whatever is in them: a log must not depend on rows.

        A file without a row is refused: it was not written whole. An empty frame may be meant.
        """
        if self.kind != "path":
            yield from self.batches(columns)
            return
        quarter = n_rows = 0
        for batch in self.batches(columns):
            yield batch
            n_rows += batch.num_rows
            while quarter < min(int(4 * self.share()), 3):
                quarter += 1
                progress(f"reading: {25 * quarter} %")
        if not n_rows:
            raise TableFileError(
                "data (a file) must have rows below the names of its columns, and has none; nothing is charged for it. Curator only: check "
                "that it was written whole"
            )
        for rest in range(quarter + 1, 4):
            progress(f"reading: {25 * rest} %")


def _checked(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch as it is, if its dictionaries have every value that its cells refer to: in a damaged file they may not, and Arrow does not look."""
    for name, cells in zip(batch.schema.names, batch.columns, strict=True):
        if isinstance(cells, pa.DictionaryArray) and len(cells) > cells.null_count:
            least, most = pc.min_max(cells.indices).values()
            if not 0 <= least.as_py() <= most.as_py() < len(cells.dictionary):
                raise TableFileError(
                    f"column {name!r}: cells refer to values that its dictionary does not have; the table is damaged, write it again"
                )
    return batch


def open_table(data: object, format: FileFormat = PLAIN, *, numbers: frozenset[str] = frozenset()) -> Source:
    """Look at a table without reading its rows: a path or glob of files, a frame, or an Arrow stream.

    `format` says how CSV and TSV files are written, and `numbers` in which columns its marks of numbers count.
    """
    if isinstance(data, str | PathLike):
        return _open_path(str(data), format, numbers)
    if isinstance(data, pd.DataFrame):
        return Source("pandas", tuple(map(str, data.columns)), partial(frame_batches, data))
    if isinstance(data, pa.RecordBatchReader):
        return _open_reader(data)
    if isinstance(data, pa.RecordBatch):
        return Source("pyarrow", tuple(data.schema.names), lambda columns: iter([data.select(list(columns))]))
    if isinstance(data, pa.Table):
        return Source(
            "pyarrow",
            tuple(data.schema.names),
            lambda columns: iter(data.select(list(columns)).to_batches(max_chunksize=STREAM_ROWS)),
        )
    return _open_ibis(data) if is_ibis(data) else _open_stream(data)


def open_declared(data: object, schema: Schema) -> Source:
    """Look at a table whose files are written as the schema declares."""
    return open_table(data, schema.format, numbers=number_columns(schema))


def number_columns(schema: Schema) -> frozenset[str]:
    """The columns that hold numbers: integers, numbers, and levels that are numbers. Texts such as `1,5` stay texts elsewhere."""
    return frozenset(
        column.name
        for column in schema.columns
        if column.kind in ("integer", "number")
        or (isinstance(column, Categorical) and all(map(is_number, column.levels)))
    )


def coded_rows(data: object, schema: Schema, name: str, *, ours: bool = False) -> Codes:
    """All rows of a table as integer codes; `name` is what messages call it. `ours`: files that dpcipher wrote, in its own format."""
    source = open_table(data) if ours else open_declared(data, schema)
    with closing(source.batches(schema.names)) as batches:
        parts = [schema.encode(batch) for batch in batches]
    codes = np.concatenate(parts) if parts else np.empty((0, len(schema.attrs)), dtype=np.int32)
    if not len(codes):
        raise ParameterError(f"{name} must hold at least one row; it has none")
    return codes


def _open_path(text: str, format: FileFormat, numbers: frozenset[str]) -> Source:
    """One source for all files that a path stands for; each file must have the wanted columns."""
    files = find_files(text)
    first = files[0]
    sizes = [file.path.stat().st_size for file in files]
    reached = [0] * len(files)

    def read(columns: tuple[str, ...]) -> Batches:
        for place, file in enumerate(files):
            check_names(file.names(format), columns, str(file.path), is_text=file.is_text)
            yield from file.batches(columns, format, numbers, partial(reached.__setitem__, place))
            reached[place] = sizes[place]

    names = first.names(format)
    if first.kind == "Excel" and first.part is None:
        for file in files:
            warn_of_sheets(file.path)
    return Source(
        "path",
        names,
        read,
        lambda: sum(reached) / max(sum(sizes), 1),
        is_text=first.is_text,
        drops_blank_rows=first.kind == "Excel",
    )


def _open_reader(reader: pa.RecordBatchReader) -> Source:
    """A stream that can be read once; a second reading would find no rows, and must not pass for an empty table."""
    left = [reader]

    def read(columns: tuple[str, ...]) -> Batches:
        if not left:
            raise TableFileError(
                "data (RecordBatchReader) can be read once and was; pass a table or a path instead"
            )
        kept = left.pop()
        return _stream_batches(lambda: kept, columns)

    return Source("pyarrow", tuple(reader.schema.names), read)


def _open_stream(data: object) -> Source:
    home = type(data).__module__.split(".")[0].lstrip("_")
    kind: TableKind = "polars" if home == "polars" else "duckdb" if home == "duckdb" else "arrow"
    if kind == "polars" and type(data).__name__ == "LazyFrame":
        lazy = TableFileError("data (polars LazyFrame) cannot be collected; collect it yourself to see why")
        with _raising(lazy):
            data = data.collect()  # type: ignore[attr-defined]
    if not isinstance(data, ArrowStream):
        raise _not_a_table(data)
    stream: ArrowStream = data
    if kind == "duckdb":  # looking at its stream would run the query
        names = tuple(stream.columns)  # type: ignore[attr-defined]
        return Source(kind, names, lambda columns: _stream_batches(lambda: _reader(stream), columns))
    # A stream of unknown make may be good for one reading: the reader that shows its names is kept for the rows.
    kept = [_reader(stream)]
    names = tuple(kept[0].schema.names)
    return Source(
        kind, names, lambda columns: _stream_batches(lambda: kept.pop() if kept else _reader(stream), columns)
    )


def _open_ibis(table: Any) -> Source:
    """A table of an engine, of which the wanted columns alone travel."""
    backend, failed = ibis_backend(table)

    def read(columns: tuple[str, ...]) -> Batches:
        rows = table.select(*columns)
        if backend.name == "postgres":
            with _raising(failed):
                yield from postgres_batches(backend, rows)
            return
        with _raising(failed):  # ibis 12 asks DuckDB 2 for a method that it no longer has
            query = str(backend.compile(rows))
        yield from _stream_batches(
            lambda: pa.RecordBatchReader.from_stream(backend.con.sql(query)), columns, failed
        )

    return Source("pandas", tuple(table.columns), read)


def _reader(stream: ArrowStream) -> pa.RecordBatchReader:
    with _raising(_not_a_table(stream)):
        return pa.RecordBatchReader.from_stream(stream)


def _not_a_table(data: object) -> TableFileError:
    return TableFileError(
        f"data (of type {type(data).__name__}) must be a path or glob of CSV, TSV, Parquet or Excel files, a file.db::table, a pandas or polars "
        "DataFrame, a pyarrow table, a DuckDB relation, an ibis table or a stream of Arrow batches; check that it can be read"
    )


def _stream_batches(
    opened: Callable[[], pa.RecordBatchReader], columns: tuple[str, ...], failed: TableFileError | None = None
) -> Batches:
    failed = failed or TableFileError("data broke off before its end; check where the stream comes from")
    with _raising(failed), closing(opened()) as reader:
        for batch in reader:
            chosen = batch.select(list(columns))
            # Some libraries hand over all rows at once.
            for start in range(0, max(batch.num_rows, 1), STREAM_ROWS):
                yield chosen.slice(start, STREAM_ROWS)


@contextmanager
def _raising(error: TableFileError) -> Iterator[None]:
    """Raise `error` instead of whatever another library raises, which may quote cells; a panic of its Rust is no Exception."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit, DpcipherError):
        raise
    except BaseException:
        raise error from None
