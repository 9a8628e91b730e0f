"""Linear queries against brute-force generalised least squares, and their refusals."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from dpcipher.errors import ConditionError, ParameterError, ReleaseError, WorkloadError
from dpcipher.release.query import Answer, ask
from dpcipher.release.release import Release
from dpcipher.schema.declared import column
from dpcipher.schema.schema import Schema
from dpcipher.tables.measurement import Noise

SCHEMA = Schema(
    (
        column("sex", "categorical", levels=("F", "M")),
        column("age", "integer", min=0, max=2),
        column("job", "categorical", levels=("a", "b")),
    )
)
SHAPE = (2, 3, 2)
VARIANCE = Noise("laplace", 4.0).variance


def release(seed: int = 0, n: int = 400) -> Release:
    """All pairs of a random table, with noise that is not Laplace's but whose numbers do not matter here."""
    rng = np.random.default_rng(seed)
    truth = rng.multinomial(n, np.full(12, 1 / 12)).reshape(SHAPE)
    tables = {}
    for axes in combinations(range(3), 2):
        (gone,) = set(range(3)) - set(axes)
        counts = truth.sum(axis=gone)
        tables[tuple(SCHEMA.attrs[a] for a in axes)] = counts + rng.integers(-9, 10, counts.shape)
    return Release.from_tables(tables, SCHEMA, scale=4.0)


def brute(found: Release, axes: tuple[int, int], weights: np.ndarray) -> tuple[float, float]:
    """The estimate and variance of w·margin by dense least squares over the cells of the full table (pseudo-inverse)."""
    rows, values = [], []
    for table in found.measurements:
        for cell in np.ndindex(table.values.shape):
            picks = np.zeros(SHAPE)
            index = [slice(None)] * 3
            for axis, level in zip(table.query.axes, cell, strict=True):
                index[axis] = level
            picks[tuple(index)] = 1
            rows.append(picks.ravel())
            values.append(float(table.values[cell]))
    matrix = np.array(rows)
    (gone,) = set(range(3)) - set(axes)
    spread = np.broadcast_to(np.expand_dims(weights, gone), SHAPE).ravel()
    lever = spread @ np.linalg.pinv(matrix)
    return float(lever @ np.array(values)), float(VARIANCE * (lever**2).sum())


def query(found: Release, attrs: tuple[str, ...], *args: object, **more: object) -> Answer:
    """Ask a release."""
    return ask(found.schema, found.reconciled, found.schema.cover(attrs), *args, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(3))
def test_estimate_and_error_equal_brute_force_least_squares(seed: int) -> None:
    """Random weights on a measured pair."""
    found, weights = release(seed), np.random.default_rng(seed).normal(size=(2, 3))
    answer = query(found, ("sex", "age"), weights)
    estimate, variance = brute(found, (0, 1), weights)
    assert answer.estimate == pytest.approx(estimate)
    assert answer.std_error == pytest.approx(np.sqrt(variance))


def test_one_cell_has_the_interval_of_the_table() -> None:
    """A query for one cell and `interval` agree, where the latter does not clip at zero."""
    found, weights = release(), np.zeros((2, 3))
    weights[1, 2] = 1
    low, high = found.interval(("sex", "age"))
    assert query(found, ("sex", "age"), weights).interval() == pytest.approx((low[1, 2], high[1, 2]))


def test_weights_follow_the_order_of_the_names() -> None:
    """Asking for (age, sex) takes the transposed weights."""
    weights = np.arange(6.0).reshape(2, 3)
    assert query(release(), ("sex", "age"), weights) == query(release(), ("age", "sex"), weights.T)


def test_conditions_are_weights_of_zero_and_one() -> None:
    """Women aged 1 or 2."""
    weights = np.zeros((2, 3))
    weights[0, 1:] = 1
    by_condition = query(release(), ("sex", "age"), where={"sex": "F", "age": {"min": 1}})
    assert by_condition == query(release(), ("sex", "age"), weights)


def test_a_mean_is_a_share_with_weights() -> None:
    """Mean age, with the error that the delta method gives; it is smaller than if the total were taken as exact and independent."""
    found = release()
    ages = np.arange(3.0)
    answer = query(found, ("age",), ages, share=True)
    table = np.asarray(found.project(("age",)), dtype=float)
    assert answer.estimate == pytest.approx(float(ages @ table) / found.reconciled.total)
    change = (ages - answer.estimate) / found.reconciled.total
    assert answer.std_error == pytest.approx(np.sqrt(found.reconciled.linear_variance((1,), change)))


def test_the_share_of_everybody_is_exactly_one() -> None:
    """Numerator and total are the same noise, so nothing is uncertain."""
    answer = query(release(), ("sex",), share=True)
    assert (answer.estimate, answer.std_error) == (1.0, pytest.approx(0, abs=1e-9))


def test_a_drowned_total_cannot_be_divided_by() -> None:
    """Ten rows under noise of scale 1000."""
    drowned = Release.from_tables(
        {(name,): np.ones(size) for name, size in zip(SCHEMA.attrs, SHAPE, strict=True)}, SCHEMA, scale=1000.0
    )
    with pytest.raises(ReleaseError, match="drowned in its noise"):
        query(drowned, ("sex",), share=True)


