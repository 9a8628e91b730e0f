"""The law of the noise."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dpcipher.errors import BudgetError, ParameterError
from dpcipher.privacy.budget import Budget, cost, noise_for
from dpcipher.privacy.terms import Unit
from dpcipher.tables.measurement import Noise

ONE = Unit("add-remove")


@pytest.mark.parametrize("scale", [0.05, 0.2, 0.5, 1.0, 1.9, 2.0, 3.0, 40.0])
@pytest.mark.parametrize("name", ["laplace", "gaussian"])
def test_variance_is_that_of_the_summed_law(name: str, scale: float) -> None:
    """Summing k² P(k) over all integers that matter gives the closed form to 12 digits."""
    if name == "gaussian" and scale < 0.06:
        scale = 0.07
    k = np.arange(-3000, 3001, dtype=float)
    log_weight = -np.abs(k) / scale if name == "laplace" else -(k**2) / (2 * scale**2)
    weight = np.exp(log_weight)
    expected = float((k**2 * weight).sum() / weight.sum())
    assert Noise(name, scale).variance == pytest.approx(expected, rel=1e-12)


def test_variance_at_a_large_scale_loses_no_digits() -> None:
    """Discrete Laplace tends to 2b² - 1/6."""
    assert Noise("laplace", 2.0**20).variance == pytest.approx(2.0**41 - 1 / 6, rel=1e-13)
    assert Noise("none", 0).variance == 0


@pytest.mark.parametrize(
    "bad", [0, -1, float("nan"), float("inf"), 1e-320, 1e-5, 1e13, 1e308, "1", True, None]
)
@pytest.mark.parametrize("name", ["laplace", "gaussian"])
def test_a_bad_scale_is_refused(name: str, bad: object) -> None:
    """Noise that is nothing, infinite or no number is no mechanism."""
    with pytest.raises(ParameterError, match="scale"):
        Noise(name, bad)  # type: ignore[arg-type]


def test_names_are_checked() -> None:
    """Only three laws exist, and exact counts have scale 0."""
    with pytest.raises(ParameterError, match="mechanism"):
        Noise("cauchy", 1.0)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="scale"):
        Noise("none", 1.0)
    with pytest.raises(BudgetError, match="none"):
        cost(Noise("none", 0), ONE)


@pytest.mark.parametrize("unit", [ONE, Unit("replace"), Unit("add-remove", 3), Unit("replace", 3)])
@pytest.mark.parametrize("budget", [{"epsilon": 0.1}, {"rho": 0.37}, {"epsilon": 1, "delta": 1e-6}])
def test_the_noise_costs_its_share_and_hardly_less(unit: Unit, budget: dict[str, float]) -> None:
    """The exact cost of the chosen noise is within the share, and within 1e-12 of it."""
    share = Budget.parse(**budget)
    charged, whole = cost(noise_for(share, unit), unit), share.composable()
    spent, allowed = charged.rho or charged.epsilon, whole.rho or whole.epsilon
    assert allowed * (1 - Fraction(1, 10**12)) <= spent <= allowed


def test_tables_cost_what_the_text_book_says() -> None:
    """28 tables at epsilon 1 take scale 28; replacement doubles it, three rows a person triple it."""
    share = Budget.parse(epsilon=1).share(Fraction(1, 28))
    scales = [noise_for(share, unit).scale for unit in (ONE, Unit("replace"), Unit("add-remove", 3))]
    assert scales == [28.0, 56.0, 84.0]
    gaussian = noise_for(Budget.parse(rho=0.5).share(Fraction(1, 4)), Unit("replace", 3))
    assert gaussian.scale == pytest.approx(math.sqrt(2) * 3 * 2, rel=1e-13)


@pytest.mark.parametrize("budget", [{"epsilon": 1e6}, {"rho": 1e6}, {"epsilon": 1e-20}, {"rho": 1e-20}])
def test_budgets_that_buy_no_noise_or_too_much_are_refused(budget: dict[str, float]) -> None:
    """Between nothing and overflow."""
    unit = Unit("add-remove", 10**6) if min(budget.values()) < 1 else ONE
    with pytest.raises(ParameterError, match="scale"):
        noise_for(Budget.parse(**budget), unit)


def test_describe_names_law_and_scale() -> None:
    """A phrase that a certificate can print."""
    assert Noise("gaussian", 2.5).describe() == "discrete Gaussian noise of scale 2.5"
    assert Noise("none", 0).describe() == "no noise"
