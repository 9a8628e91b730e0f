"""The witness beside a ledger: what it notices, what it lets pass, and what cannot be understood."""

import contextlib
import json
import os
import stat
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from dpcipher.errors import LedgerDamaged, LedgerError
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.ledger import Ledger
from dpcipher.privacy.records import read_chain
from dpcipher.privacy.terms import Unit

UNIT = Unit("add-remove")
TENTH = Budget.parse(epsilon=0.1)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """A ledger with three charges, two of them released."""
    made = Ledger.create(tmp_path / "people.ledger", epsilon=1, unit="add-remove", name="people")
    for checksum in ("c0ffee", "decaf"):
        made.mark_released(made.charge(TENTH, unit=UNIT, what={"tables": 3}).id, checksum)
    made.charge(TENTH, unit=UNIT, what={"note": "Straße, \n and more"})
    return made


def witness_of(ledger: Ledger) -> Path:
    """Where the witness must stand."""
    return ledger.path.with_name("people.ledger.witness")


def seen(ledger: Ledger) -> tuple[int, str]:
    """What the witness says, read without our own code."""
    said = json.loads(witness_of(ledger).read_text())
    return said["length"], said["head"]


def as_it_is(ledger: Ledger) -> tuple[int, str]:
    """What the witness should say."""
    lines = ledger.path.read_bytes().splitlines()
    return ledger.path.stat().st_size, json.loads(lines[-1])["hash"]


def test_every_entry_is_seen(tmp_path: Path) -> None:
    """Length and head are those of the file after the creation, each charge and each release."""
    ledger = Ledger.create(tmp_path / "people.ledger", epsilon=1, unit="add-remove")
    assert seen(ledger) == as_it_is(ledger)
    charge = ledger.charge(TENTH, unit=UNIT, what={})
    assert seen(ledger) == as_it_is(ledger) == (ledger.path.stat().st_size, charge.head)
    ledger.mark_released(charge.id, "c0ffee")
    assert seen(ledger) == as_it_is(ledger)
    assert sorted(os.listdir(tmp_path)) == ["people.ledger", "people.ledger.witness"]


def test_no_truncation_yields_less_spent(ledger: Ledger) -> None:
    """Every offset of the file is refused or has spent as much as before, for reading, asking and charging alike; nothing is repaired."""
    whole, spent, accepted = ledger.path.read_bytes(), ledger.spent.epsilon, []
    for cut in range(len(whole) + 1):
        ledger.path.write_bytes(whole[:cut])
        for attempt in (ledger.statement, lambda: ledger.check(TENTH, unit=UNIT)):
            with contextlib.suppress(LedgerDamaged):
                attempt()
                accepted.append((cut, ledger.spent.epsilon))
        if cut < len(whole):
            with pytest.raises(LedgerDamaged):
                ledger.charge(TENTH, unit=UNIT, what={})
            assert ledger.path.read_bytes() == whole[:cut]
    assert spent == Fraction(3, 10)
    assert set(accepted) == {(len(whole), spent)}


def test_a_cut_is_explained(ledger: Ledger) -> None:
    """The message says both lengths, what happened and the way out."""
    whole = ledger.path.read_bytes()
    ledger.path.write_bytes(whole[:-1])
    with pytest.raises(
        LedgerDamaged, match=r"is shorter \(\d+ bytes\) than its witness saw it \(\d+ bytes\)"
    ) as told:
        Ledger.open(ledger.path)
    for words in ("older copy was put back", "newest copy", "dpcipher ledger verify", "delete the witness"):
        assert words in str(told.value)
    ledger.path.write_bytes(whole)
    assert Ledger.open(ledger.path).spent.epsilon == Fraction(3, 10)


