"""What follows from structural zeros: zeros of other pairs of columns, and whether any row is possible at all.

`AGEP < 15 -> PINCP == N`, `AGEP >= 15 -> PINCP != N` and the same for MSP leave no row with one N alone, although no rule names PINCP and MSP together. A cell of a
pair is impossible where no level of a third column goes with both (path consistency: Montanari 1974, doi.org/10.1016/0020-0255(74)90008-5). Tables then share what they
know about one condition, and rows that are drawn column by column do not run into dead ends.

A possible row is searched for: levels that no allowed cell of some mask supports are struck out until nothing changes (arc consistency, Mackworth 1977);
then levels are tried one by one, striking out after each. Work is bounded, because the question is as hard as any in NP: past the bound nothing is claimed.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpcipher.tables.domain import Axes, Bools

MOST_CELLS = 2**24  # of all pairs together
MOST_WORK = 2**30  # multiplications; what is not found within them is left to whoever draws rows
MAX_SEARCHED = 2**26  # cells looked at in search of a row

Zeros = Iterable[tuple[Axes, Bools]]
Possible = dict[Axes, NDArray[np.float32]]  # 1 where a pair can have rows, else 0
Levels = dict[int, Bools]


def implied_zeros(zeros: Zeros, shape: Sequence[int]) -> list[tuple[Axes, Bools]]:
    """Pairs with cells that zeros of other pairs leave no row in, beyond those that are declared: axes, and all cells that are impossible.

    >>> child_has_n = np.array([[True, False], [False, True]])  # impossible: a child without N, an adult with it
    >>> [(axes, mask.tolist()) for axes, mask in implied_zeros([((0, 1), child_has_n), ((0, 2), child_has_n)], (2, 2, 2))]
    [((1, 2), [[False, True], [True, False]])]
    """
    possible = _declared(zeros)
    n_possible = {pair: int(np.count_nonzero(table)) for pair, table in possible.items()}
    cells = work = 0
    changed = True
    while changed:
        changed = False
        for left, middle, right in _paths(possible):
            size = shape[left] * shape[right]
            is_new = (left, right) not in possible
            cells, work = cells + size * is_new, work + size * shape[middle]
            if cells > MOST_CELLS or work > MOST_WORK:
                return _tightened_pairs(possible, n_possible)
            through = _oriented(possible, left, middle) @ _oriented(possible, middle, right) > 0
            before = np.ones_like(through) if is_new else possible[left, right] > 0
            if (before & ~through).any():
                possible[left, right] = (before & through).astype(np.float32)
                changed = True
            elif is_new:
                cells -= size
    return _tightened_pairs(possible, n_possible)


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


def _tightened_pairs(possible: Possible, n_possible: dict[Axes, int]) -> list[tuple[Axes, Bools]]:
    """The pairs that have fewer possible cells than were declared."""
    return [
        (pair, table == 0)
        for pair, table in possible.items()
        if pair not in n_possible or np.count_nonzero(table) < n_possible[pair]
    ]


class Contradiction(Exception):
    """No row is possible."""


class _Budget:
    def __init__(self) -> None:
        self.left = MAX_SEARCHED


class _WorkLimitReached(Exception):
    """The work is used up."""


def find_row(
    shape: Sequence[int], masks: Iterable[tuple[Axes, Bools]], allowed: Mapping[int, Bools] | None = None
) -> dict[int, int] | None:
    """A level for every attribute that a mask touches, None where that takes too much work; a `Contradiction` where there is none."""
    masks = sorted(masks, key=lambda item: item[1].size)
    touched = {axis for axes, _ in masks for axis in axes}
    levels = {axis: np.ones(shape[axis], dtype=np.bool_) for axis in touched}
    for axis, mask in (allowed or {}).items():
        if axis in levels:
            levels[axis] = levels[axis] & mask
    budget = _Budget()
    try:
        found = _search(levels, masks, budget)
    except _WorkLimitReached:
        return None
    if found is None:
        raise Contradiction
    return {axis: int(mask.argmax()) for axis, mask in found.items()}


def _search(levels: Levels, masks: list[tuple[Axes, Bools]], budget: _Budget) -> Levels | None:
    """Depth first, without recursion: the attribute with the fewest levels left goes next."""
    stack = [levels]
    while stack:
        left = _propagate(stack.pop(), masks, budget)
        if left is None:
            continue
        several = {axis: count for axis, mask in left.items() if (count := int(np.count_nonzero(mask))) > 1}
        if not several:
            return left
        axis = min(several, key=lambda one: (several[one], one))
        level = int(left[axis].argmax())
        only = np.zeros_like(left[axis])
        only[level] = True
        stack.append({**left, axis: left[axis] & ~only})
        stack.append({**left, axis: only})
    return None


def _propagate(levels: Levels, masks: list[tuple[Axes, Bools]], budget: _Budget) -> Levels | None:
    """Without the levels that some mask leaves nothing to go with; None where an attribute has none left."""
    levels, changed = dict(levels), set(levels)
    while changed:
        now, changed = changed, set()
        for axes, mask in masks:
            if now.isdisjoint(axes):
                continue
            budget.left -= mask.size
            if budget.left < 0:
                raise _WorkLimitReached
            possible = ~mask[np.ix_(*(levels[axis] for axis in axes))]
            for place, axis in enumerate(axes):
                kept = possible.any(axis=tuple(other for other in range(len(axes)) if other != place))
                if not kept.any():
                    return None
                if not kept.all():
                    smaller = np.zeros_like(levels[axis])
                    smaller[np.flatnonzero(levels[axis])[kept]] = True
                    levels[axis] = smaller
                    changed.add(axis)
                    possible = np.compress(kept, possible, axis=place)
    return levels
