"""Tables of different resolution reconcile as dense least squares says, whatever groups of levels they hold."""

import numpy as np
import pytest

from dpcipher.errors import ReleaseError
from dpcipher.release.reconcile import Reconciled, reconcile
from dpcipher.tables.domain import Domain
from dpcipher.tables.measurement import Measurement, Noise
from dpcipher.tables.query import Combination, Groups, Query
from release.brute_measurements import BruteLeastSquares

AXES = (0, 1, 2)


def _domain(case: int) -> Domain:
    return Domain(("a", "b", "c"), ((6, 8)[case % 2], (2, 3, 4)[case % 3], 4))


def _random_groups(rng: np.random.Generator, size: int, kind: int) -> Groups | None:
    """Every level, uneven runs, even runs, or named groups that may cross others."""
    if kind == 0:
        return None
    if kind == 1:
        return Groups.runs([0, *(1 + np.flatnonzero(rng.random(size - 1) < 0.4)).tolist()], size)
    if kind == 2:
        return Groups.runs(list(range(0, size, 2)), size)
    numbers = rng.integers(0, max(2, size // 2), size)
    return Groups.of_lists([np.flatnonzero(numbers == n).tolist() for n in np.unique(numbers)], size)


def _measure(
    rng: np.random.Generator, domain: Domain, joint: np.ndarray, query: Query, *, exact: bool = False
) -> Measurement:
    noise = Noise("none", 0.0) if exact else Noise("gaussian", float(rng.integers(2, 9)))
    values = query.apply(joint, AXES)
    return Measurement(query, values + noise.scale * rng.normal(size=values.shape), noise)


def _random_case(case: int, *, kinds: int, zeros: bool) -> tuple[Domain, list[Measurement]]:
    rng = np.random.default_rng(case)
    domain = _domain(case)
    if zeros:
        masks = []
        for axes in ((0, 1), (1, 2)):
            mask = rng.random([domain.sizes[axis] for axis in axes]) < 0.25
            mask[0] = mask[:, 0] = False
            masks.append((axes, mask))
        domain = Domain(domain.names, domain.sizes, tuple(masks))
    joint = np.where(domain.possible(AXES), rng.integers(0, 30, domain.sizes), 0)
    measured = []
    for number in range(rng.integers(2, 7)):
        axes = tuple(sorted(rng.choice(3, rng.integers(0, 4), replace=False).tolist()))
        groups = tuple(_random_groups(rng, domain.sizes[axis], int(rng.integers(kinds))) for axis in axes)
        centred = bool(number and not zeros and rng.random() < 0.2)
        query = Query(axes, groups, (), centred)
        if not query.axes:
            query = Query(())
        exact = bool(number and kinds < 4 and not zeros and not query.centred and rng.random() < 0.1)
        measured.append(_measure(rng, domain, joint, query, exact=exact))
    if case % 3 == 1:
        measured.append(_measure(rng, domain, joint, measured[0].query))
    return domain, measured


def _agrees(
    fit: Reconciled, brute: BruteLeastSquares, queries: list[Query], rng: np.random.Generator
) -> None:
    for query in queries:
        expected, covariance = brute.table(query), brute.table_covariance(query)
        size = 1 + np.abs(expected).max()
        assert np.allclose(fit.table(query).ravel(), expected, rtol=0, atol=1e-8 * size)
        assert np.allclose(fit.variance(query).ravel(), np.diag(covariance), rtol=1e-8, atol=1e-8)
        assert fit.mean_variance(query) == pytest.approx(np.diag(covariance).mean(), rel=1e-8, abs=1e-8)
        weights = rng.normal(size=fit.table(query).shape)
        asked = weights.ravel() @ covariance @ weights.ravel()
        assert fit.linear_variance(query, weights) == pytest.approx(asked, rel=1e-8, abs=1e-7)


@pytest.mark.parametrize("case", range(60))
def test_runs_of_any_length_reconcile_as_dense_least_squares(case: int) -> None:
    """Equal, uneven and crossing runs; exact, centred and repeated tables; the number of rows."""
    domain, measured = _random_case(case, kinds=3, zeros=False)
    brute, fit = BruteLeastSquares(domain, measured), reconcile(domain, measured)
    rng = np.random.default_rng(1000 + case)
    _agrees(fit, brute, [Query(m.query.axes, m.query.groups) for m in measured], rng)
    assert fit.total == pytest.approx(float(brute.table(Query(()))[0]), rel=1e-8)
    assert fit.disagreement.overall.chi2 == pytest.approx(brute.chi2, rel=1e-6, abs=1e-6)
    assert fit.disagreement.overall.dof == brute.dof


@pytest.mark.parametrize("case", range(60))
def test_named_groups_that_cross_reconcile_as_dense_least_squares(case: int) -> None:
    """Groups of levels that no order of the levels makes runs."""
    domain, measured = _random_case(case, kinds=4, zeros=False)
    brute, fit = BruteLeastSquares(domain, measured), reconcile(domain, measured)
    _agrees(fit, brute, [Query(m.query.axes, m.query.groups) for m in measured], np.random.default_rng(case))
    assert fit.disagreement.overall.dof == brute.dof


@pytest.mark.parametrize("case", range(60))
def test_impossible_cells_reconcile_as_dense_least_squares(case: int) -> None:
    """Structural zeros beside tables with every level."""
    domain, measured = _random_case(case, kinds=1, zeros=True)
    brute, fit = BruteLeastSquares(domain, measured), reconcile(domain, measured)
    _agrees(fit, brute, [Query(m.query.axes) for m in measured], np.random.default_rng(case))
    assert fit.disagreement.overall.chi2 == pytest.approx(brute.chi2, rel=1e-6, abs=1e-6)
    assert fit.disagreement.overall.dof == brute.dof


@pytest.mark.parametrize("case", range(40))
def test_skip_patterns_reconcile_as_dense_least_squares(case: int) -> None:
    """Columns that go together in blocks of levels, such as "no work" exactly where "no job", share what the blocks say."""
    rng = np.random.default_rng(case)
    domain = Domain(("work", "job", "sex"), (3 + case % 2, 4, 2 + case % 3))
    blocks = 2 + (case % 4 == 3)
    mask = np.arange(domain.sizes[0])[:, None] % blocks != (
        np.arange(4) // 2 if blocks == 2 else np.arange(4) % 3
    )
    zeros = [((0, 1), mask)]
    if case % 5 == 4:
        lines = np.zeros((4, domain.sizes[2]), dtype=bool)
        lines[3, 0] = True
        zeros.append(((1, 2), lines))
    domain = Domain(domain.names, domain.sizes, tuple(zeros))
    joint = np.where(domain.possible(AXES), rng.integers(0, 60, domain.sizes), 0)
    sets = [(0, 2), (1, 2), (0,), (1,), (0, 1), (2,)]
    chosen = [sets[0], sets[1], *(axes for axes in sets[2:] if rng.random() < 0.4)]
    measured = [_measure(rng, domain, joint, Query(axes)) for axes in chosen]
    brute, fit = BruteLeastSquares(domain, measured), reconcile(domain, measured)
    _agrees(fit, brute, [Query(axes) for axes in chosen], rng)
    assert fit.disagreement.overall.chi2 == pytest.approx(brute.chi2, rel=1e-6, abs=1e-6)
    assert fit.disagreement.overall.dof == brute.dof


def test_people_without_work_are_as_many_as_people_without_a_job() -> None:
    """Two tables that never meet in a column give one estimate, and one standard error, of the people that a structural zero says are the same."""
    zeros = np.array([[False, True, True], [True, False, False]])  # no work exactly where there is no job
    domain = Domain(("sex", "work", "job"), (2, 2, 3), (((1, 2), zeros),))
    noise = Noise("gaussian", 20.0 * 2**0.5)
    work = Measurement(Query((0, 1)), np.array([[400, 600], [250, 750]]), noise)
    job = Measurement(Query((0, 2)), np.array([[380, 300, 310], [320, 350, 360]]), noise)
    fit = reconcile(domain, [work, job])
    brute = BruteLeastSquares(domain, [work, job])
    assert np.allclose(fit.table((0, 1))[:, 0], fit.table((0, 2))[:, 0])
    assert np.allclose(fit.table((0, 1)).ravel(), brute.table(Query((0, 1))))
    assert np.allclose(fit.variance((0, 1))[:, 0], fit.variance((0, 2))[:, 0])


@pytest.mark.parametrize("case", range(20))
def test_components_reconcile_as_dense_least_squares(case: int) -> None:
    """Contrasts on every column, with the number of rows, and plain tables beside them."""
    rng = np.random.default_rng(case)
    domain = _domain(case)
    joint = rng.integers(0, 30, domain.sizes)
    runs = _random_groups(rng, domain.sizes[0], 1 + case % 2)
    pair = Query((0, 1), (runs, None))
    queries = [Query(()), Query((0,), (), (0,)), Query((1,), (), (1,)), Query((0, 1), pair.groups, pair.axes)]
    queries += [Query((2,)), Query((0, 2))][: case % 3]
    measured = [_measure(rng, domain, joint, query) for query in queries]
    brute, fit = BruteLeastSquares(domain, measured), reconcile(domain, measured)
    _agrees(fit, brute, [Query((0,)), Query((1,)), pair.plain(), Query(())], rng)
    assert fit.disagreement.overall.chi2 == pytest.approx(brute.chi2, rel=1e-6, abs=1e-6)
    assert fit.disagreement.overall.dof == brute.dof


def test_pooled_slots_and_differences_need_only_another_query() -> None:
    """Sums over the tables of several columns, and a weighted count, take part in the fit as any table does."""
    rng = np.random.default_rng(7)
    domain = Domain(("first", "second", "c"), (4, 4, 3))
    joint = rng.integers(0, 30, domain.sizes)
    pooled = Combination(((Query((0,)), np.eye(4)), (Query((1,)), np.eye(4))))
    weighted = Combination(((Query((0, 2)), np.outer([0, 1, 2, 3], [1, 1, 1]).reshape(1, -1).astype(float)),))
    difference = Combination(((Query((0,)), np.eye(4)), (Query((1,)), -np.eye(4))))
    queries = [Query((0, 2)), Query((1, 2)), Query((0,)), pooled, weighted, difference]
    measured = [_measure(rng, domain, joint, query) for query in queries]  # type: ignore[arg-type]
    brute, fit = BruteLeastSquares(domain, measured), reconcile(domain, measured)
    _agrees(fit, brute, [Query((0, 2)), Query((1, 2)), Query((0,)), Query((1,)), Query(())], rng)
    assert fit.total == pytest.approx(float(brute.table(Query(()))[0]), rel=1e-8)


def test_contrasts_alone_ask_for_the_number_of_rows() -> None:
    """What nothing says is an error that names it."""
    domain = Domain(("a", "b"), (3, 2))
    noise = Noise("gaussian", 4.0)
    contrast = Measurement(Query((0,), (), (0,)), np.array([3, -1, -2]), noise)
    with pytest.raises(ReleaseError, match="number of rows"):
        reconcile(domain, [contrast])
    both = Query((0, 1), (), (0, 1))
    pair = Measurement(both, np.zeros((3, 2), dtype=np.int64), noise)
    rows = Measurement(Query(()), np.array(10), noise)
    with pytest.raises(ReleaseError, match=r"measure (a|b) too"):
        reconcile(domain, [contrast, pair, rows])
