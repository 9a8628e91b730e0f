"""The front door: private rows go in, a release comes out. Nothing else leaves the private side.

The order is the contract: check everything, read and count, charge the ledger durably, and only then draw noise.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from dpcipher.errors import ParameterError
from dpcipher.privacy.account import Account
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.ledger import Ledger
from dpcipher.privacy.mechanism import mechanism_for
from dpcipher.privacy.noise import OpenDPNoise
from dpcipher.privacy.unit import Unit
from dpcipher.private.count import Person, public_rows
from dpcipher.private.door import Door
from dpcipher.private.incoming import receive
from dpcipher.private.sanitize import Attrs, check_sets, count, make_order, purpose, sanitize
from dpcipher.private.select import check_auto, measure_chosen
from dpcipher.release.release import Release
from dpcipher.schema.schema import Schema
from dpcipher.select.aim import Auto
from dpcipher.tables.write import check_writable


def measure(
    data: Any,
    schema: Schema,
    *,
    workload: int | str | Sequence[Sequence[str]] = 2,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    unit: str,
    max_rows: int = 1,
    person: str | None = None,
    missing_person: Literal["refuse", "drop"] = "refuse",
    mechanism: str | None = None,
    sets: int = 1,
    weights: Mapping[Attrs, float] | None = None,
    max_order: int | None = None,
    max_cells: int | None = None,
    target: int | Sequence[Sequence[str]] | None = None,
    column_weights: Mapping[str, float] | None = None,
    n_rows_public: bool = False,
    ledger: str | Path | Ledger | None = None,
    name: str = "",
    create: bool = False,
    save: str | Path | None = None,
    progress: Callable[[str], None] | None = None,
) -> Release:
    """Measure noisy tables of private rows under differential privacy.

    `unit` says what one person may change: "add-remove" rows or "replace" them, at most `max_rows` of them (your assertion, unless
    `person` names the column that says whose row it is: then it is enforced, and rows that name nobody are refused, or left out with
    `missing_person="drop"`). `n_rows_public` publishes the exact number of rows also under "add-remove": your word that it is no secret; it
    then protects values and no longer presence. `epsilon` alone is pure; with `delta`, or as `rho`, the noise
    is Gaussian. `workload` is an order (2 = all pairs), a list of attrs, or "auto": then part of the budget chooses the tables, up to
    `max_order` columns (3) and `max_cells` cells (10,000) each, for the sake of `target` (an order or a list of attrs; by default all
    tables of `max_order` columns), in which `column_weights` say which columns matter more.

    Given tables share the budget equally, or by `weights`, and over `sets` independent sanitizations. It is charged to `ledger` before any
    noise is drawn. A path that does not exist is refused, so that a slip of the pen opens no fresh budget: make it first with `Ledger.create`,
    or let `create=True` make one that is called `name` and whose limit is this release. With `save`, the release is written there before the
    ledger marks it as released.
    """
    auto = parse_auto(
        workload,
        weights=weights,
        max_order=max_order,
        max_cells=max_cells,
        target=target,
        column_weights=column_weights,
    )
    protects = Unit.parse(unit, max_rows)
    limit = None if person is None else Person(person, protects.max_rows, missing_person)
    terms = Terms(
        Budget.parse(epsilon=epsilon, delta=delta, rho=rho, mechanism=mechanism),
        protects,
        limit,
        sets,
        public_rows(protects, limit, declared=n_rows_public),
        ledger,
        name,
        create,
        None if save is None else Path(save),
        progress or (lambda _: None),
    )
    if auto is not None:
        return _chosen(data, schema, auto, terms)
    assert not isinstance(workload, str)  # parse_auto refused every other word
    return _given(data, schema, workload, weights, terms)


@dataclass(frozen=True)
class Terms:
    """What holds for a release whatever its tables: the promise, where it is charged, and where it is written."""

    budget: Budget
    unit: Unit
    person: Person | None
    sets: int
    n_rows_public: bool
    ledger: str | Path | Ledger | None
    name: str
    create: bool
    save: Path | None
    say: Callable[[str], None]


def _given(
    data: Any,
    schema: Schema,
    workload: int | Sequence[Sequence[str]],
    weights: Mapping[Attrs, float] | None,
    terms: Terms,
) -> Release:
    """Measure the tables that were named."""
    order = make_order(
        schema,
        workload=workload,
        budget=terms.budget,
        unit=terms.unit,
        sets=terms.sets,
        weights=weights,
        n_rows_public=terms.n_rows_public,
    )
    schema.require_signed()
    if terms.save is not None:
        check_writable(terms.save)
    account = Account(terms.ledger, order.budget, order.unit, terms.name, terms.create)
    account.check()
    terms.say("counting")
    incoming = receive(data, schema, terms.person)
    tally = count(incoming, order)
    terms.say("charging the ledger and drawing noise")
    charge = account.charge(purpose(order))
    release = sanitize(tally, order, OpenDPNoise(), charge=charge, kind=incoming.kind)
    _save(release, terms)
    account.mark_released(charge, release.checksum)
    return release


def _chosen(data: Any, schema: Schema, auto: Auto, terms: Terms) -> Release:
    """Choose the tables through the door, and measure them; all under one charge."""
    check_sets(terms.sets)
    check_auto(auto, schema)
    # What cannot be divided is refused before the charge.
    mechanism_for(terms.budget.split([1, 2**16 - 1])[0], terms.unit)
    if terms.save is not None:
        check_writable(terms.save)
    terms.say("reading, and charging the ledger")
    door = Door.open(
        data,
        schema,
        budget=terms.budget,
        unit=terms.unit,
        person=terms.person,
        ledger=terms.ledger,
        name=terms.name,
        create=terms.create,
        what={"tables": "auto", "sets": terms.sets},
        n_rows_public=terms.n_rows_public,
    )
    chosen = measure_chosen(door, auto, sets=terms.sets, say=terms.say)
    release = Release(schema, chosen.tables, door.statement(), kind=door.kind)
    _save(release, terms)
    door.close(release.checksum)
    return release


def _save(release: Release, terms: Terms) -> None:
    if terms.save is not None:
        terms.say("writing the release")
        release.save(terms.save)


def parse_auto(
    workload: object,
    *,
    weights: Mapping[Attrs, float] | None = None,
    max_order: int | None = None,
    max_cells: int | None = None,
    target: int | Sequence[Sequence[str]] | None = None,
    column_weights: Mapping[str, float] | None = None,
) -> Auto | None:
    """How to choose tables, where `workload` is "auto"; None where it names them, and then nothing about choosing may be said."""
    options = {
        "max_order": max_order,
        "max_cells": max_cells,
        "target": target,
        "column_weights": column_weights,
    }
    given = {option: value for option, value in options.items() if value is not None}
    if workload == "auto":
        if weights is not None:
            raise ParameterError(
                "weights are for tables that are given; with workload='auto' say column_weights={'income': 2.0} instead"
            )
        return Auto(**given)  # type: ignore[arg-type]  # checked at birth
    if isinstance(workload, str):
        raise ParameterError(
            f"workload ({workload!r}) must be 'auto', an order such as 2, or a list of tables such as [('age', 'sex')]"
        )
    if given:
        raise ParameterError(
            f"{next(iter(given))} is for workload='auto'; leave it out, or let the tables be chosen"
        )
    return None
