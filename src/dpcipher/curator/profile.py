"""What a draft says of a column: what its values look like, how they are written, and round edges."""

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpcipher.curator.ids import IdSample
from dpcipher.schema.cells import as_day, as_number, as_text, as_time, as_truth, by_type, flat, is_missing
from dpcipher.schema.grid import WRITTEN_DECIMALS
from dpcipher.schema.scale import EXACT, MAX_NUMBER, second_text

MAX_SEEN = 5_000  # distinct texts that are kept apart
MAX_CODES = 5  # a column of numbers may hold as many texts, such as N for "not applicable"
SAMPLE = 20_000  # numbers from which a skew is judged
Range = tuple[float, float]
NOTHING: Range = (math.inf, -math.inf)


@dataclass
class ColumnProfile:
    """One column; a reading that fails on a cell is struck from `ranges` for good."""

    name: str
    rows: int = 0
    missing: bool = False
    ranges: dict[str, Range] = field(
        default_factory=lambda: dict.fromkeys(("boolean", "date", "time", "integer", "number"), NOTHING)
    )
    mixed: Range = NOTHING  # the range of the numbers, whatever else the column holds
    whole: bool = True  # whether those numbers are whole
    decimals: int | None = 0  # how many those numbers need, None without end
    step: int = 0  # of which those that are whole are multiples
    seconds: int = 0  # of which times of day are multiples
    has_clock: bool = False  # whether dates have a time of day with them
    codes: set[str] = field(default_factory=set)  # the texts among them
    texts: set[str] = field(default_factory=set)
    longest: int = 0
    leading_zeros: bool = False
    increasing: bool = True
    last: float = -math.inf
    sample: list[NDArray[np.float64]] = field(default_factory=list)
    stride: int = 1  # of the numbers that are in the sample
    ids: IdSample | None = field(default_factory=IdSample)  # None where some cell can be no id

    def add(self, cells: pa.Array) -> None:
        """Take in one batch."""
        cells = flat(cells)
        if isinstance(cells, pa.DictionaryArray | pa.UnionArray):
            cells = by_type(cells, as_text)
        absent = is_missing(cells, blank=True)
        self.missing |= bool(absent.any())
        cells = cells.filter(pa.array(~absent))
        self.rows += len(cells)
        if len(cells):
            self._add_readings(cells)
            self._add_texts(cells)
            self._add_ids(cells)

    @property
    def distinct(self) -> int:
        """How many different values there are, up to one more than are kept."""
        return len(self.texts)

    @property
    def number(self) -> int:
        """The same beyond what is kept: about so many."""
        return self.distinct if self.distinct <= MAX_SEEN or self.ids is None else self.ids.number

    @property
    def repeats(self) -> bool:
        """Whether some value comes more than once, as far as is seen."""
        if self.distinct <= MAX_SEEN or self.ids is None:
            return self.rows > self.distinct
        return self.ids.repeats

    @property
    def values(self) -> NDArray[np.float64]:
        """Some of the numbers, from all over the table."""
        return np.concatenate(self.sample) if self.sample else np.empty(0)

    def _add_readings(self, cells: pa.Array) -> None:
        numbers = as_number(cells)
        self.leading_zeros |= _has_leading_zero(cells)
        numeric = not pa.types.is_boolean(cells.type) and not self.leading_zeros
        whole = (numbers % 1 == 0) & (np.abs(numbers) < EXACT)
        self._narrow("boolean", as_truth(cells), _says_true_or_false(cells))
        self._narrow("date", as_day(cells))
        self._add_times(cells)
        self._narrow("integer", numbers, numeric and bool(whole.all()))
        self._narrow("number", numbers, numeric and bool((np.abs(numbers) < MAX_NUMBER).all()))
        if numeric:
            self._add_numbers(numbers[np.abs(numbers) < MAX_NUMBER])

    def _add_times(self, cells: pa.Array) -> None:
        """Times of day, by themselves or behind a date."""
        times = as_time(cells)
        seen = times[np.isfinite(times)]
        self.has_clock |= bool(seen.any())  # midnight is what a date without a time is written as
        self._narrow("time", times, "date" not in self.ranges)
        self.seconds = common_step(self.seconds, seen)

    def _add_numbers(self, numbers: NDArray[np.float64]) -> None:
        """The numbers among the cells; those alone that are no code for something missing say how the column is spread."""
        self.mixed = _wider(self.mixed, numbers)
        whole = (numbers % 1 == 0) & (np.abs(numbers) < EXACT)
        self.whole &= bool(whole.all())
        self.step = common_step(self.step, numbers[whole])
        self.decimals = more_decimals(self.decimals, numbers)
        if len(numbers):
            steps = np.diff(numbers, prepend=self.last)
            self.increasing &= bool((steps > 0).all())
            self.last = float(numbers[-1])
        self.sample.append(numbers[:: self.stride])
        while sum(map(len, self.sample)) > SAMPLE:  # rows may be sorted, so the first alone tell little
            self.sample, self.stride = [self.values[::2]], 2 * self.stride

    def _add_texts(self, cells: pa.Array) -> None:
        texts = as_text(cells)
        self.longest = max(self.longest, pc.max(pc.utf8_length(texts)).as_py() or 0)
        if len(self.texts) <= MAX_SEEN:
            self.texts |= _few(texts, MAX_SEEN)
        self.codes |= _few(texts.filter(pa.array(np.isnan(as_number(cells)))), MAX_CODES)

    def _add_ids(self, cells: pa.Array) -> None:
        """Whole numbers and texts can name somebody; days, times, truth values and other numbers cannot."""
        if self.ranges and (self.ranges.keys() & {"boolean", "date", "time"} or "integer" not in self.ranges):
            self.ids = None
        if self.ids is not None:
            self.ids.add(cells)

    def _narrow(self, kind: str, values: NDArray[np.float64], fits: bool = True) -> None:
        if kind in self.ranges:
            seen = self.ranges.pop(kind)
            if fits and np.isfinite(values).all():
                self.ranges[kind] = _wider(seen, values)


