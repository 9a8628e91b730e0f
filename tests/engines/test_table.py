from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcipher.engines.table import solve_table
from dpcipher.engines.targets import Targets
from dpcipher.errors import ParameterError, SizeError, SolveError, WorkloadError
from dpcipher.tables.domain import Axes
from dpcipher.tables.table import margin

SHAPES = st.lists(st.integers(1, 4), min_size=2, max_size=5).map(tuple)
SEEDS = st.integers(0, 10**6)


def exact_targets(joint: np.ndarray, sets: list[Axes], zeros: tuple = ()) -> Targets:
    """The exact tables of a joint on some sets of attributes, and its one-way tables."""
    every = tuple(range(joint.ndim))
    wanted = sorted({*sets, *((axis,) for axis in every)})
    tables = {axes: margin(joint, every, axes) for axes in wanted}
    return Targets(joint.shape, 1000.0, tables, dict.fromkeys(wanted, 0.0), zeros)


def random_joint(shape: tuple[int, ...], seed: int, weight: float = 1.0) -> np.ndarray:
    """A joint drawn from a symmetric Dirichlet distribution."""
    return np.random.default_rng(seed).dirichlet(np.full(int(np.prod(shape)), weight)).reshape(shape)


def sets_of(n_attrs: int, order: int) -> list[Axes]:
    """All sets of attributes of an order."""
    return list(combinations(range(n_attrs), order))


def worst_gap(table: np.ndarray, targets: Targets) -> float:
    """The largest misfit of any cell of any table."""
    every = tuple(range(table.ndim))
    return max(
        float(np.abs(margin(table, every, axes) - goal).max()) for axes, goal in targets.tables.items()
    )


def max_entropy(targets: Targets, sweeps: int = 3000) -> np.ndarray:
    """The max-entropy table, by raking a uniform table goal by goal."""
    table = np.full(targets.shape, 1 / np.prod(targets.shape))
    every = tuple(range(table.ndim))
    for _ in range(sweeps):
        before = table.copy()
        for axes, goal in targets.tables.items():
            now = margin(table, every, axes)
            factor = np.divide(goal, now, out=np.zeros_like(now), where=now > 0)
            table = table * factor.reshape([targets.shape[axis] if axis in axes else 1 for axis in every])
        if np.abs(table - before).max() < 1e-12:
            break
    return table


# exactness


@settings(max_examples=40, deadline=None)
@given(SHAPES, SEEDS, st.integers(1, 3))
def test_independence_is_exact(shape: tuple[int, ...], seed: int, order: int) -> None:
    """A product of one-way tables comes back, whatever the workload."""
    rng = np.random.default_rng(seed)
    joint = np.ones(())
    for size in shape:
        joint = joint[..., None] * rng.dirichlet(np.ones(size))
    solved, fit = solve_table(exact_targets(joint, sets_of(len(shape), min(order, len(shape)))))
    assert np.abs(solved - joint).max() < 1e-9
    assert fit.converged
    assert fit.sweeps == 0


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 5), SEEDS, st.booleans())
def test_every_tree_is_exact(n_attrs: int, seed: int, only_edges: bool) -> None:
    """A tree-shaped dependence comes back from all pairs, and from its edges alone, attributes in any order."""
    rng = np.random.default_rng(seed)
    shape = [int(k) for k in rng.integers(2, 5, size=n_attrs)]
    joint, edges = rng.dirichlet(np.ones(shape[0])), []
    for child in range(1, n_attrs):
        parent = int(rng.integers(child))
        edges.append((parent, child))
        rows = rng.dirichlet(np.ones(shape[child]), size=shape[parent])
        joint = joint[..., None] * rows.reshape(
            [*(shape[a] if a == parent else 1 for a in range(child)), shape[child]]
        )
    place = [int(p) for p in rng.permutation(n_attrs)]
    joint = np.moveaxis(joint, range(n_attrs), place)
    moved = [tuple(sorted((place[a], place[b]))) for a, b in edges]
    solved, fit = solve_table(exact_targets(joint, moved if only_edges else sets_of(n_attrs, 2)))  # type: ignore[arg-type]
    assert np.abs(solved - joint).max() < 2e-6
    assert fit.converged


