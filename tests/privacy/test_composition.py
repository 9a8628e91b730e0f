"""Several charges against one limit."""

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import reduce

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcipher.errors import BudgetError
from dpcipher.privacy.budget import Budget, rho_for
from dpcipher.privacy.composition import NOTHING, Total, check_kind


def compose(costs: Iterable[Budget]) -> Total:
    """Charges added up."""
    return reduce(Total.plus, costs, NOTHING)


PURE = Budget.parse(epsilon=1)
APPROX = Budget.parse(epsilon=1, delta=1e-6)
ZCDP = Budget.parse(rho=0.5)
SIXTHS = [APPROX.share(Fraction(part, 6)) for part in (1, 2, 3)]


def epsilon(value: object) -> Budget:
    """A pure charge."""
    return Budget.parse(epsilon=value)


def rho(value: object) -> Budget:
    """A zCDP charge."""
    return Budget.parse(rho=value)


def test_ten_tenths_are_one() -> None:
    """Float sums of 0.1 and 0.2 go wrong; fractions do not."""
    assert compose([epsilon(0.1)] * 10).epsilon == 1
    assert compose([epsilon(0.1), epsilon(0.2), epsilon(0.7)]).fits(PURE)
    assert not compose([epsilon(0.1)] * 10 + [epsilon(1e-20)]).fits(PURE)


def test_a_rho_limit_counts_pure_charges_as_half_their_square() -> None:
    """Pure epsilon 1 is rho 1/2."""
    assert compose([epsilon(1)]).fits(ZCDP)
    assert compose([epsilon(0.6), rho(0.32)]).fits(ZCDP)
    assert not compose([epsilon(0.6), rho(0.32), rho(1e-20)]).fits(ZCDP)


def test_an_approximate_limit_takes_its_whole_epsilon_as_pure() -> None:
    """Pure charges may simply be summed, whatever delta is."""
    assert compose([epsilon(0.5), epsilon(0.5)]).fits(APPROX)
    assert not compose([epsilon(0.5), epsilon(0.6)]).fits(APPROX)


def test_an_approximate_limit_takes_exactly_its_own_gaussian_release() -> None:
    """The rho that (1, 1e-6) buys fits to the last digit, whole or in parts, and nothing more does."""
    assert compose([APPROX.composable()]).fits(APPROX)
    assert compose(SIXTHS).fits(APPROX)
    assert not compose([*SIXTHS, epsilon(1e-9)]).fits(APPROX)
    assert not compose([*SIXTHS, rho(1e-20)]).fits(APPROX)


def test_many_small_pure_charges_may_use_the_concentrated_rule() -> None:
    """A thousand charges of 0.006 sum to 6, but to a rho of 0.018, which (1, 1e-6) allows."""
    many = compose([epsilon(0.006)] * 1000)
    assert many.fits(APPROX)
    assert many.spent(APPROX).epsilon < 1
    assert not many.fits(PURE)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.booleans(), st.floats(1e-4, 0.5)), max_size=12),
    st.sampled_from([PURE, APPROX, ZCDP]),
)
def test_remaining_is_the_largest_charge_that_fits(charges: list[tuple[bool, float]], limit: Budget) -> None:
    """What remains can be charged; a thousandth more cannot."""
    costs = [epsilon(value) if pure or limit is PURE else rho(value / 20) for pure, value in charges]
    while costs and not compose(costs).fits(limit):
        costs.pop()
    left = compose(costs).remaining(limit)
    for amount, make in ((left.epsilon, lambda x: Budget(epsilon=x)), (left.rho, lambda x: Budget(rho=x))):
        if amount is None:
            continue
        if amount > 0:
            assert compose([*costs, make(amount)]).fits(limit)
        assert not compose([*costs, make(amount * Fraction(1001, 1000) + Fraction(1, 10**9))]).fits(limit)


def test_spent_is_what_the_charges_imply() -> None:
    """A fresh ledger has spent nothing, a full one its limit."""
    assert (
        compose([]).spent(APPROX).epsilon
        == compose([]).spent(PURE).epsilon
        == compose([]).spent(ZCDP).rho
        == 0
    )
    assert compose([epsilon(1)]).spent(PURE).epsilon == 1
    full = compose([APPROX.composable()]).spent(APPROX)
    assert float(full.epsilon) == pytest.approx(1, abs=1e-12)
    assert full.epsilon <= 1
    assert (full.delta, full.rho) == (APPROX.delta, rho_for(Fraction(1), Fraction(1, 10**6)))
    assert compose([epsilon(1)]).spent(APPROX).delta == 0


def test_the_two_rules_hold_for_randomised_response() -> None:
    """The exact delta of k randomised responses, from binomial sums, stays below the limit's wherever they fit."""
    for each, k in ((0.01, 300), (0.02, 100), (0.05, 20), (0.25, 4), (0.005, 1900)):
        assert compose([epsilon(each)] * k).fits(APPROX)
        p = math.exp(each) / (1 + math.exp(each))
        exact = 0.0
        for wins in range(k + 1):
            log_p = math.lgamma(k + 1) - math.lgamma(wins + 1) - math.lgamma(k - wins + 1)
            loss = (2 * wins - k) * each
            mass = math.exp(log_p + wins * math.log(p) + (k - wins) * math.log(1 - p))
            exact += mass * max(0.0, -math.expm1(1 - loss))
        assert exact <= 1e-6


def test_approximate_charges_and_foreign_kinds_are_refused() -> None:
    """The message says how to charge instead."""
    with pytest.raises(BudgetError, match="composable"):
        compose([APPROX])
    with pytest.raises(BudgetError, match="composable"):
        check_kind(APPROX, APPROX)
    with pytest.raises(BudgetError, match="laplace"):
        check_kind(ZCDP, PURE)
