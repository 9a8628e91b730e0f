"""Whose rows they are: about how many persons a table has is told to the curator's terminal alone, and a schema may name their column."""

import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

import dpcipher as dc
from dpcipher.cli import main
from dpcipher.errors import DpcipherWarning, SchemaError
from dpcipher.privacy.ledger import Ledger

N_PERSONS = 27_300


def visits(persons: int = N_PERSONS, *, seed: int = 1) -> pd.DataFrame:
    """Rows of persons, shuffled: most have one to five, some have 23; ids far apart, as in registers."""
    rng = np.random.default_rng(seed)
    each = np.where(rng.random(persons) < 0.9, rng.integers(1, 6, persons), rng.integers(6, 20, persons))
    each[rng.random(persons) < 0.01] = 23
    ids = np.repeat(rng.permutation(10**9 + np.arange(persons) * 7919), each)
    frame = pd.DataFrame({"patient_id": ids, "ward": rng.choice(["north", "south"], len(ids))})
    return frame.sample(frac=1.0, random_state=seed)


@pytest.fixture(name="folder")
def visits_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: visits.csv, a schema without the persons and one that names them."""
    monkeypatch.chdir(tmp_path)
    visits().to_csv("visits.csv", index=False)
    columns = "columns:\n  ward: {kind: categorical, levels: [north, south]}\n"
    Path("plain.yaml").write_text(columns, encoding="utf-8")
    Path("visits.yaml").write_text(f"person: patient_id\n{columns}", encoding="utf-8")
    return tmp_path


def run(*words: str, typed: str | None = None) -> Result:
    """A command in this process, and what is typed when it asks."""
    return CliRunner().invoke(main, list(words), input=typed)


def told_persons(text: str) -> int:
    """The number of persons in a line of the terminal."""
    found = re.search(r"about ([\d,]+) persons", text)
    assert found is not None, text
    return int(found[1].replace(",", ""))


def test_a_draft_tells_the_terminal_alone_how_many_persons_there_are(folder: Path) -> None:
    """In bands, marked, within a tenth of the truth; and no figure of it in the file, in what is piped on, or in the notes."""
    done = run("schema", "draft", "visits.csv", "-o", "draft.yaml")
    assert done.exit_code == 0, done.output
    (line,) = [line for line in done.stderr.splitlines() if "persons" in line]
    assert line.startswith("CURATOR ONLY")
    assert abs(told_persons(line) / N_PERSONS - 1) < 0.1
    assert "most with at most 5 rows, some with more than 20" in line
    assert "--person patient_id" in line
    assert "1, 2, 5, 10, 20, 50" in line
    text = Path("draft.yaml").read_text(encoding="utf-8")
    assert "every value is different" not in text
    assert "give it to measure as the person" in " ".join(dc.Schema.load("draft.yaml").provenance.notes)
    for other in (text, done.stdout):
        assert not re.search(
            r"\d{4}|\bmore than\b", re.sub(r"[0-9a-f]{64}", "", other).replace("draft.yaml", "")
        )
    as_json = run("schema", "draft", "visits.csv", "-o", "draft2.yaml", "--json")
    assert "persons" in as_json.stderr
    assert "about" not in as_json.stdout


def test_check_repeats_the_estimate(folder: Path) -> None:
    """For a column that looks like an id, and for the one that the schema names, whatever it is called."""
    for schema in ("plain.yaml", "visits.yaml"):
        done = run("schema", "check", schema, "--data", "visits.csv")
        assert done.exit_code == 0, done.output
        assert abs(told_persons(done.stdout) / N_PERSONS - 1) < 0.1
    renamed = visits(500).rename(columns={"patient_id": "k"})
    schema = dc.Schema.from_dict(
        {"person": "k", "columns": {"ward": {"kind": "categorical", "levels": ["north", "south"]}}}
    )
    assert "persons" in str(dc.Schema.check(schema, renamed))
    absent = dc.Schema.check(schema, visits(500))
    assert not absent.fits
    assert "k" in [finding.column for finding in absent.findings]


@pytest.mark.parametrize("rows_each", [1, 3])
def test_many_ids_are_told_apart_from_rows(rows_each: int, tmp_path: Path) -> None:
    """20,000 ids: of one row each they name rows; of three they may name persons, and the note says so."""
    ids = [f"p{i:06}" for i in range(20_000)] * rows_each
    draft = dc.Schema.draft(pd.DataFrame({"case_id": ids, "sex": ["F", "M"] * (len(ids) // 2)}))
    (note,) = [note for note in draft.provenance.notes if "case_id" in note]
    assert ("every value is different" in note) == (rows_each == 1)
    assert ("give it to measure as the person" in note) == (rows_each > 1)


def test_the_sample_is_of_ids_whatever_the_order_of_rows() -> None:
    """Which ids are in it their hash alone decides: sorted, shuffled and reversed tables are told alike, also where persons have many rows."""
    frame, said = visits(), []
    for order in (frame, frame.sort_values("patient_id"), frame.iloc[::-1]):
        dc.Schema.draft(order, tell=said.append)
    assert len(said) == 3
    assert len(set(said)) == 1


def test_plan_and_measure_warn_where_the_person_is_not_used(folder: Path) -> None:
    """Without a figure; and not where it is used, or where the schema names nobody."""
    promise = ("--workload", "1", "--epsilon", "1", "--unit", "add-remove", "--max-rows", "5")
    measure = ("measure", "visits.csv", "visits.yaml", *promise, "--ledger", "v.ledger", "--create")
    for words in (("plan", "visits.yaml", *promise), (*measure, "-o", "a.parquet")):
        done = run(*words)
        assert done.exit_code == 0, done.output
        (line,) = [line for line in done.stderr.splitlines() if "rows are protected" in line]
        assert "--person patient_id" in line
        assert not re.search(r"\d", line)
    Path("v.ledger").unlink()
    Path("v.ledger.witness").unlink()
    for words in (
        ("plan", "visits.yaml", *promise, "--person", "patient_id"),
        (*measure, "-o", "b.parquet", "--person", "patient_id"),
        ("plan", "plain.yaml", *promise),
    ):
        done = run(*words)
        assert done.exit_code == 0, done.output
        assert "rows are protected" not in done.stderr
    assert dc.Release.load("b.parquet").schema.person == "patient_id"


def test_the_warning_comes_before_the_charge(folder: Path) -> None:
    """Who makes warnings errors spends nothing."""
    Ledger.create("w.ledger", epsilon=1, unit="add-remove")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DpcipherWarning, match="person is not given"):
            dc.measure(
                "visits.csv",
                dc.Schema.load("visits.yaml"),
                workload=1,
                epsilon=1,
                unit="add-remove",
                ledger="w.ledger",
            )
    assert Ledger.open("w.ledger").entries == ()


def test_sign_asks_again_where_a_draft_is_untouched(folder: Path) -> None:
    """Refused without an answer, after a no, and in Python; signed after a yes, when it is said beforehand, and once a column was changed."""
    run("schema", "draft", "visits.csv", "-o", "draft.yaml")
    drafted = Path("draft.yaml").read_text(encoding="utf-8")
    words = ("schema", "sign", "draft.yaml", "--name", "Ada Curator")
    for typed in (None, "n\n"):
        refused = run(*words, typed=typed)
        assert refused.exit_code == 1
        assert "use --unchanged" in " ".join(refused.stderr.split())
        assert Path("draft.yaml").read_text(encoding="utf-8") == drafted
    with pytest.raises(SchemaError, match="unchanged=True"):
        dc.Schema.load("draft.yaml").sign("Ada Curator", "2026-01-01")
    edited = drafted.replace("levels: [north, south]", "levels: [north, south, east]")
    for text, more, typed in ((drafted, (), "y\n"), (drafted, ("--unchanged",), None), (edited, (), None)):
        Path("draft.yaml").write_text(text, encoding="utf-8")
        done = run(*words, *more, typed=typed)
        assert done.exit_code == 0, done.output
        signed = Path("draft.yaml").read_text(encoding="utf-8")
        assert "notes" not in signed
        assert "drafted_as" not in signed
        dc.Schema.load("draft.yaml").require_signed()


def test_only_columns_count_as_changes_of_a_draft(folder: Path) -> None:
    """Who names the person in it has not looked at a level yet."""
    run("schema", "draft", "visits.csv", "-o", "draft.yaml")
    text = Path("draft.yaml").read_text(encoding="utf-8")
    Path("draft.yaml").write_text(f"person: patient_id\n{text}", encoding="utf-8")
    assert run("schema", "sign", "draft.yaml", "--name", "Ada").exit_code == 1
    assert "says whose row each is" in run("schema", "show", "draft.yaml").stdout
