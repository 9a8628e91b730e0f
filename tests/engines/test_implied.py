"""What a tree of pairs implies, against the explicit joint of the best of all trees; and what denoising gains by it."""

from itertools import combinations

import numpy as np
import pytest

from dpcipher.engines.denoise import predicted
from dpcipher.engines.denoise.denoise import denoise
from dpcipher.engines.denoise.shrink import CLEAR, Deviations
from dpcipher.engines.denoise.tree_prediction import PRECISION, Tree, implied, shares
from release.measured import noisy, reconcile

SHAPE = (2, 3, 4, 2, 3)
PAIRS = list(combinations(range(5), 2))


def margin(joint, keep):
    """The margin of a full joint."""
    return joint.sum(axis=tuple(axis for axis in range(joint.ndim) if axis not in keep))


def margins(joint, order):
    """All margins of one order."""
    return {axes: margin(joint, axes) for axes in combinations(range(joint.ndim), order)}


def one_way(joint):
    """The one-way margins by attribute."""
    return {axes[0]: table for axes, table in margins(joint, 1).items()}


def joint_of_tree(edges, joint):
    """The product of the tables of the edges, divided by what they share: the joint with these margins that the tree describes."""
    letters = "abcde"
    tables = [margin(joint, edge) for edge in edges]
    divisors = [margin(joint, (axis,)) ** (1.0 - sum(axis in edge for edge in edges)) for axis in range(5)]
    names = ["".join(letters[axis] for axis in edge) for edge in edges] + list(letters)
    return np.einsum(f"{','.join(names)}->{letters}", *tables, *divisors)


def reached(edges):
    """The attributes that edges connect to attribute 0."""
    found = {0}
    for _ in range(5):
        found |= {axis for edge in edges if found & set(edge) for axis in edge}
    return found


def nearest_tree(joint):
    """The joint of a tree that is nearest in the Kullback-Leibler sense, of all 125 trees."""
    trees = [edges for edges in combinations(PAIRS, 4) if len(reached(edges)) == 5]
    assert len(trees) == 5**3  # Cayley
    found = [(float((joint * np.log(joint / joint_of_tree(edges, joint))).sum()), edges) for edges in trees]
    edges = min(found)[1]
    return edges, joint_of_tree(edges, joint)


def random_tree(rng, shape=SHAPE, concentration=0.5):
    """A joint in which each attribute depends on one earlier attribute."""
    joint = rng.dirichlet(np.ones(shape[0]))
    for axis in range(1, len(shape)):
        parent = int(rng.integers(axis))
        rates = rng.dirichlet(np.full(shape[axis], concentration), shape[parent])
        joint = joint[..., None] * rates.reshape(
            *[shape[parent] if a == parent else 1 for a in range(axis)], -1
        )
    return joint


