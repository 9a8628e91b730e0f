"""A plan of chosen tables says what the choice then does, as far as that can be known without data."""

import json
import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from dpcipher.curator.count import TableCounts
from dpcipher.curator.request import Terms
from dpcipher.curator.select import measure_chosen
from dpcipher.curator.session import Session
from dpcipher.planning.auto import AutoPlan
from dpcipher.planning.plan import Plan, plan
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.choose import Draws
from dpcipher.privacy.unit import Unit
from dpcipher.schema.schema import Schema
from dpcipher.selection.rounds import MAX_TVD
from dpcipher.selection.target import Auto, SelectionTarget

SHAPE = (4, 3, 3, 2, 5, 2)
SCHEMA = Schema.from_domain({f"c{axis}": size for axis, size in enumerate(SHAPE)})
REPLACE = {"unit": "replace"}  # the number of rows is public, so that plan and choice start from the same


def make(schema: Schema = SCHEMA, **changes: Any) -> AutoPlan:
    """A plan of chosen tables, with some parameters changed."""
    choice = {
        name: changes.pop(name)
        for name in ("max_order", "max_cells", "target", "column_weights")
        if name in changes
    }
    said = {"epsilon": 1.0, "unit": "add-remove", "n_rows": 5000, **changes}
    return plan(schema, workload=Auto(**choice) if choice else "auto", **said)


def run(
    n_rows: int, *, dependent: bool = True, sets: int = 1, **budget: float
) -> tuple[dict[str, Any], Session]:
    """What a seeded run on invented rows notes about its choice, and the session it went through."""
    rng = np.random.default_rng(1)
    codes = np.stack([rng.integers(0, size, n_rows) for size in SHAPE], axis=1)
    if dependent:
        codes = np.stack([codes[:, 4] % size for size in SHAPE], axis=1)
    table = np.zeros(SHAPE, np.int64)
    np.add.at(table, tuple(codes.T), 1)
    session = Session(
        TableCounts(table),
        SCHEMA,
        Terms(Budget.parse(**budget), Unit("replace")),
        draws=Draws.seeded(2),
    )
    return measure_chosen(session, Auto(), sets=sets).note, session


@pytest.mark.parametrize(
    "budget", [{"epsilon": 1.0}, {"epsilon": 0.2}, {"rho": 0.005}, {"epsilon": 1, "delta": 1e-6}]
)
@pytest.mark.parametrize("n_rows", [300, 2_000, 7_000, 40_000])
def test_the_shortlist_and_the_shares_are_those_of_the_choice(n_rows: int, budget: dict[str, float]) -> None:
    """As many pairs are looked at as foreseen, with the foreseen shares, in the foreseen order."""
    foreseen = make(n_rows=n_rows, **REPLACE, **{"epsilon": None, **budget})
    _, session = run(n_rows, **budget)
    events = session.statement().certificate["events"]
    looked = [event for event in events if "tables" in event["what"]][: len(foreseen.steps) - 2]
    steps = foreseen.steps[1:-1]
    assert [event["share"] for event in looked] == [str(step.share) for step in steps]
    assert looked[-1]["what"] == f"distances of {steps[-1].tables} tables"
    assert len(steps) == (2 if steps[-1].tables < foreseen.pairs else 1)


@pytest.mark.parametrize("budget", [{"epsilon": 1.0}, {"rho": 0.5}])
def test_noise_is_what_a_session_draws(budget: dict[str, float]) -> None:
    """The deviation of one-way cells and of distances, against the scale that the accounting gives by hand."""
    foreseen = make(n_rows=100_000, **REPLACE, **{"epsilon": None, **budget})
    one_way, distances, tables = (step.sd for step in foreseen.steps)
    if (
        "rho" in budget
    ):  # sigma² = squared L2 distance / (2 rho), which is 2 for a table and 4 for each of 15 distances
        expected = [
            math.sqrt(2 / (2 * 0.5 / 120)),
            math.sqrt(15 * 4 / (2 * 0.5 / 20)),
            math.sqrt(2 / (2 * 0.5 * 0.9 / 15)),
        ]
    else:  # b = L1 distance / epsilon, which is 2 for either
        expected = [math.sqrt(2) * 2 * 120, math.sqrt(2) * 2 * 15 * 20, math.sqrt(2) * 2 * 15 / 0.9]
    assert [one_way, distances, tables] == pytest.approx(expected, rel=1e-3)


def test_from_the_stated_rows_on_every_pair_is_looked_at() -> None:
    """One row fewer, and a shortlist is foreseen; the same is stated with and without a number of rows."""
    for budget in ({"epsilon": 1.0}, {"epsilon": 0.5, "delta": 1e-6}):
        clear = make(**budget).clear_rows
        assert [len(make(n_rows=rows, **budget).steps) for rows in (clear, clear - 1)] == [3, 4]
        assert make(n_rows=None, **budget).clear_rows == clear


