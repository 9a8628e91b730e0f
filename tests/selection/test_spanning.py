"""Choosing pairs that connect columns first: against Kruskal's algorithm, and against the exact law of two rounds."""

from collections import Counter
from itertools import combinations, permutations

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from dpcipher.privacy.draws import SeededChooser
from dpcipher.selection.rounds import SpanningFirst


@pytest.mark.parametrize("seed", range(5))
def test_without_noise_it_is_the_maximum_spanning_tree(seed: int) -> None:
    """At a scale far below the scores, the first picks are the tree that scipy finds, and the others follow by score."""
    rng = np.random.default_rng(seed)
    pairs = list(combinations(range(9), 2))
    scores = rng.permutation(len(pairs)).astype(np.int64) + 1
    picked = SpanningFirst(pairs)(SeededChooser(rng), scores, 1e-6, 15)
    weights = coo_array((-scores.astype(float), np.array(pairs).T), shape=(9, 9))
    tree = minimum_spanning_tree(weights.tocsr())
    assert {pairs[place] for place in picked[:8]} == {
        tuple(sorted(edge)) for edge in np.argwhere(tree.toarray())
    }
    others = sorted(set(range(len(pairs))) - set(picked[:8]), key=lambda place: -scores[place])
    assert picked[8:] == others[:7]


def test_noise_or_not_every_column_is_reached_first() -> None:
    """With noise far above the scores, the first picks still connect all columns, and no pair is picked twice."""
    pairs = [pair for pair in combinations(range(7), 2) if pair != (2, 5)]
    for seed in range(20):
        rng = np.random.default_rng(seed)
        picked = SpanningFirst(pairs)(SeededChooser(rng), np.zeros(len(pairs), np.int64), 1.0, 12)
        edges = np.array([pairs[place] for place in picked[:6]]).T
        assert connected_components(coo_array((np.ones(6), edges), shape=(7, 7)))[0] == 1
        assert len(set(picked)) == 12


def test_columns_that_no_pair_connects_are_left_apart() -> None:
    """Two islands: each gets its tree, and then what is left is chosen from."""
    pairs = [(0, 1), (0, 2), (1, 2), (3, 4)]
    picked = SpanningFirst(pairs)(SeededChooser(np.random.default_rng(0)), np.array([5, 1, 4, 0]), 1e-6, 4)
    assert [pairs[place] for place in picked] == [(0, 1), (1, 2), (3, 4), (0, 2)]


def test_each_round_has_the_law_of_the_exponential_mechanism() -> None:
    """Three columns: two rounds among the pairs that are left, each in proportion to exp(score / scale)."""
    scores, scale, rng = np.array([3, 1, 0]), 2.0, np.random.default_rng(7)
    draws, pick = 4000, SpanningFirst([(0, 1), (0, 2), (1, 2)])
    chooser = SeededChooser(rng)
    seen = Counter(tuple(pick(chooser, scores, scale, 2)) for _ in range(draws))
    weight = np.exp(scores / scale)
    chi2 = 0.0
    for first, second in permutations(range(3), 2):
        chance = weight[first] / weight.sum() * weight[second] / (weight.sum() - weight[first])
        chi2 += (seen[first, second] - draws * chance) ** 2 / (draws * chance)
    assert chi2 < 20.5  # the 0.1 % point of chi-square with five degrees of freedom
