"""The rows engine against known joints, raking over all cells, and structural zeros."""

import itertools

import numpy as np
import pytest

from dpcipher.engines.rows import solve_rows
from dpcipher.engines.targets import Targets
from dpcipher.errors import ParameterError


def targets_of(joint, workload, total=20_000.0, zeros=()):
    """The exact tables of a joint, for every set in the workload and every single attribute."""
    everything = range(joint.ndim)
    tables = {}
    for axes in [*((axis,) for axis in everything), *workload]:
        tables[axes] = joint.sum(axis=tuple(axis for axis in everything if axis not in axes))
    return Targets(joint.shape, total, tables, dict.fromkeys(tables, 0.0), zeros)


def all_of(order, n_attrs):
    """All sets of attributes of one order."""
    return list(itertools.combinations(range(n_attrs), order))


def table_of(chain):
    """Every cell's probability under a chain."""
    cells = np.stack(np.unravel_index(np.arange(np.prod(chain.shape)), chain.shape), axis=1)
    return np.exp(chain.log_prob(cells.astype(np.int32))).reshape(chain.shape)


def distance(one, other):
    """Total variation distance."""
    return 0.5 * np.abs(one - other).sum()


def counted(codes, shape):
    """The share of rows in every cell."""
    return np.bincount(np.ravel_multi_index(codes.T, shape), minlength=np.prod(shape)).reshape(shape) / len(
        codes
    )


def random_tree(rng, shape):
    """A joint in which each attribute depends on one earlier attribute, in a shuffled order."""
    order = rng.permutation(len(shape))
    joint = np.ones([1] * len(shape))
    for place, axis in enumerate(order):
        parent = order[rng.integers(place)] if place else None
        size = [shape[axis] if a == axis else shape[parent] if a == parent else 1 for a in range(len(shape))]
        rows = 1 if parent is None else shape[parent]
        rates = rng.dirichlet(np.full(shape[axis], 0.7), rows)
        joint = joint * (rates if parent is None or parent < axis else rates.T).reshape(size)
    return joint


def test_independence_comes_out_exact():
    """Tables of independent attributes give the product, up to the rounding of the population."""
    rng = np.random.default_rng(0)
    joint = np.einsum("a,b,c,d->abcd", *(rng.dirichlet(np.ones(size)) for size in (2, 3, 4, 2)))
    chain, fit = solve_rows(targets_of(joint, all_of(2, 4)))
    assert distance(table_of(chain), joint) < 2e-4
    assert fit.converged


@pytest.mark.parametrize("seed", range(5))
def test_trees_come_out_exact(seed):
    """Every tree-shaped dependence is reproduced in all its cells from its pair tables, whatever its order."""
    joint = random_tree(np.random.default_rng(seed), (2, 3, 4, 2, 3))
    chain, fit = solve_rows(targets_of(joint, all_of(2, 5)))
    assert distance(table_of(chain), joint) < 1.5e-3
    assert max(fit.residuals.values()) < 2e-4


@pytest.mark.parametrize("last", range(4))
def test_an_attribute_to_predict_is_drawn_last(last):
    """Its link is then the model of it given all others; the tables asked for are met all the same."""
    joint = np.random.default_rng(8).dirichlet(np.full(36, 2.0)).reshape(2, 2, 3, 3)
    chain, fit = solve_rows(targets_of(joint, all_of(2, 4)), last=last)
    assert fit.order[-1] == last
    assert sorted(fit.order) == [0, 1, 2, 3]
    for away in all_of(2, 4):
        assert distance(table_of(chain).sum(axis=away), joint.sum(axis=away)) < 2e-3


def test_all_triples_of_a_four_way_table_are_met():
    """Tables of order three are equations like any other: the chain's own triples agree with those asked for."""
    joint = np.random.default_rng(2).dirichlet(np.full(36, 2.0)).reshape(2, 2, 3, 3)
    chain, fit = solve_rows(targets_of(joint, all_of(3, 4)), population=65_536, sweeps=20)
    fitted = table_of(chain)
    for axis in range(4):
        assert distance(fitted.sum(axis=axis), joint.sum(axis=axis)) < 2e-3
    assert fit.converged