def _wider(seen: Range, values: NDArray[np.float64]) -> Range:
    if not len(values):
        return seen
    return min(seen[0], float(values.min())), max(seen[1], float(values.max()))


def _few(texts: pa.Array, limit: int) -> set[str]:
    """The distinct texts, or `limit` + 1 of them: enough to know that there are too many."""
    return set(pc.unique(texts).drop_null().slice(0, limit + 1).to_pylist())


def _has_leading_zero(cells: pa.Array) -> bool:
    """Whether some cell is a code such as 01, which would lose its zero as a number."""
    return bool(
        pa.types.is_string(cells.type) and pc.any(pc.match_substring_regex(cells, "^[-+]?0[0-9]")).as_py()
    )


def _says_true_or_false(cells: pa.Array) -> bool:
    """Whether the cells are truth values, or are so written; `y` and `n` are left as the texts they are."""
    if not pa.types.is_string(cells.type):
        return bool(pa.types.is_boolean(cells.type))
    return bool(pc.all(pc.is_in(pc.utf8_lower(cells), value_set=pa.array(["true", "false"]))).as_py())


# A value in so large a part of the rows, and so much more often than the others are on average, is a level of its own.
PILED, CROWDED = 0.02, 10
_HOUR, _MINUTE = 3600, 60
_CLOCK_STEPS = (3600, 1800, 900, 600, 300, 60)
_BRIEF = 2 * _HOUR  # times that all lie so near have bins of five minutes
# Texts that a person would read as something else, and what to do about them.
_OTHERWISE = (
    (
        r"\d{1,2}([./-])\d{1,2}\1(\d{4}|\d{2})|\d{4}([./])\d{1,2}\3\d{1,2}",
        "dates that are written otherwise; convert them to 2024-01-31 first, and declare kind: date",
    ),
    (
        r"\d{1,2}[./-]\d{1,2}[./-]\d{2,4}[ T]\d{1,2}:\d{2}.*",
        "dates and times that are written otherwise; convert them to 2024-01-31 and 08:30 first",
    ),
    (
        r"[-+]?[$€£¥]\s?[-+]?[\d.,' ]*\d|[-+]?[\d.,' ]*\d\s?[%$€£¥]",
        "numbers with a sign beside them; remove it first, and say it with unit",
    ),
    (
        r"[-+]?\d+,(\d{1,2}|\d{4,})|[-+]?\d+",
        "numbers with a decimal comma; write a point first, or declare it in format, where the table is a text file",
    ),
    (
        r"[-+]?\d{1,3}(([,.' \u00a0\u202f])\d{3}(\2\d{3})*)?([.,]\d{1,2})?",
        "numbers with marks between thousands; remove the marks first, or declare them in format, where the table is a text file",
    ),
    (
        r"(?i)\d{1,2}(:\d{2}){0,2}\s?[ap]\.?m\.?",
        "times that are written otherwise; convert them to 08:30 first, and declare kind: time",
    ),
)  # fmt: skip


