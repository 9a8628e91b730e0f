"""The ledger: one durable file per private table that says what may be spent and what has been.

Charge before you draw. `charge` locks the file (flock), reads it and verifies its chain of hashes, checks the exact sum
against the limit, appends the charge, syncs file and folder, and only then returns: noise may be drawn after that and not
before. There are no refunds. A crash can waste budget, never lose count of it.

Where it holds: Linux and macOS, on local file systems (`filesystem.LOCAL`), for any number of processes and threads of one
machine. Everything else is refused: systems without flock, NFS, CIFS, FUSE, 9p and every file system that is not known to
lock. It has been tested on Linux (ext4, tmpfs); macOS follows its documentation.

What it cannot know: that somebody put back an older copy of the file. Each release therefore carries the head of the
chain after its own charge, and `has_head` tells whether a ledger still contains it.
"""

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from dpcipher.errors import LedgerDamaged, LedgerError, LedgerExceeded, ParameterError
from dpcipher.privacy import durable
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.chain import Chain, canonical, read_chain
from dpcipher.privacy.composition import Amount, Total, check_kind, compose
from dpcipher.privacy.filesystem import check_supported
from dpcipher.privacy.unit import Unit

VERSION = 1
LONGEST_NOTE = 1 << 20


@dataclass(frozen=True)
class Charge:
    """A granted charge: its id, and the head of the chain just after it, to be kept with the release."""

    id: str
    head: str


@dataclass(frozen=True)
class Entry:
    """A charge as the ledger remembers it; `checksum` is that of the release, or None if none was recorded."""

    id: str
    cost: Budget
    what: dict[str, Any]
    time: str
    checksum: str | None


@dataclass(frozen=True)
class Statement:
    """Everything a ledger says at one moment."""

    name: str
    limit: Budget
    unit: Unit
    entries: tuple[Entry, ...]
    heads: tuple[str, ...]

    @property
    def total(self) -> Total:
        """The charges added up."""
        return compose(entry.cost for entry in self.entries)

    @property
    def spent(self) -> Amount:
        """What was charged, released or not."""
        return self.total.spent(self.limit)

    @property
    def remaining(self) -> Amount:
        """The largest charge that would still be granted."""
        return self.total.remaining(self.limit)

    def check(self, cost: Budget, unit: Unit) -> None:
        """Refuse a charge for another unit, of a kind the limit cannot count, or beyond the limit."""
        if unit != self.unit:
            raise LedgerError(
                f"unit ({unit.relation}, max_rows={unit.max_rows}) must be the ledger's: {self.unit.relation}, max_rows={self.unit.max_rows}"
            )
        check_kind(cost, self.limit)
        if not compose([*(entry.cost for entry in self.entries), cost]).fits(self.limit):
            raise LedgerExceeded(
                f"cost ({cost.describe()}) would exceed the ledger {self.name!r}: limit {self.limit.describe()}, "
                f"spent {self.spent.describe()}, left {self.remaining.describe()}; nothing was spent"
            )


class Ledger:
    """The record of what was spent on one private table.

    `name` is what the curator calls the table. Nothing that is computed from its rows ever goes into the file.
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
        """A new ledger with this limit; refuses a path that exists."""
        limit = Budget.parse(epsilon=epsilon, delta=delta, rho=rho)
        who = Unit.parse(unit, max_rows)
        ledger = cls(path)
        header = {
            "type": "ledger",
            "version": VERSION,
            "name": name or ledger.path.stem,
            "limit": limit.as_dict(),
            "unit": who.as_dict(),
            "time": _now(),
        }
        data, _ = Chain((), 0).appended(header)
        durable.create(ledger.path, data)
        return ledger

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """An existing ledger, after verifying all of it."""
        ledger = cls(path)
        ledger.statement()
        return ledger

    def statement(self) -> Statement:
        """What the ledger says now."""
        with durable.locked(self.path, write=False) as fd:
            return _statement(read_chain(durable.read_all(fd, self.path)))

    def check(self, cost: Budget, *, unit: Unit) -> None:
        """Refuse now what `charge` would refuse, an unwritable file included, without spending."""
        with durable.locked(self.path, write=True) as fd:
            _statement(read_chain(durable.read_all(fd, self.path))).check(cost, unit)

    def charge(self, cost: Budget, *, unit: Unit, what: dict[str, Any]) -> Charge:
        """Spend `cost`, durably before this returns; `what` says publicly what for, in plain JSON values."""
        note = _note(what)
        with durable.locked(self.path, write=True) as fd:
            chain = read_chain(durable.read_all(fd, self.path))
            _statement(chain).check(cost, unit)
            record = {
                "type": "charge",
                "id": secrets.token_hex(16),
                "cost": cost.as_dict(),
                "what": note,
                "time": _now(),
            }
            data, head = chain.appended(record)
            durable.append(fd, self.path, data, keep=chain.keep)
        return Charge(str(record["id"]), head)

    def mark_released(self, id: str, checksum: str) -> None:
        """Record that the release of a charge is complete; once, so that nothing is drawn twice under one charge."""
        with durable.locked(self.path, write=True) as fd:
            chain = read_chain(durable.read_all(fd, self.path))
            entries = {entry.id: entry for entry in _statement(chain).entries}
            if id not in entries or entries[id].checksum is not None:
                state = "is already released" if id in entries else "is not in the ledger"
                raise LedgerError(f"charge ({id}) {state}; a charge pays for one release")
            data, _ = chain.appended(
                {"type": "released", "id": id, "checksum": str(checksum), "time": _now()}
            )
            durable.append(fd, self.path, data, keep=chain.keep)

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

    @property
    def head(self) -> str:
        """The hash that stands for everything written so far."""
        return self.statement().heads[-1]

    def has_head(self, head: str) -> bool:
        """Whether this chain once ended with `head`; a release whose head is missing means that an older copy was put back."""
        return head in self.statement().heads


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


def _statement(chain: Chain) -> Statement:
    """The meaning of a chain whose hashes are right."""
    try:
        header = chain.records[0]
        if header["type"] == "ledger" and header["version"] != VERSION:
            raise LedgerError(
                f"ledger version ({header['version']}) must be {VERSION}; a newer dpcipher may read it"
            )
        return Statement(
            name=header["name"],
            limit=Budget.from_dict(header["limit"]),
            unit=Unit.parse(header["unit"]["relation"], header["unit"]["max_rows"]),
            entries=_entries(chain),
            heads=tuple(record["hash"] for record in chain.records),
        )
    except (IndexError, KeyError, TypeError, ValueError):
        raise LedgerDamaged("ledger holds records that make no sense; restore it from a copy") from None


def _entries(chain: Chain) -> tuple[Entry, ...]:
    """The charges, each with the checksum that a later record gives it."""
    charges = [record for record in chain.records[1:] if record["type"] == "charge"]
    released = {
        record["id"]: record["checksum"] for record in chain.records[1:] if record["type"] == "released"
    }
    if len(charges) + len(released) != len(chain.records) - 1:
        raise ValueError("a record is neither a charge nor a release")
    return tuple(
        Entry(
            record["id"],
            Budget.from_dict(record["cost"]),
            record["what"],
            record["time"],
            released.get(record["id"]),
        )
        for record in charges
    )
