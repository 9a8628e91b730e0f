"""`measure(workload="auto")`: one charge before any draw, nothing charged on a refusal, and a release that says what was chosen."""

import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpcipher as dc
from dpcipher.curator import measure as module
from dpcipher.curator.counts import LocalRows
from dpcipher.curator.kernel import Columns
from dpcipher.errors import DataError, DpcipherError, LedgerExceeded, SchemaError
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.draws import OpenDPChooser, OpenDPNoise
from dpcipher.privacy.ledger import Ledger
from dpcipher.release.release import Release
from dpcipher.schema.rules.rule import Zero
from dpcipher.schema.schema import Schema

SCHEMA = Schema.from_domain({"age": 4, "sex": 2, "job": 3, "pay": 3})
BUDGETS = [{"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-6}, {"rho": 0.1}]


def rows(n_rows: int = 600) -> pd.DataFrame:
    """Integer-coded rows in which pay follows from the job."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({name: rng.integers(0, size, n_rows) for name, size in zip(SCHEMA.attrs, SCHEMA.shape, strict=True)})  # fmt: skip
    return frame.assign(pay=np.where(rng.random(n_rows) < 0.1, frame["pay"], frame["job"]))


def chosen(data: object, schema: Schema = SCHEMA, **options: object) -> Release:
    """A release with chosen tables, at epsilon 1 under add-remove unless said otherwise."""
    said = {"epsilon": 1.0, "unit": "add-remove"} | options
    choice = {
        name: said.pop(name)
        for name in ("max_order", "max_cells", "target", "column_weights")
        if name in said
    }
    return dc.measure(data, schema, workload=dc.Auto(**choice) if choice else "auto", **said)


def test_no_row_is_kept_where_few_tables_can_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them are counted as the rows are read; where they are many, rows are kept."""

    def kept(_: LocalRows) -> list[Columns]:
        raise AssertionError("rows are kept")

    monkeypatch.setattr(LocalRows, "rows", kept)
    schema = Schema.from_domain({"age": 90, "sex": 2, "job": 90, "pay": 90, "town": 90})
    frame = pd.DataFrame(np.random.default_rng(1).integers(0, schema.shape, (600, 5)), columns=schema.attrs)
    assert len(chosen(frame, schema).measurements) >= 5
    monkeypatch.setattr("dpcipher.selection.target.MOST_TABLES", 3)
    with pytest.raises(AssertionError, match="rows are kept"):
        chosen(frame, schema)


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("unit", ["add-remove", "replace"])
def test_the_whole_budget_is_charged_once_and_never_exceeded(
    budget: dict[str, float], unit: str, tmp_path: Path
) -> None:
    """One entry of the whole budget in the ledger; shares add up to one, and their costs, by OpenDP's maps, to no more than it."""
    path = tmp_path / "people.ledger"
    release = chosen(rows(), **({"epsilon": None} | budget), unit=unit, max_rows=2, ledger=path, create=True)
    (entry,) = Ledger.open(path).entries
    whole = Budget.parse(**budget).composable()
    assert entry.cost == whole
    assert entry.checksum == release.checksum
    wanted = {"tables": "auto", "sets": 1, "schema": SCHEMA.fingerprint()}
    assert entry.what == {**wanted, "asked": Budget.parse(**budget).describe()}
    certificate = release.statement.certificate
    assert sum(Fraction(event["share"]) for event in certificate["events"]) == 1
    limit = float(whole.rho or whole.epsilon)
    assert certificate["total"] <= limit
    assert math.fsum(event["cost"] for event in certificate["events"]) == pytest.approx(limit, rel=1e-9)
    assert certificate["by"] == "privacy map of opendp"
    assert release.statement.status == "certified"
    assert release.statement.n_rows == (600 if unit == "replace" else None)


def test_the_charge_is_there_before_anything_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every draw, of noise or of a choice, the ledger already holds the whole charge, not yet marked as released."""
    path, seen = tmp_path / "people.ledger", []

    def watched(draw: Callable[..., object]) -> Callable[..., object]:
        def first(*given: object) -> object:
            seen.append([(entry.cost, entry.checksum) for entry in Ledger.open(path).entries])
            return draw(*given)

        return first

    monkeypatch.setattr(OpenDPNoise, "_noisy", watched(OpenDPNoise._noisy))
    monkeypatch.setattr(OpenDPChooser, "_choose", watched(OpenDPChooser._choose))
    monkeypatch.setattr("dpcipher.selection.rounds.GOOD_NOISE", 0.0)
    monkeypatch.setattr("dpcipher.selection.rounds.MAX_TVD", 0.0)
    monkeypatch.setattr("dpcipher.selection.rounds.shortlist_length", lambda *_: 4)
    release = chosen(rows(), epsilon=0.1, max_cells=60, n_rows_public=True, ledger=path, create=True)
    assert len(seen) >= len(release.statement.certificate["events"])
    assert any("to look at" in event["what"] for event in release.statement.certificate["events"])
    assert set(map(tuple, seen)) == {((Budget.parse(epsilon=0.1), None),)}


def test_what_fails_after_the_charge_stays_charged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No refunds: the entry stays, unreleased, and a second try is refused."""
    path = tmp_path / "people.ledger"

    def broken(*given: object, **options: object) -> object:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(module, "select", broken)
        with pytest.raises(ZeroDivisionError):
            chosen(rows(), ledger=path, create=True)
    assert [entry.checksum for entry in Ledger.open(path).entries] == [None]
    with pytest.raises(LedgerExceeded):
        chosen(rows(), ledger=path)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"max_order": 0}, "max_order (0) must be"),
        ({"max_order": 2.5}, "max_order (2.5) must be"),
        ({"max_cells": -5}, "max_cells (-5) must be"),
        ({"target": 7}, "target (7) must be an order from 1 to 4"),
        ({"target": [("age", "sxe")]}, "column 'sxe' is not in the schema; did you mean 'sex'?"),
        ({"target": [3]}, "target ([3]) must be an order such as 2, or a list of tables"),
        ({"column_weights": {"salary": 2.0}}, "column 'salary' is not in the schema"),
        ({"column_weights": {"age": -1}}, "column_weights['age'] (-1) must be"),
        ({"column_weights": [2.0]}, "column_weights ([2.0]) must"),
        ({"weights": {("age", "sex"): 1.0}}, "weights are for tables that are given"),
        ({"sets": 0}, "sets (0) must be"),
        ({"unit": "row"}, "unit ('row') must be"),
        ({"epsilon": -1.0}, "epsilon (-1.0) must be"),
        ({"save": "no/such/folder/people.parquet"}, "people.parquet"),
        ({"person": "whose"}, "whose"),
    ],
    ids=str,
)
def test_a_refusal_costs_nothing(options: dict[str, object], says: str, tmp_path: Path) -> None:
    """Whatever is wrong with a request is said before the charge."""
    ledger = Ledger.create(tmp_path / "people.ledger", epsilon=1, unit="add-remove")
    if "save" in options:
        options = {"save": tmp_path / str(options["save"])}
    with pytest.raises(DpcipherError) as refusal:
        chosen(rows(), ledger=ledger, **options)
    assert says in str(refusal.value)
    assert ledger.entries == ()


