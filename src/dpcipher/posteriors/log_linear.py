"""The log-linear model: the log-probability of a cell is a sum of interactions, one for each set of columns that some table holds.

Interactions are written in orthonormal contrasts of every axis, so that no level is a reference, and scaled so that each coefficient is standard
normal a priori (`prior`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from dpcipher.errors import SizeError
from dpcipher.posteriors.halves import Halves
from dpcipher.posteriors.prior import Levels, coefficient_sd, contrasts
from dpcipher.tables.domain import Axes, Bools, Floats, Shape, closure
from dpcipher.tables.query import Groups, Query

# From this mean square of its coefficients on, an interaction is larger than the prior expects, which then widens, so many times at most.
UNEXPECTED, WIDEST = 1.5, 4.0
# Up to this many numbers a product with the design as one matrix is the fastest way; beyond it, by halves.
DENSE = 50_000
# The curvature is a matrix of the coefficients, made from one of cells by coefficients; beyond these it takes minutes.
MOST_COEFFICIENTS, MOST_NUMBERS = 1_000, 6_000_000


Forms = tuple[
    Groups | None, ...
]  # for each column of an interaction None, or the groups in which it has one value


@dataclass(frozen=True)
class LogLinear:
    """All interactions inside `tables` (maximal sets), over the possible cells of columns with these levels.

    An interaction in `forms` has one value in each group of levels of its columns. `wider` holds factors of the prior's scale for interactions
    that are larger than it expects (`widened`). `scores` and `pull` are each other's transpose; both take stacks, one row for each chain.
    """

    levels: tuple[Levels, ...]
    tables: tuple[Axes, ...]
    possible: Bools
    forms: Mapping[Axes, Forms] = field(default_factory=dict)
    wider: Mapping[Axes, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.size > MOST_COEFFICIENTS or self.size * self.cells > MOST_NUMBERS:
            raise SizeError(
                f"the tables of these columns show {self.size:,} interactions over {self.cells:,} cells; the posterior takes at most "
                f"{MOST_COEFFICIENTS:,}, and {MOST_NUMBERS:,} for both multiplied. Name fewer columns, or columns of fewer levels"
            )

    @cached_property
    def shape(self) -> Shape:
        """How many levels every column has."""
        return tuple(levels.size for levels in self.levels)

    @cached_property
    def parts(self) -> tuple[Axes, ...]:
        """The sets of columns that have an interaction; their coefficients follow one another."""
        return tuple(closure(self.tables)[1:])

    @cached_property
    def _scales_of_parts(self) -> list[Floats]:
        return [
            self.wider.get(part, 1.0)
            * coefficient_sd([self.levels[axis] for axis in part], self.forms.get(part))
            for part in self.parts
        ]

    @cached_property
    def scales(self) -> Floats:
        """The scale of every coefficient."""
        return np.concatenate(self._scales_of_parts)

    def widened(self, coefficients: Floats) -> "LogLinear":
        """The model whose prior expects interactions as large as these, where they are far larger than it does; else itself.

        Tables with empty cells have log odds ratios beyond any weak prior. Its scale then follows the data (empirical Bayes), upwards only.
        """
        wider, place = dict(self.wider), 0
        for part, size in zip(self.parts, map(len, self._scales_of_parts), strict=True):
            square = float((coefficients[place : place + size] ** 2).mean()) if size else 0.0
            if square > UNEXPECTED:
                wider[part] = min(self.wider.get(part, 1.0) * square**0.5, WIDEST)
            place += size
        return self if wider == self.wider else replace(self, wider=wider)

    @cached_property
    def size(self) -> int:
        """How many coefficients there are."""
        return sum(
            prod((self.shape[axis] if form is None else form.size) - 1 for axis, form in self._bases(part))
            for part in self.parts
        )

    def _bases(self, part: Axes) -> list[tuple[int, Groups | None]]:
        """The columns of an interaction, each with the groups in which it has one value."""
        return list(zip(part, self.forms.get(part) or (None,) * len(part), strict=True))

    @cached_property
    def cells(self) -> int:
        """How many cells there are, impossible ones included."""
        return prod(self.shape)

    @cached_property
    def _impossible(self) -> NDArray[np.intp]:
        return np.flatnonzero(~self.possible)

    @cached_property
    def is_dense(self) -> bool:
        """Whether the design is small enough to be one matrix."""
        return self.size * self.cells <= DENSE

    @cached_property
    def _halves(self) -> Halves:
        every = list(dict.fromkeys(basis for part in self.parts for basis in self._bases(part)))
        parts = tuple(tuple(every.index(basis) for basis in self._bases(part)) for part in self.parts)
        functions = tuple((axis, contrasts(self.levels[axis], form)) for axis, form in every)
        return Halves.cheapest(parts, functions, self.shape)

    @cached_property
    def design(self) -> Floats:
        """The design as a matrix, cells by coefficients."""
        return np.ascontiguousarray(self._design_t.T)

    @cached_property
    def _design_t(self) -> Floats:
        return self._halves.scores(np.diag(self.scales))

    def scores(self, coefficients: Floats) -> Floats:
        """The unnormalised log-probability of every cell: chains by cells."""
        if self.is_dense:
            return np.asarray(coefficients @ self._design_t)
        return self._halves.scores(coefficients * self.scales)

    def pull(self, slopes: Floats) -> Floats:
        """What slopes by cell (chains by cells) say about each coefficient."""
        if self.is_dense:
            return np.asarray(slopes @ self.design)
        return self._halves.pull(slopes) * self.scales

    def probabilities(self, coefficients: Floats) -> Floats:
        """The probability of every cell, 0 where no row can be: chains by cells."""
        return self.log_partition(coefficients)[1]

    def log_partition(self, coefficients: Floats) -> tuple[Floats, Floats]:
        """The logarithm of the sum over cells of exp(score), and the probabilities."""
        scores = self.scores(coefficients)
        if self._impossible.size:
            scores[:, self._impossible] = -np.inf
        top = scores.max(axis=1, keepdims=True)
        np.subtract(scores, top, out=scores)
        np.exp(scores, out=scores)
        total = scores.sum(axis=1, keepdims=True)
        scores /= total
        return (top + np.log(total))[:, 0], scores

    def information(self, rates: Floats) -> Floats:
        """The information of the coefficients, X'(diag λ - λλ'/n)X, for rates λ by cell."""
        weighted = self.design * rates[:, None]
        mean = weighted.sum(axis=0)
        return np.asarray(self.design.T @ weighted - np.outer(mean, mean) / rates.sum())


def coarse_forms(tables: Sequence[Axes], queries: Sequence[Query]) -> dict[Axes, Forms]:
    """The interactions inside some tables that the queries show in groups of levels alone, each in the finest groups that they tell apart."""
    forms = {}
    for part in closure(tables)[1:]:
        shown = [dict(query.columns) for query in queries]
        finest = tuple(Groups.crossed([one[axis] for one in shown if set(part) <= set(one)]) for axis in part)
        if any(finest):
            forms[part] = finest
    return forms
