"""The expected error of a measured table: its ends, its shape, and a simulation of the model it comes from."""

import math

import numpy as np
import pytest

from dpcipher.selection import allocation as risk
from dpcipher.selection.allocation import interaction_risk, one_way_risk

PRECISION = np.concatenate([[0.0], np.geomspace(1e-8, 10, 60)])


def simulated(deviations: np.ndarray, noise_variance: float, rng: np.random.Generator) -> float:
    """Half the L1 error of the posterior mean, when both what is true and the noise are drawn from their normal laws."""
    true = rng.normal(0, deviations, (4000, deviations.size))
    noisy = true + rng.normal(0, math.sqrt(noise_variance), true.shape)
    kept = deviations**2 / (deviations**2 + noise_variance)
    return float(np.abs(noisy * kept - true).sum(axis=1).mean() / 2)


def tables(rng: np.random.Generator) -> list[np.ndarray]:
    """Predicted counts: even, uneven, with empty cells, of two and of three columns."""
    uneven = rng.dirichlet(np.full(12, 0.3)) * 900
    sparse = np.where(rng.random((3, 4, 2)) < 0.4, 0.0, rng.gamma(1.0, 30.0, (3, 4, 2)))
    return [np.full((2, 2), 50.0), uneven.reshape(3, 4), sparse]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_interaction_is_what_a_simulation_says(place: int) -> None:
    """Deviations in proportion to the root of the prediction, of the mean size that the distance says; noise without the margins'."""
    rng = np.random.default_rng(place)
    expected, distance = tables(rng)[place], 140.0
    roots = np.sqrt(expected).ravel()
    deviations = distance * roots / roots.sum() * math.sqrt(math.pi / 2)
    inside = math.prod((levels - 1) / levels for levels in expected.shape)
    for noise_variance in (2.0, 60.0, 1500.0):
        found = float(interaction_risk(expected, distance, np.array([1 / noise_variance]))[0])
        assert found == pytest.approx(simulated(deviations, noise_variance * inside, rng), rel=0.03)


def test_a_one_way_table_is_what_a_simulation_says() -> None:
    """Every level is known to be of the size of its count, and of at least one row."""
    rng = np.random.default_rng(5)
    counts = np.array([700.0, 120.0, 9.0, 0.2, 0.0])
    for noise_variance in (2.0, 400.0, 1e5):
        found = float(one_way_risk(counts, np.array([1 / noise_variance]))[0])
        assert found == pytest.approx(simulated(np.maximum(counts, 1), noise_variance * 4 / 5, rng), rel=0.03)


def test_nothing_measured_leaves_half_the_distance() -> None:
    """A distance counts every misplaced row twice."""
    rng = np.random.default_rng(6)
    for expected in [*tables(rng), rng.gamma(1.0, 1.0, (20, 30))]:
        for distance in (0.5, 20.0, 4000.0):
            assert interaction_risk(expected, distance, np.zeros(1)) == pytest.approx(distance / 2)


@pytest.mark.parametrize("one_way", [False, True])
def test_error_falls_ever_more_slowly_with_precision(one_way: bool) -> None:
    """Decreasing and convex, from its end without any precision to nearly nothing."""
    rng = np.random.default_rng(7)
    for expected in tables(rng):
        even = np.linspace(0, 0.05, 400)
        curve = one_way_risk(expected.ravel(), even) if one_way else interaction_risk(expected, 200.0, even)
        assert (np.diff(curve) < 0).all()
        assert (np.diff(curve, 2) > 0).all()
        far = np.array([1e12])
        left = one_way_risk(expected.ravel(), far) if one_way else interaction_risk(expected, 200.0, far)
        assert left < 1e-4 * curve[0]


@pytest.mark.parametrize("one_way", [False, True])
def test_classes_of_cells_are_as_good_as_cells(one_way: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large table whose cells are of very different size: within a fiftieth of the sum over all its cells."""
    rng = np.random.default_rng(8)
    expected = (rng.dirichlet(np.full(3000, 0.5)) * 40_000).reshape(50, 60)

    def curve() -> np.ndarray:
        return (
            one_way_risk(expected.ravel(), PRECISION)
            if one_way
            else interaction_risk(expected, 9000.0, PRECISION)
        )

    classes = curve()
    monkeypatch.setattr(risk, "BINS", expected.size)
    np.testing.assert_allclose(classes, curve(), rtol=0.02)


@pytest.mark.parametrize(
    ("expected", "distance"),
    [
        (np.full((1, 3), 20.0), 10.0),
        (np.full((2, 2), 20.0), 0.0),
        (np.full((2, 2), 20.0), -3.0),
        (np.zeros((2, 2)), 10.0),
    ],
    ids=["a constant column", "no distance", "less than none", "nothing predicted"],
)
def test_what_cannot_be_wrong_has_no_risk(expected: np.ndarray, distance: float) -> None:
    """Nothing to gain, at any precision."""
    assert (interaction_risk(expected, distance, PRECISION) == 0).all()


def test_a_column_of_one_level_has_no_risk() -> None:
    """Its table is the number of rows."""
    assert (one_way_risk(np.array([500.0]), PRECISION) == 0).all()
