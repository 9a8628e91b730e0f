"""From the words of a rule to columns and levels of the schema: every name is looked up here, and refused with a hint where there is none."""

import math
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from dpcipher.errors import ConditionError, SchemaError, SizeError, did_you_mean
from dpcipher.schema.cells import as_number
from dpcipher.schema.columns import Column, Ordinal
from dpcipher.schema.conditions import level_code
from dpcipher.schema.cut import Cut
from dpcipher.schema.rules.atoms import HasLevel, Pair, Threshold
from dpcipher.schema.rules.cuts import check_cuts, wrong_at
from dpcipher.schema.rules.grammar import Absence, All, Comparison, Membership, Not, Phrase, Some, Token
from dpcipher.schema.rules.logic import Either, Every, Formula, Literal, opposite
from dpcipher.tables.domain import Bools, Floats

MAX_LEVELS = 2**21
_MIRRORED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_ORDERS = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}

Columns = Mapping[str, Column]


def bind(phrase: Phrase, columns: Columns) -> Formula:
    """What a phrase says of the columns of a schema."""
    match phrase:
        case Not(part):
            return opposite(bind(part, columns))
        case All(parts):
            return Every(tuple(bind(part, columns) for part in parts))
        case Some(parts):
            return Either(tuple(bind(part, columns) for part in parts))
        case Comparison(left, sign, right):
            return _comparison(left, sign, right, columns)
        case Membership(name, levels):
            return _merged(tuple(_against(_column(name, columns), "==", level) for level in levels))
        case Absence(name):
            return Literal(_is_missing(_column(name, columns)))


def _comparison(left: Token, sign: str, right: Token, columns: Columns) -> Formula:
    first, second = _maybe_column(left, columns), _maybe_column(right, columns)
    if first is None and second is None:
        raise _no_column(left, columns)
    if first is not None and second is not None:
        _check_ambiguous(first, right)
        _check_ambiguous(second, left)
        return Literal(_pair(first, sign, second, right))
    if first is not None:
        return _against(first, sign, right)
    assert second is not None
    return _against(second, _MIRRORED[sign], left)


def _against(column: Column, sign: str, token: Token) -> Formula:
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
        check_cuts(column, sign, value, token)
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


def _pair(left: Column, sign: str, right: Column, token: Token) -> Pair:
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


def _merged(parts: tuple[Formula, ...]) -> Formula:
    """`in` as one comparison where all its levels are known by their codes."""
    atoms = [part.atom for part in parts if isinstance(part, Literal)]
    known = [atom for atom in atoms if isinstance(atom, HasLevel)]
    if len(known) == len(parts):
        chosen = np.logical_or.reduce([atom.chosen for atom in known])
        return Literal(HasLevel(known[0].column, chosen))
    return parts[0] if len(parts) == 1 else Either(parts)


def _is_missing(column: Column) -> HasLevel:
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


def _check_ambiguous(column: Column, token: Token) -> None:
    if token.kind == "word" and not isinstance(column, Cut) and column.find(token.text) is not None:
        text = token.text
        raise wrong_at(
            token,
            f"{text} is a column, and also a level of {column.name!r}; write '{text}' for the level or `{text}` for the column",
        )


def _maybe_column(token: Token, columns: Columns) -> Column | None:
    if token.kind == "name" and token.text not in columns:
        raise _no_column(token, columns)
    return columns.get(token.text) if token.kind in ("word", "name") else None


def _column(token: Token, columns: Columns) -> Column:
    column = _maybe_column(token, columns)
    if column is None:
        raise _no_column(token, columns)
    return column


def _no_column(token: Token, columns: Columns) -> SchemaError:
    hint = did_you_mean(token.text, columns)
    return wrong_at(token, f"column {token.text!r:.60} is not in the schema{hint}")
