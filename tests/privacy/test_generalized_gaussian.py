"""Research-only noise: its law and its scale."""

import math

import numpy as np
import pytest
from scipy.stats import gennorm, kstest, norm

from dpcipher.errors import BudgetError, ParameterError
from dpcipher.privacy.generalized_gaussian import GeneralizedGaussianNoise, generalized_scale
from dpcipher.privacy.unit import Unit

ONE = Unit("add-remove")


def test_power_two_is_the_closed_form_of_the_gaussian() -> None:
    """σ = b/√2 = Δ(t + √(t² + 2ε))/(2ε) with t = −Φ⁻¹(δ/2)."""
    for epsilon, delta in ((1.0, 1e-6), (0.3, 1e-4)):
        t = -norm.ppf(delta / 2)
        sigma = (t + math.sqrt(t**2 + 2 * epsilon)) / (2 * epsilon)
        assert generalized_scale(2, epsilon, delta, ONE) / math.sqrt(2) == pytest.approx(sigma)


def test_power_one_is_laplace() -> None:
    """b = Δ₁/ε, for both units, without a delta."""
    assert generalized_scale(1, 0.5, None, ONE) == 2
    assert generalized_scale(1, 0.5, None, Unit("replace", 3)) == 12


@pytest.mark.parametrize("power", [2, 3, 4])
@pytest.mark.parametrize(("relation", "cells"), [("add-remove", 1), ("replace", 2)])
def test_the_loss_exceeds_epsilon_as_rarely_as_delta_says(power: int, relation: str, cells: int) -> None:
    """The worst privacy loss over simulated noise; a tenth less noise breaks the promise where the bound is tight."""
    epsilon, delta = 1.0, 0.02
    scale = generalized_scale(power, epsilon, delta, Unit(relation))

    def exceed(b: float) -> float:
        noise = gennorm.rvs(power, scale=b, size=(400_000, cells), random_state=1)
        loss = ((np.abs(noise) + 1) ** power - np.abs(noise) ** power).sum(axis=1) / b**power
        return float((loss > epsilon).mean())

    assert exceed(scale) <= delta * 1.05
    if cells == 1:
        assert exceed(scale * 0.9) > delta


def test_the_noise_follows_its_law() -> None:
    """Kolmogorov–Smirnov against scipy's generalized normal; a wrong scale is rejected."""
    drawn = GeneralizedGaussianNoise(3, 5.0, seed=2).draw(50_000)
    assert kstest(drawn, gennorm(3, scale=5.0).cdf).pvalue > 1e-6
    assert kstest(drawn, gennorm(3, scale=5.5).cdf).pvalue < 1e-20


def test_it_is_marked_and_checked() -> None:
    """It never counts as private, and bad parameters are refused."""
    assert not GeneralizedGaussianNoise.is_private
    with pytest.raises(BudgetError, match="delta"):
        generalized_scale(2, 1.0, None, ONE)
    with pytest.raises(ParameterError, match="power"):
        GeneralizedGaussianNoise(0, 1.0, seed=1)
    with pytest.raises(ParameterError, match="scale"):
        GeneralizedGaussianNoise(2, math.nan, seed=1)
