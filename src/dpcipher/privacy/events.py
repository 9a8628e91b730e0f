"""What is spent: exact shares of one charge, one event for every answer, and the certificate of what they paid for."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, Self

from dpcipher.errors import BudgetError
from dpcipher.privacy.budget import Budget, float_up, show
from dpcipher.privacy.terms import Unit


@dataclass(frozen=True)
class Sensitivity:
    """How far one person moves an answer at most, in L1 and squared L2."""

    l1: int
    l2_squared: int

    @classmethod
    def of_tables(cls, unit: Unit, number: int = 1) -> Self:
        """That of so many tables of counts which are asked together: in each of them a person's rows may all lie in one cell."""
        return cls(number * unit.l1, number * unit.l2_squared)


@dataclass(frozen=True)
class Event:
    """One answer: what was asked in words, the share of the charge it took, and what its sampler says it cost. By its type it states a few facts more.

    - tables: noise on every cell of some `tables`, in each of some independent `sets`
    - query, centred: noise on any vector of whole numbers, or on a centred table, that one person moves by `l1` and `l2_squared`
    - choice: `rounds` of the exponential mechanism; one person moves the score of a candidate by at most the `sensitivity`
    - levels: texts whose noisy count reached the `threshold`; with a probability of at most `delta` one that a single person has is among them
    - posterior: rows from the posterior of the full table, which with a probability of at most `delta`, where there is one, tell more than their cost
    """

    type: Literal["tables", "query", "centred", "choice", "levels", "posterior"]
    what: str
    share: Fraction
    cost: float
    tables: int | None = None
    sets: int | None = None
    l1: Fraction | None = None
    l2_squared: Fraction | None = None
    candidates: int | None = None
    rounds: int | None = None
    sensitivity: int | None = None
    delta: Fraction | None = None
    threshold: int | None = None
    n_rows: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values for the certificate, fractions as text."""
        facts = {name: value for name, value in vars(self).items() if value is not None}
        facts |= {"share": facts.pop("share"), "cost": facts.pop("cost")}  # last
        return {name: str(value) if isinstance(value, Fraction) else value for name, value in facts.items()}


class Spending:
    """Shares of a charge: what is left, what each is worth, and the events that took them."""

    def __init__(self, whole: Budget) -> None:
        self._whole = whole
        self._spent, self._rest, self._failing = Fraction(0), Fraction(1), Fraction(0)
        self.events: list[Event] = []

    @property
    def is_zcdp(self) -> bool:
        """Whether the budget is counted in rho; pure epsilon otherwise."""
        return self._whole.rho is not None

    @property
    def failure(self) -> Fraction:
        """The probability that the charge has for failures."""
        return self._whole.failure

    @property
    def left(self) -> Fraction:
        """The share that no question has taken yet: of the charge or, from `rescale` on, of what was left of it then."""
        return (1 - self._spent) / self._rest

    def rescale(self) -> None:
        """From here on shares are those of what is left."""
        self._rest = 1 - self._spent

    def of_charge(self, share: Fraction) -> Fraction:
        """A share of what was left then as one of the whole charge, which is what certificates state."""
        return share * self._rest

    def part(self, share: Fraction) -> Budget:
        """What such a share is worth."""
        return self._whole.share(share * self._rest)

    def debit(self, share: Fraction) -> None:
        """Take a share of the charge; refused before anything is drawn."""
        if not isinstance(share, Fraction) or not 0 < share <= self.left:
            left = show(self.left) if self.left else "nothing"
            raise BudgetError(
                f"share ({share}) must be a Fraction above 0 and within what is left of the charge ({left})"
            )
        self._spent += share * self._rest

    def debit_failure(self, delta: Fraction) -> None:
        """Take a part of the delta that the charge has for failures."""
        if delta <= 0 or self._failing + delta > self._whole.failure:
            raise BudgetError(
                f"delta ({show(delta)}) must be above 0 and within what the charge has for failures ({show(self._whole.failure)})"
            )
        self._failing += delta

    def end(self) -> None:
        """Refuse every further share."""
        self._spent = Fraction(1)

    def record(self, event: Event) -> None:
        """Certificates state shares of the whole charge."""
        self.events.append(replace(event, share=event.share * self._rest))

    def certificate(self, by: str, remarks: Mapping[str, Any]) -> dict[str, Any]:
        """All events, what they cost together, and by whose word."""
        # Each cost is within its share exactly, so that only their floats could add up to more.
        most = float_up(self._whole.amount * self._spent)
        return {
            "measure": "rho" if self.is_zcdp else "epsilon",
            "events": [event.as_dict() for event in self.events],
            "share": str(self._spent),
            "total": min(most, math.fsum(event.cost for event in self.events)),
            **({"delta": str(self._failing)} if self._failing else {}),
            "by": by,
            **remarks,
        }
