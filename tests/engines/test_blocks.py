from itertools import combinations

import numpy as np
import pytest

from dpcipher.tables import raking as blocks
from dpcipher.tables.domain import maximal
from dpcipher.tables.raking import Goal, carry, collapse, gaps, rake
from dpcipher.tables.table import margin


def random_joint(shape: tuple[int, ...], seed: int, weight: float = 1.0) -> np.ndarray:
    """A joint drawn from a symmetric Dirichlet distribution."""
    return np.random.default_rng(seed).dirichlet(np.full(int(np.prod(shape)), weight)).reshape(shape)


def test_blocks_rake_to_the_same_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raking blocks of goals and raking goal by goal end in the same I-projection, with the same gaps."""
    joint, start = random_joint((3, 2, 3, 2, 3), 1, 3.0), random_joint((3, 2, 3, 2, 3), 2, 3.0)
    goals = [Goal(axes, margin(joint, (0, 1, 2, 3, 4), axes)) for axes in combinations(range(5), 2)]
    plain, by_blocks = start.copy(), start.copy()
    rake(plain, goals, sweeps=500, tolerance=1e-11)
    monkeypatch.setattr(blocks, "_DIRECT_CELLS", 20)
    assert len(blocks._blocks(goals, joint.shape)) < len(goals)
    rake(by_blocks, goals, sweeps=500, tolerance=1e-11)
    assert np.abs(plain - by_blocks).max() < 1e-9
    assert np.abs(plain - start).max() > 1e-3
    for axes, gap in gaps(start, goals).items():
        assert np.allclose(gap, margin(start - joint, (0, 1, 2, 3, 4), axes))


@pytest.mark.parametrize("keep", [(0,), (2,), (0, 1), (1, 3), (0, 2, 3), (0, 1, 2, 3), ()])
def test_merged_axes_change_nothing(keep: tuple[int, ...]) -> None:
    """Sums and products over merged axes equal the plain ones."""
    table, every = random_joint((2, 3, 4, 2), 1), (0, 1, 2, 3)
    summed = margin(table, every, keep)
    assert np.allclose(collapse(table, keep), summed)
    product = table * summed.reshape([size if axis in keep else 1 for axis, size in enumerate(table.shape)])
    carry(table, summed**2, summed, keep)
    assert np.allclose(table, product)


def test_an_unmet_goal_is_reported() -> None:
    """Goals that contradict one another leave a misfit, and the sweeps are used up."""
    goals = [Goal((0,), np.array([0.9, 0.1])), Goal((0, 1), np.full((2, 2), 0.25))]
    raked = rake(np.full((2, 2), 0.25), goals, sweeps=7, tolerance=1e-9)
    assert raked.sweeps == 7
    assert raked.misfit == pytest.approx(0.4)


def test_maximal_sets_contain_all_others() -> None:
    """Every set lies in a maximal one, and no maximal set in another."""
    sets = [(0,), (0, 1), (1, 2), (0, 1, 2), (3,), (2, 3), (0, 1)]
    assert maximal(sets) == [(0, 1, 2), (2, 3)]
