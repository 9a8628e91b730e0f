"""The commands `evaluate` and `report`: one call each, refusals with exit code 1, nothing of the private rows in a message."""

import json
import stat
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

from dpcipher.cli import main
from dpcipher.drawing.curator_only import WATERMARK
from dpcipher.release.release import Release
from dpcipher.schema.schema import Schema

SCHEMA = Schema.from_domain({"a": 2, "b": 3, "c": 4})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A schema, private rows, two synthetic sets, held-out rows and a release, in the current folder."""
    SCHEMA.save(tmp_path / "s.yaml")
    for seed, name in enumerate(("private", "rows-1", "rows-2", "holdout")):
        rng = np.random.default_rng(seed)
        frame = {
            attr: rng.integers(0, size, 200) for attr, size in zip(SCHEMA.attrs, SCHEMA.shape, strict=True)
        }
        pd.DataFrame(frame).to_csv(tmp_path / f"{name}.csv", index=False)
    tables = {
        (attr,): np.full(size, 200 // size) for attr, size in zip(SCHEMA.attrs, SCHEMA.shape, strict=True)
    }
    (tmp_path / "public").mkdir()
    Release.from_tables(tables, SCHEMA, scale=2.0).save(tmp_path / "public" / "r.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> Result:
    """Run a command."""
    return CliRunner().invoke(main, list(words))


def test_evaluate_prints_the_watermark_first(folder: Path) -> None:
    """Then the scores, of two sets at once."""
    done = run("evaluate", "private.csv", "s.yaml", "rows-1.csv", "rows-2.csv")
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[0] == WATERMARK
    assert "3/3" in done.stdout


def test_evaluate_writes_its_report_into_a_folder_of_its_own(folder: Path) -> None:
    """With a classifier and a model; JSON carries the watermark too."""
    options = ("--holdout", "holdout.csv", "--predict", "a", "--model", "a ~ b", "--report", "mine", "--json")
    done = run("evaluate", "private.csv", "s.yaml", "rows-1.csv", *options)
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert result["curator_only"] == WATERMARK
    assert {"accuracy", "model"} <= set(result)
    assert stat.S_IMODE((folder / "mine").stat().st_mode) == 0o700
    assert (folder / "mine" / "curator.html").exists()


def test_evaluate_refuses_a_folder_with_a_release_before_it_reads_rows(folder: Path) -> None:
    """The private file does not even exist."""
    done = run("evaluate", "absent.csv", "s.yaml", "rows-1.csv", "--report", "public")
    assert done.exit_code == 1
    assert "r.parquet, which is publishable" in done.stderr


def test_report_writes_one_page(folder: Path) -> None:
    """From the release and the synthetic rows alone."""
    done = run(
        "report", "public/r.parquet", "rows-1.csv", "-o", "public/about.html", "--rows-from", "invented"
    )
    assert done.exit_code == 0, done.output
    assert (folder / "public" / "about.html").read_text().startswith("<!DOCTYPE html>")


def test_report_refuses_the_curators_folder(folder: Path) -> None:
    """Exit code 1 and a reason."""
    run("evaluate", "private.csv", "s.yaml", "rows-1.csv", "--report", "mine")
    done = run("report", "public/r.parquet", "rows-1.csv", "-o", "mine/about.html", "--rows-from", "invented")
    assert done.exit_code == 1
    assert "curator only" in done.stderr


def test_a_message_never_quotes_a_private_value(folder: Path) -> None:
    """A value outside the schema: the column and the rule are named, the value is not."""
    text = (folder / "private.csv").read_text() + "1,2,987654\n"
    (folder / "private.csv").write_text(text)
    done = run("evaluate", "private.csv", "s.yaml", "rows-1.csv")
    assert done.exit_code == 1
    assert "'c'" in done.output
    assert "987654" not in done.output
