"""A row that structural zeros allow, or the proof that there is none.

Levels that no allowed cell of some mask supports are struck out until nothing changes (arc consistency, Mackworth 1977); then levels are tried one by
one, striking out after each. Work is bounded, because the question is as hard as any in NP: past the bound nothing is claimed.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from dpcipher.tables.domain import Axes, Bools

MAX_WORK = 2**26  # cells looked at

Levels = dict[int, Bools]


class Contradiction(Exception):
    """No row is possible."""


class _Budget:
    def __init__(self) -> None:
        self.left = MAX_WORK


class _Undecided(Exception):
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
    except _Undecided:
        return None
    if found is None:
        raise Contradiction
    return {axis: int(mask.argmax()) for axis, mask in found.items()}


def _search(levels: Levels, masks: list[tuple[Axes, Bools]], budget: _Budget) -> Levels | None:
    """Depth first, without recursion: the attribute with the fewest levels left goes next."""
    stack = [levels]
    while stack:
        left = _struck_out(stack.pop(), masks, budget)
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


def _struck_out(levels: Levels, masks: list[tuple[Axes, Bools]], budget: _Budget) -> Levels | None:
    """Without the levels that some mask leaves nothing to go with; None where an attribute has none left."""
    levels, changed = dict(levels), set(levels)
    while changed:
        now, changed = changed, set()
        for axes, mask in masks:
            if now.isdisjoint(axes):
                continue
            budget.left -= mask.size
            if budget.left < 0:
                raise _Undecided
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
