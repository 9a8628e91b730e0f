"""Margins and their transpose by shared steps, against one sum for each table."""

import numpy as np
import pytest

from dpcipher.posteriors.nested import Nested

SHAPE = (2, 3, 4, 2)
ZOO = {
    "pairs": [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)],
    "chain": [(0, 1), (1, 2), (2, 3)],
    "the same twice": [(1, 2), (1, 2), (0,)],
    "everything": [(0, 1, 2, 3), (2,)],
    "a total": [(), (0, 1, 3)],
    "one": [(1, 3)],
}


@pytest.mark.parametrize("wanted", ZOO.values(), ids=ZOO)
def test_shared_steps_are_plain_sums_and_their_transpose(wanted: list[tuple[int, ...]]) -> None:
    """Every table is the sum over the axes that it lacks; spreading is the transpose, into an array of its own."""
    rng = np.random.default_rng(0)
    stack, nested = rng.normal(size=(5, *SHAPE)), Nested.of((0, 1, 2, 3), wanted)
    sums = nested.sums(stack)
    tables = [rng.normal(size=sums[number].shape) for number in range(len(wanted))]
    for number, axes in enumerate(wanted):
        drop = tuple(1 + axis for axis in range(4) if axis not in axes)
        assert sums[number] == pytest.approx(stack.sum(axis=drop))
    spread = nested.spread(tables, SHAPE)
    assert spread.shape == stack.shape
    assert not any(np.shares_memory(spread, table) for table in tables)
    inner = sum((tables[number] * sums[number]).sum() for number in range(len(wanted)))
    assert float((spread * stack).sum()) == pytest.approx(float(inner))


def test_all_pairs_take_three_passes_over_the_whole_table() -> None:
    """However many columns: the pairs without the last column, those of it without the first, and the one of both."""
    for columns in (4, 7):
        pairs = [(a, b) for a in range(columns) for b in range(a + 1, columns)]
        assert len(Nested.of(tuple(range(columns)), pairs).margins) == 3
