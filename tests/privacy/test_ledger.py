"""What a ledger grants, refuses and remembers."""

import json
import os
import stat
from fractions import Fraction
from pathlib import Path

import pytest

from dpcipher.errors import BudgetError, LedgerError, LedgerExceeded, ParameterError
from dpcipher.privacy import durable
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.ledger import Ledger
from dpcipher.privacy.records import HashChain, read_chain
from dpcipher.privacy.terms import Unit

UNIT = Unit("add-remove")
TENTH = Budget.parse(epsilon=0.1)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """A ledger that allows pure epsilon 1."""
    return Ledger.create(tmp_path / "people.ledger", epsilon=1, unit="add-remove", name="people of 2026")


def test_a_new_ledger_says_what_it_was_told(ledger: Ledger) -> None:
    """Limit, unit and name come back; nothing is spent."""
    again = Ledger.open(ledger.path)
    assert (again.name, again.limit, again.unit, again.entries) == (
        "people of 2026",
        Budget.parse(epsilon=1),
        UNIT,
        (),
    )
    assert (again.spent.epsilon, again.remaining.epsilon) == (0, 1)


def test_ten_tenths_fit_and_an_eleventh_does_not(ledger: Ledger) -> None:
    """Sums are exact, and a refusal spends nothing."""
    for _ in range(10):
        ledger.charge(TENTH, unit=UNIT, what={})
    content = ledger.path.read_bytes()
    for refused in (TENTH, Budget(epsilon=Fraction(1, 10**20))):
        with pytest.raises(LedgerExceeded, match="nothing was spent"):
            ledger.check(refused, unit=UNIT)
        with pytest.raises(LedgerExceeded, match="'people of 2026'"):
            ledger.charge(refused, unit=UNIT, what={})
    assert ledger.path.read_bytes() == content
    assert (ledger.spent.epsilon, ledger.remaining.epsilon) == (1, 0)


def test_check_spends_nothing(ledger: Ledger) -> None:
    """Asking is free."""
    before = ledger.path.read_bytes()
    ledger.check(Budget.parse(epsilon=1), unit=UNIT)
    assert ledger.path.read_bytes() == before


def test_entries_remember_what_was_charged_and_released(ledger: Ledger) -> None:
    """A charge is there whether or not its release was finished."""
    first = ledger.charge(TENTH, unit=UNIT, what={"workload": 2, "note": "Straße"})
    second = ledger.charge(TENTH, unit=UNIT, what={})
    ledger.mark_released(first.id, "c0ffee")
    one, two = Ledger.open(ledger.path).entries
    assert (one.id, one.cost, one.what, one.checksum) == (
        first.id,
        TENTH,
        {"workload": 2, "note": "Straße"},
        "c0ffee",
    )
    assert (two.id, two.checksum) == (second.id, None)
    assert first.id != second.id


def test_a_charge_pays_for_one_release(ledger: Ledger) -> None:
    """Neither an unknown nor a used id can be marked as released."""
    charge = ledger.charge(TENTH, unit=UNIT, what={})
    ledger.mark_released(charge.id, "a")
    with pytest.raises(LedgerError, match="already released"):
        ledger.mark_released(charge.id, "b")
    with pytest.raises(LedgerError, match="not in the ledger"):
        ledger.mark_released("nobody", "b")


def test_the_head_of_a_release_betrays_an_older_copy(ledger: Ledger) -> None:
    """A rolled-back file is sound in itself; where its witness is gone too, only the head in the release tells."""
    witness = ledger.witness
    assert witness is not None
    old = ledger.path.read_bytes()
    charge = ledger.charge(TENTH, unit=UNIT, what={})
    assert charge.head == ledger.statement().heads[-1]
    ledger.mark_released(charge.id, "a")
    assert charge.head in ledger.statement().heads
    ledger.path.write_bytes(old)
    witness.unlink()
    assert charge.head not in Ledger.open(ledger.path).statement().heads


@pytest.mark.parametrize("other", [Unit("replace"), Unit("add-remove", 2)])
def test_another_unit_is_refused(ledger: Ledger, other: Unit) -> None:
    """Epsilons of different neighbour relations cannot be added."""
    with pytest.raises(LedgerError, match="unit"):
        ledger.charge(TENTH, unit=other, what={})
    with pytest.raises(LedgerError, match="unit"):
        ledger.check(TENTH, unit=other)
    assert ledger.entries == ()


