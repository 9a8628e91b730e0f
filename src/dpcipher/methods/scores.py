"""Which parents a column may have, and how strongly they depend on one another, with sensitivities proved for either unit.

A table here has one row for each level of X and one column for each combination of its parents; scores take many of them at once, stacked along the
first axes. They are whole numbers in units of 1/GRID, so that the exponential mechanism and its proof see the same numbers. The formulas are those of PrivBayes
(Zhang, Cormode, Procopiuc, Srivastava and Xiao 2017, section 4) times the number of rows; dividing by it, as the source does, would
need a public number of rows.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np

from dpcipher.errors import BudgetError
from dpcipher.privacy.terms import Unit
from dpcipher.request.session import Choice, TrueCounts
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Axes, Counts, Floats

Pair = tuple[int, Axes]  # a column and its parents

GRID = 1024
# Above this the exact products of counts leave int64.
_SAFE_ROWS = 2**30
# Tables are scored together up to so many cells.
_STACK_CELLS = 2**18
# So few pairs of covered counts are not worth sorting.
_FEW_PAIRS = 128


def dependence(tables: Counts) -> Counts:
    """n·R = ½ Σ |c(x,π) − c(x)c(π)/n| of every table: the distance from independence, in rows.

    One row more changes the table of differences by n/(n+1)·(e−p)⊗(f−q), where p and q are the margins and e, f the new row's
    indicators; its L1 norm is below 2·2, so the score moves by less than 2.
    """
    exact = tables.astype(object) if tables.sum(axis=(-2, -1)).max() >= _SAFE_ROWS else tables
    n_rows = exact.sum(axis=(-2, -1), keepdims=True)
    outer = exact.sum(axis=-1, keepdims=True) * exact.sum(axis=-2, keepdims=True)
    twice = np.abs(n_rows * exact - outer).sum(axis=(-2, -1))
    double = 2 * np.maximum(n_rows[..., 0, 0], 1)
    # Whole rows and the rest apart: times GRID, both together could leave int64.
    return np.asarray(twice // double * GRID + twice % double * GRID // double, dtype=np.int64)


def information(tables: Counts) -> Counts:
    """n·I(X;Π) of every table in bits: n times the mutual information."""
    parts = (
        _entropy_sum(tables, (-2, -1)),
        _entropy_sum(tables.sum(axis=-1), -1),
        _entropy_sum(tables.sum(axis=-2), -1),
        _entropy_sum(tables.sum(axis=(-2, -1))[..., None], -1),
    )
    return np.asarray(np.floor(GRID * (parts[0] - parts[1] - parts[2] + parts[3])), dtype=np.int64)


def coverage(tables: Counts) -> Counts:
    """n·F of every table for an X of at most two levels: minus the L1 distance, in rows, to the nearest distribution of maximal information.

    F = −min([½−a]₊ + [½−b]₊) over all ways to give every π to level 0 or to level 1, with a and b the probabilities so
    covered (PrivBayes, section 4.3).
    """
    # A column of one level has no second one to give anything to.
    zeros, ones = tables[..., 0, :], tables[..., 1:, :].sum(axis=-2)
    flat = zip(*(side.reshape(-1, tables.shape[-1]) for side in (zeros, ones)), strict=True)
    return np.array([_covered(*sides) for sides in flat], dtype=np.int64).reshape(tables.shape[:-2])


SCORES = {"R": dependence, "I": information, "F": coverage}


@dataclass(frozen=True)
class PairScores(Choice):
    """The scores of columns with their parents, by which the exponential mechanism chooses; the bounds are those of `sensitivity`."""

    name: str
    candidates: Sequence[Pair]
    score: str
    n_rows: int | None  # where it is public
    binary: bool = False

    def words(self, schema: Schema) -> str:
        """What is chosen."""
        return self.name

    @property
    def n_candidates(self) -> int:
        """A column with its parents each."""
        return len(self.candidates)

    def sensitivity(self, unit: Unit) -> int:
        """By the score."""
        return sensitivity(self.score, unit, self.n_rows, binary=self.binary)

    def of(self, counts: TrueCounts) -> Counts:
        """In units of 1/GRID."""
        return pair_scores(counts, self.candidates, self.score)


def pair_scores(truth: TrueCounts, candidates: Sequence[Pair], score: str) -> Counts:
    """The score of every column with its parents: each table is counted once, and those of one shape are scored many at a time."""
    places: dict[Axes, list[int]] = {}
    for place, (axis, parents) in enumerate(candidates):
        places.setdefault(tuple(sorted((axis, *parents))), []).append(place)
    found = np.empty(len(candidates), dtype=np.int64)
    waiting: dict[tuple[int, ...], dict[int, Counts]] = {}
    for axes, counts in zip(places, truth.many(list(places)), strict=True):
        for place in places[axes]:
            own = axes.index(candidates[place][0])
            table = np.moveaxis(counts, own, 0).reshape(counts.shape[own], -1)
            stack = waiting.setdefault(table.shape, {})
            stack[place] = table
            if len(stack) * table.size >= _STACK_CELLS:
                _score(waiting.pop(table.shape), score, found)
    for stack in waiting.values():
        _score(stack, score, found)
    return found


def _score(stack: Mapping[int, Counts], score: str, found: Counts) -> None:
    """The scores of tables of one shape, put in their places."""
    found[list(stack)] = SCORES[score](np.stack(list(stack.values())))


def sensitivity(score: str, unit: Unit, n_rows: int | None, *, binary: bool = False) -> int:
    """How far one person moves a score, in units of 1/GRID, rounded up.

    R: below 2 for a row added or removed (see `dependence`), 3 + 2/n for one replaced (the source's bound) and never above twice 2. F: 1 for
    either: n/2 moves by ½ in both terms, a or b by at most 1 in one of them. I: grows with log n, so it needs a public
    number of rows; the source's bounds, for a `binary` X or Π and for others. Persons with k rows are k such steps.
    """
    if score == "F":
        return GRID * unit.max_rows
    if score == "R":
        return math.ceil(GRID * unit.max_rows * _dependence_step(unit, n_rows))
    if n_rows is None:
        raise BudgetError(
            "score ('I') has no bounded sensitivity while the number of rows is private; try score='R', or unit='replace'"
        )
    # One more unit for the floats behind the logarithms: they and the rounding down differ by less than that.
    return math.ceil(GRID * unit.max_rows * _information_step(max(n_rows, 2), binary)) + 1


def _dependence_step(unit: Unit, n_rows: int | None) -> Fraction:
    if unit.relation == "add-remove":
        return Fraction(2)
    return min(Fraction(4), 3 + Fraction(2, max(1, n_rows or 1)))


def _information_step(n: int, binary: bool) -> float:
    """PrivBayes, lemma 4.1, times n."""
    if binary:
        return math.log2(n) + (n - 1) * math.log2(n / (n - 1))
    return 2 * math.log2((n + 1) / 2) + (n - 1) * math.log2((n + 1) / (n - 1))


def _entropy_sum(counts: Counts, axis: int | tuple[int, int]) -> Floats:
    """Σ c·log2(c)."""
    real = counts.astype(np.float64)
    return np.asarray((real * np.log2(np.maximum(real, 1.0))).sum(axis=axis))


def _covered(zeros: Counts, ones: Counts) -> int:
    """n·F of one table from the counts of either level, by dynamic programming over the pairs (a, b) that no other one exceeds in both."""
    n_rows = int(zeros.sum() + ones.sum())
    contested = (zeros > 0) & (ones > 0)
    a, b = zeros[ones == 0].sum(keepdims=True), ones[zeros == 0].sum(keepdims=True)
    for zero, one in zip(zeros[contested], ones[contested], strict=True):
        a, b = np.concatenate((a + zero, a)), np.concatenate((b, b + one))
        if len(a) > _FEW_PAIRS:
            a, b = _undominated(a, b)
    short = np.maximum(n_rows - 2 * a, 0) + np.maximum(n_rows - 2 * b, 0)
    return -int(short.min()) * GRID // 2


def _undominated(a: Counts, b: Counts) -> tuple[Counts, Counts]:
    """The pairs without those that one before them, in falling order of a, equals or exceeds in b too."""
    order = np.argsort(-a)
    a, b = a[order], b[order]
    more = b[1:] > np.maximum.accumulate(b)[:-1]
    kept = np.concatenate(([True], more))
    return a[kept], b[kept]


def maximal_parents(earlier: Sequence[int], shape: Sequence[int], cells: float, most: int) -> list[Axes]:
    """The sets of at most `most` earlier columns with at most `cells` cells together that cannot take another one.

    PrivBayes 2017, algorithm 5 (MaximalParentSets), with a limit on the number of parents.
    """
    fitting = [
        set_
        for size in range(min(most, len(earlier)) + 1)
        for set_ in combinations(earlier, size)
        if math.prod(shape[axis] for axis in set_) <= cells
    ]
    known = set(fitting)
    return [
        set_
        for set_ in fitting
        if not any(tuple(sorted((*set_, axis))) in known for axis in earlier if axis not in set_)
    ]


def degree_within(columns: int, candidates: int) -> int:
    """The most parents such that no step of the greedy search has more than so many candidates."""
    degree = 0
    while degree < columns - 1 and _most_candidates(columns, degree + 1) <= candidates:
        degree += 1
    return degree


def _most_candidates(columns: int, degree: int) -> int:
    """The largest number of (X, parents) pairs in any step, counting every set up to that size."""
    return max(
        (columns - chosen) * sum(math.comb(chosen, size) for size in range(degree + 1))
        for chosen in range(1, columns)
    )
