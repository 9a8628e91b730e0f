"""Parquet files, in batches."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dpcipher.errors import TableFileError

BATCH_ROWS = 2**17


def is_parquet(path: Path) -> bool:
    """Whether the name says Parquet."""
    return path.suffix.lower() in (".parquet", ".pq")


def parquet_names(path: Path) -> tuple[str, ...]:
    """The column names in the file's own schema."""
    try:
        return tuple(pq.read_schema(path).names)
    except (pa.ArrowException, OSError):
        raise TableFileError(_damaged(path)) from None


def parquet_batches(path: Path, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    """The rows in batches, the given columns in that order."""
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(BATCH_ROWS, columns=list(columns)):
                yield batch.select(list(columns))
    except (pa.ArrowException, OSError):
        raise TableFileError(_damaged(path)) from None


def _damaged(path: Path) -> str:
    return f"{path}: cannot be read as Parquet; check that the file is complete and not another format"
