"""Kinds of missing that a data dictionary tells apart: N for not applicable, -9 for no answer. Each is a level of its own, after the values.

How they are written back. A column of numbers, or of dates, stays one when every code is itself a number, or a date; with any other code the column is
text, as it must have been when it came: no typed column can hold both 17 and N.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpcipher.errors import SchemaError
from dpcipher.schema.cells import as_day, as_number, as_text
from dpcipher.schema.listed import Level, Listed
from dpcipher.schema.points import EXACT
from dpcipher.tables.domain import Codes, Floats

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
class MissingCodes:
    """The codes for missing values that a column declares, in the order of their levels."""

    values: tuple[Level, ...]

    def __post_init__(self) -> None:
        if len(self.values) > MAX_CODES:
            raise SchemaError(f"missing_values ({len(self.values)} of them) must be at most {MAX_CODES}")
        for value in self.values:
            _check_code(value)
        if self.values:
            _ = self._listed

    @classmethod
    def parse(cls, values: object) -> "MissingCodes":
        """The codes of a declaration, which may have none."""
        if values is not None and not isinstance(values, tuple):
            raise SchemaError(f"missing_values ({values!r:.60}) must be a list; try missing_values: [N, -9]")
        return cls(values or ())

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
    def _listed(self) -> Listed:
        try:
            return Listed(self.texts)
        except SchemaError as wrong:
            raise SchemaError(f"missing_{str(wrong).replace('levels', 'values', 1)}") from None

    @property
    def listed(self) -> Listed | None:
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
        found = self._days if dates else as_number(pa.array(self.texts, pa.string()))
        return tuple(float(number) for number in found if abs(number) < EXACT)

    @cached_property
    def _days(self) -> Floats:
        """The codes that are dates, such as 9999-12-31, as days."""
        return as_day(pa.array(self.texts, pa.string()))

    @cached_property
    def of_null(self) -> int | None:
        """The kind that a null cell is, where it can only be one: a reader such as pandas took its text (NA, null …) for nothing."""
        swallowed = [code for code, text in enumerate(self.texts) if text.lower() in _READ_AS_NOTHING]
        return swallowed[0] if len(swallowed) == 1 else None

    def put_back(self, values: pa.Array, kinds: NDArray[np.integer]) -> pa.Array:
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
        if not (_is_number(kind) and _is_number(typed)):
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


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def with_default(columns: object, values: object) -> object:
    """The columns of a schema file, each that lists no `missing_values` with those of the schema, except what it declares as a level."""
    if values is None or not isinstance(columns, Mapping | list | tuple):
        return columns
    if not isinstance(values, list | tuple):
        raise SchemaError(f"missing_values ({values!r:.60}) must be a list; try missing_values: [N, -9]")
    default = MissingCodes(tuple(values))
    if isinstance(columns, Mapping):
        return {name: _with_codes(spec, default) for name, spec in columns.items()}
    return [_with_codes(spec, default) for spec in columns]


def _with_codes(spec: object, default: MissingCodes) -> object:
    if not isinstance(spec, Mapping) or "missing_values" in spec:
        return spec
    levels = [False, True] if spec.get("kind") == "boolean" else spec.get("levels")
    if not isinstance(levels, list | tuple):
        return {**spec, "missing_values": list(default.values)}
    declared = Listed(tuple(levels)).codes(pa.array(default.texts, pa.string())) >= 0
    return {
        **spec,
        "missing_values": [v for v, is_level in zip(default.values, declared, strict=True) if not is_level],
    }


def _check_code(value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
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
