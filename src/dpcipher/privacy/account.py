"""Which ledger pays: checked before any row is read, created only when a charge is due."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpcipher.privacy.budget import Budget
from dpcipher.privacy.ledger import Charge, Ledger
from dpcipher.privacy.unit import Unit


@dataclass(frozen=True)
class Account:
    """A budget and the ledger that pays for it: one that exists, a path where one will be created with this budget as its limit, or none."""

    ledger: str | Path | Ledger | None
    budget: Budget
    unit: Unit
    name: str = ""

    def check(self) -> None:
        """Refuse now what `charge` would refuse, without spending."""
        if (book := self._existing()) is not None:
            book.check(self.budget.composable(), unit=self.unit)
        elif self.ledger is not None:
            Ledger(str(self.ledger))  # refuses a file system on which locking does not hold

    def charge(self, what: dict[str, Any]) -> Charge | None:
        """Spend the budget, durably before this returns."""
        if self.ledger is None:
            return None
        book = self._existing() or Ledger.create(
            str(self.ledger),
            epsilon=self.budget.epsilon,
            delta=self.budget.delta,
            rho=self.budget.rho,
            unit=self.unit,
            name=self.name,
        )
        return book.charge(self.budget.composable(), unit=self.unit, what=what)

    def mark_released(self, charge: Charge | None, checksum: str) -> None:
        """Record that what was paid for is complete."""
        if charge is not None and (book := self._existing()) is not None:
            book.mark_released(charge.id, checksum)

    def _existing(self) -> Ledger | None:
        if self.ledger is None or isinstance(self.ledger, Ledger):
            return self.ledger
        return Ledger.open(self.ledger) if Path(self.ledger).exists() else None