def test_the_second_round_is_held_where_it_was_foreseen() -> None:
    """Pairs that determine one another are far from independence, independent ones near; the bound lies between."""
    foreseen = make(n_rows=200_000, **REPLACE)
    assert foreseen.second_tvd is not None
    assert 0.005 < foreseen.second_tvd < 0.2
    assert run(200_000, epsilon=1.0)[0]["rounds"] == 2
    assert run(200_000, epsilon=1.0, dependent=False)[0]["rounds"] == 1
    assert run(200_000, epsilon=1.0, sets=2)[0]["rounds"] == 1
    assert make(n_rows=200_000, sets=2).triples == 0
    coarse, fine = (Schema.from_domain({f"c{axis}": levels for axis in range(6)}) for levels in (3, 8))
    assert "Triples  1/5 of the budget is kept for a second round" in str(make(coarse, n_rows=2_000))
    assert "Triples  none" in str(make(fine, n_rows=2_000))


@pytest.mark.parametrize(
    ("auto", "pairs"),
    [
        (Auto(), 15),
        (Auto(max_cells=12), 12),
        (Auto(target=2), 15),
        (Auto(target=4, column_weights={"c0": 0.0, "c1": 0.0}), 6),
        (Auto(target=[("c0", "c1", "c2"), ("c2", "c3", "c4", "c5")]), 9),
        (Auto(column_weights={"c0": 0.0, "c1": 0.0, "c2": 2.0}), 6),
    ],
)
def test_candidates_are_counted_as_listed(auto: Auto, pairs: int) -> None:
    """The short way to count triples agrees with the list of them."""
    target = auto.on(SCHEMA)
    assert target.count_triples() == sum(1 for _ in target.tables(3))
    assert sum(1 for _ in target.tables(2)) == pairs


def test_triples_of_columns_of_any_size_are_counted() -> None:
    """Against all triples of random shapes; a column of one level is no candidate."""
    rng = np.random.default_rng(0)
    for _ in range(30):
        shape = tuple(int(size) for size in rng.integers(1, 9, 8))
        target = SelectionTarget(shape, (1.0,) * 8, 3, int(rng.integers(8, 200)), 3)
        small = [t for t in combinations(shape, 3) if min(t) > 1 and math.prod(t) <= target.max_cells]
        assert target.count_triples() == len(small)


def test_the_advice_follows_the_noise_of_all_pairs() -> None:
    """Its TVD is the mean of what a plan of all pairs foresees; few rows make choosing pay, many make it a matter of taste."""
    given = plan(SCHEMA, epsilon=1.0, unit="add-remove", n_rows=5000)
    assert isinstance(given, Plan)
    assert make().all_pairs_tvd == pytest.approx(np.mean([table.tvd for table in given.tables]), rel=2e-3)
    few, some = make(n_rows=150), make(n_rows=2_000)
    assert (few.all_pairs_tvd or 0) > MAX_TVD > (some.all_pairs_tvd or 0)
    assert few.advice.startswith("choose")
    assert some.advice.startswith("either will do: all pairs (workload=2)")
    assert "list the pairs" in make(max_cells=12, n_rows=2_000).advice
    assert "fewer than about" in make(n_rows=None).advice


def test_without_pairs_single_columns_get_all() -> None:
    """One column, or tables of one column: two looks at the same, and the advice says what is simpler."""
    for alone in (make(max_order=1), make(Schema.from_domain({"a": 9}))):
        assert sum(step.share for step in alone.steps) == 1
        assert "workload=1" in alone.advice


def test_text_and_json_say_the_same() -> None:
    """Every step, the candidates, the budget and the advice are in both."""
    foreseen = make(sets=2, delta=1e-6)
    facts, text = json.loads(json.dumps(foreseen.to_dict())), str(foreseen)
    assert facts["candidates"] == {"pairs": 15, "triples": 0, "max_cells": 10_000}
    assert "15 pairs of at most 10,000 cells over 6 columns; about 5,000 rows" in text
    assert all(step["name"] in text and step["share"] in text for step in facts["steps"])
    assert foreseen.budget.describe() in text
    assert facts["advice"] in text
    assert sum(step.share for step in foreseen.steps) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0},
        {"sets": 0},
        {"n_rows": 0},
        {"unit": "x"},
        {"max_order": 4},
        {"max_cells": 1},
        {"target": 7},
        {"target": [("c0", "z")]},
        {"column_weights": {"c0": -1}},
        {"weights": {("c0", "c1"): 1.0}},
    ],
)
def test_what_measure_refuses_plan_refuses(wrong: dict[str, object]) -> None:
    """A plan that succeeds is no promise if it accepts what the session does not."""
    with pytest.raises(ValueError, match=r"must|not|weights"):
        make(**wrong)


def test_options_of_a_choice_are_refused_where_tables_are_given() -> None:
    """As `measure` does; and a word that is none of ours."""
    with pytest.raises(ValueError, match="max_cells is for workload='auto'"):
        plan(SCHEMA, epsilon=1.0, unit="replace", max_cells=100)  # type: ignore[call-overload]
    with pytest.raises(ValueError, match=r"workload \('best'\) must be 'auto'"):
        plan(SCHEMA, workload="best", epsilon=1.0, unit="replace")  # type: ignore[call-overload]