def more_decimals(decimals: int | None, numbers: NDArray[np.float64]) -> int | None:
    """The decimals that these numbers need, and at least `decimals`; None where they were computed and have no end.

    >>> more_decimals(0, np.array([52.0, 51.3])), more_decimals(0, np.array([1 / 3]))
    (1, None)
    """
    if decimals is None:
        return None
    places = range(decimals, WRITTEN_DECIMALS + 1)
    return next((place for place in places if (np.round(numbers, place) == numbers).all()), None)


def common_step(step: int, numbers: NDArray[np.float64]) -> int:
    """The largest number of which `step` and all these whole numbers are multiples."""
    return int(np.gcd.reduce(np.abs(numbers).astype(np.int64), initial=step))


def has_minus_one(values: NDArray[np.float64], low: float) -> bool:
    """Whether -1 is the only whole number below zero, and in so many rows that it is a code (never, none) and no amount.

    >>> has_minus_one(np.array([-1.0] * 50 + list(range(60))), -1.0), has_minus_one(np.array([-2.0, -1.0, 3.0]), -2.0)
    (True, False)
    """
    return low == -1 and bool(np.mean(values == -1) >= PILED)


def piled_up(values: NDArray[np.float64], low: float, high: float) -> list[float]:
    """Zero and the largest value, where far more rows have them than have others: no amount at all, and a top code.

    >>> piled_up(np.array([0.0] * 50 + [100.0] * 20 + list(range(1, 99))), 0.0, 100.0)
    [0.0, 100.0]
    """
    inside = values[(values >= low) & (values <= high)]
    if not len(inside):
        return []
    often = max(PILED, CROWDED / len(np.unique(inside)))
    return [value for value in sorted({0.0, high}) if np.mean(inside == value) >= often]


def clock_facts(first: int, last: int, apart: int) -> dict[str, object]:
    """Whole hours around two times of day as bins, or five minutes where they lie near, and the step that all times keep."""
    width = _HOUR if last - first > _BRIEF else 5 * _MINUTE
    low, high = first // width, last // width + 1
    step = next((step for step in _CLOCK_STEPS if apart % step == 0 and step <= width), None)
    facts: dict[str, object] = {"min": second_text(low * width), "max": second_text(high * width - 1)}
    return facts | {"bins": high - low} | ({"step": second_text(step)} if step else {})


def read_otherwise(texts: Collection[str]) -> str:
    """What all these texts are to a person, and how to make it so for a schema; nothing where they are just texts.

    >>> read_otherwise(["1,200", "980"])[:37], read_otherwise(["010", "021"]), read_otherwise(["12,5", "7"])[:28]
    ('numbers with marks between thousands;', '', 'numbers with a decimal comma')
    """
    if all(text.strip().isdigit() for text in texts):  # codes, of digits alone
        return ""
    for pattern, what in _OTHERWISE:
        if all(re.fullmatch(pattern, text.strip()) for text in texts):
            return what
    return ""


BINS = 20
SKEWED = 5.0
_MANTISSAS = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)
_EPOCH = date(1970, 1, 1)
# The longest span, in days, that is cut into periods of so many months; days come first.
_PERIODS = ((2 * 366, 1), (8 * 366, 3), (30 * 366, 12), (150 * 366, 60))
_DAYS = 31


