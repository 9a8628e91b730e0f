"""`dpcipher model`: one library call, its table, files and refusals."""

import json
from pathlib import Path

import pandas as pd
import pytest
from command_line import Run, curators_folder, facts, measured_release, runner  # noqa: F401

from dpcipher.inference.models import fit_models
from dpcipher.release.release import Release
from dpcipher.schema.schema import Schema

CALL = ("model", "people.release.parquet", "smoker ~ age + sex", "--draws", "100", "--seed", "1")


def test_the_command_prints_what_the_library_finds(measured: Path, run: Run) -> None:
    """The table and its notes for people, the same numbers for programs; the notes in full where they are asked for."""
    first, done = run(*CALL), run(*CALL, "--details")
    assert first.exit_code == done.exit_code == 0, done.stderr
    assert "in the others smoker is missing" in first.stdout
    assert first.stdout.endswith(": --details\n")
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


def test_levels_and_values_are_those_of_the_library(measured: Path, run: Run) -> None:
    """Both are repeatable lists by column; the command gives the numbers of the same call in Python."""
    told = facts(run(*CALL, "--levels", "sex=M, F", "--values", "age=10,30,60,90", "--json"))
    release = Release.load("people.release.parquet")
    models = fit_models(
        release,
        "smoker ~ age + sex",
        draws=100,
        seed=1,
        levels={"sex": ["M", "F"]},
        values={"age": [10, 30, 60, 90]},
    )
    assert told == json.loads(json.dumps(models.to_dict()))
    assert [row["term"] for row in told["parameters"]] == ["Intercept", "age", "sex[T.F]"]


def test_a_level_with_a_comma_stands_in_quotes(folder: Path, run: Run) -> None:
    """Bins of numbers have such names, and a note asks for their order where there are special values."""
    spend = {"kind": "number", "edges": [0, 100, 1000], "special": [0]}
    schema = Schema.from_dict(
        {"columns": {"sex": {"kind": "categorical", "levels": ["F", "M"]}, "spend": spend}}
    )
    Release.from_tables({("sex", "spend"): [[300, 200, 500], [200, 300, 100]]}, schema, scale=2).save(
        "s.parquet"
    )
    call = (
        "model",
        "s.parquet",
        "spend ~ sex",
        "--family",
        "ordinal",
        "--draws",
        "50",
        "--seed",
        "1",
        "--json",
    )
    assert any("with the option levels" in note for note in facts(run(*call))["notes"])
    told = facts(run(*call, "--levels", 'spend=0,"[0, 100)","[100, 1000]"'))
    assert [row["term"] for row in told["parameters"]] == ["0|[0, 100)", "[0, 100)|[100, 1000]", "sex[T.M]"]
    assert not any("with the option levels" in note for note in told["notes"])


@pytest.mark.parametrize(
    ("option", "rule"),
    [
        (("--level", "95"), "between 0 and 1"),
        (("--draws", "1"), "from 2 to"),
        (("--seed", "-1"), "0 or more"),
        (("--report", "page.txt"), "must end in .html"),
        (("--report", "nowhere/page.html"), "cannot be written"),
        (("--values", "age=a"), "must be a finite number"),
        (("--levels", "sex"), "form NAME=VALUE"),
        (("--levels", "sex=F,M", "--levels", "sex=M,F"), "must be given once"),
    ],
)
def test_options_are_checked_before_anything_is_fitted(
    measured: Path, run: Run, option: tuple[str, ...], rule: str
) -> None:
    """Nobody waits for a model whose page or interval cannot be had."""
    done = run("model", "people.release.parquet", "smoker ~ age", *option)
    assert done.exit_code in (1, 2)
    assert rule in done.stderr
    assert "fitting" not in done.stderr
    assert not Path("page.txt").exists()


@pytest.mark.parametrize(
    ("formula", "option", "rule", "code"),
    [
        ("smokr ~ age", (), "did you mean 'smoker'", 1),
        ("age ~ sex", ("--family", "logistic"), "must have 2", 1),
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
