"""Sets of columns by name or number, the array types, and which cells of a table are possible."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, combinations, groupby
from math import comb
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Attrs = tuple[str, ...]  # attributes by name
Axes = tuple[int, ...]  # attributes by number, ascending
Shape = tuple[int, ...]  # how many levels each attribute has

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Codes = NDArray[np.int32]  # rows by columns: the level of each attribute, by number
CodeColumn = NDArray[np.integer[Any]]  # the codes of one attribute, in the narrowest integer that holds them
Bools = NDArray[np.bool_]

Zero = tuple[Axes, Bools]  # axes, and True where no row can be
Name = TypeVar("Name", int, str)
Number = TypeVar("Number", int, float)


def subsets(attrs: tuple[Name, ...]) -> Iterator[tuple[Name, ...]]:
    """Every subset, the empty one first."""
    return chain.from_iterable(combinations(attrs, size) for size in range(len(attrs) + 1))


def closure(sets: Iterable[tuple[Name, ...]]) -> list[tuple[Name, ...]]:
    """Every subset of any of the sets, the empty one included, small sets first.

    >>> closure([(0, 1), (2,)])
    [(), (0,), (1,), (2,), (0, 1)]
    """
    parts = {part for attrs in sets for part in subsets(attrs)}
    return sorted(parts, key=lambda attrs: (len(attrs), attrs))


def maximal(sets: Iterable[tuple[Name, ...]]) -> list[tuple[Name, ...]]:
    """The sets that no other set contains, in lexicographic order.

    >>> maximal([(0,), (0, 1), (2,), (0, 1)])
    [(0, 1), (2,)]
    """
    larger: dict[Name, list[frozenset[Name]]] = defaultdict(list)
    kept: list[tuple[Name, ...]] = []
    for _, alike in groupby(sorted(set(sets), key=len, reverse=True), key=len):
        new = [
            attrs
            for attrs in alike
            if not (any(one.issuperset(attrs) for one in larger[attrs[0]]) if attrs else kept)
        ]
        for attrs in new:
            for attr in attrs:
                larger[attr].append(frozenset(attrs))
        kept += new
    return sorted(kept)


def elementary_symmetric(numbers: Iterable[Number], order: int) -> Number:
    """The sum of the products of all subsets of `order` numbers, by additions alone, so that nothing cancels.

    >>> elementary_symmetric([1, 2, 3], 2)
    11
    """
    sums: list[Number] = [1, *[0] * max(order, 0)]
    for number in numbers:
        for size in range(order, 0, -1):
            sums[size] += number * sums[size - 1]
    return sums[order] if order >= 0 else 0


@lru_cache(maxsize=4096)
def dropped(axes: Axes, keep: Axes) -> Axes:
    """The dimensions of a table on `axes` that its margin on `keep` sums over."""
    return tuple(place for place, axis in enumerate(axes) if axis not in keep)


def zero_cells(axes: Axes, shape: Sequence[int], zeros: Iterable[Zero]) -> Bools:
    """The cells of the table on `axes` that structural zeros leave no row in.

    >>> zero_cells((0,), (2, 2), [((0, 1), np.array([[True, True], [True, False]]))]).tolist()
    [True, False]
    """
    empty = np.zeros([shape[axis] for axis in axes], dtype=bool)
    for known, mask in _index(_Same(tuple(zeros))).touching(axes):
        empty |= _over(np.asarray(mask.all(axis=dropped(known, axes))), known, axes)
    return empty


@dataclass(frozen=True, eq=False)
class Domain:
    """The columns of a table by name, how many levels each has, and the cells that structural zeros leave no row in."""

    names: Attrs
    sizes: Shape
    zeros: tuple[Zero, ...] = ()

    def axes(self, names: Iterable[str]) -> Axes:
        """The numbers of some columns, ascending."""
        return tuple(sorted(self.names.index(name) for name in names))

    def named(self, axes: Axes) -> str:
        """Some columns as a person reads them."""
        return " × ".join(self.names[axis] for axis in axes) or "the number of rows"

    def possible(self, axes: Axes) -> Bools:
        """The cells of a table with every level that a row can be in."""
        return ~zero_cells(axes, self.sizes, self.zeros)


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


def _over(mask: Bools, keep: Axes, axes: Axes) -> Bools:
    sizes = iter(np.shape(mask))
    return np.reshape(mask, [next(sizes) if axis in keep else 1 for axis in axes])
