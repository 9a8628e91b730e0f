"""Codes in the narrowest integer that holds them, read once for each distinct value where a batch repeats its values.

Stability. What is read from a cell is a function of its value alone (`dpcipher.schema.cells`), so it may be read once for all cells that have that
value. Which values a batch holds decides how fast it is read, and nothing else.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpcipher.schema.cells import by_type
from dpcipher.tables.domain import CodeColumn, Codes

Marks = NDArray[np.signedinteger[Any]]  # codes, and numbers below 0 for cells that have none
Read = Callable[[pa.Array], Codes]

ABSENT = -2  # the mark of a cell that holds nothing
SAMPLE = 2**10
SHORT_SPAN = 2**12  # whole numbers of a batch that lie closer together than so are looked up


def code_type(size: int) -> type[np.integer[Any]]:
    """The narrowest integer for codes below `size`.

    >>> code_type(256).__name__, code_type(257).__name__, code_type(65_537).__name__
    ('uint8', 'uint16', 'int32')
    """
    return np.uint8 if size <= 2**8 else np.uint16 if size <= 2**16 else np.int32


def narrow_codes(marks: Marks, size: int) -> CodeColumn:
    """Codes below `size` as their narrowest type."""
    narrow = code_type(size)
    return marks.view(narrow) if marks.itemsize == narrow().itemsize else marks.astype(narrow)


def marks_of(cells: pa.Array | pa.ChunkedArray, read: Read, size: int, *, absent: int = ABSENT) -> Marks:
    """What `read`, which sees plain arrays of one type, says about each cell of any column: a code below `size`, or a mark.

    Cells that are null in any array get `absent`.
    """
    width = np.int8 if size <= 2**7 else np.int16 if size <= 2**15 else np.int32

    def narrow(part: pa.Array) -> pa.Array:
        return _marks_of_part(part, lambda entries: read(entries).astype(width, copy=False))

    marks = _filled(by_type(cells, narrow), absent)
    return np.asarray(marks.to_numpy(zero_copy_only=False))


def _filled(cells: pa.Array | pa.ChunkedArray, value: int) -> pa.Array | pa.ChunkedArray:
    """Nulls as a value; cells without any as they are, since Arrow would copy them."""
    return pc.fill_null(cells, value) if cells.null_count else cells


def _marks_of_part(cells: pa.Array, read: Callable[[pa.Array], Marks]) -> pa.Array:
    """The marks of cells of one type: by their distinct values where that pays."""
    if pa.types.is_boolean(cells.type):
        return pa.array(read(pa.array([False, True]))).take(cells.cast(pa.int8()))
    if pa.types.is_string(cells.type) and _repeats(cells):
        distinct = cells.dictionary_encode()
        return pa.array(read(distinct.dictionary)).take(distinct.indices)
    whole = _whole_type(cells.type)
    if whole is None or cells.null_count == len(cells):
        return pa.array(read(cells))
    low, high = (bound.as_py() for bound in pc.min_max(cells.view(whole)).values())
    if high - low >= min(SHORT_SPAN, len(cells)):
        return pa.array(read(cells))
    kind = whole.to_pandas_dtype()
    entries = np.arange(high - low + 1).astype(kind) + kind(low)  # never past the ends of the type
    return _looked_up(cells.view(whole), low, read(pa.array(entries).view(cells.type)))


def _repeats(cells: pa.Array) -> bool:
    """Whether cells seem to have few distinct values, by the first of them."""
    first = cells[:SAMPLE]
    return len(first) < SAMPLE or 2 * len(first.unique()) < SAMPLE


def _whole_type(kind: pa.DataType) -> pa.DataType | None:
    """The integers that cells of a type are, or are stored as."""
    return pa.int32() if pa.types.is_date32(kind) else kind if pa.types.is_integer(kind) else None


def _looked_up(cells: pa.Array, low: int, marks: Marks) -> pa.Array:
    """For each whole number from `low` up, its mark. Differences are right whatever bits overflow, since they are short."""
    numbers = _filled(cells, low).to_numpy()
    first = int(marks[0])
    if np.array_equal(marks, np.arange(first, first + len(marks))):  # one code after another
        bits = 8 * marks.itemsize
        shift = np.array((first - low) % 2**bits, dtype=f"u{marks.itemsize}").view(marks.dtype)
        found = numbers.astype(marks.dtype) + shift
    else:
        found = marks[(numbers - numbers.dtype.type(low)).view(f"u{numbers.itemsize}")]
    return pa.array(
        found, mask=pc.is_null(cells).to_numpy(zero_copy_only=False) if cells.null_count else None
    )
