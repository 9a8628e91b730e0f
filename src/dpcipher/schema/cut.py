"""Columns whose range is cut into bins: integers, numbers, dates and times of day."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any

import numpy as np
import pyarrow as pa

from dpcipher.errors import SchemaError, SizeError
from dpcipher.files.codec import Rule
from dpcipher.schema.bins import MAX_BINS, Bins
from dpcipher.schema.columns import Column
from dpcipher.schema.scale import MAX_DECIMALS, SCALES, Grid, Scale, declared_grid, default_grid
from dpcipher.tables.domain import Codes, Floats

AUTO = "auto"

_Bins = Annotated[
    int | None,
    Rule(
        "must be a whole number from 1 up, or auto; try bins: 10, or bins: auto to find them privately",
        lambda bins: bins is None or bins >= 1,
    ),
]


@dataclass(frozen=True, kw_only=True)
class Cut(Column):
    """A column on a line, with bins that are declared or to be found, and values that come back on its grid.

    Values are multiples of `step` (of a time of day '00:01', '00:15'), or numbers of so many `decimals`; without either whole numbers, days, seconds, or
    as many decimals as the edges and the narrowest bin warrant. Each of the `special` values (a top code, zero, -1 for never) is a level of its own.
    """

    edges: tuple[Any, ...] | None = None
    min: Any = None
    max: Any = None
    step: Annotated[
        Any,
        Rule(
            "must be a value such as 10 or '00:15'", lambda step: isinstance(step, str | int | float | None)
        ),
    ] = None
    decimals: Annotated[
        int | None,
        Rule(
            f"must be a whole number from 0 to {MAX_DECIMALS}",
            lambda places: places is None or 0 <= places <= MAX_DECIMALS,
        ),
    ] = None
    special: tuple[Any, ...] = ()

    @property
    def scale(self) -> Scale:
        """What its numbers are."""
        return SCALES[self.kind]

    @cached_property
    def domain(self) -> Bins:
        """The bins and special values, without the levels for what is missing."""
        edges, grid = self._edges()
        special = tuple(self.scale.parse(value, "special") for value in self.special)
        if self.step is not None or self.decimals is not None:
            grid = declared_grid(self.scale, self.step, self.decimals, (edges[0], edges[-1], *special))
        never_drawn = self.missing_codes.numbers(dates=self.kind == "date")
        return Bins(self.scale, edges, special, grid, never_drawn)

    def _edges(self) -> tuple[range | tuple[float, ...], Grid | None]:
        """The edges of the bins, the last one an edge too: of whole numbers, one past the last; and the grid that they suggest."""
        raise NotImplementedError

    @property
    def ordered_levels(self) -> int:
        """The bins; special values have no place in their order."""
        return self.domain.n_bins

    @property
    def draws_values(self) -> bool:
        """Whether there are bins of several values."""
        return not isinstance(self.domain.edges, range)

    def holds(self, number: float) -> bool:
        """Whether some row can have this number, day or second. A grid that the column does not declare, but its edges suggest, rules nothing out.

        Where `other: nearest` puts a private value from outside into an end bin, it comes back from inside that bin: no row is ever written with it.
        """
        bins = self.domain
        if number in bins.special:
            return True
        if not bins.edges[0] <= number <= bins.last:
            return False
        grid = None if self.step is None and self.decimals is None else bins.grid
        return grid is None or bool(grid.values(grid.places(np.array([number])))[0] == number)

    def describe_values(self) -> str:
        """All values in words.

        >>> Number("pay", edges=[0, 10, 50], decimals=2, special=[-1], missing_values=["N"]).describe_values()
        'numbers from 0 to 50 of at most 2 decimals, -1, and for what is missing N'
        """
        bins, text = self.domain, self.scale.text
        step = self.step if isinstance(self.step, str | None) else f"{self.step:.12g}"
        noun = self.scale.noun if step is None else f"multiples of {step}"
        decimals = "" if self.decimals is None else f" of at most {self.decimals} decimals"
        codes = ", ".join(self.missing_codes.texts)
        parts = [
            f"{noun} from {text(bins.edges[0])} to {text(bins.last)}{decimals}",
            *map(text, bins.special),
        ]
        return ", ".join([*parts, *([f"and for what is missing {codes}"] if codes else [])])

    def codes_of_declared(self, cells: pa.Array) -> Codes:
        """The code of each cell whose value is in a bin, or special."""
        return self.domain.codes(self.scale.read(cells))

    def _codes(self, cells: pa.Array) -> Codes:
        return self.domain.codes(self.scale.read(cells), nearest=self.other == "nearest")

    def _values(
        self,
        codes: Codes,
        rng: np.random.Generator,
        masses: Floats | None,
        within: tuple[float, float] | None,
    ) -> pa.Array:
        return self.domain.draw(codes, rng, masses=masses, within=within)

    def _code_of_name(self, value: object) -> int | None:
        # The labels of bins of one value each are their values.
        return None if isinstance(self.domain.edges, range) else super()._code_of_name(value)

    def _code_called(self, value: str) -> int | None:
        code, bins = self.find_value(value), self.domain
        if code is None or code >= bins.size or isinstance(bins.edges, range):
            return code
        return code if value == self.labels[code] else None

    def _code_of_other(self) -> int | None:
        """The kind of missing that has the code which the column declares."""
        try:
            kind = int(self.missing_codes.codes(pa.array([self.other]))[0])
        except (pa.ArrowException, OverflowError):  # a number that no cell can hold
            return None
        return None if kind < 0 else self.domain.size + kind

    def _rule_of_other(self) -> str:
        return "refuse or nearest here, or missing beside missing: level, or one of missing_values"


@dataclass(frozen=True, kw_only=True)
class ClosedCut(Cut):
    """Bins by their `edges`, or `min` and `max` with so many `bins` of equal width; without bins there is one for each whole number, day or second.

    The last bin holds its right edge too (`edges=[0, 10, 20]` are [0, 10) and [10, 20]), and `min` and `max` are both inside.
    """

    bins: _Bins = None

    forms = (frozenset({"edges"}), frozenset({"min", "max"}), frozenset({"min", "max", "bins"}))

    def _check(self) -> None:
        if AUTO in (self.min, self.max):
            raise SchemaError(
                "a min or max that is auto needs bins: auto; try {min: auto, max: auto, bins: auto}"
            )
        super()._check()

    def _edges(self) -> tuple[range | tuple[float, ...], Grid | None]:
        return self._from_range() if self.edges is None else self._from_edges(self.edges)

    def _from_edges(self, edges: Sequence[Any]) -> tuple[tuple[float, ...], Grid | None]:
        """The last bin also holds the last edge, and may hold that one whole number alone."""
        whole, points = self.scale.whole, tuple(self.scale.parse(edge, "edges") for edge in edges)
        if whole and len(points) > 1:
            points = (*points[:-1], points[-1] + 1)
        if len(points) < 2 or any(low >= high for low, high in pairwise(points)):
            raise SchemaError("edges must be two or more increasing values; try edges: [0, 18, 65, 120]")
        return points, None if whole else default_grid(points, points)

    def _from_range(self) -> tuple[range | tuple[float, ...], Grid | None]:
        whole, bins = self.scale.whole, self.bins
        first, last = self.scale.parse(self.min, "min"), self.scale.parse(self.max, "max")
        if first > last or (not whole and first == last):
            raise SchemaError(
                f"min ({self.min}) must be below max ({self.max}); swap them or widen the range"
            )
        if bins is None and not whole:
            raise SchemaError("a number column must say its bins; add bins: 10, or edges: [...]")
        if bins is None:
            return range(int(first), int(last) + 2), None
        if bins > MAX_BINS:
            raise SizeError(f"bins ({bins!r:.60}) must be at most {MAX_BINS}; use wider bins")
        if not whole:
            edges = tuple(float(edge) for edge in np.linspace(first, last, bins + 1))
            return edges, default_grid((first, last), edges)
        start, width = int(first), int(last) - int(first) + 1
        if bins > width:
            raise SchemaError(
                f"bins ({bins}) must not exceed the {width} values from min to max; leave bins out"
            )
        return tuple(start + i * width // bins for i in range(bins + 1)), None


class Integer(ClosedCut):
    """Whole numbers.

    >>> Integer("age", min=0, max=99, bins=10).labels[:2]
    ('0..9', '10..19')
    """


class Number(ClosedCut):
    """Numbers."""


class Date(ClosedCut):
    """Days; the time of a day is dropped."""


class Time(ClosedCut):
    """Times of day, to the second."""
