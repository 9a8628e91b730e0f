"""Whole numbers on their way from Spark to its Python workers, several of them in one: Spark hands values over one by one, which costs more than counting them.

Lossless as far as codes go. A schema tells whole numbers apart only between the smallest and the largest number that a column declares; a number beyond
stands for all others on its side, and null is one more number. Which columns are packed follows from the schema and the types of the columns alone, and
each row is packed alone, so that every cell still gets the code that it has elsewhere (a test compares them).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpcipher.errors import DataError
from dpcipher.marginals.arrays import Bools, CodeColumn
from dpcipher.schema.binned import Binned
from dpcipher.schema.cells import as_number
from dpcipher.schema.column import Column
from dpcipher.schema.narrow import code_type
from dpcipher.schema.points import EXACT
from dpcipher.schema.rows import judged_columns
from dpcipher.schema.schema import Schema

Words = list[NDArray[np.int64]]

WORD_BITS = 63
_MOST_BITS = 31  # of one column
_LOOKED_UP = 2**16  # numbers of a column whose codes are listed beforehand
_WHOLE = ("tinyint", "smallint", "int", "bigint")


@dataclass(frozen=True)
class Slot:
    """Where a column lies: in which word, from which bit on; its smallest number, and how many there are before the one for null."""

    name: str
    word: int
    shift: int
    low: int
    size: int
    is_truth: bool = False

    @property
    def bits(self) -> int:
        """How many bits it takes."""
        return self.size.bit_length()


@dataclass(frozen=True)
class Packing:
    """Columns that travel in words, and those that travel as they are."""

    slots: tuple[Slot, ...]
    others: tuple[str, ...]

    @property
    def n_words(self) -> int:
        """How many numbers each row becomes."""
        return 1 + self.slots[-1].word if self.slots else 0

    def selected(self, frame: Any) -> Any:
        """A Spark frame of the words, and of the other columns behind them."""
        from pyspark.sql import functions

        words = [functions.expr(self._expression(word)).alias(f"word {word}") for word in range(self.n_words)]
        return frame.select(*words, *(functions.col(_quoted(name)) for name in self.others))

    def _expression(self, word: int) -> str:
        """A word in SQL, whose every step is within a bigint whatever the cells are."""
        return " | ".join(
            f"shiftleft({_number(slot)}, {slot.shift})" for slot in self.slots if slot.word == word
        )

    def encoded(self, table: pa.Table, schema: Schema) -> list[CodeColumn]:
        """The codes of each attribute, as the schema has them for the columns again; few numbers are looked up, not read."""
        lookups, words = _lookups(self, schema.judging), self._words(table)

        def encode(column: Column) -> CodeColumn:
            cells = self._numbers(words, column.name) if column.name in lookups else None
            if cells is None or lookups[column.name].refuses(cells):
                return column.encode(self._column(table, words, column.name))
            return lookups[column.name].codes[cells]

        return judged_columns(schema, encode)

    def unpacked(self, table: pa.Table) -> pa.Table:
        """The columns again: numbers of the narrowest type, truth values, nulls."""
        names, words = [*(slot.name for slot in self.slots), *self.others], self._words(table)
        return pa.table({name: self._column(table, words, name) for name in names})

    def _words(self, table: pa.Table) -> Words:
        return [table.column(place).to_numpy() for place in range(self.n_words)]

    def _numbers(self, words: Words, name: str) -> NDArray[np.int64]:
        slot = self._places[name]
        shifted = words[slot.word] >> slot.shift if slot.shift else words[slot.word]
        return np.asarray(shifted & ((1 << slot.bits) - 1))

    def _column(self, table: pa.Table, words: Words, name: str) -> pa.Array | pa.ChunkedArray:
        if name in self.others:
            return table.column(self.n_words + self.others.index(name))
        return _cells(self._numbers(words, name), self._places[name])

    @cached_property
    def _places(self) -> dict[str, Slot]:
        return {slot.name: slot for slot in self.slots}


@dataclass(frozen=True, eq=False)
class _Lookup:
    """The code of each number that a column travels as, the last of null; and those that it refuses."""

    codes: CodeColumn
    refused: Bools

    def refuses(self, numbers: NDArray[np.int64]) -> bool:
        """Whether there are some that are refused."""
        return bool(self.refused.any() and self.refused[numbers].any())


@lru_cache(maxsize=4)
def _lookups(packing: Packing, schema: Schema) -> dict[str, _Lookup]:
    """The codes of all numbers, for the columns that have few."""
    return {
        slot.name: _lookup(schema.column(slot.name), slot)
        for slot in packing.slots
        if slot.size <= _LOOKED_UP
    }


def _lookup(column: Column, slot: Slot) -> _Lookup:
    """Cells that are missing, unlisted or neither are encoded apart, since a column refuses some together with others."""
    cells = _cells(np.arange(slot.size + 1), slot)
    absent, unlisted, _ = column.judged(cells)
    codes, refused = (
        np.zeros(slot.size + 1, dtype=code_type(column.size)),
        np.zeros(slot.size + 1, dtype=np.bool_),
    )
    for sort in (absent, unlisted, ~absent & ~unlisted):
        try:
            codes[sort] = column.encode(cells.filter(pa.array(sort)))
        except DataError:
            refused |= sort
    return _Lookup(codes, refused)


def packing(schema: Schema, types: Mapping[str, str], also: Sequence[str] = ()) -> Packing:
    """How the columns of a schema travel, given the names of their types in Spark; `also` are columns that travel as they are."""
    slots: list[Slot] = []
    word, used = 0, 0
    for column in schema.columns:
        bounds = None if column.name in also else _bounds(column, types[column.name])
        if bounds is None:
            continue
        low, high = bounds
        slot = Slot(column.name, word, used, low, high - low + 1, types[column.name] == "boolean")
        if used + slot.bits > WORD_BITS:
            word, used = word + 1, 0
            slot = Slot(slot.name, word, used, low, slot.size, slot.is_truth)
        used += slot.bits
        slots.append(slot)
    packed = {slot.name for slot in slots}
    names = dict.fromkeys([*schema.names, *also])
    return Packing(tuple(slots), tuple(name for name in names if name not in packed))


def _bounds(column: Column, kind: str) -> tuple[int, int] | None:
    """The numbers beyond all that a column declares, one on either side; None where it must travel as it is."""
    if kind == "boolean":
        return 0, 1
    if kind not in _WHOLE or column.is_open or column.kind in ("date", "time"):
        return None
    domain = column.domain
    if isinstance(domain, Binned):
        numbers = [float(domain.edges[0]), float(domain.edges[-1]), *map(float, domain.special)]
    else:
        numbers = as_number(pa.array(domain.levels)).tolist()
    numbers += as_number(pa.array(column.missing_codes.texts, pa.string())).tolist()
    finite = [number for number in numbers if not math.isnan(number)]
    if not finite or max(map(abs, finite)) >= EXACT:
        return None
    low, high = math.floor(min(finite)) - 1, math.ceil(max(finite)) + 1
    return (low, high) if (high - low + 1).bit_length() <= _MOST_BITS else None


def _number(slot: Slot) -> str:
    """A cell as a number from 0 up, in SQL."""
    cell = f"cast({_quoted(slot.name)} as bigint)"
    if not slot.is_truth:
        cell = f"(least(greatest({cell}, {slot.low}L), {slot.low + slot.size - 1}L) - {slot.low}L)"
    return f"if({_quoted(slot.name)} is null, {slot.size}L, {cell})"


def _cells(numbers: NDArray[np.int64], slot: Slot) -> pa.Array:
    absent = numbers == slot.size
    mask = absent if absent.any() else None
    if slot.is_truth:
        return pa.array(numbers == 1, mask=mask)
    kind: Any = np.int8 if _fits(slot, np.int8) else np.int16 if _fits(slot, np.int16) else np.int64
    return pa.array(numbers.astype(kind) + kind(slot.low), mask=mask)


def _fits(slot: Slot, kind: type[np.signedinteger[Any]]) -> bool:
    ends = np.iinfo(kind)
    return ends.min <= slot.low and slot.low + slot.size <= ends.max


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
