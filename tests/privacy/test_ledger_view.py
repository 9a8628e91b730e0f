"""What a person asks of a ledger: how many more releases like the last one fit, and which were made."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner

import dpcipher as dc
from dpcipher.cli import main
from dpcipher.errors import LedgerExceeded
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.ledger import Ledger
from dpcipher.privacy.terms import Unit

SCHEMA = dc.Schema.from_domain({"smokes": 2, "ill": 2})
PEOPLE = pd.DataFrame({"smokes": [0, 1] * 50, "ill": [0, 0, 1, 1] * 25})
UNIT = Unit("add-remove")
LIMITS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"epsilon": 6, "delta": 1e-6}, {"epsilon": 3, "delta": 1e-6}),
    ({"epsilon": 6, "delta": 1e-6}, {"epsilon": 2}),
    ({"epsilon": 2}, {"epsilon": 0.3}),
    ({"rho": 1}, {"rho": 0.3}),
    ({"rho": 1}, {"epsilon": 0.5}),
    ({"epsilon": 1, "delta": 1e-6}, {"epsilon": 1, "delta": 1e-6}),
]


def shown(path: Path, *more: str) -> str:
    """What `ledger show` prints."""
    done = CliRunner().invoke(main, ["ledger", "show", str(path), *more])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize(("limit", "asked"), LIMITS)
def test_as_many_more_fit_as_it_says(limit: dict[str, Any], asked: dict[str, Any], tmp_path: Path) -> None:
    """After each charge, in JSON, text and card: charged one by one, exactly so many are granted and the next is refused."""
    path = tmp_path / "p.ledger"
    ledger, cost = Ledger.create(path, **limit, unit="add-remove"), Budget.parse(**asked).composable()
    assert json.loads(shown(path, "--json"))["more_like_last"] is None
    said, granted, refusal = [], 0, ""
    while not refusal:
        try:
            ledger.charge(cost, unit=UNIT, what={})
        except LedgerExceeded as refused:
            refusal = str(refused)
            continue
        granted += 1
        said.append(json.loads(shown(path, "--json"))["more_like_last"])
        assert f"Fits     {said[-1] or 'none'} more like the last one" in shown(path)
        assert f"would fit {said[-1] or 'none'} more like the last one" in repr(ledger)
    assert said == list(range(granted - 1, -1, -1))
    assert granted > 0
    assert "none more like the last one" in refusal


def test_what_is_left_is_said_in_the_terms_of_the_limit(tmp_path: Path) -> None:
    """Limit 6, one release of 3: the epsilon that is said to be left is granted with the delta of the limit, and a hundredth more is not."""
    ledger = Ledger.create(tmp_path / "p.ledger", epsilon=6, delta=1e-6, unit="add-remove")
    assert "one more of epsilon = 6, delta = 1e-06" in shown(ledger.path)
    ledger.charge(Budget.parse(epsilon=3, delta=1e-6).composable(), unit=UNIT, what={})
    text = shown(ledger.path)
    left = Fraction(text.split("one more of epsilon = ")[1].split(",")[0])
    assert 3 < left < 6
    with pytest.raises(LedgerExceeded):
        ledger.check(
            Budget(epsilon=left * Fraction(101, 100), delta=Fraction(1, 10**6)).composable(), unit=UNIT
        )
    ledger.check(Budget(epsilon=left, delta=Fraction(1, 10**6)).composable(), unit=UNIT)
    assert "add up as rho" in text
    assert "add up as rho" in ledger._repr_html_()
    pure = Ledger.create(tmp_path / "q.ledger", epsilon=6, unit="add-remove")
    assert "add up as rho" not in shown(pure.path)


def test_entries_have_the_budget_the_file_and_the_label(tmp_path: Path) -> None:
    """As they were asked for, by the name alone; the folder stays private. Without a file or a label there is none."""
    path, file = tmp_path / "p.ledger", tmp_path / "secret-folder" / "spring.parquet"
    file.parent.mkdir()
    Ledger.create(path, epsilon=6, delta=1e-6, unit="add-remove")
    promise: dict[str, Any] = {"unit": "add-remove", "ledger": path}
    dc.measure(PEOPLE, SCHEMA, epsilon=3, delta=1e-6, save=file, label="for the health office", **promise)
    dc.measure(PEOPLE, SCHEMA, epsilon=1, delta=1e-6, **promise)
    first, second = (line for line in shown(path).splitlines() if line.startswith("  "))
    assert "epsilon = 3, delta = 1e-06  released as spring.parquet  for the health office" in first
    assert second.endswith("epsilon = 1, delta = 1e-06  released")
    one, two = json.loads(shown(path, "--json"))["entries"]
    assert (one["file"], one["label"]) == ("spring.parquet", "for the health office")
    assert (two["file"], two["label"]) == ("", "")
    card = Ledger.open(path)._repr_html_()
    assert "released as spring.parquet" in card
    assert "for the health office" in card
    assert b"secret-folder" not in path.read_bytes()


def test_the_label_is_an_option_of_measure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the command line."""
    monkeypatch.chdir(tmp_path)
    PEOPLE.to_csv("people.csv", index=False)
    SCHEMA.save("people.yaml")
    words = "measure people.csv people.yaml --epsilon 1 --unit add-remove --max-rows 1 --ledger p.ledger --create -o r.parquet --label spring"
    done = CliRunner().invoke(main, words.split())
    assert done.exit_code == 0, done.output
    assert "released as r.parquet  spring" in shown(Path("p.ledger"))
