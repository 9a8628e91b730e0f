"""The terms of privacy of one release or method: who is protected, how that is enforced, the budget, and whether the number of rows is told."""

from dataclasses import asdict, dataclass
from numbers import Integral
from typing import Any, Literal, Self

from dpcipher.errors import BudgetError, ParameterError, did_you_mean
from dpcipher.privacy.budget import Budget

Relation = Literal["add-remove", "replace"]
RELATIONS: tuple[Relation, ...] = ("add-remove", "replace")


@dataclass(frozen=True)
class Unit:
    """The difference that a release hides: one person's rows, at most `max_rows` of them.

    add-remove: the rows are there or are not. replace: each of the rows takes other values, so that the number
    of rows stays the same. All rows of one person may sit in one cell, so `max_rows` multiplies the L1 and the
    L2 sensitivity alike.

    >>> Unit("replace", 3).l1, Unit("replace", 3).l2_squared
    (6, 18)
    """

    relation: Relation
    max_rows: int = 1

    def __post_init__(self) -> None:
        if self.relation not in RELATIONS:
            named = isinstance(self.relation, str)
            hint = did_you_mean(self.relation.replace("_", "-"), RELATIONS) if named else ""
            raise ParameterError(
                f"unit ({self.relation!r}) must be 'add-remove' or 'replace'{hint}; try unit='add-remove'"
            )
        rows = self.max_rows
        if not isinstance(rows, Integral) or isinstance(rows, bool) or rows < 1:
            raise ParameterError(f"max_rows ({rows!r}) must be a whole number of at least 1; try max_rows=1")
        object.__setattr__(self, "max_rows", int(rows))

    @classmethod
    def parse(cls, unit: Any, max_rows: Any = 1) -> Self:
        """A unit from what a caller wrote: a name with `max_rows`, or a Unit as it is."""
        if not isinstance(unit, cls):
            return cls(unit, max_rows)
        if cls(unit.relation, max_rows).max_rows not in (1, unit.max_rows):
            raise ParameterError(
                f"max_rows ({max_rows!r}) must agree with unit (max_rows={unit.max_rows}); give it once"
            )
        return unit

    @property
    def l1(self) -> int:
        """The L1 distance between the counts of one table on two neighbours."""
        return self.max_rows if self.relation == "add-remove" else 2 * self.max_rows

    @property
    def l2_squared(self) -> int:
        """The squared L2 distance between the counts of one table on two neighbours."""
        return self.max_rows**2 if self.relation == "add-remove" else 2 * self.max_rows**2

    @property
    def n_rows_is_public(self) -> bool:
        """Whether neighbours always have the same number of rows, so that it tells nothing about anybody."""
        return self.relation == "replace"

    def describe(self, *, n_rows_told: bool | None = None) -> str:
        """A sentence for people; `n_rows_told` says whether the exact number of rows goes with it, as it does by default under replacement.

        Told under add-remove, it gives presence away. What is left is the protection of values: one row replaced is one removed and
        one added, so that it holds for two steps at once.

        >>> Unit("add-remove").describe()
        'Protects the presence of any one row.'
        """
        rows = (
            "any one row" if self.max_rows == 1 else f"any one person's rows, up to {self.max_rows} of them"
        )
        told = self.n_rows_is_public if n_rows_told is None else n_rows_told
        if self.relation == "replace":
            return f"Protects the values of {rows}{'; the number of rows is public' if told else ''}."
        if not told:
            return f"Protects the presence of {rows}."
        return (
            f"Protects the values of {rows}, at twice the stated epsilon (four times a stated rho); presence is not protected, "
            "because the exact number of rows was declared public."
        )

    def as_dict(self) -> dict[str, str | int]:
        """Plain values, for a file."""
        return asdict(self)


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
