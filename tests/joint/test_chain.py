"""The chain against its own enumeration: probabilities, samples, conditions, zeros, files."""

import itertools

import numpy as np
import pytest

from dpcipher.errors import ConditionError, JointError, SizeError
from dpcipher.joint import chain as chain_module
from dpcipher.joint.chain import Chain
from dpcipher.joint.link import Link

SHAPE = (2, 3, 4, 2)
ORDER = (2, 0, 3, 1)


def every_cell(shape=SHAPE):
    """The codes of every cell, in C order."""
    return np.stack(np.unravel_index(np.arange(np.prod(shape)), shape), axis=1).astype(np.int32)


def random_link(attribute, groups, rng, barred=()):
    """A link with factors drawn at random."""
    levels = SHAPE[attribute]
    sizes = tuple(int(np.prod([SHAPE[axis] for axis in group])) for group in groups)
    base = rng.dirichlet(np.full(levels, 3.0))
    factors = rng.normal(0, 0.7, (sum(sizes), levels))
    return Link(attribute, groups, sizes, base, factors, np.tile(base, (sum(sizes), 1)), barred)


@pytest.fixture
def chain():
    """A chain with a pair of groups, a tuple group, and a structural zero."""
    rng = np.random.default_rng(3)
    mask = np.zeros((4, 2), dtype=bool)
    mask[1, 0] = True
    return Chain(
        SHAPE,
        (
            random_link(2, (), rng),
            random_link(0, ((2,),), rng),
            random_link(3, ((0,), (2,)), rng, barred=(((2,), mask),)),
            random_link(1, ((0, 2), (3,)), rng),
        ),
    )


def by_hand(chain):
    """The probability of every cell, from the formula in the docstring of Link, cell by cell."""
    table = np.zeros(SHAPE)
    for cell in itertools.product(*map(range, SHAPE)):
        probability = 1.0
        for link in chain.links:
            start, exponent = 0, np.zeros(SHAPE[link.attribute])
            for group, size in zip(link.groups, link.sizes, strict=True):
                row = start + int(np.ravel_multi_index([cell[a] for a in group], [SHAPE[a] for a in group]))
                exponent += link.factors[row]
                start += size
            values = link.base * np.exp(exponent)
            for group, mask in link.barred:
                values[
                    mask[int(np.ravel_multi_index([cell[a] for a in group], [SHAPE[a] for a in group]))]
                ] = 0
            probability *= (values / values.sum())[cell[link.attribute]]
        table[cell] = probability
    return table


def frequencies(codes):
    """The share of rows in every cell."""
    return np.bincount(np.ravel_multi_index(codes.T, SHAPE), minlength=np.prod(SHAPE)).reshape(SHAPE) / len(
        codes
    )


def distance(one, other):
    """Total variation distance."""
    return 0.5 * np.abs(one - other).sum()


def test_log_prob_is_the_product_of_the_conditionals(chain):
    """The exact probabilities equal those computed cell by cell from the formula, and sum to one."""
    exact = by_hand(chain)
    fast = np.exp(chain.log_prob(every_cell())).reshape(SHAPE)
    assert fast == pytest.approx(exact, abs=1e-12)
    assert fast.sum() == pytest.approx(1.0, abs=1e-12)


def test_independent_rows_follow_log_prob(chain):
    """A chi-square of 200,000 independent rows against the exact probabilities is unremarkable."""
    exact = by_hand(chain).ravel()
    rows = np.concatenate(list(chain.sample(200_000, np.random.default_rng(0), independent=True)))
    counts = frequencies(rows).ravel() * len(rows)
    some = exact > 0
    chi2 = ((counts - len(rows) * exact)[some] ** 2 / (len(rows) * exact[some])).sum()
    assert counts[~some].sum() == 0
    assert 15 < chi2 < 85  # about 41 degrees of freedom


def test_low_variance_rows_beat_independent_rows_on_every_fitted_pair(chain):
    """With goals equal to the chain's own conditionals, low-variance rows match the pair tables several times closer."""
    chain = with_own_goals(chain)
    exact = by_hand(chain)
    spread_rows = next(chain.sample(5_000, np.random.default_rng(1)))
    plain_rows = next(chain.sample(5_000, np.random.default_rng(1), independent=True))
    for axes in [(0, 2), (0, 3), (2, 3), (1, 3)]:
        away = tuple(axis for axis in range(4) if axis not in axes)
        target = exact.sum(axis=away)
        assert distance(frequencies(spread_rows).sum(axis=away), target) < 0.002
        assert distance(frequencies(plain_rows).sum(axis=away), target) > 0.004


