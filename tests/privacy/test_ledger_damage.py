"""Ledgers that are cut, bent, full or failing."""

import contextlib
import errno
import itertools
import os
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpcipher.errors import LedgerDamaged, LedgerError
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.ledger import Ledger
from dpcipher.privacy.records import read_chain
from dpcipher.privacy.terms import Unit

UNIT = Unit("add-remove")
QUARTER = Budget.parse(epsilon=0.25)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """A small ledger: the header, a charge, its release, and a second charge."""
    made = Ledger.create(tmp_path / "l", epsilon=1, unit="add-remove", name="x")
    made.mark_released(made.charge(QUARTER, unit=UNIT, what={}).id, "c0ffee")
    made.charge(QUARTER, unit=UNIT, what={})
    return made


def forget(ledger: Ledger) -> None:
    """Take the witness away, as of a ledger that was made before there were any."""
    if ledger.witness is not None:
        ledger.witness.unlink()


def test_truncation_at_every_byte_offset_without_a_witness(ledger: Ledger) -> None:
    """Whole lines count, a torn last line does not, a torn header is refused, and the next charge repairs the end."""
    whole = ledger.path.read_bytes()
    ends = [i + 1 for i, byte in enumerate(whole) if byte == ord("\n")]
    charges = {ends[0]: 0, ends[1]: 1, ends[2]: 1, ends[3]: 2}
    for cut in range(len(whole)):
        ledger.path.write_bytes(whole[:cut])
        forget(ledger)
        if cut < ends[0] - 1:
            with pytest.raises(LedgerDamaged):
                Ledger.open(ledger.path)
            continue
        # A record that lacks only its newline is complete and counts.
        expected = max(n for end, n in charges.items() if end <= cut + 1)
        assert expected == len(ledger.entries), cut
        if cut % 41 == 0 or cut + 1 in ends:
            ledger.charge(QUARTER, unit=UNIT, what={})
            assert expected + 1 == len(Ledger.open(ledger.path).entries)


def test_a_flipped_bit_anywhere_is_refused(ledger: Ledger) -> None:
    """Any of the eight bits of any byte, the newlines included."""
    whole = ledger.path.read_bytes()
    unnoticed = []
    for place, bit in itertools.product(range(len(whole)), range(8)):
        bent = bytearray(whole)
        bent[place] ^= 1 << bit
        with contextlib.suppress(LedgerDamaged):
            read_chain(bytes(bent))
            unnoticed.append((place, bit))
    assert unnoticed == []


