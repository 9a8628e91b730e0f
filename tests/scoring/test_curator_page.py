"""The curator's report: watermark, worst first, its own folder."""

import json
import re
import stat
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpcipher.drawing.curator_only import WATERMARK
from dpcipher.errors import NotPrivate
from dpcipher.evaluation.pages import curator_report
from dpcipher.evaluation.scores import evaluate
from dpcipher.pages.report import report
from dpcipher.release.release import Release
from dpcipher.schema.schema import Schema

SCHEMA = Schema.from_domain({"a": 2, "b": 3, "c": 4})


def rows(seed: int, n: int = 300) -> pd.DataFrame:
    """Coded rows."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {name: rng.integers(0, size, n) for name, size in zip(SCHEMA.attrs, SCHEMA.shape, strict=True)}
    )


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report in which column c is badly off."""
    private, made = rows(0), rows(1).assign(c=0)
    scores = evaluate(private, made, SCHEMA, formula="a ~ C(b)")
    return curator_report(scores, private, made, SCHEMA, tmp_path_factory.mktemp("out") / "curator")


def test_the_folder_and_its_files_are_the_owners_alone(page: Path) -> None:
    """0700 and 0600, every file."""
    assert stat.S_IMODE(page.parent.stat().st_mode) == 0o700
    assert {one.name: stat.S_IMODE(one.stat().st_mode) for one in page.parent.iterdir()} == {
        "CURATOR-ONLY.txt": 0o600,
        "curator.html": 0o600,
        "scores.json": 0o600,
    }


def test_every_file_says_whose_it_is(page: Path) -> None:
    """The watermark is in the page, in the numbers and in the note."""
    assert WATERMARK in page.read_text(encoding="utf-8")
    assert json.loads((page.parent / "scores.json").read_text())["curator_only"] == WATERMARK
    assert (page.parent / "CURATOR-ONLY.txt").read_text().strip() == WATERMARK


def test_the_worst_comes_first(page: Path) -> None:
    """Column c, then the pairs and triples that hold it."""
    text = page.read_text(encoding="utf-8")
    charts = re.findall(r"<figcaption>(\w): TVD", text)
    pairs = re.findall(r"<h3>(\w) × (\w): TVD", text)
    assert charts[0] == "c"
    assert ["c" in pair for pair in pairs] == [True, True, False]


def test_a_named_model_adds_its_assessment(page: Path) -> None:
    """The section, the stacked bar and both sides' estimates."""
    text = page.read_text(encoding="utf-8")
    assert "Sign and significance" in text
    assert "C(b)[T.1]" in text


def test_neither_report_is_written_beside_the_other(page: Path, tmp_path: Path) -> None:
    """Whichever comes second is refused."""
    release = Release.from_tables(
        {(name,): np.ones(size) for name, size in zip(SCHEMA.attrs, SCHEMA.shape, strict=True)},
        SCHEMA,
        scale=1.0,
    )
    with pytest.raises(NotPrivate, match="curator only"):
        report(release, rows(1), page.parent / "about.html", rows_from="invented")
    report(release, rows(1), tmp_path / "about.html", rows_from="invented")
    with pytest.raises(NotPrivate, match=r"about.html, which is publishable"):
        curator_report(evaluate(rows(0), rows(1), SCHEMA), rows(0), rows(1), SCHEMA, tmp_path)
