"""CSV and Parquet files in batches; no error quotes a row.

Every cell of a CSV file is read as text, so that `01`, `N` and `NA` survive.
"""

import csv
import glob
import gzip
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from dpcipher.errors import TableFileError
from dpcipher.schema.cells import quoted

BATCH_ROWS = 2**17
BLOCK_BYTES = 2**24
_MAX_HEADER = 2**24
_UNREADABLE = (
    OSError,
    EOFError,
    zlib.error,
    csv.Error,
)  # what opening and unpacking a damaged CSV file raises
_TEXTS = pa.dictionary(
    pa.int32(), pa.string()
)  # each distinct text of a block is kept, and later coded, once
_RAGGED = re.compile(r"CSV parse error: (?:Row #(\d+): )?Expected \d+ columns, got \d+")


def find_files(text: str) -> list[Path]:
    """The files that a path, a folder or a glob stands for, in a fixed order: all CSV or all Parquet."""
    path = Path(text)
    if path.is_dir():
        inside = [file for file in sorted(path.rglob("*")) if is_csv(file) or _is_parquet(file)]
        files = [file for file in inside if not any(part[0] in "._" for part in file.relative_to(path).parts)]
    elif path.exists() or not glob.has_magic(text):
        files = [path]
    else:
        files = [Path(name) for name in sorted(glob.glob(text, recursive=True))]
    if not files:
        raise TableFileError(f"{text}: no CSV or Parquet file is there; check the path")
    for file in files:
        _check_file(file)
    if not all(map(is_csv, files)) and not all(map(_is_parquet, files)):
        raise TableFileError(
            f"{text}: files must all end in .csv, .csv.gz or all in .parquet; convert the others"
        )
    return files


def file_names(path: Path) -> tuple[str, ...]:
    """The column names: in the header line of a CSV file, in a Parquet file's own schema."""
    if is_csv(path):
        return _csv_names(path)
    try:
        return tuple(pq.read_schema(path).names)
    except (pa.ArrowException, OSError, UnicodeDecodeError):  # of a name that is no text
        raise _damaged(path, "Parquet") from None


def file_batches(path: Path, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    """The rows in batches, the given columns in that order."""
    return _csv_batches(path, columns) if is_csv(path) else _parquet_batches(path, columns)


def is_csv(path: Path) -> bool:
    """Whether the name says CSV, gzipped or not."""
    return path.name.lower().endswith((".csv", ".csv.gz"))


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() in (".parquet", ".pq")


def _check_file(file: Path) -> None:
    try:
        if not file.exists():
            raise TableFileError(f"{file}: there is no such file; check the path")
        if not file.is_file():
            raise TableFileError(f"{file}: must be a regular file, not a folder, pipe or device")
    except OSError as wrong:
        raise TableFileError(f"{file}: cannot be opened ({wrong.strerror})") from None


def _csv_names(path: Path) -> tuple[str, ...]:
    """The column names; a quote that `write_table` put before a name, so that it begins no formula, is not part of it."""
    header = _header(path)
    bare = [cell[1:] for cell in header]
    written = quoted(pa.array(bare, pa.string())).to_pylist()
    return tuple(
        name if text == cell else cell for name, text, cell in zip(bare, written, header, strict=True)
    )


def _header(path: Path) -> tuple[str, ...]:
    """The cells of the header line."""
    try:
        with _open_text(path) as lines:
            names = next(csv.reader(iter(lambda: lines.readline(_MAX_HEADER), "")), [])
    except UnicodeDecodeError:
        raise _not_utf8(path) from None
    except _UNREADABLE:
        raise _damaged(path, "CSV") from None
    if not names:
        raise TableFileError(f"{path}: is empty; a CSV file needs a header line with the column names")
    return tuple(names)


def _csv_batches(path: Path, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    if _only_header(path):
        return
    cells = dict(zip(_csv_names(path), _header(path), strict=True))
    header = [cells[column] for column in columns]
    try:
        with pa.input_stream(str(path), compression=_compression(path)) as stream:
            batches = pacsv.open_csv(
                stream,
                # One thread, so that Arrow knows the number of a ragged row.
                read_options=pacsv.ReadOptions(block_size=BLOCK_BYTES, use_threads=False),
                parse_options=pacsv.ParseOptions(newlines_in_values=True),
                convert_options=pacsv.ConvertOptions(
                    column_types=dict.fromkeys(header, _TEXTS),
                    include_columns=header,
                    strings_can_be_null=False,
                ),
            )
            yield from (pa.RecordBatch.from_arrays(batch.columns, list(columns)) for batch in batches)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as wrong:
        raise _csv_error(path, str(wrong)) from None  # Arrow's message quotes the row


def _parquet_batches(path: Path, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    try:
        with pq.ParquetFile(path, read_dictionary=_text_columns(path, columns)) as file:
            for batch in file.iter_batches(BATCH_ROWS, columns=list(columns)):
                yield batch.select(list(columns))
    except (pa.ArrowException, OSError, UnicodeDecodeError):  # of a name that is no text
        raise _damaged(path, "Parquet") from None


def _text_columns(path: Path, columns: tuple[str, ...]) -> list[str]:
    """The columns of texts or bytes, whose distinct values are read once."""
    fields = pq.read_schema(path)
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return [name for name in columns if any(is_kind(fields.field(name).type) for is_kind in kinds)]


def _only_header(path: Path) -> bool:
    """Whether nothing follows the header line; Arrow takes a header without a line end for damage."""
    try:
        with _open_text(path) as lines:
            lines.readline(_MAX_HEADER)
            return not lines.read(1)
    except UnicodeDecodeError:
        raise _not_utf8(path) from None
    except _UNREADABLE:
        raise _damaged(path, "CSV") from None


def _open_text(path: Path) -> TextIO:
    opener = gzip.open if _compression(path) else open
    return opener(path, "rt", encoding="utf-8-sig", newline="")


def _compression(path: Path) -> str | None:
    return "gzip" if path.name.lower().endswith(".gz") else None


def _csv_error(path: Path, arrow_message: str) -> TableFileError:
    """Our words for Arrow's message, which quotes the row: only the number of the row is taken from it."""
    ragged = _RAGGED.match(arrow_message)
    if ragged:
        row = f"row {ragged[1]}" if ragged[1] else "a row"
        return TableFileError(
            f"{path}: {row} has more or fewer cells than the header line; correct it, or quote cells that hold commas"
        )
    if "UTF8" in arrow_message:
        return _not_utf8(path)
    return TableFileError(
        f"{path}: cannot be read as CSV; check that the file is complete and its quotes are closed"
    )


def _not_utf8(path: Path) -> TableFileError:
    return TableFileError(f"{path}: must be UTF-8 text; convert it, for example with iconv -f latin1 -t utf8")


def _damaged(path: Path, form: str) -> TableFileError:
    return TableFileError(
        f"{path}: cannot be read as {form}; check that the file is complete and not another format"
    )
