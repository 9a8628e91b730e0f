"""The entry point: private rows go in, a release comes out. Nothing else leaves the private side.

The order is the contract: check everything, read and count, charge the ledger durably, and only then draw noise.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from dpcipher.curator.find import find_bins
from dpcipher.curator.select import measure_chosen
from dpcipher.curator.session import Session
from dpcipher.errors import LedgerError
from dpcipher.io.write import check_writable
from dpcipher.privacy.ledger import Account, Ledger
from dpcipher.privacy.terms import Privacy
from dpcipher.release.release import Release
from dpcipher.request.auto import Auto
from dpcipher.request.request import Request
from dpcipher.schema.schema import Schema
from dpcipher.selection.binning import planned_tables
from dpcipher.selection.foreseen import foreseen_tables
from dpcipher.selection.limits import check_auto
from dpcipher.selection.search import check_finding
from dpcipher.selection.target import SelectionTarget
from dpcipher.tables.domain import Attrs
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
    save: str | Path | None = None,
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
    the ledger keeps the name of its file, and its `label`, what you call it.

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
    check_auto(request)
    check_finding(schema, privacy)
    if save is not None:
        check_writable(save)
    say = progress or (lambda _: None)
    return _finished(*_measured(data, request, account, say), save, say)


def _measured(
    data: Any, request: Request, account: Account, say: Callable[[str], None]
) -> tuple[Session, Sequence[Measurement]]:
    """Open the rows, find what the schema leaves open, and measure the tables, those that were asked for or those that a part of the budget chooses."""
    schema, auto, sets = request.schema, request.auto, request.sets
    opened = Session.open(
        data,
        schema,
        request.privacy,
        account,
        what=request.purpose,
        tables=request.axes if auto is None else None,
        foreseen=None if auto is None else foreseen_tables(SelectionTarget.of(auto, schema)),
        say=say,
    )
    find_bins(opened, planned_tables(request), sets=sets, say=say)
    if auto is not None:
        return opened, measure_chosen(opened, auto, sets=sets, say=say).tables
    if schema.is_open:
        request = request.on(opened.schema, opened.part(Fraction(1)))
    return opened, opened.measure_many(request, say=say)


def _finished(
    opened: Session, tables: Sequence[Measurement], save: str | Path | None, say: Callable[[str], None]
) -> Release:
    """The release: written where it was asked for, and then recorded in the ledger."""
    release = opened.release(tables)
    if save is not None:
        say("writing the release")
        release.save(save)
    try:
        opened.close(release.checksum, file="" if save is None else Path(save).name)
    except LedgerError as error:
        if save is None:
            raise
        raise type(error)(
            f"{error}. The release ({save}) is written and paid for, and can be used; only that it is finished was not recorded"
        ) from None
    return release
