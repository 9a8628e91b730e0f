"""Whether a ledger knows a release: what the release says of its charge, held against the chain.

Every release carries the id of its ledger, its charge, and the head of the chain just after it. A ledger that has that id and
lacks that head is an older copy of itself. Releases of the first format carry no id: where such a head is missing, the
release may be of another ledger just as well, and nothing is said.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dpcipher.privacy.records import Entry, LedgerState

Word = Literal["recorded", "ROLLED BACK", "ALTERED", "another ledger", "no ledger", "cannot tell"]


@dataclass(frozen=True)
class Verdict:
    """What a ledger knows of a release, in a word and in a sentence."""

    word: Word
    meaning: str

    @property
    def is_failure(self) -> bool:
        """Whether ledger or release cannot be what they say."""
        return self.word in ("ROLLED BACK", "ALTERED")


CHARGED = Verdict("recorded", "its charge is in this ledger")
RECORDED = Verdict("recorded", "its charge and its checksum are in this ledger")
UNMARKED = Verdict("recorded", "its charge is in this ledger; that it was finished was not recorded")
ROLLED_BACK = Verdict(
    "ROLLED BACK",
    "this ledger paid for it and does not know it: an older copy was put back; put the newest one in its place",
)
ALTERED = Verdict("ALTERED", "its charge is in this ledger, but paid for a release with another checksum")
FOREIGN = Verdict("another ledger", "charged to another ledger, which must be asked")
NONE = Verdict("no ledger", "it names no ledger: its tables are unrecorded, or declared by their publisher")
UNKNOWN = Verdict("cannot tell", "not in this ledger; it does not say which ledger was charged")


def verify(ledger: LedgerState, said: Mapping[str, Any], *, checksum: str | None) -> Verdict:
    """What a ledger knows of a release whose statement says `said` of its ledger; without a checksum, none is compared."""
    if not said:
        return NONE
    if "id" in said and said["id"] != ledger.id:
        return FOREIGN
    entry = _entry(ledger, said)
    if entry is None:
        return ROLLED_BACK if "id" in said else UNKNOWN
    if entry.checksum is None:
        return UNMARKED
    if checksum is None:
        return CHARGED
    return RECORDED if checksum == entry.checksum else ALTERED


def _entry(ledger: LedgerState, said: Mapping[str, Any]) -> Entry | None:
    """The charge of that id, if it left the chain with that head."""
    wanted = (said.get("charge"), said.get("head"))
    return next((entry for entry in ledger.entries if (entry.id, entry.head) == wanted), None)
