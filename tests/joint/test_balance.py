from itertools import combinations

import numpy as np
import pytest

from dpcipher.joint.dense import DenseTable
from dpcipher.joint.even_rows import balance


def random_table(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """A table drawn at random, a third of its cells empty."""
    rng = np.random.default_rng(seed)
    cells = rng.dirichlet(np.full(int(np.prod(shape)), 0.5)).reshape(shape) * (rng.random(shape) < 2 / 3)
    return cells / cells.sum()


def counted(rows: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """How many rows fall in each cell."""
    found = np.zeros(shape)
    np.add.at(found, tuple(rows.T), 1)
    return found


def pair_gaps(found: np.ndarray, wanted: np.ndarray) -> list[np.ndarray]:
    """The deviations of all two-way tables."""
    every = set(range(wanted.ndim))
    return [(found - wanted).sum(axis=tuple(every - set(pair))) for pair in combinations(every, 2)]


@pytest.mark.parametrize("seed", range(4))
def test_pairs_come_within_a_row_and_cells_stay_there(seed: int) -> None:
    """With fewer rows than cells the snake alone leaves pairs off by several rows; balancing ends that and moves no row to an empty cell."""
    shape = (4, 5, 3, 4, 3)
    table = random_table(shape, seed)
    rows = next(DenseTable(table).sample(400, np.random.default_rng(seed)))
    found = counted(rows, shape)
    assert max(np.abs(gap).max() for gap in pair_gaps(found, 400 * table)) < 1.5
    assert np.abs(found - 400 * table).max() < 1 + 1e-6
    assert not found[table == 0].any()


def test_balancing_improves_what_it_is_given() -> None:
    """From independent rows, the two-way tables come at least ten times closer, and 3-way tables do not suffer."""
    shape = (4, 3, 5, 3)
    table = random_table(shape, 1)
    rows = next(DenseTable(table).sample(3000, np.random.default_rng(0), independent=True))
    before = counted(rows, shape)
    balance(rows, table, np.random.default_rng(1), batches=3000)
    after = counted(rows, shape)
    loss = [sum(np.abs(gap).sum() for gap in pair_gaps(found, 3000 * table)) for found in (before, after)]
    assert loss[1] < loss[0] / 10
    assert (
        np.abs((after - 3000 * table).sum(axis=0)).sum() < np.abs((before - 3000 * table).sum(axis=0)).sum()
    )


def test_a_single_row_is_still_a_random_row() -> None:
    """Rounding is left alone: a sample of one or two rows follows the table instead of its mode."""
    table = random_table((2, 3, 3), 5)
    for n_rows in (1, 2):
        draws = [
            counted(next(DenseTable(table).sample(n_rows, np.random.default_rng(seed))), table.shape)
            for seed in range(1500)
        ]
        assert np.abs(np.mean(draws, axis=0) / n_rows - table).max() < 0.045  # a standard error is below .013


def test_attributes_of_one_level_are_left_alone() -> None:
    """With fewer than two attributes to move there is nothing to balance."""
    rows = np.zeros((5, 2), dtype=np.int32)
    rows[:, 1] = [0, 1, 1, 1, 1]
    balance(rows, np.array([[0.9, 0.1]]), np.random.default_rng(0))
    assert rows[:, 1].tolist() == [0, 1, 1, 1, 1]
