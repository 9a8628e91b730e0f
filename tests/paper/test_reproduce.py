"""The command, the rules behind the verdicts, and the page, from invented scores."""

import json
import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from invented_run import install, invented_rows, rows_of

from dpcipher.errors import MissingExtra, ParameterError
from experiments.paper import bankruptcy, figures, plotting, reproduce, simulated, summary
from experiments.paper.__main__ import main
from experiments.paper.bankruptcy_data import VARIABLE
from experiments.paper.blocks import STAMP
from experiments.paper.claims import (
    CONDITIONAL,
    CONFIRMED,
    FAILS,
    HOLDS,
    OPEN,
    REFUTED,
    STATUSES,
    Claim,
    Condition,
    Finding,
    Margins,
    Verdict,
    every,
    judge,
)
from experiments.paper.plotting import Line, Panel, draw_panels
from experiments.paper.readings import LITERAL, SWEPT, chosen
from experiments.paper.replicates import exactly, replicated_mean, standard_error
from experiments.paper.reproduce import Reproduction
from experiments.paper.verdicts import CLAIMS, counts, verdict_table
from experiments.paper.view import View

pytest.importorskip("matplotlib")
pytest.importorskip("sklearn")


@pytest.fixture
def invented(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Invented blocks and rows; of every figure the first panel only (twenty take long)."""
    install(monkeypatch)
    for module in (bankruptcy, summary, reproduce):
        monkeypatch.setattr(module, "load", lambda data: invented_rows())
    monkeypatch.setattr(figures, "draw_panels", lambda path, panels: draw_panels(path, [panels[0][:1]]))
    monkeypatch.setattr(figures, "draw_bars", lambda path, bars: plotting.draw_bars(path, [bars[0][:1]]))
    return monkeypatch


def run(folder: Path, reading: str = LITERAL) -> Reproduction:
    """A whole reproduction of invented blocks."""
    return reproduce.reproduce("all", folder, repeats=3, second_repeats=2, reading=reading, workers=1)


def judged(claims: Sequence[Claim], folder: Path, reading: str = LITERAL) -> list[Verdict]:
    """The verdicts on some claims from both experiments, without page and figures."""
    readings = chosen(reading)
    quiet = {"readings": readings, "workers": 1, "say": lambda text: None}
    simulated.run(folder, repeats=20, **quiet)
    bankruptcy.run(folder, data=None, repeats=20, **quiet)
    first = summary.summarise_simulated(folder, 20, readings)
    second = summary.summarise_bankruptcy(folder, 20, readings, None)
    return [judge(claim, lambda where: View(where, first, second), readings) for claim in claims]


def outcomes(verdict: Verdict, reading: str = LITERAL) -> set[str]:
    """What was found under one reading, in all columns."""
    return {finding.outcome for where, finding in verdict.findings.items() if where.reading == reading}


def test_every_sentence_has_a_key_a_rule_and_a_place() -> None:
    """Keys are unique; what depends on a choice says so by its name."""
    claims = [claim for part in CLAIMS.values() for claim in part]
    assert len({claim.key for claim in claims}) == len(claims) > 70
    assert all(claim.says and claim.where and claim.rule for claim in claims)
    assert {name for claim in claims for name in claim.over} == {"reading", "mwem", "sets", "costs"}


def test_planted_numbers_flip_the_verdicts_they_are_about(
    invented: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """CIPHER 2-way with a hundredth of its TVD wins everywhere, with a hundred times nowhere; so with its accuracy; a reading that differs is named."""
    keys = ("best-tvd", "best-tvd-small", "mwem-tvd", "fdh-tvd", "tvd-large", "svm-cipher")
    claims = [claim for part in CLAIMS.values() for claim in part if claim.key in keys]
    found = {}
    for name, tvd, accuracy in (("good", 0.01, 3.0), ("bad", 100.0, 0.1)):
        install(invented, {"CIPHER 2-way/tvd": tvd, "CIPHER/accuracy": accuracy})
        found[name] = judged(claims, tmp_path / name, "clipped")
    assert all(outcomes(verdict) == {HOLDS} for verdict in found["good"])
    assert all(outcomes(verdict) == {FAILS} for verdict in found["bad"])
    flipped = [verdict for verdict in found["good"] if outcomes(verdict, "clipped") != {HOLDS}]
    assert flipped
    assert all(verdict.flips == ["clipped"] and verdict.status == CONDITIONAL for verdict in flipped)


def test_the_page_regenerates_to_the_byte_from_stored_results(
    invented: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Page, figures, small plots and numbers; nothing is computed the second time."""
    run(tmp_path, "clipped")
    before = rows_of(tmp_path)

    def refuse(*args: object) -> dict[str, np.ndarray]:
        raise AssertionError("a stored block was computed again")

    for module in (bankruptcy, simulated):
        invented.setattr(module, "run_block", refuse)
    run(tmp_path, "clipped")
    assert rows_of(tmp_path) == before
    assert {"reproduction.md", "numbers.json", "reproduction/fig2-tvd.svg"} <= set(before)


def test_the_page_holds_every_sentence_and_every_picture(
    invented: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A row and a rule for each; no picture that is not shown, none missing; the stamp is on the page and on no picture; few repeats decide little."""
    done = run(tmp_path)
    measured = [v for v in done.verdicts if v.claim.key.startswith(("best", "linf", "rmse", "odds"))]
    assert OPEN in {finding.outcome for v in measured for finding in v.findings.values()}
    page = done.page.read_text()
    assert all(
        text.replace("|", "\\|").replace("%", " %").replace("  %", " %") in page
        for v in done.verdicts
        for text in (v.claim.says, v.claim.where, v.claim.rule)
    )
    assert "**3 repeats** of experiment 1" in page
    assert STAMP in page
    drawn = {path.name for path in (tmp_path / "reproduction").glob("*.svg")}
    assert set(re.findall(r"\]\(reproduction/([^)]+)\)", page)) == drawn
    for name in drawn:
        text = (tmp_path / "reproduction" / name).read_text()
        assert ET.fromstring(text).tag.endswith("svg")
        assert STAMP not in text


def test_margins_have_three_answers() -> None:
    """Surely, surely not, and too close; one sure failure refutes a claim about all, one success proves a claim about some."""
    rng = np.random.default_rng(2)
    gaps = replicated_mean(np.array([1.0, -1.0, 0.0]) + 0.1 * rng.standard_normal((200, 3)))
    mixed = Margins(gaps)
    assert mixed.marks.tolist() == [1, -1, 0]
    assert (mixed.everywhere(), mixed.somewhere()) == (FAILS, HOLDS)
    assert Margins(gaps[:, [0, 2]]).everywhere() == OPEN
    assert (mixed.more_than(0.3), mixed.more_than(0.5), mixed.more_than(0.9)) == (HOLDS, OPEN, FAILS)
    assert every([HOLDS, OPEN]) == OPEN
    assert every([HOLDS, OPEN, FAILS]) == FAILS


def test_many_comparisons_at_once_rarely_refute_what_is_true() -> None:
    """A claim about 300 points that all hold by two standard errors on average is not refuted by chance (uncorrected: nearly always)."""
    rng = np.random.default_rng(3)
    refuted = [
        Margins(replicated_mean(0.02 + rng.standard_normal((200, 300)))).everywhere() == FAILS
        for _ in range(40)
    ]
    assert np.mean(refuted) < 0.2


def test_chance_alone_is_rarely_called_a_difference() -> None:
    """Where nothing differs, one comparison is called sure as often as two standard errors say, and so are thirty together."""
    rng = np.random.default_rng(0)
    for points in (1, 30):
        called = [np.any(Margins(replicated_mean(rng.normal(size=(200, points)))).marks) for _ in range(600)]
        assert 0.015 < np.mean(called) < 0.08


def test_the_jackknife_equals_leaving_groups_out_by_hand() -> None:
    """The error of a ratio of means, group by group; of a mean it is the usual one."""
    rng = np.random.default_rng(2)
    a, b = rng.normal(3, 1, 120), rng.normal(2, 1, 120)
    ratio = replicated_mean(a) / replicated_mean(b)
    left = [np.delete(a, np.s_[g::50]).mean() / np.delete(b, np.s_[g::50]).mean() for g in range(50)]
    by_hand = np.sqrt(49 / 50 * np.sum((np.array(left) - np.mean(left)) ** 2))
    assert ratio[0] == pytest.approx(a.mean() / b.mean())
    assert float(standard_error(ratio)) == pytest.approx(by_hand)
    many = rng.normal(size=4000)
    assert float(standard_error(replicated_mean(many))) == pytest.approx(many.std() / 4000**0.5, rel=0.4)


def fixed_claim(outcomes: dict[tuple[str, str], str]) -> Verdict:
    """A verdict with a given outcome for each reading and form of MWEM."""
    claim = Claim(
        "k",
        "s",
        "w",
        "r",
        lambda where: Finding(outcomes[where.reading, where["mwem"]], ""),
        ("reading", "mwem"),
    )
    readings = list(dict.fromkeys(reading for reading, _ in outcomes if reading != "ours"))
    return judge(claim, lambda where: where, readings)


@pytest.mark.parametrize(
    ("changed", "status", "flips"),
    [
        ({}, CONFIRMED, []),
        ({("clipped", "cells"): FAILS}, CONDITIONAL, ["clipped"]),
        ({(LITERAL, "tables"): FAILS}, CONDITIONAL, ["clipped"]),
        ({(LITERAL, "tables"): FAILS, ("clipped", "tables"): FAILS}, CONDITIONAL, []),
        ({(LITERAL, "tables"): OPEN, (LITERAL, "cells"): OPEN}, OPEN, ["clipped"]),
    ],
)
def test_a_confirmation_is_unconditional_only_under_every_condition(
    changed: dict[tuple[str, str], str], status: str, flips: list[str]
) -> None:
    """Readings that flip a verdict are named; a column that differs makes it conditional."""
    names = [(reading, form) for reading in (LITERAL, "clipped", "ours") for form in ("cells", "tables")]
    one = fixed_claim(dict.fromkeys(names, HOLDS) | changed)
    assert (one.status, one.flips) == (status, flips)
    assert sum(counts([one]).values()) == 1


def test_nothing_that_holds_is_refuted_or_open() -> None:
    """All outcomes alike give the status of that name."""
    names = [(reading, form) for reading in (LITERAL, "ours") for form in ("cells", "tables")]
    assert fixed_claim(dict.fromkeys(names, FAILS)).status == REFUTED
    assert fixed_claim(dict.fromkeys(names, OPEN)).status == OPEN
    assert next(iter(fixed_claim(dict.fromkeys(names, OPEN)).findings)) == Condition(
        LITERAL, (("mwem", "cells"),)
    )


def test_exact_values_have_no_error() -> None:
    """A margin of 0 without any error holds."""
    assert Margins(exactly(np.array([0.0, 1.0]))).everywhere() == HOLDS
    assert Margins(exactly(np.array([-0.1]))).everywhere() == FAILS


def test_shortened_figures_keep_the_numbers_people_read(tmp_path: Path) -> None:
    """Coordinates lose digits, tick labels do not; both axes have names."""
    draw_panels(tmp_path / "a.svg", [[Panel("t", ["x", "y"], [Line("FDH", [0.02, 0.08])], y="TVD")]])
    text = (tmp_path / "a.svg").read_text()
    assert ">0.04<" in text
    assert ">TVD<" in text
    assert ">ε<" in text
    assert re.findall(r'x="\d+\.\d"', text)
    assert not re.findall(r'x="\d+\.\d\d+"', text)


def test_readings_are_chosen_by_name() -> None:
    """The literal one is always there, and first."""
    assert chosen("literal") == ("literal",)
    assert chosen("all") == tuple(SWEPT)
    assert chosen(["clipped", "guarded"]) == ("literal", "guarded", "clipped")
    assert next(iter(SWEPT)) == LITERAL
    with pytest.raises(ParameterError, match="did you mean"):
        chosen("cliped")


def test_the_command_reproduces_storage(tmp_path: Path) -> None:
    """Figure, numbers and page; the same bytes when run again."""
    command = ["storage", "-o", str(tmp_path), "--json"]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["stamp"] == STAMP
    assert {claim["verdict"] for claim in told["claims"]} <= set(STATUSES)
    before = rows_of(tmp_path)
    assert CliRunner().invoke(main, command).exit_code == 0
    assert rows_of(tmp_path) == before
    assert json.loads((tmp_path / "numbers.json").read_text())["stamp"] == STAMP


def test_experiment2_without_data_is_refused_and_all_goes_on_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clear message, exit code 1; `all` says that it leaves the second experiment out."""
    monkeypatch.delenv(VARIABLE, raising=False)
    result = CliRunner().invoke(main, ["experiment2", "-o", str(tmp_path)])
    assert result.exit_code == 1
    assert "UCI" in result.output
    monkeypatch.setattr(reproduce, "_first", lambda *args: None)
    said: list[str] = []
    done = reproduce.reproduce("all", tmp_path, repeats=1, say=said.append)
    assert any("left out" in line for line in said)
    assert "Experiment 2" not in done.page.read_text()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["everything"], 2),
        (["storage", "--repeats", "0"], 1),
        (["storage", "--second-repeats", "0"], 1),
        (["storage", "--reading", "loose"], 1),
    ],
)
def test_wrong_usage_is_refused(arguments: list[str], code: int, tmp_path: Path) -> None:
    """Exit code 2 for a word, 1 for a value."""
    result = CliRunner().invoke(main, [*arguments, "-o", str(tmp_path)])
    assert result.exit_code == code


def test_without_matplotlib_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before any work."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtra, match=r"dpcipher\[experiments\]"):
        reproduce.reproduce("storage", tmp_path)


def test_readings_are_counted_column_by_column(tmp_path: Path) -> None:
    """A sentence that holds for one form of MWEM under another reading says so there, and nothing of the other form."""
    claim = Claim(
        "key", "it is so", "3.1", "it must be", lambda view: Finding(HOLDS, "1"), ("reading", "mwem")
    )
    outcomes = {
        (LITERAL, "cells"): FAILS,
        (LITERAL, "tables"): FAILS,
        ("guarded, clipped inputs", "cells"): HOLDS,
        ("guarded, clipped inputs", "tables"): FAILS,
    }
    findings = {
        Condition(reading, (("mwem", form),)): Finding(outcome, "1")
        for (reading, form), outcome in outcomes.items()
    }
    told = verdict_table([Verdict(claim, findings, {})], tmp_path, "pictures")
    assert "**confirmed only under other readings**" in told
    assert "*MWEM by cells* holds in 1 of 2; other than literal: `guarded, clipped inputs`" in told
    assert "*MWEM by tables* holds in 0 of 2; none differs" in told
