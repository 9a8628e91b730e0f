"""What a draft sees of a column, batch by batch: what its values look like, how often they come, and how many ids there are."""

import math
import re
from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pandas.util import hash_array

from dpcipher.schema.cells import as_day, as_id, as_number, as_text, as_time, as_truth, by_type, is_missing
from dpcipher.schema.scale import EXACT, MAX_NUMBER, WRITTEN_DECIMALS

MAX_SEEN = 5_000  # distinct texts that are kept apart
MAX_CODES = 5  # a column of numbers may hold as many texts, such as N for "not applicable"
SAMPLE = 20_000  # numbers from which a skew is judged
# A value in so large a part of the rows, and so much more often than the others are on average, is a level of its own.
PILED, CROWDED = 0.02, 10
MOST = 2**12  # ids in the sample
BANDS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 10_000, 100_000)  # of rows, as they are told
MOSTLY = 0.8  # of the persons are "most"
ROUND = "1, 2, 5, 10, 20, 50, …"
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
Range = tuple[float, float]
NOTHING: Range = (math.inf, -math.inf)
_WORDS = pa.array(["true", "false"])  # `y` and `n` are left as the texts they are


@dataclass
class IdSample:
    """The rows of each id whose hash is below a limit; rows that name nobody are left out."""

    halvings: int = 0
    hashes: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    rows: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def add(self, texts: pa.Array) -> None:
        """Take in one batch."""
        counted = pc.value_counts(texts).flatten()
        ids, rows = as_id(counted[0]), counted[1].to_numpy(zero_copy_only=False)
        named = np.asarray(pc.is_valid(ids))
        hashes = hash_array(np.asarray(ids.drop_null().to_pylist(), dtype=object), categorize=False)
        self._keep(
            np.concatenate([self.hashes, hashes.astype(np.uint64)]), np.concatenate([self.rows, rows[named]])
        )
        while len(self.hashes) > MOST:
            self.halvings += 1
            self._keep(self.hashes, self.rows)

    def _keep(self, hashes: NDArray[np.uint64], rows: NDArray[np.int64]) -> None:
        inside = hashes >> np.uint64(64 - self.halvings) == 0 if self.halvings else np.ones(len(hashes), bool)
        self.hashes, places = np.unique(hashes[inside], return_inverse=True)
        self.rows = np.bincount(places, rows[inside], len(self.hashes)).astype(np.int64)

    @property
    def number(self) -> int:
        """How many ids there are: exactly where the sample holds them all, else about."""
        return len(self.hashes) << self.halvings

    @property
    def repeats(self) -> bool:
        """Whether some id in the sample has more than one row."""
        return bool((self.rows > 1).any())

    def describe(self, column: str) -> str:
        """Who would be protected if the column says whose row each is, in bands; private."""
        most = next((band for band in BANDS if np.mean(self.rows <= band) >= MOSTLY), BANDS[-1])
        more = [band for band in BANDS if band > most and (self.rows > band).any()]
        some = f", some with more than {more[-1]:,}" if more else ""
        return (
            f"CURATOR ONLY: if {column!r} says whose row each is, there are about {_two_digits(self.number):,} persons, most with at most "
            f"{most:,} row{'s' if most > 1 else ''}{some}: protect the person with --person {column} (person={column!r}), and write person: "
            f"{column} into the schema. Let --max-rows be a round number that anybody could have said ({ROUND}): one that is copied from the "
            "rows is a private fact, and so are these figures."
        )


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
        """Take in one batch; every cell is read by its text, so that tables of all kinds have one draft."""
        texts = by_type(cells, as_text)
        absent = is_missing(texts, blank=True)
        self.missing |= bool(absent.any())
        texts = texts.filter(pa.array(~absent))
        self.rows += len(texts)
        if len(texts):
            numbers = as_number(texts)
            self._add_readings(texts, numbers)
            self._add_texts(texts, numbers)
            self._add_ids(texts)

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

    def _add_readings(self, texts: pa.Array, numbers: NDArray[np.float64]) -> None:
        self.leading_zeros |= bool(pc.any(pc.match_substring_regex(texts, "^[-+]?0[0-9]")).as_py())
        whole = (numbers % 1 == 0) & (np.abs(numbers) < EXACT)
        self._narrow(
            "boolean", as_truth(texts), bool(pc.all(pc.is_in(pc.utf8_lower(texts), value_set=_WORDS)).as_py())
        )
        self._narrow("date", as_day(texts))
        self._add_times(as_time(texts))
        self._narrow("integer", numbers, not self.leading_zeros and bool(whole.all()))
        self._narrow("number", numbers, not self.leading_zeros and bool((np.abs(numbers) < MAX_NUMBER).all()))
        if not self.leading_zeros:
            self._add_numbers(numbers[np.abs(numbers) < MAX_NUMBER])

    def _add_times(self, times: NDArray[np.float64]) -> None:
        """Times of day, by themselves or behind a date."""
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

    def _add_texts(self, texts: pa.Array, numbers: NDArray[np.float64]) -> None:
        self.longest = max(self.longest, pc.max(pc.utf8_length(texts)).as_py() or 0)
        if len(self.texts) <= MAX_SEEN:
            self.texts |= _few(texts, MAX_SEEN)
        self.codes |= _few(texts.filter(pa.array(np.isnan(numbers))), MAX_CODES)

    def _add_ids(self, texts: pa.Array) -> None:
        """Whole numbers and texts can name somebody; days, times, truth values and other numbers cannot."""
        if self.ranges and (self.ranges.keys() & {"boolean", "date", "time"} or "integer" not in self.ranges):
            self.ids = None
        if self.ids is not None:
            self.ids.add(texts)

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


def _two_digits(number: int) -> int:
    """A number as one says it.

    >>> _two_digits(27_341), _two_digits(98)
    (27000, 98)
    """
    places = max(0, len(str(number)) - 2)
    return round(number, -places)
