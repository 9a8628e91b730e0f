"""Denoising: shrinkage, non-negativity, agreement."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize

import dpcipher as dc
from dpcipher.engines.denoise import interactions as shapes
from dpcipher.engines.denoise.denoise import denoise
from dpcipher.engines.denoise.interactions import (
    CLEAR,
    GRID,
    NOISY,
    PRIOR_TABLES,
    STEPS,
    Deviations,
    proportional_basis,
    shrink,
    sizes,
)
from dpcipher.engines.denoise.joint_fit import TAUS, _equations, _path, fit_joint
from dpcipher.engines.denoise.one_way import denoise_one_way, posterior, smooth
from dpcipher.errors import SolveError
from dpcipher.privacy.draws import SeededNoise
from dpcipher.tables.measurement import Noise
from dpcipher.tables.raking import Goal, nearest, rake_stack
from dpcipher.tables.table import count_rows
from release.measured import noisy, reconcile, runs

SHAPE = (3, 4, 2, 3)
WORKLOADS = {
    "one-way": list(combinations(range(4), 1)),
    "pairs": list(combinations(range(4), 2)),
    "triples": list(combinations(range(4), 3)),
    "the full table": [(0, 1, 2, 3)],
    "mixed orders": [(0, 1, 2), (2, 3), (1, 3)],
}
ZEROS = (((0, 1), np.array([[True, False, False, False], [False, False, True, True], [False] * 4])),)


def margin(table, keep):
    """The margin of a full joint table."""
    return table.sum(axis=tuple(axis for axis in range(table.ndim) if axis not in keep))


def joint_table(rng, shape=SHAPE, rows=2000, zeros=()):
    """A sample of rows from a random joint distribution with uneven margins."""
    p = rng.dirichlet(np.full(int(np.prod(shape)), 0.7)).reshape(shape)
    for axes, mask in zeros:
        p = p * ~mask.reshape([shape[axis] if axis in axes else 1 for axis in range(len(shape))])
    return rng.multinomial(rows, p.ravel() / p.sum()).reshape(shape).astype(float)


def measure(rng, joint, workload, scale):
    """Laplace noise of the given scale on every table; 0 = exact."""
    return [
        noisy(
            axes,
            margin(joint, axes) + rng.laplace(0, scale, margin(joint, axes).shape) * (scale > 0),
            2.0 * scale**2,
        )
        for axes in workload
    ]


def tvd(tables, joint):
    """Mean total variation distance of the tables from the truth."""
    return np.mean(
        [0.5 * np.abs(table - margin(joint, axes) / joint.sum()).sum() for axes, table in tables.items()]
    )


def clipped(result, sets):
    """The same tables without shrinkage: negative counts set to zero, and scaled to one."""
    tables = {axes: np.maximum(result.table(axes), 0.0) for axes in sets}
    return {axes: table / table.sum() for axes, table in tables.items()}


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)
def test_without_noise_it_is_the_identity(workload):
    """Exact tables come back as they are, with every one-way table."""
    joint = joint_table(np.random.default_rng(1))
    targets = denoise(reconcile(SHAPE, measure(np.random.default_rng(0), joint, workload, 0.0)))
    assert {(axis,) for axis in range(4)} <= set(targets.tables)
    assert set(targets.sigma) == set(targets.tables)
    assert set(targets.sigma.values()) == {0.0}
    for axes, table in targets.tables.items():
        np.testing.assert_allclose(table, margin(joint, axes) / joint.sum(), atol=1e-9)


@pytest.mark.parametrize("zeros", [(), ZEROS], ids=["complete", "zeros"])
@pytest.mark.parametrize("scale", [3.0, 60.0])
@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)
def test_tables_are_probabilities_that_agree(workload, scale, zeros):
    """Tables are non-negative, sum to one, agree on what they share, and are zero where no row can be."""
    rng = np.random.default_rng(4)
    joint = joint_table(rng, zeros=zeros)
    targets = denoise(reconcile(SHAPE, measure(rng, joint, workload, scale), zeros=zeros))
    for axes, table in targets.tables.items():
        assert table.min() >= 0
        assert table.sum() == pytest.approx(1)
        if set(axes) >= {0, 1}:
            impossible = np.any([mask for _, mask in zeros], axis=0) if zeros else np.zeros((3, 4), bool)
            inside = table.sum(axis=tuple(range(2, table.ndim)))
            assert np.all(inside[impossible] == 0)
    for one, other in combinations(targets.tables, 2):
        both = tuple(sorted(set(one) & set(other)))
        left = targets.tables[one].sum(axis=tuple(i for i, axis in enumerate(one) if axis not in both))
        right = targets.tables[other].sum(axis=tuple(i for i, axis in enumerate(other) if axis not in both))
        np.testing.assert_allclose(left, right, atol=2e-4)


@pytest.mark.parametrize("scale", [0.0, 40.0, 300.0])
def test_a_column_of_one_level_does_no_harm(scale):
    """A table with such a column holds no interaction; it is the product of the others, and never negative."""
    rng = np.random.default_rng(6)
    joint = joint_table(rng, shape=(1, 2, 3), rows=500)
    measured = measure(rng, joint, list(combinations(range(3), 2)), scale)
    targets = denoise(reconcile((1, 2, 3), measured, total=500.0))
    for axis in (1, 2):
        np.testing.assert_allclose(targets.tables[(0, axis)][0], targets.tables[(axis,)], atol=1e-9)
        assert targets.tables[(0, axis)].min() >= 0


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize(("scale", "bound"), [(0.5, 1.02), (5.0, 1.02), (30.0, 1.02), (200.0, 0.75)])
def test_it_helps_where_noise_dominates_and_never_hurts(order, scale, bound):
    """Pooled over releases, the error is at most 1.02 of the unshrunk one, and far less when the noise is large."""
    rng = np.random.default_rng(12)
    shrunk, plain = [], []
    for _ in range(8):
        joint = joint_table(rng)
        result = reconcile(SHAPE, measure(rng, joint, list(combinations(range(4), order)), scale))
        shrunk.append(tvd(denoise(result).tables, joint))
        plain.append(tvd(clipped(result, denoise(result).tables), joint))
    assert np.mean(shrunk) <= bound * np.mean(plain)


def test_independent_columns_come_out_nearly_independent():
    """Where the truth is a product, most of the noise in the pair tables is removed."""
    rng = np.random.default_rng(2)
    p = [rng.dirichlet(np.full(k, 3.0)) for k in (5, 6, 4)]
    joint = np.einsum("i,j,k->ijk", *p) * 5000
    result = reconcile((5, 6, 4), measure(rng, joint, list(combinations(range(3), 2)), 60.0))
    pairs = {axes: table for axes, table in denoise(result).tables.items() if len(axes) == 2}
    rough = clipped(result, pairs)
    assert tvd(pairs, joint) < 0.6 * tvd(rough, joint)


def dense_shrink(counts, noise, p, total):
    """The same posterior mean from full covariance matrices and a plain EM, for one table."""
    levels = counts.shape
    centring = [np.eye(k) - 1 / k for k in levels]
    spaces = [
        np.kron(*[c / k for c, k in zip(centring, levels, strict=True)]),
        np.kron(*[np.diag(q) - np.outer(q, q) for q in p]),
    ]
    free = int(np.prod([k - 1 for k in levels]))
    contrasts = np.linalg.svd(np.kron(*centring))[0][:, :free]
    z = contrasts.T @ counts.ravel()
    evidence, means, freedoms = [], [], []
    for space in spaces:
        for g in sizes(2, free, total):
            prior = g * total**2 / free * contrasts.T @ space @ contrasts
            whole = prior + noise * np.eye(free)
            evidence.append(-0.5 * (np.linalg.slogdet(whole)[1] + z @ np.linalg.solve(whole, z)))
            means.append(contrasts @ prior @ np.linalg.solve(whole, z))
            freedoms.append(np.trace(np.linalg.solve(whole, prior)) / free)
    likelihood, weights = np.exp(np.array(evidence) - max(evidence)), np.full(2 * GRID, 0.5 / GRID)
    for _ in range(STEPS):
        belief = likelihood * weights / (likelihood @ weights)
        weights = (belief + PRIOR_TABLES / len(weights)) / (1 + PRIOR_TABLES)
    belief = likelihood * weights / (likelihood @ weights)
    trust = np.clip((CLEAR - belief @ np.array(freedoms)) / (CLEAR - NOISY), 0, 1)
    return trust * (belief @ np.array(means)).reshape(levels) + (1 - trust) * counts


def deviations(axes, counts, variance):
    """Those of one table."""
    return Deviations([axes], counts[None], np.array([variance]))


@pytest.mark.parametrize("noise", [10.0, 1000.0, 1e5])
def test_shrinkage_is_the_exact_posterior_mean(noise):
    """The product-basis arithmetic equals dense Gaussian algebra, in noisy, middling and clear tables."""
    rng = np.random.default_rng(6)
    p = [rng.dirichlet(np.ones(k)) for k in (3, 4)]
    counts = rng.normal(size=(3, 4)) * 50
    counts = counts - counts.mean(axis=0) - counts.mean(axis=1, keepdims=True) + counts.mean()
    ((got,),) = shrink([deviations((2, 5), counts, noise)], {2: p[0], 5: p[1]}, 1000.0)
    np.testing.assert_allclose(got, dense_shrink(counts, noise, p, 1000.0), atol=1e-8)
    np.testing.assert_allclose(got.sum(axis=0), 0, atol=1e-9)


def test_transposed_tables_give_transposed_answers():
    """A release with both orders of axes."""
    rng = np.random.default_rng(3)
    p = {0: np.array([0.2, 0.8]), 1: np.array([0.5, 0.3, 0.2]), 2: np.array([0.2, 0.8])}
    counts = rng.normal(size=(2, 3)) * 40
    counts = counts - counts.mean(axis=0) - counts.mean(axis=1, keepdims=True) + counts.mean()
    parts = [deviations((0, 1), counts, 500.0), deviations((1, 2), counts.T, 500.0)]
    (one,), (other,) = shrink(parts, p, 400.0)
    np.testing.assert_allclose(one, other.T, atol=1e-10)


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("zeros", [False, True])
def test_tables_of_one_shape_at_once_are_the_same_as_one_by_one(order, zeros, monkeypatch):
    """With parts of one table everything is done table by table; some are exact, some have negative cells."""
    rng, shape = np.random.default_rng(8), (2, 3, 2, 3, 2, 3, 2, 3, 7, 7, 11)
    codes = np.minimum(rng.integers(0, shape, (400, len(shape))), rng.integers(0, 3, (400, 1)))
    masks = (((0, 1), np.array([[False, True, False], [False] * 3])),) if zeros else ()
    codes[:, 1] *= (codes[:, 1] != 1) | (codes[:, 0] != 0) | (not zeros)
    tables = [
        noisy(axes, counts + scale * rng.normal(size=counts.shape), scale**2)
        for number, axes in enumerate(combinations(range(8 if order == 3 else 11), order))
        for counts, scale in [
            (count_rows(codes, axes, shape).astype(float), 0.0 if number % 5 == 1 and not zeros else 9.0)
        ]
    ]
    tables += [noisy((axis,), count_rows(codes, (axis,), shape) + 0.0, 9.0) for axis in range(8, 11)]
    at_once = denoise(reconcile(shape, tables, zeros=masks))
    monkeypatch.setattr("dpcipher.tables.table.PART", 1)
    one_by_one = denoise(reconcile(shape, tables, zeros=masks))
    assert list(at_once.tables) == list(one_by_one.tables)
    for axes, table in one_by_one.tables.items():
        np.testing.assert_allclose(at_once.tables[axes], table, atol=1e-12)


def test_posterior_counts_add_up_and_are_not_negative():
    """Sparse counts: the sum is kept, nothing is negative, and the error is below that of the projection."""
    rng = np.random.default_rng(5)
    truth = np.where(rng.random(80) < 0.1, 400.0, 2.0)
    better, plain = 0.0, 0.0
    for _ in range(10):
        seen = truth + rng.normal(0, 30, 80)
        got, _ = posterior(seen, 30.0, float(truth.sum()))
        assert got.min() >= 0
        assert got.sum() == pytest.approx(truth.sum())
        better += np.abs(got - truth).sum()
        plain += np.abs(nearest(seen, float(truth.sum())) - truth).sum()
    assert better < 0.6 * plain


def test_posterior_counts_leave_large_counts_alone():
    """Counts far above the noise move by much less than the noise."""
    seen = np.random.default_rng(0).uniform(5000, 9000, 40)
    np.testing.assert_allclose(denoise_one_way(seen, 1.0, float(seen.sum())), seen, atol=0.2)


def test_order_is_used_only_where_it_shows():
    """A smooth histogram loses noise; the same histogram in random order is returned untouched."""
    rng = np.random.default_rng(7)
    truth = 1000 * np.exp(-0.5 * ((np.arange(60) - 20) / 9.0) ** 2)
    seen = truth + rng.normal(0, 60, 60)
    got, left, _ = smooth(seen, 60.0)
    assert np.abs(got - truth).sum() < 0.6 * np.abs(seen - truth).sum()
    assert left < 60.0
    shuffled = seen[rng.permutation(60)]
    assert smooth(shuffled, 60.0) == (pytest.approx(shuffled), 60.0, 1.0)


def test_the_axes_of_many_levels_shrink_as_the_exact_ones_do(monkeypatch):
    """Skewed probabilities of 200 levels: with the contrasts of single levels the error is within 2 % of that with the principal axes."""
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.full(200, 0.5))
    chance = rng.multinomial(5_000, p, 40) - 5_000 * p
    seen = chance + rng.normal(0, 5.0, chance.shape)
    errors = []
    for many in (1_024, 100):
        monkeypatch.setattr(shapes, "MANY_LEVELS", many)
        basis = proportional_basis(p)
        np.testing.assert_allclose(basis.vectors[0][0].T @ basis.vectors[0][0], np.eye(199), atol=1e-10)
        np.testing.assert_allclose(basis.vectors[0].sum(axis=1), 0, atol=1e-10)
        kept = basis.variance / (basis.variance + 25.0 / 5_000)
        shrunk = np.concatenate([basis.tables(basis.coefficients(row[None]) * kept) for row in seen])
        errors.append(((shrunk - chance) ** 2).mean())
    assert errors[1] < 1.02 * errors[0]
    assert errors[0] < 0.8 * 25.0


def test_nearest_is_the_projection():
    """The nearest non-negative table with a given sum equals a numerical optimiser's."""
    rng = np.random.default_rng(1)
    table = rng.normal(2, 4, size=(2, 3))
    best = minimize(
        lambda x: ((x - table.ravel()) ** 2).sum(),
        np.full(6, 2.0),
        bounds=[(0, None)] * 6,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 12.0},
        tol=1e-12,
    )
    np.testing.assert_allclose(nearest(table, 12.0).ravel(), best.x, atol=1e-5)


