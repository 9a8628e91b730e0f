"""What is asked, and on which terms: the promise, whom it protects, which ledger pays, and which tables with which noise.

All of it is checked before any row is read. A ledger must exist, or be created on purpose; it is created only when a charge is due.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from dpcipher.errors import BudgetError, LedgerError, ParameterError, did_you_mean, warn
from dpcipher.privacy.budget import Budget, positive_fraction
from dpcipher.privacy.durable import missing
from dpcipher.privacy.ledger import Ledger
from dpcipher.privacy.noise import mechanism_for
from dpcipher.privacy.records import Charge
from dpcipher.privacy.unit import Unit
from dpcipher.release.file import check_fits_file
from dpcipher.release.reconcile import check_size
from dpcipher.schema.schema import Schema
from dpcipher.schema.workload import Workload
from dpcipher.tables.domain import Attrs
from dpcipher.tables.measurement import Noise
from dpcipher.tables.query import Query


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
    mistaken the path. `may_fail` says that something is asked that fails with a small probability: levels are found in the rows, or rows are drawn;
    `needs_n_rows`, that something is asked that no noise can hide while the number of rows is private. Where not `every_row_counts`, the
    table's reader leaves out blank rows, one by one.
    """

    budget: Budget
    unit: Unit
    person: Person | None = None
    n_rows_public: bool = False
    ledger: str | Path | Ledger | None = None
    name: str = ""
    create: bool = False
    label: str = ""
    may_fail: bool = False
    needs_n_rows: bool = False
    every_row_counts: bool = True

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
        if self.n_rows_public and not self.every_row_counts:
            raise ParameterError(
                "n_rows_public (True) must not be given with an Excel workbook: its blank rows are left out, and the number that remains "
                "is not the table's; leave n_rows_public out, or save the sheet as a CSV file"
            )
        if self.needs_n_rows and not self.tells_n_rows:
            raise BudgetError(
                "score ('I') has no bounded sensitivity while the number of rows is private; try score='R', or unit='replace' without person "
                "and without an Excel workbook, whose blank rows are left out"
            )

    def of(self, schema: Schema) -> "Terms":
        """The same terms where levels are to be found, which may fail; themselves otherwise, and then rho needs no delta."""
        if not schema.discovers:
            self.budget.check_may_fail(self.may_fail)
        return replace(self, may_fail=True) if schema.discovers else self

    @property
    def cost(self) -> Budget:
        """The whole charge, in a form that adds up."""
        return self.budget.failing() if self.may_fail else self.budget.composable()

    @property
    def tells_n_rows(self) -> bool:
        """Whether the number of rows that count is public: by the unit, or because the curator declared it so.

        Where rows can be left out before counting, the number that is left tells about the ids, or the cells, of those that were: it is not
        public under any unit, and a declaration about the table does not reach it.
        """
        all_count = self.person is None and self.every_row_counts
        return self.n_rows_public or (self.unit.n_rows_is_public and all_count)

    @property
    def cap(self) -> dict[str, str]:
        """Whether rows beyond `max_rows` are left out, or nobody has them on the curator's word: a fact of the request, never of the rows."""
        if self.person is None:
            return {"cap": "stated"}
        return {"cap": "enforced"} | ({"missing_person": "drop"} if self.person.missing == "drop" else {})

    def check(self) -> None:
        """Refuse now what `charge` would refuse, without spending."""
        cost, book = self.cost, self._book()
        if book is None:
            return
        if self.create:
            book.check_absent()
        elif not book.path.exists():
            raise LedgerError(
                f"{missing(book.path)}; create=True (on the command line --create) creates one whose limit is this release"
            )
        else:
            book.check(cost, unit=self.unit)

    def charge(self, what: dict[str, Any]) -> Charge | None:
        """Spend the budget, durably before this returns; None where no ledger pays."""
        book = self._book()
        if book is None:
            return None
        if self.create:
            Ledger.create(book.path, **vars(self.budget), unit=self.unit, name=self.name)
        named = {"label": self.label} if self.label else {}
        return book.charge(self.cost, unit=self.unit, what=named | what)

    def mark_released(self, charge: Charge | None, checksum: str, *, file: str = "") -> None:
        """Record that what was paid for is complete."""
        book = self._book()
        if charge is not None and book is not None:
            book.mark_released(charge.id, checksum, file=file)

    def _book(self) -> Ledger | None:
        if self.ledger is None or isinstance(self.ledger, Ledger):
            return self.ledger
        return Ledger(self.ledger)


