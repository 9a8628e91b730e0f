"""The records of a ledger: a chain of JSON lines, each of which holds the hash of the one before it, and what they say.

The hash is over the canonical text of the record, and a line must *be* its canonical text, so that no byte of a complete
line can change unnoticed. Records taken off the end cannot be noticed here: whoever holds a later head (the witness
beside the file does, and every release) can notice them.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpcipher.errors import LedgerDamaged, LedgerError, LedgerExceeded
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.composition import MOST_COUNTED, NOTHING, Amount, Total, check_kind
from dpcipher.privacy.terms import Unit

Record = dict[str, Any]
GENESIS = "0" * 64
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True)
class HashChain:
    """The good records of a file, the hash of the last, and how to append: keep so many bytes, then write `glue` and a line."""

    records: tuple[Record, ...]
    keep: int
    glue: bytes = b""

    @property
    def head(self) -> str:
        """The hash of the last record, which stands for all before it."""
        return str(self.records[-1]["hash"]) if self.records else GENESIS

    def appended(self, body: Mapping[str, Any]) -> tuple[bytes, str]:
        """The bytes that add a record, and the new head."""
        record: Record = {**body, "previous": self.head}
        record["hash"] = hashlib.sha256(canonical(record)).hexdigest()
        return self.glue + canonical(record) + b"\n", record["hash"]


EMPTY = HashChain((), 0)


def canonical(record: Mapping[str, Any]) -> bytes:
    """The one text of a record."""
    return _ENCODER.encode(record).encode("ascii")


def read_chain(data: bytes, *, after: HashChain = EMPTY) -> HashChain:
    """The chain in a file's bytes; a torn last line is left out, any other damage is refused.

    A line is torn when the machine stopped while it was written: it has no newline and is no complete JSON. Its charge was
    never granted. A complete record that lacks only its newline is kept: counting too much is safe. `after` is a chain
    of whole lines with which the bytes are known to begin: it has been verified and is not verified again.
    """
    *lines, tail = data[after.keep :].split(b"\n")
    records = list(after.records)
    for line in lines:
        records.append(_verified(line, records))
    keep = len(data) - len(tail)
    if not tail or _is_torn(tail):
        return HashChain(tuple(records), keep)
    records.append(_verified(tail, records))
    return HashChain(tuple(records), len(data), glue=b"\n")


def _verified(line: bytes, before: list[Record]) -> Record:
    """The record of a line that is whole, canonical, and follows the one before."""
    try:
        record: Record = json.loads(line)
        good = (
            isinstance(record, dict)
            and canonical(record) == line
            and record["hash"] == hashlib.sha256(_hashed(line, record["hash"])).hexdigest()
            and record["previous"] == (before[-1]["hash"] if before else GENESIS)
        )
    except (ValueError, KeyError, RecursionError):
        good = False
    if not good:
        raise LedgerDamaged(
            f"ledger line {len(before) + 1} is damaged or out of place; restore the file from a copy no older than the last release"
        )
    return record


def _hashed(line: bytes, digest: str) -> bytes:
    """What the hash is over: the canonical line without the hash itself, taken out of the text because that is faster than writing it anew."""
    return line.replace(f'"hash":"{digest}",'.encode("ascii"), b"", 1)


def _is_torn(tail: bytes) -> bool:
    """Whether bytes after the last newline are the beginning of a record, or blocks that were never filled."""
    if not tail.strip(b"\0"):
        return True
    if not tail.startswith(b"{"):
        return False
    try:
        json.JSONDecoder().raw_decode(tail.decode("ascii"))
    except json.JSONDecodeError:
        return True
    except UnicodeDecodeError:
        return False
    return False


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
    """A charge as the ledger remembers it; `checksum` is that of the release, or None if none was recorded, and `file` its name where it has one."""

    id: str
    cost: Budget
    what: dict[str, Any]
    time: str
    checksum: str | None
    head: str
    file: str = ""

    @property
    def asked(self) -> str:
        """The budget as it was asked for, in a phrase; what is counted is the cost."""
        return str(self.what.get("asked", self.cost.describe())).partition(" (")[0]

    @property
    def label(self) -> str:
        """What the curator called the release."""
        return str(self.what.get("label", ""))


@dataclass(frozen=True)
class LedgerState:
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

    @property
    def more_like_last(self) -> int | None:
        """How many more charges like the last one would be granted, up to `MOST_COUNTED`; None where nothing was charged yet."""
        return self.total.more_like(self.entries[-1].cost, self.limit) if self.entries else None

    def describe_left(self) -> str:
        """The largest single charge that would still be granted, in the terms that a person asks in."""
        largest = self.total.largest(self.limit)
        if largest is None:
            return self.remaining.describe()
        pure = Amount(epsilon=self.remaining.epsilon).describe()
        return f"one more of {Amount(largest.epsilon, largest.delta).describe()}, or of {pure} without delta"

    def describe_more(self) -> str:
        """How many more like the last one fit; empty where nothing was charged yet."""
        number = self.more_like_last
        if number is None:
            return ""
        many = f"at least {number:,}" if number == MOST_COUNTED else f"{number:,}" if number else "none"
        return f"{many} more like the last one ({self.entries[-1].asked})"

    def check(self, cost: Budget, unit: Unit) -> None:
        """Refuse a charge for another unit, of a kind the limit cannot count, or beyond the limit."""
        if unit != self.unit:
            raise LedgerError(
                f"unit ({unit.relation}, max_rows={unit.max_rows}) must be the ledger's: {self.unit.relation}, max_rows={self.unit.max_rows}"
            )
        check_kind(cost, self.limit, self.total)
        if not self.total.plus(cost).fits(self.limit):
            more = f"; {told} would fit" if (told := self.describe_more()) else ""
            raise LedgerExceeded(
                f"cost ({cost.describe()}) would exceed the ledger {self.name!r}: limit {self.limit.describe()}, "
                f"spent {self.spent.describe()}, left {self.describe_left()}{more}; nothing was spent"
            )


def read_state(records: Sequence[Record], *, after: LedgerState | None = None) -> LedgerState:
    """The meaning of records whose hashes are right; `after` is what the first of them are known to mean."""
    try:
        said = _opening(records[0]) if after is None else after
        return _continued(said, records[len(said.heads) :])
    except (IndexError, KeyError, TypeError, ValueError):
        raise LedgerDamaged("ledger holds records that make no sense; restore it from a copy") from None


def _opening(header: Record) -> LedgerState:
    """A ledger that says nothing but its limit."""
    if header["type"] == "ledger" and header["version"] != VERSION:
        raise LedgerError(
            f"ledger version ({header['version']!r:.60}) must be {VERSION}; a newer dpcipher may read it"
        )
    unit = Unit.parse(header["unit"]["relation"], header["unit"]["max_rows"])
    return LedgerState(
        header["name"], Budget.from_dict(header["limit"]), unit, NOTHING, (), heads=(header["hash"],)
    )


def _continued(said: LedgerState, records: Sequence[Record]) -> LedgerState:
    """The same ledger after more charges, and releases that they paid for."""
    entries, total = {entry.id: entry for entry in said.entries}, said.total
    for record in records:
        id = record["id"]
        if record["type"] == "charge" and id not in entries:
            entries[id] = _charged(record)
            total = total.plus(entries[id].cost)
        elif record["type"] == "released" and entries[id].checksum is None:
            entries[id] = replace(entries[id], checksum=record["checksum"], file=str(record.get("file", "")))
        else:
            raise ValueError("a record is neither a new charge nor the release of an earlier one")
    heads = (*said.heads, *(record["hash"] for record in records))
    return replace(said, total=total, entries=tuple(entries.values()), heads=heads)


def _charged(record: Record) -> Entry:
    """A charge that has led to nothing yet."""
    cost = Budget.from_dict(record["cost"])
    return Entry(record["id"], cost, record["what"], record["time"], checksum=None, head=record["hash"])


_KEPT = 4
_known: list["Book"] = []  # the latest of each ledger


@dataclass(frozen=True)
class Book:
    """Whole lines, their chain, and what they say.

    Both are functions of the bytes alone, so what was verified once in this process need not be again: bytes that begin with those of a
    book that was read before are compared with them, and only the lines that follow are verified.
    """

    data: bytes
    chain: HashChain
    state: LedgerState


def read_book(data: bytes) -> Book:
    """The book in a file's bytes; a torn last line is left out, any other damage is refused."""
    known = next((book for book in _known if data.startswith(book.data)), None)
    if known is None:
        chain = read_chain(data)
        said = read_state(chain.records)
    else:
        chain = read_chain(data, after=known.chain)
        said = read_state(chain.records, after=known.state)
    book = Book(data[: chain.keep], chain, said)
    if not chain.glue:  # else its last line is not whole
        _remember(book)
    return book


def _remember(book: Book) -> None:
    """Keep the latest book of a few ledgers; one assignment, so that threads need no lock."""
    others = [other for other in _known if other.state.id != book.state.id]
    _known[:] = [book, *others][:_KEPT]
