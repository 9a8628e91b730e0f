"""Bins found privately: what is asked, what it costs, what comes out, and that nothing but noisy answers decides."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpcipher as dc
from dpcipher.curator.measure import measure
from dpcipher.errors import BudgetError, DataError
from dpcipher.evaluation.replay import Violation, compare_answers, record
from dpcipher.evaluation.subjects import BUDGETS, UNITS
from dpcipher.methods import Cipher
from dpcipher.privacy.ledger import Ledger
from dpcipher.privacy.terms import Unit
from dpcipher.release.release import Release
from dpcipher.request.request import Auto, coarse_share, finding_share
from dpcipher.schema import Schema, column
from dpcipher.schema.bins import Bins
from dpcipher.schema.rules.rule import Zero
from dpcipher.selection.edges import BinRisk
from dpcipher.selection.find import Intervals
from dpcipher.selection.search import Search

SEX = column("sex", "categorical", levels=["F", "M"])
AGE = column("age", "integer", min=0, max=99, bins="auto")
INCOME = column("income", "number", min=0, max=1_000_000, bins="auto", missing="level")
SCHEMA = Schema((AGE, INCOME, SEX))


def people(n: int, seed: int = 0) -> pd.DataFrame:
    """Ages with a top code, incomes with many zeros, a long tail and a few missing."""
    rng = np.random.default_rng(seed)
    age = np.minimum(rng.integers(0, 110, n), 99)
    income = np.where(rng.random(n) < 0.4, 0.0, np.minimum(np.exp(rng.normal(10, 1, n)), 1e6).round(2))
    income[rng.random(n) < 0.05] = np.nan
    return pd.DataFrame({"age": age, "income": income, "sex": rng.choice(["F", "M"], n)})


def edges(schema: Schema, name: str) -> np.ndarray:
    """The edges of a column."""
    domain = schema.column(name).domain
    assert isinstance(domain, Bins)
    return np.asarray(domain.edges)


@pytest.mark.parametrize(
    "promise", [{"epsilon": 2.0}, {"epsilon": 2.0, "delta": 1e-9}, {"rho": 0.1}], ids=str
)
@pytest.mark.parametrize("workload", [1, 2, "auto", Auto(max_order=2)], ids=str)
def test_a_release_holds_the_closed_schema_and_what_finding_cost(
    promise: Any, workload: Any, tmp_path: Path
) -> None:
    """At most a tenth of the charge, as events of the certificate; the whole budget is still spent, and the file holds it all."""
    release = measure(people(5_000), SCHEMA, workload=workload, unit="add-remove", **promise)
    certificate = release.statement.certificate
    asked = [event for event in certificate["events"] if event["what"].startswith("intervals of")]
    assert not release.schema.is_open
    assert asked
    assert sum(Fraction(event["share"]) for event in asked) <= finding_share(SCHEMA) == Fraction(1, 15)
    assert sum(Fraction(event["share"]) for event in asked) == Fraction(certificate["bins"]["share"])
    assert certificate["share"] == "1"
    assert certificate["bins"]["found"] == {
        name: len(edges(release.schema, name)) - 1 for name in ("age", "income")
    }
    assert all(found <= 64 for found in certificate["bins"]["found"].values())
    release.save(tmp_path / "release.parquet")
    assert Release.load(tmp_path / "release.parquet").schema == release.schema


def test_the_noise_of_tables_is_what_is_left_of_the_budget() -> None:
    """Costs that the sampler states add up to no more than was charged, and to nearly all of it."""
    release = measure(people(2_000), SCHEMA, epsilon=1.0, unit="add-remove")
    costs = sum(event["cost"] for event in release.statement.certificate["events"])
    assert costs == pytest.approx(1.0, rel=1e-6)
    used = 1 - Fraction(release.statement.certificate["bins"]["share"]) - coarse_share(SCHEMA)
    pairs = [one.noise.scale for one in release.measurements if len(one.query.axes) == 2]
    assert pairs == pytest.approx([3 / float(used)] * 3)


def test_the_ledger_is_charged_once_with_the_open_schema(tmp_path: Path) -> None:
    """What was declared before any row was read is what the ledger names."""
    ledger = Ledger.create(tmp_path / "people.ledger", epsilon=1.0, unit="add-remove")
    measure(people(1_000), SCHEMA, epsilon=1.0, unit="add-remove", ledger=ledger)
    entries = ledger.entries
    assert len(entries) == 1
    assert entries[0].what["schema"] == SCHEMA.fingerprint()


def test_atoms_have_bins_of_their_own_and_tails_are_cut() -> None:
    """With next to no noise: zero and the top code alone, and no wide bin that holds most of its rows at one end."""
    release = measure(people(50_000), SCHEMA, epsilon=100.0, unit="add-remove")
    income, age = edges(release.schema, "income"), edges(release.schema, "age")
    assert income[1] <= 10.0
    assert age[-2] == 99
    assert np.sum((income > 200_000) & (income < 1e6)) >= 2


def test_a_found_schema_can_be_used_next_year(tmp_path: Path) -> None:
    """Saved, loaded and declared, without anything to find."""
    measure(people(5_000), SCHEMA, epsilon=2.0, unit="add-remove").schema.save(tmp_path / "found.yaml")
    schema = Schema.load(tmp_path / "found.yaml")
    again = measure(people(5_000, seed=9), schema, epsilon=2.0, unit="add-remove")
    assert again.schema.fingerprint() == schema.fingerprint()
    assert "bins" not in again.statement.certificate


@pytest.mark.parametrize("promise", [{"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-9}], ids=str)
def test_many_zeros_have_a_bin_of_their_own(promise: Any) -> None:
    """Whole amounts up to two millions, on a grid of twenties: the bin of zero holds zero alone, for the first question asks about it."""
    rng = np.random.default_rng(1)
    amount = np.where(rng.random(20_000) < 0.3, 0, rng.lognormal(10, 1, 20_000).astype(int) + 1)
    declared = column("amount", "integer", min=-20_000, max=2_000_000, bins="auto")
    frame = pd.DataFrame({"amount": amount, "sex": rng.choice(["F", "M"], 20_000)})
    release = measure(frame, Schema((declared, SEX)), workload=1, unit="add-remove", **promise)
    found = edges(release.schema, "amount").tolist()
    assert found[found.index(0) + 1] == 1


@pytest.mark.parametrize("promise", [{"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-9}], ids=str)
@pytest.mark.parametrize("sign", [1, -1])
def test_an_end_without_rows_is_one_bin(promise: Any, sign: int) -> None:
    """Values up to a thousand in a range up to a million: noise does not cut what nobody is in, on either side."""
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"x": sign * rng.integers(1, 1_000, 20_000)})
    declared = column("x", "integer", min=-1_000_000, max=1_000_000, bins="auto")
    cut = []
    for _ in range(8):
        found = edges(
            measure(frame, Schema((declared,)), workload=1, unit="add-remove", **promise).schema, "x"
        )
        cut.append(
            np.sum(np.abs(found) > 40_000) > 4
        )  # the two ends of the range, and where rows are last seen
        assert np.sum(np.abs(found) <= 1_000) > 5
    assert sum(cut) <= 2  # noise alone is taken for rows now and then


def test_sets_share_the_bins_that_were_found_once() -> None:
    """Every set measures the same tables, and coarse counts of its own."""
    release = measure(people(2_000), SCHEMA, epsilon=2.0, unit="add-remove", sets=3)
    events = release.statement.certificate["events"]
    asked = [event for event in events if event["what"].startswith("intervals of")]
    assert [event["what"].split(" in ")[0] for event in events if event not in asked][:-1] == [
        "age",
        "income",
    ] * 3
    coarse = [one for one in release.measurements if len(one.query.axes) == 1]  # in runs, or in few bins
    found = {(*release.schema.attrs_on(one.query.axes), one.set) for one in coarse}
    assert found == {(a, n) for a in ("age", "income") for n in range(3)}
    assert len({one.set for one in release.measurements}) == 3
    assert len(asked) <= 18
    assert sum(len(attrs) == 2 for attrs in release.workload) == 3


@pytest.mark.parametrize("promise", [{"epsilon": 0.5}, {"epsilon": 0.5, "delta": 1e-9}], ids=str)
def test_coarse_counts_are_counts_of_runs_of_the_found_bins_with_their_noise(promise: Any) -> None:
    """At most eight runs of bins and every other level; counted from the rows with plain numpy they are off by noise of the variance that is stated."""
    frame, off = people(3_000), []
    for _ in range(30):
        release = measure(frame, SCHEMA, workload=1, unit="add-remove", **promise)
        for one in release.measurements[3:]:  # after the tables
            (name,) = release.schema.attrs_on(one.query.axes)
            points, size = edges(release.schema, name), release.schema.column(name).size
            starts = one.query.groups[0].starts if one.query.groups else range(size)
            assert len(starts) == min(8, len(points) - 1) + size - (len(points) - 1)
            levels = [*np.histogram(frame[name].dropna(), points)[0], frame[name].isna().sum()]
            truth = np.add.reduceat(np.array(levels[:size]), starts)
            off += ((one.values - truth) / one.noise.variance**0.5).tolist()
    assert np.mean(off) == pytest.approx(0, abs=4 / len(off) ** 0.5)
    assert np.var(off) == pytest.approx(1, rel=0.35)


def test_coarse_counts_take_their_share_and_narrow_sums_over_bins() -> None:
    """Half as much as finding may take; the sum over half of the bins is then better known than from the same tables alone."""
    release = measure(people(20_000), SCHEMA, epsilon=2.0, delta=1e-9, unit="add-remove")
    events = release.statement.certificate["events"]
    coarse = [Fraction(event["share"]) for event in events if event["what"].endswith("groups")]
    half = np.arange(release.schema.column("age").size) < release.schema.column("age").size // 2
    pairs = tuple(one for one in release.measurements if len(one.query.axes) == 2)
    alone = replace(release, measurements=pairs)
    assert sum(coarse) == coarse_share(SCHEMA) == Fraction(1, 30)
    assert release.query("age", half * 1.0).std_error < 0.9 * alone.query("age", half * 1.0).std_error


def test_a_schema_without_open_bins_has_no_coarse_counts() -> None:
    """And so has one whose bins were found last year."""
    found = measure(people(2_000), SCHEMA, epsilon=2.0, unit="add-remove")
    assert any(one.query.groups for one in found.measurements)
    closed = measure(people(2_000), found.schema, epsilon=2.0, unit="add-remove")
    assert not any(one.query.groups for one in closed.measurements)


def test_zeros_hold_on_the_grid_and_in_the_release() -> None:
    """Children have no income: rows are moved on the grid, and the threshold is an edge of the release."""
    zero = Zero({"age": {"max": 14}, "income": {"min": 10}}, {"income": 0})
    schema = Schema((AGE, INCOME, SEX), zeros=(zero,))
    release = measure(people(5_000), schema, epsilon=5.0, unit="add-remove")
    assert {15} <= set(edges(release.schema, "age").tolist())
    assert {10.0} <= set(edges(release.schema, "income").tolist())
    assert release.schema.zero_masks[0][1].any()


def test_open_ranges_are_found_and_values_beyond_go_to_the_ends() -> None:
    """Around the data, rather a few powers of two too wide than too narrow, and no refusal of a far value."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"x": rng.normal(5_000, 800, 20_000).round(), "y": rng.normal(-3, 0.5, 20_000)})
    frame.loc[0] = [-1e12, 1e200]
    schema = Schema(
        (
            column("x", "integer", min="auto", max="auto", bins="auto"),
            column("y", "number", min="auto", max="auto", bins="auto"),
        )
    )
    release = measure(frame, schema, epsilon=5.0, unit="add-remove")
    x, y = edges(release.schema, "x"), edges(release.schema, "y")
    assert 0 <= x[0] <= 4_000
    assert 7_000 <= x[-1] <= 2**16
    assert -64 <= y[0] <= -4
    assert -2 <= y[-1] <= 2
    assert release.schema.column("x").other == "nearest"
    assert measure(frame, release.schema, epsilon=1.0, unit="add-remove").schema == release.schema


