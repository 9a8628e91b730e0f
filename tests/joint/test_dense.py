from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcipher.errors import ConditionError, JointError
from dpcipher.joint.dense import DenseTable


def random_table(shape: tuple[int, ...], seed: int, zeros: float = 0.0) -> DenseTable:
    """A table drawn at random, a share of its cells set to zero."""
    rng = np.random.default_rng(seed)
    cells = rng.dirichlet(np.ones(int(np.prod(shape)))) * (rng.random(int(np.prod(shape))) >= zeros)
    return DenseTable((cells / cells.sum()).reshape(shape))


def counts(table: DenseTable, n_rows: int, seed: int, **options: object) -> np.ndarray:
    """How many sampled rows fall in each cell."""
    rows = np.concatenate(list(table.sample(n_rows, np.random.default_rng(seed), **options)))  # type: ignore[arg-type]
    assert rows.dtype == np.int32
    found = np.zeros(table.shape)
    np.add.at(found, tuple(rows.T), 1)
    return found


def mean_tvd(found: np.ndarray, wanted: np.ndarray, order: int) -> float:
    """The mean TVD over all tables of an order."""
    axes = range(wanted.ndim)
    gaps = [(found - wanted).sum(axis=tuple(set(axes) - set(keep))) for keep in combinations(axes, order)]
    return float(np.mean([0.5 * np.abs(gap).sum() for gap in gaps]))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=5),
    st.integers(1, 400),
    st.integers(0, 10**6),
    st.integers(1, 90),
)
def test_no_cell_is_off_by_a_whole_row(shape: list[int], n_rows: int, seed: int, chunk: int) -> None:
    """Every cell's count lies within one of its expectation, but in one chunk with fewer rows than cells; rows are as many as asked, in chunks no larger than asked."""
    table = (
        random_table(tuple(shape), seed, zeros=0.3)
        if np.prod(shape) > 4
        else random_table(tuple(shape), seed)
    )
    parts = list(table.sample(n_rows, np.random.default_rng(seed), chunk=chunk))
    assert max(len(part) for part in parts) <= chunk
    found = counts(table, n_rows, seed, chunk=chunk)
    assert found.sum() == n_rows
    if chunk < n_rows or n_rows >= found.size:
        assert np.abs(found - n_rows * table.probabilities).max() < 1 + 1e-6
    assert not found[table.probabilities == 0].any()


@pytest.mark.parametrize("seed", range(4))
def test_few_rows_match_two_way_tables(seed: int) -> None:
    """With fewer rows than cells, the cells of two-way tables are within a few rows, on average well within one, and no row is in an empty cell."""
    table = random_table((4, 5, 3, 4, 3), seed, zeros=0.3)
    found = counts(table, 400, seed)
    gaps = [
        np.abs((found - 400 * table.probabilities).sum(axis=tuple(a for a in range(5) if a not in pair)))
        for pair in combinations(range(5), 2)
    ]
    assert max(gap.max() for gap in gaps) < 3
    assert np.mean(np.concatenate([gap.ravel() for gap in gaps])) < 0.5
    assert not found[table.probabilities == 0].any()


@pytest.mark.parametrize("n_rows", [1, 2])
def test_a_single_row_is_still_a_random_row(n_rows: int) -> None:
    """Matching leaves rounding alone: a sample of one or two rows follows the table instead of its mode."""
    table = random_table((2, 3, 3), 5)
    rows = np.concatenate([next(table.sample(n_rows, np.random.default_rng(seed))) for seed in range(3_000)])
    shares = np.bincount(np.ravel_multi_index(tuple(rows.T), table.shape), minlength=18) / len(rows)
    assert 0.5 * np.abs(shares - table.probabilities.ravel()).sum() < 0.05


def test_every_chunk_is_spread_over_the_table() -> None:
    """One chunk of many is itself an even sample."""
    table = random_table((3, 4, 2), 5)
    part = next(table.sample(4000, np.random.default_rng(0), chunk=1000))
    found = np.zeros(table.shape)
    np.add.at(found, tuple(part.T), 1)
    assert np.abs(found - len(part) * table.probabilities).max() < 1 + 1e-6


