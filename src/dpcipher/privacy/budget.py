"""How much privacy may be spent: exact numbers, checked at birth."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Literal, Self

from dpcipher.errors import BudgetError
from dpcipher.privacy.accounting import rho_for, zcdp_to_epsilon

Kind = Literal["pure", "approx", "zcdp", "approx-zcdp"]

# Outside this range a privacy parameter is a slip of the pen, and the noise would be nothing or overflow.
SMALLEST, LARGEST = Fraction(1, 10**20), Fraction(10**6)
# What a file may hold: "3" or "1/10", at a length that no sum of shares reaches. Not "1e99999999", which is short and endless.
LONGEST_TEXT = 400
_TEXT = re.compile(r"[0-9]+(/[0-9]+)?")
_LONGEST_BITS = math.floor((LONGEST_TEXT - 4) * math.log2(10))
# Of the delta of (epsilon, delta), where something may fail. Either part costs only its logarithm, so that the halves are near the best.
FAILURE_PART = Fraction(1, 2)
_EXAMPLES = {"epsilon": "1.0", "delta": "1e-6", "rho": "0.1"}


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
    if _bits(number) > _LONGEST_BITS:
        raise BudgetError(f"{name} must be a number of fewer than {LONGEST_TEXT} digits; round it to twenty")
    return number


def _shown(value: object) -> str:
    """A value as it was written; Python writes out no number of more than 4,300 digits."""
    try:
        return repr(value)
    except ValueError:
        return "a number of many digits"


def _bits(value: Fraction) -> int:
    return value.numerator.bit_length() + value.denominator.bit_length()


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
        given = [(name, getattr(self, name)) for name in ("epsilon", "delta", "rho")]
        for name, value in given:
            if value is not None and not (isinstance(value, Fraction) and value > 0):
                raise BudgetError(f"{name} ({value!r}) must be a Fraction above 0; Budget.parse makes one")
        _check_combination(self.epsilon, self.delta, self.rho)

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
        budget = cls(
            *(None if value is None else positive_fraction(name, value)
              for name, value in (("epsilon", epsilon), ("delta", delta), ("rho", rho)))
        )  # fmt: skip
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
        values = {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho}
        return {name: _text(name, value) for name, value in values.items() if value is not None}

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

    def split(self, weights: Iterable[object]) -> tuple["Budget", ...]:
        """Parts in proportion to `weights` that add up exactly to `composable()`: (epsilon, delta) is split as rho.

        >>> [str(part.epsilon) for part in Budget(epsilon=Fraction(1)).split([1, 2])]
        ['1/3', '2/3']
        """
        exact = [positive_fraction("weight", weight) for weight in weights]
        if not exact:
            raise BudgetError("weights ([]) must hold at least one number; try weights=[1]")
        total = sum(exact, Fraction(0))
        return tuple(self.share(weight / total) for weight in exact)

    def share(self, part: Fraction) -> "Budget":
        """What a share of this guarantee is worth, in a form that adds up; a delta for failures is not shared out with it."""
        amount = self.amount * part
        return Budget(epsilon=amount) if self.kind == "pure" else Budget(rho=amount)

    def describe(self) -> str:
        """A phrase for people.

        >>> Budget.parse(epsilon=1, delta=1e-6).describe()
        'epsilon = 1, delta = 1e-06 (approximate differential privacy)'
        """
        names = {
            "pure": "pure",
            "approx": "approximate",
            "zcdp": "zero-concentrated",
            "approx-zcdp": "approximate zero-concentrated",
        }
        values = {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho}
        numbers = ", ".join(f"{name} = {show(value)}" for name, value in values.items() if value is not None)
        return f"{numbers} ({names[self.kind]} differential privacy)"

    def check_may_fail(self, may_fail: bool) -> None:
        """Refuse a delta beside rho where nothing may fail: it would buy nothing."""
        if self.kind == "approx-zcdp" and not may_fail:
            raise BudgetError(
                f"delta ({_float(self.delta)}) must not be given with rho, which needs none: nothing here may fail; leave it out"
            )

    def _check_mechanism(self, mechanism: str | None) -> None:
        """Refuse a guarantee that the noise cannot give, or that it would give away for nothing."""
        if mechanism not in (None, "laplace", "gaussian"):
            raise BudgetError(f"mechanism ({mechanism!r}) must be 'laplace' or 'gaussian'")
        if mechanism == "laplace" and self.kind != "pure":
            name, value = ("delta", self.delta) if self.rho is None else ("rho", self.rho)
            raise BudgetError(
                f"{name} ({_float(value)}) must not be given with mechanism='laplace', which spends epsilon alone; "
                f"leave it out or try mechanism='gaussian'"
            )
        if mechanism == "gaussian" and self.kind == "pure":
            raise BudgetError(
                "delta (None) must be given with mechanism='gaussian' and epsilon; try delta=1e-6, or rho alone"
            )


def _cannot_fail(budget: Budget) -> str:
    """Why a guarantee without delta cannot pay for what may fail."""
    name = (
        "pure epsilon, which bounds the odds of even the rarest outcome,"
        if budget.kind == "pure"
        else "rho alone"
    )
    return (
        "delta (None) must be given where levels are found in the rows (levels: discover): a text that only one person has "
        f"appears with a small probability, and {name} allows none; try delta=1e-6"
    )


def _text(name: str, value: Fraction) -> str:
    """The text of a number, refused where it could not be read back."""
    if _bits(value) > _LONGEST_BITS or value > LARGEST:
        raise BudgetError(f"{name} must be at most 1e6, and of fewer than {LONGEST_TEXT} digits; round it")
    return str(value)


def _float(value: Fraction | None) -> str:
    return "None" if value is None else show(value)


def _missing(mechanism: str | None) -> str:
    """What to say when neither epsilon nor rho was given."""
    if mechanism == "laplace":
        return "epsilon (None) must be a finite number above 0; try epsilon=1.0"
    return "epsilon (None) and rho (None): one of them must be given; try epsilon=1.0, or rho=0.1 for Gaussian noise"


def _check_combination(epsilon: Fraction | None, delta: Fraction | None, rho: Fraction | None) -> None:
    """Refuse what is none of the four guarantees."""
    if epsilon is not None and rho is not None:
        raise BudgetError(
            f"epsilon ({show(epsilon)}) and rho ({show(rho)}) must not be given together; leave one out"
        )
    if epsilon is None and rho is None:
        raise BudgetError(_missing(None))
    if delta is not None and delta >= 1:
        raise BudgetError(f"delta ({show(delta)}) must be below 1; try delta=1e-6")
