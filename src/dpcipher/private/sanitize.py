"""Given tables: a request is checked, the rows are counted, and noise is drawn on every cell."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import version
from typing import Any

from dpcipher.errors import BudgetError, ParameterError, did_you_mean
from dpcipher.privacy.budget import Budget, positive_fraction
from dpcipher.privacy.entries import Charge
from dpcipher.privacy.mechanism import Mechanism, mechanism_for
from dpcipher.privacy.noise import NoiseSource
from dpcipher.privacy.unit import Unit
from dpcipher.private.count import Tally
from dpcipher.private.incoming import Incoming
from dpcipher.release.reconcile import check_zeros
from dpcipher.release.release import NoisyTable, Release
from dpcipher.release.statement import Statement, Status
from dpcipher.schema.schema import Schema
from dpcipher.schema.workload import Workload

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


def make_order(
    schema: Schema,
    *,
    workload: int | Sequence[Sequence[str]],
    budget: Budget,
    unit: Unit,
    sets: int = 1,
    weights: Mapping[Attrs, float] | None = None,
    n_rows_public: bool | None = None,
) -> Order:
    """Check a request against the schema; nothing private is opened. Whether n is public follows from the unit unless it is said."""
    check_sets(sets)
    parsed = Workload.parse(schema, workload)
    if schema.zeros:
        check_zeros(schema.shape, [schema.axes(attrs) for attrs in parsed.tables], schema.zero_masks)
    mechanisms = _mechanisms(budget, table_weights(parsed, weights), unit, sets)
    public = unit.n_rows_is_public if n_rows_public is None else n_rows_public
    return Order(schema, parsed, budget, unit, sets, mechanisms, public)


def check_sets(sets: object) -> None:
    """Refuse a number of sanitizations that is none."""
    if isinstance(sets, bool) or not isinstance(sets, int) or sets < 1:
        raise ParameterError(
            f"sets ({sets!r}) must be a whole number above 0; try sets=1, or 5 for inference over sets"
        )


def count(incoming: Incoming, order: Order) -> Tally:
    """True counts of every table of the order."""
    return incoming.tally([order.schema.axes(attrs) for attrs in order.workload.tables])


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
    statement = Statement(
        status=_status(noise, charge),
        n_rows=tally.n_rows if order.n_rows_public else None,
        unit=order.unit.as_dict(),
        budget=order.budget.as_dict(),
        certificate=_certificate(order, mechanisms, noise),
        ledger={} if charge is None else charge.as_dict(),
        software={"dpcipher": version("dpcipher"), "opendp": version("opendp")},
        created=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
    )
    return Release(order.schema, tables, statement, kind=kind)


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


def purpose(order: Order) -> dict[str, Any]:
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
