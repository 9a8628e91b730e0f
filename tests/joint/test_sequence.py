"""Evenly spread draws and their match to goals, against what they promise."""

import itertools

import numpy as np

from dpcipher.joint.even_rows import Ladder, match_goals, spread, systematic


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
    cells = (groups + np.array([0, 3])).astype(np.int64) * 3
    goals = np.zeros(18)
    for column in range(2):
        np.add.at(goals.reshape(6, 3), cells[:, column] // 3, chances)
    matched = match_goals(drawn, cells, goals, ladder, rng)

    def worst(levels):
        return np.abs(np.bincount((cells + levels[:, None]).ravel(), minlength=18) - goals).max()

    assert worst(matched) < 3 < worst(drawn)
    assert not (matched[groups[:, 0] == 0] == 0).any()
