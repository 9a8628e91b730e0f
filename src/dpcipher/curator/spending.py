"""What a session spends: exact shares of one charge, and the certificate of what they paid for."""

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dpcipher.curator.event import Event, Sensitivity
from dpcipher.errors import BudgetError
from dpcipher.privacy.accounting import float_up
from dpcipher.privacy.budget import Budget, show
from dpcipher.privacy.noise import largest_share, mechanism_for
from dpcipher.privacy.unit import Unit
from dpcipher.tables.measurement import Noise


class Spending:
    """Shares of a charge: what is left, what each is worth, and the events that took them."""

    def __init__(self, whole: Budget, unit: Unit) -> None:
        self._whole, self._unit = whole, unit
        self._spent, self._rest, self._failing = Fraction(0), Fraction(1), Fraction(0)
        self._most = largest_share(whole, unit)
        self._events: list[Event] = []

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
        """The share that no question has taken yet: of the charge or, from `begin_anew` on, of what was left of it then."""
        return (1 - self._spent) / self._rest

    def begin_anew(self) -> None:
        """From here on shares are those of what is left."""
        self._rest = 1 - self._spent
        self._most = largest_share(self.part(Fraction(1)), self._unit)

    def of_charge(self, share: Fraction) -> Fraction:
        """A share of what was left then as one of the whole charge, which is what certificates state."""
        return share * self._rest

    def part(self, share: Fraction) -> Budget:
        """What such a share is worth."""
        return self._whole.share(share * self._rest)

    def mechanism(self, share: Fraction, sensitivity: Sensitivity) -> Noise:
        """The noise that a share pays for; never less than can be called noise, so that a generous budget is not all spent."""
        each = share / sensitivity.factor(zcdp=self.is_zcdp)
        return mechanism_for(self.part(min(each, self._most)), self._unit)

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
        """Nothing is left for anybody."""
        self._spent = Fraction(1)

    def record(self, event: Event) -> None:
        """Certificates state shares of the whole charge."""
        self._events.append(replace(event, share=event.share * self._rest))

    def certificate(self, by: str, remarks: Mapping[str, Any]) -> dict[str, Any]:
        """All events, what they cost together, and by whose word."""
        return {
            "measure": "rho" if self.is_zcdp else "epsilon",
            "events": [event.as_dict() for event in self._events],
            "share": str(self._spent),
            "total": self._total(),
            **({"delta": str(self._failing)} if self._failing else {}),
            "by": by,
            **remarks,
        }

    def _total(self) -> float:
        """The costs added up; each is within its share exactly, so that only their floats could add up to more."""
        limit = float_up(self._whole.amount * self._spent)
        return min(limit, math.fsum(event.cost for event in self._events))
