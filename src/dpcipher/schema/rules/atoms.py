"""Comparisons whose columns and levels have been found in the schema, and what they read: the codes of rows or cells, or values too."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpcipher.schema.columns import Column
from dpcipher.schema.cut import Cut
from dpcipher.schema.rules.logic import Truth, View
from dpcipher.tables.domain import Bools, Floats

Whole = NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class HasLevel:
    """The level is one of those chosen. `ordered`: they were chosen by order, which says nothing of a missing value."""

    column: str
    chosen: Bools
    ordered: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Its one column."""
        return (self.column,)

    def truth(self, view: View) -> Truth:
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
        """Its one column."""
        return (self.column,)

    def truth(self, view: View) -> Truth:
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
        """Both."""
        return (self.left, self.right)

    def truth(self, view: View) -> Truth:
        """Known where the bins do not overlap."""
        truth = _compared(self._bounds(view, self.left), self.sign, self._bounds(view, self.right))
        missing = view.missing(self.left) | view.missing(self.right)
        return Truth(truth.yes & ~missing, missing, truth.no & ~missing)

    def _bounds(self, view: View, column: str) -> tuple[Floats, Floats]:
        if column not in self.ranks:
            return view.reach(column)
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
        """Both."""
        return (self.left, self.right)

    def truth(self, view: View) -> Truth:
        """Known from the codes alone."""
        left, right = view.codes(self.left), view.codes(self.right)
        number = left.astype(np.int64) * self.width + right
        place = np.minimum(np.searchsorted(self.pairs, number), max(len(self.pairs) - 1, 0))
        yes = ~self.mapped[left] | (self.pairs[place] == number)
        return Truth(yes, np.zeros_like(yes), ~yes)


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


@dataclass(frozen=True, eq=False)
class Coded:
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

    def reach(self, column: str) -> tuple[Floats, Floats]:
        """The ends of all values that the bin has taken in: an end bin of `other: nearest` goes on without end."""
        (low, high), own = self.bounds(column), self.columns[column]
        if own.other != "nearest" or not isinstance(own, Cut):
            return low, high
        codes = self.by_column[column]
        return np.where(codes == 0, -np.inf, low), np.where(codes == own.domain.n_bins - 1, np.inf, high)


@dataclass(frozen=True, eq=False)
class Drawn(Coded):
    """Rows that are drawn from codes: a value will lie within its bin, even within an end bin of `other: nearest`."""

    def reach(self, column: str) -> tuple[Floats, Floats]:
        """The ends of the bin."""
        return self.bounds(column)


@dataclass(frozen=True, eq=False)
class Valued(Drawn):
    """Rows whose values are known too."""

    table: pa.Table

    def bounds(self, column: str) -> tuple[Floats, Floats]:
        """The value itself."""
        own = self.columns[column]
        assert isinstance(own, Cut)
        numbers = own.scale.read(self.table.column(column).combine_chunks())
        return numbers, numbers
