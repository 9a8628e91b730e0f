"""What several charges cost together, measured against a limit.

A charge is pure epsilon or rho of zCDP, and the limit decides how they add up:

- pure limit: only pure charges; their epsilons are summed.
- rho limit: rhos are summed; a pure charge counts as epsilon²/2.
- (epsilon, delta) limit: the charges fit if *either* all of them are pure and their epsilons sum to at most the limit's,
  *or* their rhos (pure ones as epsilon²/2) sum to at most the largest rho that implies (epsilon, delta).

Either one is enough, also when each charge is chosen after seeing the results of the earlier ones. Take the hockey-stick
divergence at epsilon, the mean of (1 - e^(epsilon - loss))+, whose bound is delta. Histories that end within the rho
rule contribute at most delta in all, because stopping at a fixed sum of rho is a valid filter (Feldman and Zrnic
2021, and the rho sum never falls). Histories that end outside it are all pure with a sum of at most epsilon, so
that their loss never exceeds epsilon and they contribute nothing.

(epsilon, delta) charges themselves are refused: sums of deltas next to sums of rho would break that argument, and every
mechanism here has a rho (`Budget.composable`).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from dpcipher.errors import BudgetError
from dpcipher.privacy.accounting import pure_to_rho, rho_for, zcdp_to_epsilon
from dpcipher.privacy.budget import Budget, show


@dataclass(frozen=True)
class Amount:
    """How much was spent or is left, in the terms of a limit; unlike a Budget it may be zero."""

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    rho: Fraction | None = None

    def as_dict(self) -> dict[str, str]:
        """Exact plain values, for a file."""
        values = {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho}
        return {name: str(value) for name, value in values.items() if value is not None}

    def describe(self) -> str:
        """A phrase for people.

        >>> Amount(epsilon=Fraction(1, 4)).describe()
        'epsilon = 0.25'
        """
        return ", ".join(f"{name} = {show(Fraction(value))}" for name, value in self.as_dict().items())


@dataclass(frozen=True)
class Total:
    """Charges added up both ways."""

    epsilon: Fraction  # of the pure charges
    rho: Fraction  # of all charges, pure ones as epsilon²/2
    only_pure: bool

    def plus(self, cost: Budget) -> "Total":
        """The total with one more charge."""
        if cost.rho is not None:
            return Total(self.epsilon, self.rho + cost.rho, only_pure=False)
        if cost.epsilon is None or cost.delta is not None:
            raise BudgetError(f"cost ({cost.describe()}) must be epsilon alone or rho; try cost.composable()")
        return Total(self.epsilon + cost.epsilon, self.rho + pure_to_rho(cost.epsilon), self.only_pure)

    def fits(self, limit: Budget) -> bool:
        """Whether charges with this total stay within the limit."""
        if limit.rho is not None:
            return self.rho <= limit.rho
        assert limit.epsilon is not None  # a limit has rho or epsilon
        if self.only_pure and self.epsilon <= limit.epsilon:
            return True
        return limit.delta is not None and self.rho <= rho_for(limit.epsilon, limit.delta)

    def spent(self, limit: Budget) -> Amount:
        """The total in the terms of the limit, each number rounded up."""
        if limit.rho is not None:
            return Amount(rho=self.rho)
        if limit.epsilon is None or limit.delta is None or not self.rho:
            return Amount(epsilon=self.epsilon, delta=None if limit.delta is None else Fraction(0))
        # What fits gives (limit.epsilon, limit.delta); the conversion's last rounding up must not say more.
        concentrated = min(zcdp_to_epsilon(self.rho, limit.delta), limit.epsilon)
        if self.only_pure and self.epsilon <= concentrated:
            return Amount(epsilon=self.epsilon, delta=Fraction(0), rho=self.rho)
        return Amount(epsilon=concentrated, delta=limit.delta, rho=self.rho)

    def remaining(self, limit: Budget) -> Amount:
        """The largest single charge that still fits: of pure epsilon, of rho, each rounded down."""
        if limit.rho is not None:
            return Amount(rho=max(Fraction(0), limit.rho - self.rho))
        assert limit.epsilon is not None  # a limit has rho or epsilon
        pure = max(Fraction(0), limit.epsilon - self.epsilon) if self.only_pure else Fraction(0)
        if limit.delta is None:
            return Amount(epsilon=pure)
        rho = max(Fraction(0), rho_for(limit.epsilon, limit.delta) - self.rho)
        return Amount(epsilon=max(pure, _pure_within(rho)), delta=limit.delta, rho=rho)


NOTHING = Total(Fraction(0), Fraction(0), only_pure=True)


def compose(costs: Iterable[Budget]) -> Total:
    """Charges added up.

    >>> compose([Budget(epsilon=Fraction(1, 2)), Budget(rho=Fraction(1, 8))]).rho
    Fraction(1, 4)
    """
    total = NOTHING
    for cost in costs:
        total = total.plus(cost)
    return total


def check_kind(cost: Budget, limit: Budget) -> None:
    """Refuse a charge that the limit has no way to count."""
    compose([cost])
    if limit.kind == "pure" and cost.kind != "pure":
        raise BudgetError(
            f"cost ({cost.describe()}) must be pure epsilon, as the limit is; use mechanism='laplace', or a ledger with delta or rho"
        )


def _pure_within(rho: Fraction) -> Fraction:
    """The largest epsilon with epsilon²/2 at most rho, rounded down."""
    return Fraction(math.sqrt(2 * rho) * (1 - 1e-14))
