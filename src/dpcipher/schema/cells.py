"""Arrow cells read as text, numbers, days, truth values or person ids: each cell by itself.

Stability. What is read from a cell depends on the value of that cell alone: not on the other cells of its column, on its batch, on the type
that some library gave the column, or on the order of the rows. So one row more or less changes what is read from no other row. Two things
keep that true: a value is read alike under every type that can hold it (7, 7.0, Decimal("7.00") and "7" are one number), and no step
can fail on a cell, because a failure would reach the whole batch. A cell that cannot be read as asked is null (or NaN). So a cell may
also be read once for all cells of its value: which values a batch holds decides how fast it is read, and nothing else.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpcipher.tables.domain import Bools, CodeColumn, Codes, Floats

_NUMBER = r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$|^[-+]?(?i:inf|infinity|nan)$"
# What a spreadsheet takes for the beginning of a formula when it opens a CSV file (OWASP, CSV injection), and the numbers among it, which are
# harmless. Quotes may stand before it: what is escaped once is escaped again, so that one quote less always gives the text back.
_FORMULA = "^'*[=+\\-@\t\r\n＝＋－＠]"
_PLAIN_NUMBER = r"^'*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$"
_DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ].*)?$"
_TIME = (
    r"^\s*(?:[0-9]{4}-[0-9]{2}-[0-9]{2}[T ])?(?P<hour>[01]?[0-9]|2[0-3]):(?P<minute>[0-5][0-9])"
    r"(?::(?P<second>[0-5][0-9])(?:\.[0-9]*)?)?\s*$"
)
_WHOLE_ID = r"^[-+]?[0-9]+(\.0*)?$"
_TRUE, _FALSE = pa.array(["true", "t", "yes", "y"]), pa.array(["false", "f", "no", "n"])
_BLANK = pa.array(["", "nan", "NaN", "NAN"])
_BLANK_ID = pa.array(["", "na", "n/a", "#n/a", "nan", "nat", "null", "none", "<na>"])
_BYTES = (pa.binary(), pa.large_binary(), pa.binary_view())
_INT64 = 2.0**63

Marks = NDArray[np.signedinteger[Any]]  # codes, and numbers below 0 for cells that have none
Read = Callable[[pa.Array], Codes]

ABSENT = -2  # the mark of a cell that holds nothing
SAMPLE = 2**10
SHORT_SPAN = 2**12  # whole numbers of a batch that lie closer together than so are looked up


def by_type(cells: pa.Array | pa.ChunkedArray, read: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Apply `read`, which sees plain arrays of one type, to any column: dictionaries by their entries, unions by their parts."""
    cells = flat(cells)
    if isinstance(cells, pa.DictionaryArray):
        return by_type(cells.dictionary, read).take(cells.indices)
    if not isinstance(cells, pa.UnionArray):
        return read(cells)
    if cells.offset:  # the type codes of a slice are those of the whole
        cells = cells.take(pa.array(np.arange(len(cells))))
    parts = [by_type(cells.field(i), read) for i in range(cells.type.num_fields)]
    starts = np.zeros(128, dtype=np.int64)  # by the code of a part, which is a small whole number
    starts[list(cells.type.type_codes)] = np.cumsum([0, *map(len, parts)])[:-1]
    inside = np.asarray(cells.offsets) if cells.type.mode == "dense" else np.arange(len(cells))
    return pa.concat_arrays(parts).take(pa.array(starts[np.asarray(cells.type_codes)] + inside))


