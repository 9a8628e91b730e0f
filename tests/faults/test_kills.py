"""Small versions of what `benchmarks/faults.py` does at length: kills at random moments, races, interrupts."""

import shutil
from pathlib import Path

import pytest

pytest.importorskip("fcntl")

import kills
from steps import LEDGER, SCHEMA, measure, new_ledger, released_not_charged, rows

import dpcipher as dc
from dpcipher.privacy.ledger import Ledger


def test_forty_kills_while_charging(tmp_path: Path) -> None:
    """Whatever was granted is in the ledger."""
    outcome = kills.kill_charges(tmp_path, 40, 0.1)
    assert outcome.wrong == []
    assert outcome.charged >= outcome.compared > 0


def test_forty_kills_while_measuring(tmp_path: Path) -> None:
    """Every release file is whole and paid for, and the next run removes what was left."""
    outcome = kills.kill_measures(tmp_path, 40, 0.2)
    assert outcome.wrong == []
    assert outcome.charged >= outcome.compared > 0


def test_sixteen_processes_get_exactly_the_budget(tmp_path: Path) -> None:
    """160 requests for a hundredth of epsilon against a budget of fifty of them."""
    outcome = kills.race(tmp_path, 16, 10, 50)
    assert outcome.wrong == []
    assert outcome.charged == 50


def test_a_release_without_its_charge_is_noticed(tmp_path: Path) -> None:
    """The check of the two tests above, on a release that another ledger paid for, and on half a file."""
    (tmp_path / "other").mkdir()
    for folder in (tmp_path, tmp_path / "other"):
        new_ledger(folder)
    measure(tmp_path / "other")
    release = tmp_path / "other" / "people.release.parquet"
    shutil.copy(release, tmp_path / "people-1.parquet")
    (tmp_path / "people-2.parquet").write_bytes(release.read_bytes()[:-9])
    assert len(released_not_charged(tmp_path)) == 2


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A curator's folder with many rows, a schema and a ledger."""
    new_ledger(tmp_path)
    SCHEMA.save(tmp_path / "people.yaml")
    rows().sample(2_000_000, replace=True, random_state=1).to_csv(tmp_path / "people.csv", index=False)
    return tmp_path


MEASURE = f"measure people.csv people.yaml --epsilon 0.1 --unit add-remove --max-rows 1 --ledger {LEDGER} -o people.parquet"


@pytest.mark.parametrize("seconds", [0.0, 0.05])
def test_an_interrupted_measure_leaves_nothing_half_done(folder: Path, seconds: float) -> None:
    """Exit code 130, no traceback, a ledger that opens, no file that is not paid for and no temporary one."""
    code, said = kills.interrupt(MEASURE.split(), folder, seconds)
    assert code == 130
    assert "Interrupted" in said
    assert "Traceback" not in said
    assert released_not_charged(folder) == []
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]
    assert len(Ledger.open(folder / LEDGER).entries) <= 1


def test_interrupted_rows_are_absent_or_whole(folder: Path) -> None:
    """While many rows are drawn and written."""
    release = dc.measure(rows(), SCHEMA, epsilon=1.0, unit="add-remove")
    release.save(folder / "given.parquet")
    before = sorted(path.name for path in folder.iterdir())
    code, said = kills.interrupt(["synth", "given.parquet", "-n", "20000000", "-o", "rows.csv"], folder, 0.5)
    assert code == 130
    assert "Traceback" not in said
    assert sorted(path.name for path in folder.iterdir()) == before
