"""What a release found goes on from the command line: its schema is shown, exported, and taken wherever a schema is; its cost is said."""

import json
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

from dpcipher.cli import main
from dpcipher.release.release import Release
from dpcipher.schema.schema import Schema

SCHEMA = """\
columns:
  age: {kind: integer, min: 0, max: 99, bins: auto, max_bins: 20, special: [98], missing: level}
  town: {kind: categorical, levels: discover, pattern: "[A-Z][a-z]+", max_length: 9, max_levels: 7}
  sex: {kind: categorical, levels: [F, M]}
"""
UNIT = ["--epsilon", "4", "--delta", "1e-6", "--unit", "add-remove"]


def run(*args: str) -> Result:
    """One command."""
    return CliRunner().invoke(main, list(args))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Private rows, an open schema, a release and rows that were made from it."""
    folder = tmp_path_factory.mktemp("found")
    rng = np.random.default_rng(3)
    towns = rng.choice(["Ulm", "Bern", "Graz"], 3_000)
    people = pd.DataFrame(
        {"age": rng.integers(0, 98, 3_000), "town": towns, "sex": rng.choice(["F", "M"], 3_000)}
    )
    people.to_csv(folder / "people.csv", index=False)
    (folder / "people.yaml").write_text(SCHEMA)
    measured = run(
        "measure", str(folder / "people.csv"), str(folder / "people.yaml"), *UNIT, "--ledger", str(folder / "people.ledger"),
        "--create", "-o", str(folder / "people.parquet"),
    )  # fmt: skip
    assert measured.exit_code == 0, measured.output
    (folder / "measured.txt").write_text(measured.stdout)
    assert run("synth", str(folder / "people.parquet"), "-o", str(folder / "rows.csv")).exit_code == 0
    return folder


def test_the_schema_of_a_release_is_written_as_an_ordinary_one(folder: Path) -> None:
    """The file loads to what Python's release.schema is, has nothing open, and measures next year's rows."""
    written = run("schema", "export", str(folder / "people.parquet"), "-o", str(folder / "next.yaml"))
    assert written.exit_code == 0, written.output
    found = Schema.load(folder / "next.yaml")
    assert found == Release.load(folder / "people.parquet").schema
    assert not found.is_open
    for schema in ("next.yaml", "people.parquet"):
        again = run(
            "measure", str(folder / "people.csv"), str(folder / schema), *UNIT, "--json", "--ledger",
            str(folder / f"{schema}.ledger"), "--create", "-o", str(folder / "again.parquet"), "--force",
        )  # fmt: skip
        assert again.exit_code == 0, again.output
        assert (json.loads(again.stdout)["bins"], json.loads(again.stdout)["levels"]) == (None, None)
        assert Release.load(folder / "again.parquet").schema == found


def test_frictionless_is_still_what_json_means(folder: Path) -> None:
    """Of a schema file as of a release."""
    assert (
        run("schema", "export", str(folder / "people.parquet"), "-o", str(folder / "t.json")).exit_code == 0
    )
    assert json.loads((folder / "t.json").read_text())["fields"]


def test_a_release_is_taken_in_place_of_its_schema(folder: Path) -> None:
    """By evaluate, whose refusal of the open schema says so, by plan, show and check; sign, which writes, says how to get a file."""
    private, rows = str(folder / "people.csv"), str(folder / "rows.csv")
    refused = run("evaluate", private, str(folder / "people.yaml"), rows)
    assert "a command takes the release file in place of a schema" in refused.stderr
    assert run("evaluate", private, str(folder / "people.parquet"), rows, "--order", "1").exit_code == 0
    assert run("plan", str(folder / "people.parquet"), *UNIT).exit_code == 0
    shown = run("schema", "show", str(folder / "people.parquet")).stdout
    assert "Bern, Graz, Ulm, other" in shown
    assert run("schema", "check", str(folder / "people.parquet"), "--data", private).exit_code == 0
    signed = run("schema", "sign", str(folder / "people.parquet"), "--name", "Ada")
    assert "schema export RELEASE -o FILE.yaml" in signed.stderr


def test_what_was_found_and_its_cost_are_said(folder: Path) -> None:
    """By measure, by release show and on the page, in numbers that the certificate adds up to."""
    release = Release.load(folder / "people.parquet")
    bins = release.statement.certificate["bins"]["found"]["age"]
    run("report", str(folder / "people.parquet"), str(folder / "rows.csv"), "-o", str(folder / "page.html"))
    page = (folder / "page.html").read_text(encoding="utf-8")
    shown = run("release", "show", str(folder / "people.parquet")).stdout
    events = release.statement.certificate["events"]
    asked = sum(Fraction(event["share"]) for event in events if event["what"].startswith("intervals of"))
    said = re.compile(
        rf"bins of age \({bins}\), for (\S+) % of the budget; levels of town \(3\), for 10 % of the budget"
    )
    for text in ((folder / "measured.txt").read_text(), shown, page):
        match = said.search(text)
        assert match is not None
        assert float(match[1]) == pytest.approx(float(100 * asked), rel=5e-3)
    assert "Found privately" in page
    assert f"Where bins begin and end was found privately in age ({bins})" in page


def test_an_open_schema_is_shown_as_open(folder: Path) -> None:
    """What is to be found, and how much of it at most, with the levels that are there anyway; no stand-in is listed as if declared."""
    shown = run("schema", "show", str(folder / "people.yaml")).stdout
    assert "bins: auto, at most 20 from 0 to 99, and 98, (missing)" in shown
    assert "levels: discover, at most 7, and other" in shown
    assert "(found" not in shown
