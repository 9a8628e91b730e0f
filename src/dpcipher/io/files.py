"""Users' files, by the ending of their names: which ones a path stands for, their columns and their rows; no error quotes a row."""

import glob
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dpcipher.errors import TableFileError
from dpcipher.files.foreign import foreign
from dpcipher.io.databases import database_kind, duckdb_batches, duckdb_names, sqlite_batches, sqlite_names
from dpcipher.io.excel import sheet_batches, sheet_names
from dpcipher.io.text import damaged, text_batches, text_names
from dpcipher.schema.format import PLAIN, FileFormat

BATCH_ROWS = 2**17
MARK = "::"  # between a file and the sheet or table in it
# The kinds of files; all that one path stands for must be of one.
KINDS = {
    "CSV": (".csv", ".csv.gz"),
    "TSV": (".tsv", ".tsv.gz"),
    "text": (".txt", ".txt.gz"),  # separated by commas unless the schema says otherwise
    "Parquet": (".parquet", ".pq"),
    "Excel": (".xlsx",),
}
_DATABASES = (".db", ".sqlite", ".sqlite3", ".duckdb")
# Others are read where they are named: in a folder they may be copies of what lies beside them, or notes about it.
_IN_FOLDERS = ("CSV", "TSV", "Parquet")


@dataclass(frozen=True)
class DataFile:
    """One file of a table; `part` is the sheet or table in it, where that is named."""

    path: Path
    kind: str
    part: str | None = None

    @property
    def is_text(self) -> bool:
        """Whether it is text with separators, packed or not."""
        return self.kind in ("CSV", "TSV", "text")

    def names(self, format: FileFormat = PLAIN) -> tuple[str, ...]:
        """The column names: in the header line of a text file or a sheet, else as the file declares them."""
        if self.is_text:
            return text_names(self.path, format)
        if self.kind == "Excel":
            return sheet_names(self.path, self.part)
        if self.kind == "SQLite":
            return sqlite_names(self.path, str(self.part))
        if self.kind == "DuckDB":
            return duckdb_names(self.path, str(self.part))
        try:
            return tuple(pq.read_schema(self.path).names)
        except (pa.ArrowException, OSError, UnicodeDecodeError):  # of a name that is no text
            raise damaged(self.path, "Parquet") from None

    def batches(
        self,
        columns: tuple[str, ...],
        format: FileFormat = PLAIN,
        numbers: frozenset[str] = frozenset(),
        reached: Callable[[int], None] = lambda _: None,
    ) -> Iterator[pa.RecordBatch]:
        """The rows in batches, the given columns in that order; `numbers` are those whose texts are numbers in the format.

        `reached` gets the number of bytes of a text file that were read.
        """
        if self.is_text:
            return text_batches(self.path, columns, format, numbers, reached)
        if self.kind == "Excel":
            return sheet_batches(self.path, columns, self.part)
        if self.kind == "SQLite":
            return sqlite_batches(self.path, str(self.part), columns)
        if self.kind == "DuckDB":
            return duckdb_batches(self.path, str(self.part), columns)
        return _parquet_batches(self.path, columns)


def find_files(text: str) -> list[DataFile]:
    """The files that a path, a folder or a glob stands for, in a fixed order: all of one kind."""
    path = Path(text)
    if MARK in text and not path.exists():
        return [_part_of(*text.rsplit(MARK, 1))]
    if text.lower().endswith(_DATABASES):
        raise TableFileError(f"{text}: holds tables; name one of them, as in {text}{MARK}TABLE")
    if text.lower().endswith(".zip"):
        raise TableFileError(f"{text}: is packed; unpack it and name the file in it, or pack that as .csv.gz")
    if path.is_dir():
        inside = [file for file in sorted(path.rglob("*")) if _kind(file) in _IN_FOLDERS]
        files = [file for file in inside if not any(part[0] in "._" for part in file.relative_to(path).parts)]
    elif path.exists() or not glob.has_magic(text):
        files = [path]
    else:
        files = [Path(name) for name in sorted(glob.glob(text, recursive=True))]
    if not files:
        raise TableFileError(f"{text}: no CSV or Parquet file is there; check the path")
    for file in files:
        _check_file(file)
    kinds = {_kind(file) for file in files}
    if len(kinds) == 1 and (kind := kinds.pop()):
        return [DataFile(file, kind) for file in files]
    if len(files) == 1 and (other := foreign(files[0])) in ("a ledger", "a schema"):
        raise TableFileError(f"{text}: is {other}, no table; name the file of the rows")
    raise TableFileError(
        f"{text}: files must all end in .csv, .csv.gz or all in one of .tsv, .txt, .parquet, .xlsx; convert the "
        "others. A table of a SQLite or DuckDB file is named by file.db::table"
    )


def _kind(path: Path) -> str | None:
    """What the name says the file is; None where dpcipher does not read it."""
    name = path.name.lower()
    return next((kind for kind, endings in KINDS.items() if name.endswith(endings)), None)


def _part_of(text: str, part: str) -> DataFile:
    """A sheet of a workbook, or a table of a database file."""
    path = Path(text)
    _check_file(path)
    return DataFile(path, "Excel" if _kind(path) == "Excel" else database_kind(path), part)


def _check_file(file: Path) -> None:
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
    """The columns of texts or bytes: their distinct values are stored once, and are read once."""
    fields = pq.read_schema(path)
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return [name for name in columns if any(is_kind(fields.field(name).type) for is_kind in kinds)]
