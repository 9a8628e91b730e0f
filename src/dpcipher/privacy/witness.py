"""Whether a ledger is the newest copy of itself: what the witness beside it saw, and what releases say of it.

The witness is a small file that says how long the ledger was, and what its head was, when it was last written.

A ledger that was cut, or replaced by an older copy, is sound in itself: its charges are fewer, and every hash is right. The witness
tells. It is written, in one step and synced, after every record and under the ledger's lock, so that a crash leaves a ledger
that is longer than its witness says, never one that is shorter.

It cannot know that ledger and witness were both put back, nor that it was itself deleted. The releases can: each carries the id of its ledger, its charge, and the
head of the chain just after it, so that a ledger which has that id and lacks that head is an older copy of itself (`verify`).
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from dpcipher.errors import LedgerDamaged, LedgerError
from dpcipher.privacy import durable
from dpcipher.privacy.records import LedgerState

SUFFIX = ".witness"
VERSION = 1
_LONGEST = 1000


@dataclass(frozen=True)
class Witness:
    """The length of a ledger in bytes, and the hash of its last record."""

    length: int
    head: str

    def __post_init__(self) -> None:
        if type(self.length) is not int or not 0 < self.length < 2**63 or not isinstance(self.head, str):
            raise ValueError("length must be a whole number that a file can have, and head a text")

    def has_seen(self, data: bytes) -> bool:
        """Whether a ledger's bytes go on from what was last written."""
        if data[self.length - 1 : self.length] != b"\n":
            return False
        start = data.rfind(b"\n", 0, self.length - 1) + 1
        try:
            record = json.loads(data[start : self.length])
        except (ValueError, RecursionError):
            return False
        return isinstance(record, dict) and record.get("hash") == self.head


def path_of(ledger: Path) -> Path:
    """Where the witness of a ledger stands: beside the file itself, whatever links lead to it.

    >>> path_of(Path("people.ledger")).name
    'people.ledger.witness'
    """
    real = Path(os.path.realpath(ledger)) if ledger.is_symlink() else ledger
    return real.with_name(real.name + SUFFIX)


def read(ledger: Path) -> Witness | None:
    """The witness of a ledger, or None if it has none yet; one that cannot be understood is refused."""
    path = path_of(ledger)
    try:
        data = durable.read_small(path, _LONGEST)
    except OSError as error:
        raise LedgerError(
            f"witness ({path}) could not be read: {error.strerror}; nothing is charged without it"
        ) from error
    return None if data is None else _parsed(data, path)


def check(ledger: Path, data: bytes) -> None:
    """Refuse a ledger whose bytes are not those that its witness saw, and perhaps more."""
    seen = read(ledger)
    if seen is None or seen.has_seen(data):
        return
    found = (
        f"is shorter ({len(data)} bytes) than its witness saw it ({seen.length} bytes): it was cut, or an older copy was put back"
        if len(data) < seen.length
        else "does not hold the record that its witness saw last: it was changed, or another copy was put in its place"
    )
    raise LedgerDamaged(
        f"ledger ({ledger}) {found}. Charges may be missing, so nothing more is granted. Put the newest copy back; "
        f"`dpcipher ledger verify {ledger} RELEASE…` names the releases that this one does not know. Only if there is no newer copy, "
        f"delete the witness ({path_of(ledger)}) to go on with this one, and count by hand what it has lost"
    )


def check_writable(ledger: Path) -> None:
    """Refuse a folder in which the witness could not be written, before anything is charged."""
    folder = path_of(ledger).parent
    if not folder.is_dir():
        raise LedgerError(f"folder ({folder}) of the ledger ({ledger.name}) does not exist; make it first")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise LedgerError(
            f"folder ({folder}) of the ledger must be writable: its witness is written there with every charge"
        )


def write(ledger: Path, seen: Witness) -> None:
    """Put a new witness in the place of the old one, and return only when it is on the disk; the caller holds the ledger's lock."""
    path = path_of(ledger)
    text = json.dumps({"version": VERSION, **asdict(seen)}, sort_keys=True) + "\n"
    try:
        durable.replace(path, text.encode("ascii"), like=ledger)
    except OSError as error:
        raise LedgerError(
            f"witness ({path}) could not be written: {error.strerror}; the ledger itself was, and what it holds counts as spent"
        ) from error


def _parsed(data: bytes, path: Path) -> Witness:
    """The witness in a file's bytes."""
    try:
        if len(data) > _LONGEST:
            raise ValueError("a witness is one short line")
        values = json.loads(data)
        version = values.pop("version")
        seen = Witness(**values)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise LedgerDamaged(
            f"witness ({path}) makes no sense, so it cannot say whether the ledger is whole. Restore it from a copy; "
            "only if you are sure that the ledger beside it is the newest, delete the witness: the next charge writes another"
        ) from None
    if version != VERSION:
        raise LedgerError(
            f"witness version ({version!r:.60}) must be {VERSION}; a newer dpcipher may read it"
        )
    return seen


Word = Literal["recorded", "ROLLED BACK", "ALTERED", "another ledger", "no ledger"]


@dataclass(frozen=True)
class Verdict:
    """What a ledger knows of a release, in a word and in a sentence."""

    word: Word
    meaning: str

    @property
    def is_failure(self) -> bool:
        """Whether ledger or release cannot be what they say."""
        return self.word in ("ROLLED BACK", "ALTERED")


RECORDED = Verdict("recorded", "its charge and its checksum are in this ledger")


def verify(ledger: LedgerState, said: Mapping[str, Any], *, checksum: str | None) -> Verdict:
    """What a ledger knows of a release whose statement says `said` of its ledger; without a checksum, none is compared."""
    if not said:
        return Verdict(
            "no ledger", "it names no ledger: its tables are unrecorded, or declared by their publisher"
        )
    if said.get("id") != ledger.id:
        return Verdict("another ledger", "charged to another ledger, which must be asked")
    wanted = (said.get("charge"), said.get("head"))
    entry = next((entry for entry in ledger.entries if (entry.id, entry.head) == wanted), None)
    if entry is None:
        return Verdict(
            "ROLLED BACK",
            "this ledger paid for it and does not know it: an older copy was put back; put the newest one in its place",
        )
    if entry.checksum is None:
        return Verdict("recorded", "its charge is in this ledger; that it was finished was not recorded")
    if checksum not in (None, entry.checksum):
        return Verdict(
            "ALTERED", "its charge is in this ledger, but paid for a release with another checksum"
        )
    return RECORDED if checksum else Verdict("recorded", "its charge is in this ledger")
