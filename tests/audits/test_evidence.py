"""Bounds that hold: never above the truth but by the stated chance, and near it with enough draws."""

import numpy as np
import pytest
from scipy.stats import binomtest, norm

from dpcipher.evaluation.evidence import (
    clopper_pearson,
    epsilon_of,
    lower_bound,
    mu_of,
    mu_on_integers,
    root_rho_of,
)


@pytest.mark.parametrize(("hits", "trials"), [(0, 10), (3, 10), (10, 10), (417, 1000)])
def test_bounds_of_a_probability_are_those_of_scipy(hits: int, trials: int) -> None:
    """Clopper and Pearson's interval, as the exact binomial test of scipy gives it."""
    known = binomtest(hits, trials).proportion_ci(confidence_level=1 - 2e-4, method="exact")
    assert np.array(clopper_pearson(hits, trials, 1e-4)) == pytest.approx([known.low, known.high])


def laplace_losses(epsilon: float, trials: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Losses of continuous Laplace noise on a count, with a row and without it."""
    noise = rng.laplace(0, 1 / epsilon, (2, trials))
    return [epsilon * (np.abs(x - 1) - np.abs(x)) for x in (noise[0], noise[1] + 1)]


def test_laplace_noise_proves_its_epsilon_and_no_more() -> None:
    """At 200,000 draws at least nine tenths of the claim; in 200 small audits at a chance of one in a hundred, rarely more than the claim."""
    rng = np.random.default_rng(5)
    assert 0.9 < lower_bound(*laplace_losses(1.0, 200_000, rng), epsilon_of, 1e-8) <= 1
    found = [lower_bound(*laplace_losses(1.0, 400, rng), epsilon_of, 0.01) for _ in range(200)]
    assert np.mean(np.array(found) > 1) < 0.03


@pytest.mark.parametrize("bound", [mu_of, root_rho_of])
def test_gaussian_noise_proves_its_mu_and_no_more(bound) -> None:
    """Losses of Gaussian noise are normal with mean mu²/2 and variance mu²; the bound for any mechanism proves less of it."""
    rng, mu = np.random.default_rng(6), 1.5
    here, there = (sign * mu**2 / 2 + mu * rng.normal(size=200_000) for sign in (1, -1))
    found = lower_bound(here, there, bound, 1e-8)
    assert (0.95 if bound is mu_of else 0.75) * mu < found <= mu


def test_too_little_noise_is_proved() -> None:
    """Half the noise that epsilon = 1 needs shows more than 1."""
    assert lower_bound(*laplace_losses(2.0, 20_000, np.random.default_rng(1)), epsilon_of, 1e-8) > 1.5


def test_nothing_is_proved_of_equal_losses() -> None:
    """Where no draw tells the tables apart, the bound is 0."""
    assert lower_bound(np.zeros(500), np.zeros(500), epsilon_of, 1e-6) == 0


@pytest.mark.parametrize("scale", [0.69, 0.8, 1.0, 1.5, 2.0, 5.0, 20.0])
@pytest.mark.parametrize("shift", [1, 3])
def test_gaussian_noise_on_integers_never_shows_more_than_its_mu(scale: float, shift: int) -> None:
    """The exact probabilities of every threshold event of the discrete Gaussian, by its series."""
    reach = int(8 * scale) + 10 + shift
    values = np.arange(-reach, reach + 1)
    weights = np.exp(-(values**2) / (2 * scale**2))
    tail = (weights / weights.sum())[::-1].cumsum()[::-1]
    events = [
        (float(p), float(q))
        for p, q in zip(tail[:-shift], tail[shift:], strict=True)
        if q > 1e-9 and p < 1 - 1e-9
    ]
    assert events
    largest = max(mu_on_integers(scale)(p, q) for p, q in events)
    assert largest <= shift / scale * (1 + 1e-6)


def test_an_event_needs_the_rho_of_its_renyi_divergence() -> None:
    """The bound for any mechanism, against the divergence of two coins over a fine grid of orders."""
    p, q = 0.6, 0.2
    orders = np.linspace(1.0005, 60, 40_000)
    inside = p**orders * q ** (1 - orders) + (1 - p) ** orders * (1 - q) ** (1 - orders)
    known = np.sqrt(2 * (np.log(inside) / (orders - 1) / orders).max())
    assert root_rho_of(p, q) == pytest.approx(known, rel=1e-3)
    assert mu_of(p, q) == pytest.approx(norm.ppf(p) - norm.ppf(q))
