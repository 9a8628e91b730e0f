"""Rows back to the user: as the kind of table that went in, or as a file that is complete or absent."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from os import PathLike
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from dpcipher.errors import MissingExtra, TableFileError
from dpcipher.files import beside, replacing

_ENDINGS = (".csv", ".csv.gz", ".parquet")


def mirror(kind: str, table: pa.Table) -> object:
    """The table as the library it came from has it; pandas where there was none to mirror."""
    try:
        if kind == "polars":
            import polars

            return polars.from_arrow(table)
        if kind == "duckdb":
            import duckdb

            return duckdb.from_arrow(table)
    except ImportError:
        raise MissingExtra(kind, kind) from None
    return table if kind in ("pyarrow", "arrow") else to_pandas(table)


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """A frame whose integers and booleans stay such beside missing values, and whose dates are datetimes."""
    frame = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        mapper = _nullable if column.null_count else None
        frame[name] = column.to_pandas(date_as_object=False, types_mapper=mapper)
    return pd.DataFrame(frame)


def _nullable(kind: pa.DataType) -> pd.Int64Dtype | pd.BooleanDtype | None:
    if pa.types.is_integer(kind):
        return pd.Int64Dtype()
    return pd.BooleanDtype() if pa.types.is_boolean(kind) else None


def write_table(path: str | PathLike[str], batches: pa.Table | Iterable[pa.RecordBatch | pa.Table]) -> None:
    """Write rows as CSV (also gzipped) or Parquet, by the ending of the path; at least one batch, which may be empty."""
    target = _checked(path)
    parts = iter([batches] if isinstance(batches, pa.Table) else batches)
    first = next(parts, None)
    if first is None:
        raise TableFileError(f"{path}: there is nothing to write, not even column names")
    with (
        _as_table_error(target),
        replacing(target) as temporary,
        _writer(target, temporary, first.schema) as writer,
    ):
        for part in chain([first], parts):
            writer.write(part)


def check_writable(path: str | PathLike[str]) -> None:
    """Refuse a path that could not be written, before anything is spent on what would go there."""
    target = _checked(path)
    with _as_table_error(target), beside(target):
        pass


@contextmanager
def _writer(target: Path, temporary: Path, schema: pa.Schema) -> Iterator[pq.ParquetWriter | pacsv.CSVWriter]:
    if target.name.endswith(".parquet"):
        with pq.ParquetWriter(temporary, schema) as parquet:
            yield parquet
        return
    compression = "gzip" if target.name.endswith(".gz") else None
    with (
        pa.output_stream(str(temporary), compression=compression) as sink,
        pacsv.CSVWriter(sink, schema) as writer,
    ):
        yield writer


def _checked(path: str | PathLike[str]) -> Path:
    target = Path(path)
    if not target.name.endswith(_ENDINGS):
        raise TableFileError(f"{target}: must end in {', '.join(_ENDINGS)}; rename it")
    if target.exists() and not target.is_file():
        raise TableFileError(f"{target}: is there already and is no regular file; choose another name")
    if not target.parent.is_dir():
        raise TableFileError(f"{target}: the folder {target.parent} does not exist; make it first")
    return target


@contextmanager
def _as_table_error(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException) as wrong:
        number = wrong.errno if isinstance(wrong, OSError) else None
        reason = os.strerror(number) if number else "the disk refused"
        raise TableFileError(f"{path}: cannot be written ({reason}); choose another place") from None
