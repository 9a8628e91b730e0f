"""Which ledger pays: checked before any row is read, created only on request and only when a charge is due."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpcipher.errors import LedgerError, ParameterError
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.durable import missing
from dpcipher.privacy.entries import Charge
from dpcipher.privacy.ledger import Ledger
from dpcipher.privacy.unit import Unit


@dataclass(frozen=True)
class Account:
    """A budget and the ledger that pays for it: one that exists, or none.

    With `create` it is a path where there is no ledger yet, and one will be created with this budget as its limit. A path that exists is
    then refused, as a path that does not is without `create`: whoever says one and finds the other has mistaken the path.
    """

    ledger: str | Path | Ledger | None
    budget: Budget
    unit: Unit
    name: str = ""
    create: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.create, bool):
            raise ParameterError(f"create ({self.create!r}) must be True or False")
        if self.create and (self.ledger is None or isinstance(self.ledger, Ledger)):
            given = "None" if self.ledger is None else "a Ledger, which exists already"
            raise ParameterError(
                f"create (True) needs a path as ledger ({given}); give the path of the new ledger, or leave create out"
            )

    def check(self) -> None:
        """Refuse now what `charge` would refuse, without spending."""
        if (book := self._book()) is None:
            return
        if self.create:
            book.check_absent()
        elif not book.path.exists():
            raise LedgerError(
                f"{missing(book.path)}; create=True (on the command line --create) creates one whose limit is this release"
            )
        else:
            book.check(self.budget.composable(), unit=self.unit)

    def charge(self, what: dict[str, Any]) -> Charge | None:
        """Spend the budget, durably before this returns."""
        if (book := self._book()) is None:
            return None
        if self.create:
            Ledger.create(
                book.path,
                epsilon=self.budget.epsilon,
                delta=self.budget.delta,
                rho=self.budget.rho,
                unit=self.unit,
                name=self.name,
            )
        return book.charge(self.budget.composable(), unit=self.unit, what=what)

    def mark_released(self, charge: Charge | None, checksum: str) -> None:
        """Record that what was paid for is complete."""
        if charge is not None and (book := self._book()) is not None:
            book.mark_released(charge.id, checksum)

    def _book(self) -> Ledger | None:
        if self.ledger is None or isinstance(self.ledger, Ledger):
            return self.ledger
        return Ledger(self.ledger)
