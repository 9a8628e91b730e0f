"""How much privacy may be spent, what that means, and what noise it buys: exact numbers, checked at birth and rounded toward privacy.

Costs add up: pure epsilons by summing, zCDP by summing rho. What is not exact in fractions, the conversion of zCDP to (epsilon, delta) and square
roots, is computed in floats and then moved by more than the float error in the safe direction: epsilon and scales up, rho down.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from numbers import Integral, Rational, Real
from typing import Literal, Protocol, Self

from dpcipher.errors import BudgetError, ParameterError
from dpcipher.tables.measurement import SMALLEST_SCALE, Noise, NoiseKind

Kind = Literal["pure", "approx", "zcdp", "approx-zcdp"]
_KINDS: Mapping[Kind, str] = {
    "pure": "pure",
    "approx": "approximate",
    "zcdp": "zero-concentrated",
    "approx-zcdp": "approximate zero-concentrated",
}

# Outside this range a privacy parameter is a typing error, and the noise would be nothing or overflow.
SMALLEST, LARGEST = Fraction(1, 10**20), Fraction(10**6)
# What a file may hold: "3" or "1/10", at a length that no sum of shares reaches. Not "1e99999999", which is short and endless.
LONGEST_TEXT = 400
_TEXT = re.compile(r"[0-9]+(/[0-9]+)?")
_LONGEST_BITS = math.floor((LONGEST_TEXT - 4) * math.log2(10))
# Of the delta of (epsilon, delta), where something may fail. Either part costs only its logarithm, so that the halves are near the best.
FAILURE_PART = Fraction(1, 2)
_EXAMPLES = {"epsilon": "1.0", "delta": "1e-6", "rho": "0.1"}
# Far above the float error of the few operations of a conversion (about 1e-15), far below anything that matters.
_SLACK = 1e-14
# Search range of log(alpha - 1): it holds the best order for every epsilon, rho and delta that a Budget accepts.
_LOG_ORDERS = (-40.0, 60.0)
_GOLDEN = (math.sqrt(5) - 1) / 2


def _exact(value: object) -> Fraction | None:
    """The number as a fraction, or None if it is no finite number."""
    if isinstance(value, bool):
        return None
    if isinstance(value, Integral | Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, Decimal):
        return Fraction(value) if value.is_finite() and abs(value.adjusted()) < LONGEST_TEXT else None
    if isinstance(value, Real):
        number = float(value)
        return Fraction(repr(number)) if math.isfinite(number) else None
    return None


def positive_fraction(name: str, value: object) -> Fraction:
    """The exact value of a privacy parameter between 1e-20 and 1e6.

    A float is taken at the shortest decimal that prints it, which is what its author wrote: 0.1 is 1/10, not the
    binary number 3602879701896397/36028797018963968 nearest to it. Strings and booleans are refused, not converted.

    >>> positive_fraction("epsilon", 0.1)
    Fraction(1, 10)
    """
    number = _exact(value)
    if number is None or not SMALLEST <= number <= LARGEST:
        hint = f"; try {name}={_EXAMPLES.get(name, '1')}"
        raise BudgetError(
            f"{name} ({_shown(value)}) must be a finite number above 0, from 1e-20 to 1e6{hint}"
        )
    if _is_long(number):
        raise BudgetError(f"{name} must be a number of fewer than {LONGEST_TEXT} digits; round it to twenty")
    return number


def _shown(value: object) -> str:
    """A value as it was written; Python writes out no number of more than 4,300 digits."""
    try:
        return repr(value)
    except ValueError:
        return "a number of many digits"


def _is_long(value: Fraction) -> bool:
    """Whether a file could not hold it."""
    return value.numerator.bit_length() + value.denominator.bit_length() > _LONGEST_BITS


def read_fraction(name: str, text: object) -> Fraction:
    """The exact number that a file holds as text, from above 0 up to 1e6; its length is judged before its value.

    >>> read_fraction("epsilon", "1/10")
    Fraction(1, 10)
    """
    if not isinstance(text, str) or len(text) > LONGEST_TEXT or not _TEXT.fullmatch(text):
        raise BudgetError(
            f"{name} ({text!r:.60}) must be a text such as '3' or '1/10', of whole numbers alone"
        )
    top, _, below = text.partition("/")
    numerator, denominator = int(top), int(below or "1")
    if not 0 < numerator <= LARGEST * denominator:
        raise BudgetError(f"{name} ({text:.60}) must be above 0 and at most 1e6")
    return Fraction(numerator, denominator)


def show(value: Fraction) -> str:
    """A fraction as people read it: six significant digits."""
    return f"{float(value):.6g}"


def percent(share: Fraction | float) -> str:
    """A share of a budget as people read it.

    >>> percent(Fraction(1, 20)), percent(Fraction(1, 30))
    ('5 %', '3.33 %')
    """
    return f"{100 * float(share):.3g} %"


def described(numbers: Mapping[str, Fraction]) -> str:
    """Numbers by name, as people read them."""
    return ", ".join(f"{name} = {show(value)}" for name, value in numbers.items())


@dataclass(frozen=True)
class Budget:
    """A privacy guarantee, or what one costs: pure epsilon, (epsilon, delta), rho of zero-concentrated DP, or rho with delta.

    rho with delta is delta-approximate rho-zCDP (Bun and Steinke 2016, Definition 8.1): rho-zCDP, but for events of probability at most delta
    in which the mechanism may fail. Only what cannot do without, such as finding levels, costs it.
    """

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    rho: Fraction | None = None

    def __post_init__(self) -> None:
        for name, value in self._given.items():
            if not (isinstance(value, Fraction) and value > 0):
                raise BudgetError(f"{name} ({value!r}) must be a Fraction above 0; Budget.parse makes one")
        if self.epsilon is not None and self.rho is not None:
            raise BudgetError(
                f"epsilon ({show(self.epsilon)}) and rho ({show(self.rho)}) must not be given together; leave one out"
            )
        if self.epsilon is None and self.rho is None:
            raise BudgetError(_missing(None))
        if self.delta is not None and self.delta >= 1:
            raise BudgetError(f"delta ({show(self.delta)}) must be below 1; try delta=1e-6")

    @property
    def _given(self) -> dict[str, Fraction]:
        """The numbers that there are, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}

    @classmethod
    def parse(
        cls,
        *,
        epsilon: object = None,
        delta: object = None,
        rho: object = None,
        mechanism: str | None = None,
        may_fail: bool = False,
    ) -> Self:
        """A budget from what a caller wrote, refused unless `mechanism` ("laplace", "gaussian", None for any) can keep it.

        `may_fail` says that something will be done that fails with a small probability: rho then comes with a delta for it.

        >>> Budget.parse(epsilon=0.1, mechanism="laplace").epsilon
        Fraction(1, 10)
        """
        if epsilon is None and rho is None:
            raise BudgetError(_missing(mechanism))
        given = {"epsilon": epsilon, "delta": delta, "rho": rho}
        budget = cls(
            **{name: positive_fraction(name, value) for name, value in given.items() if value is not None}
        )
        budget._check_mechanism(mechanism)
        budget.check_may_fail(may_fail)
        return budget

    @classmethod
    def from_dict(cls, values: Mapping[str, str]) -> Self:
        """The budget that `as_dict` wrote; a `BudgetError` for anything else."""
        if not isinstance(values, Mapping) or not set(values) <= set(_EXAMPLES):
            raise BudgetError(
                "a budget must hold epsilon, epsilon and delta, rho, or rho and delta, and nothing else"
            )
        return cls(**{name: read_fraction(name, text) for name, text in values.items()})

    def as_dict(self) -> dict[str, str]:
        """Exact plain values, for a file.

        >>> Budget(epsilon=Fraction(1, 10)).as_dict()
        {'epsilon': '1/10'}
        """
        for name, value in self._given.items():
            if _is_long(value) or value > LARGEST:
                raise BudgetError(
                    f"{name} must be at most 1e6, and of fewer than {LONGEST_TEXT} digits; round it"
                )
        return {name: str(value) for name, value in self._given.items()}

    @property
    def kind(self) -> Kind:
        """Which of the four guarantees this is."""
        if self.rho is not None:
            return "zcdp" if self.delta is None else "approx-zcdp"
        return "pure" if self.delta is None else "approx"

    def composable(self) -> "Budget":
        """The same guarantee in a form that adds up: (epsilon, delta) becomes the largest rho that implies it."""
        if self.epsilon is not None and self.delta is not None:
            return Budget(rho=rho_for(self.epsilon, self.delta))
        return self

    def failing(self) -> "Budget":
        """The same guarantee as rho with delta, for a charge that pays for something that may fail.

        Half of the delta of (epsilon, delta) is for failures, and the largest rho that implies epsilon and the other half is for the rest:
        delta-approximate rho-zCDP implies (epsilon, delta + delta') wherever rho-zCDP implies (epsilon, delta') (Bun and Steinke 2016, Lemma 8.8).

        >>> str(Budget.parse(epsilon=1, delta=1e-6).failing().delta)
        '1/2000000'
        """
        if self.epsilon is not None and self.delta is not None:
            half = self.delta * FAILURE_PART
            return Budget(rho=rho_for(self.epsilon, self.delta - half), delta=half)
        if self.kind != "approx-zcdp":
            raise BudgetError(_cannot_fail(self))
        return self

    @property
    def failure(self) -> Fraction:
        """The probability with which what this pays for may fail altogether; 0 where it cannot."""
        return self.delta if self.kind == "approx-zcdp" and self.delta is not None else Fraction(0)

    @property
    def amount(self) -> Fraction:
        """The number that adds up: rho, or pure epsilon."""
        part = self.composable()
        return part.rho or part.epsilon or Fraction(0)  # one of them is there and above 0

    def epsilon_at(self, delta: Fraction) -> Fraction:
        """An epsilon such that this guarantee implies (epsilon, delta), rounded up."""
        if self.rho is not None and delta > self.failure:
            return zcdp_to_epsilon(self.rho, delta - self.failure)
        if self.delta is not None and self.delta > delta:
            raise BudgetError(f"delta ({show(delta)}) must be at least the budget's own, {show(self.delta)}")
        if self.rho is not None:
            raise BudgetError(f"delta ({show(delta)}) must be above {show(self.failure)} with rho")
        return self.epsilon or Fraction(0)  # what has no rho has an epsilon above 0

    def doubled(self) -> "Budget":
        """The guarantee for two steps between neighbours: 2 epsilon, or 4 rho (Bun and Steinke 2016, Proposition 1.9).

        What may fail here fails on the texts of one person alone, at either end of the two steps: delta stays (docs/levels.md).
        """
        part = self.share(Fraction(2 if self.kind == "pure" else 4))
        return part if self.kind != "approx-zcdp" else Budget(rho=part.rho, delta=self.delta)

    def share(self, part: Fraction) -> "Budget":
        """What a share of this guarantee is worth, in a form that adds up; a delta for failures is not shared out with it."""
        amount = self.amount * part
        return Budget(epsilon=amount) if self.kind == "pure" else Budget(rho=amount)

    def describe(self) -> str:
        """A phrase for people.

        >>> Budget.parse(epsilon=1, delta=1e-6).describe()
        'epsilon = 1, delta = 1e-06 (approximate differential privacy)'
        """
        return f"{described(self._given)} ({_KINDS[self.kind]} differential privacy)"

    def check_may_fail(self, may_fail: bool) -> None:
        """Refuse a delta beside rho where nothing may fail: it would buy nothing."""
        if self.kind == "approx-zcdp" and not may_fail:
            raise BudgetError(
                f"delta ({show(self.failure)}) must not be given with rho, which needs none: nothing here may fail; leave it out"
            )

    def _check_mechanism(self, mechanism: str | None) -> None:
        """Refuse a guarantee that the noise cannot give, or that it would give away for nothing."""
        if mechanism not in (None, "laplace", "gaussian"):
            raise BudgetError(f"mechanism ({mechanism!r}) must be 'laplace' or 'gaussian'")
        if mechanism == "laplace" and self.kind != "pure":
            name = "delta" if self.rho is None else "rho"
            raise BudgetError(
                f"{name} ({show(self._given[name])}) must not be given with mechanism='laplace', which spends epsilon alone; "
                f"leave it out or try mechanism='gaussian'"
            )
        if mechanism == "gaussian" and self.kind == "pure":
            raise BudgetError(
                "delta (None) must be given with mechanism='gaussian' and epsilon; try delta=1e-6, or rho alone"
            )