def test_kinds_that_the_limit_cannot_count_are_refused(ledger: Ledger) -> None:
    """A pure limit takes no rho, and nobody takes an (epsilon, delta) charge as it is."""
    for cost in (Budget.parse(rho=0.001), Budget.parse(epsilon=0.1, delta=1e-6)):
        with pytest.raises(BudgetError, match="cost"):
            ledger.charge(cost, unit=UNIT, what={})
    assert ledger.entries == ()


def test_a_gaussian_release_uses_up_a_ledger_made_for_it(tmp_path: Path) -> None:
    """A limit of (1, 1e-6) has room for its own rho, exactly, and reports it as epsilon 1."""
    limit = Budget.parse(epsilon=1, delta=1e-6)
    ledger = Ledger.create(tmp_path / "l", epsilon=1, delta=1e-6, unit="replace", max_rows=2)
    ledger.charge(limit.composable(), unit=Unit("replace", 2), what={})
    assert float(ledger.spent.epsilon or 0) == pytest.approx(1)
    assert (ledger.spent.delta, ledger.remaining.rho) == (limit.delta, 0)
    with pytest.raises(LedgerExceeded):
        ledger.charge(Budget.parse(epsilon=1e-9), unit=Unit("replace", 2), what={})


def test_a_rho_ledger_takes_pure_charges_as_half_their_square(tmp_path: Path) -> None:
    """Epsilon 1/2 costs rho 1/8."""
    ledger = Ledger.create(tmp_path / "l", rho=0.25, unit="add-remove")
    ledger.charge(Budget.parse(epsilon=0.5), unit=UNIT, what={})
    ledger.charge(Budget.parse(rho=0.125), unit=UNIT, what={})
    assert (ledger.spent.rho, ledger.remaining.rho) == (Fraction(1, 4), 0)


@pytest.mark.parametrize("name", ["epsilon", "delta", "rho", "max_rows"])
@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), 1e-320, 1e308, "1", True, None], ids=repr)
def test_bad_parameters_create_no_file(tmp_path: Path, name: str, bad: object) -> None:
    """Every parameter is checked before anything is written."""
    if name == "delta" and bad is None:
        bad = 1
    others: dict[str, object] = {"epsilon": 1.0} if name in ("delta", "max_rows") else {}
    with pytest.raises(ValueError, match=name):
        Ledger.create(tmp_path / "l", unit="add-remove", **{**others, name: bad})  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "bad", [{"x": float("nan")}, {"x": {1, 2}}, {"x": Fraction(1)}, {"x": "y" * (1 << 20)}]
)
def test_notes_must_be_plain_and_short(ledger: Ledger, bad: dict[str, object]) -> None:
    """What cannot be written down is refused before it is charged."""
    with pytest.raises(ParameterError, match="what"):
        ledger.charge(TENTH, unit=UNIT, what=bad)
    assert ledger.entries == ()


def test_create_refuses_to_replace(ledger: Ledger) -> None:
    """An existing ledger stays, whatever the new limit, and no temporary file is left."""
    before = ledger.path.read_bytes()
    with pytest.raises(LedgerError, match="exists already"):
        Ledger.create(ledger.path, epsilon=5, unit="replace")
    assert ledger.path.read_bytes() == before
    assert sorted(ledger.path.parent.iterdir()) == [ledger.path, ledger.witness]


def test_only_the_owner_may_read_it_whatever_the_umask(tmp_path: Path) -> None:
    """Mode 0600 under umask 000 and under umask 777."""
    for number, mask in enumerate((0o000, 0o777)):
        old = os.umask(mask)
        try:
            path = Ledger.create(tmp_path / str(number), epsilon=1, unit="replace").path
        finally:
            os.umask(old)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_read_only_ledger_can_be_read_but_not_charged(ledger: Ledger) -> None:
    """Refused when it is asked, before any data would be read; also for an administrator."""
    ledger.path.chmod(0o400)
    assert Ledger.open(ledger.path).remaining.epsilon == 1
    for attempt in (lambda: ledger.check(TENTH, unit=UNIT), lambda: ledger.charge(TENTH, unit=UNIT, what={})):
        with pytest.raises(LedgerError, match=r"read-only|opened for writing"):
            attempt()