def flat(cells: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One array: chunks joined, runs and extension types undone, every kind of text, and bytes that are text, as `string`."""
    if isinstance(cells, pa.ChunkedArray):
        if pa.types.is_dictionary(cells.type):
            cells = cells.unify_dictionaries()
        cells = cells.combine_chunks()
    if isinstance(cells, pa.ChunkedArray):  # older pyarrow: no chunk at all stays chunked
        cells = pa.concat_arrays(cells.chunks) if cells.num_chunks else pa.array([], cells.type)
    if isinstance(cells, pa.ExtensionArray):
        return flat(cells.storage)
    if pa.types.is_run_end_encoded(cells.type):
        return flat(pc.run_end_decode(cells))
    if pa.types.is_large_string(cells.type) or cells.type == pa.string_view():
        cells = pc.cast(cells, pa.string())
    if pa.types.is_string(cells.type):
        return _checked_text(cells)
    is_bytes = cells.type in _BYTES or pa.types.is_fixed_size_binary(cells.type)
    return _decoded(cells) if is_bytes else cells


def is_missing(cells: pa.Array, *, blank: bool) -> Bools:
    """Where a cell holds nothing: null, NaN and, with `blank`, an empty text or a written-out NaN."""
    if pa.types.is_floating(cells.type):
        return _truth(pc.is_null(cells, nan_is_null=True))
    missing = _truth(pc.is_null(cells))
    if blank and pa.types.is_string(cells.type):
        missing |= _truth(pc.is_in(cells, value_set=_BLANK))
    return missing


def starts_formula(texts: pa.Array) -> pa.Array:
    """Where a text would begin a formula in a spreadsheet; numbers do not."""
    number = pc.match_substring_regex(texts, _PLAIN_NUMBER)
    return pc.and_not(pc.match_substring_regex(texts, _FORMULA), number)


def quoted(texts: pa.Array) -> pa.Array:
    """Texts as CSV files hold them: with a quote before those that would begin a formula.

    >>> quoted(pa.array(["=1+1", "-5", "'@home", "a=b"])).to_pylist()
    ["'=1+1", '-5', "''@home", 'a=b']
    """
    quote, nothing = pa.scalar("'", texts.type), pa.scalar("", texts.type)
    return pc.if_else(starts_formula(texts), pc.binary_join_element_wise(quote, texts, nothing), texts)


def quoted_text(text: str) -> str:
    """One text as CSV files hold it."""
    return str(quoted(pa.array([text]))[0])


def as_text(cells: pa.Array) -> pa.Array:
    """Each cell as text, the shortest that says its value: 1 for 1.0, 2024-01-31 for midnight of that day; null where there is none."""
    kind = cells.type
    if pa.types.is_string(kind):
        return cells
    if pa.types.is_floating(kind):
        return _text_of_floats(pc.cast(cells, pa.float64()))
    if pa.types.is_decimal(kind):
        return _text_of_decimals(cells)
    if pa.types.is_timestamp(kind):
        cells = _wall_clock(cells)
        return _without_zeros(
            pc.replace_substring_regex(pc.cast(cells, pa.string()), r" 00:00:00(\.0+)?$", "")
        )
    if pa.types.is_time(kind):
        return _without_zeros(pc.cast(cells, pa.string()))
    if pa.types.is_date(kind) or pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return pc.cast(cells, pa.string())
    return pa.nulls(len(cells), pa.string())


def as_number(cells: pa.Array) -> Floats:
    """Each cell as a float, NaN where it is no number; true is 1 and false is 0, however they are written.

    Whole numbers past 2**53 are rounded, but never onto a number below it, and no declared level reaches 2**53.
    """
    kind = cells.type
    if pa.types.is_string(kind):
        return _number_from_text(cells)
    if pa.types.is_decimal(kind):  # Arrow's own cast rounds by the scale of the column
        return _number_from_text(_text_of_decimals(cells))
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _floats(pc.cast(cells, pa.float64(), safe=False))
    return np.full(len(cells), np.nan)


def as_day(cells: pa.Array) -> Floats:
    """Each cell as days since 1970-01-01, NaN where it is no date; a time of day is dropped, a time zone is the cell's own."""
    if pa.types.is_string(cells.type):
        cells = _day_from_text(cells)
    elif pa.types.is_timestamp(cells.type):
        cells = _wall_clock(cells)
    elif not pa.types.is_date(cells.type):
        return np.full(len(cells), np.nan)
    days = pc.cast(pc.cast(cells, pa.date32(), safe=False), pa.int32())
    return _floats(pc.cast(days, pa.float64()))


def as_time(cells: pa.Array) -> Floats:
    """Each cell as whole seconds since midnight, NaN where it is no time of day; a date before it and parts of a second are dropped."""
    if pa.types.is_timestamp(cells.type):
        cells = pc.cast(_wall_clock(cells), pa.string())
    elif pa.types.is_time(cells.type):
        cells = pc.cast(cells, pa.string())
    elif not pa.types.is_string(cells.type):
        return np.full(len(cells), np.nan)
    parts = pc.extract_regex(cells, _TIME)
    hours, minutes, seconds = (
        _floats(pc.cast(pc.if_else(pc.equal(text, ""), "0", text), pa.float64()))
        for text in (pc.struct_field(parts, name) for name in ("hour", "minute", "second"))
    )
    return hours * 3600 + minutes * 60 + seconds


def as_truth(cells: pa.Array) -> Floats:
    """Each cell as 1.0 (true) or 0.0 (false), and as another number or NaN where it is neither."""
    numbers = as_number(cells)
    if not pa.types.is_string(cells.type):
        return numbers
    lower = pc.utf8_lower(pc.utf8_trim_whitespace(cells))
    true, false = (_truth(pc.is_in(lower, value_set=words)) for words in (_TRUE, _FALSE))
    return np.where(true, 1.0, np.where(false, 0.0, numbers))


def as_id(cells: pa.Array) -> pa.Array:
    """Whose row it is, as text; null where nobody is named.

    Whole numbers are one person however they are written (7, 7.0, "7", "007"), since libraries turn one into the other; other texts are
    compared as they are. Blank texts and the usual words for "missing" name nobody.
    """
    text = pc.utf8_trim_whitespace(as_text(cells))
    blank = pc.is_in(pc.utf8_lower(text), value_set=_BLANK_ID)
    whole = pc.match_substring_regex(text, _WHOLE_ID)
    digits = pc.replace_substring_regex(text, r"^([-+]?)0*([0-9]+?)(\.0*)?$", r"\1\2")
    digits = pc.replace_substring_regex(digits, r"^\+|^-(0)$", r"\1")
    return pc.if_else(blank, pa.scalar(None, pa.string()), pc.if_else(whole, digits, text))


def _number_from_text(cells: pa.Array) -> Floats:
    """A number or a truth value, with space around it; every cell takes the same path."""
    trimmed = pc.utf8_trim_whitespace(cells)
    readable = pc.match_substring_regex(trimmed, _NUMBER)
    numbers = _floats(pc.cast(pc.if_else(readable, trimmed, None), pa.float64()))
    if bool(pc.all(pc.fill_null(readable, True)).as_py()):
        return numbers
    for word, value in (("true", 1.0), ("false", 0.0)):
        numbers[_truth(pc.equal(pc.ascii_lower(trimmed), word))] = value
    return numbers


def _day_from_text(cells: pa.Array) -> pa.Array:
    """ISO dates; the text is compared with the day read from it, since strptime takes 30 February for 1 March."""
    shaped = pc.if_else(pc.match_substring_regex(cells, _DAY), pc.utf8_slice_codeunits(cells, 0, 10), None)
    days = pc.cast(pc.strptime(shaped, "%Y-%m-%d", unit="s", error_is_null=True), pa.date32())
    return pc.if_else(pc.equal(pc.cast(days, pa.string()), shaped), days, None)


def _text_of_floats(cells: pa.Array) -> pa.Array:
    """Whole numbers as the integers they are, so that a column that became float for a missing value reads as before."""
    values = _floats(cells)
    whole = (values == np.floor(values)) & (np.abs(values) < _INT64)
    integers = pa.array(np.where(whole, values, 0.0).astype(np.int64), mask=~whole)
    return pc.coalesce(pc.cast(integers, pa.string()), pc.cast(cells, pa.string()))


def _text_of_decimals(cells: pa.Array) -> pa.Array:
    """Plain digits without trailing zeros, whatever the scale of the column."""
    text = pc.cast(cells, pa.string())
    if bool(pc.any(pc.match_substring(text, "E")).as_py()):
        text = pa.array(
            [None if one is None else format(Decimal(one), "f") for one in text.to_pylist()], pa.string()
        )
    return _without_zeros(text)


def _without_zeros(text: pa.Array) -> pa.Array:
    """Without the zeros at the end of a fraction."""
    return pc.replace_substring_regex(pc.replace_substring_regex(text, r"(\.[0-9]*?)0+$", r"\1"), r"\.$", "")


def _wall_clock(cells: pa.Array) -> pa.Array:
    """Times as a clock on the wall shows them, in the zone that the column states; null where nobody knows that zone."""
    if cells.type.tz is None:
        return cells
    try:
        return pc.local_timestamp(cells)
    except pa.ArrowInvalid:  # about the name of the zone, which is the column's and no cell's
        return pa.nulls(len(cells), pa.timestamp(cells.type.unit))


def _decoded(cells: pa.Array) -> pa.Array:
    """Bytes as the UTF-8 text they hold. Bytes that are no text stay as they are, in a union, and fit no level."""
    try:
        return pc.cast(cells, pa.string())
    except pa.ArrowInvalid:  # about one cell; the others must not suffer
        return split_bytes(cells.to_pylist())


def _checked_text(cells: pa.Array) -> pa.Array:
    """Text that is UTF-8; what a damaged file merely calls text is taken as bytes, since Arrow's functions would fail on all cells."""
    try:
        cells.validate(full=True)
    except pa.ArrowInvalid:  # about one cell; the others must not suffer
        return split_bytes(pc.cast(cells, pa.binary()).to_pylist())
    return cells


def split_bytes(values: list[bytes | None]) -> pa.Array:
    """Bytes that are UTF-8 as text, beside those that are not."""
    texts = [_utf8(value) for value in values]
    wrong = np.array([text is None and value is not None for text, value in zip(texts, values, strict=True)])
    return mixed([pa.array(texts, pa.string()), unfit(len(values))], wrong.astype(np.int8))


def mixed(parts: list[pa.Array], part: NDArray[np.int8]) -> pa.Array:
    """A column whose cells are of several types: of each row, the cell of the part that `part` names."""
    return pa.UnionArray.from_sparse(pa.array(part), parts)


def unfit(length: int) -> pa.Array:
    """Cells that hold something which is neither text, number, date nor truth value: they fit no level, and are not missing."""
    return pa.array([{}] * length, pa.struct([]))


def _utf8(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _floats(cells: pa.Array) -> Floats:
    return np.array(cells.to_numpy(zero_copy_only=False), dtype=np.float64)


def _truth(cells: pa.Array) -> Bools:
    return np.array(pc.fill_null(cells, False).to_numpy(zero_copy_only=False), dtype=np.bool_)


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
        looked_up = numbers.astype(marks.dtype) + shift
    else:
        looked_up = marks[(numbers - numbers.dtype.type(low)).view(f"u{numbers.itemsize}")]
    return pa.array(
        looked_up, mask=pc.is_null(cells).to_numpy(zero_copy_only=False) if cells.null_count else None
    )
