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

A charge may also be rho *with* delta: rho-zCDP but for failures of probability at most delta. Its rho adds to the rhos and its
delta to the deltas, under a limit that keeps a fixed part of its own delta for failures:

- rho and delta as the limit: both sums stay within it. rho alone: such charges are refused.
- (epsilon, delta): `FAILURE_PART` of delta is for failures, and rho is what implies (epsilon, the rest of delta), *if the very first charge is one
  that may fail*. Otherwise all of delta is for rho, as above, and such charges are refused.

Proof. Such a mechanism is, on either neighbour, a coin that fails with probability delta, the same on both, and a law that is rho-zCDP when it does
not (docs/privacy.md). Let w be the probability that no coin of a history fails, at least one minus the sum of its deltas, and the same on both
neighbours; one more coin, thrown at the end, makes it exactly 1 - delta in every history, whoever chose the charges. What happens without
failures is then a composition of zCDP laws that stops at a fixed sum of rho, which is a valid filter. So the whole is delta-approximate rho-zCDP
(also Whitehouse, Ramdas, Rogers and Wu 2023), and (epsilon, delta + delta') where rho-zCDP gives (epsilon, delta').

The division of delta must not depend on what was seen. If a history with a small loss could turn what is left of rho into failures, and one with a large
loss could go on with rho, the two together would contribute more than delta: 1.14 times it in a test. The first charge is
chosen before anything was seen.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from dpcipher.errors import BudgetError
from dpcipher.privacy.budget import FAILURE_PART, Budget, pure_to_rho, rho_for, show, zcdp_to_epsilon

MOST_COUNTED = 10_000  # charges that are alike; nobody asks for more


@dataclass(frozen=True)
class Amount:
    """How much was spent or is left, in the terms of a limit; unlike a Budget it may be zero.

    `failure` is the part of an (epsilon, delta) limit's delta that is for failures, where some of it is.
    """

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    rho: Fraction | None = None
    failure: Fraction | None = None

    def as_dict(self) -> dict[str, str]:
        """Exact plain values, for a file."""
        values = {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho, "failure": self.failure}
        return {name: str(value) for name, value in values.items() if value is not None}

    def describe(self) -> str:
        """A phrase for people.

        >>> Amount(epsilon=Fraction(1, 4)).describe()
        'epsilon = 0.25'
        """
        return ", ".join(f"{name} = {show(Fraction(value))}" for name, value in self.as_dict().items())