def test_the_full_table_comes_back() -> None:
    """A workload that holds the whole table is solved by the table itself."""
    joint = random_joint((3, 2, 4), 8)
    solved, _ = solve_table(exact_targets(joint, [(0, 1, 2)]))
    assert np.abs(solved - joint).max() < 1e-8


# meeting the tables


@settings(max_examples=30, deadline=None)
@given(SHAPES, SEEDS, st.integers(2, 3))
def test_consistent_tables_are_met(shape: tuple[int, ...], seed: int, order: int) -> None:
    """Every cell of every table is met to tolerance, and the result is a distribution."""
    targets = exact_targets(random_joint(shape, seed), sets_of(len(shape), min(order, len(shape))))
    solved, fit = solve_table(targets, sweeps=1000)
    assert solved.min() >= 0
    assert solved.sum() == pytest.approx(1, abs=1e-5)
    assert worst_gap(solved, targets) < 2e-4  # raking toward an empty cell gains only as 1 / sweeps
    assert fit.converged


@pytest.mark.parametrize(
    "sets", [[(0, 1), (1, 2), (2, 3)], [(0, 1, 2), (2, 3)], [(0, 3), (1, 2)], [(0, 1, 3), (0, 2, 3)]]
)
def test_mixed_workloads_are_met(sets: list[Axes]) -> None:
    """Tables of several orders, and pairs that were never measured, are no obstacle."""
    targets = exact_targets(random_joint((2, 3, 3, 2), 5), sets)
    solved, fit = solve_table(targets)
    assert worst_gap(solved, targets) < 1e-5
    assert fit.converged


def test_unlinked_groups_come_out_independent() -> None:
    """With Q = {03, 12} the joint is the product of the two tables."""
    joint = random_joint((2, 3, 3, 2), 5)
    solved, _ = solve_table(exact_targets(joint, [(0, 3), (1, 2)]))
    product = np.einsum("ad,bc->abcd", joint.sum(axis=(1, 2)), joint.sum(axis=(0, 3)))
    assert np.abs(solved - product).max() < 1e-9


def test_the_result_is_as_good_as_max_entropy() -> None:
    """From noiseless pairs of sampled tables the 3-way error is within .003 of max-entropy's, on the mean of ten tables."""
    ours, theirs = [], []
    for seed in range(10):
        truth = (
            np.random.default_rng(seed)
            .multinomial(500, random_joint((2, 2, 3, 3), seed, 2.0).ravel())
            .reshape(2, 2, 3, 3)
            / 500
        )
        targets = exact_targets(truth, sets_of(4, 2))
        for table, into in ((solve_table(targets)[0], ours), (max_entropy(targets), theirs)):
            every = tuple(range(4))
            into.append(
                np.mean([np.abs(margin(table - truth, every, axes)).sum() / 2 for axes in sets_of(4, 3)])
            )
    assert np.mean(ours) < np.mean(theirs) + 0.003


@settings(max_examples=25, deadline=None)
@given(SEEDS, st.sampled_from([0.3, 1.0, 5.0]))
def test_the_order_of_levels_does_not_matter(seed: int, weight: float) -> None:
    """Permuting levels before solving is permuting them afterwards: no level is a reference."""
    joint = random_joint((3, 2, 4, 2), seed, weight)
    turn = np.ix_(*[np.random.default_rng(seed).permutation(size) for size in joint.shape])
    plain, _ = solve_table(exact_targets(joint, sets_of(4, 2)))
    turned, _ = solve_table(exact_targets(joint[turn], sets_of(4, 2)))
    assert np.abs(plain[turn] - turned).max() < 1e-7


def test_structural_zeros_stay_empty() -> None:
    """Cells that cannot hold a row have no probability, also where no measured table shows it, and the tables are met."""
    mask = np.zeros((3, 2, 2), dtype=bool)
    mask[0, 1, 1] = mask[2, 0, 1] = True
    joint = np.where(mask, 0.0, random_joint((3, 2, 2), 4))[..., None] * np.array([0.3, 0.7])
    joint /= joint.sum()
    targets = exact_targets(joint, sets_of(4, 2), zeros=(((0, 1, 2), mask),))
    for order in (None, (2, 3, 1, 0)):
        solved, fit = solve_table(targets, order=order)
        assert not solved[mask].any()
        assert worst_gap(solved, targets) < 1e-5
        assert fit.converged


