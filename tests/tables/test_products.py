"""Margins by matrix products against plain sums."""

from itertools import combinations

import numpy as np
import pytest

from dpcipher.tables import table as tables
from dpcipher.tables.table import pair_margins


@pytest.mark.parametrize("direct", [1, 2**10])
@pytest.mark.parametrize(
    "shape",
    [(4,), (3, 5), (2, 1, 3), (2,) * 11, (3, 1, 4, 2, 5), (40, 2, 2, 3), (2, 2, 30, 2, 2), (7, 60, 8)],
)
def test_pair_margins_are_the_sums_over_the_other_axes(
    shape: tuple[int, ...], direct: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every pair once, equal to the sum up to rounding, also of a table that is not contiguous."""
    monkeypatch.setattr(tables, "_DIRECT_CELLS", direct)
    dense = np.random.default_rng(0).random(shape[::-1]).T
    margins = pair_margins(dense)
    assert list(margins) == list(combinations(range(len(shape)), 2))
    for pair, margin in margins.items():
        others = tuple(axis for axis in range(len(shape)) if axis not in pair)
        wanted = dense.sum(axis=others)
        assert margin.shape == wanted.shape
        assert np.abs(margin / wanted - 1).max() < 1e-12
