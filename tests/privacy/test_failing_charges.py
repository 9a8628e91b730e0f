"""Charges of rho with delta: approximate zCDP, added up and converted, against exact laws of small mechanisms."""

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import reduce
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from dpcipher.errors import BudgetError, LedgerError, LedgerExceeded
from dpcipher.privacy.budget import Budget, rho_for, zcdp_to_epsilon
from dpcipher.privacy.composition import NOTHING, Total
from dpcipher.privacy.ledger import Ledger
from dpcipher.privacy.records import HashChain, read_chain
from dpcipher.privacy.terms import Unit


def compose(costs: Iterable[Budget]) -> Total:
    """Charges added up."""
    return reduce(Total.plus, costs, NOTHING)


Floats = NDArray[np.float64]
ROW = Unit("add-remove")
APPROX = Budget.parse(epsilon=1, delta=1e-2)
BOTH = Budget.parse(rho=0.1, delta=1e-3, may_fail=True)


def failing(rho: object, delta: object) -> Budget:
    """A charge that may fail."""
    return Budget.parse(rho=rho, delta=delta, may_fail=True)


class Step:
    """Discrete Gaussian noise on a bit that also gives the bit away with probability `failure`: its exact laws on 0 and on 1."""

    def __init__(self, rho: float, failure: float) -> None:
        sigma = math.sqrt(1 / (2 * rho)) if rho else math.inf
        reach = int(10 * sigma) + 3 if rho else 0
        places = np.arange(-reach, reach + 2)
        self.laws = [self._law(places - bit, sigma, failure, bit) for bit in (0, 1)]

    @staticmethod
    def _law(noise: NDArray[np.int64], sigma: float, failure: float, bit: int) -> Floats:
        weights = np.exp(-(noise**2) / (2 * sigma**2))
        quiet = (1 - failure) * weights / weights.sum()
        return np.r_[quiet, failure * (bit == 0), failure * (bit == 1)]


def divergence(epsilon: float, p: Floats, q: Floats) -> float:
    """The hockey-stick divergence: the smallest delta for this epsilon, one way."""
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def worst_adaptive(epsilon: float, first: Step, options: list[Step]) -> float:
    """The smallest delta at which two steps are (epsilon, delta), when the second is chosen for the worst after each outcome of the first.

    Outcomes of the first partition those of both, so that the largest of the options is taken for each of them apart.
    """
    both_ways = []
    for here, there in ((0, 1), (1, 0)):
        p, q = first.laws[here], first.laws[there]
        worst = [
            max(divergence(epsilon, a * step.laws[here], b * step.laws[there]) for step in options)
            for a, b in zip(p, q, strict=True)
        ]
        both_ways.append(math.fsum(worst))
    return max(both_ways)


def test_a_failing_mechanism_keeps_what_its_charge_converts_to() -> None:
    """The exact divergence of noise that gives the bit away now and then stays within rho and delta, converted."""
    for rho, failure in ((0.1, 1e-3), (0.02, 0.01), (0.5, 1e-6)):
        for delta in (1.01 * failure, 2 * failure, 10 * failure):
            epsilon = float(failing(rho, failure).epsilon_at(Fraction(delta)))
            step = Step(rho, failure)
            assert divergence(epsilon, *step.laws) <= delta
            assert divergence(epsilon, *step.laws) > failure * 0.999  # the failure is in it


def test_half_of_delta_is_for_failures_and_the_rest_for_rho() -> None:
    """(1, 0.01) as one charge: what it pays for is (1, 0.01) exactly by brute force, and not at a tenth of that delta."""
    cost = APPROX.failing()
    assert cost.delta == Fraction(1, 200)
    assert cost.rho == rho_for(Fraction(1), Fraction(1, 200))
    assert cost.epsilon_at(Fraction(1, 100)) == pytest.approx(1, abs=1e-9)
    exact = divergence(1.0, *Step(float(cost.amount), 0.005).laws)
    assert 0.1 * 0.01 < exact <= 0.01


def test_adaptive_charges_within_the_fixed_division_keep_the_limit() -> None:
    """Whatever second step follows each outcome of the first, within the rho and the delta that are left, (1, 0.01) holds."""
    whole = APPROX.failing()
    rho, failure = float(whole.amount), float(whole.failure)
    for part in (0.3, 0.5, 0.8):
        first = Step(rho * part, failure * part)
        rest_rho, rest = rho * (1 - part), failure * (1 - part)
        options = [Step(rest_rho, rest), Step(rest_rho, 0), Step(0, rest), Step(rest_rho / 3, rest / 2)]
        assert worst_adaptive(1.0, first, options) <= 0.01


def test_trading_rho_for_failures_after_a_look_would_break_the_limit() -> None:
    """Why the division is fixed first: each way to end is within (1, 0.01) by itself, and choosing between them by the outcome is not."""
    rho = float(rho_for(Fraction(1), Fraction(1, 100)))
    first = rho / 2
    needed = _delta_for(lambda delta: float(rho_for(Fraction(1), Fraction(delta))) >= first)
    ends = [Step(rho - first, 0), Step(0, 0.01 - needed)]
    for end in ends:
        assert worst_adaptive(1.0, Step(first, 0), [end]) <= 0.01
    assert worst_adaptive(1.0, Step(first, 0), ends) > 0.0112