@dataclass(frozen=True)
class Total:
    """Charges added up both ways, and whether the first of them was one that may fail."""

    epsilon: Fraction  # of the pure charges
    rho: Fraction  # of all charges, pure ones as epsilon²/2
    only_pure: bool
    failure: Fraction = Fraction(0)
    began_failing: bool = False

    def plus(self, cost: Budget, times: int = 1) -> "Total":
        """The total with one more charge, or with several that are alike."""
        if cost.rho is not None:
            began = self.began_failing or (self.rho == 0 and cost.failure > 0)
            rho, failure = self.rho + times * cost.rho, self.failure + times * cost.failure
            return Total(self.epsilon, rho, False, failure, began)
        if cost.epsilon is None or cost.delta is not None:
            raise BudgetError(f"cost ({cost.describe()}) must be epsilon alone or rho; try cost.composable()")
        rho = self.rho + times * pure_to_rho(cost.epsilon)
        return replace(self, epsilon=self.epsilon + times * cost.epsilon, rho=rho)

    def more_like(self, cost: Budget, limit: Budget) -> int:
        """How many more such charges fit one after the other, up to `MOST_COUNTED`: by bisection, since the total only grows."""
        fit, too_many = 0, MOST_COUNTED + 1
        while too_many - fit > 1:
            middle = (fit + too_many) // 2
            if self.plus(cost, middle).fits(limit):
                fit = middle
            else:
                too_many = middle
        return fit

    def largest(self, limit: Budget) -> Budget | None:
        """Under a limit of epsilon and delta, about the largest charge of epsilon with that delta that still fits, to three digits; None where none does."""
        left = self.most_rho(limit) - self.rho
        if limit.kind != "approx" or limit.delta is None or left <= 0:
            return None
        if self.plus(limit.composable()).fits(limit):
            return limit
        highest = float(zcdp_to_epsilon(left, limit.delta))
        unit = Fraction(10) ** (math.floor(math.log10(highest)) - 2)
        for step in range(int(Fraction(highest) / unit), 0, -1):
            cost = Budget(epsilon=step * unit, delta=limit.delta)
            if self.plus(cost.composable()).fits(limit):
                return cost
        return None

    def most_failure(self, limit: Budget) -> Fraction:
        """The largest sum of failures that the limit allows these charges: its own, or a part of delta that the first charge fixed."""
        if limit.kind == "approx" and limit.delta is not None and self.began_failing:
            return limit.delta * FAILURE_PART
        return limit.failure

    def most_rho(self, limit: Budget) -> Fraction:
        """The largest sum of rho that the limit allows these charges; 0 where it counts pure epsilon alone."""
        if limit.rho is not None:
            return limit.rho
        if limit.epsilon is None or limit.delta is None:
            return Fraction(0)
        return rho_for(limit.epsilon, limit.delta - self.most_failure(limit))

    def fits(self, limit: Budget) -> bool:
        """Whether charges with this total stay within the limit."""
        if limit.epsilon is not None and self.only_pure and self.epsilon <= limit.epsilon:
            return True
        return self.rho <= self.most_rho(limit) and self.failure <= self.most_failure(limit)

    def spent(self, limit: Budget) -> Amount:
        """The total in the terms of the limit, each number rounded up."""
        if limit.rho is not None:
            return Amount(rho=self.rho, delta=None if limit.delta is None else self.failure)
        if limit.epsilon is None or limit.delta is None or not self.rho:
            return Amount(epsilon=self.epsilon, delta=None if limit.delta is None else Fraction(0))
        # What fits gives (limit.epsilon, limit.delta); the conversion's last rounding up must not say more.
        for_rho = limit.delta - self.most_failure(limit)
        concentrated = min(zcdp_to_epsilon(self.rho, for_rho), limit.epsilon)
        if self.only_pure and self.epsilon <= concentrated:
            return Amount(epsilon=self.epsilon, delta=Fraction(0), rho=self.rho)
        failure = self.failure if self.began_failing else None
        return Amount(epsilon=concentrated, delta=for_rho + self.failure, rho=self.rho, failure=failure)

    def remaining(self, limit: Budget) -> Amount:
        """The largest single charge that still fits: of pure epsilon, of rho, each rounded down."""
        failure = self.most_failure(limit) - self.failure
        rho = max(Fraction(0), self.most_rho(limit) - self.rho)
        if limit.rho is not None:
            return Amount(rho=rho, delta=None if limit.delta is None else failure)
        assert limit.epsilon is not None  # a limit has rho or epsilon
        pure = max(Fraction(0), limit.epsilon - self.epsilon) if self.only_pure else Fraction(0)
        if limit.delta is None:
            return Amount(epsilon=pure)
        kept = failure if self.began_failing else None
        return Amount(epsilon=max(pure, _pure_within(rho)), delta=limit.delta, rho=rho, failure=kept)


NOTHING = Total(Fraction(0), Fraction(0), only_pure=True)


def check_kind(cost: Budget, limit: Budget, before: Total = NOTHING) -> None:
    """Refuse a charge that the limit, after what was charged `before`, has no way to count."""
    after = before.plus(cost)
    if limit.kind == "pure" and cost.kind != "pure":
        raise BudgetError(
            f"cost ({cost.describe()}) must be pure epsilon, as the limit is; use mechanism='laplace', or a ledger with delta or rho"
        )
    if cost.failure and not after.most_failure(limit):
        raise BudgetError(
            f"cost ({cost.describe()}) may fail, and the limit ({limit.describe()}) has no delta for that{_no_room(limit)}"
        )


def _no_room(limit: Budget) -> str:
    """Why a limit has no delta for failures, and what to do."""
    if limit.kind == "approx":
        return (
            ": its delta went to the earlier charges when the first of them was one that cannot fail; declare the levels, or "
            "use a ledger with rho and delta, or one that begins with such a charge"
        )
    return "; declare the levels, or use a ledger with rho and delta"


def _pure_within(rho: Fraction) -> Fraction:
    """The largest epsilon with epsilon²/2 at most rho, rounded down."""
    return Fraction(math.sqrt(2 * rho) * (1 - 1e-14))