def test_rows_match_the_tables_nearly_to_rounding():
    """Low-variance rows of any number are within a fraction of a row per cell of every table asked for."""
    joint = np.random.default_rng(3).dirichlet(np.full(96, 0.5)).reshape(2, 3, 4, 4)
    chain, _ = solve_rows(targets_of(joint, all_of(2, 4)))
    for n_rows in (500, 5_000):
        rows = counted(next(chain.sample(n_rows, np.random.default_rng(0))), joint.shape)
        for away in all_of(2, 4):
            assert np.abs(rows.sum(axis=away) - joint.sum(axis=away)).mean() * n_rows < 1.0


def test_a_step_reaches_the_largest_entropy():
    """Strong effects of three columns on a fourth: the chain is the joint of largest entropy under the triple and the three pairs, far from independence."""
    rng = np.random.default_rng(5)
    logits = np.array([-4.0, -4.0, 4.0])[np.indices((3, 3, 3))].sum(axis=0)
    yes = 1 / (1 + np.exp(-logits))
    joint = rng.dirichlet(np.ones(27)).reshape(3, 3, 3)[..., None] * np.stack([1 - yes, yes], axis=-1)
    targets = targets_of(joint, [(0, 1, 2), (0, 3), (1, 3), (2, 3)])
    chain, _ = solve_rows(targets, sweeps=200, last=3)
    raked = np.full(joint.shape, 1 / joint.size)
    for _ in range(2_000):
        for axes, table in targets.tables.items():
            away = tuple(axis for axis in range(4) if axis not in axes)
            raked *= np.expand_dims(table, away) / raked.sum(axis=away, keepdims=True)
    assert distance(table_of(chain), raked) < 3e-3
    assert distance(joint.sum(axis=3)[..., None] * joint.sum(axis=(0, 1, 2)), raked) > 0.1


@pytest.mark.parametrize("seed", range(3))
def test_many_noisy_groups_do_not_throw_a_step_off(seed):
    """Forty columns that all but repeat a hidden one, each in a very noisy table with one more: its few sweeps keep that column's own table."""
    rng, n_rows, noise = np.random.default_rng(seed), 3_000, 100.0
    hidden = rng.choice(3, size=n_rows, p=[0.7, 0.2, 0.1])
    columns = np.where(rng.random((41, n_rows)) < 0.95, hidden, rng.integers(3, size=(41, n_rows)))
    one_way = [np.bincount(column, minlength=3) / n_rows for column in columns]
    tables = {(axis,): table for axis, table in enumerate(one_way)}
    for left, right in all_of(2, 41):
        table = np.bincount(3 * columns[left] + columns[right], minlength=9).reshape(3, 3) / n_rows
        if right == 40:
            table = np.maximum(table + rng.normal(0, noise / n_rows, (3, 3)), 1e-6)
            for _ in range(100):
                table *= (one_way[left] / table.sum(axis=1))[:, None]
                table *= one_way[right] / table.sum(axis=0)
        tables[left, right] = table
    sigma = {axes: noise / n_rows if axes[1:] == (40,) else 0.0 for axes in tables}
    chain, _ = solve_rows(Targets((3,) * 41, float(n_rows), tables, sigma), last=40)
    assert distance(chain.project((40,)), one_way[40]) < 0.04
    assert np.mean([distance(chain.project((axis, 40)), tables[axis, 40]) for axis in range(40)]) < 0.1


