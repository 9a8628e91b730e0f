"""A query that the package does not know yet is a sum of known ones: pooled slots, weighted counts and differences, from the rows to the estimate."""

from itertools import product

import numpy as np
import pytest

from dpcipher.release.reconcile import reconcile
from dpcipher.tables.domain import Domain
from dpcipher.tables.measurement import Measurement, Noise
from dpcipher.tables.query import Combination, Groups, Query
from release.brute_measurements import BruteLeastSquares

# A household: the age of each of two members, in six levels of which the last is "nobody", and where it lives.
DOMAIN = Domain(("first", "second", "region"), (6, 6, 3))
AXES = (0, 1, 2)
YOUNG = Groups.runs([0, 2, 5], 6)
NEITHER = Groups.of_lists([[0, 3], [1, 4], [2, 5]], 6)


def _pooled(form: Groups | None) -> Combination:
    """Members of either slot, by age in groups and by region."""
    size = (6 if form is None else form.size) * 3
    return Combination(
        ((Query((0, 2), (form, None)), np.eye(size)), (Query((1, 2), (form, None)), np.eye(size)))
    )


def _persons() -> Combination:
    """How many persons live in each region: every household counted once for each member."""
    members = np.add.outer(np.arange(6) < 5, np.arange(6) < 5).astype(float)
    weights = np.einsum("ab,cd->cabd", members, np.eye(3)).reshape(3, -1)
    return Combination(((Query(AXES), weights),))


def _difference() -> Combination:
    """Of each age, by how many first members outnumber second ones, in groups that cross the pooled ones."""
    return Combination(((Query((0,), (NEITHER,)), np.eye(3)), (Query((1,), (NEITHER,)), -np.eye(3))))


NEW = {
    "pooled slots": _pooled(None),
    "pooled slots in groups": _pooled(YOUNG),
    "weighted counts": _persons(),
    "differences": _difference(),
}


@pytest.mark.parametrize("query", NEW.values(), ids=NEW)
def test_an_answer_is_what_a_loop_over_rows_says_and_no_row_moves_it_further_than_stated(
    query: Combination,
) -> None:
    """One household after another; the stated sensitivities bound every one, added, removed or replaced."""
    rows = np.random.default_rng(1).integers(0, [6, 6, 3], (200, 3))
    table = np.zeros(DOMAIN.sizes, dtype=np.int64)
    np.add.at(table, tuple(rows.T), 1)
    singles = {}
    for cell in product(*map(range, DOMAIN.sizes)):
        one = np.zeros(DOMAIN.sizes)
        one[cell] = 1
        singles[cell] = np.asarray(query.apply(one, AXES), dtype=float)
    np.testing.assert_allclose(query.apply(table, AXES), sum(singles[tuple(row)] for row in rows.tolist()))
    l1, l2_squared = query.moved(DOMAIN.sizes, "add-remove")
    assert max(np.abs(one).sum() for one in singles.values()) <= l1
    assert max((one**2).sum() for one in singles.values()) <= l2_squared
    l1, l2_squared = query.moved(DOMAIN.sizes, "replace")
    moves = [one - other for one in singles.values() for other in singles.values()]
    assert max(np.abs(move).sum() for move in moves) <= l1
    assert max((move**2).sum() for move in moves) <= l2_squared


@pytest.mark.parametrize(
    "chosen",
    [["pooled slots"], ["pooled slots in groups", "differences"], ["weighted counts"], list(NEW)],
    ids=" and ".join,
)
def test_new_queries_reconcile_as_dense_least_squares(chosen: list[str]) -> None:
    """Beside tables with every level and in groups; estimates, variances and a random sum of cells."""
    rng = np.random.default_rng(len(chosen))
    joint = rng.integers(0, 30, DOMAIN.sizes)
    plain = [Query(AXES), Query((0, 2)), Query((1, 2), (YOUNG, None)), Query((0,), (NEITHER,))]
    measured = []
    for query in [*plain, *(NEW[name] for name in chosen)]:
        noise = Noise("gaussian", float(rng.integers(2, 9)))
        values = np.asarray(query.apply(joint, AXES), dtype=float)
        measured.append(Measurement(query, values + noise.scale * rng.normal(size=values.shape), noise))
    fit, brute = reconcile(DOMAIN, measured), BruteLeastSquares(DOMAIN, measured)
    for query in plain:
        expected, covariance = brute.table(query), brute.table_covariance(query)
        np.testing.assert_allclose(
            fit.table(query).ravel(), expected, atol=1e-9 * (1 + np.abs(expected).max())
        )
        np.testing.assert_allclose(fit.variance(query).ravel(), np.diag(covariance), rtol=1e-9, atol=1e-9)
        weights = rng.normal(size=fit.table(query).shape)
        asked = weights.ravel() @ covariance @ weights.ravel()
        assert fit.linear_variance(query, weights) == pytest.approx(asked, rel=1e-9, abs=1e-8)
    without = reconcile(DOMAIN, measured[: len(plain)])
    assert all((fit.variance(query) <= without.variance(query) + 1e-9).all() for query in plain)
