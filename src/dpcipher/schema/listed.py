"""The levels of a column that lists them one by one."""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpcipher.errors import SchemaError
from dpcipher.schema.cells import as_number, as_text, as_truth, quoted
from dpcipher.schema.points import EXACT
from dpcipher.tables.domain import Codes, Floats

Level = str | int | float | bool


@dataclass(frozen=True)
class Listed:
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

    def draw(
        self,
        codes: Codes,
        rng: np.random.Generator,
        *,
        masses: Floats | None = None,
        within: tuple[float, float] | None = None,
    ) -> pa.Array:
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