@pytest.mark.parametrize("workload", ["pairs", "AUTO", ""])
def test_a_word_that_is_not_auto_is_refused(workload: str) -> None:
    """With what it could be instead."""
    with pytest.raises(ValueError, match=r"workload \('.*'\) must be 'auto', an order such as 2, or a list"):
        dc.measure(rows(), SCHEMA, workload=workload, epsilon=1, unit="add-remove")


def test_rows_that_do_not_fit_cost_nothing_and_are_not_quoted(tmp_path: Path) -> None:
    """A value outside the schema: the message names the column, never the value."""
    ledger = Ledger.create(tmp_path / "people.ledger", epsilon=1, unit="add-remove")
    with pytest.raises(DataError) as refusal:
        chosen(rows().assign(age=777), ledger=ledger)
    assert "age" in str(refusal.value)
    assert "777" not in str(refusal.value)
    assert ledger.entries == ()


def test_a_draft_is_refused_until_signed(tmp_path: Path) -> None:
    """A schema read off the rows is no public fact."""
    draft = dc.Schema.draft(rows())
    ledger = Ledger.create(tmp_path / "people.ledger", epsilon=1, unit="add-remove")
    with pytest.raises(SchemaError, match="signed off"):
        chosen(rows(), draft, ledger=ledger)
    assert ledger.entries == ()
    assert (
        chosen(rows(), draft.sign("A curator", "2026-01-01", unchanged=True), ledger=ledger).statement.status
        == "certified"
    )


def test_a_release_says_what_was_chosen_and_keeps_it(tmp_path: Path) -> None:
    """Share, rounds and numbers of tables, in the statement and in the file; the joint can be solved from the file."""
    path = tmp_path / "people.parquet"
    release = chosen(
        rows(3000), epsilon=400.0, max_cells=60, save=path, ledger=tmp_path / "people.ledger", create=True
    )
    note = release.statement.certificate["selection"]
    asked = [event for event in release.statement.certificate["events"] if event["what"].endswith((" tables", "table", "look at", "of rows"))]  # fmt: skip
    assert Fraction(note["share"]) == sum(Fraction(event["share"]) for event in asked)
    assert note["rounds"] > 1
    assert note["tables"] == len(release.workload)
    loaded = Release.load(path)
    assert loaded.statement.certificate["selection"] == note
    assert loaded.checksum == release.checksum == Ledger.open(tmp_path / "people.ledger").entries[0].checksum
    assert loaded.workload == release.workload
    assert any({"job", "pay"} <= set(attrs) for attrs in loaded.workload)
    joint = dc.solve(loaded)
    true = rows(3000).groupby(["job", "pay"]).size().unstack().to_numpy() / 3000
    assert np.abs(np.asarray(joint.project(("job", "pay"))) - true).sum() / 2 < 0.05