@pytest.mark.parametrize("promise", [{"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-9}], ids=str)
def test_a_range_takes_in_the_tails_of_a_skewed_column(promise: Any) -> None:
    """Rows of several bands, of which the outer ones hold too few to stand out by themselves; a tenth and more lay outside when each band was judged alone."""
    amount = np.random.default_rng(3).lognormal(9, 1, 10_000).round(2)
    declared = column("x", "number", min="auto", max="auto", bins="auto", decimals=2)
    outside = []
    for _ in range(6):
        release = measure(
            pd.DataFrame({"x": amount}), Schema((declared,)), workload=1, unit="add-remove", **promise
        )
        found = edges(release.schema, "x")
        outside.append(np.mean((amount < found[0]) | (amount > found[-1])))
        assert found[0] >= 0
    assert np.median(outside) < 0.02


@pytest.mark.parametrize("kind", ["integer", "date"])
@pytest.mark.parametrize("declared", ["min", "max"])
@pytest.mark.parametrize("epsilon", [0.1, 10.0])
def test_a_declared_end_stays_beside_one_that_is_found(kind: Any, declared: str, epsilon: float) -> None:
    """It is public and costs nothing, however few rows are near it."""
    values: Any = np.random.default_rng(1).integers(8, 60, 5_000)
    ends: dict[str, Any] = {"min": 0, "max": 100}
    if kind == "date":
        values = (pd.Timestamp("1970-01-01") + pd.to_timedelta(values, unit="D")).date
        ends = {"min": "1970-01-01", "max": "1970-04-11"}
    open_end = column("x", kind, bins="auto", **{"min": "auto", "max": "auto", declared: ends[declared]})
    frame = pd.DataFrame({"x": values})
    found = edges(
        measure(frame, Schema((open_end,)), workload=1, epsilon=epsilon, unit="add-remove").schema, "x"
    )
    assert (found[0] == 0) if declared == "min" else (found[-1] == 101)


def test_nothing_at_all_is_found_in_no_rows() -> None:
    """An empty table fails nowhere: the budget is spent, and the bins are what noise leaves."""
    schema = Schema((*SCHEMA.columns, column("z", "number", min="auto", max="auto", bins="auto")))
    frame = people(0).assign(z=pd.Series(dtype=float))
    release = measure(frame, schema, epsilon=0.1, unit="add-remove")
    assert all(size >= 1 for size in release.schema.shape)


def test_values_that_the_range_refuses_are_refused_before_the_charge(tmp_path: Path) -> None:
    """As for every column, without a value in the message."""
    ledger = Ledger.create(tmp_path / "people.ledger", epsilon=1.0, unit="add-remove")
    frame = people(10)
    frame.loc[3, "age"] = 4711
    with pytest.raises(DataError) as refusal:
        measure(frame, SCHEMA, epsilon=1.0, unit="add-remove", ledger=ledger)
    assert "4711" not in str(refusal.value)
    assert not ledger.entries


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_what_is_known_of_intervals_has_the_variance_that_is_said(relation: str) -> None:
    """Against the true counts of the column: neither answers nor differences are off by more or less than the search believes."""
    grid, n_levels, sd, off = SCHEMA.on_grid(), 6, 20.0, []
    counts = np.bincount(np.minimum(np.random.default_rng(0).poisson(40, 50_000), 99), minlength=100)
    rng = np.random.default_rng(1)
    for _ in range(40):
        search = Search(AGE, grid.column("age"), 0, zcdp=True, differences=relation == "add-remove")
        for _ in range(n_levels):
            truth = asked(search, counts)
            search.update(truth + rng.normal(0, sd, len(truth)), sd**2)
            if not search.refine(BinRisk(50_000, 4.0, 2, 0.01)):
                break
        ends = np.concatenate([[0], np.cumsum(counts)])
        off += [
            (count - (ends[stop] - ends[start])) / variance**0.5
            for (start, stop), (count, variance) in search._known.items()
        ]
    assert len(off) > 500
    assert np.mean(off) == pytest.approx(0, abs=0.2)
    assert np.var(off) == pytest.approx(1, rel=0.15)


def asked(search: Search, cells: np.ndarray) -> np.ndarray:
    """What is asked next of rows with these counts on the grid."""
    rows = SimpleNamespace(counts=lambda axes: cells)
    return Intervals(search.axis, len(search.points) - 1, tuple(search.splits)).of(rows)


def test_differences_leave_half_of_the_noise() -> None:
    """Deep in the search the variance of an interval is a third of the noise's, where counts leave .62 of it."""
    grid, counts = SCHEMA.on_grid(), np.full(100, 10_000)
    deepest = {}
    for differences in (False, True):
        search = Search(AGE, grid.column("age"), 0, zcdp=True, differences=differences)
        search.update(asked(search, counts).astype(float), 1.0)
        while search.refine(BinRisk(1_000_000, 4.0, 2, 1.0)):
            search.update(asked(search, counts).astype(float), 1.0)
        deepest[differences] = min(variance for _, variance in search._known.values())
    assert deepest == pytest.approx({False: 0.62, True: 1 / 3}, rel=0.02)
    assert search.settled(1.0) == pytest.approx(1 / 3)


# Replayed on neighbours, from the frame on.


def neighbours(frame: pd.DataFrame, unit: Unit) -> list[pd.DataFrame]:
    """One person's rows added at an end, at an atom, in the tail, nearby; or moved there."""
    places = [
        {"age": 99, "income": 0.0},
        {"age": 0, "income": 1e6},
        {"age": 50, "income": np.nan},
        {"age": 40, "income": 5_000.0},  # in another half of the same intervals
    ]
    found = []
    for place in places:
        added = pd.DataFrame([{**place, "sex": "F"}] * unit.max_rows)
        kept = frame if unit.relation == "add-remove" else frame.iloc[unit.max_rows :]
        found.append(pd.concat([kept, added], ignore_index=True))
    return found


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_no_question_tells_neighbours_apart_by_more_than_it_declares(unit: Unit, budget: Any) -> None:
    """The same answers lead to the same questions, bins and tables; the truth behind each differs by no more than was declared."""
    epsilon, delta = budget
    method = Cipher(epsilon, delta=delta, unit=unit.relation, max_rows=unit.max_rows)
    frame = people(4_000)
    frame.loc[: unit.max_rows - 1] = [20, 30_000.0, "F"]
    here = record(method, frame, SCHEMA, seed=3)
    nearest = dict.fromkeys(("intervals", "runs"), 0.0)
    for other in neighbours(frame, unit):
        there = record(method, other, SCHEMA, replay=here, seed=3)
        for what, cost, declared in compare_answers(method, here, there):
            kind = "runs" if what.endswith("groups") else what.split()[0]
            if kind in nearest:
                nearest[kind] = max(nearest[kind], cost / declared)
    assert nearest == pytest.approx(dict.fromkeys(nearest, 1.0), rel=1e-3)  # what is declared is needed


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_a_range_that_is_found_tells_neighbours_apart_by_no_more_than_is_declared(
    unit: Unit, budget: Any
) -> None:
    """Its bands are a question of their own with a larger share; the range and all after it follow from noisy answers."""
    epsilon, delta = budget
    method = Cipher(epsilon, delta=delta, unit=unit.relation, max_rows=unit.max_rows)
    schema = Schema((AGE, replace(INCOME, min="auto", max="auto"), SEX))
    frame = people(4_000)
    frame.loc[: unit.max_rows - 1] = [20, 30_000.0, "F"]
    here, nearest = record(method, frame, schema, seed=3), 0.0
    for other in neighbours(frame, unit):
        there = record(method, other, schema, replay=here, seed=3)
        rows = [row for row in compare_answers(method, here, there) if row[0] == "intervals of income"]
        assert rows
        nearest = max([nearest, *(cost / declared for _, cost, declared in rows)])
    assert nearest == pytest.approx(1.0, rel=1e-3)


def test_a_person_column_limits_rows_on_the_grid() -> None:
    """The rows that stay are chosen by that person's own rows; the rest is as without a limit."""
    frame = people(600).assign(who=np.arange(600) // 3)
    method = Cipher(3.0, unit="add-remove", max_rows=2, person="who")
    here = record(method, frame, SCHEMA, seed=5)
    added = pd.DataFrame({"age": [1, 98, 50], "income": [0.0, 1e6, 2e5], "sex": "F", "who": 999})
    there = record(method, pd.concat([frame, added]), SCHEMA, replay=here, seed=5)
    rows = compare_answers(method, here, there)
    assert max(cost / declared for _, cost, declared in rows) <= 1 + 1e-9


def test_bins_follow_from_noisy_answers_alone() -> None:
    """A person with very many rows moves where cuts would best be; given the same answers, the schema is the same."""
    method = Cipher(3.0, unit="add-remove", max_rows=150)
    here = record(method, people(2_000), SCHEMA, seed=3)
    for other in neighbours(people(2_000), Unit("add-remove", 150)):
        there = record(method, other, SCHEMA, replay=here, seed=3)
        assert compare_answers(method, here, there)
        assert there.schema == here.schema


def test_a_schema_that_follows_from_rows_is_noticed() -> None:
    """The found schema is an answer too: a transcript with another one is refused."""
    method = Cipher(3.0, unit="add-remove")
    here = record(method, people(400), SCHEMA, seed=3)
    there = replace(record(method, people(400), SCHEMA, replay=here, seed=3), schema="another")
    with pytest.raises(Violation, match="schema"):
        compare_answers(method, here, there)


@pytest.mark.parametrize("sets", [1, 10_000])
@pytest.mark.parametrize("workload", [1, "auto"])
def test_a_budget_too_small_for_finding_is_refused_before_the_charge(
    workload: int | str, sets: int, tmp_path: Path
) -> None:
    """By the release, a method and the plan alike: nothing is charged for what the search could not ask."""
    ledger = Ledger.create(tmp_path / "people.ledger", epsilon=1, unit="add-remove")
    asked = {
        "epsilon": 1e-10 if sets == 1 else 4e-7,
        "unit": "add-remove",
        "workload": workload,
        "sets": sets,
    }
    with pytest.raises(BudgetError, match="must be at most"):
        measure(people(10), SCHEMA, ledger=ledger, **asked)
    with pytest.raises(BudgetError, match="must be at most"):
        Cipher(ledger=ledger, **asked).fit(people(10), SCHEMA)
    with pytest.raises(BudgetError, match="must be at most"):
        dc.plan(SCHEMA, **asked)
    assert ledger.entries == ()
