"""Declared points on the line of a column, such as its bounds and edges: numbers, days since 1970-01-01, or seconds since midnight."""

from datetime import date, time, timedelta
from typing import Literal

from dpcipher.errors import SchemaError

BinnedKind = Literal["integer", "number", "date", "time"]

EXACT = 2**53  # below it every whole number is a float of its own
MAX_NUMBER = 1e300  # so that the width of a range is finite too
_EPOCH = date(1970, 1, 1)


def parse_point(kind: BinnedKind, value: object, name: str) -> float:
    """A declared value as a number, checked for the kind of its column."""
    if kind == "date":
        return parse_day(value, name)
    if kind == "time":
        return parse_second(value, name)
    limit = EXACT if kind == "integer" else MAX_NUMBER
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < limit:
        raise SchemaError(f"{name} ({value!r:.60}) must be a finite number below {limit:.3g} in size")
    if kind == "integer" and value != int(value):
        raise SchemaError(f"{name} ({value!r}) must be whole in an integer column; use kind: number")
    return int(value) if kind == "integer" else float(value)


def parse_day(value: object, name: str) -> int:
    """An ISO date as days since 1970-01-01."""
    try:
        return (date.fromisoformat(str(value)) - _EPOCH).days
    except ValueError:
        raise SchemaError(f"{name} ({value!r:.60}) must be a date such as 2024-01-31") from None


def parse_second(value: object, name: str) -> int:
    """A time of day as seconds since midnight; 24:00 is no time of day."""
    try:
        clock = time.fromisoformat(str(value))
    except ValueError:
        clock = None
    if clock is None or clock.tzinfo is not None or clock.microsecond:
        raise SchemaError(f"{name} ({value!r:.60}) must be a time of day in quotes, such as '08:30'")
    return clock.hour * 3600 + clock.minute * 60 + clock.second


def day_text(days: int) -> str:
    """Days since 1970-01-01 as an ISO date."""
    return (_EPOCH + timedelta(days=days)).isoformat()


def second_text(seconds: int) -> str:
    """Seconds since midnight as a time of day.

    >>> second_text(8 * 3600 + 30 * 60), second_text(86399)
    ('08:30', '23:59:59')
    """
    hour, minute, second = seconds // 3600, seconds // 60 % 60, seconds % 60
    return f"{hour:02d}:{minute:02d}" + (f":{second:02d}" if second else "")
