"""A plan of an open schema judges tables by what is expected to be found, and not by the most there can be."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.special import ndtr

import dpcipher as dc
from dpcipher.planning.plan import Step
from dpcipher.schema import column

SCHEMA = dc.Schema(
    (
        column("age", "integer", min=0, max=99, bins="auto"),
        column("pay", "number", min=0, max=1000, bins="auto", edges=[100, 200, 300, 400, 500]),
        column("sex", "boolean"),
    )
)
CITY = column("city", "categorical", levels="discover", pattern="[a-z]+", max_length=4)


@pytest.mark.parametrize("n_rows", [50, 3_000, 10**6])
def test_tables_have_the_cells_of_the_expected_bins(n_rows: int) -> None:
    """Forced edges make at least their own bins; noise is that of the same shares as before."""
    plan = dc.plan(SCHEMA, epsilon=1.0, unit="add-remove", n_rows=n_rows)
    age, pay = (found.expected for found in plan.bins)
    assert age is not None
    assert pay is not None
    cells = {table.attrs: table.n_cells for table in plan.tables}
    assert cells == {
        ("age", "pay"): age * max(pay, 6),
        ("age", "sex"): age * 2,
        ("pay", "sex"): max(pay, 6) * 2,
    }
    most = dc.plan(SCHEMA, epsilon=1.0, unit="add-remove")
    assert [table.n_cells for table in most.tables] == [64 * 64, 128, 128]
    assert [table.sd for table in most.tables] == [table.sd for table in plan.tables]
    assert plan.to_dict()["cost"].keys() == most.to_dict()["cost"].keys()
    assert "those of the bins expected" in str(plan)
    assert "those of the most bins" in str(most)


def test_more_levels_than_the_rows_allow_are_not_expected() -> None:
    """With 1,000 rows and a threshold of 74, at most 13 texts can be found, beside other; fewer where some are more frequent than others."""
    schema = dc.Schema((CITY, column("sex", "boolean")))
    plan = dc.plan(schema, epsilon=1.0, delta=1e-6, unit="add-remove", n_rows=1_000)
    assert plan.levels is not None
    assert plan.levels.most == 1_000 // plan.levels.threshold == 13
    assert plan.levels.expected is not None
    assert 1 <= plan.levels.expected <= 13
    assert plan.n_cells == (plan.levels.expected + 1) * 2
    assert f"about {plan.levels.expected} in a column" in str(plan)


def test_expected_levels_are_those_of_a_release_of_texts_that_become_rarer() -> None:
    """The k-th of 200 texts is a k-th as frequent as the first: a release finds about as many as the plan says."""
    texts = [f"{chr(97 + k // 26)}{chr(97 + k % 26)}" for k in range(200)]
    shares = 1 / np.arange(1, 201)
    cities = np.random.default_rng(1).choice(texts, 20_000, p=shares / shares.sum())
    frame = pd.DataFrame({"city": cities, "sex": True})
    schema = dc.Schema((CITY, column("sex", "boolean")))
    plan = dc.plan(schema, epsilon=1.0, delta=1e-6, unit="add-remove", n_rows=20_000)
    release = dc.measure(frame, schema, epsilon=1.0, delta=1e-6, unit="add-remove")
    assert plan.levels is not None
    assert plan.levels.expected == pytest.approx(release.statement.certificate["levels"]["city"], rel=0.25)


def people(n: int) -> pd.DataFrame:
    """Columns of four shapes, and two of levels, all of which depend on one hidden number."""
    rng = np.random.default_rng(n)
    hidden = rng.normal(size=n)

    def column() -> Any:
        return 0.6 * hidden + 0.8 * rng.normal(size=n)

    few = np.array([0, 1, 2, 3, 5, 10, 50])[np.searchsorted([0.0, 0.5, 0.8, 1.2, 1.6, 2.0], column())]
    return pd.DataFrame(
        {
            "even": np.floor(1_000 * ndtr(column())).astype(int).clip(0, 999),
            "bell": (500 + 100 * column()).astype(int).clip(0, 999),
            "skewed": np.exp(10 + column()).astype(int).clip(0, 999_999),
            "few": few,
            "c": np.floor(3 * ndtr(column())).astype(int).clip(0, 2),
            "d": np.floor(9 * ndtr(column())).astype(int).clip(0, 8),
        }
    )


PEOPLE = dc.Schema(
    (
        column("even", "integer", min=0, max=999, bins="auto"),
        column("bell", "integer", min=0, max=999, bins="auto"),
        column("skewed", "integer", min=0, max=999_999, bins="auto"),
        column("few", "integer", min=0, max=60, bins="auto"),
        column("c", "categorical", levels=[0, 1, 2]),
        column("d", "categorical", levels=list(range(9))),
    )
)


@pytest.mark.parametrize("delta", [None, 1e-9])
@pytest.mark.parametrize("n_rows", [2_000, 20_000])
def test_a_plan_foresees_the_bins_and_the_error_of_a_release(n_rows: int, delta: float | None) -> None:
    """Bins of every column within a few times the rehearsals, those of all columns within twice of what is expected; so is the error of the solved pairs."""
    frame, terms = people(n_rows), {"epsilon": 1.0, "delta": delta, "unit": "add-remove"}
    plan = dc.plan(PEOPLE, n_rows=n_rows, **terms)
    release = dc.measure(frame, PEOPLE, **terms)
    found = release.statement.certificate["bins"]["found"]
    for declared in plan.bins:
        fewest, most = min(declared.found.values()), max(declared.found.values())
        assert fewest / 6 <= found[declared.column] <= min(declared.most, most * 3)
    expected = sum(declared.expected or 0 for declared in plan.bins)
    assert expected / 2.5 <= sum(found.values()) <= expected * 2
    joint, codes = dc.solve(release), release.schema.encode(pa.Table.from_pandas(frame))
    distances = []
    for table in plan.tables:
        axes = [PEOPLE.attrs.index(attr) for attr in table.attrs]
        true = np.zeros([release.schema.shape[axis] for axis in axes])
        np.add.at(true, tuple(codes[:, axes].T), 1 / n_rows)
        distances.append(0.5 * np.abs(np.asarray(joint.project(table.attrs)) - true).sum())
    foreseen = np.mean([table.solved_tvd for table in plan.tables if table.solved_tvd is not None])
    assert foreseen / 2.5 <= np.mean(distances) <= foreseen * 1.8


def test_a_plan_says_the_same_twice() -> None:
    """Made-up noise has a seed; it is in no release."""
    plans = [dc.plan(PEOPLE, epsilon=1.0, unit="add-remove", n_rows=3_000).to_dict() for _ in range(2)]
    assert plans[0]["bins"] == plans[1]["bins"]
    assert [t["solved_tvd"] for t in plans[0]["tables"]] == [t["solved_tvd"] for t in plans[1]["tables"]]


@pytest.mark.parametrize("kind", ["integer", "number", "date"])
@pytest.mark.parametrize(("low", "high"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_open_ends_are_rehearsed_too(kind: Any, low: int, high: int) -> None:
    """Whichever end is open, made-up rows lie on the grid, and every shape finds a bin."""
    ends = ("1950-01-01", "2020-01-01") if kind == "date" else (-50, 50)
    declared = column("x", kind, min=ends[0] if low else "auto", max=ends[1] if high else "auto", bins="auto")
    schema = dc.Schema((declared, column("sex", "boolean")))
    plan = dc.plan(schema, epsilon=1.0, delta=1e-6, unit="replace", n_rows=20_000)
    (found,) = plan.bins
    assert len(found.found) == 4
    assert all(1 < bins <= found.most for bins in found.found.values())


def test_solved_errors_are_those_of_the_best_estimate_of_typical_tables() -> None:
    """Drawn instead of calculated: deviations from even margins at the typical distance, with noise, shrunk by their variances."""
    schema = dc.Schema.from_domain({"a": 6, "b": 7})
    plan = dc.plan(schema, workload=2, epsilon=0.05, unit="add-remove", n_rows=2_000)
    (table,) = plan.tables
    rng, noise = np.random.default_rng(3), table.sd
    prior = 0.2 * 2_000 / (np.sqrt(2 / np.pi) * 42)
    own = rng.normal(scale=prior, size=(4_000, 42))
    heard = own + rng.normal(scale=noise * np.sqrt(5 / 6 * 6 / 7), size=own.shape)
    part = prior**2 / (prior**2 + noise**2 * 5 / 6 * 6 / 7)
    errors = [np.abs(part * heard - own).sum(axis=1).mean() / 2 / 2_000]
    for levels, beside in ((6, 7), (7, 6)):
        count, spread = 2_000 / levels, noise * np.sqrt(beside * (1 - 1 / levels))
        true = rng.normal(scale=count, size=(4_000, levels))
        shrunk = (true + rng.normal(scale=spread, size=true.shape)) * count**2 / (count**2 + spread**2)
        errors.append(np.abs(shrunk - true).sum(axis=1).mean() / 2 / 2_000)
    assert table.solved_tvd == pytest.approx(np.hypot(np.hypot(errors[0], errors[1]), errors[2]), rel=0.03)
    assert table.tvd is not None
    assert table.solved_tvd < table.tvd


def test_a_chosen_workload_counts_candidates_of_the_expected_bins() -> None:
    """A pair of two open columns of 128 bins has too many cells to be a candidate, one of the expected bins has not."""
    wide = tuple(replace(declared, max_bins=128) for declared in SCHEMA.columns[:2])
    schema = dc.Schema((*wide, SCHEMA.columns[2], column("c", "categorical", levels=list("abc"))))
    options = {"epsilon": 1.0, "delta": 1e-6, "unit": "add-remove", "workload": "auto"}
    assert dc.plan(schema, **options).selection.pairs == 5
    assert dc.plan(schema, **options, n_rows=5_000).selection.pairs == 6


def test_triples_that_are_looked_at_are_not_said_to_be_none() -> None:
    """Where only the second round is too noisy, that is what is said."""
    schema = dc.Schema.from_domain(dict.fromkeys("abcdefghijkl", 4))
    plan = dc.plan(schema, workload="auto", epsilon=1.0, delta=1e-9, unit="add-remove", n_rows=10_000)
    pairs = next(step for step in plan.steps if step.name == "distances of pairs")
    alone = replace(plan, selection=replace(plan.selection, second_tvd=1.5), steps=(pairs,))
    both = replace(alone, steps=(pairs, Step("distances of triples", pairs.share, 3, 9, 1.0)))
    assert "Triples  none: their noise" in str(alone)
    assert "Triples  only those looked at above; no second round: its noise" in str(both)


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_a_table_alone_is_not_foreseen_to_lose_by_reconciling(delta: float | None) -> None:
    """There is nothing to reconcile it with: Laplace noise has its own mean absolute value, not that of normal noise."""
    schema = dc.Schema.from_domain({"a": 30, "b": 30})
    (table,) = dc.plan(schema, epsilon=1.0, delta=delta, unit="add-remove", n_rows=5_000).tables
    assert table.tvd is not None
    assert table.reconciled_tvd == pytest.approx(table.tvd, rel=1e-3)
    assert table.reconciled_tvd <= table.tvd
