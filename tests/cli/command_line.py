"""A curator's folder: a small private table, its public schema and a ledger with some budget.

Not a conftest.py, so that `import conftest` means the one above all folders.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

from dpcipher.cli import main
from dpcipher.privacy.ledger import Ledger

SCHEMA = """\
columns:
  sex: {kind: categorical, levels: [F, M]}
  age: {kind: integer, min: 0, max: 99, bins: 4}
  smoker: {kind: boolean, missing: level}
"""
PROMISE = ("--epsilon", "2", "--unit", "add-remove", "--max-rows", "1")

Run = Callable[..., Result]


@pytest.fixture(name="folder")
def curators_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: people.csv, people.yaml and people.ledger."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(5)
    age = rng.integers(0, 100, 400)
    people = pd.DataFrame(
        {
            "sex": rng.choice(["F", "M"], 400),
            "age": age,
            "smoker": np.where(age < 20, None, rng.random(400) < age / 150),
        }
    )
    people.to_csv("people.csv", index=False)
    Path("people.yaml").write_text(SCHEMA, encoding="utf-8")
    Ledger.create("people.ledger", epsilon=10, unit="add-remove", name="people")
    return tmp_path


@pytest.fixture(name="run")
def runner() -> Run:
    """Run a command in this process; arguments are split at spaces unless given one by one."""

    def call(*arguments: str) -> Result:
        words = arguments[0].split() if len(arguments) == 1 else list(arguments)
        return CliRunner().invoke(main, words)

    return call


@pytest.fixture(name="measured")
def measured_release(folder: Path, run: Run) -> Path:
    """A release file in the folder."""
    done = run(
        "measure",
        "people.csv",
        "people.yaml",
        *PROMISE,
        "--ledger",
        "people.ledger",
        "-o",
        "people.release.parquet",
    )
    assert done.exit_code == 0, done.output
    return folder / "people.release.parquet"


def facts(result: Result) -> Any:
    """The JSON on stdout, which must be all there is."""
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)
