"""Structural zeros that follow from others: two columns that a third one ties to the same condition.

`AGEP < 15 -> PINCP == N`, `AGEP >= 15 -> PINCP != N` and the same for MSP leave no row with one N alone, although no rule names PINCP and MSP together. A cell of a
pair is impossible where no level of a third column goes with both (path consistency: Montanari 1974, doi.org/10.1016/0020-0255(74)90008-5). Tables then share what they
know about one condition, and rows that are drawn column by column do not run into dead ends.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpcipher.tables.domain import Axes, Bools

if TYPE_CHECKING:
    from dpcipher.schema.schema import Schema

MOST_CELLS = 2**24  # of all pairs together
MOST_WORK = 2**30  # multiplications; what is not found within them is left to whoever draws rows

Zeros = Iterable[tuple[Axes, Bools]]
Possible = dict[Axes, NDArray[np.float32]]  # 1 where a pair can have rows, else 0


def zero_masks(schema: "Schema") -> tuple[tuple[Axes, Bools], ...]:
    """The structural zeros of a schema, what its rules make of them, and what follows from both."""
    declared = (*(zero.mask(schema) for zero in schema.zeros), *schema.compiled.masks.items())
    return (*declared, *implied_zeros(declared, schema.shape))


def implied_zeros(zeros: Zeros, shape: Sequence[int]) -> list[tuple[Axes, Bools]]:
    """Pairs with cells that zeros of other pairs leave no row in, beyond those that are declared: axes, and all cells that are impossible.

    >>> child_has_n = np.array([[True, False], [False, True]])  # impossible: a child without N, an adult with it
    >>> [(axes, mask.tolist()) for axes, mask in implied_zeros([((0, 1), child_has_n), ((0, 2), child_has_n)], (2, 2, 2))]
    [((1, 2), [[False, True], [True, False]])]
    """
    possible = _declared(zeros)
    known = {pair: int(np.count_nonzero(table)) for pair, table in possible.items()}
    cells = work = 0
    news = True
    while news:
        news = False
        for left, middle, right in _paths(possible):
            size = shape[left] * shape[right]
            fresh = (left, right) not in possible
            cells, work = cells + size * fresh, work + size * shape[middle]
            if cells > MOST_CELLS or work > MOST_WORK:
                return _found(possible, known)
            through = _oriented(possible, left, middle) @ _oriented(possible, middle, right) > 0
            before = np.ones_like(through) if fresh else possible[left, right] > 0
            if (before & ~through).any():
                possible[left, right] = (before & through).astype(np.float32)
                news = True
            elif fresh:
                cells -= size
    return _found(possible, known)


def _declared(zeros: Zeros) -> Possible:
    """What is declared about pairs; axes are in order."""
    possible: Possible = {}
    for axes, mask in zeros:
        if len(axes) == 2:
            before = possible.get(axes)
            possible[axes] = (~mask).astype(np.float32) if before is None else before * ~mask
    return possible


def _paths(possible: Iterable[Axes]) -> list[tuple[int, int, int]]:
    """Every two attributes that a third one is tied to, with that third one in the middle."""
    tied: dict[int, set[int]] = defaultdict(set)
    for left, right in possible:
        tied[left].add(right)
        tied[right].add(left)
    return [
        (left, middle, right)
        for middle in sorted(tied, key=lambda axis: (-len(tied[axis]), axis))
        for left, right in combinations(sorted(tied[middle]), 2)
    ]


def _oriented(possible: Possible, row: int, column: int) -> NDArray[np.float32]:
    return possible[row, column] if row < column else possible[column, row].T


def _found(possible: Possible, known: dict[Axes, int]) -> list[tuple[Axes, Bools]]:
    """The pairs that have fewer possible cells than were declared."""
    return [
        (pair, table == 0)
        for pair, table in possible.items()
        if pair not in known or np.count_nonzero(table) < known[pair]
    ]
