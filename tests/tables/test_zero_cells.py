"""Cells that structural zeros leave no row in, against the whole table written out."""

from itertools import combinations

import numpy as np
import pytest

from dpcipher.tables.domain import zero_cells

SHAPE = (3, 2, 4, 2, 3)


@pytest.mark.parametrize("n_zeros", [0, 1, 4, 40])
@pytest.mark.parametrize("seed", range(6))
def test_every_table_against_each_zero_by_itself(n_zeros, seed):
    """Masks of one to three axes, some with whole lines: a cell is empty where one of them leaves it nothing."""
    rng = np.random.default_rng(seed)
    zeros = []
    for _ in range(n_zeros):
        known = tuple(sorted(rng.permutation(5)[: rng.integers(1, 4)].tolist()))
        mask = rng.random([SHAPE[axis] for axis in known]) < 0.15
        if rng.random() < 0.4:
            mask[0] = True
        zeros.append((known, mask))
    for order in range(1, 5):
        for axes in combinations(range(5), order):
            expected = np.zeros([SHAPE[axis] for axis in axes], dtype=bool)
            for known, mask in zeros:
                others = [axis for axis in range(5) if axis not in known]
                filled = np.broadcast_to(np.expand_dims(mask, others), SHAPE)
                expected |= filled.all(axis=tuple(axis for axis in range(5) if axis not in axes))
            np.testing.assert_array_equal(zero_cells(axes, SHAPE, tuple(zeros)), expected)


def test_other_zeros_of_the_same_axes_are_not_mixed_up():
    """What is kept in mind about zeros belongs to them alone, also when their place in memory is used again."""
    for level in range(6):
        mask = np.arange(6) == level
        assert np.flatnonzero(zero_cells((0,), (6,), [((0,), mask)])).tolist() == [level]
