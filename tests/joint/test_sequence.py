"""Evenly spread draws and their match to goals, against what they promise."""

import itertools

import numpy as np

from dpcipher.joint.blocks import Blocks
from dpcipher.joint.even import Ladder, _opposite, match_goals, spread, systematic


def test_a_ladder_draws_what_the_probabilities_say():
    """Level by level the draw inverts the cumulative probabilities, and skips levels of probability zero even at the ends."""
    ladder = Ladder(np.array([[0.0, 0.25, 0.75, 0.0]] * 5, dtype=np.float32))
    rows = np.arange(5)
    assert ladder.draw(rows, np.array([0.0, 0.2, 0.3, 0.99, 1.0 - 1e-16])).tolist() == [1, 1, 2, 2, 2]


def test_spread_uniforms_are_even_inside_every_stratum():
    """Within each level of the key, the share of uniforms below any height is off by far less than chance would have it."""
    rng = np.random.default_rng(0)
    key = rng.integers(5, size=10_000).astype(np.int32)
    uniforms = spread([key], 10_000, rng)
    for level, height in itertools.product(range(5), (0.1, 0.5, 0.9)):
        share = (uniforms[key == level] < height).mean()
        assert abs(share - height) < 0.003  # independent uniforms: standard deviation up to .011


def test_systematic_choice_is_within_one_of_its_expectation():
    """Each row is chosen as often as its weight says, up to one, and never with weight zero."""
    weights = np.array([0.0, 1.0, 2.5, 0.0, 0.25])
    counts = np.bincount(systematic(weights, 30, np.random.default_rng(1)), minlength=5)
    assert np.abs(counts - 30 * weights / weights.sum()).max() < 1
    assert counts[[0, 3]].tolist() == [0, 0]


def test_matching_reaches_goals_without_impossible_levels():
    """A column drawn at random is brought to the exact tables asked for, and keeps out of levels with probability zero."""
    rng = np.random.default_rng(4)
    groups = rng.integers(3, size=(3_000, 2))
    chances = np.where(groups[:, :1] == 0, [[0.0, 0.5, 0.5]], [[0.4, 0.3, 0.3]])
    ladder = Ladder(chances)
    drawn = ladder.draw(np.arange(3_000), rng.random(3_000))
    places = groups + np.array([0, 3])
    goals = np.zeros((6, 3))
    for column in range(2):
        np.add.at(goals, places[:, column], chances)
    blocks = Blocks([(0,), (1,)], [3, 3], 3)
    cells = blocks.cells(groups.astype(np.int32), (3, 3))
    matched = match_goals(drawn, blocks, cells, goals, ladder.draw, rng)

    def worst(levels):
        counts = np.bincount((places * 3 + levels[:, None]).ravel(), minlength=18).reshape(6, 3)
        return np.abs(counts - goals).max()

    assert worst(matched) < 3 < worst(drawn)
    assert not (matched[groups[:, 0] == 0] == 0).any()


def test_many_binary_columns_match_better_than_their_draw_by_far():
    """A column of two levels with forty binary columns before it: rows move in opposite pairs, and come within a few rows of all eighty goals."""
    rng = np.random.default_rng(5)
    earlier = rng.integers(2, size=(4_000, 40)).astype(np.int32)
    one = 1 / (1 + np.exp(-earlier @ rng.normal(0, 0.3, 40)))
    chances = np.stack([1 - one, one], axis=1)
    blocks = Blocks([(axis,) for axis in range(40)], [2] * 40, 2)
    cells = blocks.cells(earlier, (2,) * 40)
    goals = blocks.sums(cells, chances)
    drawn = Ladder(chances).draw(np.arange(4_000), rng.random(4_000))
    matched = match_goals(drawn, blocks, cells, goals, Ladder(chances).draw, rng)

    def apart(levels):
        both = np.stack([earlier == 0, earlier == 1], axis=2).reshape(4_000, 80).T.astype(float)
        return float(np.mean((both @ np.eye(2)[levels] - goals) ** 2))

    assert apart(matched) < 8 < 200 < apart(drawn)


def test_opposite_proposals_are_paired_best_with_best():
    """Of each two levels, the best row that goes up is with the best that goes down; who finds nobody stays alone."""
    levels, proposed = np.array([0, 0, 1, 1, 2, 0, 1]), np.array([1, 1, 0, 0, 0, 2, 2])
    pairs = _opposite(np.arange(7), levels, proposed, np.array([-3.0, -5.0, -1.0, -2.0, 0.0, 0.0, -9.0]))
    assert sorted(zip(*pairs.tolist(), strict=True)) == [(0, 2), (1, 3), (5, 4)]
