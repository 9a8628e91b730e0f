"""A plan is made without data, and says what the release then is."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from dpcipher.curator.answers import release_of
from dpcipher.curator.counts import count_codes
from dpcipher.curator.measure import measure
from dpcipher.planning.plan import Plan, plan
from dpcipher.privacy.draws import Draws
from dpcipher.privacy.terms import Privacy
from dpcipher.request.request import Request
from dpcipher.schema.schema import Schema

SCHEMA = Schema.from_domain({"age": 8, "sex": 2, "region": 5, "income": 6})
NOBODY = np.empty((0, 4), dtype=np.int32)


def make(**changes: object) -> Plan:
    """A plan of all pairs, with some parameters changed."""
    return plan(SCHEMA, **{"epsilon": 1.0, "unit": "add-remove", "n_rows": 5000, **changes})  # type: ignore[arg-type]


def test_cells_and_noise_are_those_of_the_release() -> None:
    """The same parameters given to the session make tables of the planned sizes and scales."""
    foreseen = make(epsilon=0.7, max_rows=3, sets=2)
    order = Request.parse(
        SCHEMA, Privacy.parse(epsilon=0.7, unit="add-remove", max_rows=3), workload=2, sets=2
    )
    release = release_of(count_codes(NOBODY, SCHEMA.shape, order.axes), order, Draws.seeded(1))
    first = [table for table in release.measurements if table.set == 0]
    assert [(t.attrs, t.n_cells, t.noise) for t in foreseen.tables] == [
        (SCHEMA.attrs_on(t.query.axes), t.values.size, t.noise) for t in first
    ]
    assert foreseen.tables[0].noise.scale == pytest.approx(3 * 2 * 6 / 0.7)


def test_expected_error_is_what_a_release_shows() -> None:
    """Noise drawn on empty tables has the planned deviation and the planned mean size."""
    foreseen = make(workload=[("age", "sex", "region", "income")])
    order = Request.parse(SCHEMA, Privacy.parse(epsilon=1, unit="add-remove"), workload=[SCHEMA.attrs])
    draws = Draws.seeded(3)
    empty = count_codes(NOBODY, SCHEMA.shape, [(0, 1, 2, 3)])
    drawn = np.concatenate(
        [release_of(empty, order, draws).measurements[0].values.ravel() for _ in range(60)]
    )
    table = foreseen.tables[0]
    assert (drawn.std(), np.abs(drawn).mean()) == pytest.approx((table.sd, table.absolute), rel=0.03)


def test_the_weights_can_be_used_and_keep_what_they_promise() -> None:
    """Planned again with its own weights, the total error falls by the stated gain, and nothing is left to gain."""
    equal = make()
    better = make(weights=equal.weights)
    total = [sum(t.n_cells * t.absolute for t in p.tables) for p in (equal, better)]
    assert 1 - total[1] / total[0] == pytest.approx(equal.gain)
    assert equal.gain > 0.01
    assert better.gain == pytest.approx(0, abs=1e-9)


def test_noise_above_counts_is_warned_of_and_the_advice_works() -> None:
    """The epsilon, the rows and the bins that a warning names each make the noise fall to the counts."""
    warned = make(epsilon=0.1, n_rows=1000)
    (text,) = warned.warnings
    epsilon = float(re.search(r"epsilon=([\d.e+-]+)", text)[1])  # type: ignore[index]
    rows = int(re.search(r"([\d,]+) rows;", text)[1].replace(",", ""))  # type: ignore[index]
    assert "age × income" in text
    assert make(epsilon=epsilon, n_rows=1000).warnings == ()
    assert make(epsilon=0.1, n_rows=rows).warnings == ()
    assert make(epsilon=0.8 * epsilon, n_rows=1000).warnings != ()
    assert make(epsilon=0.1, n_rows=round(0.8 * rows)).warnings != ()


def test_gaussian_noise_is_advised_only_where_it_is_smaller() -> None:
    """Many tables: its deviation grows with the square root of their number. One table: Laplace is better."""
    many = Schema.from_domain({f"c{i}": 4 for i in range(12)})
    assert "Gaussian" in plan(many, epsilon=0.5, unit="add-remove", n_rows=100).warnings[0]
    one = plan(many, workload=[many.attrs[:6], many.attrs[6:]], epsilon=0.5, unit="add-remove", n_rows=100)
    assert "Gaussian" not in one.warnings[0]


def test_enough_rows_give_no_warning() -> None:
    """A warning that is always there is no warning."""
    assert make(epsilon=3.0, n_rows=100_000).warnings == ()
    assert make(n_rows=None).warnings == ()


def test_rho_and_delta_are_planned_too() -> None:
    """Gaussian plans weigh by cells^(2/3) and have the scale of the accounting."""
    foreseen = make(epsilon=None, rho=0.5)
    assert foreseen.tables[0].noise.scale == pytest.approx(np.sqrt(6 / (2 * 0.5)))
    ratio = foreseen.tables[2].weight / foreseen.tables[0].weight
    sizes = foreseen.tables[2].n_cells / foreseen.tables[0].n_cells
    assert ratio == pytest.approx(sizes ** (2 / 3), rel=1e-4)


def test_text_and_json_say_the_same() -> None:
    """Every shown table, the budget, the unit and the warnings are in both."""
    foreseen = make(epsilon=0.1, n_rows=1000)
    facts = json.loads(json.dumps(foreseen.to_dict()))
    text = str(foreseen)
    assert facts["budget"] == {"epsilon": "1/10"}
    assert "epsilon = 0.1 (pure differential privacy)" in text
    assert all(" × ".join(table["attrs"]) in text for table in facts["tables"])
    assert facts["warnings"][0] in text


def test_a_long_plan_shows_the_largest_tables() -> None:
    """Text is for reading: of many tables a dozen are shown, and the rest is counted."""
    many = plan(Schema.from_domain({f"c{i}": 2 + i for i in range(9)}), epsilon=1, unit="replace")
    assert "… and 24 smaller tables" in str(many)
    assert "c7 × c8" in str(many)


@pytest.mark.parametrize("n_rows", [0, -1, 1.5, True, "5000", float("nan")])
def test_a_number_of_rows_is_whole_and_above_zero(n_rows: object) -> None:
    """The message names the value and a way out."""
    with pytest.raises(ValueError, match=r"n_rows \(.*\) must be a whole number above 0"):
        make(n_rows=n_rows)


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0},
        {"epsilon": float("nan")},
        {"rho": 1},
        {"sets": 0},
        {"max_rows": 0},
        {"workload": 9},
        {"unit": "x"},
    ],
)
def test_what_measure_refuses_plan_refuses(wrong: dict[str, object]) -> None:
    """A plan that succeeds is no promise if it accepts what the session does not."""
    with pytest.raises(ValueError, match=r"must|not"):
        make(**wrong)


def test_a_plan_accepts_the_largest_budget_that_measure_accepts() -> None:
    """The least noise that can be called noise on every table; no weights, and no first question about a range, could have less."""
    rows = pd.DataFrame({name: [0] for name in SCHEMA.attrs})
    largest = {"epsilon": 6 * 64, "unit": "add-remove"}
    release = measure(rows, SCHEMA, **largest)
    assert {table.noise.scale for table in release.measurements} == {1 / 64}
    assert {table.noise for table in plan(SCHEMA, **largest).tables} == {
        table.noise for table in release.measurements
    }
    with pytest.raises(ValueError, match="lower the budget"):
        make(epsilon=6 * 64 + 1)
    unbounded = Schema.from_dict(
        {
            "columns": {
                "pay": {"kind": "integer", "min": 0, "max": "auto", "bins": "auto"},
                "sex": {"kind": "boolean"},
            }
        }
    )
    frame = pd.DataFrame({"pay": [1, 2, 300] * 5, "sex": [True, False, True] * 5})
    generous = {"workload": "auto", "epsilon": 60_000, "unit": "add-remove"}
    assert measure(frame, unbounded, **generous).schema.shape
    assert plan(unbounded, **generous, n_rows=15).bins


@pytest.mark.parametrize("workload", [2, "auto"])
def test_a_plan_claims_what_the_release_will_claim(workload: int | str) -> None:
    """With the number of rows declared public, presence is protected by neither; with persons, n is not told."""
    rows = pd.DataFrame({name: [0] for name in SCHEMA.attrs} | {"who": ["ann"]})
    for options in ({}, {"n_rows_public": True}, {"unit": "replace"}, {"unit": "replace", "person": "who"}):
        said = {"epsilon": 1.0, "unit": "add-remove", "workload": workload, **options}
        release = measure(rows, SCHEMA, **said)
        assert f"Unit     {release.statement.protection}\n" in str(plan(SCHEMA, **said))