def test_a_large_table_is_solved_by_blocks() -> None:
    """A table beyond the size for direct raking meets its pairs as well."""
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 4, size=(2000, 9)) // (1 + (rng.random((2000, 1)) < 0.5))
    every = sets_of(9, 2) + sets_of(9, 1)
    tables = {axes: np.zeros([4] * len(axes)) for axes in every}
    for axes, table in tables.items():
        np.add.at(table, tuple(rows[:, axes].T), 1 / 2000)
    targets = Targets((4,) * 9, 2000.0, tables, dict.fromkeys(every, 0.0))
    solved, fit = solve_table(targets)
    assert fit.converged
    assert fit.sweeps > 0
    assert worst_gap(solved, targets) < 1e-5


# health and refusals


def test_residuals_are_the_misfit_of_the_returned_table() -> None:
    """Each table's residual is its root mean square cell misfit, under the caller's axis numbers; no convergence is not hidden."""
    joint, other = random_joint((2, 3, 4), 1), random_joint((2, 3, 4), 2)
    contradictory = dict(exact_targets(joint, sets_of(3, 2)).tables)
    contradictory[(0, 2)] = other.sum(axis=1)
    targets = Targets((2, 3, 4), 100.0, contradictory, dict.fromkeys(contradictory, 0.0))
    solved, fit = solve_table(targets)
    assert not fit.converged
    for axes, goal in contradictory.items():
        rms = np.sqrt(np.mean((margin(solved, (0, 1, 2), axes) - goal) ** 2))
        assert fit.residuals[axes] == pytest.approx(rms, abs=1e-12)


def test_the_order_found_is_reported_and_any_order_may_be_asked_for() -> None:
    """An order that is no permutation of the attributes is refused with the fix."""
    targets = exact_targets(random_joint((2, 3, 2), 1), sets_of(3, 2))
    assert sorted(solve_table(targets)[1].order) == [0, 1, 2]
    assert solve_table(targets, order=(2, 0, 1))[1].order == (2, 0, 1)
    with pytest.raises(ParameterError, match="try order=None"):
        solve_table(targets, order=(0, 0, 1))


def test_too_large_a_table_is_refused_before_any_work() -> None:
    """The message names the size and the engine that can."""
    tables = {(axis,): np.full(10, 0.1) for axis in range(12)}
    with pytest.raises(SizeError, match=r"1,000,000,000,000 cells.*engine='rows'"):
        solve_table(Targets((10,) * 12, 1.0, tables, {}))


def test_an_attribute_without_a_table_is_refused() -> None:
    """Every attribute must be in some table."""
    with pytest.raises(WorkloadError, match="none holds number 1"):
        solve_table(Targets((2, 2), 1.0, {(0,): np.array([0.5, 0.5])}, {}))


def test_zeros_that_contradict_the_tables_are_reported() -> None:
    """Probability that structural zeros forbid is not invented elsewhere unseen: the result is a distribution, marked as unmet."""
    joint = random_joint((2, 2), 1)
    half, every = np.array([[True, False], [False, False]]), np.ones((2, 2), dtype=bool)
    solved, fit = solve_table(exact_targets(joint, [(0, 1)], zeros=(((0, 1), half),)))
    assert solved[0, 0] == 0
    assert solved.sum() == pytest.approx(1)
    assert not fit.converged
    with pytest.raises(SolveError, match="structural zeros"):
        solve_table(exact_targets(joint, [(0, 1)], zeros=(((0, 1), every),)))


def test_tables_without_a_common_cell_are_not_blamed_on_zeros_that_are_not_there() -> None:
    """Noisy tables may be empty in contradictory places: the message says so, and what to do."""
    same, other = np.eye(2) / 2, np.eye(2)[::-1] / 2
    tables = {(0, 1): same, (1, 2): same, (0, 2): other, **{(axis,): np.full(2, 0.5) for axis in range(3)}}
    with pytest.raises(SolveError, match=r"contradict one another.*engine='rows'"):
        solve_table(Targets((2, 2, 2), 100.0, tables, dict.fromkeys(tables, 0.1)))
