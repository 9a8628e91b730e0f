"""Distances believed after reading them with noise: against a posterior that knows the prior, and at both ends of the noise."""

import numpy as np
import pytest

from dpcipher.privacy.draws import SeededNoise
from dpcipher.selection.prediction import MAX_SAMPLE, posterior_distances
from dpcipher.tables.measurement import Noise

LARGEST = 20_000.0


def noise(name: str, deviation: float) -> Noise:
    """Noise of about that standard deviation."""
    return Noise(name, deviation if name == "gaussian" else deviation / 2**0.5)


def off(guess: np.ndarray, true: np.ndarray) -> float:
    """The root of the mean squared error."""
    return float(np.sqrt(np.mean((guess - true) ** 2.0)))


def informed(noisy: np.ndarray, mechanism: Noise, values: np.ndarray, chances: np.ndarray) -> np.ndarray:
    """The posterior mean of one who knows the prior, by Bayes' rule over its values."""
    away = np.abs(noisy[:, None] - values) / mechanism.variance**0.5
    likely = chances * np.exp(-(2**0.5) * away if mechanism.kind == "laplace" else -0.5 * away**2)
    return likely @ values / likely.sum(axis=1)


@pytest.mark.parametrize("name", ["laplace", "gaussian"])
@pytest.mark.parametrize("size", [300, 1500])
def test_two_kinds_of_distances_are_told_apart(name: str, size: int) -> None:
    """Nine tenths at 50 and a tenth at 2,000 under noise of 400: nearly as good as knowing that."""
    mechanism, errors = noise(name, 400), []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        true = np.where(rng.random(size) < 0.1, 2000, 50)
        noisy = SeededNoise(seed).add(true, mechanism)
        known = informed(noisy, mechanism, np.array([50.0, 2000.0]), np.array([0.9, 0.1]))
        errors.append(
            [off(each, true) for each in (posterior_distances(noisy, mechanism, LARGEST), known, noisy)]
        )
    found, best, raw = np.mean(errors, axis=0)
    assert best <= found < 1.35 * best
    assert found < raw / 2


@pytest.mark.parametrize("name", ["laplace", "gaussian"])
def test_without_noise_the_readings_are_believed(name: str) -> None:
    """The least noise that is noise: every distance to within the step of the grid."""
    true = np.concatenate([[0, 0], np.random.default_rng(1).integers(1, 19_000, 200)])
    mechanism = Noise(name, {"laplace": 1 / 64, "gaussian": 1 / 16}[name])
    found = posterior_distances(true, mechanism, LARGEST)
    np.testing.assert_allclose(found, true, rtol=0.08, atol=1e-3)


@pytest.mark.parametrize("name", ["laplace", "gaussian"])
def test_drowned_distances_are_believed_to_be_alike(name: str) -> None:
    """Noise of 5,000 on distances near 4,200: all become about their mean."""
    true = np.random.default_rng(2).integers(4000, 4400, 300)
    noisy = SeededNoise(4).add(true, noise(name, 5000))
    found = posterior_distances(noisy, noise(name, 5000), LARGEST)
    assert noisy.std() > 4000
    assert found.std() < noisy.std() / 4
    assert found.mean() == pytest.approx(noisy.mean(), rel=0.1)


@pytest.mark.parametrize("name", ["laplace", "gaussian"])
@pytest.mark.parametrize("deviation", [0.3, 3.0, 300.0])
def test_what_was_not_learnt_from_is_believed_too(name: str, deviation: float) -> None:
    """More readings than the prior is learnt from, a few of them unlike all others: each is near itself, and a number."""
    true = np.concatenate([np.full(2 * MAX_SAMPLE, 10), [900, 2700, 5300, 9100, 14_700]])
    found = posterior_distances(true, noise(name, deviation), LARGEST)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[-5:], true[-5:], rtol=0.12, atol=3 * deviation)
    np.testing.assert_allclose(found[:-5], 10, atol=max(1, deviation / 3))


@pytest.mark.parametrize("name", ["laplace", "gaussian"])
def test_readings_outside_what_can_be_stay_within(name: str) -> None:
    """Negative readings and ones beyond the largest distance give distances that can be, in the same order."""
    found = posterior_distances(np.array([-50_000, -10, 40, 3000, 90_000]), noise(name, 20), LARGEST)
    assert found.min() >= 0
    assert found.max() <= LARGEST * (1 + 1e-12)
    assert (np.diff(found) >= 0).all()


def test_one_reading_is_enough() -> None:
    """A single table: the prior is learnt from it alone."""
    assert posterior_distances(np.array([700]), noise("gaussian", 50), LARGEST)[0] == pytest.approx(
        700, abs=60
    )
