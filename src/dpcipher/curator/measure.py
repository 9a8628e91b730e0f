"""The entry point: private rows go in, a release comes out. Nothing else leaves the private side.

The order is the contract: check, have it signed, price every question, read and count, charge the ledger durably, and only then make the sampler.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from dpcipher.curator.answers import PrivateRows
from dpcipher.curator.counts import open_counts, receive
from dpcipher.errors import LedgerError, Progress, silent, warn
from dpcipher.files import PaidFor
from dpcipher.io.write import check_writable
from dpcipher.privacy.draws import Draws
from dpcipher.privacy.ledger import Account, Ledger
from dpcipher.privacy.terms import Privacy
from dpcipher.release.release import Release
from dpcipher.request.request import Auto, Request, check_person
from dpcipher.request.session import Session
from dpcipher.schema.schema import Schema
from dpcipher.selection.edges import planned_tables
from dpcipher.selection.find import check_finding, find
from dpcipher.selection.select import select
from dpcipher.selection.target import SelectionTarget, check_auto, foreseen_tables
from dpcipher.tables.domain import Attrs, Axes
from dpcipher.tables.measurement import Measurement


def measure(
    data: Any,
    schema: Schema,
    *,
    workload: int | str | Auto | Sequence[Sequence[str]] = 2,
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
    n_rows_public: bool = False,
    ledger: str | Path | Ledger | None = None,
    name: str = "",
    create: bool = False,
    label: str = "",
    save: str | PathLike[str] | None = None,
    force: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Release:
    """Measure noisy tables of private rows under differential privacy.

    `unit` says what one person may change: "add-remove" rows or "replace" them, at most `max_rows` of them (your assertion, unless
    `person` names the column that says whose row it is: then it is enforced, and rows that name nobody are refused, or left out with
    `missing_person="drop"`). `n_rows_public` publishes the exact number of rows also under "add-remove", on your word that it is no secret:
    values are then protected and presence is not. `epsilon` alone is pure; with `delta`, or as `rho`, the noise is Gaussian.
    Bins and levels that the schema leaves open are found first, with a part of the same charge, and the release holds the schema with them.

    `workload` is an order (2 = all pairs), a list of attrs and `dc.Grouped` tables, or "auto": then part of the budget chooses the tables, as `dc.Auto(...)` in the place of
    the word says. Given tables share the budget equally, or by `weights`, and over
    `sets` independent sanitizations. It is charged to `ledger` before any noise is drawn. A path that does not exist is refused: make it first with
    `Ledger.create`, or let `create=True` make one that is called `name` and whose limit is this release. `save` writes the release before it is marked;
    the ledger keeps the name of its file, and its `label`, what you call it. A file that is there already is refused before the charge, unless `force`
    says that it may be replaced.

    >>> import pandas as pd
    >>> import dpcipher as dc
    >>> schema = dc.Schema.from_domain({"smokes": 2, "ill": 2})
    >>> people = pd.DataFrame({"smokes": [0, 0, 1, 1] * 250, "ill": [0, 0, 0, 1] * 250})
    >>> release = dc.measure(people, schema, workload=2, epsilon=1.0, unit="add-remove")
    >>> release.statement.status, release.statement.budget["epsilon"]
    ('unrecorded', '1')
    """
    privacy = Privacy.parse(
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        mechanism=mechanism,
        unit=unit,
        max_rows=max_rows,
        person=person,
        missing_person=missing_person,
        n_rows_public=n_rows_public,
        may_fail=schema.discovers,
    )
    account = Account(ledger, name, create, label)
    request = Request.parse(schema, privacy, workload=workload, weights=weights, sets=sets)
    auto, tell = request.auto, progress or silent
    if auto is not None:
        check_auto(auto, schema)
    if schema.is_open:
        check_finding(schema, privacy, sets)
    target = None
    if save is not None:
        path = ledger.path if isinstance(ledger, Ledger) else ledger
        check_writable(save, (".parquet",), force=force, inputs=(data, path))
        target = save if isinstance(save, PaidFor) else PaidFor(save, force=force)
    session = open_session(
        data,
        schema,
        privacy,
        account,
        purpose=request.purpose,
        tables=request.axes if auto is None else None,
        foreseen=None if auto is None else foreseen_tables(SelectionTarget.of(auto, schema)),
        progress=tell,
    )
    if schema.is_open:
        find(session, planned_tables(request), sets=sets, progress=tell)
    tables: Sequence[Measurement]
    if auto is not None:
        tables = select(session, auto, sets=sets, progress=tell)
    else:
        if schema.is_open:
            request = request.on(session.schema, session.part(Fraction(1)))
        tables = session.measure_all(request, progress=tell)
    return _finished(session, tables, target, tell)


def open_session(
    data: Any,
    schema: Schema,
    privacy: Privacy,
    account: Account = Account(),  # noqa: B008 - a frozen value
    *,
    purpose: Mapping[str, Any],
    may_fail: bool = False,
    needs_n_rows: bool = False,
    tables: Sequence[Axes] | None = None,
    foreseen: Sequence[Axes] | None = None,
    progress: Progress = silent,
) -> Session:
    """Check the terms and the ledger, read the private rows, and charge the ledger with the whole budget, in that order.

    Where all `tables` that will be asked for are known, or few are `foreseen` among which they will be, their counts are taken in one pass and
    no row is kept, unless the schema is open: then rows are coded on its grid, and kept. `purpose` says publicly what the charge is for.
    `may_fail` and `needs_n_rows` say what a method will ask: something that fails with a small probability, or that no noise can hide while
    the number of rows is private.
    """
    schema.require_signed()
    cost = privacy.charge(may_fail or schema.discovers)
    check_person(schema, privacy.cap)
    account.check(privacy, cost)
    incoming = receive(data, schema, privacy, progress=progress)
    if incoming.drops_blank_rows:
        privacy = replace(privacy, every_row_counts=False)
    if needs_n_rows:
        privacy.require_n_rows()
    if incoming.extra:
        progress(incoming.extra)
    progress("counting" if tables is not None else "reading")
    if schema.is_open:
        tables = foreseen = None
    counts = open_counts(incoming, schema, tables, foreseen=foreseen)
    progress("charging the ledger and drawing noise")
    asked = {**purpose, "asked": privacy.budget.describe(), "schema": schema.fingerprint()}
    charge = account.charge(privacy, cost, asked)
    source = PrivateRows(counts, Draws.secure(), charge=charge, account=account, kind=incoming.kind)
    return Session(schema, privacy, source, may_fail=may_fail)


def _finished(
    session: Session, tables: Sequence[Measurement], target: PaidFor | None, progress: Progress
) -> Release:
    """The release: written where it was asked for, and then recorded in the ledger. It is paid for, so what goes wrong now is a warning."""
    release = session.release(tables)
    if target is not None:
        progress("writing the release")
        asked = target.path
        if why := target.write(lambda path: release.save(path, force=target.force), anywhere=True):
            warn(f"{asked}: {why}; the release is paid for, and was written to {target.path}")
    try:
        session.close(release.checksum, file="" if target is None else target.path.name)
    except LedgerError as error:
        kept = "" if target is None else f" and written to {target.path}"
        said = f"{error}. The release is paid for{kept}, and can be used; only that it is finished was not recorded in the ledger"
        if target is not None:
            raise type(error)(said) from None
        warn(said)  # an error would lose it
    return release
