"""Where comparisons cut a column into bins: the edges that rules need, and the refusal of a threshold inside a declared bin."""

import math
from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from dpcipher.errors import SchemaError
from dpcipher.schema.binned import Binned
from dpcipher.schema.cells import as_number
from dpcipher.schema.column import Column
from dpcipher.schema.points import day_text, parse_day, parse_second, second_text
from dpcipher.schema.rules.atoms import Threshold
from dpcipher.schema.rules.grammar import Token
from dpcipher.schema.rules.logic import Literal


def settled(column: Column) -> bool:
    """Whether the levels of a column are declared, and not still to be found."""
    return "auto" not in (column.bins, column.min, column.max) and column.levels != "discover"


def cuts(column: Column, sign: str, value: float) -> tuple[float, ...]:
    """Where bins must end for every bin to be on one side of a comparison; the last bin of numbers also holds its right end."""
    if column.kind == "number":
        return (value,)
    first, after = float(math.ceil(value)), float(math.floor(value) + 1)
    if sign in ("==", "!="):
        return (first, after)
    return (first,) if sign in ("<", ">=") else (after,)


def shown(column: Column, number: float) -> str | int | float:
    """A number of a cut column as its schema would write it."""
    if column.kind == "date":
        return day_text(int(number))
    if column.kind == "time":
        return second_text(int(number))
    return int(number) if column.kind == "integer" else number


def check_cuts(column: Column, sign: str, value: float, token: Token) -> None:
    """Refuse a threshold inside a declared bin: the tables could not tell its two sides apart."""
    domain = column.domain
    assert isinstance(domain, Binned)
    if isinstance(domain.edges, range):
        low, high = float(domain.edges.start), float(domain.edges.stop - 1)
    else:
        low, high = float(domain.edges[0]), float(domain.edges[-1])
    if sign in ("==", "!=") and not (low <= value < high and value == math.floor(value)):
        raise wrong_at(
            token,
            f"{column.name!r} never is {token.text:.60}; it is from {shown(column, low)} to {shown(column, high - 1)}",
        )
    for cut in cuts(column, sign, value):
        inside = low < cut < high
        points = domain._points if inside and not isinstance(domain.edges, range) else None
        if points is not None and cut != points[np.searchsorted(points, cut)]:
            place = int(np.searchsorted(points, cut)) - 1
            raise wrong_at(
                token,
                f"{token.text:.60} lies inside the bin {domain.labels[place]} of {column.name!r}; add the edge {shown(column, cut)} to its "
                "edges, or compare with an edge",
            )


def number_of(column: Column, text: str) -> float | None:
    """The number or day that a word stands for."""
    if column.kind in ("date", "time"):
        try:
            return float((parse_day if column.kind == "date" else parse_second)(text, column.kind))
        except SchemaError:
            return None
    value = float(as_number(pa.array([text], pa.string()))[0])
    return value if math.isfinite(value) and text.strip()[:1] not in "tTfF" else None


def thresholds_of(literals: Iterator[Literal], column: Column) -> Iterator[float]:
    """The numbers at which comparisons with constants cut a column."""
    for literal in literals:
        atom = literal.atom
        if isinstance(atom, Threshold) and atom.column == column.name:
            yield from cuts(column, atom.sign, atom.value)


def range_cuts(column: Column, wanted: object) -> Iterator[float]:
    """The numbers at which a range such as {min: 3, max: 9} cuts a column."""
    for key, sign in (("min", "<"), ("max", "<=")):
        value = wanted.get(key) if isinstance(wanted, Mapping) else None
        number = None if value is None else number_of(column, str(value))
        if number is not None:
            yield from cuts(column, sign, number)


def wrong_at(token: Token, why: str) -> SchemaError:
    """The error of a word, with its place in the text."""
    return SchemaError(f"at {token.position}: {why}")
