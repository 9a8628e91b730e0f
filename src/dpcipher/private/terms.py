"""The terms of a release, whatever is asked: the promise, whom it protects, and which ledger pays. Checked before any row is read."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from dpcipher.errors import ParameterError
from dpcipher.privacy.account import Account
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.ledger import Ledger
from dpcipher.privacy.unit import Unit
from dpcipher.private.count import Person


@dataclass(frozen=True)
class Terms:
    """Budget, unit, persons and ledger. `n_rows_public` is the curator's declaration that the number of rows is no secret."""

    budget: Budget
    unit: Unit
    person: Person | None = None
    n_rows_public: bool = False
    ledger: str | Path | Ledger | None = None
    name: str = ""
    create: bool = False

    def __post_init__(self) -> None:
        self.account  # noqa: B018 - refuses what contradicts itself
        if self.n_rows_public and self.person is not None:
            raise ParameterError(
                "n_rows_public (True) must not be given with person: rows beyond max_rows are left out, and the number that remains "
                "is not the table's; leave n_rows_public out"
            )

    @cached_property
    def account(self) -> Account:
        """The ledger that pays, with the whole budget."""
        return Account(self.ledger, self.budget, self.unit, self.name, self.create)

    @property
    def tells_n_rows(self) -> bool:
        """Whether the number of rows that count is public: by the unit, or because the curator declared it so.

        Where rows can be left out before counting, the number that is left tells about the ids of those that were: it is not public
        under any unit, and a declaration about the table does not reach it.
        """
        return self.n_rows_public or (self.unit.n_rows_is_public and self.person is None)
