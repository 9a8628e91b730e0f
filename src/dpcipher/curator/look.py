"""What is seen of a column, batch by batch, when a schema is drafted from private rows: curator only."""

import math
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpcipher.curator.ids import IdSample
from dpcipher.curator.written import common_step, more_decimals
from dpcipher.schema.cells import as_day, as_number, as_text, as_time, as_truth, by_type, flat, is_missing
from dpcipher.schema.points import EXACT, MAX_NUMBER

MAX_SEEN = 5_000  # distinct texts that are kept apart
MAX_CODES = 5  # a column of numbers may hold as many texts, such as N for "not applicable"
SAMPLE = 20_000  # numbers from which a skew is judged
Range = tuple[float, float]
NOTHING: Range = (math.inf, -math.inf)


@dataclass
class Look:
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
    apart: int = 1  # every so many numbers are in the sample
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
        self.sample.append(numbers[:: self.apart])
        while sum(map(len, self.sample)) > SAMPLE:  # rows may be sorted, so the first alone tell little
            self.sample, self.apart = [self.values[::2]], 2 * self.apart

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
