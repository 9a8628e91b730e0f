"""Truth in three values, the comparisons that have it, and formulas over them.

A comparison by order with a missing value is neither true nor false but unknown (Kleene's strong logic), and a rule is broken only where it is certainly
false. Where only the bin of a value is known, a comparison may come out in more than one way: `Truth` holds which of the three are
possible. The combination of two truths treats their parts as free of one another, so that it may hold too many possibilities but
never too few: what is called certainly false is.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpcipher.schema.columns import Column
from dpcipher.schema.cut import Cut
from dpcipher.tables.domain import Bools, Floats

Whole = NDArray[np.integer[Any]]

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
    def depends_on_value(self) -> Bools:
        """Where it is false for some values and not for others."""
        return np.asarray(self.no & (self.yes | self.unknown))


@dataclass(frozen=True, eq=False)
class PrivateCodes:
    """Rows that were coded, or cells of them: a value may be anything within its bin, and beyond the end bins of `other: nearest`."""

    columns: Mapping[str, Column]
    by_column: Mapping[str, Whole]

    def codes(self, column: str) -> Whole:
        """The level of each row."""
        return self.by_column[column]

    def missing(self, column: str) -> Bools:
        """Levels after the declared ones are kinds of missing."""
        return np.asarray(self.by_column[column] >= self.columns[column].domain.size)

    def bounds(self, column: str) -> tuple[Floats, Floats]:
        """The ends of the bin, both inside it."""
        own = self.columns[column]
        assert isinstance(own, Cut)  # levels have no bounds, and no atom asks for them
        codes = np.minimum(self.by_column[column], own.domain.size - 1)
        if isinstance(own.domain.edges, range) and not own.domain.special:
            numbers = codes.astype(np.float64) + own.domain.edges.start
            return numbers, numbers
        low, high = own.domain.bounds
        return low[codes], high[codes]

    def bounds_before_clipping(self, column: str) -> tuple[Floats, Floats]:
        """The ends of all values that the bin has taken in: an end bin of `other: nearest` goes on without end."""
        (low, high), own = self.bounds(column), self.columns[column]
        if own.other != "nearest" or not isinstance(own, Cut):
            return low, high
        codes = self.by_column[column]
        return np.where(codes == 0, -np.inf, low), np.where(codes == own.domain.n_bins - 1, np.inf, high)


@dataclass(frozen=True, eq=False)
class DrawnCodes(PrivateCodes):
    """Rows that are drawn from codes: a value will lie within its bin, even within an end bin of `other: nearest`."""

    def bounds_before_clipping(self, column: str) -> tuple[Floats, Floats]:
        """The ends of the bin."""
        return self.bounds(column)


@dataclass(frozen=True, eq=False)
class DrawnValues(DrawnCodes):
    """Rows whose values are known too."""

    table: pa.Table

    def bounds(self, column: str) -> tuple[Floats, Floats]:
        """The value itself."""
        own = self.columns[column]
        assert isinstance(own, Cut)
        numbers = own.scale.read(self.table.column(column).combine_chunks())
        return numbers, numbers


@dataclass(frozen=True, eq=False)
class HasLevel:
    """The level is one of those chosen. `ordered`: they were chosen by order, which says nothing of a missing value."""

    column: str
    chosen: Bools
    ordered: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The column that the comparison reads."""
        return (self.column,)

    def truth(self, view: PrivateCodes) -> Truth:
        """Known from the code alone."""
        hit = self.chosen[view.codes(self.column)]
        unknown = view.missing(self.column) if self.ordered else np.zeros_like(hit)
        return Truth(hit & ~unknown, unknown, ~hit & ~unknown)


@dataclass(frozen=True, eq=False)
class Threshold:
    """The number, or day, compares so with a constant. Equality takes a missing value as different, order as unknown."""

    column: str
    sign: str
    value: float

    @property
    def columns(self) -> tuple[str, ...]:
        """The column that the comparison reads."""
        return (self.column,)

    def truth(self, view: PrivateCodes) -> Truth:
        """Known where all values of a bin are on one side."""
        missing = view.missing(self.column)
        truth = _compared(
            view.bounds(self.column), self.sign, (np.float64(self.value), np.float64(self.value))
        )
        nothing = np.zeros_like(missing)
        if self.sign in ("==", "!="):
            absent = (nothing, missing) if self.sign == "==" else (missing, nothing)
            return Truth(
                np.where(missing, absent[0], truth.yes), nothing, np.where(missing, absent[1], truth.no)
            )
        return Truth(truth.yes & ~missing, missing, truth.no & ~missing)


