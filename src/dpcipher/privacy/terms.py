"""The terms of privacy of one release or method: the budget, who is protected, how that is enforced, and whether the number of rows is told."""

from dataclasses import dataclass
from typing import Literal, Self

from dpcipher.errors import BudgetError, ParameterError
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.unit import Unit


@dataclass(frozen=True)
class Cap:
    """The column that says whose row it is, so that rows of a person beyond `max_rows` are left out.

    A row that names nobody is refused or, with `blank="drop"`, left out: it is never taken for the row of a person called "".
    """

    column: str
    blank: Literal["refuse", "drop"] = "refuse"

    def __post_init__(self) -> None:
        if self.blank not in ("refuse", "drop"):
            raise ParameterError(f"missing_person ({self.blank!r}) must be 'refuse' or 'drop'")


@dataclass(frozen=True)
class Privacy:
    """What is promised to whom: the same value in a plan, a measurement, a method, a ledger's account and a statement.

    Without a `cap`, that nobody has more than `max_rows` rows is the curator's word. `n_rows_public` is the curator's declaration that the number of rows
    is no secret. Where not `every_row_counts`, the table's reader leaves out blank rows, one by one.
    """

    budget: Budget
    unit: Unit
    cap: Cap | None = None
    n_rows_public: bool = False
    every_row_counts: bool = True

    def __post_init__(self) -> None:
        if self.n_rows_public and self.cap is not None:
            raise ParameterError(
                "n_rows_public (True) must not be given with person: rows beyond max_rows are left out, and the number that remains "
                "is not the table's; leave n_rows_public out"
            )
        if self.n_rows_public and not self.every_row_counts:
            raise ParameterError(
                "n_rows_public (True) must not be given with an Excel workbook: its blank rows are left out, and the number that remains "
                "is not the table's; leave n_rows_public out, or save the sheet as a CSV file"
            )

    @classmethod
    def parse(
        cls,
        *,
        epsilon: object = None,
        delta: object = None,
        rho: object = None,
        mechanism: str | None = None,
        unit: object,
        max_rows: object = 1,
        person: str | None = None,
        missing_person: Literal["refuse", "drop"] = "refuse",
        n_rows_public: bool = False,
        may_fail: bool = False,
    ) -> Self:
        """The terms that a caller wrote as words; `may_fail` says that something will be asked that fails with a small probability."""
        if person is None and missing_person != "refuse":
            raise ParameterError(
                f"missing_person ({missing_person!r}) must be left out without a person; try missing_person='refuse', or name the column with person"
            )
        return cls(
            Budget.parse(epsilon=epsilon, delta=delta, rho=rho, mechanism=mechanism, may_fail=may_fail),
            Unit.parse(unit, max_rows),
            None if person is None else Cap(person, missing_person),
            n_rows_public,
        )

    def charge(self, may_fail: bool) -> Budget:
        """The whole charge in a form that adds up, also of failures where something may fail: levels are found in the rows, or rows are drawn."""
        self.budget.check_may_fail(may_fail)
        return self.budget.failing() if may_fail else self.budget.composable()

    @property
    def tells_n_rows(self) -> bool:
        """Whether the number of rows that count is public: by the unit, or because the curator declared it so.

        Where rows can be left out before counting, the number that is left tells about the ids, or the cells, of those that were: it is not
        public under any unit, and a declaration about the table does not reach it.
        """
        all_count = self.cap is None and self.every_row_counts
        return self.n_rows_public or (self.unit.n_rows_is_public and all_count)

    def require_n_rows(self) -> None:
        """Refuse what no noise can hide while neighbours differ in their number of rows, or that number is private."""
        if not (self.unit.n_rows_is_public and self.tells_n_rows):
            raise BudgetError(
                "score ('I') has no bounded sensitivity while the number of rows is private; try score='R', or unit='replace' without person "
                "and without an Excel workbook, whose blank rows are left out"
            )

    @property
    def protection(self) -> str:
        """Who is protected, in a sentence."""
        return self.unit.describe(n_rows_told=self.tells_n_rows)

    def stated(self) -> dict[str, dict[str, str | int]]:
        """The unit and the budget as a statement holds them.

        Whether rows beyond `max_rows` are left out, or nobody has them on the curator's word, is a fact of the request, never of the rows.
        """
        cap = {"cap": "stated"} if self.cap is None else {"cap": "enforced"}
        blank = {"missing_person": "drop"} if self.cap is not None and self.cap.blank == "drop" else {}
        return {"unit": {**self.unit.as_dict(), **cap, **blank}, "budget": {**self.budget.as_dict()}}
