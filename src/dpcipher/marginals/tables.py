"""Sets of attributes and tables over them: closure, maximal sets, projection, broadcasting, and the counts of coded rows."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, combinations
from math import prod
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpcipher.marginals.arrays import Axes, Codes, Counts

Name = TypeVar("Name", int, str)
Number = TypeVar("Number", int, float)
Cell = TypeVar("Cell", bound=np.generic)
Item = TypeVar("Item")

PART = 50_000  # numbers in the array of some tables of one shape: it stays in the processor's cache


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
    holding: dict[Name, list[frozenset[Name]]] = {}
    kept: list[tuple[Name, ...]] = []
    for attrs in sorted(set(sets), key=len, reverse=True):
        if any(larger.issuperset(attrs) for larger in holding.get(attrs[0], ())) if attrs else kept:
            continue
        kept.append(attrs)
        for attr in attrs:
            holding.setdefault(attr, []).append(frozenset(attrs))
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


def margin(table: NDArray[Cell], axes: Axes, keep: Axes) -> NDArray[Cell]:
    """The projection of a table on `axes` to `keep`; the table itself where nothing is summed."""
    drop = dropped(axes, keep)
    return np.asarray(table.sum(axis=drop)) if drop else table


def broadcast_over(table: NDArray[Cell], keep: Axes, axes: Sequence[int]) -> NDArray[Cell]:
    """A table on `keep`, shaped to broadcast over one on `axes`."""
    sizes = iter(table.shape)
    return table.reshape([next(sizes) if axis in keep else 1 for axis in axes])


def alike(
    items: Iterable[Item], kind: Callable[[Item], Hashable], numbers: Callable[[Item], int]
) -> Iterator[list[Item]]:
    """The items of one kind after those of another, in parts of few numbers; `numbers` says how many an item has.

    What is done to many small tables at once is done much faster.
    """
    kinds: dict[Hashable, list[Item]] = defaultdict(list)
    for item in items:
        kinds[kind(item)].append(item)
    for group in kinds.values():
        step = max(1, PART // max(1, numbers(group[0])))
        yield from (group[start : start + step] for start in range(0, len(group), step))


def stacked(tables: Mapping[Axes, NDArray[Cell]]) -> Iterator[tuple[list[Axes], NDArray[Cell]]]:
    """The tables of one shape after those of another, each time some of them as one array."""
    for sets in alike(tables, lambda axes: tables[axes].shape, lambda axes: tables[axes].size):
        yield sets, np.stack([tables[axes] for axes in sets])


def cell_numbers(codes: Codes, axes: Axes, shape: Sequence[int]) -> Counts:
    """The number of the cell on `axes` that each coded row falls in, in row-major order."""
    number = np.zeros(len(codes), dtype=np.int64)
    for axis in axes:
        number = number * shape[axis] + codes[:, axis]
    return number


def count_rows(codes: Codes, axes: Axes, shape: Sequence[int]) -> Counts:
    """The counts of coded rows in the table on `axes`."""
    sizes = [shape[axis] for axis in axes]
    return np.bincount(cell_numbers(codes, axes, shape), minlength=prod(sizes)).reshape(sizes)
