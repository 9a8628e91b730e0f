"""Sheets of Excel workbooks (.xlsx), read with openpyxl: every cell is the value that was stored, whatever the others are."""

import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dpcipher.errors import DpcipherError, MissingExtra, TableFileError, warn
from dpcipher.io.frame import object_cells
from dpcipher.io.header import spelt_hint
from dpcipher.io.packed import check_growth

SHEET_ROWS = 2**14
Row = tuple[Any, ...]


def sheet_names(path: Path, sheet: str | None = None) -> tuple[str, ...]:
    """The column names: the first row of a sheet, without empty cells at its end."""
    with _rows(path, sheet) as rows, _quiet():
        return _header(path, next(rows, ()))


def tell_sheets(path: Path) -> None:
    """Warn where a workbook that is read without the name of a sheet has several."""
    with _book(path) as book:
        number = len(book.sheetnames)
    if number > 1:
        warn(f"{path}: has {number} sheets, and the first is read; name one: {path.name}::SHEET")


def sheet_batches(path: Path, columns: tuple[str, ...], sheet: str | None = None) -> Iterator[pa.RecordBatch]:
    """The rows below the first; one without any value is left out, wherever it stands, since at the end of a sheet it is none."""
    with _rows(path, sheet) as rows:
        names = _header(path, next(iter(_some(rows, 1)), ()))
        places = [names.index(column) for column in columns]
        filled = (row for row in rows if any(cell is not None for cell in row))
        whole = (_checked(row, len(names), path) for row in filled)
        while part := _some(whole, SHEET_ROWS):
            arrays = [object_cells(_column(part, place)) for place in places]
            yield pa.RecordBatch.from_arrays(arrays, list(columns))


def _some(rows: Iterator[Row], most: int) -> list[Row]:
    with _quiet():
        return list(islice(rows, most))


def _column(rows: list[Row], place: int) -> np.ndarray[Any, np.dtype[np.object_]]:
    cells = np.empty(len(rows), dtype=object)
    cells[:] = [row[place] if place < len(row) else None for row in rows]
    return cells


def _header(path: Path, row: Row) -> tuple[str, ...]:
    cells = list(row)
    while cells and cells[-1] is None:
        cells.pop()
    if not cells:
        raise TableFileError(f"{path}: the sheet is empty; its first row must hold the column names")
    return tuple("" if cell is None else str(cell) for cell in cells)


def _checked(row: Row, width: int, path: Path) -> Row:
    """A row within the columns of the header, as in a CSV file; empty cells on its right are nothing."""
    if any(cell is not None for cell in row[width:]):
        raise TableFileError(f"{path}: a row has more cells than the header line; correct it")
    return row[:width]


@contextmanager
def _rows(path: Path, sheet: str | None) -> Iterator[Iterator[Row]]:
    """The rows of a sheet, of the first where none is named."""
    with _book(path) as book:
        yield book[_chosen(path, book.sheetnames, sheet)].iter_rows(values_only=True)


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


def _chosen(path: Path, sheets: list[str], sheet: str | None) -> str:
    if sheet is None:
        return sheets[0]
    if sheet not in sheets:
        raise TableFileError(
            f"{path}: has no sheet {sheet!r:.100}; it has {len(sheets)} sheets{spelt_hint(sheet, sheets) or ', check the name'}"
        )
    return sheet


def _check_size(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        check_growth([(entry.compress_size, entry.file_size) for entry in archive.infolist()], path)