def _cannot_fail(budget: Budget) -> str:
    """Why a guarantee without delta cannot pay for what may fail."""
    pure = "pure epsilon, which bounds the odds of even the rarest outcome,"
    name = pure if budget.kind == "pure" else "rho alone"
    return (
        "delta (None) must be given where levels are found in the rows (levels: discover): a text that only one person has "
        f"appears with a small probability, and {name} allows none; try delta=1e-6"
    )


def _missing(mechanism: str | None) -> str:
    """What to say when neither epsilon nor rho was given."""
    if mechanism == "laplace":
        return "epsilon (None) must be a finite number above 0; try epsilon=1.0"
    return "epsilon (None) and rho (None): one of them must be given; try epsilon=1.0, or rho=0.1 for Gaussian noise"


def _log_inverse(delta: Fraction) -> float:
    """log(1/delta), also where delta itself would underflow."""
    return math.log(delta.denominator) - math.log(delta.numerator)


def _order_terms(t: float, log_inverse_delta: float) -> tuple[float, float, float]:
    """The order alpha = 1 + e^t, the additive term of epsilon at that order, and the size of what was summed.

    Canonne, Kamath, Steinke 2020 ("The discrete Gaussian for differential privacy", arXiv v4, Proposition 12
    with divergence alpha rho): rho-zCDP gives (epsilon, delta) with, for any alpha > 1,
    epsilon = alpha rho + log(1/delta)/(alpha-1) - log(alpha)/(alpha-1) + log(1 - 1/alpha).
    Every order gives a true statement, so an imperfect search only costs accuracy, never privacy.
    """
    u = math.exp(t)
    gain, edge = math.log1p(u) / u, math.log1p(1 / u)
    return 1 + u, log_inverse_delta / u - gain - edge, log_inverse_delta / u + gain + edge


