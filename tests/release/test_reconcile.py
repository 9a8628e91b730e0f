"""Reconciling overlapping noisy tables."""

import sys
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcipher.errors import ReleaseError, SizeError, WorkloadError
from dpcipher.release.reconcile import Misfit
from dpcipher.release.release import Release
from dpcipher.schema import Schema, Zero, column
from dpcipher.tables.domain import zero_cells

sys.path.insert(0, str(Path(__file__).parent))
from brute_gls import BruteGLS, assert_same, reader
from measured import noisy, reconcile, told

SHAPE = (2, 3, 4, 2)
SOME_CELLS = (((1, 2), np.random.default_rng(5).random((3, 4)) < 0.25),)
A_WHOLE_LEVEL = (((0, 1), np.array([[True] * 3, [False] * 3])),)
WORKLOADS = {
    "a cycle of pairs": [((0, 1), 1.0), ((1, 2), 4.0), ((0, 2), 2.0), ((3,), 1.0)],
    "repeats and an exact table": [
        ((0, 1), 1.0),
        ((0, 1), 3.0),
        ((0, 1, 2), 4.0),
        ((2, 3), 0.0),
        ((3,), 1.0),
    ],
    "the full table": [((0, 1, 2, 3), 3.0), ((0,), 1.0)],
    "overlapping triples": [((0, 1, 2), 3.0), ((1, 2, 3), 1.0), ((0, 3), 5.0), ((1,), 0.0)],
    "nothing shared but the total": [((0,), 1.0), ((1, 2), 2.0), ((3,), 0.5)],
}


def simulate(rng, workload, zeros=(), shape=SHAPE):
    """A random joint table and its noisy margins."""
    joint = rng.integers(0, 30, shape).astype(float)
    for axes, mask in zeros:
        joint *= ~mask.reshape([shape[axis] if axis in axes else 1 for axis in range(len(shape))])
    measured = []
    for axes, variance in workload:
        levels = [shape[axis] for axis in axes]
        counts = (reader(shape, axes) @ joint.ravel()).reshape(levels)
        measured.append(noisy(axes, counts + rng.normal(size=levels) * np.sqrt(variance), variance))
    return joint, measured


def brute(measured, total=None, zeros=(), shape=SHAPE):
    """The independent answer."""
    return BruteGLS(shape, [told(one) for one in measured], total, zeros)


def hay(tree, branching):
    """Hay, Rastogi, Miklau and Suciu (2010): noisy counts of a tree, level by level from the root, made consistent in two passes."""
    height, k = len(tree), branching
    up = [level.astype(float) for level in tree]
    for depth in reversed(range(height - 1)):
        length = height - depth  # of the subtree, a leaf's being 1
        children = up[depth + 1].reshape(-1, k).sum(axis=1)
        own = (k**length - k ** (length - 1)) / (k**length - 1)
        up[depth] = own * tree[depth] + (k ** (length - 1) - 1) / (k**length - 1) * children
    down = [up[0]]
    for depth in range(1, height):
        gap = down[depth - 1] - up[depth].reshape(-1, k).sum(axis=1)
        down.append(up[depth] + np.repeat(gap / k, k))
    return down


@pytest.mark.parametrize(("branching", "height"), [(2, 2), (2, 5), (3, 4), (5, 3)])
def test_reconciling_nested_tables_is_hays_consistency(branching, height) -> None:
    """A tree of counts is the total, a column, the pair with the next one, and so on: least squares under its sums, as their two passes are."""
    rng = np.random.default_rng(branching)
    shape = (branching,) * (height - 1)
    leaves = rng.integers(0, 40, shape).astype(float)
    measured = []
    for depth in range(height):
        exact = leaves.sum(axis=tuple(range(depth, height - 1)))
        measured.append(noisy(tuple(range(depth)), exact + rng.laplace(scale=3.0, size=exact.shape), 18.0))
    found = reconcile(shape, measured)
    expected = hay([table.values.ravel() for table in measured], branching)
    assert found.total == pytest.approx(float(expected[0][0]))
    for depth in range(1, height):
        np.testing.assert_allclose(found.table(tuple(range(depth))).ravel(), expected[depth])


