"""A plan of chosen tables says what the choice then does, as far as that can be known without data."""

import json
import math
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import dpcipher as dc
from dpcipher.curator.answers import PrivateRows
from dpcipher.curator.counts import TableCounts
from dpcipher.methods.cipher import Cipher
from dpcipher.planning.plan import Plan, plan
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.draws import Draws
from dpcipher.privacy.terms import Privacy, Unit
from dpcipher.request.request import Auto
from dpcipher.request.session import Session
from dpcipher.schema.schema import Schema
from dpcipher.selection.rounds import MAX_TVD
from dpcipher.selection.select import select
from dpcipher.selection.target import SelectionTarget

SHAPE = (4, 3, 3, 2, 5, 2)
SCHEMA = Schema.from_domain({f"c{axis}": size for axis, size in enumerate(SHAPE)})
REPLACE = {"unit": "replace"}  # the number of rows is public, so that plan and choice start from the same


LOOKED = 500  # cells at most: less than the whole table has, so that it is looked at


def make(schema: Schema = SCHEMA, **changes: Any) -> Plan:
    """A plan of chosen tables, with some parameters changed."""
    choice = {
        name: changes.pop(name)
        for name in ("max_order", "max_cells", "target", "column_weights", "predict")
        if name in changes
    }
    choice.setdefault("max_cells", LOOKED)
    said = {"epsilon": 1.0, "unit": "add-remove", "n_rows": 5000, **changes}
    return plan(schema, workload=Auto(**choice), **said)


def run(
    n_rows: int, *, dependent: bool = True, sets: int = 1, max_cells: int = LOOKED, **budget: float
) -> tuple[dict[str, Any], Session]:
    """What a seeded run on invented rows notes about its choice, and the session it went through."""
    rng = np.random.default_rng(1)
    codes = np.stack([rng.integers(0, size, n_rows) for size in SHAPE], axis=1)
    if dependent:
        codes = np.stack([codes[:, 4] % size for size in SHAPE], axis=1)
    table = np.zeros(SHAPE, np.int64)
    np.add.at(table, tuple(codes.T), 1)
    session = Session(
        SCHEMA,
        Privacy(Budget.parse(**budget), Unit("replace")),
        PrivateRows(TableCounts(table), Draws.seeded(2)),
    )
    select(session, Auto(max_cells=max_cells), sets=sets)
    return session.remarks["selection"], session


@pytest.mark.parametrize(
    "budget", [{"epsilon": 1.0}, {"epsilon": 0.2}, {"rho": 0.005}, {"epsilon": 1, "delta": 1e-6}]
)
@pytest.mark.parametrize("n_rows", [300, 2_000, 7_000, 40_000])
def test_the_looks_and_their_shares_are_those_of_the_choice(n_rows: int, budget: dict[str, float]) -> None:
    """As many tables are looked at as foreseen, of every order, with the foreseen shares, in the foreseen order."""
    foreseen = make(n_rows=n_rows, **REPLACE, **{"epsilon": None, **budget})
    _, session = run(n_rows, **budget)
    events = session.statement().certificate["events"]
    steps = [step for step in foreseen.steps if step.name.startswith(("shortlist", "distances"))]
    looked = [event for event in events if "tables" in event["what"]][: len(steps)]
    assert [event["share"] for event in looked] == [str(step.share) for step in steps]
    said = [
        f"distances of {step.tables} tables"
        if step.name.startswith("distances")
        else f"{step.tables} of {step.of} tables to look at"
        for step in steps
    ]
    assert [event["what"] for event in looked] == said
    assert sum(step.share for step in foreseen.steps) == 1


@pytest.mark.parametrize(
    "budget", [{"epsilon": 0.05}, {"epsilon": 1.0}, {"rho": 0.01}, {"rho": 2.0}], ids=str
)
@pytest.mark.parametrize("n_rows", [100, 40_000])
def test_the_design_of_a_small_table_is_that_of_the_choice(n_rows: int, budget: dict[str, float]) -> None:
    """With a public number of rows nothing is asked before: the foreseen orders get the foreseen shares."""
    schema = Schema.from_domain({"a": 3, "b": 2, "c": 2, "d": 4})
    foreseen = plan(schema, workload="auto", n_rows=n_rows, **REPLACE, **budget)
    assert foreseen.selection is not None
    assert foreseen.selection.design
    assert foreseen.selection.clear_rows == 0
    assert foreseen.selection.advice in str(foreseen)
    rng = np.random.default_rng(3)
    table = rng.multinomial(n_rows, rng.dirichlet(np.ones(48))).reshape(schema.shape)
    session = Session(
        schema,
        Privacy(Budget.parse(**budget), Unit("replace")),
        PrivateRows(TableCounts(table), Draws.seeded(2)),
    )
    release = session.release(select(session, Auto()))
    assert sorted(step.tables for step in foreseen.steps) == sorted(
        sum(len(attrs) == order for attrs in release.workload)
        for order in {len(attrs) for attrs in release.workload}
    )
    assert sum(step.share for step in foreseen.steps) == 1


