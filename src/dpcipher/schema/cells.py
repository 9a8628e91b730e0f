"""Arrow cells read as text, numbers, days or truth values.

A cell that cannot be read as asked becomes null (or NaN); it never becomes an error, because Arrow's own errors quote the
cell, and an error text is a release.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_NUMBER = r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$|^[-+]?(?i:inf|infinity|nan)$"
_DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ].*)?$"
_TRUE = pa.array(["true", "t", "yes", "y", "1", "1.0"])
_FALSE = pa.array(["false", "f", "no", "n", "0", "0.0"])
_BLANK = pa.array(["", "nan", "NaN", "NAN"])


def flat(cells: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One plain array: chunks joined, extension types undone, every kind of text as `string`."""
    if isinstance(cells, pa.ChunkedArray):
        cells = cells.combine_chunks()
    if isinstance(cells, pa.ChunkedArray):  # older pyarrow: no chunk at all stays chunked
        cells = pa.concat_arrays(cells.chunks) if cells.num_chunks else pa.array([], cells.type)
    if isinstance(cells, pa.ExtensionArray):
        cells = cells.storage
    return pc.cast(cells, pa.string()) if _is_text(cells.type) else cells


def is_missing(cells: pa.Array, *, blank: bool) -> Bools:
    """Where a cell holds nothing: null, NaN and, with `blank`, an empty text or a written-out NaN."""
    if pa.types.is_floating(cells.type):
        return _truth(pc.is_null(cells, nan_is_null=True))
    missing = _truth(pc.is_null(cells))
    if blank and pa.types.is_string(cells.type):
        missing |= _truth(pc.is_in(cells, value_set=_BLANK))
    return missing


def as_text(cells: pa.Array) -> pa.Array:
    """Each cell as text; whole floats lose their point, so that 1.0 reads as "1"."""
    if pa.types.is_string(cells.type):
        return cells
    return _cast(cells, pa.string())


def as_number(cells: pa.Array) -> Floats:
    """Each cell as a float, NaN where it is no number.

    Whole numbers past 2**53 are rounded, but never onto a number below it, and no declared level reaches 2**53.
    """
    kind = cells.type
    if pa.types.is_string(kind):
        return _number_from_text(cells)
    if (
        pa.types.is_boolean(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
    ):
        return _floats(_cast(cells, pa.float64()))
    return np.full(len(cells), np.nan)


def as_day(cells: pa.Array) -> Floats:
    """Each cell as days since 1970-01-01, NaN where it is no date; a time of day is dropped."""
    if pa.types.is_string(cells.type):
        cells = _day_from_text(cells)
    if pa.types.is_timestamp(cells.type) and cells.type.tz is not None:
        cells = pc.local_timestamp(cells)
    if not pa.types.is_temporal(cells.type):
        return np.full(len(cells), np.nan)
    return _floats(_cast(_cast(_cast(cells, pa.date32()), pa.int32()), pa.float64()))


def as_truth(cells: pa.Array) -> Floats:
    """Each cell as 1.0 (true) or 0.0 (false), NaN where it is neither."""
    if not pa.types.is_string(cells.type):
        return as_number(cells)
    lower = pc.utf8_lower(cells)
    true, false = (_truth(pc.is_in(lower, value_set=words)) for words in (_TRUE, _FALSE))
    return np.where(true, 1.0, np.where(false, 0.0, np.nan))


def _number_from_text(cells: pa.Array) -> Floats:
    """Try all cells at once, which is fast; where one is no number, blank out those that are not."""
    present = pc.replace_with_mask(cells, pc.equal(cells, ""), pa.scalar(None, pa.string()))
    try:
        return _floats(pc.cast(present, pa.float64()))
    except pa.ArrowInvalid:
        trimmed = pc.utf8_trim_whitespace(present)
        readable = pc.match_substring_regex(trimmed, _NUMBER)
        return _floats(pc.cast(pc.if_else(readable, trimmed, None), pa.float64()))


def _day_from_text(cells: pa.Array) -> pa.Array:
    """ISO dates; the text is compared with the day read from it, since strptime takes 30 February for 1 March."""
    shaped = pc.if_else(pc.match_substring_regex(cells, _DAY), pc.utf8_slice_codeunits(cells, 0, 10), None)
    days = pc.cast(pc.strptime(shaped, "%Y-%m-%d", unit="s", error_is_null=True), pa.date32())
    return pc.if_else(pc.equal(pc.cast(days, pa.string()), shaped), days, None)


def _cast(cells: pa.Array, to: pa.DataType) -> pa.Array:
    """`cells` as the type `to`, all null where Arrow knows no way."""
    try:
        return pc.cast(cells, to, safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.nulls(len(cells), to)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_large_string(kind) or kind == pa.string_view())


def _floats(cells: pa.Array) -> Floats:
    return np.asarray(cells.to_numpy(zero_copy_only=False), dtype=np.float64)


def _truth(cells: pa.Array) -> Bools:
    return np.array(pc.fill_null(cells, False).to_numpy(zero_copy_only=False), dtype=np.bool_)
