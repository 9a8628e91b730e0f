"""Users' files in batches, by the ending of their names; no error quotes a row."""

import glob
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dpcipher.errors import TableFileError
from dpcipher.io.database import ENDINGS, MARK
from dpcipher.io.delimited import damaged, text_batches, text_names
from dpcipher.io.excel import sheet_batches, sheet_names
from dpcipher.io.foreign import foreign
from dpcipher.schema.format import PLAIN, FileFormat

BATCH_ROWS = 2**17
# The kinds of files; all that one path stands for must be of one.
KINDS = {
    "CSV": (".csv", ".csv.gz"),
    "TSV": (".tsv", ".tsv.gz"),
    "text": (".txt", ".txt.gz"),  # separated by commas unless the schema says otherwise
    "zip": (".zip",),
    "Parquet": (".parquet", ".pq"),
    "Excel": (".xlsx",),
}
_IN_FOLDERS = (
    "CSV",
    "TSV",
    "Parquet",
)  # others are read where they are named: they may be copies of what lies beside them, or notes about it


def find_files(text: str) -> list[Path]:
    """The files that a path, a folder or a glob stands for, in a fixed order: all of one kind."""
    path = Path(text)
    if text.lower().endswith(ENDINGS):
        raise TableFileError(f"{text}: holds tables; name one of them, as in {text}{MARK}TABLE")
    if path.is_dir():
        inside = [file for file in sorted(path.rglob("*")) if file_kind(file) in _IN_FOLDERS]
        files = [file for file in inside if not any(part[0] in "._" for part in file.relative_to(path).parts)]
    elif path.exists() or not glob.has_magic(text):
        files = [path]
    else:
        files = [Path(name) for name in sorted(glob.glob(text, recursive=True))]
    if not files:
        raise TableFileError(f"{text}: no CSV or Parquet file is there; check the path")
    for file in files:
        check_file(file)
    if (
        len(files) == 1
        and file_kind(files[0]) is None
        and (other := foreign(files[0])) in ("a ledger", "a schema")
    ):
        raise TableFileError(f"{text}: is {other}, no table; name the file of the rows")
    kinds = {file_kind(file) for file in files}
    if len(kinds) > 1 or None in kinds:
        raise TableFileError(
            f"{text}: files must all end in .csv, .csv.gz or all in one of .tsv, .txt, .zip, .parquet, .xlsx; convert the "
            "others. A table of a SQLite or DuckDB file is named by file.db::table"
        )
    return files


def file_kind(path: Path) -> str | None:
    """What the name says the file is; None where dpcipher does not read it."""
    name = path.name.lower()
    return next((kind for kind, endings in KINDS.items() if name.endswith(endings)), None)


def is_text(path: Path) -> bool:
    """Whether the file is text with separators, packed or not."""
    return file_kind(path) in ("CSV", "TSV", "text", "zip")


def file_names(path: Path, format: FileFormat = PLAIN) -> tuple[str, ...]:
    """The column names: in the header line of a text file or a sheet, in a Parquet file's own schema."""
    if is_text(path):
        return text_names(path, format)
    if file_kind(path) == "Excel":
        return sheet_names(path)
    try:
        return tuple(pq.read_schema(path).names)
    except (pa.ArrowException, OSError, UnicodeDecodeError):  # of a name that is no text
        raise damaged(path, "Parquet") from None


def file_batches(
    path: Path,
    columns: tuple[str, ...],
    format: FileFormat = PLAIN,
    numbers: frozenset[str] = frozenset(),
    reached: Callable[[int], None] = lambda _: None,
) -> Iterator[pa.RecordBatch]:
    """The rows in batches, the given columns in that order; `numbers` are those whose texts are numbers in the format.

    `reached` is told how many bytes of a text file were read.
    """
    if is_text(path):
        return text_batches(path, columns, format, numbers, reached)
    return sheet_batches(path, columns) if file_kind(path) == "Excel" else _parquet_batches(path, columns)


def check_file(file: Path) -> None:
    """Refuse what is no file that can be opened."""
    try:
        if not file.exists():
            raise TableFileError(f"{file}: there is no such file; check the path")
        if not file.is_file():
            raise TableFileError(f"{file}: must be a regular file, not a folder, pipe or device")
    except OSError as wrong:
        raise TableFileError(f"{file}: cannot be opened ({wrong.strerror})") from None


def _parquet_batches(path: Path, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    try:
        with pq.ParquetFile(path, read_dictionary=_text_columns(path, columns), pre_buffer=False) as file:
            for batch in file.iter_batches(BATCH_ROWS, columns=list(columns)):
                yield batch.select(list(columns))
    except (pa.ArrowException, OSError, UnicodeDecodeError):  # of a name that is no text
        raise damaged(path, "Parquet") from None


def _text_columns(path: Path, columns: tuple[str, ...]) -> list[str]:
    """The columns of texts or bytes, whose distinct values are read once."""
    fields = pq.read_schema(path)
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return [name for name in columns if any(is_kind(fields.field(name).type) for is_kind in kinds)]
