"""Truth in three values, and formulas over it.

A comparison by order with a missing value is neither true nor false but unknown (Kleene's strong logic), and a rule is broken only where it is certainly
false. Where only the bin of a value is known, a comparison may come out in more than one way: `Truth` holds which of the three are
possible. The combination of two truths treats their parts as free of one another, so that it may hold too many possibilities but
never too few: what is called certainly false is.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpcipher.tables.domain import Bools, Floats

MAX_CLAUSES, MAX_LITERALS = 256, 1024  # of one rule


class Truth(NamedTuple):
    """Where a formula can be true, unknown and false; arrays that broadcast against one another."""

    yes: Bools
    unknown: Bools
    no: Bools

    @property
    def broken(self) -> Bools:
        """Where it is false and nothing else."""
        return np.asarray(self.no & ~self.yes & ~self.unknown)

    @property
    def open(self) -> Bools:
        """Where it is false for some values and not for others."""
        return np.asarray(self.no & (self.yes | self.unknown))


class View(Protocol):
    """What is known of some rows, or of some cells: the code of each column, and bounds of its value."""

    def codes(self, column: str) -> NDArray[np.integer[Any]]:
        """The level of each row."""

    def missing(self, column: str) -> Bools:
        """Where the value is missing."""

    def bounds(self, column: str) -> tuple[Floats, Floats]:
        """The least and the greatest number that the value may be; anything where it is missing."""

    def reach(self, column: str) -> tuple[Floats, Floats]:
        """The same with values that lay outside the range and went to the end bins."""


class Atom(Protocol):
    """One comparison, its columns found in the schema."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it reads."""

    def truth(self, view: View) -> Truth:
        """Where it holds."""


@dataclass(frozen=True, eq=False)
class Literal:
    """A comparison, or its opposite."""

    atom: Atom
    negated: bool = False

    def truth(self, view: View) -> Truth:
        """Where it holds."""
        truth = self.atom.truth(view)
        return Truth(truth.no, truth.unknown, truth.yes) if self.negated else truth


@dataclass(frozen=True, eq=False)
class Every:
    """All parts hold."""

    parts: tuple["Formula", ...]

    def truth(self, view: View) -> Truth:
        """False where one part is, unknown where none is false and one unknown."""
        first, *rest = (part.truth(view) for part in self.parts)
        for other in rest:
            unknown = (first.unknown & (other.unknown | other.yes)) | (other.unknown & first.yes)
            first = Truth(first.yes & other.yes, unknown, first.no | other.no)
        return first


@dataclass(frozen=True, eq=False)
class Either:
    """At least one part holds."""

    parts: tuple["Formula", ...]

    def truth(self, view: View) -> Truth:
        """True where one part is, unknown where none is true and one unknown."""
        first, *rest = (part.truth(view) for part in self.parts)
        for other in rest:
            unknown = (first.unknown & (other.unknown | other.no)) | (other.unknown & first.no)
            first = Truth(first.yes | other.yes, unknown, first.no & other.no)
        return first


Formula = Literal | Every | Either


def opposite(formula: Formula) -> Formula:
    """The formula that is false where this one is true; `not` only ever stands before a comparison."""
    if isinstance(formula, Literal):
        return Literal(formula.atom, not formula.negated)
    parts = tuple(opposite(part) for part in formula.parts)
    return Either(parts) if isinstance(formula, Every) else Every(parts)


def columns_of(formula: Formula) -> tuple[str, ...]:
    """The columns that a formula reads, each once."""
    return tuple(dict.fromkeys(name for literal in literals(formula) for name in literal.atom.columns))


def literals(formula: Formula) -> Iterator[Literal]:
    """Every comparison of a formula."""
    if isinstance(formula, Literal):
        yield formula
    else:
        for part in formula.parts:
            yield from literals(part)


def clauses(formula: Formula) -> tuple[Formula, ...]:
    """Formulas that together say the same, each over as few columns as can be: the conjunctive normal form.

    `a -> b and c` becomes `a -> b` and `a -> c`: two tables of two columns instead of one of three. A formula that would fall into too many
    stays whole.
    """
    parts = _clauses(formula)
    return (
        (formula,) if parts is None else tuple(part[0] if len(part) == 1 else Either(part) for part in parts)
    )


def _clauses(formula: Formula) -> list[tuple[Literal, ...]] | None:
    if isinstance(formula, Literal):
        return [(formula,)]
    below = [_clauses(part) for part in formula.parts]
    known = [part for part in below if part is not None]
    if len(known) < len(below):
        return None
    if isinstance(formula, Every):
        joined = [clause for part in known for clause in part]
    elif prod(map(len, known)) > MAX_CLAUSES:
        return None
    else:
        joined = [tuple(literal for clause in choice for literal in clause) for choice in product(*known)]
    too_many = len(joined) > MAX_CLAUSES or sum(map(len, joined)) > MAX_LITERALS
    return None if too_many else joined