@pytest.mark.parametrize("budget", [{"epsilon": 1.0}, {"rho": 0.5}])
def test_noise_is_what_a_session_draws(budget: dict[str, float]) -> None:
    """The deviation of one-way cells and of distances, against the scale that the accounting gives by hand."""
    foreseen = make(n_rows=100_000, **REPLACE, **{"epsilon": None, **budget})
    sds = {step.name: step.sd for step in foreseen.steps}
    shares = {step.name: float(step.share) for step in foreseen.steps}
    one_way, distances = sds["one-way tables"], sds["distances of pairs"]
    read = shares["distances of pairs"]
    if (
        "rho" in budget
    ):  # sigma² = squared L2 distance / (2 rho), which is 2 for a table and 4 for each of 15 distances
        expected = [
            math.sqrt(2 / (2 * 0.5 / 120)),
            math.sqrt(15 * 4 / (2 * 0.5 * read)),
        ]
    else:  # b = L1 distance / epsilon, which is 2 for either
        expected = [math.sqrt(2) * 2 * 120, math.sqrt(2) * 2 * 15 / read]
    assert [one_way, distances] == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("n_rows", [20_000, 40_000, None])
def test_what_the_rows_decide_is_not_predicted(n_rows: int | None) -> None:
    """Nor its number, noise or error, in text, JSON, card and picture: one plan stands for runs that measure different tables."""
    foreseen = make(n_rows=n_rows, **REPLACE)
    words = "not predicted"
    assert not foreseen.predicted
    assert foreseen.steps[-1].tables is foreseen.steps[-1].sd is foreseen.selection.solved_tvd is None
    plain = foreseen.to_dict()
    assert (plain["measured"], plain["steps"][-1]["tables"], plain["selection"]["solved_tvd"]) == (
        words,
        None,
        None,
    )
    lines = str(foreseen).splitlines()
    assert all(any(line.startswith(head) and words in line for line in lines) for head in ("tables worth", "Tables  ", "Error  "))  # fmt: skip
    assert words in foreseen._repr_html_()
    assert words in dc.plot(foreseen).svg
    if n_rows:
        measured = {run(n_rows, dependent=dependent, epsilon=1.0)[0]["tables"] for dependent in (True, False)}
        assert len(measured) == 2
    else:
        assert "of a table with very many rows" in str(foreseen)


def test_what_public_numbers_decide_is_predicted() -> None:
    """Then nothing says that it is not."""
    foreseen = make(Schema.from_domain({f"c{axis}": 4 for axis in range(10)}), n_rows=5_000)
    assert foreseen.predicted
    assert foreseen.to_dict()["measured"] == "as the steps say"
    assert [(step.name, step.tables) for step in foreseen.steps] == [("number of rows", 1), ("pairs", 45)]
    assert "not predicted" not in str(foreseen) + foreseen._repr_html_() + dc.plot(foreseen).svg


def test_from_the_stated_rows_on_every_pair_is_looked_at() -> None:
    """One row fewer, and not all are; the same is stated with and without a number of rows."""
    for budget in ({"epsilon": 1.0}, {"epsilon": 0.5, "delta": 1e-6}):
        clear = make(**budget).selection.clear_rows
        read = [
            [step.tables for step in make(n_rows=rows, **budget).steps if step.name == "distances of pairs"]
            for rows in (clear, clear - 1)
        ]
        assert read[0] == [15]
        assert read[1] != [15]
        assert make(n_rows=None, **budget).selection.clear_rows == clear


def test_the_second_round_is_held_where_it_was_foreseen() -> None:
    """Pairs that determine one another are far from independence, independent ones near; the bound lies between. Several sets hold it too."""
    foreseen = make(n_rows=200_000, **REPLACE)
    assert foreseen.selection.second_tvd is not None
    assert 0.005 < foreseen.selection.second_tvd < 0.2
    screens = sum(step.name.startswith("distances") for step in foreseen.steps) - 1
    assert run(200_000, epsilon=1.0)[0]["rounds"] == 2 + screens
    assert run(200_000, epsilon=1.0, dependent=False)[0]["rounds"] == 1 + screens
    assert run(200_000, epsilon=1.0, sets=2)[0]["rounds"] == 2 + screens
    coarse, fine = (Schema.from_domain({f"c{axis}": levels for axis in range(6)}) for levels in (3, 8))
    assert "Triples  20 % of the budget is kept for a second round" in str(make(coarse, n_rows=10_000))
    assert "Triples  none" in str(make(fine, n_rows=5_000, max_cells=600))
    assert "Triples  20 % of the budget is kept for a second round, with triples.\n" in str(
        make(fine, n_rows=5_000, max_cells=600, predict="c0")
    )


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
    target = SelectionTarget.of(auto, SCHEMA)
    assert [target.count_tables(k) for k in (1, 2, 3, 4)] == [
        sum(1 for _ in target.tables(k)) for k in (1, 2, 3, 4)
    ]
    assert sum(1 for _ in target.tables(2)) == pairs


