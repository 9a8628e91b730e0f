"""Where rows of a person beyond a cap are left out, the error of that is told from the error of noise, and methods are compared on rows that count."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import dpcipher as dc
from dpcipher.cli import main
from dpcipher.errors import ParameterError

SCHEMA = dc.Schema.from_domain({"a": 2, "b": 3})


def visits() -> pd.DataFrame:
    """Persons whose rows are alike: those with a = 1 have five, the others one."""
    rng = np.random.default_rng(3)
    persons = pd.DataFrame(
        {"a": rng.integers(0, 2, 600), "b": rng.integers(0, 3, 600), "pid": np.arange(600)}
    )
    return persons.loc[persons.index.repeat(1 + 4 * persons["a"])].sample(frac=1, random_state=1)


def distance(ours: pd.DataFrame, theirs: pd.DataFrame, names: list[str]) -> float:
    """The total variation distance of a table, by pandas."""
    first, second = (frame[names].value_counts(normalize=True) for frame in (ours, theirs))
    return float(first.sub(second, fill_value=0).abs().sum() / 2)


def test_the_two_errors_are_those_of_the_rows_that_count() -> None:
    """All rows against one row of each person, and that against synthetic rows that hold it exactly."""
    private = visits()
    kept = private.drop_duplicates("pid")
    scores = dc.evaluate(private, kept[["a", "b"]], SCHEMA, person="pid", max_rows=1)
    expected = np.mean([distance(private, kept, [name]) for name in ("a", "b")])
    assert scores.capping[1] == pytest.approx(expected)
    assert scores.capping[2] == pytest.approx(distance(private, kept, ["a", "b"]))
    assert scores.noise == {1: 0.0, 2: 0.0}
    assert scores.tvd[1] == pytest.approx(expected)  # of all rows, as without a person
    assert "from leaving out rows beyond the cap, and from noise" in str(scores)
    assert dc.evaluate(private, kept[["a", "b"]], SCHEMA).capping == {}


def test_the_command_says_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In words, as JSON and on the curator's page; a column that is not there is named."""
    monkeypatch.chdir(tmp_path)
    private = visits()
    private.to_csv("visits.csv", index=False)
    private[["a", "b"]].to_csv("made.csv", index=False)
    SCHEMA.save("visits.yaml")
    words = "evaluate visits.csv visits.yaml made.csv --person pid --max-rows 2 --json --report mine"
    done = CliRunner().invoke(main, words.split())
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["capping"].keys() == told["noise"].keys() == {"1", "2"}
    assert told["noise"]["1"] == pytest.approx(told["capping"]["1"])  # the same tables, the other way round
    assert "leaving out rows beyond the cap" in Path("mine/curator.html").read_text(encoding="utf-8")
    refused = CliRunner().invoke(main, [word.replace("pid", "pide") for word in words.split()])
    assert refused.exit_code == 1


def test_methods_learn_from_the_rows_that_count_and_are_scored_on_all() -> None:
    """With next to no noise the distance that is left is that of the cap."""
    private = visits()
    options = {"epsilons": [1000.0], "repeats": 2, "unit": "add-remove", "workers": 1, "n_rows": 20_000}
    capped = dc.compare(private, SCHEMA, methods=["full-histogram"], person="pid", **options)
    expected = distance(private, private.drop_duplicates("pid"), ["a", "b"])
    assert capped.frame["tvd_2"].mean() == pytest.approx(expected, abs=0.02)
    whole = dc.compare(private, SCHEMA, methods=["full-histogram"], max_rows=5, **options)
    assert whole.frame["tvd_2"].mean() < 0.03
    mine = {"mine": dc.FullHistogram(1.0, unit="add-remove", person="pid")}
    with pytest.raises(ParameterError, match=r"methods\['mine'\] has person='pid'"):
        dc.compare(private, SCHEMA, methods=mine, **options)
