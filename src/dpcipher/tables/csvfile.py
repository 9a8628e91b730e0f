"""CSV files: every cell as text, so that `01`, `N` and `NA` survive, and no error quotes a row."""

import csv
import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pyarrow as pa
import pyarrow.csv as pacsv

from dpcipher.errors import TableFileError

BLOCK_BYTES = 2**24
_MAX_HEADER = 2**24
_RAGGED = re.compile(r"CSV parse error: (?:Row #(\d+): )?Expected \d+ columns, got \d+")


def is_csv(path: Path) -> bool:
    """Whether the name says CSV, gzipped or not."""
    return path.name.lower().endswith((".csv", ".csv.gz"))


def csv_names(path: Path) -> tuple[str, ...]:
    """The column names in the header line."""
    try:
        with _open_text(path) as lines:
            names = next(csv.reader(iter(lambda: lines.readline(_MAX_HEADER), "")), [])
    except UnicodeDecodeError:
        raise TableFileError(_not_utf8(path)) from None
    except (OSError, EOFError, csv.Error):
        raise TableFileError(
            f"{path}: cannot be read as CSV; check that the file is complete and not another format"
        ) from None
    if not names:
        raise TableFileError(f"{path}: is empty; a CSV file needs a header line with the column names")
    return tuple(names)


def csv_batches(path: Path, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    """The rows in batches, the given columns as text."""
    if _only_header(path):
        return
    try:
        with pa.input_stream(str(path), compression=_compression(path)) as stream:
            yield from _reader(stream, columns)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as wrong:
        raise TableFileError(_reason(path, str(wrong))) from None  # Arrow's message quotes the row


def _only_header(path: Path) -> bool:
    """Whether nothing follows the header line; Arrow takes a header without a line end for damage."""
    with _open_text(path) as lines:
        lines.readline(_MAX_HEADER)
        return not lines.read(1)


def _reader(stream: pa.NativeFile, columns: tuple[str, ...]) -> pacsv.CSVStreamingReader:
    return pacsv.open_csv(
        stream,
        # One thread, so that Arrow knows the number of a ragged row.
        read_options=pacsv.ReadOptions(block_size=BLOCK_BYTES, use_threads=False),
        parse_options=pacsv.ParseOptions(newlines_in_values=True),
        convert_options=pacsv.ConvertOptions(
            column_types={column: pa.string() for column in columns},
            include_columns=list(columns),
            strings_can_be_null=False,
        ),
    )


def _reason(path: Path, told: str) -> str:
    """Our words for what Arrow told; of its own, which quote the row, only the number of the row is taken."""
    ragged = _RAGGED.match(told)
    if ragged:
        row = f"row {ragged[1]}" if ragged[1] else "a row"
        return f"{path}: {row} has more or fewer cells than the header line; correct it, or quote cells that hold commas"
    if "UTF8" in told:
        return _not_utf8(path)
    return f"{path}: cannot be read as CSV; check that the file is complete and its quotes are closed"


def _not_utf8(path: Path) -> str:
    return f"{path}: must be UTF-8 text; convert it, for example with iconv -f latin1 -t utf8"


def _compression(path: Path) -> str | None:
    return "gzip" if path.name.lower().endswith(".gz") else None


def _open_text(path: Path) -> TextIO:
    opener = gzip.open if _compression(path) else open
    return opener(path, "rt", encoding="utf-8-sig", newline="")
