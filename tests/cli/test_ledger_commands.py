"""Ledgers through the command line: created on purpose, shown, and held against their releases."""

import json
from pathlib import Path

import pandas as pd
import pytest
from command_line import PROMISE, Run, curators_folder, facts, measured_release, runner  # noqa: F401

from dpcipher.curator.measure import measure
from dpcipher.privacy.ledger import Ledger
from dpcipher.release.release import Release
from dpcipher.schema.schema import Schema

MEASURE = ("measure", "people.csv", "people.yaml", *PROMISE)


def test_measure_refuses_a_ledger_that_does_not_exist(folder: Path, run: Run) -> None:
    """Before the data are looked for; the message names the path and both fixes, and nothing is written."""
    before = sorted(folder.iterdir())
    words = ("measure", "absent.csv", "people.yaml", *PROMISE, "--ledger", "poeple.ledger", "-o", "r.parquet")
    refused = run(*words)
    said = " ".join(refused.stderr.split())
    assert refused.exit_code == 1
    assert f"ledger (poeple.ledger) does not exist in {folder}" in said
    assert "`dpcipher ledger create`" in said
    assert "--create" in said
    assert sorted(folder.iterdir()) == before


def test_measure_creates_a_ledger_on_request_and_only_once(folder: Path, run: Run) -> None:
    """Its limit is the release; the same call again is refused and spends nothing."""
    call = (*MEASURE, "--ledger", "new.ledger", "--create", "--name", "newcomers", "-o", "r.parquet")
    assert run(*call).exit_code == 0
    again = run(*call, "--force")
    assert again.exit_code == 1
    assert "exists already, and a ledger is created once" in again.stderr
    shown = facts(run("ledger show new.ledger --json"))
    assert (shown["name"], shown["limit"], shown["spent"]) == (
        "newcomers",
        {"epsilon": "2"},
        {"epsilon": "2"},
    )


def test_show_says_whether_there_is_a_witness(measured: Path, run: Run) -> None:
    """Where there is none yet, what will be written and when."""
    assert "Witness  people.ledger.witness\n" in run("ledger show people.ledger").stdout
    assert facts(run("ledger show people.ledger --json"))["witness"] == "people.ledger.witness"
    Path("people.ledger.witness").unlink()
    shown = run("ledger show people.ledger").stdout
    assert "Witness  none yet: the next charge writes people.ledger.witness" in shown
    assert facts(run("ledger show people.ledger --json"))["witness"] is None


def test_a_cut_ledger_is_refused_by_every_command(measured: Path, run: Run) -> None:
    """Show and measure say what happened, and the ledger stays as it is."""
    cut = Path("people.ledger").read_bytes()[:-200]
    Path("people.ledger").write_bytes(cut)
    for words in (("ledger", "show", "people.ledger"), (*MEASURE, "--ledger", "people.ledger", "-o", "r.parquet")):  # fmt: skip
        refused = run(*words)
        assert refused.exit_code == 1
        assert "it was cut, or an older copy was put back" in refused.stderr
    assert Path("people.ledger").read_bytes() == cut


@pytest.fixture(name="several")
def several_releases(folder: Path, run: Run) -> bytes:
    """Releases a and b of the ledger, one of another, an unrecorded and a declared one; the ledger as it was after a."""
    schema, frame = Schema.load("people.yaml"), pd.read_csv("people.csv")
    run(*MEASURE, "--ledger", "people.ledger", "-o", "a.parquet")
    older = Path("people.ledger").read_bytes()
    run(*MEASURE, "--ledger", "people.ledger", "-o", "b.parquet")
    run(*MEASURE, "--ledger", "other.ledger", "--create", "-o", "foreign.parquet")
    measure(frame, schema, epsilon=1, unit="add-remove").save("unrecorded.parquet")
    published = {("sex",): [10, 20], ("age",): [5, 10, 10, 5], ("smoker",): [12, 12, 6]}
    Release.from_tables(published, schema, scale=1.0).save("declared.parquet")
    return older