def test_nothing_is_charged_to_a_damaged_ledger(ledger: Ledger) -> None:
    """A flipped bit in the first line, in the middle or in the last newline: opening, asking and charging refuse."""
    whole = ledger.path.read_bytes()
    for place in (10, len(whole) // 2, len(whole) - 1):
        bent = bytearray(whole)
        bent[place] ^= 1
        ledger.path.write_bytes(bent)
        for attempt in (
            ledger.statement,
            lambda: ledger.check(QUARTER, unit=UNIT),
            lambda: ledger.charge(QUARTER, unit=UNIT, what={}),
        ):
            with pytest.raises(LedgerDamaged):
                attempt()
        assert ledger.path.read_bytes() == bytes(bent)


def lines(ledger: Ledger) -> list[bytes]:
    """The lines with their ends."""
    return ledger.path.read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize(
    "harm",
    [
        lambda text: text[1:],
        lambda text: [text[0], *text[2:]],
        lambda text: [*text[:2], text[1], *text[2:]],
        lambda text: [*text, text[-1]],
        lambda text: [text[0], text[2], text[1], text[3]],
        lambda text: [*text, b"\n"],
        lambda text: [*text, b"junk"],
        lambda text: [*text, b"\xff\xfe"],
        lambda text: [text[0].replace(b":", b": ", 1), *text[1:]],
        lambda text: [text[0].replace(b'"name":"x"', b'"name":"x","name":"x"'), *text[1:]],
    ],
    ids=[
        "no header",
        "deleted",
        "duplicated",
        "last duplicated",
        "swapped",
        "blank line",
        "junk",
        "bytes",
        "space",
        "double key",
    ],
)
def test_rearranged_lines_are_refused(ledger: Ledger, harm: Callable[[list[bytes]], list[bytes]]) -> None:
    """Each line knows the one before it, and must be its own canonical text."""
    ledger.path.write_bytes(b"".join(harm(lines(ledger))))
    forget(ledger)
    with pytest.raises(LedgerDamaged, match="line"):
        Ledger.open(ledger.path)


def test_blocks_that_were_never_filled_are_a_torn_line(ledger: Ledger) -> None:
    """After a power cut some file systems show zeros where the last write should be."""
    before = ledger.path.read_bytes()
    for tail in (b"\0" * 300, b'{"cost":{"eps' + b"\0" * 40):
        ledger.path.write_bytes(before + tail)
        assert len(ledger.entries) == 2
    ledger.charge(QUARTER, unit=UNIT, what={})
    assert ledger.path.read_bytes().startswith(before)
    assert b"\0" not in ledger.path.read_bytes()


class Faulty:
    """A system call that works some times and then fails, perhaps after doing half of its work."""

    def __init__(self, real: Callable[..., Any], works: int, code: int, *, half: bool = False) -> None:
        self.real, self.works, self.code, self.half, self.failed = real, works, code, half, False

    def __call__(self, fd: Any, *rest: Any) -> Any:
        """Do it, do half of it, or fail."""
        if self.works > 0:
            self.works -= 1
            return self.real(fd, *rest)
        if self.half and not self.failed:
            self.failed = True
            return self.real(fd, rest[0][: len(rest[0]) // 2])
        self.failed = True
        raise OSError(self.code, os.strerror(self.code))


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS, errno.EFBIG, errno.EDQUOT])
@pytest.mark.parametrize(
    ("call", "works", "half"),
    [
        ("write", 0, False),
        ("write", 0, True),
        ("write", 1, False),
        ("write", 1, True),
        ("fsync", 0, False),
        ("fsync", 1, False),
        ("fsync", 2, False),
        ("fsync", 3, False),
        ("fchmod", 0, False),
        ("replace", 0, False),
        ("ftruncate", 0, False),
        ("pread", 0, False),
        ("pread", 2, False),
    ],
)
def test_failing_system_calls_grant_nothing_and_forget_nothing(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, code: int, call: str, works: int, half: bool
) -> None:
    """No charge comes back, the ledger opens again, and has spent at least what was granted; what only its witness did not see is spent."""
    ledger.path.write_bytes(ledger.path.read_bytes() + b'{"torn')  # so that ftruncate is needed too
    with monkeypatch.context() as patch:
        faulty = Faulty(getattr(os, call), works, code, half=half)
        patch.setattr(os, call, faulty)
        with pytest.raises(LedgerError, match=os.strerror(code)):
            ledger.charge(QUARTER, unit=UNIT, what={})
        assert faulty.failed
    spent = Ledger.open(ledger.path).spent.epsilon
    appended = call in ("fsync", "fchmod", "replace") or (call, works) == ("write", 1)
    assert spent == (Fraction(3, 4) if appended else Fraction(1, 2))
    ledger.charge(QUARTER, unit=UNIT, what={})
    assert Ledger.open(ledger.path).spent.epsilon == spent + Fraction(1, 4)


def test_a_half_written_line_that_cannot_be_taken_back_is_torn(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Disk full in the middle of a line, and the clean-up fails as well."""
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", Faulty(os.write, 0, errno.ENOSPC, half=True))
        patch.setattr(os, "ftruncate", Faulty(os.ftruncate, 0, errno.EIO))
        with pytest.raises(LedgerError, match="No space"):
            ledger.charge(QUARTER, unit=UNIT, what={})
    assert not ledger.path.read_bytes().endswith(b"\n")
    assert ledger.spent.epsilon == Fraction(1, 2)
    ledger.charge(QUARTER, unit=UNIT, what={})
    assert Ledger.open(ledger.path).spent.epsilon == Fraction(3, 4)


@pytest.mark.parametrize("call", ["write", "fsync", "link"])
def test_a_ledger_that_cannot_be_created_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Neither the ledger nor its temporary file, and the path is free for another try."""
    with monkeypatch.context() as patch:
        patch.setattr(os, call, Faulty(getattr(os, call), 0, errno.ENOSPC))
        with pytest.raises(LedgerError, match="created"):
            Ledger.create(tmp_path / "l", epsilon=1, unit="replace")
    assert list(tmp_path.iterdir()) == []
    assert Ledger.create(tmp_path / "l", epsilon=1, unit="replace").remaining.epsilon == 1


def test_a_lock_that_cannot_be_had_is_refused(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that runs out of locks grants nothing."""
    fcntl = pytest.importorskip("fcntl")
    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", Faulty(fcntl.flock, 0, errno.ENOLCK))
        with pytest.raises(LedgerError, match="locked"):
            ledger.charge(QUARTER, unit=UNIT, what={})
    assert len(ledger.entries) == 2


def test_a_ledger_replaced_while_waiting_is_refused(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock would be on a file that nobody reads any more."""
    fcntl = pytest.importorskip("fcntl")
    real = fcntl.flock

    def swap(fd: int, kind: int) -> None:
        copy = ledger.path.with_name("copy")
        copy.write_bytes(ledger.path.read_bytes())
        copy.replace(ledger.path)
        real(fd, kind)

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", swap)
        with pytest.raises(LedgerError, match="replaced"):
            ledger.charge(QUARTER, unit=UNIT, what={})
    assert len(ledger.entries) == 2