def test_even_rows_beat_independent_rows() -> None:
    """The low-order tables of even rows are at least five times closer to the fitted ones than those of independent rows."""
    table = random_table((2, 2, 3, 3), 1)
    for order in (1, 2, 3):
        even = np.mean([mean_tvd(counts(table, 500, s) / 500, table.probabilities, order) for s in range(10)])
        loose = np.mean(
            [
                mean_tvd(counts(table, 500, s, independent=True) / 500, table.probabilities, order)
                for s in range(10)
            ]
        )
        assert even < loose / 5


def test_independent_rows_have_multinomial_spread() -> None:
    """The χ² of independent rows is near its degrees of freedom, and that of even rows far below."""
    table = random_table((3, 4), 2)
    expected = 2000 * table.probabilities

    def chi_square(seed: int, independent: bool) -> float:
        return float(((counts(table, 2000, seed, independent=independent) - expected) ** 2 / expected).sum())

    assert (
        9 < np.mean([chi_square(seed, True) for seed in range(100)]) < 13
    )  # 11 degrees of freedom, standard error .47
    assert np.mean([chi_square(seed, False) for seed in range(20)]) < 1


def test_even_rows_are_unbiased_and_in_random_order() -> None:
    """Over many seeds a cell's mean count is its expectation, and the first row follows the table."""
    table = random_table((2, 3), 3)
    mean = np.mean([counts(table, 7, seed) for seed in range(2000)], axis=0)
    assert np.abs(mean - 7 * table.probabilities).max() < 0.06
    first = np.zeros(table.shape)
    for seed in range(2000):
        first[tuple(next(table.sample(50, np.random.default_rng(seed)))[0])] += 1 / 2000
    assert np.abs(first - table.probabilities).max() < 0.06


def test_a_condition_masks_and_renormalises() -> None:
    """Conditional rows follow the table restricted to the allowed levels."""
    table = random_table((3, 2, 4), 4)
    allowed = {0: np.array([True, False, True]), 2: np.array([False, True, True, False])}
    wanted = table.probabilities.copy()
    wanted[1], wanted[:, :, [0, 3]] = 0, 0
    wanted /= wanted.sum()
    assert np.abs(counts(table, 5000, 0, allowed=allowed) - 5000 * wanted).max() < 1 + 1e-6
    assert mean_tvd(counts(table, 5000, 0, allowed=allowed, independent=True) / 5000, wanted, 3) < 0.03


@pytest.mark.parametrize("mask", [[False, False], [False, True]])
def test_an_impossible_condition_is_refused(mask: list[bool]) -> None:
    """A condition without probability raises at once, before the first chunk is asked for."""
    table = DenseTable(np.array([[0.5, 0.0], [0.5, 0.0]]))
    with pytest.raises(ConditionError, match="given must"):
        table.sample(3, np.random.default_rng(0), allowed={1: np.array(mask)})


def test_log_prob_reads_the_cells() -> None:
    """The log-probability of a row is that of its cell, minus infinity where there is none."""
    table = DenseTable(np.array([[0.5, 0.0], [0.25, 0.25]]))
    assert table.log_prob(np.array([[0, 0], [0, 1], [1, 1]])).tolist() == [np.log(0.5), -np.inf, np.log(0.25)]


def test_project_sums_and_keeps_the_order_asked_for() -> None:
    """A projection equals the sum over the other axes, dimensions as asked."""
    table = random_table((2, 3, 4), 6)
    assert np.allclose(table.project((0, 2)), np.einsum("abc->ac", table.probabilities))
    assert np.allclose(table.project((2, 0)), np.einsum("abc->ca", table.probabilities))


def test_arrays_round_trip() -> None:
    """What is saved is what is loaded."""
    table = random_table((2, 5), 7)
    assert np.array_equal(DenseTable.from_arrays(table.to_arrays()).probabilities, table.probabilities)
    with pytest.raises(JointError, match="probabilities"):
        DenseTable.from_arrays({"weights": np.ones(3)})


@pytest.mark.parametrize("cells", [[0.5, 0.6], [1.5, -0.5], [np.nan, 1.0], []])
def test_what_is_no_distribution_is_refused(cells: list[float]) -> None:
    """A table must be finite, non-negative and sum to one."""
    with pytest.raises(JointError, match="probabilities"):
        DenseTable(np.array(cells))
