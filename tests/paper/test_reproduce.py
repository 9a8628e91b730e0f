"""The command, the rules behind the verdicts, and the page, from invented numbers."""

import json
import re
import sys
import xml.etree.ElementTree as ET
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from dpcipher.cli import main
from dpcipher.errors import MissingExtra, ParameterError
from dpcipher.inference.sss import CATEGORIES
from dpcipher.paper import figures, reproduce
from dpcipher.paper.bankruptcy import CONTENDERS as SECOND
from dpcipher.paper.bankruptcy import SETS
from dpcipher.paper.bankruptcy_data import VARIABLE
from dpcipher.paper.blocks import STAMP
from dpcipher.paper.claims import CONFIRMED, REFUTED, VERDICTS, Claim
from dpcipher.paper.claims_bankruptcy import bankruptcy_claims
from dpcipher.paper.claims_models import model_claims
from dpcipher.paper.claims_tables import table_claims
from dpcipher.paper.contenders import CIPHER_2, CONTENDERS, FDH, RIDGES
from dpcipher.paper.figures import Line, Panel, draw_panels
from dpcipher.paper.page import write_page
from dpcipher.paper.simulated import POWERS, SIZES
from dpcipher.paper.summary import (
    BankruptcyCard,
    BankruptcySummary,
    Inference,
    SimulatedCard,
    SimulatedSummary,
)

pytest.importorskip("matplotlib")


def inference(size: int, coverage: float = 0.95) -> Inference:
    """A regression with flat scores."""
    shares = dict.fromkeys(CATEGORIES, 0.0) | {"Best": 0.7, "II+": 0.3}
    return Inference(
        np.full(size, 0.1), np.full(size, 0.5), np.full(size, coverage), np.ones(size), shares, 0.0
    )


def first(tvd: dict[str, float], coverage: float = 0.95) -> SimulatedSummary:
    """A first experiment in which each method has one TVD everywhere."""

    def card(name: str) -> SimulatedCard:
        value = tvd.get(name, 0.5)
        three, two = np.full(3, value), np.full(2, value)
        return SimulatedCard(
            three, three / 9, two, two / 9, three, 0.1, (inference(10, coverage), inference(6, coverage))
        )

    names = [one.name for one in (*CONTENDERS, *RIDGES)]
    cards = {(n, power, name): card(name) for n, power, name in product(SIZES, POWERS, names)}
    oracle = {key: (4, card.tvd) for key, card in cards.items()}
    random = {(power, name): np.full((20, 3), tvd.get(name, 0.5)) for power, name in product(POWERS, names)}
    return SimulatedSummary(10, cards, {n: (inference(10), inference(6)) for n in SIZES}, oracle, random)


def second(accuracy: dict[str, float]) -> BankruptcySummary:
    """A second experiment in which each method has one accuracy everywhere."""
    shares = dict.fromkeys(CATEGORIES, 0.0) | {"Best": 1.0}
    cards = {
        (sets, power, one.name): BankruptcyCard(accuracy.get(one.name, 0.5), 0.1, 0.5, shares, 0.0)
        for sets, power, one in product(SETS, POWERS, SECOND)
    }
    return BankruptcySummary(10, cards, 0.98, 0.57)


def verdict(claims: list[Claim], words: str) -> str:
    """The verdict on the one claim with these words."""
    (found,) = [claim.verdict for claim in claims if words in claim.says]
    return found


def test_the_rule_for_the_best_tvd_follows_the_numbers() -> None:
    """A planted winner is confirmed; without it the claim is not, and the cost alone cannot hide a factor of two."""
    good = table_claims(first({CIPHER_2.name: 0.1, FDH.name: 0.2}))
    bad = table_claims(first({CIPHER_2.name: 0.4, FDH.name: 0.2}))
    for words in ("best TVD overall", "especially for small"):
        assert (verdict(good, words), verdict(bad, words)) == (CONFIRMED, REFUTED)


def test_the_rule_for_coverage_follows_the_numbers() -> None:
    """Near-nominal at .95, not at .7."""
    words = "cover near-nominally"
    assert verdict(model_claims(first({})), words) == CONFIRMED
    assert verdict(model_claims(first({}, coverage=0.7)), words) == REFUTED


