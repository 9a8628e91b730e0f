"""What to keep in mind about a model: in full, and on one line for the first view where it belongs there."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum


class Rank(IntEnum):
    """How much a note matters to a reader; the lowest comes first."""

    UNKNOWN = 0  # part of the answer is missing, or leaves the noise out
    UNSETTLED = 1
    SENSITIVE = 2  # another choice that the data cannot check gives another answer
    UNMEASURED = 3
    ABOUT = 4  # of which rows the answer is
    ASSUMED = 5
    CODING = 6


@dataclass(frozen=True)
class Note:
    """A sentence or two, and a short form for the first view; without one the note is for those who ask for details."""

    text: str
    short: str = ""
    rank: Rank = Rank.CODING


def in_short(notes: Iterable[Note]) -> tuple[str, ...]:
    """The short forms, the most important first.

    >>> in_short([Note("a long one", "b", Rank.ABOUT), Note("another", "a", Rank.UNKNOWN), Note("a detail")])
    ('a', 'b')
    """
    return tuple(note.short for note in sorted(notes, key=lambda note: note.rank) if note.short)


def listed(names: Iterable[str], most: int = 3) -> str:
    """Names on a part of a line; the first few of many.

    >>> listed(["a", "b"]), listed(["a", "b", "c", "d", "e"])
    ('a, b', 'a, b, c and 2 more')
    """
    every = list(names)
    return ", ".join(every[:most]) + (f" and {len(every) - most} more" if len(every) > most else "")
