"""Anything tabular as Arrow record batches; the reader decides nothing private and never quotes a cell."""

import glob
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

import pandas as pd
import pyarrow as pa

from dpcipher.errors import DpcipherError, TableFileError
from dpcipher.tables.csvfile import csv_batches, csv_names, is_csv
from dpcipher.tables.frame import frame_batches
from dpcipher.tables.parquetfile import is_parquet, parquet_batches, parquet_names

STREAM_ROWS = 2**18
TableKind = Literal["pandas", "polars", "pyarrow", "duckdb", "path", "arrow"]
Batches = Iterator[pa.RecordBatch]


@runtime_checkable
class ArrowStream(Protocol):
    """Whatever speaks the Arrow stream protocol."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """A capsule that holds the stream."""


@dataclass(frozen=True)
class Source:
    """A table to read: its column names, and how to get at its rows in batches."""

    kind: TableKind
    names: tuple[str, ...]
    read: Callable[[tuple[str, ...]], Batches]

    def batches(self, columns: Sequence[str]) -> Batches:
        """The rows in batches, these columns only; every batch holds each of them once."""
        check_names(self.names, columns)
        return self.read(tuple(columns))


def open_table(data: object) -> Source:
    """Look at a table without reading its rows: a path or glob of CSV or Parquet, a frame, or an Arrow stream."""
    if isinstance(data, str | PathLike):
        return _open_path(str(data))
    if isinstance(data, pd.DataFrame):
        return Source(
            "pandas", tuple(str(name) for name in data.columns), lambda columns: frame_batches(data, columns)
        )
    if isinstance(data, pa.RecordBatchReader):
        return _open_reader(data)
    if isinstance(data, pa.Table | pa.RecordBatch):
        return Source("pyarrow", tuple(data.schema.names), lambda columns: _of_table(data, columns))
    return _open_stream(data)


def check_names(names: Sequence[str], columns: Sequence[str], where: str = "the table") -> None:
    """Every wanted column is there, once. Other names are not quoted: a file without a header has cells in their place."""
    for column in columns:
        if column not in names:
            raise TableFileError(
                f"{where} has no column {column!r}; check its column names (CSV files need a header line)"
            )
        if names.count(column) > 1:
            raise TableFileError(f"{where} has more than one column {column!r}; rename or drop one")


def _open_path(text: str) -> Source:
    """One source for all files that a path stands for; each file must have the wanted columns."""
    files = _files(text)
    if all(is_csv(file) for file in files):
        names, batches = csv_names, csv_batches
    elif all(is_parquet(file) for file in files):
        names, batches = parquet_names, parquet_batches
    else:
        raise TableFileError(
            f"{text}: files must all end in .csv, .csv.gz or all in .parquet; convert the others"
        )

    def read(columns: tuple[str, ...]) -> Batches:
        for file in files:
            check_names(names(file), columns, str(file))
            yield from batches(file, columns)

    return Source("path", names(files[0]), read)


def _files(text: str) -> list[Path]:
    """The files that a path, a folder or a glob stands for, in a fixed order."""
    path = Path(text)
    if path.is_dir():
        found = [file for file in sorted(path.rglob("*")) if is_csv(file) or is_parquet(file)]
        found = [file for file in found if not any(part[0] in "._" for part in file.relative_to(path).parts)]
    elif path.exists() or not glob.has_magic(text):
        found = [path]
    else:
        found = [Path(name) for name in sorted(glob.glob(text, recursive=True))]
    if not found:
        raise TableFileError(f"{text}: no CSV or Parquet file is there; check the path")
    for file in found:
        _check_file(file)
    return found


def _check_file(file: Path) -> None:
    try:
        if not file.exists():
            raise TableFileError(f"{file}: there is no such file; check the path")
        if not file.is_file():
            raise TableFileError(f"{file}: must be a regular file, not a folder, pipe or device")
    except OSError as wrong:
        raise TableFileError(f"{file}: cannot be opened ({wrong.strerror})") from None


def _of_table(table: pa.Table | pa.RecordBatch, columns: tuple[str, ...]) -> Batches:
    chosen = table.select(list(columns))
    yield from chosen.to_batches(max_chunksize=STREAM_ROWS) if isinstance(chosen, pa.Table) else [chosen]


def _open_reader(reader: pa.RecordBatchReader) -> Source:
    """A stream that can be read once; a second reading would find no rows, and must not pass for an empty table."""
    used: list[bool] = []

    def read(columns: tuple[str, ...]) -> Batches:
        if used:
            raise TableFileError(
                "data (RecordBatchReader) can be read once and was; pass a table or a path instead"
            )
        used.append(True)
        return _of_stream(reader, columns)

    return Source("pyarrow", tuple(reader.schema.names), read)


def _open_stream(data: object) -> Source:
    kind = _library(data)
    if kind == "polars" and type(data).__name__ == "LazyFrame":
        data = _collected(data)
    if not isinstance(data, ArrowStream):
        raise _no_table(data)
    stream: ArrowStream = data
    if kind == "duckdb":  # looking at its stream would run the query
        names = tuple(stream.columns)  # type: ignore[attr-defined]
        return Source(kind, names, lambda columns: _of_stream(_reader(stream), columns))
    # A stream of unknown make may be good for one reading: the reader that shows its names is kept for the rows.
    kept = [_reader(stream)]
    names = tuple(kept[0].schema.names)
    return Source(kind, names, lambda columns: _of_stream(kept.pop() if kept else _reader(stream), columns))


def _collected(lazy: object) -> object:
    with _in_our_words(
        TableFileError("data (polars LazyFrame) cannot be collected; collect it yourself to see why")
    ):
        return lazy.collect()  # type: ignore[attr-defined]


def _library(data: object) -> TableKind:
    home = type(data).__module__.split(".")[0].lstrip("_")
    return "polars" if home == "polars" else "duckdb" if home == "duckdb" else "arrow"


def _reader(stream: ArrowStream) -> pa.RecordBatchReader:
    with _in_our_words(_no_table(stream)):
        return pa.RecordBatchReader.from_stream(stream)


def _no_table(data: object) -> TableFileError:
    return TableFileError(
        f"data (of type {type(data).__name__}) must be a path or glob of CSV or Parquet files, a pandas or polars "
        "DataFrame, a pyarrow table, a DuckDB relation or a stream of Arrow batches; check that it can be read"
    )


def _of_stream(reader: pa.RecordBatchReader, columns: tuple[str, ...]) -> Batches:
    broken = TableFileError("data broke off before its end; check where the stream comes from")
    with _in_our_words(broken):
        for batch in reader:
            chosen = batch.select(list(columns))
            for start in range(
                0, max(batch.num_rows, 1), STREAM_ROWS
            ):  # some libraries hand over all rows at once
                yield chosen.slice(start, STREAM_ROWS)


@contextmanager
def _in_our_words(error: TableFileError) -> Iterator[None]:
    """Whatever another library raises may quote cells; a panic of its Rust is no Exception."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit, DpcipherError):
        raise
    except BaseException:
        raise error from None
