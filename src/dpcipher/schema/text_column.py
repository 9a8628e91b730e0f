"""Columns whose levels are found: `levels: discover`, which publishes texts of cells that many people share.

A text can be found only if it fits the declared `pattern` as a whole and is no longer than `max_length`: both are obligatory, since what is found is
published as it stands in the cells. Everything else, and what is not found, becomes the level `other`, which such a column always has.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpcipher.errors import SchemaError
from dpcipher.schema.listed import Listed
from dpcipher.tables.domain import Bools

if TYPE_CHECKING:
    from dpcipher.schema.column import Column

DISCOVER = "discover"
OTHER = "other"  # the level of what is not found, unless `other` gives it another name
MAX_FOUND = 256  # levels, unless `max_levels` says otherwise
MOST_FOUND = 2**14
LONGEST = 200  # characters of a level
_LONGEST_PATTERN = 1000
# The most texts that a private dictionary can number: codes are 32-bit integers.
MOST_CODES = 2**31 - 3
# What no level holds, whatever the pattern says: control characters, line ends, halves of characters; and what looks like a level for missing cells.
_UNFIT = r"[\pC\p{Zl}\p{Zp}]|\A\(missing"
_ANYTHING = ("Jane Doe, 1 Main St.", "jane@example.org", "+1 555-0100", "!?;#")
_NEEDS = "; try {kind: categorical, levels: discover, pattern: '[A-Z]{2}[0-9]*', max_length: 10}"


def check_discover(column: "Column") -> None:
    """Refuse a declaration that does not say what may be published, or that says it in two ways."""
    if column.kind != "categorical":
        raise SchemaError(f"levels (discover) is for categorical columns, not for {column.kind} ones{_NEEDS}")
    given = [name for name in ("edges", "min", "max", "bins") if getattr(column, name) is not None]
    if given:
        raise SchemaError(f"levels (discover) must not stand beside {given[0]}; leave it out")
    _check_number("max_length", column.max_length, LONGEST, 40)
    _check_number(
        "max_levels", MAX_FOUND if column.max_levels is None else column.max_levels, MOST_FOUND, 256
    )
    _check_pattern(column.pattern)
    if not isinstance(column.keep, tuple | None):
        raise SchemaError(
            f"keep ({column.keep!r:.60}) must be a list of levels that are always kept; try keep: [a, b]"
        )
    for level in column.keep or ():
        if isinstance(level, bool | float) or not isinstance(level, str | int):
            raise SchemaError(f"keep ({level!r:.60}) must hold texts or whole numbers; quote it")
    if not isinstance(column.other, str) or column.other in ("", "nearest", "missing"):
        raise SchemaError(
            f"other ({column.other!r:.60}) must be the name of the level of what is not found; try other: other"
        )


def lets_anything(column: "Column") -> bool:
    """Whether its pattern says nothing: names, addresses and mere signs all fit it."""
    if column.levels != DISCOVER:
        return False
    fit = pc.match_substring_regex(pa.array(_ANYTHING), _whole(str(column.pattern)))
    return bool(pc.all(fit).as_py())


def check_declared(column: "Column") -> None:
    """Refuse what only a column whose levels are found may say."""
    for name in ("keep", "pattern", "max_length", "max_levels"):
        if getattr(column, name) is not None:
            raise SchemaError(f"{name} is for levels: discover; leave it out, or say levels: discover")


def stand_in(column: "Column") -> Listed:
    """As many levels as may be found: what a plan counts with."""
    return Listed(_levels(column, stand_in_texts(column)))


def stand_in_texts(column: "Column") -> tuple[str, ...]:
    """A name for every level that may be found."""
    most = MAX_FOUND if column.max_levels is None else column.max_levels
    return tuple(f"(found {number + 1})" for number in range(most))


def closed(column: "Column", texts: Sequence[str] = ()) -> "Column":
    """The column with the levels that were found: the kept ones, those, and `other`."""
    return replace(
        column, levels=_levels(column, texts), keep=None, pattern=None, max_length=None, max_levels=None
    )


def on_grid(column: "Column") -> "Column":
    """The column of the numbers that a private dictionary gives to cells until levels are found; every cell has one, missing ones included."""
    return type(column)(column.name, "integer", min=0, max=MOST_CODES - 1)


def fits(column: "Column", texts: pa.Array) -> Bools:
    """Which texts may be found, each by itself: of the declared pattern, short enough, and fit to be written to a file."""
    whole = pc.match_substring_regex(texts, _whole(str(column.pattern)))
    short = pc.less_equal(pc.utf8_length(texts), column.max_length)
    unfit = pc.match_substring_regex(texts, _UNFIT)
    good = pc.and_not(pc.and_(whole, short), unfit)
    return np.array(pc.fill_null(good, False).to_numpy(zero_copy_only=False), dtype=np.bool_)


def _levels(column: "Column", texts: Sequence[str]) -> tuple[str, ...]:
    kept = (str(level) for level in column.keep or ())
    return tuple(dict.fromkeys((*kept, *texts, str(column.other))))


def _whole(pattern: str) -> str:
    """A pattern that the whole text must match, in RE2: time in proportion to the text, whatever the pattern."""
    return rf"\A(?:{pattern})\z"


def _check_number(name: str, value: object, most: int, example: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise SchemaError(
            f"{name} ({value!r:.60}) must be a whole number from 1 to {most} with levels: discover; try {name}: {example}"
        )


def _check_pattern(pattern: object) -> None:
    if not isinstance(pattern, str) or not 0 < len(pattern) <= _LONGEST_PATTERN:
        raise SchemaError(
            f"pattern ({pattern!r:.60}) must be a regular expression that says which texts may be published{_NEEDS}"
        )
    try:
        # By itself first, so that no half of it closes our own bracket.
        pc.match_substring_regex(pa.array([""]), pattern)
        pc.match_substring_regex(pa.array([""]), _whole(pattern))
    except (pa.ArrowInvalid, UnicodeEncodeError):
        raise SchemaError(
            f"pattern ({pattern!r:.60}) must be a regular expression (RE2: no look-around, no back-references){_NEEDS}"
        ) from None
