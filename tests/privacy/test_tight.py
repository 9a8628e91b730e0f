"""A neighbour costs the budget and no more: what is declared is needed, to the last part in a million."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import opendp.prelude as dp
import pandas as pd
import pytest

import dpcipher as dc
from tape import Run, rho_of, run

Rows = list[tuple[int, ...]]

SCHEMA = dc.Schema.from_domain({"a": 3, "b": 3, "c": 3})
ROWS: Rows = [(0, 0, 0)] * 100 + [(1, 1, 1)] * 100 + [(2, 2, 2)] * 100 + [(0, 1, 2)] * 9

ADD, REPLACE = {"unit": "add-remove"}, {"unit": "replace"}
SETTINGS: dict[str, dict[str, Any]] = {
    "pairs, pure": {"workload": 2, "epsilon": 1.0, **ADD},
    "pairs, pure, replaced": {"workload": 2, "epsilon": 1.0, **REPLACE},
    "columns, three rows a person": {"workload": 1, "epsilon": 0.7, "max_rows": 3, **ADD},
    "columns, three rows a person, replaced": {"workload": 1, "epsilon": 0.7, "max_rows": 3, **REPLACE},
    "pairs, delta": {"workload": 2, "epsilon": 1.0, "delta": 1e-6, **ADD},
    "pairs, delta, two rows a person, replaced": {
        "workload": 2, "epsilon": 3.0, "delta": 1e-9, "max_rows": 2, **REPLACE
    },
    "columns, rho, three rows a person": {"workload": 1, "rho": 0.5, "max_rows": 3, **ADD},
    "triples, rho, replaced": {"workload": 3, "rho": 0.1, **REPLACE},
    "weights in three sets, replaced": {
        "workload": [("a", "b"), ("c",)], "weights": {("a", "b"): 3.0, ("c",): 1.0}, "sets": 3, "epsilon": 2.0, **REPLACE
    },
    "chosen tables, pure": {"workload": dc.Auto(max_order=2, max_cells=20), "epsilon": 40.0, **ADD},
    "chosen tables, delta, two sets": {
        "workload": dc.Auto(max_order=2, max_cells=20), "epsilon": 40.0, "delta": 1e-6, "sets": 2, **ADD
    },
    "chosen tables, rho, two rows a person": {
        "workload": dc.Auto(max_order=2, max_cells=20), "rho": 20.0, "max_rows": 2, **ADD
    },
}  # fmt: skip


def neighbours(rows: Rows, call: dict[str, Any]) -> Iterator[Rows]:
    """Tables in which one person's rows come to a cell, or move there from another one, with which it may share a level or none."""
    times = call.get("max_rows", 1)
    cells = [(0, 0, 0), (1, 1, 1), (0, 1, 2), (1, 2, 0), (2, 0, 1), (2, 2, 1)]
    if call["unit"] == "add-remove":
        yield from (rows + [cell] * times for cell in cells)
        return
    for origin in [cell for cell, number in Counter(rows).items() if number >= times]:
        left = list((Counter(rows) - Counter({origin: times})).elements())
        yield from (left + [cell] * times for cell in cells if cell != origin)


def measured(rows: Rows, call: dict[str, Any], like: Run | None = None) -> Run:
    """A measurement on the tape."""
    return run(
        lambda table, progress: dc.measure(table, SCHEMA, progress=progress, **call),
        pd.DataFrame(rows, columns=list("abc")),
        like=like,
    )


def budget(call: dict[str, Any]) -> float:
    """The amount that adds up: epsilon of a pure budget, rho otherwise, by an independent conversion."""
    if "rho" in call:
        return float(call["rho"])
    return rho_of(call["epsilon"], call["delta"]) if "delta" in call else float(call["epsilon"])


def worst(call: dict[str, Any]) -> float:
    """The cost of all answers together on the worst neighbour, in budgets."""
    here, pure = measured(ROWS, call), "rho" not in call and "delta" not in call
    assert here.error is None
    assert here.questions
    others = (measured(other, call, here) for other in neighbours(ROWS, call))
    return max(sum(here.costs(other, pure=pure)) for other in others) / budget(call)


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_neighbour_costs_the_budget_and_no_more(setting: str) -> None:
    """Recorded on a table, replayed on all its neighbours: the worst of them needs all of the noise that is paid for."""
    assert worst(SETTINGS[setting]) == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "setting", "factor"),
    [
        ("make_laplace", "pairs, pure", 2.0),
        ("make_laplace", "pairs, pure, replaced", 2.0),
        ("make_gaussian", "columns, rho, three rows a person", 4.0),
    ],
)
def test_half_of_the_scale_is_seen(
    name: str, setting: str, factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Noise of half the scale costs twice the epsilon, or four times the rho."""
    real = getattr(dp.m, name)
    monkeypatch.setattr(dp.m, name, lambda *given, scale, **options: real(*given, scale=scale / 2, **options))
    # A budget of its own, so that no measurement of before is remembered, and none of these later.
    own = {
        key: value * 1.0009765625 if key in ("epsilon", "rho") else value
        for key, value in SETTINGS[setting].items()
    }
    assert worst(own) == pytest.approx(factor, rel=1e-6)


def test_a_forgotten_replacement_is_seen() -> None:
    """A replaced row moves two cells: at the noise for rows that come or go it costs twice the budget."""
    call = {**SETTINGS["pairs, pure"], "epsilon": 1.25}
    here = measured(ROWS, call)
    others = (measured(other, call, here) for other in neighbours(ROWS, {**call, **REPLACE}))
    assert max(sum(here.costs(other, pure=True)) for other in others) == pytest.approx(2 * 1.25, rel=1e-6)
