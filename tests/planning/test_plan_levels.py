"""A plan says how frequent a level must be to be found, and measures tables with what finding leaves."""

import math

import pandas as pd
import pytest

import dpcipher as dc
from dpcipher.errors import BudgetError
from dpcipher.privacy.draws import SeededNoise
from dpcipher.privacy.terms import Privacy
from dpcipher.request.request import selection_for
from dpcipher.schema import column

CITY = column("city", "categorical", levels="discover", pattern="[A-Z]+", max_length=3, max_levels=5)
SCHEMA = dc.Schema((CITY, column("sex", "boolean"), column("x", "integer", min=0, max=3)))


def test_the_plan_says_what_a_release_will_find() -> None:
    """Its threshold is the release's, and texts of the stated numbers of rows are named about as often as stated."""
    plan = dc.plan(SCHEMA, epsilon=1.0, delta=1e-6, unit="add-remove", n_rows=5_000)
    assert plan.levels is not None
    frame = pd.DataFrame({"city": ["AB", "CD"] * 50, "sex": True, "x": 1})
    release = dc.measure(frame, SCHEMA, epsilon=1.0, delta=1e-6, unit="add-remove", workload=1)
    event = release.statement.certificate["events"][0]
    assert (plan.levels.threshold, str(plan.levels.share)) == (event["threshold"], event["share"])
    assert "10 % of the budget, and delta = 5e-07" in str(plan)
    assert f"of {plan.levels.usually} rows 19 times out of 20" in str(plan)
    assert plan.to_dict()["levels"]["columns"] == ["city"]
    assert plan.levels.threshold == plan.levels.half == 74


def test_texts_of_the_stated_rows_are_named_as_often_as_stated() -> None:
    """By 4,000 draws of the seeded stand-in."""
    plan = dc.plan(SCHEMA, epsilon=1.0, delta=1e-6, unit="replace", max_rows=2)
    chosen = selection_for(SCHEMA, Privacy.parse(epsilon=1.0, delta=1e-6, unit="replace", max_rows=2))
    assert plan.levels is not None
    assert chosen is not None
    counts = {f"t{i}": plan.levels.usually for i in range(4_000)}
    share = len(chosen.named(counts, SeededNoise(1), 4_000)) / 4_000
    assert share == pytest.approx(0.95, abs=0.005 + 5 * math.sqrt(0.95 * 0.05 / 4_000))


def test_tables_get_what_finding_leaves() -> None:
    """The noise of the plan is that of the release: 9/10 of a rho that leaves half of delta for failures."""
    plan = dc.plan(SCHEMA, workload=1, epsilon=1.0, delta=1e-6, unit="add-remove")
    frame = pd.DataFrame({"city": ["AB"] * 10, "sex": True, "x": 1})
    release = dc.measure(frame, SCHEMA, epsilon=1.0, delta=1e-6, unit="add-remove", workload=1)
    assert plan.tables[0].noise.scale == pytest.approx(release.measurements[0].noise.scale, rel=1e-12)
    assert plan.privacy.budget.epsilon == 1


def test_a_plan_with_chosen_tables_says_it_too() -> None:
    """Beside its steps, whose noise is larger than without."""
    terms = {"epsilon": 1.0, "delta": 1e-6, "unit": "add-remove", "n_rows": 5_000}
    chosen = dc.plan(SCHEMA, workload="auto", **terms)
    declared = dc.plan(
        SCHEMA.closed(levels={"city": ["AB", "CD", "EF", "GH", "IJ"]}), workload="auto", **terms
    )
    assert "a text of 74 rows is found every other time" in str(chosen)
    assert chosen.to_dict()["levels"]["threshold"] == 74
    assert chosen.steps[0].sd > declared.steps[0].sd
    assert "Levels" not in str(declared)


@pytest.mark.parametrize("workload", [2, "auto"])
def test_a_plan_refuses_what_measure_would(workload: object) -> None:
    """Pure epsilon, with the reason."""
    with pytest.raises(BudgetError, match="only one person has"):
        dc.plan(SCHEMA, workload=workload, epsilon=1.0, unit="add-remove")  # type: ignore[call-overload]