def test_the_rule_for_prediction_follows_the_numbers() -> None:
    """CIPHER wins only where it has the best accuracy."""
    words = "CIPHER predicts best"
    assert verdict(bankruptcy_claims(second({"CIPHER": 0.9, "FDH": 0.6})), words) == CONFIRMED
    assert verdict(bankruptcy_claims(second({"CIPHER": 0.6, "FDH": 0.9})), words) == REFUTED


def test_a_verdict_is_one_of_three() -> None:
    """Checked at birth."""
    with pytest.raises(ParameterError, match="verdict"):
        Claim("a", "b", "c", "perhaps")


def test_the_page_holds_every_claim_and_every_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One row for each claim, and no figure that was not drawn (of each the first panel only: twenty take long)."""
    monkeypatch.setattr(figures, "draw_panels", lambda path, panels: draw_panels(path, [panels[0][:1]]))
    one, two = first({}), second({})
    figures.draw_storage(tmp_path / "fig1-storage.svg")
    figures.draw_simulated(tmp_path, one)
    figures.draw_bankruptcy(tmp_path, two)
    claims = (*table_claims(one), *model_claims(one), *bankruptcy_claims(two))
    page = write_page(tmp_path, claims, storage=True, first=one, second=two).read_text()
    assert all(claim.says in page and claim.where in page for claim in claims)
    assert page.count("**") == 2 * len(claims)
    assert STAMP in page
    drawn = {path.name for path in tmp_path.glob("*.svg")}
    shown = {part.split(")")[0].removeprefix("reproduction/") for part in page.split("](")[1:]}
    assert shown == drawn
    assert all(ET.parse(tmp_path / name).getroot().tag.endswith("svg") for name in drawn)
    assert all(STAMP in (tmp_path / name).read_text() for name in drawn)


def test_shortened_figures_keep_the_numbers_people_read(tmp_path: Path) -> None:
    """Coordinates lose digits, tick labels do not."""
    draw_panels(tmp_path / "a.svg", [[Panel("t", ["x", "y"], [Line("FDH", [0.02, 0.08])])]])
    text = (tmp_path / "a.svg").read_text()
    assert ">0.04<" in text
    assert re.findall(r'x="\d+\.\d"', text)
    assert not re.findall(r'x="\d+\.\d\d+"', text)


def test_the_command_reproduces_storage(tmp_path: Path) -> None:
    """Figure, numbers and page, all stamped; the same bytes when run again."""
    run = ["reproduce", "storage", "-o", str(tmp_path), "--json"]
    result = CliRunner().invoke(main, run)
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["stamp"] == STAMP
    assert {claim["verdict"] for claim in told["claims"]} <= set(VERDICTS)
    before = (tmp_path / "reproduction" / "fig1-storage.svg").read_bytes()
    assert CliRunner().invoke(main, run).exit_code == 0
    assert (tmp_path / "reproduction" / "fig1-storage.svg").read_bytes() == before
    assert json.loads((tmp_path / "numbers.json").read_text())["stamp"] == STAMP


def test_experiment2_without_data_is_refused_and_all_goes_on_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clear message, exit code 1; `all` says that it leaves the second experiment out."""
    monkeypatch.delenv(VARIABLE, raising=False)
    result = CliRunner().invoke(main, ["reproduce", "experiment2", "-o", str(tmp_path)])
    assert result.exit_code == 1
    assert "UCI" in result.output
    monkeypatch.setattr(reproduce, "_first", lambda *args: first({}))
    said: list[str] = []
    done = reproduce.reproduce("all", tmp_path, repeats=1, say=said.append)
    assert any("left out" in line for line in said)
    assert "Experiment 2" not in done.page.read_text()


@pytest.mark.parametrize(("arguments", "code"), [(["everything"], 2), (["storage", "--repeats", "0"], 1)])
def test_wrong_usage_is_refused(arguments: list[str], code: int, tmp_path: Path) -> None:
    """Exit code 2 for a word, 1 for a value."""
    result = CliRunner().invoke(main, ["reproduce", *arguments, "-o", str(tmp_path)])
    assert result.exit_code == code


def test_without_matplotlib_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before any work."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtra, match=r"dpcipher\[experiments\]"):
        reproduce.reproduce("storage", tmp_path)