def possible_contrasts(axes, zeros):
    """The unit contrasts of two levels of every axis between which all cells are possible, flat."""
    possible = ~zero_cells(axes, SHAPE, zeros).ravel()
    for levels in product(*(combinations(range(SHAPE[axis]), 2) for axis in axes)):
        flat = np.ones(1)
        for axis, (first, second) in zip(axes, levels, strict=True):
            flat = np.kron(flat, np.eye(SHAPE[axis])[first] - np.eye(SHAPE[axis])[second]) / np.sqrt(2)
        if possible[flat != 0].all():
            yield flat


def test_a_noisy_table_with_zeros_is_never_exact():
    """Wherever its zeros are: in the first levels, or so that no two levels of one axis share two of the other."""
    first = np.zeros((4, 4), dtype=bool)
    first[:2, :3] = True
    ring = ~(np.eye(4, dtype=bool) | np.roll(np.eye(4, dtype=bool), 1, axis=1))
    for mask in (first, ring):
        counts = np.where(mask, 0.0, 50.0)
        result = reconcile((4, 4), [noisy((0, 1), counts, 9.0)], zeros=(((0, 1), mask),))
        assert 1.0 < result.interaction_variance((0, 1)) <= 9.0 + 1e-9


@pytest.mark.parametrize(
    "zeros", [(), SOME_CELLS, A_WHOLE_LEVEL], ids=["complete", "some zeros", "an empty level"]
)
@pytest.mark.parametrize("public", [False, True], ids=["noisy total", "public total"])
@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)
def test_equals_brute_force(workload, public, zeros):
    """Every table, every variance, a random linear query and the overall χ² equal dense least squares on the joint table."""
    rng = np.random.default_rng(3)
    joint, measured = simulate(rng, workload, zeros)
    total = joint.sum() if public else None
    result, reference = reconcile(SHAPE, measured, total=total, zeros=zeros), brute(measured, total, zeros)
    assert_same(result, reference, rng)
    for axes in result.closure():
        covariance = reference.table_covariance(axes)
        variances = [contrast @ covariance @ contrast for contrast in possible_contrasts(axes, zeros)]
        one_or_all = [*variances, np.mean(variances)] if variances else [0.0]
        assert np.abs(np.array(one_or_all) - result.interaction_variance(axes)).min() < 1e-9
    assert result.disagreement.overall.dof == reference.dof


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_workload(data):
    """Random workloads with random variances, exact tables included, equal brute force."""
    everything = [axes for k in range(5) for axes in combinations(range(4), k)]
    chosen = data.draw(st.lists(st.sampled_from(everything[1:]), min_size=1, max_size=6))
    sizes = data.draw(
        st.lists(st.sampled_from([0.0, 0.5, 1.0, 20.0]), min_size=len(chosen), max_size=len(chosen))
    )
    zeros = data.draw(st.sampled_from([(), SOME_CELLS, A_WHOLE_LEVEL]))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    _, measured = simulate(rng, list(zip(chosen, sizes, strict=True)), zeros)
    result, reference = reconcile(SHAPE, measured, zeros=zeros), brute(measured, None, zeros)
    for axes in result.closure():
        np.testing.assert_allclose(result.table(axes).ravel(), reference.table(axes), atol=1e-7)
        np.testing.assert_allclose(
            result.variance(axes).ravel(), np.diag(reference.table_covariance(axes)), atol=1e-7
        )


@pytest.mark.parametrize("scale", [0.3, 1.7, 40.0, 9e5])
def test_what_exact_tables_fix_has_no_variance(scale):
    """A noisy table inside an exact one is exact, and so is every margin of either: 0, not what rounding leaves."""
    _, measured = simulate(np.random.default_rng(2), [((0, 1, 2), 0.0), ((1, 2), scale), ((2, 3), scale)])
    result = reconcile(SHAPE, measured)
    for axes in [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]:
        assert set(result.variance(axes).ravel().tolist()) == {0.0}
    assert result.variance((3,)).min() > 0


