"""`dpcipher model`: one library call, its table, files and refusals."""

import json
from pathlib import Path

import pandas as pd
import pytest

from curator import Run, curators_folder, facts, measured_release, runner  # noqa: F401
from dpcipher.inference.models import fit_models
from dpcipher.release.release import Release

CALL = ("model", "people.release.parquet", "smoker ~ age + sex", "--draws", "100", "--seed", "1")


def test_the_command_prints_what_the_library_finds(measured: Path, run: Run) -> None:
    """The table and its notes for people, the same numbers for programs."""
    done = run(*CALL)
    assert done.exit_code == 0, done.stderr
    assert "logistic model smoker ~ age + sex" in done.stdout
    assert "rows in which smoker is missing are left out" in done.stdout
    told = facts(run(*CALL, "--json"))
    models = fit_models(Release.load("people.release.parquet"), "smoker ~ age + sex", draws=100, seed=1)
    assert told == json.loads(json.dumps(models.to_dict()))


def test_files_are_written(measured: Path, run: Run) -> None:
    """Parameters as a table, and one page that fetches nothing."""
    done = run(*CALL, "--level", "0.9", "-o", "model.csv", "--report", "model.html")
    assert done.exit_code == 0, done.stderr
    written = pd.read_csv("model.csv")
    assert written["term"].tolist() == ["Intercept", "age", "sex[T.M]"]
    page = Path("model.html").read_text(encoding="utf-8")
    assert "<h1>smoker ~ age + sex</h1>" in page
    assert "A logistic model fitted to" in page
    assert "90 % intervals" in page
    assert "default-src 'none'" in page
    assert "model.html" in done.stdout


@pytest.mark.parametrize(
    ("formula", "option", "rule", "code"),
    [
        ("smokr ~ age", (), "did you mean 'smoker'", 1),
        ("age ~ sex", (), "must have 2", 1),
        ("smoker ~ age", ("--level", "95"), "between 0 and 1", 1),
        ("smoker ~ age", ("--family", "logit"), "is not one of", 2),
        ("smoker ~ age", ("-o", "model.xlsx"), "must end in|xlsx", 1),
        ("smoker ~ age", ("-o", "model.html"), "goes to --report model.html", 1),
    ],
)
def test_wrong_requests_are_refused(
    measured: Path, run: Run, formula: str, option: tuple[str, ...], rule: str, code: int
) -> None:
    """The message says what to do, and nothing is written."""
    done = run("model", "people.release.parquet", formula, "--draws", "20", *option)
    assert done.exit_code == code
    assert any(part in done.stderr for part in rule.split("|"))
    assert not Path("model.xlsx").exists()
    assert not Path("model.html").exists()
