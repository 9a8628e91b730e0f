"""The command and the page, from invented scores."""

import json
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from invented_run import files_below, install

import experiments.paper.__main__
from dpcipher.errors import MissingExtra
from experiments.paper import bankruptcy, bankruptcy_data, figures, simulated
from experiments.paper.__main__ import Reproduction, main, reproduce
from experiments.paper.bankruptcy_data import VARIABLE
from experiments.paper.blocks import STAMP
from experiments.paper.judge import OPEN, STATUSES
from experiments.paper.stacks import LITERAL

pytest.importorskip("matplotlib")
pytest.importorskip("sklearn")


@pytest.fixture
def invented(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Invented blocks and rows; of every figure the first panel only (twenty take long)."""
    install(monkeypatch)
    for name in ("lines", "bars"):
        draw = getattr(figures, name)

        def first_panel(path: Path, frame: pd.DataFrame, draw: object = draw, **options: object) -> None:
            here = frame[
                (frame["row"] == frame["row"].iloc[0]) & (frame["column"] == frame["column"].iloc[0])
            ]
            draw(path, here, **options)  # type: ignore[operator]

        monkeypatch.setattr(figures, name, first_panel)
    return monkeypatch


def run(folder: Path, reading: str = LITERAL) -> Reproduction:
    """A whole reproduction of invented blocks."""
    return reproduce("all", folder, repeats=3, second_repeats=2, reading=reading)


def test_the_page_regenerates_to_the_byte_from_stored_results(
    invented: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Page, figures and numbers; nothing is computed the second time."""
    run(tmp_path, "clipped")
    before = files_below(tmp_path)

    def refuse(*args: object) -> dict[str, np.ndarray]:
        raise AssertionError("a stored block was computed again")

    for module in (bankruptcy, simulated):
        invented.setattr(module, "run_block", refuse)
    run(tmp_path, "clipped")
    assert files_below(tmp_path) == before
    assert {"reproduction.md", "numbers.json", "reproduction/fig2-tvd.svg"} <= set(before)


def test_the_page_holds_every_sentence_and_every_picture(
    invented: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A row with its rule for each; no picture that is not shown, none missing; the stamp is on the page and on no picture; few repeats decide little."""
    done = run(tmp_path)
    measured = [v for v in done.verdicts if v.claim.key.startswith(("best", "linf", "rmse", "odds"))]
    assert OPEN in {finding.outcome for v in measured for finding in v.findings.values()}
    page = done.page.read_text()
    assert all(
        text.replace("|", "\\|").replace("%", " %").replace("  %", " %") in page
        for v in done.verdicts
        for text in (v.claim.says, v.claim.where, v.claim.words)
    )
    assert "**3 repeats** of experiment 1" in page
    assert STAMP in page
    drawn = {path.name for path in (tmp_path / "reproduction").glob("*.svg")}
    assert set(re.findall(r"\]\(reproduction/([^)]+)\)", page)) == drawn
    for name in drawn:
        text = (tmp_path / "reproduction" / name).read_text()
        assert ET.fromstring(text).tag.endswith("svg")
        assert STAMP not in text


def test_every_figure_has_its_panels_and_methods(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The frames behind the pictures: rows, columns, lines in a panel and places of a line."""
    install(monkeypatch)
    frames: dict[str, pd.DataFrame] = {}
    for name in ("lines", "bars"):
        monkeypatch.setattr(figures, name, lambda path, frame, **options: frames.update({path.stem: frame}))
    run(tmp_path, "clipped")

    def size(name: str) -> tuple[int, ...]:
        return tuple(frames[name][key].nunique() for key in ("row", "column", "method", "x"))

    assert size("fig1-storage") == (2, 3, 5, 9)
    assert size("fig2-tvd") == (5, 3, 5, 5)
    assert size("fig2-tvd-normalised") == (4, 3, 5, 5)
    assert size("fig3-linf") == size("fig3-linf-normalised") == (4, 2, 5, 5)
    assert size("fig4-inference-n200") == size("fig4-inference-3way-n200") == (4, 5, 6, 10)
    assert size("fig4-binary-n200") == (4, 5, 6, 6)
    assert size("fig5-sss") == (2, 7, 7, 5)
    assert size("fig6-log-odds") == (2, 3, 6, 5)
    assert size("readings") == (1, 2, 3, 5)
    assert size("random") == (1, 4, 4, 5)
    assert size("rivals-tvd") == (2, 5, 4, 5)
    assert size("fig7-sss") == (2, 10, 10, 5)
    assert size("table2-svm")[1:] == (3, 6, 5)
    plain, normal = (frames[f"fig4-inference-n200{end}"] for end in ("", "-normalised"))
    for metric, factor in (("rmse", 20 / 36), ("coverage", 1.0)):
        here = (plain["row"] == metric) & (plain["method"] == "CIPHER")
        np.testing.assert_allclose(normal[here]["mean"], factor * plain[here]["mean"])


def test_shortened_figures_keep_the_numbers_people_read(tmp_path: Path) -> None:
    """Coordinates lose digits, tick labels do not; both axes have names."""
    panel = {"row": "", "column": "", "title": "t", "y": "TVD", "method": "FDH"}
    frame = pd.DataFrame([{**panel, "x": "a", "mean": 0.02}, {**panel, "x": "b", "mean": 0.08}])
    figures.lines(tmp_path / "a.svg", frame)
    text = (tmp_path / "a.svg").read_text()
    assert ">0.04<" in text
    assert ">TVD<" in text
    assert ">ε<" in text
    assert re.findall(r'x="\d+\.\d"', text)
    assert not re.findall(r'x="\d+\.\d\d+"', text)


def test_the_command_reproduces_storage(tmp_path: Path) -> None:
    """Figure, numbers and page; the same bytes when run again."""
    command = ["storage", "-o", str(tmp_path), "--json"]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["stamp"] == STAMP
    assert {claim["verdict"] for claim in told["claims"]} <= set(STATUSES)
    before = files_below(tmp_path)
    assert CliRunner().invoke(main, command).exit_code == 0
    assert files_below(tmp_path) == before
    assert json.loads((tmp_path / "numbers.json").read_text())["stamp"] == STAMP


def test_experiment2_without_data_is_refused_and_all_goes_on_without_it(
    invented: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A clear message, exit code 1; `all` says that it leaves the second experiment out."""
    invented.setattr(experiments.paper.__main__, "load", bankruptcy_data.load)
    invented.delenv(VARIABLE, raising=False)
    result = CliRunner().invoke(main, ["experiment2", "-o", str(tmp_path)])
    assert result.exit_code == 1
    assert "UCI" in result.output
    said: list[str] = []
    done = reproduce("all", tmp_path, repeats=1, second_repeats=1, reading=LITERAL, say=said.append)
    assert any("left out" in line for line in said)
    assert "Experiment 2" not in done.page.read_text()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["everything"], 2),
        (["storage", "--repeats", "0"], 2),
        (["storage", "--second-repeats", "0"], 2),
        (["storage", "--reading", "loose"], 1),
    ],
)
def test_wrong_usage_is_refused(arguments: list[str], code: int, tmp_path: Path) -> None:
    """Exit code 2 for a word, 1 for a value."""
    assert CliRunner().invoke(main, [*arguments, "-o", str(tmp_path)]).exit_code == code


def test_without_matplotlib_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before any work."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtra, match=r"dpcipher\[experiments\]"):
        reproduce("storage", tmp_path, repeats=1, second_repeats=1, reading=LITERAL)
