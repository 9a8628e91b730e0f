"""Sheets of Excel workbooks (.xlsx), read with openpyxl: every cell is the value that was stored, whatever the others are."""

import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpcipher.errors import DpcipherError, MissingExtra, TableFileError, warn
from dpcipher.io.header import check_part
from dpcipher.io.objects import row_batch

SHEET_ROWS = 2**14
MAX_BYTES = 2**36  # unpacked
# A sheet of equal rows packs 200-fold at most; beyond that a large file was made to fill somebody's time.
LARGE_BYTES, MAX_GROWTH = 2**26, 250
Row = tuple[Any, ...]


def sheet_names(path: Path, sheet: str | None) -> tuple[str, ...]:
    """The column names: the first row of a sheet, without empty cells at its end."""
    with _rows(path, sheet) as rows:
        return _header(path, _some(rows, 1))


def warn_of_sheets(path: Path) -> None:
    """Warn where a workbook that is read without the name of a sheet has several."""
    with _book(path) as book:
        number = len(book.sheetnames)
    if number > 1:
        warn(f"{path}: has {number} sheets, and the first is read; name one: {path.name}::SHEET")


def sheet_batches(path: Path, columns: tuple[str, ...], sheet: str | None) -> Iterator[pa.RecordBatch]:
    """The rows below the first; one without any value is left out, wherever it stands, since at the end of a sheet it is none."""
    with _rows(path, sheet) as rows:
        names = _header(path, _some(rows, 1))
        places = [names.index(column) for column in columns]
        while part := _some(rows, SHEET_ROWS):
            filled = [row for row in part if any(cell is not None for cell in row)]
            if any(cell is not None for row in filled for cell in row[len(names) :]):
                raise TableFileError(f"{path}: a row has more cells than the header line; correct it")
            yield row_batch([_padded(row, places) for row in filled], columns)


def _padded(row: Row, places: list[int]) -> Row:
    """The cells in these places; empty cells at the end of a row may not be there."""
    return tuple(row[place] if place < len(row) else None for place in places)


def _header(path: Path, rows: list[Row]) -> tuple[str, ...]:
    cells = list(rows[0]) if rows else []
    while cells and cells[-1] is None:
        cells.pop()
    if not cells:
        raise TableFileError(f"{path}: the sheet is empty; its first row must hold the column names")
    return tuple("" if cell is None else str(cell) for cell in cells)


def _some(rows: Iterator[Row], most: int) -> list[Row]:
    with _quiet():
        return list(islice(rows, most))


@contextmanager
def _rows(path: Path, sheet: str | None) -> Iterator[Iterator[Row]]:
    """The rows of a sheet, of the first where none is named."""
    with _book(path) as book:
        name = book.sheetnames[0] if sheet is None else sheet
        check_part(name, book.sheetnames, path, "sheet")
        yield iter(book[name].iter_rows(values_only=True))


@contextmanager
def _book(path: Path) -> Iterator[Any]:
    """An open workbook. What openpyxl says may quote a cell, so none of it is passed on."""
    try:
        import openpyxl
    except ImportError:
        raise MissingExtra("excel", "openpyxl, which reads .xlsx files,") from None
    try:
        _check_size(path)
        with open(path, "rb") as file:  # closed here, whatever openpyxl still holds
            with _quiet():
                book = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
            yield book
    except (DpcipherError, MemoryError):
        raise
    except Exception:
        raise TableFileError(
            f"{path}: cannot be read as an Excel workbook; check that the file is complete and not another format"
        ) from None


@contextmanager
def _quiet() -> Iterator[None]:
    """Without openpyxl's warnings, which quote cells, such as numbers that are no dates."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _check_size(path: Path) -> None:
    """Refuse a workbook that grows beyond reason, before anything is unpacked."""
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
    packed, unpacked = (
        sum(entry.compress_size for entry in entries),
        sum(entry.file_size for entry in entries),
    )
    if unpacked > MAX_BYTES or (unpacked > LARGE_BYTES and unpacked > MAX_GROWTH * max(packed, 1)):
        raise TableFileError(
            f"{path}: unpacks to more than {MAX_BYTES >> 30} GiB, or to more than {MAX_GROWTH} times its size; save it as CSV"
        )
