"""Groups crossed into blocks, against every group by itself."""

import numpy as np
import pytest

from dpcipher.joint import blocks as module
from dpcipher.joint.blocks import Blocks

SHAPE = (2, 3, 2, 40, 2, 5)
GROUPS = [(0,), (1, 2), (3,), (4,), (0, 5)]
SIZES = [2, 6, 40, 2, 10]


@pytest.fixture(params=[1, 64, 10_000], ids=["alone", "some together", "all together"])
def blocks(request, monkeypatch):
    """Few or many groups together."""
    monkeypatch.setattr(module, "NUMBERS", request.param)
    return Blocks(GROUPS, SIZES, 3)


@pytest.fixture
def rows():
    """Coded rows."""
    rng = np.random.default_rng(0)
    return np.stack([rng.integers(size, size=500) for size in SHAPE], axis=1).astype(np.int32)


def levels_of(rows):
    """Which level of each group a row has, all groups laid end to end."""
    own = [rows[:, 0], rows[:, 1] * 2 + rows[:, 2], rows[:, 3], rows[:, 4], rows[:, 0] * 5 + rows[:, 5]]
    return np.stack(own, axis=1) + np.cumsum([0, *SIZES[:-1]])


def test_counts_are_those_of_every_group(blocks, rows):
    """By level of another column, and without one."""
    other = np.random.default_rng(1).integers(3, size=500).astype(np.int32)
    counts = np.zeros((sum(SIZES), 3))
    np.add.at(counts, (levels_of(rows), other[:, None]), 1)
    cells = blocks.cells(rows, SHAPE)
    assert blocks.counts(cells, other).tolist() == counts.tolist()
    assert (blocks.counts(cells) == counts.sum(axis=1, keepdims=True)).all()


def test_sums_and_look_ups_are_those_of_every_group(blocks, rows):
    """Rows add up what their levels have, and levels what their rows have."""
    rng, cells = np.random.default_rng(2), blocks.cells(rows, SHAPE)
    values, chances = rng.normal(size=(sum(SIZES), 3)), rng.random((500, 3))
    assert blocks.looked_up(cells, values, np.float64) == pytest.approx(values[levels_of(rows)].sum(axis=1))
    sums = np.zeros_like(values)
    np.add.at(sums, levels_of(rows), chances[:, None])
    assert blocks.sums(cells, chances) == pytest.approx(sums)


def test_few_and_many_levels_are_summed_alike(rows):
    """Level by level, and all at once as a product."""
    rng = np.random.default_rng(3)
    own, values, scale = rng.integers(7, size=500), rng.random((500, module.FEW + 1)), rng.random(500)
    many = module.grouped(own, 7, values, scale)
    assert many[:, :3] == pytest.approx(module.grouped(own, 7, values[:, :3], scale))


def test_no_more_cells_than_allowed_unless_a_group_has_them(blocks):
    """A block of several groups is small; all groups are there, in order."""
    most = module.NUMBERS // 3
    assert all(block.size <= most or len(block.groups) == 1 for block in blocks.blocks)
    assert [group for block in blocks.blocks for group in block.groups] == GROUPS
