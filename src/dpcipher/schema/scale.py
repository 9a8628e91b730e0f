"""What the numbers of a cut column are: whole numbers, numbers, days since 1970-01-01 or seconds since midnight; and the grid of values that it can take."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from itertools import pairwise
from math import ceil, log10
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

# Without `decimals` or `step`, a number has as many decimals as the declared edges, and enough for so many values in the narrowest bin.
VALUES_PER_BIN = 100
WRITTEN_DECIMALS = 6  # edges with more were computed, such as thirds, and say nothing about the values
MAX_DECIMALS = 15

Places = NDArray[np.int64]


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


@dataclass(frozen=True)
class Grid:
    """The values k · numerator / denominator for whole k, called places; each is the float nearest to it, so that 0.15 is written 0.15.

    >>> Grid(5, 100).values(np.array([3])).tolist()
    [0.15]
    """

    numerator: int = 1
    denominator: int = 1

    def values(self, places: Places) -> NDArray[Any]:
        """The value at each place: whole numbers where the grid has only such."""
        counted = places * self.numerator
        return counted if self.denominator == 1 else counted / self.denominator

    def places(self, points: NDArray[Any]) -> Places:
        """The first place whose value is at or above each point."""
        guess = np.ceil(np.asarray(points) * (self.denominator / self.numerator)).astype(np.int64)
        guess -= self.values(guess - 1) >= points  # rounding may have gone one too far, either way
        return np.asarray(guess + (self.values(guess) < points))

    def holds(self, points: Sequence[float]) -> bool:
        """Whether the grid is coarse enough, at the size of these points, for each of its values to be a float of its own."""
        return max(map(abs, points)) * self.denominator < EXACT


def declared_grid(scale: Scale, step: object, decimals: int | None, points: Sequence[float]) -> Grid | None:
    """The grid that `step` or `decimals` of a column asks for; None where neither is given."""
    if step is None and decimals is None:
        return None
    if step is not None and decimals is not None:
        raise SchemaError(f"step ({step!r:.40}) and decimals ({decimals!r:.40}) say the same twice; keep one")
    grid = _of_step(scale, step) if decimals is None else _of_decimals(scale, decimals)
    if not grid.holds(points):
        raise SchemaError("step or decimals is too fine for numbers of this size; make it coarser")
    return grid


def _of_decimals(scale: Scale, decimals: int) -> Grid:
    if scale.whole:
        raise SchemaError("decimals is for number columns; integers have none")
    return _decimal_grid(decimals)


def _decimal_grid(decimals: int) -> Grid:
    return Grid(1, 10**decimals)


def _of_step(scale: Scale, step: object) -> Grid:
    if scale.kind == "time":
        return _of_clock(step)
    if scale.kind == "date":
        raise SchemaError("step is for integer, number and time columns; leave it out")
    if not is_number(step) or not 0 < step < EXACT:
        raise SchemaError(f"step ({step!r:.60}) must be a number above 0, such as 10 or 0.25")
    places = decimals_of([step])
    numerator = int(Decimal(repr(step)).scaleb(places))
    if places > MAX_DECIMALS or (scale.whole and places):
        raise SchemaError(f"step ({step!r}) must be whole in an integer column, and not finer than 1e-15")
    return Grid(numerator, 10**places)


def _of_clock(step: object) -> Grid:
    """The times that are so many minutes apart, from midnight on."""
    if not isinstance(step, str) or not parse_second(step, "step"):
        raise SchemaError(
            f"step ({step!r:.60}) must be a time above 00:00 in a time column, such as '00:01' for whole minutes"
        )
    return Grid(parse_second(step, "step"))


def default_grid(declared: Iterable[float], edges: Sequence[float]) -> Grid | None:
    """The grid of a number column that states none, from its public edges; None where floats are too coarse for one.

    >>> default_grid([0, 1000000], [0.0, 50000.0, 1000000.0]), default_grid([0, 1], [0.0, 0.5, 1.0])
    (Grid(numerator=1, denominator=1), Grid(numerator=1, denominator=1000))
    """
    narrowest = min(high - low for low, high in pairwise(edges))
    written = decimals_of(declared)
    decimals = max(0, ceil(log10(VALUES_PER_BIN) - log10(narrowest)))
    if written <= WRITTEN_DECIMALS:
        decimals = max(decimals, written)
    while decimals and (decimals > MAX_DECIMALS or not _decimal_grid(decimals).holds((edges[0], edges[-1]))):
        decimals -= 1
    grid = _decimal_grid(decimals)
    if not grid.holds((edges[0], edges[-1])) or narrowest * grid.denominator < 2:
        return None
    return grid


def decimals_of(numbers: Iterable[float]) -> int:
    """The most digits after the point that any of these numbers is written with."""
    exponents = (Decimal(repr(number)).normalize().as_tuple().exponent for number in numbers)
    return max([0, *(-exponent for exponent in exponents if isinstance(exponent, int))])
