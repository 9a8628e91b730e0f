"""What the numbers of a cut column are: whole numbers, numbers, days since 1970-01-01 or seconds since midnight."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, time, timedelta
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpcipher.errors import SchemaError
from dpcipher.files.codec import is_number
from dpcipher.schema.cells import as_day, as_number, as_time
from dpcipher.tables.domain import Floats

CutKind = Literal["integer", "number", "date", "time"]
Point = float | str  # as a schema declares it

EXACT = 2**53  # below it every whole number is a float of its own
MAX_NUMBER = 1e300  # so that the width of a range is finite too
DAY_SECONDS = 24 * 60 * 60
_EPOCH = date(1970, 1, 1)


@dataclass(frozen=True)
class Scale:
    """How the values of a kind of column are read from cells and declarations, and written."""

    kind: CutKind
    noun: str
    example: str  # in the words of an error
    parse: Callable[[object, str], float]
    declared: Callable[[float], float | str]
    text: Callable[[float], str]
    read: Callable[[pa.Array], Floats]
    arrow: pa.DataType

    @property
    def whole(self) -> bool:
        """Whether values are whole: integers, days or seconds."""
        return self.kind != "number"

    def cells(self, values: NDArray[Any]) -> pa.Array:
        """Numbers, days or seconds as cells of the column's own type."""
        if not self.whole:
            return pa.array(values)
        stored = np.int64 if pa.types.is_int64(self.arrow) else np.int32
        return pa.array(values.astype(stored)).cast(self.arrow)

    def number_of(self, text: str) -> float | None:
        """The number, day or second that a word stands for."""
        if self.kind in ("date", "time"):
            try:
                return float(self.parse(text, self.kind))
            except SchemaError:
                return None
        value = float(as_number(pa.array([text], pa.string()))[0])
        return value if np.isfinite(value) and text.strip()[:1] not in "tTfF" else None


def _parse_whole(value: object, name: str) -> int:
    number = _finite(value, name, EXACT)
    if number != int(number):
        raise SchemaError(f"{name} ({value!r}) must be whole in an integer column; use kind: number")
    return int(number)


def _parse_number(value: object, name: str) -> float:
    return float(_finite(value, name, MAX_NUMBER))


def _finite(value: object, name: str, limit: float) -> float:
    if not is_number(value) or not abs(value) < limit:
        raise SchemaError(f"{name} ({value!r:.60}) must be a finite number below {limit:.3g} in size")
    return value


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


def day_text(days: float) -> str:
    """Days since 1970-01-01 as an ISO date."""
    return (_EPOCH + timedelta(days=int(days))).isoformat()


def second_text(seconds: float) -> str:
    """Seconds since midnight as a time of day.

    >>> second_text(8 * 3600 + 30 * 60), second_text(86399)
    ('08:30', '23:59:59')
    """
    hour, minute, second = int(seconds) // 3600, int(seconds) // 60 % 60, int(seconds) % 60
    return f"{hour:02d}:{minute:02d}" + (f":{second:02d}" if second else "")


def _plain_number(number: float) -> float:
    return float(number) + 0.0  # no negative zero


def _whole_text(number: float) -> str:
    return str(int(number))


def _number_text(number: float) -> str:
    return f"{number:.12g}"


INTEGER = Scale(
    "integer", "whole numbers", "a number, or a column", _parse_whole, int, _whole_text, as_number, pa.int64()
)
NUMBER = Scale(
    "number", "numbers", "a number, or a column", _parse_number, _plain_number, _number_text, as_number, pa.float64()
)  # fmt: skip
DATE = Scale("date", "dates", "a date such as 2024-01-31", parse_day, day_text, day_text, as_day, pa.date32())
TIME = Scale(
    "time", "times of day", "a time such as 08:30", parse_second, second_text, second_text, as_time, pa.time32("s")
)  # fmt: skip
SCALES: dict[str, Scale] = {scale.kind: scale for scale in (INTEGER, NUMBER, DATE, TIME)}
