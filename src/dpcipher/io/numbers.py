"""Numbers as a file's format writes them, rewritten as Python writes them: each cell by itself.

Stability 1: what becomes of a cell depends on its own text and the declared format alone.
"""

import re

import pyarrow as pa
import pyarrow.compute as pc

from dpcipher.files.codec import is_number
from dpcipher.schema.columns import Categorical
from dpcipher.schema.format import FileFormat
from dpcipher.schema.schema import Schema

_PLAIN = r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$"
_SPACES = "[ \u00a0\u202f]"  # also the spaces that do not break, which some programs write


def number_columns(schema: Schema) -> frozenset[str]:
    """The columns that hold numbers: integers, numbers, and levels that are numbers. Texts such as `1,5` stay texts elsewhere."""
    return frozenset(
        column.name
        for column in schema.columns
        if column.kind in ("integer", "number")
        or (isinstance(column, Categorical) and all(map(is_number, column.levels)))
    )


def plain_numbers(cells: pa.Array, format: FileFormat) -> pa.Array:
    """Texts with every number of the declared format rewritten; other texts as they are.

    Under a decimal comma, `1.500` is no number: it may be one and a half or fifteen hundred, so that it is made unreadable rather than guessed.

    >>> plain_numbers(pa.array(["1.234,5", "-7", "1.5", "N"]), FileFormat(decimal=",", thousands=".")).to_pylist()
    ['1234.5', '-7', '1,5', 'N']
    """
    trimmed = pc.utf8_trim_whitespace(cells)
    declared = pc.match_substring_regex(trimmed, number_pattern(format))
    foreign = pc.and_not(pc.match_substring_regex(trimmed, _PLAIN), declared)
    unreadable = pc.replace_substring(trimmed, ".", ",")
    return pc.if_else(declared, _rewritten(trimmed, format), pc.if_else(foreign, unreadable, cells))


def number_pattern(format: FileFormat) -> str:
    """What a number looks like, as a regular expression of RE2."""
    mark = re.escape(format.decimal)
    whole = "[0-9]+"
    if format.thousands is not None:
        whole = f"(?:[0-9]{{1,3}}(?:{_thousands(format)}[0-9]{{3}})+|[0-9]+)"
    return f"^[-+]?(?:{whole}(?:{mark}[0-9]*)?|{mark}[0-9]+)(?:[eE][-+]?[0-9]+)?$"


def _rewritten(numbers: pa.Array, format: FileFormat) -> pa.Array:
    if format.thousands is not None:
        numbers = pc.replace_substring_regex(numbers, _thousands(format), "")
    return pc.replace_substring(numbers, format.decimal, ".")


def _thousands(format: FileFormat) -> str:
    return _SPACES if format.thousands == " " else re.escape(str(format.thousands))
