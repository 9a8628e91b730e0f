"""A first schema, read off the rows: not private, marked as such, and refused until a person has signed it."""

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpcipher.errors import SchemaError
from dpcipher.schema.cells import as_day, as_number, as_text, as_truth, by_type, flat, is_missing
from dpcipher.schema.column import Column
from dpcipher.schema.domain import EXACT, MAX_NUMBER, day_text
from dpcipher.schema.schema import Schema
from dpcipher.schema.spec import Provenance
from dpcipher.tables.detect import detect
from dpcipher.tables.read import open_table

MAX_LEVELS = 200  # a text column with more distinct values cannot be listed
MAX_CODES = 5  # a number column may hold as many texts, such as N for "not applicable"
MAX_UNIT = 128  # an integer column with a wider range is cut into bins
BINS = 20

Range = tuple[float, float]


def draft(data: object) -> Schema:
    """Guess a schema from the rows; it is marked as drawn from data, and tells about the rows until a person edits it."""
    detected = detect(data)
    source = open_table(data, detected.format, numbers=detected.numbers)
    looks = {name: _Look(name) for name in source.names if name}
    for batch in source.batches(list(looks)):
        for name, look in looks.items():
            look.add(batch.column(name))
    guesses = [look.guess() for look in looks.values()]
    columns = tuple(column for column, _ in guesses if column)
    if not columns:
        raise SchemaError("no column could be drafted: each is empty or free text; write the schema by hand")
    return Schema(
        columns,
        provenance=Provenance(drawn_from_data=True, notes=tuple(note for _, note in guesses if note)),
        format=detected.format,
    )


@dataclass
class _Look:
    """What is seen of a column, batch by batch; a reading that fails on a cell is struck from `ranges` for good."""

    name: str
    missing: bool = False
    ranges: dict[str, Range] = field(
        default_factory=lambda: dict.fromkeys(("boolean", "date", "integer", "number"), _NOTHING)
    )
    mixed: Range = (math.inf, -math.inf)  # the range of the numbers, whatever else the column holds
    codes: set[str] = field(default_factory=set)  # the texts among them
    texts: set[str] = field(default_factory=set)

    def add(self, cells: pa.Array) -> None:
        """Take in one batch."""
        cells = flat(cells)
        if isinstance(cells, pa.DictionaryArray | pa.UnionArray):
            cells = by_type(cells, as_text)
        absent = is_missing(cells, blank=True)
        self.missing |= bool(absent.any())
        cells = cells.filter(pa.array(~absent))
        if len(cells):
            self._add_readings(cells)
            self._add_texts(cells)

    def _add_readings(self, cells: pa.Array) -> None:
        numbers = as_number(cells)
        numeric = not pa.types.is_boolean(cells.type) and not _has_leading_zero(cells)
        self._narrow("boolean", as_truth(cells), _says_true_or_false(cells))
        self._narrow("date", as_day(cells))
        self._narrow(
            "integer", numbers, numeric and bool(((numbers % 1 == 0) & (np.abs(numbers) < EXACT)).all())
        )
        self._narrow("number", numbers, numeric and bool((np.abs(numbers) < MAX_NUMBER).all()))
        if numeric:
            self.mixed = _wider(self.mixed, numbers[np.abs(numbers) < MAX_NUMBER])

    def _add_texts(self, cells: pa.Array) -> None:
        texts = as_text(cells)
        self.texts |= _few(texts, MAX_LEVELS)
        self.codes |= _few(texts.filter(pa.array(np.isnan(as_number(cells)))), MAX_CODES)

    def _narrow(self, kind: str, values: NDArray[np.float64], fits: bool = True) -> None:
        if kind in self.ranges:
            seen = self.ranges.pop(kind)
            if fits and np.isfinite(values).all():
                self.ranges[kind] = _wider(seen, values)

    def guess(self) -> tuple[Column | None, str]:
        """The column, by the first reading that fits every cell, and a note for the person who checks it."""
        missing: Literal["level", "refuse"] = "level" if self.missing else "refuse"
        if not self.texts:
            return None, f"left out: {self.name!r} holds no value at all"
        for kind in ("boolean", "date", "integer", "number"):
            if kind in self.ranges:
                return _column(self.name, kind, self.ranges[kind], missing), ""
        if len(self.texts) <= MAX_LEVELS:
            return Column(self.name, "categorical", levels=_in_order(self.texts), missing=missing), ""
        if len(self.codes) <= MAX_CODES and self.mixed[0] <= self.mixed[1]:
            column = _column(self.name, "number", self.mixed, "level", other="missing")
            return (
                column,
                f"check: {self.name!r} holds numbers and a few texts; the texts become missing values",
            )
        return (
            None,
            f"left out: {self.name!r} holds more than {MAX_LEVELS} distinct texts; add it by hand if it is needed",
        )


_NOTHING: Range = (math.inf, -math.inf)


def _column(
    name: str, kind: str, seen: Range, missing: Literal["level", "refuse"], other: str = "refuse"
) -> Column:
    """A column with a range rounded outward, since the extremes of a table are often one person's."""
    low, high = seen
    if kind == "boolean":
        return Column(name, "boolean", missing=missing)
    if kind == "date":
        first, last = f"{day_text(int(low))[:4]}-01-01", f"{day_text(int(high))[:4]}-12-31"
        return Column(name, "date", min=first, max=last, bins=BINS, missing=missing)
    if kind == "integer" and high - low < MAX_UNIT:
        return Column(name, "integer", min=int(low), max=int(high), missing=missing)
    low, high = _rounded(low, high)
    if kind == "integer":
        return Column(name, "integer", min=int(low), max=int(high), bins=BINS, missing=missing)
    return Column(name, "number", min=low, max=high, bins=BINS, missing=missing, other=other)


def _rounded(low: float, high: float) -> Range:
    """The range, widened to round numbers.

    >>> _rounded(17.3, 93.8)
    (10.0, 100.0)
    """
    step = 10.0 ** math.floor(math.log10(high - low or abs(high) or 1.0))
    down, up = math.floor(low / step) * step, math.ceil(high / step) * step
    return (down, up) if down < up else (down - step, up + step)


def _wider(seen: Range, values: NDArray[np.float64]) -> Range:
    if not len(values):
        return seen
    return min(seen[0], float(values.min())), max(seen[1], float(values.max()))


def _few(texts: pa.Array, limit: int) -> set[str]:
    """The distinct texts, or `limit` + 1 of them: enough to know that there are too many."""
    return set(pc.unique(texts).drop_null().slice(0, limit + 1).to_pylist())


def _in_order(texts: set[str]) -> list[str]:
    """Whole numbers by size, then the other texts.

    >>> _in_order({"N", "10", "9"})
    ['9', '10', 'N']
    """
    return sorted(texts, key=lambda text: (not text.isdecimal(), int(text) if text.isdecimal() else 0, text))


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