def test_structural_zeros_get_probability_zero():
    """Forbidden cells of two and of three attributes are zero in the chain and absent from its rows."""
    rng = np.random.default_rng(6)
    joint = rng.dirichlet(np.ones(36)).reshape(3, 3, 2, 2)
    pair, triple = np.zeros((3, 2), dtype=bool), np.zeros((3, 2, 2), dtype=bool)
    pair[0, 1] = triple[2, 1] = True  # the triple bars a pair as well: no level of its last attribute is left
    triple[1, 0, 0] = True
    joint[0, :, 1] = 0
    joint[:, 2, 1] = 0
    joint[:, 1, 0, 0] = 0
    joint /= joint.sum()
    zeros = (((0, 2), pair), ((1, 2, 3), triple))
    chain, _ = solve_rows(targets_of(joint, all_of(2, 4), zeros=zeros))
    fitted = table_of(chain)
    assert fitted.sum() == pytest.approx(1.0, abs=1e-12)
    rows = counted(next(chain.sample(10_000, np.random.default_rng(0))), joint.shape)
    for table in (fitted, rows):
        assert table[0, :, 1].sum() == table[:, 2, 1].sum() == table[:, 1, 0, 0].sum() == 0
    assert distance(rows.sum(axis=(1, 3)), joint.sum(axis=(1, 3))) < 0.005


def test_attributes_outside_every_table_are_independent():
    """A workload may leave pairs out, and attributes alone; what it does not tie together stays independent."""
    rng = np.random.default_rng(7)
    joint = rng.dirichlet(np.ones(24)).reshape(2, 3, 4)
    chain, _ = solve_rows(targets_of(joint, [(0, 2)]))
    product = joint.sum(axis=1)[:, None, :] * joint.sum(axis=(0, 2))[None, :, None]
    assert distance(table_of(chain), product) < 2e-4


def test_a_function_of_two_others_is_no_obstacle():
    """Copies and constants make the system singular; the tables are met all the same."""
    rng = np.random.default_rng(8)
    codes = rng.integers(3, size=(5_000, 2))
    data = np.stack(
        [codes[:, 0], codes[:, 0], codes[:, 1], codes[:, 0] * 3 + codes[:, 1], np.zeros(5_000, int)], axis=1
    )
    joint = counted(data, (3, 3, 3, 9, 2))
    chain, fit = solve_rows(targets_of(joint, all_of(2, 5)))
    rows = counted(next(chain.sample(5_000, np.random.default_rng(0))), joint.shape)
    for away in all_of(3, 5):
        assert distance(rows.sum(axis=away), joint.sum(axis=away)) < 0.01
    assert fit.converged


def test_contradictory_tables_are_reported():
    """Three pair tables that no joint has (each says 'different', for three binary attributes) do not count as converged."""
    different = np.array([[0.0, 0.5], [0.5, 0.0]])
    half = np.array([0.5, 0.5])
    tables = {(0,): half, (1,): half, (2,): half, (0, 1): different, (0, 2): different, (1, 2): different}
    _, fit = solve_rows(Targets((2, 2, 2), 1_000.0, tables, dict.fromkeys(tables, 0.0)))
    assert not fit.converged
    assert max(fit.residuals.values()) > 0.1


def test_the_seed_decides_everything():
    """The same seed gives the same chain; another seed another population."""
    joint = np.random.default_rng(9).dirichlet(np.ones(60)).reshape(3, 4, 5)
    targets = targets_of(joint, all_of(2, 3))
    one, same, other = (solve_rows(targets, population=2_000, seed=seed)[0].to_arrays() for seed in (1, 1, 2))
    assert all(np.array_equal(one[name], same[name]) for name in one)
    assert not np.array_equal(one["factors"], other["factors"])


def test_the_population_follows_the_total_within_bounds():
    """Small and large data sets get a population of bounded size; a population of no rows is refused."""
    joint = np.full((2, 2), 0.25)
    assert solve_rows(targets_of(joint, [(0, 1)], total=10.0))[1].population == 16_384
    assert solve_rows(targets_of(joint, [(0, 1)], total=1e9))[1].population == 32_768
    with pytest.raises(ParameterError, match="population \\(0\\) must be"):
        solve_rows(targets_of(joint, [(0, 1)]), population=0)
