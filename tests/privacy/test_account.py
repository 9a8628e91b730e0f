"""Which ledger pays: one that exists, one that is created on purpose, or none; never one that a typing error began."""

import os
from fractions import Fraction
from pathlib import Path

import pytest

from dpcipher.errors import LedgerError, LedgerExceeded, ParameterError
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.ledger import Account, Ledger
from dpcipher.privacy.terms import Privacy

ONE = Budget.parse(epsilon=1)
TERMS = Privacy.parse(epsilon=1, unit="add-remove")


def test_a_ledger_that_does_not_exist_is_refused_with_every_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names the path and the folder it was looked for in, and how to create one; nothing is begun."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LedgerError) as told:
        Account(ledger="poeple.ledger").check(TERMS, ONE)
    for words in (f"ledger (poeple.ledger) does not exist in {tmp_path}", "`dpcipher ledger create`", "Ledger.create", "create=True", "--create"):  # fmt: skip
        assert words in str(told.value)
    with pytest.raises(LedgerError, match="does not exist"):
        Account(ledger="poeple.ledger").charge(TERMS, ONE, {})
    assert os.listdir(tmp_path) == []


def test_a_created_ledger_is_limited_to_its_first_charge(tmp_path: Path) -> None:
    """Checking creates nothing; charging does, once, and a second charge is refused."""
    path = tmp_path / "people.ledger"
    account = Account(ledger=path, name="people", create=True)
    account.check(TERMS, ONE)
    assert os.listdir(tmp_path) == []
    charge = account.charge(TERMS, ONE, {"why": "a test"})
    ledger = Ledger.open(path)
    assert (ledger.name, ledger.limit, ledger.spent.epsilon) == ("people", ONE, Fraction(1))
    account.mark_released(charge, "c0ffee")
    assert ledger.entries[0].checksum == "c0ffee"
    with pytest.raises(LedgerExceeded):
        Account(ledger=path).check(TERMS, Budget.parse(epsilon=0.1))


def test_create_refuses_a_path_that_exists(tmp_path: Path) -> None:
    """Whoever means a new ledger and finds one has mistaken the path; it stays as it was."""
    ledger = Ledger.create(tmp_path / "people.ledger", epsilon=3, unit="add-remove")
    before = ledger.path.read_bytes()
    for attempt in (
        lambda account: account.check(TERMS, ONE),
        lambda account: account.charge(TERMS, ONE, {}),
    ):
        with pytest.raises(LedgerError, match="exists already, and a ledger is created once"):
            attempt(Account(ledger=ledger.path, create=True))
    assert ledger.path.read_bytes() == before


def test_create_refuses_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    """When it is asked, before any row would be read."""
    with pytest.raises(LedgerError, match=r"nowhere\) of the ledger \(l\) does not exist"):
        Account(ledger=tmp_path / "nowhere" / "l", create=True).check(TERMS, ONE)
    assert os.listdir(tmp_path) == []


def test_create_needs_a_path(tmp_path: Path) -> None:
    """Not with no ledger, not with one that is open, and nothing but true or false."""
    ledger = Ledger.create(tmp_path / "people.ledger", epsilon=3, unit="add-remove")
    for given, create, words in (
        (None, True, r"ledger \(None\)"),
        (ledger, True, "a Ledger, which exists already"),
        ("new.ledger", "yes", r"create \('yes'\) must be True or False"),
    ):
        with pytest.raises(ParameterError, match=words):
            Account(ledger=given, create=create)  # type: ignore[arg-type]
    assert ledger.entries == ()


def test_no_ledger_pays_nothing() -> None:
    """An unrecorded release is charged to nobody."""
    account = Account(ledger=None)
    account.check(TERMS, ONE)
    assert account.charge(TERMS, ONE, {}) is None
