"""What a ledger says of releases: its own, another's, nobody's, and those it has lost."""

import hashlib
from pathlib import Path

import pytest

from dpcipher.privacy.budget import Budget
from dpcipher.privacy.ledger import Ledger
from dpcipher.privacy.records import Charge
from dpcipher.privacy.terms import Unit

UNIT = Unit("add-remove")
TENTH = Budget.parse(epsilon=0.1)
# Written before ledgers had witnesses and releases named their ledger.
OLD = rb"""
{"hash":"bb5e93a3b2dbab00122a8c6b5c42ae8ac5e39c197fabc002caa896a297d69b14","limit":{"epsilon":"1"},"name":"people of 2026","previous":"0000000000000000000000000000000000000000000000000000000000000000","time":"2026-11-15T16:52:19+00:00","type":"ledger","unit":{"max_rows":1,"relation":"add-remove"},"version":1}
{"cost":{"epsilon":"1/4"},"hash":"d4b67a58d2c05b20032c9aa70d63453458be07ad4ecf67951e77231090d8563d","id":"e3055f09994349597d98ebf7f322480b","previous":"bb5e93a3b2dbab00122a8c6b5c42ae8ac5e39c197fabc002caa896a297d69b14","time":"2026-11-15T16:52:19+00:00","type":"charge","what":{"note":"Stra\u00dfe","tables":3}}
{"checksum":"c0ffee","hash":"defa478ec560a63d0897c05cfe08e7c7bd4e5b1245426494a9dc825bc3e61dca","id":"e3055f09994349597d98ebf7f322480b","previous":"d4b67a58d2c05b20032c9aa70d63453458be07ad4ecf67951e77231090d8563d","time":"2026-11-15T16:52:19+00:00","type":"released"}
"""


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """A ledger with some budget."""
    return Ledger.create(tmp_path / "people.ledger", epsilon=1, unit="add-remove")


def released(ledger: Ledger, checksum: str) -> Charge:
    """A charge that was completed."""
    charge = ledger.charge(TENTH, unit=UNIT, what={})
    ledger.mark_released(charge.id, checksum)
    return charge


def rolled_back(ledger: Ledger, older: bytes) -> None:
    """An older copy in place of the ledger, and no witness to tell."""
    ledger.path.write_bytes(older)
    assert ledger.witness is not None
    ledger.witness.unlink()


def test_the_id_is_the_hash_of_the_first_line(ledger: Ledger) -> None:
    """So that ledgers from before there were ids have one too; it stays the same whatever is charged."""
    first = ledger.path.read_bytes().splitlines()[0]
    digest = first.split(b'"hash":"')[1][:64]
    bare = first.replace(b'"hash":"' + digest + b'",', b"")
    assert ledger.id == digest.decode() == hashlib.sha256(bare).hexdigest()
    assert released(ledger, "c0ffee").ledger == Ledger.open(ledger.path).id == digest.decode()


def test_a_release_is_recorded_rolled_back_altered_or_of_another_ledger(
    ledger: Ledger, tmp_path: Path
) -> None:
    """One word for each, and only what cannot be is a failure."""
    other = Ledger.create(tmp_path / "other.ledger", epsilon=1, unit="add-remove")
    first, older = released(ledger, "c0ffee").as_dict(), ledger.path.read_bytes()
    second, unfinished = released(ledger, "decaf").as_dict(), ledger.charge(TENTH, unit=UNIT, what={})
    foreign = released(other, "tea").as_dict()
    cases = [
        (first, "c0ffee", "recorded"),
        (second, "decaf", "recorded"),
        (second, None, "recorded"),
        (unfinished.as_dict(), "anything", "recorded"),
        (second, "c0ffee", "ALTERED"),
        (foreign, "tea", "another ledger"),
        ({}, "milk", "no ledger"),
    ]
    assert [ledger.verify(said, checksum=sum).word for said, sum, _ in cases] == [word for *_, word in cases]
    rolled_back(ledger, older)
    for said, checksum, word in (
        (first, "c0ffee", "recorded"),
        (second, "decaf", "ROLLED BACK"),
        (foreign, "tea", "another ledger"),
    ):
        verdict = ledger.verify(said, checksum=checksum)
        assert verdict.word == word
        assert verdict.is_failure == (word == "ROLLED BACK")
    assert ledger.verify(first, checksum="tea").is_failure


def test_new_charges_do_not_hide_a_rollback(ledger: Ledger) -> None:
    """The older copy is charged again, and still does not know the release."""
    older = ledger.path.read_bytes()
    lost = released(ledger, "c0ffee")
    rolled_back(ledger, older)
    kept = released(ledger, "decaf")
    assert ledger.verify(lost.as_dict(), checksum="c0ffee").word == "ROLLED BACK"
    assert ledger.verify(kept.as_dict(), checksum="decaf").word == "recorded"


def test_head_and_charge_must_belong_together(ledger: Ledger) -> None:
    """The head of one release with the charge of another is neither's."""
    first, second = released(ledger, "a").as_dict(), released(ledger, "b").as_dict()
    assert ledger.verify(first | {"head": second["head"]}, checksum="a").is_failure
    assert ledger.verify(first | {"charge": second["charge"]}, checksum="a").is_failure


def test_a_ledger_that_its_witness_objects_to_can_still_be_asked(ledger: Ledger) -> None:
    """To find out what is missing; it says so, and grants nothing."""
    older = ledger.path.read_bytes()
    lost = released(ledger, "c0ffee")
    assert ledger.objection is None
    ledger.path.write_bytes(older)
    assert ledger.verify(lost.as_dict(), checksum="c0ffee").word == "ROLLED BACK"
    assert "older copy was put back" in (ledger.objection or "")
    assert ledger.statement(witnessed=False).entries == ()


def test_a_ledger_from_before_witnesses_and_ids_goes_on(tmp_path: Path) -> None:
    """It opens, has an id, knows its release, and gets a witness with its next charge."""
    path = tmp_path / "people.ledger"
    path.write_bytes(OLD.lstrip())
    ledger = Ledger.open(path)
    (entry,) = ledger.entries
    assert (ledger.name, entry.what["note"], entry.checksum) == ("people of 2026", "Straße", "c0ffee")
    assert ledger.id == "bb5e93a3b2dbab00122a8c6b5c42ae8ac5e39c197fabc002caa896a297d69b14"
    assert (
        ledger.verify({"id": ledger.id, "charge": entry.id, "head": entry.head}, checksum="c0ffee").word
        == "recorded"
    )
    assert ledger.witness is None
    released(ledger, "decaf")
    assert ledger.witness is not None
    assert ledger.path.read_bytes().startswith(OLD.lstrip())
