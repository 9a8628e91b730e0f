"""Sets of attributes: what a workload covers, and which of its tables no other covers."""

from collections.abc import Iterable, Iterator
from itertools import chain, combinations
from typing import TypeVar

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
    found = {part for attrs in sets for part in subsets(attrs)}
    return sorted(found, key=lambda attrs: (len(attrs), attrs))


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