def test_triples_of_columns_of_any_size_are_counted() -> None:
    """Against all triples of random shapes; a column of one level is no candidate."""
    rng = np.random.default_rng(0)
    for _ in range(30):
        shape = tuple(int(size) for size in rng.integers(1, 9, 8))
        target = SelectionTarget(shape, (1.0,) * 8, 3, int(rng.integers(8, 200)), 3)
        small = [t for t in combinations(shape, 3) if min(t) > 1 and math.prod(t) <= target.max_cells]
        assert target.count_tables(3) == len(small)


def test_the_advice_follows_the_noise_of_all_pairs() -> None:
    """Its TVD is the mean of what a plan of all pairs foresees; few rows make choosing pay, many make it a matter of taste."""
    given = plan(SCHEMA, epsilon=1.0, unit="add-remove", n_rows=5000)
    assert make().selection.all_pairs_tvd == pytest.approx(
        np.mean([table.tvd for table in given.tables]), rel=2e-3
    )
    few, some = make(n_rows=150), make(n_rows=2_000)
    assert (few.selection.all_pairs_tvd or 0) > MAX_TVD > (some.selection.all_pairs_tvd or 0)
    assert few.selection.advice.startswith("choose")
    assert some.selection.advice.startswith("either will do: all pairs (workload=2)")
    assert "list the pairs" in make(max_cells=12, n_rows=2_000).selection.advice
    assert "fewer than about" in make(n_rows=None).selection.advice


def test_without_pairs_single_columns_get_all() -> None:
    """One column, or tables of one column: two looks at the same, and the advice says what is simpler."""
    for alone in (make(max_order=1), make(Schema.from_domain({"a": 9}))):
        assert sum(step.share for step in alone.steps) == 1
        assert "workload=1" in alone.selection.advice


def test_text_and_json_say_the_same() -> None:
    """Every step, the candidates, the budget and the advice are in both."""
    foreseen = make(sets=2, delta=1e-6)
    facts, text = json.loads(json.dumps(foreseen.to_dict())), str(foreseen)
    candidates = {"pairs": 15, "triples": 20, "larger": 15, "max_cells": LOOKED}
    assert facts["selection"].items() >= candidates.items()
    assert (
        "15 pairs, 20 triples and 15 larger tables of at most 500 cells over 6 columns; about 5,000 rows"
        in text
    )
    for step in facts["steps"]:
        assert step["name"] in text
        assert f" {100 * float(Fraction(step['share'])):.3g} % " in text
    assert foreseen.privacy.budget.describe() in text
    assert facts["selection"]["advice"] in text
    assert sum(step.share for step in foreseen.steps) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0},
        {"sets": 0},
        {"n_rows": 0},
        {"unit": "x"},
        {"max_order": 0},
        {"predict": "z"},
        {"predict": "c0", "target": 2},
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


def test_a_word_that_is_no_workload_is_refused() -> None:
    """As `measure` does."""
    with pytest.raises(ValueError, match=r"workload \('best'\) must be 'auto'"):
        plan(SCHEMA, workload="best", epsilon=1.0, unit="replace")  # type: ignore[call-overload]


def test_the_error_of_solved_pairs_is_foreseen() -> None:
    """Within twice of what a release of generated rows has, where noise alone would be several times that."""
    rng, shape, n_rows = np.random.default_rng(3), (12, 10, 8), 10_000
    kind = rng.integers(0, 4, n_rows)
    chances = [rng.dirichlet(np.ones(size), 4) for size in shape]
    codes = np.column_stack([[rng.choice(len(of[0]), p=of[k]) for k in kind] for of in chances])
    schema = Schema.from_domain({f"c{axis}": size for axis, size in enumerate(shape)})
    terms = {"epsilon": 0.1, "delta": 1e-6, "unit": "add-remove"}
    foreseen = plan(schema, workload="auto", n_rows=n_rows, **terms)
    fitted = Cipher(0.1, delta=1e-6, unit="add-remove", workload="auto").fit_counts(
        codes, schema, draws=Draws.seeded(1), codes=True
    )
    errors = []
    for left, right in combinations(range(len(shape)), 2):
        true = np.zeros((shape[left], shape[right]))
        np.add.at(true, (codes[:, left], codes[:, right]), 1 / n_rows)
        found = np.asarray(fitted.joints[0].project((f"c{left}", f"c{right}")))
        errors.append(0.5 * np.abs(found - true).sum())
    assert foreseen.selection.solved_tvd is not None
    assert foreseen.selection.all_pairs_tvd is not None
    assert (
        foreseen.selection.solved_tvd / 2
        < np.mean(errors)
        < foreseen.selection.solved_tvd * 2
        < foreseen.selection.all_pairs_tvd
    )
    assert f"an expected TVD of {foreseen.selection.solved_tvd:.2g} on average" in str(foreseen)
    assert foreseen.to_dict()["selection"]["solved_tvd"] == foreseen.selection.solved_tvd
    assert plan(schema, workload="auto", **terms).selection.solved_tvd is None