def test_an_older_copy_is_refused_also_when_it_has_grown_again(ledger: Ledger) -> None:
    """Put back, it is shorter; with other charges it is long enough, and has another record in the place of the last one seen."""
    whole = ledger.path.read_bytes()
    older = whole[: whole.rindex(b"\n", 0, -1) + 1]
    ledger.path.write_bytes(older)
    with pytest.raises(LedgerDamaged, match="shorter"):
        ledger.charge(TENTH, unit=UNIT, what={})
    grown = older
    while len(grown) < len(whole):
        chain = read_chain(grown)
        grown += chain.appended({"type": "charge", "id": str(len(grown)), "cost": {"epsilon": "1/10"}, "what": {}, "time": ""})[0]  # fmt: skip
    ledger.path.write_bytes(grown)
    with pytest.raises(LedgerDamaged, match="does not hold the record that its witness saw last"):
        ledger.charge(TENTH, unit=UNIT, what={})
    assert ledger.path.read_bytes() == grown


def test_another_ledger_in_its_place_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    """A fresh budget cannot take the place of one that was charged, neither as a file nor by creating it anew."""
    other = Ledger.create(tmp_path / "other", epsilon=1, unit="add-remove", name="x" * 5000)
    ledger.path.write_bytes(other.path.read_bytes())
    with pytest.raises(LedgerDamaged, match="another copy was put in its place"):
        ledger.charge(TENTH, unit=UNIT, what={})
    ledger.path.unlink()
    with pytest.raises(LedgerError, match=r"was here: its witness .* still is"):
        Ledger.create(ledger.path, epsilon=1, unit="add-remove")
    assert not ledger.path.exists()


def test_records_beyond_the_witness_count_and_torn_ones_do_not(ledger: Ledger) -> None:
    """A crash after the append leaves a longer ledger: whole records are accepted, a torn one is dropped, and the next charge is seen."""
    chain = read_chain(ledger.path.read_bytes())
    data, _ = chain.appended({"type": "charge", "id": "crashed", "cost": {"epsilon": "1/10"}, "what": {}, "time": ""})  # fmt: skip
    before = seen(ledger)
    for tail, spent in ((data, Fraction(4, 10)), (data[:-1], Fraction(4, 10)), (data[:-2], Fraction(3, 10))):
        ledger.path.write_bytes(ledger.path.read_bytes()[: chain.keep] + tail)
        assert Ledger.open(ledger.path).spent.epsilon == spent
        assert seen(ledger) == before
    ledger.charge(TENTH, unit=UNIT, what={})
    assert seen(ledger) == as_it_is(ledger)
    assert ledger.spent.epsilon == Fraction(4, 10)


def test_a_ledger_without_a_witness_is_adopted_when_it_is_written(ledger: Ledger) -> None:
    """Reading and asking need none and make none; a charge makes one."""
    witness_of(ledger).unlink()
    assert Ledger.open(ledger.path).witness is None
    ledger.check(TENTH, unit=UNIT)
    assert not witness_of(ledger).exists()
    ledger.charge(TENTH, unit=UNIT, what={})
    assert ledger.witness == witness_of(ledger)
    assert seen(ledger) == as_it_is(ledger)


GARBAGE = {
    "empty": b"",
    "bytes": b"\xff\xfe\0",
    "list": b"[]",
    "deep": b"[" * 900,
    "no version": b'{"length":10,"head":"a"}',
    "text": b'{"version":1,"length":"10","head":"a"}',
    "true": b'{"version":1,"length":true,"head":"a"}',
    "nothing": b'{"version":1,"length":0,"head":"a"}',
    "more": b'{"version":1,"length":10,"head":"a","more":1}',
    "oversized": b'{"version":1,"length":10,"head":"' + b"a" * 10**6 + b'"}',
    "blank": b'{"version":1,"length":10,"head":"a"}' + b" " * 2000,
    "digits": b'{"version":1,"head":"a","length":' + b"9" * 900 + b"}",
}


@pytest.mark.parametrize("content", GARBAGE.values(), ids=GARBAGE)
def test_a_witness_that_makes_no_sense_is_refused(ledger: Ledger, content: bytes) -> None:
    """With the fix; and nothing is charged on the strength of it."""
    before = ledger.path.read_bytes()
    witness_of(ledger).write_bytes(content)
    for attempt in (ledger.statement, lambda: ledger.charge(TENTH, unit=UNIT, what={})):
        with pytest.raises(LedgerDamaged, match=r"witness .* makes no sense.*delete the witness"):
            attempt()
    assert ledger.path.read_bytes() == before
    assert witness_of(ledger).read_bytes() == content


