"""Python objects as Arrow cells, each read by itself whatever the others are: pandas frames, and rows of Excel, SQLite and PostgreSQL.

Arrow infers one type for a column of Python objects, so that what becomes of a cell depends on its neighbours. Columns of objects are therefore
taken apart by the type of each cell and handed on as unions, in which every cell keeps its own type. A pandas column that declares a type of its
cells is handed on with that type.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from dpcipher.schema.cells import mixed, unfit

FRAME_ROWS = 2**18
_LARGEST = 400  # decimal digits past which a number is as good as infinite: floats end at 10**308
_TYPED = "biufM"  # kinds of numpy columns whose cells are all of one type that Arrow knows

Part = tuple[str, Callable[[Any], Any]]


def frame_batches(frame: pd.DataFrame, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    """The rows in batches, so that the frame is never copied whole."""
    names = [str(name) for name in frame.columns]
    for start in range(0, max(len(frame), 1), FRAME_ROWS):
        part = frame.iloc[start : start + FRAME_ROWS]
        arrays = [_series_cells(part.iloc[:, names.index(column)]) for column in columns]
        yield pa.RecordBatch.from_arrays(arrays, list(columns))


def row_batch(rows: Sequence[Sequence[Any]], columns: Sequence[str]) -> pa.RecordBatch:
    """Rows of Python objects, each with a cell for every column, as a batch."""
    return pa.RecordBatch.from_arrays(
        [object_cells([row[place] for row in rows]) for place in range(len(columns))], list(columns)
    )


def _series_cells(series: pd.Series) -> pa.Array:
    """One column: as Arrow has its type, or cell by cell where the type says nothing about the cells."""
    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        codes = series.cat.codes.to_numpy().astype(np.int64)
        return pa.DictionaryArray.from_arrays(
            pa.array(codes, mask=codes < 0), _series_cells(pd.Series(dtype.categories))
        )
    if not _is_typed(dtype) and pd.api.types.infer_dtype(series, skipna=True) != "string":
        return object_cells(series.astype(object).to_numpy())
    try:
        cells = pa.Array.from_pandas(series)  # of objects: texts and missing cells alone
    except (pa.ArrowException, UnicodeError):  # a text that is no Unicode, which Arrow's message would quote
        return object_cells(series.astype(object).to_numpy())
    return cells.combine_chunks() if isinstance(cells, pa.ChunkedArray) else cells


def _is_typed(dtype: Any) -> bool:
    if isinstance(dtype, np.dtype):
        return dtype.kind in _TYPED and dtype.itemsize <= 8
    return isinstance(dtype, pd.ArrowDtype | pd.StringDtype | pd.DatetimeTZDtype) or (
        isinstance(dtype, pd.api.extensions.ExtensionDtype)
        and getattr(dtype, "numpy_dtype", None) is not None
    )


def object_cells(values: Sequence[Any] | NDArray[np.object_]) -> pa.Array:
    """Python objects as a union of their types; what Arrow would infer for all of them together never matters."""
    kinds = {kind: _part(kind) for kind in set(map(type, values))}
    names = sorted({name for name, _ in kinds.values()} - {"nothing"}) or ["text"]
    columns: dict[str, list[Any]] = {name: [None] * len(values) for name in names}
    part = np.zeros(len(values), dtype=np.int8)
    for row, value in enumerate(values):
        name, read = kinds[type(value)]
        cell = read(value)
        if cell is None:
            continue  # null in the first part
        if cell is _UNFIT:
            part[row] = -1
            continue
        columns[name][row] = cell
        part[row] = names.index(name)
    arrays = [pa.array(columns[name], _ARROW[name]) for name in names]
    if not (part < 0).any():
        return arrays[0] if len(arrays) == 1 else mixed(arrays, part)
    part[part < 0] = len(arrays)
    return mixed([*arrays, unfit(len(values))], part)


_UNFIT = object()
_ARROW = {"text": pa.string(), "truth": pa.bool_(), "number": pa.float64()}


def _part(kind: type) -> Part:
    """Which part of the union holds objects of a type, and how one of them is written there."""
    for known, part in _PARTS:
        if issubclass(kind, known):
            return part
    return "text", lambda _: _UNFIT


def _of_float(value: Any) -> float | None:
    number = float(value)
    return None if number != number else number


def _of_int(value: Any) -> str:
    """The digits: text is read as a number where one is asked for, and no integer is too long for it."""
    number = int(value)
    return str(number) if number.bit_length() < 3 * _LARGEST else _infinite(number < 0)


def _of_decimal(value: Decimal) -> str | None:
    """Plain digits without trailing zeros, as columns of decimals are read."""
    if value.is_nan():
        return None
    if not value.is_finite() or value.adjusted() > _LARGEST:
        return _infinite(value.is_signed())
    if not value or value.adjusted() < -_LARGEST:
        return "0"
    digits = format(value, "f")
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def _infinite(negative: bool) -> str:
    return "-inf" if negative else "inf"


def _of_text(value: str) -> object:
    """The text, unless it is no Unicode: half of a surrogate pair cannot be written anywhere."""
    text = str.__str__(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        return _UNFIT
    return text


def _of_bytes(value: bytes) -> object:
    try:
        return bytes(value).decode()
    except UnicodeDecodeError:
        return _UNFIT


def _of_moment(value: datetime) -> str | None:
    """What a clock on the wall shows in the cell's own time zone; a day where that is midnight."""
    if value is pd.NaT:
        return None
    day, _, clock = value.replace(tzinfo=None).isoformat(sep=" ").partition(" ")
    return day if clock == "00:00:00" else f"{day} {_clock(clock)}"


def _clock(text: str) -> str:
    return text.rstrip("0") if "." in text else text


def _of_datetime64(value: np.datetime64) -> object:
    if np.isnat(value):
        return None
    moment = value.astype("datetime64[us]").item()
    return _of_moment(moment) if isinstance(moment, datetime) else _UNFIT


_PARTS: tuple[tuple[tuple[type, ...], Part], ...] = (
    ((type(None), type(pd.NA), type(pd.NaT)), ("nothing", lambda _: None)),
    ((bool, np.bool_), ("truth", bool)),
    ((np.timedelta64,), ("text", lambda value: None if np.isnat(value) else _UNFIT)),  # to numpy an integer
    ((int, np.integer), ("text", _of_int)),
    ((float, np.floating), ("number", _of_float)),
    ((Decimal,), ("text", _of_decimal)),
    ((str,), ("text", _of_text)),
    ((bytes, bytearray), ("text", _of_bytes)),
    ((datetime,), ("text", _of_moment)),
    ((date,), ("text", date.isoformat)),
    ((time,), ("text", lambda value: _clock(value.replace(tzinfo=None).isoformat()))),
    ((np.datetime64,), ("text", _of_datetime64)),
    ((UUID,), ("text", str)),
)