def with_own_goals(chain):
    """The same chain, whose goals are the conditional tables that it implies."""
    exact, links = by_hand(chain), []
    for link in chain.links:
        goals = []
        for group in link.groups:
            away = tuple(axis for axis in range(4) if axis not in (*group, link.attribute))
            kept = sorted((*group, link.attribute))
            table = np.moveaxis(exact.sum(axis=away), kept.index(link.attribute), -1).reshape(
                -1, SHAPE[link.attribute]
            )
            goals.append(table / table.sum(axis=1, keepdims=True))
        stacked = np.concatenate(goals) if goals else link.goals
        links.append(
            Link(
                link.attribute,
                link.groups,
                link.sizes,
                link.base,
                link.factors,
                stacked,
                link.barred,
            )
        )
    return Chain(SHAPE, tuple(links))


def test_structural_zeros_are_never_drawn(chain):
    """A barred cell has probability zero and does not occur in any kind of sample."""
    barred = every_cell()
    barred = barred[(barred[:, 2] == 1) & (barred[:, 3] == 0)]
    assert np.all(np.isneginf(chain.log_prob(barred)))
    for independent in (False, True):
        rows = next(chain.sample(20_000, np.random.default_rng(2), independent=independent))
        assert not ((rows[:, 2] == 1) & (rows[:, 3] == 0)).any()


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize(
    "allowed",
    [
        {2: [0, 0, 1, 0]},
        {2: [1, 0, 1, 0], 0: [1, 0]},
        {1: [0, 1, 0]},
        {0: [0, 1], 1: [1, 0, 1]},
        {3: [1, 0], 1: [0, 0, 1], 2: [1, 1, 1, 0]},
    ],
)
def test_conditional_rows_follow_the_exact_conditional(chain, allowed, independent):
    """Rows under a condition agree with the enumerated chain, restricted and scaled, whatever the place of the attributes."""
    masks = {axis: np.array(levels, dtype=bool) for axis, levels in allowed.items()}
    exact = by_hand(chain)
    for axis, mask in masks.items():
        exact = exact * mask.reshape([-1 if a == axis else 1 for a in range(4)])
    codes, effective = chain.sample_given(40_000, np.random.default_rng(5), masks, independent=independent)
    assert codes.shape == (40_000, 4)
    assert distance(frequencies(codes), exact / exact.sum()) < 0.015
    assert 10_000 < effective <= 40_000


def test_fixing_the_first_attribute_costs_no_effective_rows(chain):
    """A condition on the head of the order is exact: every row counts in full."""
    codes, effective = chain.sample_given(
        500, np.random.default_rng(0), {2: np.array([False, True, False, False])}
    )
    assert (codes[:, 2] == 1).all()
    assert effective == 500


def test_an_uneven_condition_reports_fewer_effective_rows():
    """When a late condition singles out one row in a hundred, the effective number says so."""
    first = Link(0, (), (), np.array([0.99, 0.01]), np.zeros((0, 2)), np.zeros((0, 2)))
    copies = np.array([[0.0, -40.0], [-40.0, 0.0]])
    second = Link(1, ((0,),), (2,), np.array([0.5, 0.5]), copies, np.eye(2))
    codes, effective = Chain((2, 2), (first, second)).sample_given(
        1_000, np.random.default_rng(0), {1: np.array([False, True])}
    )
    assert (codes == 1).all()
    assert effective == pytest.approx(0.01 * 4_000, abs=2)


def test_a_condition_without_probability_is_refused(chain):
    """No level allowed, or only a structural zero: a ConditionError, which is also a ValueError."""
    with pytest.raises(ConditionError, match="must have some probability"):
        next(chain.sample(10, np.random.default_rng(0), allowed={0: np.zeros(2, dtype=bool)}))
    impossible = {2: np.array([False, True, False, False]), 3: np.array([True, False])}
    with pytest.raises(ValueError, match="allow more levels"):
        chain.sample_given(10, np.random.default_rng(0), impossible)


def test_a_dead_end_is_replaced_by_a_living_row():
    """Rows that no level may follow give way to copies of rows that can go on."""
    base = np.array([0.5, 0.5])
    nothing = np.zeros((0, 2))
    dead = np.array([[True, True], [False, False]])
    first = Link(0, (), (), base, nothing, nothing)
    second = Link(1, (), (), base, nothing, nothing, (((0,), dead),))
    rows = next(Chain((2, 2), (first, second)).sample(1_000, np.random.default_rng(0)))
    assert (rows[:, 0] == 1).all()
    assert abs(rows[:, 1].mean() - 0.5) < 0.02