@dataclass(frozen=True, eq=False)
class Pair:
    """Two columns compare so. `ranks` are the numbers of the levels of columns that have levels; a missing value makes it unknown.

    Unlike a threshold, which is an edge, the other column may have values beyond the range of this one: what end bins took in from there counts.
    """

    left: str
    sign: str
    right: str
    ranks: Mapping[str, Floats]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the comparison reads."""
        return (self.left, self.right)

    def truth(self, view: PrivateCodes) -> Truth:
        """Known where the bins do not overlap."""
        truth = _compared(self._bounds(view, self.left), self.sign, self._bounds(view, self.right))
        missing = view.missing(self.left) | view.missing(self.right)
        return Truth(truth.yes & ~missing, missing, truth.no & ~missing)

    def _bounds(self, view: PrivateCodes, column: str) -> tuple[Floats, Floats]:
        if column not in self.ranks:
            return view.bounds_before_clipping(column)
        ranks = self.ranks[column]
        numbers = ranks[np.minimum(view.codes(column), len(ranks) - 1)]
        return numbers, numbers


@dataclass(frozen=True, eq=False)
class Determined:
    """The level of one column allows some levels of another; levels that the map leaves out allow all. `pairs` number what is allowed."""

    left: str
    right: str
    width: int
    mapped: Bools
    pairs: NDArray[np.int64]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the comparison reads."""
        return (self.left, self.right)

    def truth(self, view: PrivateCodes) -> Truth:
        """Known from the codes alone."""
        left, right = view.codes(self.left), view.codes(self.right)
        number = left.astype(np.int64) * self.width + right
        place = np.minimum(np.searchsorted(self.pairs, number), max(len(self.pairs) - 1, 0))
        yes = ~self.mapped[left] | (self.pairs[place] == number)
        return Truth(yes, np.zeros_like(yes), ~yes)


@dataclass(frozen=True, eq=False)
class Inside:
    """Every column has one of the levels chosen for it: the condition of a structural zero."""

    chosen: Mapping[str, Bools]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the comparison reads."""
        return tuple(self.chosen)

    def rows(self, view: PrivateCodes) -> Bools:
        """Which rows are inside."""
        hits = (levels[view.codes(name)] for name, levels in self.chosen.items())
        return np.asarray(reduce(np.logical_and, hits))

    def truth(self, view: PrivateCodes) -> Truth:
        """Known from the codes alone."""
        inside = self.rows(view)
        return Truth(inside, np.zeros_like(inside), ~inside)


def _compared(left: tuple[Floats, Floats], sign: str, right: tuple[Any, Any]) -> Truth:
    """How values within bounds can compare."""
    (low, high), (least, most) = left, right
    if sign in (">", ">="):
        return _compared(right, {">": "<", ">=": "<="}[sign], left)
    if sign == "<":
        yes, no = low < most, high >= least
    elif sign == "<=":
        yes, no = low <= most, high > least
    else:
        yes = (low <= most) & (least <= high)
        no = ~((low == high) & (least == most) & (low == least))
        yes, no = (yes, no) if sign == "==" else (no, yes)
    yes, no = np.broadcast_arrays(yes, no)
    return Truth(yes, np.zeros_like(yes), no)


Atom = HasLevel | Threshold | Pair | Determined | Inside


@dataclass(frozen=True, eq=False)
class Literal:
    """A comparison, or its opposite."""

    atom: Atom
    negated: bool = False

    def truth(self, view: PrivateCodes) -> Truth:
        """Where it holds."""
        truth = self.atom.truth(view)
        return Truth(truth.no, truth.unknown, truth.yes) if self.negated else truth


@dataclass(frozen=True, eq=False)
class Every:
    """All parts hold."""

    parts: tuple["Formula", ...]

    def truth(self, view: PrivateCodes) -> Truth:
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

    def truth(self, view: PrivateCodes) -> Truth:
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