@pytest.mark.parametrize("seed", range(5))
def test_tables_are_those_of_the_nearest_tree(seed):
    """For any joint: the pairs outside the tree are margins of the explicit joint of the best of all trees."""
    joint = np.random.default_rng(seed).dirichlet(np.full(np.prod(SHAPE), 0.3)).reshape(SHAPE) + 1e-9
    joint /= joint.sum()
    edges, tree = nearest_tree(joint)
    found = implied(margins(joint, 2), one_way(joint), PAIRS)
    assert set(found) == set(PAIRS) - set(edges)
    for pair, table in found.items():
        np.testing.assert_allclose(table, margin(tree, pair), atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_a_tree_implies_the_truth(seed):
    """Where the dependence is a tree, its exact pairs imply all others exactly."""
    joint = random_tree(np.random.default_rng(seed))
    found = implied(margins(joint, 2), one_way(joint), PAIRS)
    assert len(found) == 6
    for pair, table in found.items():
        np.testing.assert_allclose(table, margin(joint, pair), atol=1e-12)


def test_empty_levels_are_no_obstacle():
    """A level without rows stays without rows; nothing is divided by nothing."""
    joint = random_tree(np.random.default_rng(1))
    joint[:, 1] = 0
    joint /= joint.sum()
    for pair, table in implied(margins(joint, 2), one_way(joint), PAIRS).items():
        np.testing.assert_allclose(table.sum(axis=1), one_way(joint)[pair[0]], atol=1e-12)
        np.testing.assert_allclose(table.sum(axis=0), one_way(joint)[pair[1]], atol=1e-12)


def test_nothing_is_implied_without_a_path():
    """Two groups of attributes that no pair joins: tables within the groups only, and none for a pair that no other tells about."""
    joint = random_tree(np.random.default_rng(3))
    known = [(0, 1), (1, 2), (3, 4)]
    pairs = {pair: margin(joint, pair) for pair in known}
    assert set(implied(pairs, one_way(joint), PAIRS)) == {(0, 2)}
    assert implied(pairs, one_way(joint), [(0, 3), (1, 4)]) == {}


def test_a_long_chain_is_walked_for_the_pairs_that_are_asked_for():
    """The ends of a chain of 1,500 attributes have the table that the power of one matrix gives, whichever end is the root."""
    stay = np.array([[0.999, 0.001], [0.002, 0.998]])
    rates = np.array([2 / 3, 1 / 3])
    pairs = {(axis, axis + 1): rates[:, None] * stay for axis in range(1_499)}
    wanted = [(0, 1_499), (700, 702)]
    found = implied(pairs, dict.fromkeys(range(1_500), rates), wanted)
    for left, right in wanted:
        power = np.linalg.matrix_power(stay, right - left)
        np.testing.assert_allclose(found[left, right], rates[:, None] * power, atol=1e-12)


def test_tables_do_not_depend_on_the_way_they_are_asked_for():
    """One source with all its targets at once gives the same as one by one."""
    joint = np.random.default_rng(5).dirichlet(np.ones(np.prod(SHAPE))).reshape(SHAPE)
    tree = Tree.of(margins(joint, 2), one_way(joint))
    for source in range(5):
        targets = [axis for axis in range(5) if axis != source]
        together = tree.tables(source, targets)
        for target in targets:
            np.testing.assert_allclose(
                tree.tables(source, [target])[source, target], together[source, target]
            )
            np.testing.assert_allclose(
                tree.tables(target, [source])[target, source].T, together[source, target]
            )


def share(counts, variance, step):
    """How much of a step one table takes."""
    return float(shares(Deviations([(0, 1)], counts[None], np.array([variance])), step[None])[0])


@pytest.mark.parametrize("truth", [0.0, 0.4, 1.0, 1.5])
def test_the_share_is_a_ridge_regression(truth):
    """The share of the step equals the least squares of the counts with one more observation, the prior, kept within 0 and 1."""
    rng = np.random.default_rng(7)
    step, noise = rng.normal(0, 10, (3, 4)), 25.0
    counts = truth * step + rng.normal(0, noise**0.5, (3, 4))
    matrix = np.append(step.ravel() / noise**0.5, PRECISION**0.5)
    wanted = np.append(counts.ravel() / noise**0.5, PRECISION**0.5)
    found = np.linalg.lstsq(matrix[:, None], wanted, rcond=None)[0][0]
    assert share(counts, noise, step) == pytest.approx(np.clip(found, 0, 1), abs=1e-12)


def test_a_clear_table_that_the_tree_cannot_explain_takes_no_step():
    """Where what is left beyond the step would keep more than `CLEAR` of itself, the step is not taken; just below, it is."""
    step = np.outer([1.0, -1.0], [1.0, -1.0, 0.0])
    other = np.outer(
        [1.0, -1.0], [1.0, 1.0, -2.0]
    )  # at right angles to the step, square 12, of two free numbers
    signal = np.sqrt(2 / (1 - CLEAR) / 12)
    assert share(step + 1.01 * signal * other, 1.0, step) == 0
    assert share(step + 0.99 * signal * other, 1.0, step) == pytest.approx(1)


def chain_release(seed, *, n_attrs=9, levels=4, n_rows=5_000, sigma=60.0):
    """All noisy pairs of a chain of attributes, and the true ones."""
    rng = np.random.default_rng(seed)
    stay = 0.7 * np.eye(levels) + 0.3 * rng.dirichlet(np.ones(levels))
    power, rates, truth = np.linalg.matrix_power, rng.dirichlet(np.full(levels, 3.0)), {}
    for left, right in combinations(range(n_attrs), 2):
        truth[left, right] = (rates @ power(stay, left))[:, None] * power(stay, right - left)
    measured = [
        noisy(pair, n_rows * table + rng.normal(0, sigma, table.shape), sigma**2)
        for pair, table in truth.items()
    ]
    return truth, reconcile((levels,) * n_attrs, measured, total=float(n_rows))


def test_the_second_pass_gains_where_pairs_imply_one_another(monkeypatch):
    """On chains with seeded noise, the error of all pairs is well below that of one pass."""
    once, twice = [], []
    for seed in range(4):
        truth, release = chain_release(seed)
        with monkeypatch.context() as patch:
            patch.setattr(predicted, "implied", lambda *_: {})
            first = denoise(release).tables
        second = denoise(release).tables
        once.append(np.mean([np.abs(first[pair] - table).sum() / 2 for pair, table in truth.items()]))
        twice.append(np.mean([np.abs(second[pair] - table).sum() / 2 for pair, table in truth.items()]))
    assert np.mean(twice) < 0.85 * np.mean(once)
    assert max(np.array(twice) / once) < 1


def test_exact_pairs_stay_exact_and_help_the_noisy_ones(monkeypatch):
    """Exact pairs come back as they are; what they imply about the noisy ones takes away half of the error of one pass."""
    truth, _ = chain_release(0)
    rng = np.random.default_rng(1)
    noise = {pair: 0.0 if pair[1] == pair[0] + 1 else 80.0 for pair in truth}
    measured = [
        noisy(pair, 5_000 * table + noise[pair] * rng.normal(size=table.shape), noise[pair] ** 2)
        for pair, table in truth.items()
    ]
    release = reconcile((4,) * 9, measured)
    second = denoise(release).tables
    monkeypatch.setattr(predicted, "implied", lambda *_: {})
    first = denoise(release).tables
    errors = np.zeros(2)
    for pair, table in truth.items():
        np.testing.assert_allclose(second[pair].sum(axis=1), table.sum(axis=1), atol=1e-9)
        np.testing.assert_allclose(second[pair].sum(axis=0), table.sum(axis=0), atol=1e-9)
        if noise[pair] == 0:
            np.testing.assert_allclose(second[pair], table, atol=1e-12)
        errors += [np.abs(second[pair] - table).sum(), np.abs(first[pair] - table).sum()]
    assert errors[0] < 0.5 * errors[1]


def test_two_attributes_need_no_second_pass(monkeypatch):
    """A single pair is its own tree: nothing else can tell about it."""
    counts = np.random.default_rng(2).normal(30, 20, (6, 7))
    release = reconcile((6, 7), [noisy((0, 1), counts, 400.0)], total=1_000.0)
    found = denoise(release).tables[0, 1]
    monkeypatch.setattr(predicted, "implied", lambda *_: {})
    np.testing.assert_array_equal(found, denoise(release).tables[0, 1])
