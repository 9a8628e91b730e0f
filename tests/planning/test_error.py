"""The noise is public, so its error is arithmetic: each formula against brute force or a simulation."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize

from dpcipher.planning.forecast import best_weights, expected_tvd, reconciled_sds
from dpcipher.privacy.draws import SeededNoise
from dpcipher.schema.schema import Schema
from dpcipher.tables.measurement import Measurement, Noise
from dpcipher.tables.query import Query


def pmf_absolute(mechanism: Noise) -> float:
    """E|X| summed term by term over the probability mass function."""
    k = np.arange(-40_000, 40_001)
    log = -np.abs(k) / mechanism.scale if mechanism.kind == "laplace" else -(k**2) / (2 * mechanism.scale**2)
    mass = np.exp(log)
    return float((np.abs(k) * mass).sum() / mass.sum())


@pytest.mark.parametrize("name", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [0.2, 0.7, 3.0, 7.9, 8.1, 91.0, 900.0])
def test_expected_absolute_is_the_sum_over_the_mass_function(name: str, scale: float) -> None:
    """Both laws, small scales (where discreteness shows) and large ones."""
    mechanism = Noise(name, scale)  # type: ignore[arg-type]
    assert mechanism.mean_absolute == pytest.approx(pmf_absolute(mechanism), rel=1e-5)


def test_no_noise_has_no_error() -> None:
    """Exact tables are exact."""
    assert Noise("none", 0).mean_absolute == 0


def test_expected_tvd_is_what_noise_does_to_a_table() -> None:
    """The mean over 400 noisy copies of a table, counted as half the sum of |difference| / n_rows."""
    mechanism, n_rows = Noise("laplace", 12.0), 3_000
    noise = SeededNoise(7)
    truth = np.full(24, n_rows // 24, dtype=np.int64)
    observed = np.mean([np.abs(noise.add(truth, mechanism) - truth).sum() / (2 * n_rows) for _ in range(400)])
    assert expected_tvd(mechanism.mean_absolute, 24, n_rows) == pytest.approx(observed, rel=0.03)


def test_expected_tvd_never_exceeds_one() -> None:
    """A distance between distributions is at most one, however large the noise."""
    assert expected_tvd(1e9, 100, 5) == 1.0


@pytest.mark.parametrize(("mechanism", "power"), [("laplace", 1.0), ("gaussian", 0.5)])
def test_no_numerical_optimiser_finds_better_weights(mechanism: str, power: float) -> None:
    """The total error, sum of cells * share^-power, minimised numerically over the simplex, is no lower than ours."""
    sizes = [4, 10, 56, 200, 35]

    def total(shares: np.ndarray) -> float:
        return float(sum(size * share**-power for size, share in zip(sizes, shares, strict=True)))

    def of_logits(logits: np.ndarray) -> float:
        return total(np.exp(logits) / np.exp(logits).sum())

    best = minimize(of_logits, np.zeros(5)).fun
    assert total(np.array(best_weights(sizes, mechanism))) == pytest.approx(best, rel=1e-6)
    assert best < 0.97 * total(np.full(5, 0.2))


def test_reconciled_deviations_are_those_of_dense_least_squares() -> None:
    """All pairs of a 2×3×2 table with unequal noise, against the covariance of the normal equations."""
    schema = Schema.from_domain({"a": 2, "b": 3, "c": 2})
    tables = list(combinations(("a", "b", "c"), 2))
    mechanisms = [Noise("laplace", 5.0), Noise("gaussian", 9.0), Noise("laplace", 2.0)]
    cells = np.arange(12).reshape(2, 3, 2)
    designs = [_sums(cells, schema.axes(attrs)) for attrs in tables]
    weights = [design / np.sqrt(m.variance) for design, m in zip(designs, mechanisms, strict=True)]
    covariance = np.linalg.pinv(np.concatenate(weights).T @ np.concatenate(weights))
    expected = [np.sqrt(np.mean(np.diag(design @ covariance @ design.T))) for design in designs]
    assert reconciled_sds(schema, blank(schema, tables, mechanisms), n_rows=None) == pytest.approx(expected)


def test_a_public_number_of_rows_lowers_the_reconciled_deviation() -> None:
    """Knowing the total removes one direction of noise."""
    schema = Schema.from_domain({"a": 2, "b": 3})
    measured = blank(schema, [("a", "b")], [Noise("gaussian", 6.0)])
    free = reconciled_sds(schema, measured, n_rows=None)[0]
    fixed = reconciled_sds(schema, measured, n_rows=100)[0]
    assert (free, fixed) == pytest.approx((6.0, 6.0 * np.sqrt(5 / 6)))


def blank(schema: Schema, tables: Sequence[tuple[str, ...]], noises: Sequence[Noise]) -> list[Measurement]:
    """Measurements of no rows."""
    queries = [Query(schema.axes(attrs)) for attrs in tables]
    return [
        Measurement(query, np.zeros(query.shape(schema.shape)), noise)
        for query, noise in zip(queries, noises, strict=True)
    ]


def _sums(cells: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """The 0/1 matrix that sums the full table down to `axes`."""
    other = tuple(axis for axis in range(cells.ndim) if axis not in axes)
    unit = np.eye(cells.size).reshape(*cells.shape, cells.size)
    return unit.sum(axis=other).reshape(-1, cells.size)
