"""A plan is a session that simulates: it takes the steps of a run, and nothing of it can be released."""

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpcipher as dc
from dpcipher.curator.answers import PrivateRows
from dpcipher.curator.counts import RowCounts
from dpcipher.errors import NotPrivate
from dpcipher.planning import plan as planning
from dpcipher.planning.plan import WORTH
from dpcipher.planning.simulate import SimulatedRows
from dpcipher.privacy.draws import Draws
from dpcipher.privacy.terms import Privacy
from dpcipher.request.session import Decision, Session
from dpcipher.selection.select import select
from dpcipher.tables.query import Query

TERMS: dict[str, Any] = {
    "unit": "replace"
}  # the number of rows is public, so that plan and run start from the same
SHAPES = [(4,) * 12, (6, 6, 6), (9, 2), (40, 30, 20, 2, 2, 2, 2), (3,) * 30]
BUDGETS: list[dict[str, float]] = [
    {"epsilon": 1.0},
    {"epsilon": 0.02},
    {"rho": 0.01},
    {"rho": 1.0},
    {"epsilon": 1.0, "delta": 1e-6},
]


class Watched(PrivateRows):
    """Rows that remember how many events there were when answers first decided."""

    events: Any
    until: int | None = None

    def decide(self, decision: Decision) -> None:
        """Note the first."""
        if self.until is None:
            self.until = len(self.events)


@pytest.mark.parametrize("sets", [1, 3])
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_steps_are_the_events_of_a_run_up_to_the_first_decision_about_data(
    shape: tuple[int, ...], budget: dict[str, float], sets: int
) -> None:
    """Each step takes exactly the shares of the events that follow one another; none is left over, and none is added."""
    n_rows = 5_000
    schema = dc.Schema.from_domain({f"c{axis}": size for axis, size in enumerate(shape)})
    codes = np.random.default_rng(1).integers(0, shape, (n_rows, len(shape))).astype(np.int32)
    source = Watched(RowCounts(codes, shape), Draws.seeded(2))
    session = Session(schema, Privacy.parse(**TERMS, **budget), source)
    source.events = session.events
    select(session, dc.Auto(), sets=sets)
    events = list(session.events[: source.until])
    plan = dc.plan(schema, workload="auto", n_rows=n_rows, sets=sets, **TERMS, **budget)
    for step in plan.steps:
        if step.name == WORTH:
            assert (source.until, step.tables) != (None, step.of)
            continue
        took = Fraction(0)
        while took < step.share:
            took += events.pop(0).share
        assert took == step.share
    assert not events
    assert (plan.steps[-1].name == WORTH) == (source.until is not None)
    assert sum(step.share for step in plan.steps) == 1


def test_what_is_simulated_is_never_released() -> None:
    """A statement is refused, and with it a release; rows are not drawn."""
    schema = dc.Schema.from_domain({"a": 2, "b": 3})
    session = Session(schema, Privacy.parse(epsilon=1.0, unit="add-remove"), SimulatedRows(schema, 60))
    measured = session.measure(Query((0, 1)), Fraction(1, 2))
    assert measured.values.tolist() == [[10.0] * 3] * 2
    with pytest.raises(NotPrivate, match="cannot be released"):
        session.release([measured])
    with pytest.raises(NotPrivate, match="cannot be released"):
        session.statement()
    with pytest.raises(NotPrivate, match="call fit"):
        session.draw_rows(Fraction(1), 10, Fraction(1, 4))
    assert session.released is None


def test_the_plan_of_a_large_selection_is_quick_and_needs_no_large_table() -> None:
    """Columns of 70,000 levels, whose pairs a run would fit: a plan only asks."""
    schema = dc.Schema.from_domain({"a": 256, "b": 257, "c": 70_000})
    plan = dc.plan(
        schema, workload=dc.Auto(max_cells=20_000_000), epsilon=1.0, unit="add-remove", n_rows=1_000
    )
    assert plan.selection is not None
    assert plan.selection.pairs == 3


def test_what_a_large_selection_measures_is_not_predicted() -> None:
    """Of 200 columns a shortlist of pairs is planned, and nothing is said of what is then measured: a run may measure none."""
    schema = dc.Schema.from_domain({f"c{axis}": 4 for axis in range(200)})
    plan = dc.plan(schema, workload="auto", epsilon=1.0, unit="add-remove", n_rows=48_842)
    assert (plan.steps[-1].name, plan.steps[-1].tables, plan.steps[-1].sd) == (WORTH, None, None)


def test_orders_whose_tables_get_equal_shares_are_two_steps() -> None:
    """Three columns of six levels, for which columns and pairs share the budget."""
    schema = dc.Schema.from_domain(dict.fromkeys("abc", 6))
    terms = {"workload": "auto", "rho": 0.01, "unit": "replace"}
    steps = dc.plan(schema, **terms, n_rows=1_000).steps
    assert [(step.name, step.tables) for step in steps] == [("one-way tables", 3), ("pairs", 3)]
    rows = pd.DataFrame(np.random.default_rng(1).integers(0, 6, (1_000, 3)), columns=list("abc"))
    assert sorted(map(len, dc.measure(rows, schema, **terms).workload)) == [1, 1, 1, 2, 2, 2]


def test_the_number_of_rows_is_asked_once_for_all_sets() -> None:
    """With the noise that its share buys: sqrt(2) / (1/50)."""
    schema = dc.Schema.from_domain({f"c{axis}": 4 for axis in range(12)})
    terms = {"workload": "auto", "epsilon": 1.0, "unit": "add-remove", "n_rows": 20_000}
    for sets in (1, 4):
        step = dc.plan(schema, **terms, sets=sets).steps[0]
        assert (step.name, step.sd) == ("number of rows", pytest.approx(50 * 2**0.5, rel=1e-3))


def test_the_cost_is_estimated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes a while."""
    calls = []
    real = planning.estimate_cost
    monkeypatch.setattr(planning, "estimate_cost", lambda *given: calls.append(given) or real(*given))
    dc.plan(dc.Schema.from_domain({"a": 2, "b": 3}), epsilon=1.0, unit="add-remove")
    assert len(calls) == 1
