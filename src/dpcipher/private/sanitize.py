"""The door: counts go in, a release comes out. Nothing else leaves the private side.

The order is the contract: check everything, read and count, charge the ledger durably, and only then draw noise.
"""

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dpcipher.errors import BudgetError, ParameterError, did_you_mean
from dpcipher.privacy.account import Account
from dpcipher.privacy.budget import Budget, positive_fraction
from dpcipher.privacy.ledger import Charge, Ledger
from dpcipher.privacy.mechanism import Mechanism, mechanism_for
from dpcipher.privacy.noise import NoiseSource, OpenDPNoise
from dpcipher.privacy.unit import Unit
from dpcipher.private.count import Person, Tally, count_batches
from dpcipher.private.spark import count_spark, is_spark
from dpcipher.release.release import NoisyTable, Release
from dpcipher.release.statement import Statement, Status
from dpcipher.schema.schema import Schema
from dpcipher.schema.workload import Workload
from dpcipher.tables.read import open_table
from dpcipher.tables.write import check_writable

Attrs = tuple[str, ...]


@dataclass(frozen=True)
class Order:
    """A checked request: what to measure, under which promise, with which noise. Everything in it is public."""

    schema: Schema
    workload: Workload
    budget: Budget
    unit: Unit
    sets: int
    mechanisms: tuple[Mechanism, ...]
    n_rows_public: bool


def measure(
    data: Any,
    schema: Schema,
    *,
    workload: int | Sequence[Sequence[str]] = 2,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    unit: str,
    max_rows: int = 1,
    person: str | None = None,
    mechanism: str | None = None,
    sets: int = 1,
    weights: Mapping[Attrs, float] | None = None,
    n_rows_public: bool = False,
    ledger: str | Path | Ledger | None = None,
    name: str = "",
    save: str | Path | None = None,
    progress: Callable[[str], None] | None = None,
) -> Release:
    """Measure noisy tables of private rows under differential privacy.

    `unit` says what one person may change: "add-remove" rows or "replace" them, at most `max_rows` of them (your assertion, unless
    `person` names the column that says whose row it is: then it is enforced). `epsilon` alone is pure; with `delta`, or as `rho`, the noise
    is Gaussian. `workload` is an order (2 = all pairs) or a list of attrs. The budget is split equally over tables, or by `weights`, and over
    `sets` independent sanitizations. It is charged to `ledger` before any noise is drawn; a path that does not exist creates a ledger
    whose limit is this release. With `save`, the release is written there before the ledger marks it as released.
    """
    say = progress or (lambda _: None)
    order = make_order(
        schema,
        workload=workload,
        budget=Budget.parse(epsilon=epsilon, delta=delta, rho=rho, mechanism=mechanism),
        unit=Unit.parse(unit, max_rows),
        sets=sets,
        weights=weights,
        n_rows_public=n_rows_public,
    )
    schema.require_signed()
    if save is not None:
        check_writable(Path(save))
    account = Account(ledger, order.budget, order.unit, name)
    account.check()
    say("counting")
    tally = count(data, order, None if person is None else Person(person, order.unit.max_rows))
    say("charging the ledger and drawing noise")
    charge = account.charge(_purpose(order))
    release = sanitize(tally, order, OpenDPNoise(), charge=charge, kind=kind_of(data))
    if save is not None:
        say("writing the release")
        release.save(save)
    account.mark_released(charge, release.checksum)
    return release


def make_order(
    schema: Schema,
    *,
    workload: int | Sequence[Sequence[str]],
    budget: Budget,
    unit: Unit,
    sets: int = 1,
    weights: Mapping[Attrs, float] | None = None,
    n_rows_public: bool = False,
) -> Order:
    """Check a request against the schema; nothing private is opened."""
    if isinstance(sets, bool) or not isinstance(sets, int) or sets < 1:
        raise ParameterError(
            f"sets ({sets!r}) must be a whole number above 0; try sets=1, or 5 for inference over sets"
        )
    parsed = Workload.parse(schema, workload)
    mechanisms = _mechanisms(budget, table_weights(parsed, weights), unit, sets)
    return Order(schema, parsed, budget, unit, sets, mechanisms, n_rows_public)


def count(data: Any, order: Order, person: Person | None = None) -> Tally:
    """True counts of every table of the order; a Spark frame is counted by Spark."""
    tables = [order.schema.axes(attrs) for attrs in order.workload.tables]
    if is_spark(data):
        return count_spark(data, order.schema, tables, person)
    wanted = dict.fromkeys([*order.schema.names, *([] if person is None else [person.column])])
    return count_batches(open_table(data).batches(list(wanted)), order.schema, tables, person)


def sanitize(
    tally: Tally, order: Order, noise: NoiseSource, *, charge: Charge | None = None, kind: str = "pandas"
) -> Release:
    """Draw independent noise on every cell of every table of every set, and state what was done."""
    mechanisms = order.mechanisms
    tables = tuple(
        NoisyTable(attrs, noise.add(counts, mechanism), mechanism, number)
        for number in range(order.sets)
        for attrs, counts, mechanism in zip(order.workload.tables, tally.tables, mechanisms, strict=True)
    )
    public = order.unit.n_rows_is_public or order.n_rows_public
    statement = Statement(
        status=_status(noise, charge),
        n_rows=tally.n_rows if public else None,
        unit=order.unit.as_dict(),
        budget=order.budget.as_dict(),
        certificate=_certificate(order, mechanisms, noise),
        ledger={} if charge is None else {"charge": charge.id, "head": charge.head},
        software={"dpcipher": version("dpcipher"), "opendp": version("opendp")},
        created=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
    )
    return Release(order.schema, tables, statement, kind=kind)


def kind_of(data: Any) -> str:
    """Which library the rows came from, so that synthetic rows can go back to it."""
    return "spark" if is_spark(data) else open_table(data).kind


def _status(noise: NoiseSource, charge: Charge | None) -> Status:
    if not noise.is_private:
        return "NOT PRIVATE"
    return "unrecorded" if charge is None else "certified"


def _mechanisms(budget: Budget, weights: Sequence[Fraction], unit: Unit, sets: int) -> tuple[Mechanism, ...]:
    """The noise that each table's share of the budget pays for, over `sets` independent sanitizations."""
    shares = budget.split([weight for _ in range(sets) for weight in weights])[: len(weights)]
    affordable = {share: mechanism_for(share, unit) for share in set(shares)}
    return tuple(affordable[share] for share in shares)


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


def _purpose(order: Order) -> dict[str, Any]:
    """What the ledger records of the request: public parameters only."""
    return {
        "tables": len(order.workload.tables),
        "sets": order.sets,
        "mechanism": order.mechanisms[0].name,
        "schema": order.schema.fingerprint(),
    }


def _certificate(order: Order, mechanisms: Sequence[Mechanism], noise: NoiseSource) -> dict[str, Any]:
    """What the sampler's own privacy map says: of each distinct noise, and of all tables and sets together."""
    losses = {mechanism: noise.certificate(mechanism, order.unit) for mechanism in set(mechanisms)}
    total = sum(losses[mechanism] for mechanism in mechanisms) * order.sets
    measure_of = "epsilon" if order.budget.kind == "pure" else "rho"
    return {
        "measure": measure_of,
        "per_table": [losses[mechanism] for mechanism in mechanisms],
        "total": total,
        "by": "privacy map of opendp" if noise.is_private else "none: seeded noise",
    }
