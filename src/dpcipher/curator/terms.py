"""The terms of a release, whatever is asked: the promise, whom it protects, and which ledger pays.

They are checked before any row is read. A ledger must exist, or be created on purpose; it is created only when a charge is due.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from dpcipher.errors import LedgerError, ParameterError
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.durable import missing
from dpcipher.privacy.ledger import Ledger
from dpcipher.privacy.records import Charge
from dpcipher.privacy.unit import Unit


@dataclass(frozen=True)
class Person:
    """The column that says whose row it is, and how many rows of one person may count.

    A row that names nobody is refused or, with `missing="drop"`, left out: it is never taken for the row of a person called "".
    """

    column: str
    max_rows: int
    missing: Literal["refuse", "drop"] = "refuse"

    def __post_init__(self) -> None:
        if self.missing not in ("refuse", "drop"):
            raise ParameterError(f"missing_person ({self.missing!r}) must be 'refuse' or 'drop'")


@dataclass(frozen=True)
class Terms:
    """Budget, unit, persons and ledger.

    `n_rows_public` is the curator's declaration that the number of rows is no secret. `ledger` is one that exists, or none. With `create` it
    is a path where there is none yet, and one will be created with this budget as its limit: whoever says one and finds the other has
    mistaken the path.
    """

    budget: Budget
    unit: Unit
    person: Person | None = None
    n_rows_public: bool = False
    ledger: str | Path | Ledger | None = None
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
        if self.n_rows_public and self.person is not None:
            raise ParameterError(
                "n_rows_public (True) must not be given with person: rows beyond max_rows are left out, and the number that remains "
                "is not the table's; leave n_rows_public out"
            )

    @property
    def tells_n_rows(self) -> bool:
        """Whether the number of rows that count is public: by the unit, or because the curator declared it so.

        Where rows can be left out before counting, the number that is left tells about the ids of those that were: it is not public
        under any unit, and a declaration about the table does not reach it.
        """
        return self.n_rows_public or (self.unit.n_rows_is_public and self.person is None)

    def check(self) -> None:
        """Refuse now what `charge` would refuse, without spending."""
        book = self._book()
        if book is None:
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
        """Spend the budget, durably before this returns; None where no ledger pays."""
        book = self._book()
        if book is None:
            return None
        if self.create:
            Ledger.create(book.path, **vars(self.budget), unit=self.unit, name=self.name)
        return book.charge(self.budget.composable(), unit=self.unit, what=what)

    def mark_released(self, charge: Charge | None, checksum: str) -> None:
        """Record that what was paid for is complete."""
        book = self._book()
        if charge is not None and book is not None:
            book.mark_released(charge.id, checksum)

    def _book(self) -> Ledger | None:
        if self.ledger is None or isinstance(self.ledger, Ledger):
            return self.ledger
        return Ledger(self.ledger)
