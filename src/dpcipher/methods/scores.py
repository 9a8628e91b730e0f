"""Which parents a column may have, and how strongly they depend on one another, with sensitivities proved for either unit.

A table here has one row for each level of X and one column for each combination of its parents. Scores are whole numbers in units of
1/GRID, so that the exponential mechanism and its proof see the same numbers. The formulas are those of PrivBayes
(Zhang, Cormode, Procopiuc, Srivastava and Xiao 2017, section 4) times the number of rows; dividing by it, as the source does, would
need a public number of rows.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np

from dpcipher.errors import BudgetError
from dpcipher.marginals.arrays import Axes, Counts
from dpcipher.privacy.unit import Unit

GRID = 1024
# Above this the exact products of counts leave int64.
_SAFE_ROWS = 2**30


def dependence(table: Counts) -> int:
    """n·R = ½ Σ |c(x,π) − c(x)c(π)/n|: the distance from independence, in rows.

    One row more changes the table of differences by n/(n+1)·(e−p)⊗(f−q), where p and q are the margins and e, f the new row's
    indicators; its L1 norm is below 2·2, so the score moves by less than 2.
    """
    n_rows = int(table.sum())
    if n_rows == 0:
        return 0
    exact = table.astype(object) if n_rows >= _SAFE_ROWS else table
    twice = np.abs(n_rows * exact - exact.sum(axis=1, keepdims=True) * exact.sum(axis=0, keepdims=True)).sum()
    return int(twice) * GRID // (2 * n_rows)


def information(table: Counts) -> int:
    """n·I(X;Π) in bits: n times the mutual information."""
    parts = (
        _entropy_sum(table),
        _entropy_sum(table.sum(axis=1)),
        _entropy_sum(table.sum(axis=0)),
        _entropy_sum(table.sum()),
    )
    return math.floor(GRID * (parts[0] - parts[1] - parts[2] + parts[3]))


def coverage(table: Counts) -> int:
    """n·F for an X of at most two levels: minus the L1 distance, in rows, to the nearest distribution of maximal information; twice a whole number of halves.

    F = −min([½−a]₊ + [½−b]₊) over all ways to give every π to level 0 or to level 1, with a and b the probabilities so
    covered (PrivBayes, section 4.3); `best[a]` holds the largest b for each a.
    """
    n_rows = int(table.sum())
    best = np.full(n_rows + 1, -1, dtype=np.int64)
    best[0] = 0
    # A column of one level has no second one to give anything to.
    for zero, one in zip(table[0], table[1:].sum(axis=0), strict=True):
        if zero or one:
            best = _give(best, int(zero), int(one))
    reached = np.flatnonzero(best >= 0)
    short = np.maximum(n_rows - 2 * reached, 0) + np.maximum(n_rows - 2 * best[reached], 0)
    return -int(short.min()) * GRID // 2


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


def _entropy_sum(counts: Counts) -> float:
    """Σ c·log2(c)."""
    seen = np.asarray(counts)[np.asarray(counts) > 0].astype(np.float64)
    return float((seen * np.log2(seen)).sum())


def _give(best: Counts, zero: int, one: int) -> Counts:
    """Give one π to level 0 (a grows by `zero`) or to level 1 (b grows by `one`)."""
    to_one = np.where(best >= 0, best + one, -1)
    to_zero = np.full_like(best, -1)
    to_zero[zero:] = best[: len(best) - zero]
    return np.maximum(to_one, to_zero)


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