def _best(objective: Callable[[float], float]) -> float:
    """The minimum over log(alpha - 1) by golden section.

    log(delta) of CKS20 is convex in alpha, hence both objectives below are quasi-convex and have one valley.
    """
    low, high = _LOG_ORDERS
    for _ in range(120):
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        if objective(left) <= objective(right):
            high = right
        else:
            low = left
    return (low + high) / 2


def zcdp_to_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    """The smallest epsilon such that rho-zCDP implies (epsilon, delta), rounded up.

    >>> round(float(zcdp_to_epsilon(Fraction(1, 2), Fraction(1, 10**6))), 3)
    5.222
    """
    log_inverse, r = _log_inverse(delta), float(rho)

    def epsilon(t: float) -> float:
        alpha, additive, _ = _order_terms(t, log_inverse)
        return alpha * r + additive

    t = _best(epsilon)
    alpha, _, size = _order_terms(t, log_inverse)
    return max(Fraction(0), Fraction(epsilon(t) + _SLACK * (alpha * r + size)))


def rho_for(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho such that rho-zCDP implies (epsilon, delta), rounded down.

    >>> round(1 / math.sqrt(2 * rho_for(Fraction(1), Fraction(1, 10**6))), 6)
    4.530877
    """
    log_inverse, e = _log_inverse(delta), float(epsilon)

    def minus_rho(t: float) -> float:
        alpha, additive, _ = _order_terms(t, log_inverse)
        return (additive - e) / alpha

    t = _best(minus_rho)
    alpha, _, size = _order_terms(t, log_inverse)
    return Fraction(-minus_rho(t) - _SLACK * (e + size) / alpha)


def pure_to_rho(epsilon: Fraction) -> Fraction:
    """Pure epsilon implies (epsilon²/2)-zCDP (Bun and Steinke 2016, Proposition 1.4)."""
    return epsilon**2 / 2


def exponential_to_rho(epsilon: Fraction) -> Fraction:
    """The exponential mechanism at epsilon is (epsilon²/8)-zCDP (Cesar and Rogers 2021)."""
    return epsilon**2 / 8


def float_up(value: Fraction) -> float:
    """The smallest float that is not below `value`.

    >>> float_up(Fraction(28)), Fraction(float_up(Fraction(1, 3))) >= Fraction(1, 3)
    (28.0, True)
    """
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def sqrt_up(value: Fraction) -> float:
    """A float at or just above the square root of `value`."""
    root = math.sqrt(value)
    while Fraction(root) ** 2 < value:
        root = math.nextafter(root, math.inf)
    return root


# Keeps OpenDP's maps within the budget too: they take a distance as a float, itself rounded up.
_ABOVE_OPENDP = 1 + 2**-48


class Moved(Protocol):
    """How far one person moves what the noise is added to: a `Unit` says it of one table of counts, a `Sensitivity` of any answer."""

    @property
    def l1(self) -> int:
        """The L1 distance."""

    @property
    def l2_squared(self) -> int:
        """The squared L2 distance."""

    def __hash__(self) -> int:
        """Noise and costs are cached."""


@lru_cache(maxsize=256)
def cost(noise: Noise, moved: Moved) -> Budget:
    """What an answer with this noise spends, exactly: multivariate discrete Gaussian noise is l2²/(2 sigma²)-zCDP (CKS20)."""
    if noise.kind == "none":
        raise BudgetError("mechanism ('none') adds no noise, so no budget covers it; try 'laplace'")
    scale = Fraction(noise.scale)
    if noise.kind == "laplace":
        return Budget(epsilon=moved.l1 / scale)
    return Budget(rho=moved.l2_squared / (2 * scale**2))


@lru_cache(maxsize=256)
def noise_for(share: Budget, moved: Moved) -> Noise:
    """The least noise on an answer that costs at most `share`: Laplace for pure epsilon, Gaussian otherwise; scales are rounded up.

    >>> from dpcipher.privacy.terms import Unit
    >>> noise_for(Budget.parse(epsilon=0.25), Unit("replace"))
    Noise(kind='laplace', scale=8.0)
    """
    if share.kind == "pure":
        return Noise("laplace", float_up(moved.l1 / share.amount))
    return Noise("gaussian", sqrt_up(moved.l2_squared / (2 * share.amount)) * _ABOVE_OPENDP)


def noise_within(whole: Budget, share: Fraction, moved: Moved) -> Noise:
    """The noise that a share of a budget pays for; never less than can be called noise, so that a generous budget is not all spent."""
    return noise_for(whole.share(min(share, largest_share(whole, moved))), moved)


@lru_cache(maxsize=256)
def largest_share(whole: Budget, moved: Moved) -> Fraction:
    """The share of a budget that buys the least noise which is still noise.

    >>> from dpcipher.privacy.terms import Unit
    >>> largest_share(Budget.parse(epsilon=640.0), Unit("add-remove"))
    Fraction(1, 10)
    """
    name: NoiseKind = "laplace" if whole.kind == "pure" else "gaussian"
    return cost(Noise(name, SMALLEST_SCALE[name]), moved).amount / whole.amount


def choice_scale(share: Budget, sensitivity: int) -> float:
    """The smallest scale of a choice by the exponential mechanism that costs at most `share`, rounded up.

    Pure: 2·sensitivity/epsilon. zCDP: from rho = epsilon²/8, sensitivity/sqrt(2 rho).

    >>> choice_scale(Budget.parse(epsilon=0.5), 3)
    12.0
    """
    if isinstance(sensitivity, bool) or not isinstance(sensitivity, int) or sensitivity < 1:
        raise ParameterError(
            f"sensitivity ({sensitivity!r}) must be a whole number above 0; scores are integers"
        )
    if share.kind == "pure":
        return float_up(2 * sensitivity / share.amount)
    return sqrt_up(sensitivity**2 / (2 * share.amount)) * _ABOVE_OPENDP


def choice_cost(scale: float, sensitivity: int, k: int = 1) -> Budget:
    """What choosing `k` candidates costs, exactly, as pure epsilon."""
    return Budget(epsilon=k * 2 * sensitivity / Fraction(scale))