@pytest.mark.parametrize(
    ("attrs", "options", "error", "rule"),
    [
        (
            ("sex", "age"),
            {"weights": np.ones((3, 2))},
            ParameterError,
            r"must have the table's shape \(2, 3\)",
        ),
        (
            ("age", "sex"),
            {"weights": np.ones((2, 3))},
            ParameterError,
            r"must have the table's shape \(3, 2\)",
        ),
        (("sex",), {"weights": [1.0, np.nan]}, ParameterError, "finite"),
        (("sex",), {"weights": ["x", "y"]}, ParameterError, "must be numbers"),
        (("sex",), {"where": {"age": 1}}, WorkloadError, "must be among attrs"),
        (("sex",), {"where": {"sex": "X"}}, ConditionError, "sex"),
        (("sx",), {}, WorkloadError, "did you mean 'sex'"),
    ],
)
def test_wrong_questions_are_refused(
    attrs: tuple[str, ...], options: dict, error: type[Exception], rule: str
) -> None:
    """Each check fires, with its rule."""
    with pytest.raises(error, match=rule):
        query(release(), attrs, **options)


def test_outside_the_measured_tables_there_is_no_answer() -> None:
    """The three columns were never measured together."""
    with pytest.raises(ReleaseError, match="no measured table holds"):
        query(release(), ("sex", "age", "job"))


def test_an_answer_reads_as_a_sentence() -> None:
    """Estimate, error and interval."""
    assert str(Answer(100.0, 5.0)) == "100 ± 5 (95 %: 90.2002 to 109.8)"


def test_bounds_are_labelled_and_still_a_pair_of_arrays() -> None:
    """Like what `project` gives, with a frame each and one for both; arithmetic is that of arrays."""
    schema = Schema.from_domain({"sex": 2, "age": 3})
    counts = np.arange(6.0).reshape(2, 3) * 50
    found = Release.from_tables({("sex", "age"): counts}, schema, scale=4.0)
    bounds = found.interval(("sex", "age"))
    low, high = bounds
    assert low.attrs == found.project(("sex", "age")).attrs
    assert low.levels == found.project(("sex", "age")).levels
    np.testing.assert_array_equal(low.frame["value"], np.asarray(low).ravel())
    assert list(bounds.frame.columns) == ["sex", "age", "estimate", "low", "high"]
    assert (low <= high).all()
    assert isinstance(high - low, np.ndarray)
    np.testing.assert_allclose((np.asarray(high) + np.asarray(low))[1] / 2, counts[1])
    assert high[1, 2] == high.max()
    assert len(low) == 2


def test_an_interval_of_a_negative_estimate_reaches_from_zero_to_a_limit_that_holds() -> None:
    """Never 0 to 0: the upper limit of the normal law that is cut off at 0, by bisection; and the frame has the estimate."""
    counts = np.array([-300.0, -133.0, -20.0, 0.0, 60.0, 900.0])
    found = Release.from_tables({"a": counts}, Schema.from_domain({"a": 6}), scale=40.0)
    bounds, sd = found.interval("a"), float(np.sqrt(Noise("laplace", 40.0).variance))
    np.testing.assert_allclose(bounds.frame["estimate"], counts, atol=1e-9)
    for estimate, low, high in zip(counts[:4], bounds.low[:4], bounds.high[:4], strict=True):
        law = norm(estimate, sd)
        at_least_zero = law.sf(0.0)
        limit = brentq(lambda u, law=law, all=at_least_zero: law.sf(u) / all - 0.05, 0.0, 10 * sd)
        assert low == 0
        assert high == pytest.approx(limit, rel=1e-6)
        assert high > 0
    np.testing.assert_allclose(bounds.high[4:], counts[4:] + norm.ppf(0.975) * sd)


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_intervals_near_zero_hold_the_true_count_as_often_as_they_say(level: float) -> None:
    """Simulated: 20,000 cells for each true count from 0 to far from it, with the normal noise that a reconciled cell has."""
    rng, n, sd = np.random.default_rng(3), 20_000, 40.0
    for true in (0.0, 5.0, 20.0, 40.0, 80.0, 400.0):
        counts = np.round(true + sd * rng.normal(size=n))
        found = Release.from_tables(
            {"a": counts}, Schema.from_domain({"a": n}), scale=sd, mechanism="gaussian"
        )
        low, high = found.interval("a", level=level)
        inside = float(np.mean((np.asarray(low) <= true) & (true <= np.asarray(high))))
        assert inside > level - 4 * np.sqrt(level * (1 - level) / n)
        assert np.asarray(high).min() > 0


@pytest.mark.parametrize("zeros", [(), ({"sex": ["F"], "job": ["b"]},)])
def test_a_sum_that_exact_tables_fix_has_no_margin(zeros: tuple[dict[str, list[str]], ...]) -> None:
    """Whichever table a sum is asked of; rounding is no noise. What they do not fix keeps its margin."""
    rng = np.random.default_rng(3)
    schema = Schema.from_dict(
        {
            "columns": {
                "sex": {"kind": "categorical", "levels": ["F", "M"]},
                "age": {"kind": "integer", "min": 0, "max": 29},
                "job": {"kind": "categorical", "levels": ["a", "b", "c", "d", "e"]},
            },
            "zeros": [{"impossible": zero, "becomes": {"job": "a"}} for zero in zeros],
        }
    )
    truth = rng.integers(0, 900, (2, 30, 5))
    truth[0, :, 1] *= not zeros
    exact, noisy = ("age", "job"), ("sex", "age", "job")
    tables = {exact: truth.sum(axis=0), noisy: truth + rng.integers(-9, 10, truth.shape)}
    found = Release.from_tables(tables, schema, scale={exact: 0.0, noisy: 20.0})
    for _ in range(20):
        fixed = np.broadcast_to(rng.integers(0, 2, (30, 5)), (2, 30, 5)).astype(float)
        assert found.query(noisy, fixed).std_error == 0
        assert found.query(noisy, fixed * [[[1]], [[0]]]).std_error > 1
