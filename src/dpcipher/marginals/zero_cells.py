"""The cells of a table that structural zeros leave no row in."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np

from dpcipher.marginals.arrays import Axes, Bools
from dpcipher.marginals.tables import broadcast_over, dropped

Zero = tuple[Axes, Bools]  # axes, and True where no row can be


def zero_cells(axes: Axes, shape: Sequence[int], zeros: Iterable[Zero]) -> Bools:
    """The cells of the table on `axes` that structural zeros leave no row in.

    >>> zero_cells((0,), (2, 2), [((0, 1), np.array([[True, True], [True, False]]))]).tolist()
    [True, False]
    """
    empty = np.zeros([shape[axis] for axis in axes], dtype=bool)
    for known, mask in _index(_Same(tuple(zeros))).touching(axes):
        empty |= broadcast_over(np.asarray(mask.all(axis=dropped(known, axes))), known, axes)
    return empty


class _Same:
    """Zeros by identity: those of a schema are asked about table after table, and are too large to compare."""

    def __init__(self, zeros: tuple[Zero, ...]) -> None:
        self.zeros = zeros

    def __hash__(self) -> int:
        return id(self.zeros)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.zeros is other.zeros


class _Index:
    """Zeros by their axes. Only those that fill whole lines of their table reach tables that lack some of these axes."""

    def __init__(self, zeros: Iterable[Zero]) -> None:
        self._by_axes: dict[frozenset[int], list[Zero]] = defaultdict(list)
        self._lines: list[Zero] = []
        for known, mask in zeros:
            self._by_axes[frozenset(known)].append((known, mask))
            if any(mask.all(axis=place).any() for place in range(mask.ndim)):
                self._lines.append((known, mask))

    def touching(self, axes: Axes) -> list[Zero]:
        """The zeros that may empty cells of the table on these axes."""
        held = frozenset(axes)
        found = [zero for known in self._inside(held) for zero in self._by_axes[known]]
        return found + [zero for zero in self._lines if not held.issuperset(zero[0])]

    def _inside(self, held: frozenset[int]) -> list[frozenset[int]]:
        longest = min(len(held), max(map(len, self._by_axes), default=0))
        if sum(comb(len(held), size) for size in range(longest + 1)) > len(self._by_axes):
            return [known for known in self._by_axes if known <= held]
        parts = (frozenset(part) for size in range(longest + 1) for part in combinations(held, size))
        return [part for part in parts if part in self._by_axes]


@lru_cache(maxsize=4)
def _index(same: _Same) -> _Index:
    return _Index(same.zeros)