def test_positive_projection_of_one_table_is_the_nearest():
    """With a single table the joint nearest to it is a point of a simplex, whose projection is known."""
    counts = np.array([[30.0, -8.0, 5.0], [2.0, 12.0, -3.0]])
    whole = fit_joint(reconcile((2, 3), [noisy((0, 1), counts, 4.0)]), {0: np.ones(2), 1: np.ones(3)})
    assert whole is not None
    total = float(counts.sum())
    np.testing.assert_allclose(total * whole.nearest, nearest(counts, total), atol=1e-2)
    assert 0 < whole.noise_left < 1


def test_coarse_counts_are_equations_too():
    """The squared misfit of any joint is that of the tables and the runs, but for what no joint changes."""
    rng = np.random.default_rng(8)
    shape, starts = (2, 5), [0, 3]
    table = noisy((0, 1), rng.normal(10, 3, shape), 4.0)
    coarse = runs(1, starts, rng.normal(50, 3, 2), 9.0, 5)
    found = reconcile(shape, [table, coarse], total=100.0)
    equations = _equations(found)
    assert equations is not None

    def misfit(p):
        of_table, of_runs = (
            table.values - 100 * p,
            coarse.values - 100 * np.add.reduceat(p.sum(axis=0), starts),
        )
        return float((of_table**2).sum() / 4 + (of_runs**2).sum() / 9)

    first, second = (rng.dirichlet(np.ones(10)).reshape(shape) for _ in range(2))
    ours = [
        float(((equations.matrix @ p.ravel() - equations.right) ** 2).sum() / equations.noise)
        for p in (first, second)
    ]
    assert ours[0] - ours[1] == pytest.approx(misfit(first) - misfit(second))


