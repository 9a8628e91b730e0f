"""Distances against pandas' own cross tables, and the choice of tables against the customary one."""

import itertools

import numpy as np
import pandas as pd
import pytest

from dpcipher.errors import ParameterError
from dpcipher.evaluation import distances as module
from dpcipher.evaluation.distances import choose_tables, distances

SHAPE = (2, 3, 4, 2)


def rows(seed: int, n: int) -> np.ndarray:
    """Random coded rows."""
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.integers(0, size, n) for size in SHAPE]).astype(np.int32)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("dense", [True, False])
def test_distances_equal_those_of_grouped_counts(
    order: int, dense: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TVD and largest difference by pandas value counts, for the dense path and the one for huge tables."""
    monkeypatch.setattr(module, "DENSE_CELLS", 10**6 if dense else 1)
    first, second = rows(0, 300), rows(1, 200)
    for one in distances(first, second, SHAPE, choose_tables(4, order)):
        counts = [pd.DataFrame(part[:, one.axes]).value_counts(normalize=True) for part in (first, second)]
        gap = counts[0].subtract(counts[1], fill_value=0).abs()
        assert one.tvd == pytest.approx(gap.sum() / 2)
        assert one.linf == pytest.approx(gap.max())


def test_equal_rows_are_at_distance_0_and_disjoint_ones_at_1() -> None:
    """The ends of the scale."""
    zeros, ones = np.zeros((5, 4), dtype=np.int32), np.ones((7, 4), dtype=np.int32)
    same, apart = distances(zeros, zeros, SHAPE, [(0, 1)])[0], distances(zeros, ones, SHAPE, [(0, 1)])[0]
    assert (same.tvd, same.linf, apart.tvd, apart.linf) == (0, 0, 1, 1)


def test_the_sample_is_the_customary_one() -> None:
    """Above 100 triples: entries of the lexicographic list that default_rng(0).choice picks without replacement."""
    every = list(itertools.combinations(range(14), 3))
    expected = [every[i] for i in np.random.default_rng(0).choice(len(every), 100, replace=False)]
    assert choose_tables(14, 3) == expected


def test_a_thousand_columns_are_sampled_without_listing_all_tables() -> None:
    """166 million triples: 100 distinct ones, strictly ascending, at once."""
    chosen = choose_tables(1000, 3)
    assert len(set(chosen)) == 100
    assert all(0 <= a < b < c < 1000 for a, b, c in chosen)


def test_a_limit_applies_to_every_order() -> None:
    """And everything is taken where there is less."""
    assert len(choose_tables(14, 2, limit=10)) == 10
    assert choose_tables(3, 1, limit=10) == [(0,), (1,), (2,)]


@pytest.mark.parametrize(("order", "limit"), [(0, None), (5, None), (True, None), (2, 0), (2, 1.5)])
def test_impossible_orders_and_limits_are_refused(order: int, limit: int | None) -> None:
    """Orders beyond the columns, limits below one."""
    with pytest.raises(ParameterError):
        choose_tables(4, order, limit=limit)