FILES = ("a.parquet", "b.parquet", "foreign.parquet", "unrecorded.parquet", "declared.parquet")
VERIFY = ("ledger", "verify", "people.ledger", *FILES)


def test_verify_knows_its_own_and_lets_others_pass(several: bytes, run: Run) -> None:
    """A line for each, exit code 0, and the same as JSON."""
    done = run(*VERIFY)
    assert done.exit_code == 0, done.output
    table = {line.split()[0]: " ".join(line.split()[1:]) for line in done.stdout.splitlines()[1:]}
    told = facts(run(*VERIFY, "--json"))
    assert [table[name].startswith(word) for name, word in zip(FILES, ("recorded", "recorded", "another ledger", "no ledger", "no ledger"), strict=True)] == [True] * 5  # fmt: skip
    assert [one["verdict"] for one in told["releases"]] == ["recorded", "recorded", "another ledger", "no ledger", "no ledger"]  # fmt: skip
    assert told["sound"]
    assert told["ledger"]["id"] == Ledger.open("people.ledger").id
    assert told["ledger"]["objection"] is None


@pytest.mark.parametrize("witnessed", [True, False])
def test_verify_names_what_an_older_copy_has_lost(several: bytes, run: Run, witnessed: bool) -> None:
    """With exit code 1, whether or not the witness objects too."""
    Path("people.ledger").write_bytes(several)
    if not witnessed:
        Path("people.ledger.witness").unlink()
    done = run(*VERIFY, "--json")
    told = json.loads(done.stdout)
    assert done.exit_code == 1
    assert [one["verdict"] for one in told["releases"]] == ["recorded", "ROLLED BACK", "another ledger", "no ledger", "no ledger"]  # fmt: skip
    assert (told["ledger"]["objection"] is not None, told["sound"]) == (witnessed, False)
    text = run(*VERIFY)
    assert text.exit_code == 1
    assert "b.parquet           ROLLED BACK     this ledger paid for it and does not know it" in text.stdout
    assert ("Witness  ledger (people.ledger) is shorter" in text.stdout) == witnessed
    alone = run("ledger", "verify", "people.ledger", "a.parquet")
    assert alone.exit_code == int(witnessed)


def test_verify_tells_a_release_that_another_took_the_charge_of(several: bytes, run: Run) -> None:
    """A file with the charge of a and other counts is not what was paid for."""
    a, b = Release.load("a.parquet"), Release.load("b.parquet")
    Release(a.schema, b.measurements, a.statement).save("forged.parquet")
    done = run("ledger verify people.ledger a.parquet forged.parquet --json")
    assert done.exit_code == 1
    assert [one["verdict"] for one in json.loads(done.stdout)["releases"]] == ["recorded", "ALTERED"]


def test_verify_refuses_what_is_no_ledger_or_no_release(several: bytes, run: Run) -> None:
    """Each with one message and without a traceback; no release at all is wrong usage."""
    for words, code, message in (
        ("ledger verify absent.ledger a.parquet", 1, "ledger (absent.ledger) does not exist"),
        ("ledger verify people.ledger people.csv", 1, "people.csv"),
        ("ledger verify people.ledger absent.parquet", 1, "absent.parquet"),
        ("ledger verify people.ledger", 2, "RELEASE"),
    ):
        refused = run(words)
        assert refused.exit_code == code
        assert message in refused.stderr
        assert "Traceback" not in refused.output


def test_a_foreign_release_never_blocks_a_charge(several: bytes, run: Run) -> None:
    """Verifying is reading alone."""
    before = Path("people.ledger").read_bytes(), Path("people.ledger.witness").read_bytes()
    assert run(*VERIFY).exit_code == 0
    assert (Path("people.ledger").read_bytes(), Path("people.ledger.witness").read_bytes()) == before
    assert run(*MEASURE, "--ledger", "people.ledger", "-o", "c.parquet").exit_code == 0