@dataclass(frozen=True)
class MeasurementRequest:
    """A checked request: what to measure, under which promise, with which noise. Everything in it is public."""

    schema: Schema
    workload: Workload
    budget: Budget
    unit: Unit
    sets: int
    shares: tuple[Fraction, ...]  # of the whole charge, of each table in one set
    mechanisms: tuple[Noise, ...]
    n_rows_public: bool = False

    @property
    def axes(self) -> list[tuple[int, ...]]:
        """The axes of each table."""
        return [self.schema.axes(attrs) for attrs in self.workload.tables]


def make_request(
    schema: Schema,
    *,
    workload: int | Sequence[Sequence[str]],
    budget: Budget,
    unit: Unit,
    sets: int = 1,
    weights: Mapping[Attrs, float] | None = None,
    n_rows_public: bool | None = None,
) -> MeasurementRequest:
    """Check a request against the schema; nothing private is opened. Whether n is public follows from the unit unless it is said."""
    check_sets(sets)
    parsed = Workload.parse(schema, workload)
    check_fits_file(schema, parsed, sets)
    if schema.zero_masks:
        check_size(schema.domain, [Query(schema.axes(attrs)) for attrs in parsed.tables])
    shares = table_shares(parsed, weights, sets)
    affordable = {share: mechanism_for(budget.share(share), unit) for share in set(shares)}
    mechanisms = tuple(affordable[share] for share in shares)
    public = unit.n_rows_is_public if n_rows_public is None else n_rows_public
    return MeasurementRequest(schema, parsed, budget, unit, sets, shares, mechanisms, public)


def check_person(schema: Schema, person: Person | None) -> None:
    """Warn where the schema says whose row each is and that is not used: then rows are protected, and not persons."""
    if schema.person is not None and (person is None or person.column != schema.person):
        given = "is not given" if person is None else f"is {person.column!r}"
        warn(
            f"person {given}, and the schema says that {schema.person!r} names whose row each is: without it rows are protected, and not persons; "
            f"use person={schema.person!r} (--person {schema.person}), or correct the schema"
        )


def check_sets(sets: object) -> None:
    """Refuse a number of sanitizations that is none."""
    if isinstance(sets, bool) or not isinstance(sets, int) or sets < 1:
        raise ParameterError(
            f"sets ({sets!r}) must be a whole number above 0; try sets=1, or 5 for inference over sets"
        )


def table_shares(
    workload: Workload, weights: Mapping[Attrs, float] | None = None, sets: int = 1
) -> tuple[Fraction, ...]:
    """The share of the whole charge that each table gets in one set: equal, or by weight."""
    parts = table_weights(workload, weights)
    whole = sum(parts, Fraction(0)) * sets
    return tuple(part / whole for part in parts)


def table_weights(workload: Workload, weights: Mapping[Attrs, float] | None) -> tuple[Fraction, ...]:
    """The weight of each table: equal, or as given."""
    if weights is None:
        return (Fraction(1),) * len(workload.tables)
    given = {frozenset(attrs): value for attrs, value in weights.items()}
    known = {frozenset(attrs) for attrs in workload.tables}
    unknown = [attrs for attrs in weights if frozenset(attrs) not in known]
    if unknown:
        hint = did_you_mean(" × ".join(unknown[0]), [" × ".join(attrs) for attrs in workload.tables])
        raise BudgetError(f"weights name {unknown[0]!r}, which is not a table of the workload{hint}")
    absent = [attrs for attrs in workload.tables if frozenset(attrs) not in given]
    if absent:
        raise BudgetError(
            f"weights have no entry for {absent[0]!r}; give one per table, or none for equal shares"
        )
    return tuple(positive_fraction("weight", given[frozenset(attrs)]) for attrs in workload.tables)
