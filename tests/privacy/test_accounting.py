"""The accountant against published numbers, a brute-force search, and OpenDP's own maps."""

import inspect
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcipher.privacy.budget import (
    Budget,
    exponential_to_rho,
    float_up,
    noise_for,
    pure_to_rho,
    rho_for,
    sqrt_up,
    zcdp_to_epsilon,
)
from dpcipher.privacy.events import Sensitivity

MILLIONTH = Fraction(1, 10**6)


def log_delta(rho: float, epsilon: float) -> float:
    """log of the least delta of the CKS20 conversion, by trying two million orders."""
    u = np.exp(np.linspace(-12, 25, 2_000_001))
    alpha = 1 + u
    return float(np.min(u * (alpha * rho - epsilon) - np.log(u) - alpha * np.log1p(1 / u)))


def test_sigma_at_one_and_a_millionth() -> None:
    """The published noise per unit L2 at (1, 1e-6) is 4.530877117036; the loose conversion would need 5.350."""
    assert round(
        noise_for(Budget(rho=rho_for(Fraction(1), MILLIONTH)), Sensitivity(1, 1)).scale, 12
    ) == pytest.approx(4.530877117036, abs=2e-12)
    loose = (math.sqrt(math.log(1e6) + 1) - math.sqrt(math.log(1e6))) ** 2
    assert round(1 / math.sqrt(2 * loose), 2) == 5.35


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 8.0])
@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-12])
def test_rho_is_safe_and_tight(epsilon: float, delta: float) -> None:
    """Brute force over orders confirms the delta, and refuses a rho that is 0.01 % larger."""
    rho = float(rho_for(Fraction(repr(epsilon)), Fraction(repr(delta))))
    assert log_delta(rho, epsilon) <= math.log(delta) + 1e-9
    assert log_delta(rho * 1.0001, epsilon) > math.log(delta)


@settings(deadline=None)
@given(st.floats(1e-6, 50), st.floats(1e-15, 0.1))
def test_the_two_conversions_are_inverse(epsilon: float, delta: float) -> None:
    """Going to rho and back never gains privacy and loses almost none."""
    exact, d = Fraction(repr(epsilon)), Fraction(repr(delta))
    back = zcdp_to_epsilon(rho_for(exact, d), d)
    assert float(back) == pytest.approx(epsilon, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("sigma", [0.3, 1.0, 4.53, 22.3549, 1000.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12])
def test_epsilon_agrees_with_opendp(sigma: float, delta: float) -> None:
    """OpenDP converts the same zCDP guarantee to the same epsilon; ours is not below it."""
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=dp.i64)), dp.l2_distance(T=dp.f64)
    make = inspect.unwrap(dp.m.make_gaussian)  # OpenDP's own, also where a tape was put before it
    curve = dp.c.make_zCDP_to_approxDP(make(*space, scale=sigma))
    theirs, _ = dp.c.make_fix_delta(curve, delta).map(1.0)
    ours = zcdp_to_epsilon(1 / (2 * Fraction(sigma) ** 2), Fraction(repr(delta)))
    assert theirs <= ours <= theirs + 1e-12


def test_extreme_parameters_stay_finite_and_positive() -> None:
    """The corners of what a budget accepts give a positive rho, smaller than the epsilon rule of thumb allows."""
    for epsilon in (Fraction(1, 10**20), Fraction(1), Fraction(10**6)):
        for delta in (Fraction(1, 10**20), Fraction(1, 2), Fraction(999999, 10**6)):
            rho = rho_for(epsilon, delta)
            assert rho > 0
            assert zcdp_to_epsilon(rho, delta) <= epsilon * (1 + Fraction(1, 10**6)) + Fraction(1, 10**9)


@settings(deadline=None)
@given(st.fractions(Fraction(1, 10**6), 60), st.integers(1, 10**5))
def test_laplace_scale_is_rounded_toward_privacy(epsilon: Fraction, l1: int) -> None:
    """The exact cost of the rounded scale is at most the budget, and one float less would cost more."""
    scale = noise_for(Budget(epsilon=epsilon), Sensitivity(l1, 1)).scale
    assert l1 / Fraction(scale) <= epsilon
    assert l1 / Fraction(math.nextafter(scale, 0)) > epsilon


@settings(deadline=None)
@given(st.fractions(Fraction(1, 10**9), 100), st.integers(1, 10**6))
def test_gaussian_scale_is_rounded_toward_privacy(rho: Fraction, l2_squared: int) -> None:
    """The exact cost of the rounded sigma is at most the budget, and within 1e-13 of it."""
    sigma = noise_for(Budget(rho=rho), Sensitivity(1, l2_squared)).scale
    cost = l2_squared / (2 * Fraction(sigma) ** 2)
    assert rho * (1 - Fraction(1, 10**13)) <= cost <= rho


@settings(deadline=None)
@given(st.fractions(Fraction(1, 10**12), 10**12))
def test_rounding_helpers_round_up(value: Fraction) -> None:
    """Neither helper is ever below the truth, nor two floats above it."""
    assert Fraction(float_up(value)) >= value > Fraction(math.nextafter(float_up(value), 0))
    root = sqrt_up(value)
    assert Fraction(root) ** 2 >= value > Fraction(math.nextafter(math.nextafter(root, 0), 0)) ** 2


def test_rho_of_pure_mechanisms() -> None:
    """Randomised response at epsilon has Renyi divergence at most alpha epsilon²/2, and alpha epsilon²/8 for its bounded range."""
    for epsilon in (0.1, 1.0, 3.0):
        p = math.exp(epsilon) / (1 + math.exp(epsilon))
        for alpha in (1.01, 2.0, 10.0, 100.0):
            renyi = math.log(p**alpha * (1 - p) ** (1 - alpha) + (1 - p) ** alpha * p ** (1 - alpha)) / (
                alpha - 1
            )
            assert renyi <= alpha * pure_to_rho(Fraction(epsilon))
        # Two options whose scores differ by the sensitivity: the exponential mechanism at epsilon moves log-odds by epsilon/2 each.
        q, r = 0.5, math.exp(epsilon / 2) / (1 + math.exp(epsilon / 2))
        renyi = math.log(q**2 / r + (1 - q) ** 2 / (1 - r))
        assert renyi <= 2 * exponential_to_rho(Fraction(epsilon))
