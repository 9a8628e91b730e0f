"""Where comparisons cut a column into bins: the edges that rules need, and the refusal of a threshold inside a declared bin."""

import math
from collections.abc import Iterator, Mapping

import numpy as np

from dpcipher.errors import SchemaError
from dpcipher.schema.cut import Cut
from dpcipher.schema.rules.atoms import Threshold
from dpcipher.schema.rules.grammar import Token
from dpcipher.schema.rules.logic import Literal


def cuts(column: Cut, sign: str, value: float) -> tuple[float, ...]:
    """Where bins must end for every bin to be on one side of a comparison; the last bin of numbers also holds its right end."""
    if column.kind == "number":
        return (value,)
    first, after = float(math.ceil(value)), float(math.floor(value) + 1)
    if sign in ("==", "!="):
        return (first, after)
    return (first,) if sign in ("<", ">=") else (after,)


def check_cuts(column: Cut, sign: str, value: float, token: Token) -> None:
    """Refuse a threshold inside a declared bin: the tables could not tell its two sides apart."""
    domain, declared = column.domain, column.scale.declared
    low, high = float(domain.edges[0]), float(domain.edges[-1])
    if sign in ("==", "!=") and not (low <= value < high and value == math.floor(value)):
        raise wrong_at(
            token,
            f"{column.name!r} never is {token.text:.60}; it is from {declared(low)} to {declared(high - 1)}",
        )
    for cut in cuts(column, sign, value):
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
            yield from cuts(column, atom.sign, atom.value)


def range_cuts(column: Cut, wanted: object) -> Iterator[float]:
    """The numbers at which a range such as {min: 3, max: 9} cuts a column."""
    for key, sign in (("min", "<"), ("max", "<=")):
        value = wanted.get(key) if isinstance(wanted, Mapping) else None
        number = None if value is None else column.scale.number_of(str(value))
        if number is not None:
            yield from cuts(column, sign, number)


def wrong_at(token: Token, why: str) -> SchemaError:
    """The error of a word, with its place in the text."""
    return SchemaError(f"at {token.position}: {why}")
