"""Which sets of parents PrivBayes considers: all that are useful, none that is inside another."""

import math
from collections.abc import Sequence
from itertools import combinations

from dpcipher.marginals.arrays import Axes


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