def _delta_for(enough: Callable[[float], bool]) -> float:
    """The smallest delta that is enough, by halving its logarithm."""
    low, high = 1e-30, 0.01
    for _ in range(80):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def test_both_sums_stay_within_a_limit_of_rho_and_delta() -> None:
    """Rhos add up and deltas add up, exactly."""
    assert compose([failing(0.05, 5e-4)] * 2).fits(BOTH)
    assert compose([failing(0.05, 5e-4), Budget.parse(rho=0.05)]).fits(BOTH)
    assert compose([Budget.parse(rho=0.05), failing(0.05, 1e-3)]).fits(BOTH)
    assert not compose([failing(0.05, 5e-4)] * 2 + [Budget.parse(rho=1e-20)]).fits(BOTH)
    assert not compose([failing(0.01, 5e-4)] * 2 + [failing(0.01, 1e-20)]).fits(BOTH)
    left = compose([failing(0.04, 4e-4)]).remaining(BOTH)
    assert (left.rho, left.delta) == (Fraction(6, 100), Fraction(6, 10_000))


def test_the_first_charge_of_an_epsilon_delta_limit_fixes_the_division() -> None:
    """What begins with failures has half of delta for them; what does not has none, and keeps all of delta for rho."""
    cost = APPROX.failing()
    assert compose([cost]).fits(APPROX)
    assert not compose([cost, Budget.parse(rho=1e-20)]).fits(APPROX)
    part = Budget(rho=cost.rho and cost.rho / 4, delta=cost.failure / 2)
    assert compose([part, part, Budget(rho=cost.rho and cost.rho / 2)]).fits(APPROX)
    assert not compose([part, part, part]).fits(APPROX)
    assert not compose([Budget.parse(rho=1e-6), part]).fits(APPROX)
    assert not compose([Budget.parse(epsilon=1e-6), part]).fits(APPROX)
    spent = compose([part]).spent(APPROX)
    assert spent.failure == cost.failure / 2
    assert spent.epsilon == zcdp_to_epsilon(part.rho or Fraction(0), Fraction(1, 200))


@pytest.mark.parametrize("limit", [Budget.parse(epsilon=1), Budget.parse(rho=0.1)])
def test_a_guarantee_without_delta_pays_for_no_failure(limit: Budget) -> None:
    """The reason is said, and what to do."""
    with pytest.raises(BudgetError, match=r"delta \(None\) must be given .* try delta=1e-6"):
        limit.failing()
    assert not compose([failing(0.001, 1e-9)]).fits(limit)


def test_a_delta_beside_rho_is_refused_where_nothing_fails() -> None:
    """It would buy nothing."""
    with pytest.raises(BudgetError, match=r"delta \(0.001\) must not be given with rho"):
        Budget.parse(rho=0.1, delta=1e-3)


def test_two_steps_between_neighbours_keep_the_delta() -> None:
    """Four times rho, as for tables; each end of the two steps may fail on its own texts alone."""
    assert failing(0.01, 1e-6).doubled() == failing(0.04, 1e-6)


def test_a_ledger_adds_up_failures_and_says_what_is_left(tmp_path: Path) -> None:
    """Charged, read back, and refused at the first that is too much."""
    ledger = Ledger.create(tmp_path / "t.ledger", rho=0.1, delta=1e-3, unit=ROW)
    ledger.charge(failing(0.02, 6e-4), unit=ROW, what={})
    assert Ledger.open(ledger.path).spent.as_dict() == {"rho": "1/50", "delta": "3/5000"}
    with pytest.raises(LedgerExceeded, match=r"delta = 0\.0004"):
        ledger.charge(failing(0.02, 6e-4), unit=ROW, what={})
    ledger.charge(failing(0.08, 4e-4), unit=ROW, what={})
    assert ledger.remaining.as_dict() == {"rho": "0", "delta": "0"}


def test_an_epsilon_delta_ledger_takes_a_failing_charge_first_or_not_at_all(tmp_path: Path) -> None:
    """Refused with the reason where the first charge was another, before anything is written."""
    path = tmp_path / "late.ledger"
    ledger = Ledger.create(path, epsilon=1, delta=1e-2, unit=ROW)
    ledger.charge(Budget.parse(rho=1e-4), unit=ROW, what={})
    before = path.read_bytes()
    with pytest.raises(BudgetError, match="first of them was one that cannot fail"):
        ledger.charge(failing(1e-4, 1e-3), unit=ROW, what={})
    assert path.read_bytes() == before
    early = Ledger.create(tmp_path / "early.ledger", epsilon=1, delta=1e-2, unit=ROW)
    early.charge(APPROX.failing(), unit=ROW, what={})
    assert early.remaining.failure == 0


@pytest.mark.parametrize("terms", [{"epsilon": 1}, {"rho": 0.1}])
def test_a_ledger_without_delta_refuses_failures(tmp_path: Path, terms: dict[str, float]) -> None:
    """A limit that does not allow for failures is not stretched to."""
    ledger = Ledger.create(tmp_path / "t.ledger", **terms, unit=ROW)
    with pytest.raises(BudgetError, match=r"must be pure epsilon|has no delta for that"):
        ledger.check(failing(1e-4, 1e-9), unit=ROW)


def test_a_charge_that_nobody_can_count_is_no_charge(tmp_path: Path) -> None:
    """A record with delta and no rho or epsilon, with sound hashes, makes no sense and is refused."""
    ledger = Ledger.create(tmp_path / "t.ledger", rho=0.1, delta=1e-3, unit=ROW)
    chain = read_chain(ledger.path.read_bytes())
    (ledger.witness or Path()).unlink()
    body = {"type": "charge", "id": "x", "cost": {"delta": "1/10"}, "what": {}, "time": "2026-01-01"}
    data, _ = HashChain(chain.records, chain.keep).appended(body)
    ledger.path.write_bytes(ledger.path.read_bytes() + data)
    with pytest.raises(LedgerError, match="make no sense"):
        ledger.statement()
