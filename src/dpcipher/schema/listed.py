"""The values of a column whose levels are listed one by one: categorical, ordinal and boolean columns."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpcipher.errors import SchemaError
from dpcipher.schema.cells import Floats, as_number, as_text, as_truth

Level = str | int | float | bool
Codes = NDArray[np.int32]

EXACT = 2**53  # below it every whole number is a float of its own


@dataclass(frozen=True)
class Listed:
    """Distinct levels of one type, in the order their codes follow."""

    levels: tuple[Level, ...]

    def __post_init__(self) -> None:
        if not self.levels:
            raise SchemaError("levels ([]) must list at least one level; try levels: [a, b]")
        object.__setattr__(self, "levels", _one_type(self.levels))
        if len(set(self.labels)) < len(self.levels):
            raise SchemaError(
                f"levels must be distinct, but {_first_repeat(self.labels)!r} is listed twice; remove one"
            )

    @property
    def size(self) -> int:
        """How many levels there are."""
        return len(self.levels)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The levels as text."""
        return tuple(str(level) for level in self.levels)

    @property
    def blank_is_missing(self) -> bool:
        """Whether an empty text stands for a missing value; not when it is itself a level."""
        return "" not in self.levels

    def codes(self, cells: pa.Array) -> Codes:
        """The code of each cell, -1 where its value is not listed."""
        if isinstance(self.levels[0], str):
            found = pc.index_in(as_text(cells), value_set=pa.array(self.levels, pa.string()))
            return np.asarray(pc.fill_null(found, -1).to_numpy(zero_copy_only=False), dtype=np.int32)
        numbers = as_truth(cells) if isinstance(self.levels[0], bool) else as_number(cells)
        return self._look_up(numbers)

    def draw(self, codes: Codes, rng: np.random.Generator) -> pa.Array:
        """The level of each code; nothing is random here."""
        return pa.array(self.levels).take(pa.array(codes))

    def _look_up(self, numbers: Floats) -> Codes:
        order, ranked = self._ranks
        place = np.minimum(np.searchsorted(ranked, numbers), len(ranked) - 1)
        return np.where(ranked[place] == numbers, order[place], -1).astype(np.int32)

    @cached_property
    def _ranks(self) -> tuple[NDArray[np.intp], Floats]:
        levels = np.asarray(self.levels, dtype=np.float64)
        order = np.argsort(levels)
        return order, levels[order]


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
    if types == {int, float}:
        return tuple(float(level) for level in levels)
    if types == {int, str}:
        return tuple(str(level) for level in levels)
    if len(types) > 1:
        raise SchemaError("levels must be of one type; put quotes around those that are texts")
    return levels


def _first_repeat(labels: tuple[str, ...]) -> str:
    seen: set[str] = set()
    return next(label for label in labels if label in seen or seen.add(label))  # type: ignore[func-returns-value]
