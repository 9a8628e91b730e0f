"""The code of one cell by the words of the documentation, one Python value at a time: nothing here is Arrow, numpy or vectorised."""

import datetime as dt
import math
import re
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pandas as pd

from dpcipher.schema import Column

NUMBER = re.compile(
    r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|[-+]?(inf|infinity|nan)", re.ASCII | re.IGNORECASE
)

# A quote before what begins like a formula; what is a number needs none, and then it is another text.
FORMULA = re.compile(r"'(?!'*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\Z)'*[=+@\t\r\n＝＋－＠-]")


def code_of(column: Column, value: Any) -> int:
    """The code of a cell, for columns that refuse nothing."""
    kind = _missing_kind(column, value)
    if kind is not None:
        return column.domain.size + kind
    if is_missing(column, value):
        return column.size - 1
    code = {"categorical": _listed, "ordinal": _listed, "boolean": _truth, "date": _date}.get(
        column.kind, _cut
    )(column, value)
    if code is not None:
        return code
    if column.other == "missing":
        return column.size - 1
    if column.other in (column.missing_values or ()):
        return column.domain.size + column.missing_values.index(column.other)
    return [str(level) for level in levels_of(column)].index(str(column.other))


def levels_of(column: Column) -> tuple[Any, ...]:
    """The levels that a column lists; none where it is cut."""
    return tuple(column.to_spec().get("levels", ()))


def is_missing(column: Column, value: Any) -> bool:
    """Nothing, NaN, or a text that says so and is no level."""
    if value is None or value is pd.NA or value is pd.NaT:
        return True
    if isinstance(value, float | Decimal):
        return math.isnan(value)
    return value in ("", "nan", "NaN", "NAN") and value not in levels_of(column)


def _missing_kind(column: Column, value: Any) -> int | None:
    """Which of the codes for missing a cell is: by its text, with or without the quote of a CSV file, as the same number, or day."""
    codes = list(column.missing_values or ())
    cell = text(value)
    for spelling in (cell, cell[1:] if FORMULA.match(cell or "") else None):
        for kind, code in enumerate(codes):
            if spelling is not None and spelling == text(code):
                return kind
    for kind, code in enumerate(codes):
        if number(code) == number(value):
            return kind
    if column.kind != "date":
        return None
    days = [_day(code) for code in codes]
    return days.index(_day(value)) if _day(value) is not None and _day(value) in days else None


def text(value: Any) -> str | None:
    """The shortest text of a value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 2**63 else repr(value)
    if isinstance(value, Decimal):
        plain = format(value, "f")
        return plain.rstrip("0").rstrip(".") if "." in plain else plain
    if isinstance(value, dt.datetime):
        if (value.hour, value.minute, value.second, value.microsecond) == (0, 0, 0, 0):
            return value.strftime("%Y-%m-%d")
        return value.strftime("%Y-%m-%d %H:%M:%S") + f".{value.microsecond:06}".rstrip("0").rstrip(".")
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, str) and not any(0xD800 <= ord(letter) < 0xE000 for letter in value):
        return value
    return None


def number(value: Any) -> float:
    """The number that a value is, NaN for none."""
    if isinstance(value, bytes):
        value = value.decode()
    if isinstance(value, bool | int | float | Decimal):
        return float(value)
    if isinstance(value, str):
        trimmed = value.strip()
        if NUMBER.fullmatch(trimmed):
            return float(trimmed)
        return {"true": 1.0, "false": 0.0}.get(trimmed.lower(), math.nan)
    return math.nan


def _listed(column: Column, value: Any) -> int | None:
    levels = levels_of(column)
    texts = isinstance(levels[0], str)
    if texts and text(value) in levels:
        return levels.index(text(value))
    if texts and FORMULA.match(text(value) or "") and text(value)[1:] in levels:
        return levels.index(text(value)[1:])
    same = [
        i for i, level in enumerate(levels) if number(level) == number(value) and abs(number(level)) < 2**53
    ]
    return same[0] if same else None


def _truth(column: Column, value: Any) -> int | None:
    word = value.strip().lower() if isinstance(value, str) else value
    if isinstance(word, bytes):
        word = word.decode().strip().lower()
    named = {"t": 1, "yes": 1, "y": 1, "f": 0, "no": 0, "n": 0}.get(word) if isinstance(word, str) else None
    found = number(value) if named is None else named
    return int(found) if found in (0, 1) else None


def _date(column: Column, value: Any) -> int | None:
    day = _day(value)
    return None if day is None else _bin(column, (day - dt.date(1970, 1, 1)).days)


def _day(value: Any) -> dt.date | None:
    if isinstance(value, str | bytes):
        shown = re.fullmatch(r"(\d{4}-\d{2}-\d{2})([T ].*)?", text(value) or "")
        try:
            value = dt.date.fromisoformat(shown[1]) if shown else None
        except ValueError:
            value = None
    if not isinstance(value, dt.date):
        return None
    return value.date() if isinstance(value, dt.datetime) else value


def _cut(column: Column, value: Any) -> int | None:
    found = number(value)
    if column.kind == "integer" and not found.is_integer():
        return None
    return _bin(column, found)


def _bin(column: Column, value: float) -> int | None:
    edges = list(column.domain.edges)
    for i, (low, high) in enumerate(pairwise(edges)):
        if low <= value < high or (i == len(edges) - 2 and value == high and column.kind == "number"):
            return i
    return None