def test_paths_that_are_no_ledger_are_refused(tmp_path: Path) -> None:
    """A missing file, a folder, a pipe, an empty file and a stranger's file."""
    pipe, empty, stranger = tmp_path / "pipe", tmp_path / "empty", tmp_path / "stranger"
    os.mkfifo(pipe)
    empty.touch()
    stranger.write_text('{"some":"json"}\n')
    for path, message in (
        (tmp_path / "missing", "does not exist"),
        (tmp_path, "regular file"),
        (pipe, "regular file"),
        (empty, "make no sense"),
        (stranger, "is no ledger: it is a text file"),
    ):
        with pytest.raises(LedgerError, match=message):
            Ledger.open(path)
    with pytest.raises(LedgerError, match=r"no\) of the ledger \(folder\) does not exist"):
        Ledger.create(tmp_path / "no" / "folder", epsilon=1, unit="replace")


def test_a_future_version_is_refused(ledger: Ledger) -> None:
    """A file with sound hashes from a later dpcipher is not guessed at."""
    (header,) = read_chain(ledger.path.read_bytes()).records
    (ledger.witness or Path()).unlink()
    body = {key: value for key, value in header.items() if key not in ("hash", "previous")}
    ledger.path.write_bytes(HashChain((), 0).appended({**body, "version": 3})[0])
    with pytest.raises(LedgerError, match=r"version \(3\)"):
        Ledger.open(ledger.path)


def test_a_sound_chain_of_nonsense_is_refused(ledger: Ledger) -> None:
    """Hashes prove that nothing changed, not that it means something."""
    chain = read_chain(ledger.path.read_bytes())
    for nonsense in (
        {"type": "refund", "id": "x"},
        {"type": "charge", "id": "x"},
        {"type": "charge", "id": "x", "cost": {"epsilon": "-1"}},
    ):
        ledger.path.write_bytes(ledger.path.read_bytes()[: chain.keep] + chain.appended(nonsense)[0])
        with pytest.raises(LedgerError, match="make no sense"):
            Ledger.open(ledger.path)


def test_the_file_holds_nothing_but_what_it_was_told(ledger: Ledger) -> None:
    """Every field of every record is known, so no fingerprint of the rows can hide in one."""
    charge = ledger.charge(TENTH, unit=UNIT, what={"workload": 2})
    ledger.mark_released(charge.id, "c0ffee")
    fields = [
        set(json.loads(line)) - {"hash", "previous", "time", "type"}
        for line in ledger.path.read_text().splitlines()
    ]
    assert fields == [{"version", "name", "limit", "unit"}, {"id", "cost", "what"}, {"id", "checksum"}]


def test_other_systems_and_network_file_systems_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The refusal names the file system and says where to go."""
    path = tmp_path / "l"
    with pytest.raises(LedgerError, match="win32"):
        durable.check_supported(path, platform="win32")
    for kind in (
        "nfs4",
        "nfs",
        "cifs",
        "smb3",
        "fuse.sshfs",
        "9p",
        "ceph",
        "lustre",
        "virtiofs",
        "afs",
        "unheard-of",
    ):
        monkeypatch.setattr(
            durable, "mounts", lambda platform, kind=kind: [("/", "ext4"), (str(tmp_path), kind)]
        )
        with pytest.raises(LedgerError, match=f"{kind}.*local disk"):
            Ledger.create(path, epsilon=1, unit="replace")
    monkeypatch.setattr(durable, "mounts", lambda platform: [])
    with pytest.raises(LedgerError, match="unknown"):
        Ledger.open(path)
    assert list(tmp_path.iterdir()) == []


def test_a_system_without_flock_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where fcntl cannot be imported nothing is created."""
    monkeypatch.setitem(__import__("sys").modules, "fcntl", None)
    with pytest.raises(LedgerError, match="locks"):
        Ledger.create(tmp_path / "l", epsilon=1, unit="replace")
    assert list(tmp_path.iterdir()) == []


def test_the_deepest_and_latest_mount_decides() -> None:
    """A later mount hides an earlier one at the same place, and a similar name is another folder."""
    table = [("/", "overlay"), ("/data", "ext4"), ("/data", "nfs4"), ("/data2", "xfs"), ("/data/l", "tmpfs")]
    kinds = {
        path: durable.kind_at(path, table) for path in ("/x", "/data/y", "/data2/y", "/data/l", "/data/lx")
    }
    assert kinds == {
        "/x": "overlay",
        "/data/y": "nfs4",
        "/data2/y": "xfs",
        "/data/l": "tmpfs",
        "/data/lx": "nfs4",
    }