def test_a_witness_of_a_later_version_is_refused(ledger: Ledger) -> None:
    """It is not guessed at."""
    said = json.loads(witness_of(ledger).read_text())
    witness_of(ledger).write_text(json.dumps(said | {"version": 2}))
    with pytest.raises(LedgerError, match=r"witness version \(2\) must be 1"):
        Ledger.open(ledger.path)


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("copy")])
def test_a_witness_must_be_a_plain_file(ledger: Ledger, make: Callable[[Path], None]) -> None:
    """A folder, a pipe and a link are refused without waiting for anybody."""
    witness_of(ledger).rename(ledger.path.with_name("copy"))
    make(witness_of(ledger))
    with pytest.raises(LedgerError, match=r"witness .* could not be read"):
        ledger.charge(TENTH, unit=UNIT, what={})
    assert len(read_chain(ledger.path.read_bytes()).records) == 6


def test_only_the_owner_may_read_it_whatever_the_umask(tmp_path: Path) -> None:
    """Mode 0600, after the creation and after a charge; where the ledger was opened to a group, so is its witness."""
    old = os.umask(0)
    try:
        ledger = Ledger.create(tmp_path / "people.ledger", epsilon=1, unit="add-remove")
        modes = [stat.S_IMODE(witness_of(ledger).stat().st_mode)]
        ledger.charge(TENTH, unit=UNIT, what={})
        modes.append(stat.S_IMODE(witness_of(ledger).stat().st_mode))
    finally:
        os.umask(old)
    ledger.path.chmod(0o660)
    ledger.charge(TENTH, unit=UNIT, what={})
    assert [*modes, stat.S_IMODE(witness_of(ledger).stat().st_mode)] == [0o600, 0o600, 0o660]


def test_a_link_to_a_ledger_has_the_witness_of_the_ledger(ledger: Ledger, tmp_path: Path) -> None:
    """Whatever name it is charged by, one witness stands beside the file itself."""
    folder = tmp_path / "links"
    folder.mkdir()
    (folder / "mine").symlink_to(ledger.path)
    Ledger.open(folder / "mine").charge(TENTH, unit=UNIT, what={})
    assert os.listdir(folder) == ["mine"]
    assert seen(ledger) == as_it_is(ledger)


def test_what_a_crash_left_behind_is_taken_over(ledger: Ledger) -> None:
    """An unfinished witness is no hindrance, and is gone after the next charge."""
    left = ledger.path.with_name(".people.ledger.witness.tmp")
    left.write_bytes(b'{"length":')
    ledger.charge(TENTH, unit=UNIT, what={})
    assert not left.exists()
    assert seen(ledger) == as_it_is(ledger)


def test_a_folder_that_cannot_be_written_is_refused_before_the_charge(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When it is asked, before any row would be read. An administrator may write anywhere, so the system's answer is stood in for."""
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(LedgerError, match="must be writable"):
        ledger.check(TENTH, unit=UNIT)
    assert ledger.spent.epsilon == Fraction(3, 10)


def test_bytes_that_were_verified_before_are_compared_and_not_trusted(ledger: Ledger) -> None:
    """A process that has read a ledger notices each flipped bit in it, and reads another ledger as another."""
    whole = ledger.path.read_bytes()
    witness_of(ledger).unlink()
    assert Ledger.open(ledger.path).spent.epsilon == Fraction(3, 10)
    for place in range(0, len(whole), 7):
        bent = bytearray(whole)
        bent[place] ^= 1
        ledger.path.write_bytes(bent)
        with pytest.raises(LedgerDamaged):
            Ledger.open(ledger.path)
    ledger.path.write_bytes(whole[: whole.index(b"\n") + 1])
    assert Ledger.open(ledger.path).entries == ()
    ledger.path.write_bytes(whole)
    assert [entry.checksum for entry in Ledger.open(ledger.path).entries] == ["c0ffee", "decaf", None]
