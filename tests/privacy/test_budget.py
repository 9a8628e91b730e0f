"""Exact budgets, and everything they refuse."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcipher.errors import BudgetError
from dpcipher.privacy.budget import Budget, positive_fraction, rho_for, zcdp_to_epsilon
from effort import at_most

BAD_NUMBERS = [
    0, 0.0, -1, -0.5, float("nan"), float("inf"), -float("inf"), 1e-320, 1e308, "1", "", True, False, 1j, [1.0],
    Fraction(0), Fraction(1, 10**30), Decimal("NaN"), Decimal("Infinity"), np.float64("nan"), np.bool_(True),
]  # fmt: skip


@pytest.mark.parametrize("bad", [*BAD_NUMBERS, None], ids=repr)
def test_positive_fraction_refuses_what_is_no_positive_number(bad: object) -> None:
    """The message names the parameter and shows the value; the error is also a ValueError."""
    with pytest.raises(BudgetError, match=r"^epsilon \(.*\) must be a finite number above 0") as caught:
        positive_fraction("epsilon", bad)
    assert repr(bad) in str(caught.value)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("name", ["epsilon", "delta", "rho"])
@pytest.mark.parametrize("bad", BAD_NUMBERS, ids=repr)
def test_every_parameter_of_a_budget_is_checked(name: str, bad: object) -> None:
    """No parameter of parse lets a bad number through."""
    others = {"epsilon": 1.0} if name == "delta" else {}
    with pytest.raises(BudgetError, match=name):
        Budget.parse(**others, **{name: bad})


@pytest.mark.parametrize(
    ("value", "exact"),
    [
        (0.1, Fraction(1, 10)),
        (1, Fraction(1)),
        (1e-6, Fraction(1, 10**6)),
        (Fraction(1, 3), Fraction(1, 3)),
        (Decimal("0.3"), Fraction(3, 10)),
        (np.float64(0.1), Fraction(1, 10)),
        (np.int64(2), Fraction(2)),
        (np.float32(0.5), Fraction(1, 2)),
    ],
)
def test_numbers_are_taken_as_they_are_written(value: object, exact: Fraction) -> None:
    """A float means its shortest decimal, so that ten times 0.1 is one."""
    assert positive_fraction("epsilon", value) == exact


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"epsilon": 1, "rho": 1}, "together"),
        ({"rho": 1, "delta": 1e-6}, "delta"),
        ({"delta": 1e-6}, "epsilon"),
        ({}, "epsilon"),
        ({"epsilon": 1, "delta": 1}, "below 1"),
        ({"epsilon": 1, "delta": 1.5}, "below 1"),
        ({"epsilon": 1, "delta": 1e-6, "mechanism": "laplace"}, r"delta \(1e-06\)"),
        ({"rho": 0.5, "mechanism": "laplace"}, r"rho \(0.5\)"),
        ({"epsilon": 1, "mechanism": "gaussian"}, "delta"),
        ({"mechanism": "gaussian"}, "epsilon"),
        ({"mechanism": "laplace"}, "epsilon"),
        ({"epsilon": 1, "mechanism": "cauchy"}, "mechanism"),
    ],
)
def test_parse_refuses_bad_combinations(given_: dict[str, object], message: str) -> None:
    """Each guarantee has one way to be asked for."""
    with pytest.raises(BudgetError, match=message):
        Budget.parse(**given_)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given_", "kind"),
    [
        ({"epsilon": 1, "mechanism": "laplace"}, "pure"),
        ({"epsilon": 1, "delta": 1e-6, "mechanism": "gaussian"}, "approx"),
        ({"rho": 0.5, "mechanism": "gaussian"}, "zcdp"),
    ],
)
def test_the_three_kinds(given_: dict[str, object], kind: str) -> None:
    """Each good combination has its kind, and survives a round trip through plain values."""
    budget = Budget.parse(**given_)  # type: ignore[arg-type]
    assert kind == budget.kind
    assert budget == Budget.from_dict(budget.as_dict())


@pytest.mark.parametrize(
    "bad", [{"epsilon": 1.0}, {"epsilon": Fraction(-1)}, {"rho": Fraction(0)}, {}, {"delta": Fraction(1, 2)}]
)
def test_a_budget_is_checked_at_birth(bad: dict[str, object]) -> None:
    """Even without parse there is no half-made budget."""
    with pytest.raises(BudgetError):
        Budget(**bad)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "values",
    [
        {"epsilon": "1e99999999"},
        {"epsilon": "9" * 100_000},
        {"epsilon": "1/" + "9" * 401},
        {"epsilon": "1/0"},
        {"epsilon": "0/1"},
        {"epsilon": "1000001"},
        {"epsilon": "-1"},
        {"epsilon": " 1"},
        {"epsilon": "1_0"},
        {"epsilon": "0.1"},
        {"epsilon": "\u0661"},
        {"epsilon": ""},
        {"epsilon": 1},
        {"epsilon": 0.5},
        {"epsilon": None},
        {"epsilon": ["1"]},
        {"epsilon": "1", "rho": "1"},
        {"epsilon": "1", "delta": "1"},
        {"epsilon": "1", "alpha": "1"},
        {},
        [],
        None,
        "epsilon",
    ],
)
def test_a_text_that_is_no_budget_is_refused_at_once(values: object) -> None:
    """A file may say anything; nothing of it is computed before its length and its signs are known to be good."""
    with at_most(seconds=1), pytest.raises(BudgetError) as caught:
        Budget.from_dict(values)  # type: ignore[arg-type]
    assert len(str(caught.value)) < 300


@given(st.fractions(min_value=Fraction(1, 10**20), max_value=10**6, max_denominator=10**190))
def test_every_budget_that_is_accepted_can_be_read_back(value: Fraction) -> None:
    """What parse takes, from_dict takes, digit for digit."""
    budget = Budget.parse(epsilon=value)
    assert budget == Budget.from_dict(budget.as_dict())


@pytest.mark.parametrize(
    "value",
    [Decimal("1e99999999"), Decimal("1e-99999999"), Fraction(10**500 + 1, 10**500), 10**5000],
    ids=["endless", "endless small", "long", "large"],
)
def test_numbers_that_no_file_could_hold_are_refused(value: object) -> None:
    """An endless exponent, and more digits than are read back, are typing errors."""
    with pytest.raises(BudgetError, match="epsilon"):
        Budget.parse(epsilon=value)


def test_a_budget_that_could_not_be_read_back_is_not_written() -> None:
    """Better no charge than one that makes the ledger unreadable."""
    for value in (Fraction(1, 3**900), Fraction(10**7)):
        with pytest.raises(BudgetError, match="round it"):
            Budget(epsilon=value).as_dict()


@pytest.mark.parametrize("words", [{"epsilon": 0.7}, {"rho": 0.3}, {"epsilon": 0.7, "delta": 1e-6}])
@settings(deadline=None)
@given(parts=st.lists(st.fractions(Fraction(1, 10**9), 10**5), min_size=1, max_size=40))
def test_shares_lose_and_invent_nothing(words: dict[str, float], parts: list[Fraction]) -> None:
    """The parts add up to the whole exactly, in their proportions: (epsilon, delta) is shared out as rho."""
    budget = Budget.parse(**words)
    shares = [budget.share(part / sum(parts)) for part in parts]
    assert all(share.kind == budget.composable().kind for share in shares)
    assert sum(share.amount for share in shares) == budget.amount
    assert all(
        share.amount * parts[0] == shares[0].amount * part for share, part in zip(shares, parts, strict=True)
    )


def test_epsilon_at_states_every_kind_in_the_same_terms() -> None:
    """Pure budgets stay, rho is converted, and an (epsilon, delta) budget cannot promise a smaller delta."""
    delta = Fraction(1, 10**6)
    assert Budget.parse(epsilon=1).epsilon_at(delta) == 1
    assert Budget.parse(rho=0.5).epsilon_at(delta) == zcdp_to_epsilon(Fraction(1, 2), delta)
    assert Budget.parse(epsilon=1, delta=1e-6).epsilon_at(delta) == 1
    with pytest.raises(BudgetError, match="at least"):
        Budget.parse(epsilon=1, delta=1e-5).epsilon_at(delta)


def test_composable_is_the_tight_rho() -> None:
    """Only (epsilon, delta) changes its form."""
    pure, rho = Budget.parse(epsilon=1), Budget.parse(rho=1)
    assert (pure, rho) == (pure.composable(), rho.composable())
    assert Budget.parse(epsilon=1, delta=1e-6).composable().rho == rho_for(Fraction(1), Fraction(1, 10**6))
