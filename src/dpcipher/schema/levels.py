"""The levels of a column that lists them one by one, and the kinds of missing that a data dictionary tells apart: N for not applicable, -9 for no answer.

Each kind of missing is a level of its own, after the values. How they are written back: a column of numbers, or of dates, stays one when every code
is itself a number, or a date; with any other code the column is text, as it must have been when it came: no typed column can hold both 17 and N.
"""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpcipher.errors import SchemaError
from dpcipher.files.codec import is_number
from dpcipher.schema.cells import as_day, as_number, as_text, as_truth, quoted
from dpcipher.schema.scale import EXACT
from dpcipher.tables.domain import Codes, Floats

Level = str | int | float | bool

MISSING_LABEL = "(missing)"
MAX_CODES = 100
MAX_CODE_LENGTH = 200
# What pandas and others read as nothing at all. An empty cell and NaN are nothing here too; the others keep their text when we read a file ourselves.
_NOTHING = ("", "nan")
_READ_AS_NOTHING = (
    "na",
    "n/a",
    "#n/a",
    "#n/a n/a",
    "#na",
    "<na>",
    "null",
    "none",
    "-nan",
    "1.#ind",
    "1.#qnan",
)


@dataclass(frozen=True)
class Levels:
    """Distinct levels of one type, in the order their codes follow."""

    levels: tuple[Level, ...]

    def __post_init__(self) -> None:
        if not self.levels:
            raise SchemaError("levels ([]) must list at least one level; try levels: [a, b]")
        object.__setattr__(self, "levels", _one_type(self.levels))
        label, times = Counter(self.labels).most_common(1)[0]
        if times > 1:
            raise SchemaError(f"levels must be distinct, but {label!r} is listed twice; remove one")

    @property
    def size(self) -> int:
        """How many levels there are."""
        return len(self.levels)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The levels as text."""
        return tuple(str(level) for level in self.levels)

    def codes(self, cells: pa.Array) -> Codes:
        """The code of each cell, -1 where its value is not listed.

        A cell goes to the level with its text; if there is none, to the first level that is the same number, so that 1, 1.0 and "01"
        are the level "1" (true and false are the numbers 1 and 0). A level that begins like a formula is also known by the text that a CSV
        file of ours has for it: '=x is the level =x, unless '=x is a level itself.
        """
        if isinstance(self.levels[0], bool):
            return self._look_up(as_truth(cells))
        if not isinstance(self.levels[0], str):
            return self._look_up(as_number(cells))
        texts, homes = self._spellings
        places = pc.fill_null(pc.index_in(as_text(cells), value_set=texts), len(texts))
        codes: Codes = homes[places.to_numpy(zero_copy_only=False)]
        unlisted = codes < 0
        if unlisted.any() and not np.isnan(self._numbers).all():
            codes[unlisted] = self._look_up(as_number(cells.filter(pa.array(unlisted))))
        return codes

    @cached_property
    def _spellings(self) -> tuple[pa.Array, Codes]:
        """The texts that stand for levels, and the code of each; the last code is for any other text."""
        levels = pa.array(self.levels, pa.string())
        known = set(self.levels)
        others = [(text, code) for code, text in enumerate(quoted(levels).to_pylist()) if text not in known]
        texts = pa.concat_arrays([levels, pa.array([text for text, _ in others], pa.string())])
        return texts, np.array([*range(self.size), *(code for _, code in others), -1], dtype=np.int32)

    @property
    def spellings(self) -> dict[str, int]:
        """The code of every text that stands for a level; none where levels are numbers or truth values."""
        if not isinstance(self.levels[0], str):
            return {}
        texts, homes = self._spellings
        return dict(zip(texts.to_pylist(), homes.tolist(), strict=False))

    @property
    def numbers(self) -> dict[float, int]:
        """The code of the first level that is each number; texts may be numbers too."""
        levels = enumerate(self._numbers.tolist())
        return {number: code for code, number in reversed(tuple(levels)) if number == number}

    @cached_property
    def _numbers(self) -> Floats:
        """The levels as numbers, NaN for those that are none."""
        numbers = as_number(pa.array(self.levels))
        return np.where(np.abs(numbers) < EXACT, numbers, np.nan)

    def cells(self, codes: Codes) -> pa.Array:
        """The level of each code."""
        return pa.array(self.levels).take(pa.array(codes))

    def _look_up(self, numbers: Floats) -> Codes:
        """The first level that equals each number, -1 where none does."""
        order, ranked = self._ranks
        place = np.minimum(np.searchsorted(ranked, numbers), len(ranked) - 1)
        return np.where(ranked[place] == numbers, order[place], -1).astype(np.int32)

    @cached_property
    def _ranks(self) -> tuple[NDArray[np.intp], Floats]:
        """The levels by number: NaN last, equal numbers in the order of the levels."""
        order = np.argsort(self._numbers, kind="stable")
        return order, self._numbers[order]


def _one_type(levels: tuple[Level, ...]) -> tuple[Level, ...]:
    """Levels as they are when they share a type; whole numbers join floats or text, as in [1, 2, N]."""
    types = {type(level) for level in levels}
    if not types <= {str, int, float, bool}:
        raise SchemaError(
            "levels must be texts, numbers or true/false; a missing value is declared with missing: level"
        )
    if any(not isinstance(level, str) and not abs(level) < EXACT for level in levels):
        raise SchemaError(
            "levels that are numbers must be finite and below 2**53; quote longer codes to make them texts"
        )
    if float in types and types <= {int, float}:
        return tuple(float(level) + 0.0 for level in levels)  # no negative zero
    if types == {int, str}:
        return tuple(str(level) for level in levels)
    if len(types) > 1:
        raise SchemaError("levels must be of one type; put quotes around those that are texts")
    return levels


@dataclass(frozen=True)
class Missing:
    """The codes for missing values that a column declares, in the order of their levels."""

    values: tuple[Level, ...] = ()

    def __post_init__(self) -> None:
        if len(self.values) > MAX_CODES:
            raise SchemaError(f"missing_values ({len(self.values)} of them) must be at most {MAX_CODES}")
        for value in self.values:
            _check_code(value)
        if self.values:
            _ = self._listed

    @property
    def size(self) -> int:
        """How many kinds of missing there are."""
        return len(self.values)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The codes as text, as a CSV file has them."""
        return tuple(as_text(pa.array([value]))[0].as_py() for value in self.values)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The name of each kind, such as `(missing: N)`."""
        return tuple(f"{MISSING_LABEL[:-1]}: {text})" for text in self.texts)

    @cached_property
    def _listed(self) -> Levels:
        try:
            return Levels(self.texts)
        except SchemaError as wrong:
            raise SchemaError(f"missing_{str(wrong).replace('levels', 'values', 1)}") from None

    @property
    def listed(self) -> Levels | None:
        """The codes as levels, where there are any."""
        return self._listed if self.values else None

    @property
    def spellings(self) -> dict[str, int]:
        """The kind of missing that each text stands for."""
        return self._listed.spellings if self.values else {}

    @property
    def days(self) -> dict[float, int]:
        """The kind of missing of each code that is a date, by its day."""
        days = enumerate(self._days.tolist() if self.values else [])
        return {day: kind for kind, day in reversed(tuple(days)) if day == day}

    def codes(self, cells: pa.Array, *, dates: bool = False) -> Codes:
        """Which kind of missing each cell is, from that cell alone, -1 for none: by its text, as the same number or, with `dates`, day."""
        if not self.values:
            return np.full(len(cells), -1, dtype=np.int32)
        codes = self._listed.codes(cells)
        if dates and not np.isnan(self._days).all():
            days = as_day(cells)
            for code, day in enumerate(self._days):
                codes[(codes < 0) & (days == day)] = code
        return codes

    def numbers(self, *, dates: bool = False) -> tuple[float, ...]:
        """The codes that are numbers or, with `dates`, days: a value drawn inside a bin must not be one of them."""
        if not self.values:
            return ()
        numbers = self._days if dates else as_number(pa.array(self.texts, pa.string()))
        return tuple(float(number) for number in numbers if abs(number) < EXACT)

    @cached_property
    def _days(self) -> Floats:
        """The codes that are dates, such as 9999-12-31, as days."""
        return as_day(pa.array(self.texts, pa.string()))

    @cached_property
    def of_null(self) -> int | None:
        """The kind that a null cell is, where it can only be one: a reader such as pandas took its text (NA, null …) for nothing."""
        swallowed = [code for code, text in enumerate(self.texts) if text.lower() in _READ_AS_NOTHING]
        return swallowed[0] if len(swallowed) == 1 else None

    def write_codes(self, values: pa.Array, kinds: NDArray[np.integer]) -> pa.Array:
        """The values with the codes written where `kinds` says so (-1 for a value)."""
        if not self.values:
            return values
        kind = self.written_type(values.type)
        if not pa.types.is_string(kind):
            codes = pc.cast(self._typed, kind)
        else:
            values, codes = as_text(values), pa.array(self.texts, pa.string())
        written = codes.take(pa.array(np.maximum(kinds, 0)))
        return pc.if_else(pa.array(kinds >= 0), written, pc.cast(values, kind))

    def written_type(self, kind: pa.DataType) -> pa.DataType:
        """The type of the column beside its codes; see the top of this file."""
        typed = self._typed.type
        if not self.values or (pa.types.is_date(kind) and pa.types.is_date(typed)):
            return kind
        if not (_holds_numbers(kind) and _holds_numbers(typed)):
            return pa.string()
        both_whole = pa.types.is_integer(kind) and pa.types.is_integer(typed)
        return kind if both_whole else pa.float64()

    @cached_property
    def _typed(self) -> pa.Array:
        """The codes as whole numbers, numbers or dates where all of them are; as text otherwise, and where -09 would lose its zero."""
        texts = pa.array(self.texts, pa.string())
        numbers = as_number(texts)
        if (np.abs(numbers) < EXACT).all() and as_text(pa.array(numbers)).equals(texts):
            return pa.array(numbers.astype(np.int64) if (numbers % 1 == 0).all() else numbers)
        if np.isnan(self._days).any():
            return texts
        return pa.array(self._days.astype(np.int32)).cast(pa.date32())


def _holds_numbers(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _check_code(value: object) -> None:
    if not isinstance(value, str) and not is_number(value):
        raise SchemaError(
            f"missing_values ({value!r:.60}) must be texts or numbers; try missing_values: [N, -9]"
        )
    if not isinstance(value, str) and not abs(value) < EXACT:
        raise SchemaError(f"missing_values ({value!r:.60}) must be below 2**53 in size; quote a longer code")
    if isinstance(value, str) and value.strip().lower() in _NOTHING:
        raise SchemaError(
            f"missing_values ({value!r}) must not be an empty cell or NaN; say missing: level instead"
        )
    if isinstance(value, str) and value.startswith(
        "'"
    ):  # the mark of a CSV file of ours, before what begins like a formula
        raise SchemaError(f"missing_values ({value!r:.60}) must not begin with a quote")
    if isinstance(value, str) and len(value) > MAX_CODE_LENGTH:
        raise SchemaError(
            f"missing_values ({value!r:.60}…) must have at most {MAX_CODE_LENGTH} characters each"
        )