def forms(folder: Path) -> dict[str, object]:
    """The same rows as a data frame, an Arrow table and files."""
    frame = rows(3000)
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), folder / "people.parquet")
    frame.to_csv(folder / "people.csv", index=False)
    return {
        "pandas": frame,
        "arrow": pa.Table.from_pandas(frame, preserve_index=False),
        "parquet": folder / "people.parquet",
        "csv": str(folder / "people.csv"),
    }


def test_any_form_of_the_rows_will_do(tmp_path: Path) -> None:
    """At a huge budget every form has the same counts, to the row."""
    for kind, data in forms(tmp_path).items():
        release = chosen(data, epsilon=5000.0, max_order=2)
        assert ("job", "pay") in release.workload, kind
        assert release.n_rows == 3000
        found = release.project(("job", "pay")).values
        np.testing.assert_allclose(found, rows(3000).groupby(["job", "pay"]).size().unstack(), atol=1)


def test_noise_differs_between_runs() -> None:
    """Three runs on the same rows: no two alike."""
    runs = [chosen(rows()) for _ in range(3)]
    assert len({b"".join(table.values.tobytes() for table in release.measurements) for release in runs}) == 3
    with pytest.raises(TypeError):
        chosen(rows(), seed=1)


def test_sets_are_independent_sanitizations_of_the_same_tables() -> None:
    """Three sets, one choice: the same attrs in each, and noise of their own."""
    release = chosen(rows(), delta=1e-6, sets=3)
    by_set = [[table for table in release.measurements if table.set == number] for number in range(3)]
    assert release.sets == 3
    assert [[table.query for table in tables] for tables in by_set[1:]] == [
        [table.query for table in by_set[0]]
    ] * 2
    assert len({tables[0].values.tobytes() for tables in by_set}) > 1
    assert len(dc.solve(release)) == 3


def test_a_person_column_bounds_what_one_person_adds() -> None:
    """One person with six hundred rows counts for two."""
    release = chosen(rows().assign(who="one"), unit="replace", max_rows=2, person="who", epsilon=5000.0)
    assert release.n_rows == 2


def test_a_declared_number_of_rows_is_used_and_stated() -> None:
    """Under add-remove only where the curator says that it is public."""
    assert chosen(rows(), n_rows_public=True).statement.n_rows == 600
    assert chosen(rows()).statement.n_rows is None


CASES: dict[str, tuple[Schema, pd.DataFrame]] = {
    "one column": (Schema.from_domain({"a": 3}), pd.DataFrame({"a": [0, 1, 2, 2]})),
    "two columns": (Schema.from_domain({"a": 3, "b": 2}), pd.DataFrame({"a": [0, 1, 2], "b": [0, 1, 1]})),
    "no rows": (SCHEMA, rows(0)),
    "one row": (SCHEMA, rows(1)),
    "one level": (
        Schema.from_domain({"a": 1, "b": 2, "c": 3}),
        pd.DataFrame({"a": [0] * 50, "b": [0, 1] * 25, "c": [2] * 50}),
    ),
    "only one level": (Schema.from_domain({"a": 1, "b": 1}), pd.DataFrame({"a": [0] * 9, "b": [0] * 9})),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("unit", ["add-remove", "replace"])
@pytest.mark.parametrize("options", [{"epsilon": 0.01}, {"epsilon": 30.0}, {"rho": 0.5, "epsilon": None, "sets": 3}], ids=str)  # fmt: skip
def test_small_tables_work(case: str, unit: str, options: dict[str, object]) -> None:
    """One column, no rows, columns that cannot vary: every column is measured in every set, and all of the budget is spent or capped."""
    schema, frame = CASES[case]
    release = chosen(frame, schema, unit=unit, **options)
    for number in range(release.sets):
        tables = [
            release.schema.attrs_on(table.query.axes) for table in release.measurements if table.set == number
        ]
        assert {name for attrs in tables for name in attrs} == set(schema.attrs)
    assert sum(Fraction(event["share"]) for event in release.statement.certificate["events"]) <= 1
    assert release.statement.certificate["selection"]["tables"] == len(release.workload)


@pytest.mark.parametrize("cells", [60, 10_000])
def test_structural_zeros_are_kept(cells: int) -> None:
    """What cannot be is not sampled, and does not keep the choice from finding what is."""
    schema = Schema(SCHEMA.columns, zeros=(Zero({"sex": 1, "job": 2}),))
    frame = rows(3000)
    frame = frame[~((frame["sex"] == 1) & (frame["job"] == 2))]
    release = chosen(frame, schema, epsilon=5.0, max_cells=cells)
    assert any({"job", "pay"} <= set(attrs) for attrs in release.workload)
    drawn = dc.solve(release).sample(500, seed=1)
    assert not ((drawn["sex"] == 1) & (drawn["job"] == 2)).any()


def test_progress_is_told_in_public_words() -> None:
    """The steps, with numbers of tables, which are public."""
    said: list[str] = []
    chosen(rows(3000), epsilon=40.0, max_cells=60, progress=said.append)
    assert said[:2] == ["reading", "charging the ledger and drawing noise"]
    assert "reading the distances of 6 tables" in said
    assert not any("3000" in text for text in said)
