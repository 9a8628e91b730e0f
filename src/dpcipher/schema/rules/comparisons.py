"""Comparisons of a rule: columns with values, with sets of levels and with other columns; and where they cut a column into bins."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal as OneOf

import numpy as np
import pyarrow as pa

from dpcipher.errors import ConditionError, SchemaError, SizeError
from dpcipher.schema.cells import as_number
from dpcipher.schema.columns import Column, Ordinal
from dpcipher.schema.conditions import level_code
from dpcipher.schema.cut import Cut
from dpcipher.schema.rules.logic import Either, Formula, HasLevel, Literal, Pair, Threshold
from dpcipher.tables.domain import Bools, Floats

MAX_LEVELS = 2**21
_ORDERS = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}


@dataclass(frozen=True)
class Token:
    """A piece of the text, and where it starts (the first character is number 1)."""

    kind: OneOf["sign", "word", "text", "name", "end"]
    text: str
    position: int


def wrong_at(token: Token, why: str) -> SchemaError:
    """The error of a word, with its place in the text."""
    return SchemaError(f"at {token.position}: {why}")


def with_known_levels(column: Column) -> Column:
    """The column; refused where nobody knows its levels yet."""
    if column.discovers:
        raise SchemaError(
            f"it must not name {column.name!r}, whose levels are not known yet (levels: discover); declare them"
        )
    return column


def with_value(column: Column, sign: str, token: Token) -> Formula:
    """A column compared with a constant."""
    if isinstance(column, Cut):
        return Literal(_against_number(column, sign, token))
    if sign in ("==", "!="):
        return Literal(HasLevel(column.name, _one(column, _level(column, token))), sign == "!=")
    if column.kind != "ordinal":
        raise wrong_at(
            token,
            f"the levels of {column.name!r} have no order; declare kind: ordinal, or list them with in [..]",
        )
    return Literal(HasLevel(column.name, _by_order(column, sign, token), ordered=True))


def _against_number(column: Cut, sign: str, token: Token) -> HasLevel | Threshold:
    """A cut column compared with a number or a date; by equality also with a bin, or a kind of missing, named by its label."""
    value = column.scale.number_of(token.text)
    if sign in ("==", "!="):
        code = column.find(token.text)
        # After the bins come special values and kinds of missing, each a level of its own, also where bins are still to be found.
        if code is not None and (code >= column.ordered_levels or (value is None and not column.is_open)):
            chosen = _one(column, code)
            return HasLevel(column.name, chosen if sign == "==" else ~chosen)
    if value is None:
        raise wrong_at(
            token, f"{column.name!r} is compared with {column.scale.example}, not {token.text!r:.60}"
        )
    if sign in ("==", "!=") and column.kind == "number":
        raise wrong_at(
            token,
            f"no bin of {column.name!r} holds {token.text:.60} alone; use < and >=, or declare kind: integer",
        )
    if not column.is_open:
        _check_cuts(column, sign, value, token)
    return Threshold(column.name, sign, value)


def _by_order(column: Column, sign: str, token: Token) -> Bools:
    """The levels before or after one, in the order of the list; numbers in increasing order are compared as numbers."""
    numbers = _increasing_numbers(column)
    positions = np.arange(column.size, dtype=np.float64)
    code = column.find(token.text)
    if numbers is not None and code is None:
        value = float(as_number(pa.array([token.text], pa.string()))[0])
        if math.isfinite(value):
            return np.asarray(
                _ORDERS[sign](np.append(numbers, np.full(column.size - len(numbers), np.nan)), value)
            )
    level = _level(column, token)
    if level >= column.domain.size:
        raise wrong_at(
            token, f"{token.text!r:.60} of {column.name!r} is missing, which has no place in the order"
        )
    return np.asarray(_ORDERS[sign](positions, level))


def _increasing_numbers(column: Column) -> Floats | None:
    if not isinstance(column, Ordinal) or column.level_numbers is None:
        return None
    numbers = np.array(column.level_numbers, dtype=np.float64)
    return numbers if (np.diff(numbers) > 0).all() else None


def of_columns(left: Column, sign: str, right: Column, token: Token) -> Pair:
    """Two columns compared: numbers with numbers, dates with dates, levels with the same levels."""
    if left.name == right.name:
        raise wrong_at(token, f"{left.name!r} is compared with itself")
    ranks = _ranks(left, sign, right)
    if ranks is None:
        raise wrong_at(
            token,
            f"{left.name!r} ({left.kind}) and {right.name!r} ({right.kind}) cannot be compared by {sign}: both must be numbers, dates, or "
            "ordinal with the same levels (== and != also compare the texts of any levels)",
        )
    return Pair(left.name, sign, right.name, ranks)


def _ranks(left: Column, sign: str, right: Column) -> dict[str, Floats] | None:
    """A number for each level of the columns that have levels; None where the two do not compare."""
    ways = {_family(left), _family(right)}
    if ways == {"number"} or ways == {"date"} or ways == {"time"}:
        return {
            column.name: numbers
            for column in (left, right)
            if (numbers := _increasing_numbers(column)) is not None
        }
    if isinstance(left, Cut) or isinstance(right, Cut):
        return None
    if sign in ("==", "!="):
        return _by_label(left, right)
    same = left.kind == right.kind == "ordinal" and left.domain.labels == right.domain.labels
    return _by_label(left, right) if same else None


def _family(column: Column) -> str:
    if isinstance(column, Cut):
        return "number" if column.kind == "integer" else column.kind
    return "levels" if _increasing_numbers(column) is None else "number"


def _by_label(left: Column, right: Column) -> dict[str, Floats]:
    number = {
        label: place for place, label in enumerate(dict.fromkeys((*left.domain.labels, *right.domain.labels)))
    }
    return {
        column.name: np.array([number[label] for label in column.domain.labels], dtype=np.float64)
        for column in (left, right)
    }


def is_one_of(column: Column, levels: tuple[Token, ...]) -> Formula:
    """A column that has one of some levels: one comparison where all of them are known by their codes."""
    parts = tuple(with_value(column, "==", level) for level in levels)
    atoms = [part.atom for part in parts if isinstance(part, Literal)]
    known = [atom for atom in atoms if isinstance(atom, HasLevel)]
    if len(known) == len(parts):
        chosen = np.logical_or.reduce([atom.chosen for atom in known])
        return Literal(HasLevel(known[0].column, chosen))
    return parts[0] if len(parts) == 1 else Either(parts)


def is_missing(column: Column) -> HasLevel:
    """A column that has a level for what is missing."""
    chosen = _no_level(column)
    chosen[column.domain.size :] = True
    if not chosen.any():
        raise SchemaError(f"{column.name!r} has no missing level; declare missing: level")
    return HasLevel(column.name, chosen)


def _one(column: Column, code: int) -> Bools:
    chosen = _no_level(column)
    chosen[code] = True
    return chosen


def _no_level(column: Column) -> Bools:
    if column.size > MAX_LEVELS:
        raise SizeError(
            f"a rule may name levels of columns with at most {MAX_LEVELS} of them, not {column.size}; use bins"
        )
    return np.zeros(column.size, dtype=np.bool_)


def _level(column: Column, token: Token) -> int:
    try:
        return level_code(column, token.text)
    except ConditionError as wrong:
        raise wrong_at(token, str(wrong)) from None


def check_ambiguous(column: Column, token: Token) -> None:
    """Refuse a word that is a column, and also a level of the column that it is compared with."""
    if token.kind == "word" and not isinstance(column, Cut) and column.find(token.text) is not None:
        text = token.text
        raise wrong_at(
            token,
            f"{text} is a column, and also a level of {column.name!r}; write '{text}' for the level or `{text}` for the column",
        )


def _cuts(column: Cut, sign: str, value: float) -> tuple[float, ...]:
    """Where bins must end for every bin to be on one side of a comparison; the last bin of numbers also holds its right end."""
    if column.kind == "number":
        return (value,)
    first, after = float(math.ceil(value)), float(math.floor(value) + 1)
    if sign in ("==", "!="):
        return (first, after)
    return (first,) if sign in ("<", ">=") else (after,)


def _check_cuts(column: Cut, sign: str, value: float, token: Token) -> None:
    """Refuse a threshold inside a declared bin: the tables could not tell its two sides apart."""
    domain, declared = column.domain, column.scale.declared
    low, high = float(domain.edges[0]), float(domain.edges[-1])
    if sign in ("==", "!=") and not (low <= value < high and value == math.floor(value)):
        raise wrong_at(
            token,
            f"{column.name!r} never is {token.text:.60}; it is from {declared(low)} to {declared(high - 1)}",
        )
    for cut in _cuts(column, sign, value):
        inside = low < cut < high
        points = domain._points if inside and not isinstance(domain.edges, range) else None
        if points is not None and cut != points[np.searchsorted(points, cut)]:
            place = int(np.searchsorted(points, cut)) - 1
            raise wrong_at(
                token,
                f"{token.text:.60} lies inside the bin {domain.labels[place]} of {column.name!r}; add the edge {declared(cut)} to its "
                "edges, or compare with an edge",
            )


def thresholds_of(literals: Iterator[Literal], column: Cut) -> Iterator[float]:
    """The numbers at which comparisons with constants cut a column."""
    for literal in literals:
        atom = literal.atom
        if isinstance(atom, Threshold) and atom.column == column.name:
            yield from _cuts(column, atom.sign, atom.value)


def range_cuts(column: Cut, wanted: object) -> Iterator[float]:
    """The numbers at which a range such as {min: 3, max: 9} cuts a column."""
    for key, sign in (("min", "<"), ("max", "<=")):
        value = wanted.get(key) if isinstance(wanted, Mapping) else None
        number = None if value is None else column.scale.number_of(str(value))
        if number is not None:
            yield from _cuts(column, sign, number)
