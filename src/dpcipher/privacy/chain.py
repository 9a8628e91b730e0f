"""A chain of JSON lines, each of which holds the hash of the one before it.

The hash is over the canonical text of the record, and a line must *be* its canonical text, so that no byte of a complete
line can change unnoticed. Records taken off the end cannot be noticed here: whoever holds a later head (the witness
beside the file does, and every release) can notice them.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpcipher.errors import LedgerDamaged

Record = dict[str, Any]
GENESIS = "0" * 64
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True)
class Chain:
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


NOTHING = Chain((), 0)


def canonical(record: Mapping[str, Any]) -> bytes:
    """The one text of a record."""
    return _ENCODER.encode(record).encode("ascii")


def read_chain(data: bytes, *, after: Chain = NOTHING) -> Chain:
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
        return Chain(tuple(records), keep)
    records.append(_verified(tail, records))
    return Chain(tuple(records), len(data), glue=b"\n")


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