@pytest.mark.parametrize(
    ("steep", "barred"),
    [(60.0, False), (95.0, False), (500.0, False), (60.0, True), (90.0, True), (95.0, True)],
)
def test_chances_beyond_single_precision_are_not_lost(steep, barred):
    """A level that is sure beside one that factors favour by far but that has no rows, or may have none."""
    first = Link(0, (), (), np.array([0.5, 0.5]), np.zeros((0, 2)), np.zeros((0, 2)))
    base = np.array([0.5, 0.5]) if barred else np.array([1.0, 0.0])
    factors, mask = np.array([[-steep, 0.0], [-steep, 0.0]]), np.array([[False, True]] * 2)
    goals, zeros = np.array([[1.0, 0.0]] * 2), (((0,), mask),) if barred else ()
    both = Chain((2, 2), (first, Link(1, ((0,),), (2,), base, factors, goals, zeros)))
    for allowed in (None, {1: np.array([True, False])}):
        rows = np.concatenate(list(both.sample(1_000, np.random.default_rng(0), allowed=allowed)))
        assert (rows[:, 1] == 0).all()
        assert rows[:, 0].mean() == pytest.approx(0.5, abs=0.01)


def test_chunks_are_bounded_and_add_up(chain, monkeypatch):
    """No chunk exceeds its size or the workspace, and together they are the rows asked for."""
    sizes = [len(part) for part in chain.sample(1_003, np.random.default_rng(0), chunk=100)]
    assert sum(sizes) == 1_003
    assert max(sizes) <= 100
    assert max(sizes) - min(sizes) <= 1
    monkeypatch.setattr(chain_module, "_WORKSPACE", 400)
    assert max(len(part) for part in chain.sample(1_000, np.random.default_rng(0))) <= 100


def test_sampling_repeats_with_its_seed_and_changes_without(chain):
    """The same generator gives the same rows; another gives others."""
    one, same, other = (next(chain.sample(200, np.random.default_rng(seed))) for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_project_agrees_with_the_enumerated_chain(chain):
    """Any table is within sampling distance of the exact one, and tables agree with one another exactly."""
    exact = by_hand(chain)
    chain = with_own_goals(chain)
    assert chain.project((0, 2)) == pytest.approx(exact.sum(axis=(1, 3)), abs=5e-4)
    assert chain.project((0, 1, 3)) == pytest.approx(exact.sum(axis=2), abs=5e-3)
    assert chain.project((0, 1, 3)).sum(axis=1) == pytest.approx(chain.project((0, 3)), abs=1e-12)


def test_project_refuses_a_table_that_does_not_fit(chain, monkeypatch):
    """The size is judged before anything is counted."""
    monkeypatch.setattr(chain_module, "MAX_CELLS", 10)
    with pytest.raises(SizeError, match="span 12 cells"):
        chain.project((1, 2))


def test_arrays_hold_the_whole_chain(chain):
    """A chain rebuilt from its arrays gives the same probabilities and the same rows."""
    again = Chain.from_arrays(chain.to_arrays())
    assert again.order == ORDER
    assert np.array_equal(again.log_prob(every_cell()), chain.log_prob(every_cell()))
    ours, theirs = (next(c.sample(300, np.random.default_rng(7))) for c in (chain, again))
    assert np.array_equal(ours, theirs)
    assert all(array.dtype != object for array in chain.to_arrays().values())


@pytest.mark.parametrize("name", ["shape", "order", "group_axes", "factors", "goals", "bar_masks", "base"])
def test_damaged_arrays_are_refused(chain, name):
    """An array that is cut short or missing is a JointError, never a wrong chain."""
    arrays = chain.to_arrays()
    with pytest.raises(JointError):
        Chain.from_arrays({**arrays, name: arrays[name][:-1]})
    del arrays[name]
    with pytest.raises(JointError):
        Chain.from_arrays(arrays)


def test_an_order_must_name_every_attribute():
    """Two links for one attribute are refused at birth."""
    link = Link(0, (), (), np.array([1.0]), np.zeros((0, 1)), np.zeros((0, 1)), np.zeros((0, 1)))
    with pytest.raises(JointError, match="must name every attribute once"):
        Chain((1, 1), (link, link))
