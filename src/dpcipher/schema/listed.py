"""The values of a column whose levels are listed one by one: categorical, ordinal and boolean columns."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpcipher.errors import SchemaError
from dpcipher.marginals.arrays import Codes, Floats
from dpcipher.schema.cells import as_number, as_text, as_truth

Level = str | int | float | bool

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

    def codes(self, cells: pa.Array) -> Codes:
        """The code of each cell, -1 where its value is not listed.

        A cell goes to the level with its text; if there is none, to the first level that is the same number, so that 1, 1.0 and "01"
        are the level "1" (true and false are the numbers 1 and 0).
        """
        if isinstance(self.levels[0], bool):
            return self._look_up(as_truth(cells))
        if not isinstance(self.levels[0], str):
            return self._look_up(as_number(cells))
        found = pc.index_in(as_text(cells), value_set=pa.array(self.levels, pa.string()))
        codes = np.array(pc.fill_null(found, -1).to_numpy(zero_copy_only=False), dtype=np.int32)
        unlisted = codes < 0
        if unlisted.any() and not np.isnan(self._numbers).all():
            codes[unlisted] = self._look_up(as_number(cells.filter(pa.array(unlisted))))
        return codes

    @cached_property
    def _numbers(self) -> Floats:
        """The levels as numbers, NaN for those that are none."""
        numbers = as_number(pa.array(self.levels))
        return np.where(np.abs(numbers) < EXACT, numbers, np.nan)

    def draw(self, codes: Codes, rng: np.random.Generator) -> pa.Array:
        """The level of each code; nothing is random here."""
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
