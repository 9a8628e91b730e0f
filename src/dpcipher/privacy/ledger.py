"""The ledger: one durable file per private table that says what may be spent and what has been.

Charge before you draw. `charge` locks the file (flock), reads it and verifies its chain of hashes, checks the exact sum
against the limit, appends the charge, syncs file and folder, writes and syncs the witness beside it, and only then returns:
noise may be drawn after that and not before. There are no refunds. A crash can waste budget, never lose count of it.

Where it holds: Linux and macOS, on local file systems (`durable.LOCAL`), for any number of processes and threads of one
machine. Everything else is refused: systems without flock, NFS, CIFS, FUSE, 9p and every file system that is not known to
lock. It has been tested on Linux (ext4, tmpfs); macOS follows its documentation.

A ledger is created on purpose, once, and a path that does not exist is refused. One that was cut, or replaced by an older copy, is
refused because of its witness (`witness.py`). What neither can know: that somebody put back a whole folder, ledger and
witness, deleted the witness, or keeps several ledgers for one table. Each release therefore carries the ledger's id and the head of the
chain after its own charge, and `verify` tells whether this ledger still contains it.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from dpcipher.drawing.card import Card, Shown
from dpcipher.drawing.curator_only import Released
from dpcipher.drawing.plot import Drawable, Plot
from dpcipher.errors import LedgerDamaged, LedgerError, ParameterError
from dpcipher.files.foreign import foreign
from dpcipher.privacy import durable, shown, witness
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.composition import Amount
from dpcipher.privacy.durable import check_supported, missing
from dpcipher.privacy.records import EMPTY, VERSION, Book, Charge, Entry, LedgerState, canonical, read_book
from dpcipher.privacy.terms import Privacy, Unit
from dpcipher.privacy.witness import Verdict, Witness, verify

LONGEST_NOTE = 1 << 20
# Endings of other formats.
_OTHERS = [".csv", ".gz", ".tsv", ".parquet", ".xlsx", ".yaml", ".yml", ".json", ".html", ".npz", ".sig"]


class Ledger(Released, Shown, Drawable):
    """The record of what was spent on one private table.

    `name` is what the curator calls the table. Nothing that is computed from its rows ever goes into the file.

    >>> import tempfile
    >>> import dpcipher as dc
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = dc.Ledger.create(f"{folder.name}/people.ledger", epsilon=3.0, unit="add-remove")
    >>> ledger.spent.describe(), ledger.remaining.describe()
    ('epsilon = 0', 'epsilon = 3')
    >>> folder.cleanup()
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        durable.locks()
        check_supported(self.path)

    @classmethod
    def create(
        cls,
        path: str | Path,
        *,
        epsilon: object = None,
        delta: object = None,
        rho: object = None,
        unit: str | Unit,
        max_rows: int = 1,
        name: str = "",
    ) -> Self:
        """A new ledger with this limit; refuses a path that exists. `delta` beside `rho` is for what may fail, such as finding levels."""
        limit = Budget.parse(epsilon=epsilon, delta=delta, rho=rho, may_fail=True)
        who = Unit.parse(unit, max_rows)
        ledger = cls(path)
        ledger.check_absent()
        header = {
            "type": "ledger",
            "version": VERSION,
            "name": name or ledger.path.stem,
            "limit": limit.as_dict(),
            "unit": who.as_dict(),
            "time": _now(),
        }
        data, head = EMPTY.appended(header)
        durable.create(ledger.path, data)
        with durable.locked(ledger.path, write=True):
            if ledger.witness is None:  # somebody may have charged it already
                witness.write(ledger.path, Witness(len(data), head))
        return ledger

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """An existing ledger, after verifying all of it."""
        ledger = cls(path)
        ledger.statement()
        return ledger

    def check_absent(self) -> None:
        """Refuse now what `create` would refuse of the path: one that exists, one that had a ledger, one that cannot be written."""
        if self.path.suffix.lower() in _OTHERS:
            raise LedgerError(
                f"ledger ({self.path}) must not end in {self.path.suffix}, which says another format; try {self.path.stem}.ledger"
            )
        left = self.witness  # asked first: whoever creates the ledger just now writes it last
        if self.path.exists():
            raise LedgerError(
                f"ledger ({self.path}) exists already, and a ledger is created once; charge it without creating it, or choose another path"
            )
        if left is not None:
            raise LedgerError(
                f"ledger ({self.path}) was here: its witness ({left}) still is. Put the ledger back; only if it was for another table, "
                "or nothing was ever released from it, delete the witness"
            )
        witness.check_writable(self.path)

    def statement(self, *, witnessed: bool = True) -> LedgerState:
        """What the ledger says now; without `witnessed`, also if it is not what its witness saw, which is for finding out what is missing."""
        with durable.locked(self.path, write=False) as fd:
            return self._read(fd, witnessed=witnessed).state

    def check(self, cost: Budget, *, unit: Unit) -> None:
        """Refuse now what `charge` would refuse, an unwritable file included, without spending."""
        with durable.locked(self.path, write=True) as fd:
            witness.check_writable(self.path)
            durable.clear_replacement(witness.path_of(self.path))
            self._read(fd).state.check(cost, unit)

    def charge(self, cost: Budget, *, unit: Unit, what: dict[str, Any]) -> Charge:
        """Spend `cost`, durably before this returns; `what` says publicly what for, in plain JSON values."""
        note = _note(what)
        with durable.locked(self.path, write=True) as fd:
            book = self._read(fd)
            book.state.check(cost, unit)
            record = {
                "type": "charge",
                "id": secrets.token_hex(16),
                "cost": cost.as_dict(),
                "what": note,
                "time": _now(),
            }
            head = self._append(fd, book, record)
        return Charge(str(record["id"]), head, book.state.id)

    def mark_released(self, id: str, checksum: str, *, file: str = "") -> None:
        """Record that the release of a charge is complete, and the name of its `file`; once, so that nothing is drawn twice under one charge."""
        with durable.locked(self.path, write=True) as fd:
            book = self._read(fd)
            entries = {entry.id: entry for entry in book.state.entries}
            if id not in entries or entries[id].checksum is not None:
                state = "is already released" if id in entries else "is not in the ledger"
                raise LedgerError(f"charge ({id}) {state}; a charge pays for one release")
            record = {"type": "released", "id": id, "checksum": str(checksum), "time": _now()}
            self._append(fd, book, record | ({"file": file} if file else {}))

    def verify(self, said: Mapping[str, Any], *, checksum: str | None = None) -> Verdict:
        """What this ledger knows of a release: `said` is its `statement.ledger`, and `checksum` its own.

        It asks the ledger as it is, also if its witness objects.
        """
        return verify(self.statement(witnessed=False), said, checksum=checksum)

    @property
    def witness(self) -> Path | None:
        """The file beside the ledger that saw it last, or None if there is none yet: the next charge writes it."""
        path = witness.path_of(self.path)
        return path if path.exists() else None

    @property
    def objection(self) -> str | None:
        """What the witness has against the ledger as it is, if anything."""
        try:
            self.statement()
        except LedgerDamaged as error:
            return str(error)
        return None

    @property
    def id(self) -> str:
        """What tells this ledger from every other, also from one at the same path."""
        return self.statement().id

    @property
    def name(self) -> str:
        """What the curator calls the table."""
        return self.statement().name

    @property
    def limit(self) -> Budget:
        """The most that may be spent."""
        return self.statement().limit

    @property
    def unit(self) -> Unit:
        """Who is protected, in every charge."""
        return self.statement().unit

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The charges so far, oldest first."""
        return self.statement().entries

    @property
    def spent(self) -> Amount:
        """What was charged, released or not."""
        return self.statement().spent

    @property
    def remaining(self) -> Amount:
        """The largest charge that would still be granted."""
        return self.statement().remaining

    def _card(self) -> Card:
        return shown.card(self.path, self.statement)

    def _draw(self, columns: tuple[str, ...] | None) -> Plot:
        return shown.draw(self.statement(), columns)

    def _read(self, fd: int, *, witnessed: bool = True) -> Book:
        """The whole file, verified, and as its witness saw it; of a file that was never a ledger, an error says what it is."""
        data = durable.read_all(fd, self.path)
        if witnessed:
            witness.check(self.path, data)
        try:
            return read_book(data)
        except LedgerDamaged:
            if data.strip() and b'"previous"' not in data:
                other = foreign(self.path) or "a Parquet file"
                raise LedgerDamaged(
                    f"ledger ({self.path}) is no ledger: it is {other}; name the ledger of the table"
                ) from None
            raise

    def _append(self, fd: int, book: Book, record: dict[str, Any]) -> str:
        """Add a record and let the witness see it, both durably; the new head.

        The witness comes second: it must never have seen what the ledger does not hold.
        """
        data, head = book.chain.appended(record)
        durable.append(fd, self.path, data, keep=book.chain.keep)
        witness.write(self.path, Witness(book.chain.keep + len(data), head))
        return head


@dataclass(frozen=True)
class Account:
    """Which ledger pays: one that exists, or none. With `create` it is a path where there is none yet, and one will be created with this budget as its limit.

    Whoever says one and finds the other has mistaken the path. Nothing is created before a charge is due.
    """

    ledger: str | Path | Ledger | None = None
    name: str = ""
    create: bool = False
    label: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.create, bool):
            raise ParameterError(f"create ({self.create!r}) must be True or False")
        if self.create and (self.ledger is None or isinstance(self.ledger, Ledger)):
            given = "None" if self.ledger is None else "a Ledger, which exists already"
            raise ParameterError(
                f"create (True) needs a path as ledger ({given}); give the path of the new ledger, or leave create out"
            )

    def check(self, privacy: Privacy, cost: Budget) -> None:
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
            book.check(cost, unit=privacy.unit)

    def charge(self, privacy: Privacy, cost: Budget, what: Mapping[str, Any]) -> Charge | None:
        """Spend what the terms cost, durably before this returns; None where no ledger pays."""
        book = self._book()
        if book is None:
            return None
        if self.create:
            Ledger.create(book.path, **vars(privacy.budget), unit=privacy.unit, name=self.name)
        named = {"label": self.label} if self.label else {}
        return book.charge(cost, unit=privacy.unit, what={**named, **what})

    def mark_released(self, charge: Charge | None, checksum: str, *, file: str = "") -> None:
        """Record that what was paid for is complete."""
        book = self._book()
        if charge is not None and book is not None:
            book.mark_released(charge.id, checksum, file=file)

    def _book(self) -> Ledger | None:
        return Ledger(self.ledger) if isinstance(self.ledger, str | Path) else self.ledger


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _note(what: dict[str, Any]) -> dict[str, Any]:
    """Public facts that JSON can hold."""
    try:
        size = len(canonical(what))
    except (TypeError, ValueError, RecursionError):
        raise ParameterError(
            "what (a dict) must hold plain JSON values only: text, finite numbers, lists"
        ) from None
    if size > LONGEST_NOTE:
        raise ParameterError(
            f"what ({size} bytes) must be at most {LONGEST_NOTE} bytes; describe the workload by its order"
        )
    return what