@pytest.mark.parametrize("zeros", [(), SOME_CELLS], ids=["complete", "zeros"])
def test_each_misfit_is_a_chi_square(zeros):
    """Over repeated noise the χ² of every table has the mean and the spread of its degrees of freedom."""
    rng = np.random.default_rng(8)
    found = []
    for _ in range(400):
        _, measured = simulate(rng, WORKLOADS["repeats and an exact table"], zeros)
        found.append(reconcile(SHAPE, measured, zeros=zeros).disagreement.tables)
    assert [misfit.dof for misfit in found[0]][3] == 0
    for position in (0, 1, 2, 4):
        dof = found[0][position].dof
        values = np.array([each[position].chi2 for each in found])
        assert dof > 0
        assert values.mean() == pytest.approx(dof, abs=4 * np.sqrt(2 * dof / 400))
        assert values.var() == pytest.approx(2 * dof, rel=0.5)


@pytest.mark.parametrize("zeros", [(), SOME_CELLS], ids=["complete", "zeros"])
def test_a_planted_error_stands_out(zeros):
    """A table whose counts are shifted is the one with the most sigmas."""
    _, measured = simulate(np.random.default_rng(9), WORKLOADS["a cycle of pairs"], zeros)
    shifted = noisy((1, 2), measured[1].values + 15.0 * np.arange(4), 4.0)
    report = reconcile(SHAPE, [measured[0], shifted, *measured[2:]], zeros=zeros).disagreement
    assert max(report.tables, key=lambda misfit: misfit.sigmas).axes == (1, 2)
    assert report.overall.sigmas > 5


def test_sigmas_are_normal_quantiles():
    """The 95 % point of a χ² is 1.645 sigmas, whatever its degrees of freedom."""
    assert Misfit((), 18.29, 10).sigmas == pytest.approx(1.645, abs=0.02)
    assert Misfit((), 124.34, 100).sigmas == pytest.approx(1.645, abs=0.02)


def test_sets():
    """The closure holds every subset once; the maximal sets are those inside no other."""
    measured = [
        noisy((0, 1), np.ones((2, 3)), 1.0),
        noisy((1,), np.ones(3), 1.0),
        noisy((3,), np.ones(2), 1.0),
    ]
    result = reconcile(SHAPE, measured)
    assert result.closure() == [(0,), (1,), (3,), (0, 1)]
    assert result.maximal() == [(0, 1), (3,)]
    with pytest.raises(ReleaseError, match="no measured table holds column 0 × column 3"):
        result.table((0, 3))


@pytest.mark.parametrize("zeros", [(), SOME_CELLS], ids=["complete", "zeros"])
def test_contradictory_exact_tables_are_named(zeros):
    """Two exact tables that disagree are an error that names their axes; so is an exact table against a public total."""
    joint, measured = simulate(np.random.default_rng(2), [((0, 1), 0.0), ((1, 2), 0.0), ((2, 3), 0.0)], zeros)
    wrong = noisy((1, 2), measured[1].values + (measured[1].values > 0), 0.0)
    with pytest.raises(ReleaseError, match=r"column 1 × column 2.*contradict"):
        reconcile(SHAPE, [measured[0], wrong, measured[2]], zeros=zeros)
    with pytest.raises(ReleaseError, match=r"the number of rows and column 0.*contradict"):
        reconcile(SHAPE, measured, total=joint.sum() + 1, zeros=zeros)
    assert reconcile(SHAPE, measured, total=joint.sum(), zeros=zeros).total_variance == 0


def test_exact_rows_in_a_structural_zero():
    """An exact table with rows where none can be is an error."""
    with pytest.raises(ReleaseError, match="structural zeros allow none"):
        reconcile(SHAPE, [noisy((0, 1), np.ones((2, 3)), 0.0)], zeros=A_WHOLE_LEVEL)


