"""What the records of a ledger say: the limit, the charges, and what is left."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpcipher.errors import LedgerDamaged, LedgerError, LedgerExceeded
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.chain import Record
from dpcipher.privacy.composition import NOTHING, Amount, Total, check_kind
from dpcipher.privacy.unit import Unit

VERSION = 1


@dataclass(frozen=True)
class Charge:
    """A granted charge: its id, the head of the chain just after it, and the id of its ledger; all are kept with the release."""

    id: str
    head: str
    ledger: str

    def as_dict(self) -> dict[str, str]:
        """Plain values, for the statement of a release."""
        return {"id": self.ledger, "charge": self.id, "head": self.head}


@dataclass(frozen=True)
class Entry:
    """A charge as the ledger remembers it; `checksum` is that of the release, or None if none was recorded."""

    id: str
    cost: Budget
    what: dict[str, Any]
    time: str
    checksum: str | None
    head: str


@dataclass(frozen=True)
class Statement:
    """Everything a ledger says at one moment."""

    name: str
    limit: Budget
    unit: Unit
    total: Total
    entries: tuple[Entry, ...]
    heads: tuple[str, ...]

    @property
    def id(self) -> str:
        """The hash of the first record, which no other ledger has."""
        return self.heads[0]

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
        if not self.total.plus(cost).fits(self.limit):
            raise LedgerExceeded(
                f"cost ({cost.describe()}) would exceed the ledger {self.name!r}: limit {self.limit.describe()}, "
                f"spent {self.spent.describe()}, left {self.remaining.describe()}; nothing was spent"
            )


def read_statement(records: Sequence[Record], *, after: Statement | None = None) -> Statement:
    """The meaning of records whose hashes are right; `after` is what the first of them are known to mean."""
    try:
        said = _opening(records[0]) if after is None else after
        return _continued(said, records[len(said.heads) :])
    except (IndexError, KeyError, TypeError, ValueError):
        raise LedgerDamaged("ledger holds records that make no sense; restore it from a copy") from None


def _opening(header: Record) -> Statement:
    """A ledger that says nothing but its limit."""
    if header["type"] == "ledger" and header["version"] != VERSION:
        raise LedgerError(
            f"ledger version ({header['version']}) must be {VERSION}; a newer dpcipher may read it"
        )
    unit = Unit.parse(header["unit"]["relation"], header["unit"]["max_rows"])
    return Statement(
        header["name"], Budget.from_dict(header["limit"]), unit, NOTHING, (), heads=(header["hash"],)
    )


def _continued(said: Statement, records: Sequence[Record]) -> Statement:
    """The same ledger after more charges, and releases that they paid for."""
    entries, total = {entry.id: entry for entry in said.entries}, said.total
    for record in records:
        id = record["id"]
        if record["type"] == "charge" and id not in entries:
            entries[id] = _charged(record)
            total = total.plus(entries[id].cost)
        elif record["type"] == "released" and entries[id].checksum is None:
            entries[id] = replace(entries[id], checksum=record["checksum"])
        else:
            raise ValueError("a record is neither a new charge nor the release of an earlier one")
    heads = (*said.heads, *(record["hash"] for record in records))
    return replace(said, total=total, entries=tuple(entries.values()), heads=heads)


def _charged(record: Record) -> Entry:
    """A charge that has led to nothing yet."""
    cost = Budget.from_dict(record["cost"])
    return Entry(record["id"], cost, record["what"], record["time"], checksum=None, head=record["hash"])