def even_steps(low: float, high: float, *, whole: bool) -> tuple[float, float, int]:
    """A range that holds `low` and `high`, and the number of bins of one round width in it: about 20.

    >>> even_steps(17.3, 93.8, whole=False)
    (15.0, 95.0, 16)
    """
    step = _round_up((high - low or abs(high) or 1.0) / BINS)
    if whole:
        step = max(math.ceil(step), 1.0)
    first, last = math.floor(low / step), math.ceil(high / step)
    if last * step <= high:  # the largest value is somebody's, and stays inside
        last += 1
    return _shown(first * step), _shown(last * step), last - first


def _round_up(width: float) -> float:
    power = 10.0 ** math.floor(math.log10(width))
    return next(power * factor for factor in (1.0, 2.0, 5.0, 10.0) if power * factor >= width * 0.999999)


def is_skewed(values: NDArray[np.float64], low: float, high: float) -> bool:
    """Whether a tail reaches so far beyond the bulk that bins of equal width would leave most rows in one or two of them.

    A tail is measured in distances between the median and its tenth or ninetieth percentile: 2 to 4 for a bell, 3 to 5 for times between events.
    """
    tenth, middle, ninetieth = np.quantile(values, [0.1, 0.5, 0.9])
    upper, lower = ninetieth - middle, middle - tenth
    return bool(high - middle > SKEWED * max(upper, 1e-12) or middle - low > SKEWED * max(lower, 1e-12))


def amount_edges(values: NDArray[np.float64], low: float, high: float, *, whole: bool) -> list[float]:
    """Edges 0, 1000, 1500, 2000, 3000 … of about equal ratio, from where the smallest twentieth of the amounts ends to beyond the largest.

    They are mirrored below 0, and 0 itself has a bin of its own where it is frequent among whole numbers.
    """
    sizes = np.abs(values[values != 0])
    least = float(np.quantile(sizes, 0.05)) if len(sizes) else 1.0
    grown = _growing(max(least, 1.0) if whole else least, max(abs(low), abs(high)), whole=whole)
    below = [-edge for edge in reversed(_up_to(grown, -low))] if low < 0 else []
    above = _up_to(grown, high) if high > 0 else []
    zeros = [1.0] if whole and above and above[0] > 1 and np.mean(values == 0) > 0.05 else []
    return [*below, 0.0, *zeros, *above]


def _growing(least: float, most: float, *, whole: bool) -> list[float]:
    """Round numbers from below `least` to beyond `most`."""
    first = math.floor(math.log10(least))
    powers = range(first, math.floor(math.log10(most)) + 2)
    steps = [_shown(factor * 10.0**power) for power in powers for factor in _MANTISSAS]
    steps = [step for step in steps if not whole or step == int(step)]
    start = max((place for place, step in enumerate(steps) if step <= least), default=0)
    return steps[start:]


def _up_to(edges: Sequence[float], end: float) -> list[float]:
    """The edges up to the first beyond `end`."""
    inside = [edge for edge in edges if edge <= end]
    return [*inside, *edges[len(inside) : len(inside) + 1]]


def calendar_edges(first: int, last: int) -> list[str] | None:
    """Beginnings of months, quarters, years or five years around two days since 1970, and the last day of the last; None for so few that each is a level."""
    low, high = _EPOCH + timedelta(days=first), _EPOCH + timedelta(days=last)
    span = last - first
    if span < _DAYS:
        return None
    months = next((months for longest, months in _PERIODS if span <= longest), 120)
    start = _floor(12 * low.year + low.month - 1, months)
    stop = _floor(12 * high.year + high.month - 1, months) + months
    edges = [_month(number).isoformat() for number in range(start, stop, months)]
    end = date.max if stop >= 12 * (date.max.year + 1) else _month(stop) - timedelta(days=1)
    return [*edges, end.isoformat()]


def _floor(month: int, months: int) -> int:
    return max(month - month % months, 12)


def _month(number: int) -> date:
    return date(number // 12, number % 12 + 1, 1)


def _shown(value: float) -> float:
    """Without the dust of binary fractions: 0.3, not 0.30000000000000004."""
    return float(f"{value:.12g}")