def test_the_fitted_joint_minimises_its_objective():
    """At every tau the fit is the minimum that a general optimiser finds, and its divergence is that of finite differences."""
    rng = np.random.default_rng(5)
    shape, axes = (2, 3, 2), [(0, 1), (1, 2)]
    start = rng.dirichlet(np.ones(12))
    measured = [noisy(a, rng.normal(10, 6, [shape[i] for i in a]), 9.0) for a in axes]
    equations = _equations(reconcile(shape, measured))
    assert equations is not None
    path = _path(equations, start)

    def objective(p):
        miss = equations.matrix @ p - equations.right
        return 0.5 * miss @ miss + TAUS[1] * np.sum(p * np.log(p / start))

    best = minimize(
        objective,
        start,
        bounds=[(1e-12, 1)] * 12,
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    np.testing.assert_allclose(path.joints[1], best.x, atol=1e-5)
    freedom = 0.0
    for i in range(len(equations.right)):
        moved = [
            replace(equations, right=equations.right + sign * 1e-5 * np.eye(len(equations.right))[i])
            for sign in (1, -1)
        ]
        ends = [equations.matrix @ _path(one, start).joints[1] for one in moved]
        freedom += (ends[0] - ends[1])[i] / 2e-5
    assert path.freedom[1] == pytest.approx(freedom, rel=1e-4)


def test_sweeps_restore_margins():
    """Proportional sweeps keep the odds ratios and reach the margins."""
    got = np.array([[4.0, 1.0], [2.0, 3.0]])
    rake_stack(got[None], [Goal((0,), np.array([[0.7, 0.3]])), Goal((1,), np.array([[0.4, 0.6]]))])
    np.testing.assert_allclose(got.sum(axis=1), [0.7, 0.3])
    np.testing.assert_allclose(got.sum(axis=0), [0.4, 0.6])
    assert got[0, 0] * got[1, 1] / got[0, 1] / got[1, 0] == pytest.approx(6.0)


def test_drowned_data_is_an_error_that_helps():
    """A non-positive number of rows is refused, with what would help."""
    with pytest.raises(
        SolveError, match="larger epsilon, fewer tables, fewer columns or mechanism='gaussian'"
    ):
        denoise(reconcile((2, 2), [noisy((0, 1), -np.ones((2, 2)), 100.0)]))


def test_an_unmeasured_attribute_is_an_error():
    """An attribute in no table is named."""
    with pytest.raises(SolveError, match=r"axes \[1\]"):
        denoise(reconcile((2, 2), [noisy((0,), np.ones(2), 1.0)]))


def test_a_joint_beyond_all_numbers_is_no_obstacle() -> None:
    """A thousand columns of four levels: more cells than a float can count."""
    shape = (4,) * 1000
    measured = [noisy((axis, axis + 1), np.full((4, 4), 60.0), 9.0) for axis in range(999)]
    targets = denoise(reconcile(shape, measured))
    assert targets.tables[(0, 1)] == pytest.approx(np.full((4, 4), 1 / 16))


def test_zeros_in_the_first_levels_do_not_make_a_noisy_table_exact() -> None:
    """A rule that leaves the youngest one status alone: the noise of the others was once taken for none, so that their table was not denoised and had negative cells."""
    ages, statuses = {"kind": "integer", "min": 0, "max": 11}, ["a", "b", "c", "d", "e", "n"]
    schema = dc.Schema.from_dict(
        {
            "columns": {"age": ages, "status": {"kind": "categorical", "levels": statuses}},
            "rules": ["age < 4 -> status == 'n'", "age >= 4 -> status != 'n'"],
        }
    )
    chances = np.zeros((12, 6))
    chances[:4, 5], chances[4:, :5] = 1 / 12, np.array([5, 3, 2, 1, 1]) / 144
    errors = []
    for seed in range(3):
        counts = np.random.default_rng(seed).multinomial(2_000, chances.ravel()).reshape(12, 6)
        noisy = SeededNoise(seed).add(counts, Noise("laplace", 40.0))
        release = dc.Release.from_tables({("age", "status"): noisy}, schema, scale=40.0)
        solved = np.asarray(dc.solve(release).project(("age", "status")))
        clipped = np.where(chances > 0, np.maximum(noisy, 0), 0)
        errors.append([np.abs(table / table.sum() - counts / 2_000).sum() for table in (solved, clipped)])
    ours, raw = np.mean(errors, axis=0)
    assert ours < 0.8 * raw
