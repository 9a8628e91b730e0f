"""The algebra of marginals, against brute force."""

from itertools import combinations, product
from math import prod

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dpcipher.tables.domain import closure, elementary_symmetric, maximal, subsets
from dpcipher.tables.table import broadcast_over, cell_numbers, count_rows, margin

SETS = st.lists(st.sets(st.integers(0, 5), max_size=4).map(lambda axes: tuple(sorted(axes))), max_size=6)


@given(SETS)
def test_closure_and_maximal_sets(sets: list[tuple[int, ...]]) -> None:
    """A set is in the closure where some set holds it, and maximal where no other does."""
    every = [axes for size in range(7) for axes in combinations(range(6), size)]
    assert closure(sets) == [axes for axes in every if any(set(axes) <= set(larger) for larger in sets)]
    expected = {axes for axes in sets if not any(set(axes) < set(larger) for larger in sets)}
    assert maximal(sets) == sorted(expected)


def test_subsets_and_symmetric_sums_are_those_of_a_loop() -> None:
    """Of five numbers, in every order; none of an order that is too high or below zero."""
    numbers = [2, 3, 5, 7, 11]
    assert sorted(map(sum, subsets(tuple(numbers)))) == sorted(
        sum(part) for size in range(6) for part in combinations(numbers, size)
    )
    for order in range(7):
        assert elementary_symmetric(numbers, order) == sum(map(prod, combinations(numbers, order)))
    assert elementary_symmetric([1.0, 2.0], -1) == 0


def test_projection_broadcast_and_counts() -> None:
    """Every margin of counted rows is the count of those columns alone, and lies over the table it came from."""
    shape, rng = (2, 3, 4), np.random.default_rng(1)
    codes = rng.integers(0, shape, (200, 3)).astype(np.int32)
    table = count_rows(codes, (0, 1, 2), shape)
    for cell in product(*map(range, shape)):
        assert table[cell] == (codes == cell).all(axis=1).sum()
    for keep in [(), (1,), (0, 2), (0, 1, 2)]:
        small = margin(table, (0, 1, 2), keep)
        assert np.array_equal(small, count_rows(codes, keep, shape))
        wide = np.broadcast_to(broadcast_over(small, keep, (0, 1, 2)), shape)
        assert wide[1, 2, 3] == small[tuple((1, 2, 3)[axis] for axis in keep)]
    assert np.array_equal(cell_numbers(codes, (2, 0), shape), codes[:, 2] * 2 + codes[:, 0])
