"""Counts of at most k rows a person say so wherever they are shown, and nobody is told whether or how many rows were left out."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import dpcipher as dc
from dpcipher.cli import main
from dpcipher.errors import ReleaseError
from dpcipher.release.statement import Statement

PHRASE = "of at most 3 rows a person"
SCHEMA = dc.Schema.from_domain({"ward": 3, "sex": 2})
PROMISE: dict[str, Any] = {"epsilon": 3.0, "unit": "add-remove", "max_rows": 3}


def visits(most: int) -> pd.DataFrame:
    """Rows of 400 persons, of whom nobody has more than `most`."""
    rng = np.random.default_rng(2)
    who = np.repeat(np.arange(400), rng.integers(1, most + 1, 400))
    return pd.DataFrame(
        {"who": who, "ward": rng.integers(0, 3, len(who)), "sex": rng.integers(0, 2, len(who))}
    )


def released(*, most: int = 9, **options: Any) -> dc.Release:
    """A release of visits."""
    return dc.measure(visits(most), SCHEMA, **{**PROMISE, **options})


@pytest.mark.parametrize("most", [3, 9])
def test_an_enforced_cap_is_said_wherever_counts_are_shown(most: int, tmp_path: Path) -> None:
    """In the file, card, commands, page, intervals and model; alike whether or not a row was left out."""
    release, page = released(most=most, person="who", save=tmp_path / "r.parquet"), tmp_path / "page.html"
    assert dc.Release.load(tmp_path / "r.parquet").statement.unit == {
        "relation": "add-remove", "max_rows": 3, "cap": "enforced",
    }  # fmt: skip
    assert f"counts {PHRASE}" in repr(release)
    assert PHRASE in release._repr_html_()
    bounds = release.interval("ward")
    assert PHRASE in repr(bounds)
    assert PHRASE in bounds.frame.attrs["scope"]
    joint = dc.solve(release)
    dc.report(release, joint.sample(300, seed=1), page)
    text = " ".join(page.read_text(encoding="utf-8").split())
    assert text.count(f"hold the true count {PHRASE} in about 19 cases out of 20") == 2
    assert "hold the true count in" not in text
    assert "counting at most 3 rows a person" in text
    shown = CliRunner().invoke(main, ["release", "show", str(tmp_path / "r.parquet")]).stdout
    assert f"Counts are {PHRASE}: rows beyond that are in no count" in shown
    facts = json.loads(
        CliRunner().invoke(main, ["release", "show", str(tmp_path / "r.parquet"), "--json"]).stdout
    )
    assert facts["statement"]["unit"]["cap"] == "enforced"
    model = dc.fit_models(release, "sex ~ ward", draws=50, seed=1)
    assert any(PHRASE in note for note in model.notes)
    assert "rows of one person count as independent: intervals may be too short" in str(model)


def test_rows_of_nobody_that_are_left_out_are_said_too() -> None:
    """With missing_person="drop": a fact of the request, whether or not there is such a row."""
    statement = released(person="who", missing_person="drop").statement
    assert statement.counted == f"{PHRASE}, without rows that name nobody"


def test_a_cap_on_the_word_of_the_curator_says_so() -> None:
    """No row is left out, so that counts are of all of them; and where each row is protected by itself, there is nothing to say."""
    stated = released().statement
    assert stated.unit["cap"] == "stated"
    assert stated.counted == ""
    assert "That nobody has more is the curator's word" in stated.protection
    assert "scope" not in released().interval("ward").frame.attrs
    assert "word" not in released(max_rows=1).statement.protection
    assert "independent" not in str(dc.fit_models(released(max_rows=1), "sex ~ ward", draws=50, seed=1))
    assert "word" not in released(person="who").statement.protection


@pytest.mark.parametrize(
    ("name", "value"),
    [("cap", "perhaps"), ("cap", 3), ("missing_person", "refuse"), ("missing_person", None)],
)
def test_a_file_cannot_say_anything_else_of_a_cap(name: str, value: object) -> None:
    """What a statement says is checked, since a file may say anything."""
    with pytest.raises(ReleaseError, match=rf"unit\.{name} \("):
        Statement("declared", unit={"relation": "replace", "max_rows": 1, name: value})