def test_an_isolated_wide_table_is_left_alone():
    """A table of 2^18 cells that shares only one margin costs one correction, not 2^18 components."""
    rng = np.random.default_rng(0)
    axes = tuple(range(18))
    counts = rng.normal(size=(2,) * 18)
    result = reconcile((2,) * 18, [noisy(axes, counts, 1.0), noisy((4,), np.array([5.0, 7.0]), 0.0)])
    np.testing.assert_allclose(result.table((4,)), [5.0, 7.0])
    own = np.moveaxis(counts, 4, 0)
    expected = own - own.mean(axis=tuple(range(1, 18)), keepdims=True)
    got = np.moveaxis(result.table(axes), 4, 0)
    np.testing.assert_allclose(got - got.mean(axis=tuple(range(1, 18)), keepdims=True), expected, atol=1e-10)


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: noisy((1, 0), np.ones((2, 2)), 1.0), WorkloadError, "must ascend"),
        (lambda: noisy((0,), np.array([1.0, np.nan]), 1.0), ReleaseError, "finite counts"),
        (lambda: reconcile(SHAPE, []), ReleaseError, "at least one table"),
        (
            lambda: reconcile(SHAPE, [noisy((0,), np.ones((2, 2)), 1.0)]),
            ReleaseError,
            "levels of its columns",
        ),
        (lambda: reconcile(SHAPE, [noisy((0,), np.ones(5), 1.0)]), ReleaseError, "levels of its columns"),
        (lambda: reconcile(SHAPE, [noisy((9,), np.ones(5), 1.0)]), ReleaseError, "levels of its columns"),
    ],
)
def test_every_check_fires(make, error, match):
    """Tables that make no sense are refused."""
    with pytest.raises(error, match=match):
        make()


def test_too_much_shared_with_zeros_is_a_size_error():
    """Structural zeros need a dense system over what is shared, and say when it is too large."""
    shape = (80, 80, 2, 2)
    measured = [noisy((0, 1, k), np.zeros((80, 80, 2)), 1.0) for k in (2, 3)]
    with pytest.raises(SizeError, match="fewer tables"):
        reconcile(shape, measured, zeros=(((2, 3), np.eye(2, dtype=bool)), ((0,), np.arange(80) == 0)))


def test_skip_patterns_keep_estimates_whose_margins_hold() -> None:
    """ "work = no" exactly where "job = none": not yet least squares (docs/how/noise.md), but each table is unbiased within its own margin."""
    columns = {"sex": ["F", "M"], "work": ["no", "yes"], "job": ["none", "a", "b"]}
    impossible = [("no", "a"), ("no", "b"), ("yes", "none")]
    schema = Schema(
        tuple(column(name, "categorical", levels=levels) for name, levels in columns.items()),
        zeros=tuple(Zero({"work": work, "job": job}) for work, job in impossible),
    )
    true = {("sex", "work"): np.array([[390, 500], [285, 480]]), ("sex", "job"): np.array([[390, 240, 260], [285, 230, 250]])}  # fmt: skip
    rng, gaps = np.random.default_rng(4), dict[tuple[str, str], list[np.ndarray]]()
    for _ in range(200):
        noisy = {attrs: counts + np.round(rng.laplace(0, 20, counts.shape)) for attrs, counts in true.items()}
        release = Release.from_tables(noisy, schema, scale=20.0)
        for attrs, counts in true.items():
            error = np.asarray(release.project(attrs)) - counts
            gaps.setdefault(attrs, []).append(error / np.asarray(release.std_error(attrs)))
    for errors in gaps.values():
        assert np.abs(np.mean(errors, axis=0)).max() < 4 / np.sqrt(200)
        assert np.std(errors, axis=0) == pytest.approx(1, abs=0.2)


def test_one_impossible_cell_leaves_the_other_columns_alone() -> None:
    """A chain of 300 columns of 20 levels: only the table with the cell and what it shares is solved together, and far columns are as without it."""
    shape, mask = (20,) * 300, np.zeros((20, 20), dtype=bool)
    mask[3, 4] = True
    rng = np.random.default_rng(3)
    chain = [noisy((n, n + 1), rng.normal(50, 3, (20, 20)), 9.0) for n in range(299)]
    cut, whole = (reconcile(shape, chain, zeros=zeros) for zeros in ([((0, 1), mask)], ()))
    assert cut.table((0, 1))[3, 4] == 0
    assert abs(cut.table((298, 299)) - whole.table((298, 299))).max() < 1
    assert cut.variance((298, 299)) == pytest.approx(whole.variance((298, 299)), rel=1e-2)
