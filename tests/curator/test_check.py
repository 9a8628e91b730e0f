"""Rows against a schema: every mismatch at once, with exact counts, for the curator alone."""

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpcipher as dc
from dpcipher.curator.check import FIRST_ROWS
from dpcipher.drawing.curator_only import WATERMARK
from dpcipher.errors import DpcipherError
from dpcipher.schema import Schema, Zero, column
from dpcipher.schema.format import FileFormat

CANARY = "Zebra4711"
SCHEMA = Schema(
    (
        column("sex", "categorical", levels=["F", "M"]),
        column("age", "integer", min=0, max=99, bins=10),
        column("pay", "number", edges=[0, 10, 20], missing="level", other="nearest"),
        column("day", "date", min="2024-01-01", max="2024-12-31", bins=4, other="missing", missing="level"),
        column("job", "categorical", levels=["no", "yes", "else"], other="else"),
    ),
    zeros=(
        Zero({"age": "0..9", "job": "yes"}, {"job": "no"}),
        Zero({"sex": "F", "job": "else"}),
    ),
)
GOOD = {"sex": "M", "age": "30", "pay": "5", "day": "2024-05-05", "job": "no"}


def frame(*changes: dict[str, Any]) -> pd.DataFrame:
    """Rows that fit, but for what is changed in each."""
    return pd.DataFrame([{**GOOD, **change} for change in changes], dtype=object)


def counts(data: object, schema: Schema = SCHEMA) -> dict[tuple[str, str], tuple[int, bool]]:
    """How many rows each finding counts, and whether they are refused."""
    found = dc.Schema.check(schema, data)
    return {(one.column, one.problem): (one.rows, one.refused) for one in found.findings}


def test_every_mismatch_of_every_column_is_listed_at_once() -> None:
    """Counted by hand, refused ones apart from those that the schema says what to do with."""
    rows = frame(
        {}, {"sex": CANARY}, {"sex": None}, {"sex": "X", "age": "-1"}, {"age": "100"}, {"age": "x"}, {"age": "1.5"},
        {"pay": "-3"}, {"pay": "21"}, {"pay": "20"}, {"pay": ""}, {"pay": "many"}, {"day": "2023-01-01"}, {"day": CANARY},
        {"job": "pilot"}, {"age": "3", "job": "yes"}, {"sex": "F", "job": "pilot"}, {"sex": "X", "job": "else"},
    )  # fmt: skip
    assert counts(rows) == {
        ("sex", "missing"): (1, True),
        ("sex", "undeclared"): (3, True),
        ("age", "below the range"): (1, True),
        ("age", "above the range"): (1, True),
        ("age", "no number"): (1, True),
        ("age", "not whole"): (1, True),
        ("pay", "missing"): (1, False),
        ("pay", "below the range"): (1, False),
        ("pay", "above the range"): (1, False),
        ("pay", "no number"): (1, True),
        ("day", "below the range"): (1, False),
        ("day", "no number"): (1, False),
        ("job", "undeclared"): (2, False),
        ("age and job", "structural zero"): (1, False),
        ("sex and job", "structural zero"): (1, True),
    }
    found = SCHEMA.check(rows)
    assert next(one for one in found.findings if one.problem == "undeclared").first == (2, 4, 18)
    assert str(found).splitlines()[0] == WATERMARK
    assert "needs a signature" in str(found) or "sign it" in str(found)
    assert CANARY not in str(found) + str(found.to_dict())
    assert not found.fits
    assert len(found.frame) == len(found.findings)


def test_spaces_around_a_declared_value_are_said() -> None:
    """They count, and nothing in a printed table shows them; measure's refusal names them without looking."""
    rows = frame({"sex": " F"}, {"sex": "M "}, {"sex": " X"}, {"job": " pilot "}, {"job": " yes"})
    assert counts(rows) == {
        ("sex", "spaces"): (2, True),
        ("sex", "undeclared"): (1, True),
        ("job", "spaces"): (1, False),
        ("job", "undeclared"): (1, False),
    }
    assert "declared, but for the spaces around them" in str(SCHEMA.check(rows))
    with pytest.raises(DpcipherError, match="capitals and spaces included"):
        dc.measure(rows, SCHEMA, workload=1, epsilon=1, unit="add-remove")


def test_what_fits_is_measured_and_what_does_not_is_refused() -> None:
    """One mismatch at a time: the check says refused exactly where reading the rows is refused."""
    rng = np.random.default_rng(0)
    pools: dict[str, list[Any]] = {
        "sex": ["F", "M", "X", None, ""],
        "age": ["3", "50", "120", "-1", "1.5", "x", None, 7, 7.0],
        "pay": ["5", "25", "-5", "x", None, "20"],
        "day": ["2024-02-02", "2020-01-01", "x", None],
        "job": ["no", "yes", "else", "pilot"],
    }
    schema = Schema(
        (*SCHEMA.columns[:4], column("job", "categorical", levels=["no", "yes", "else"], missing="level")),
        zeros=SCHEMA.zeros,
    )
    refusals = 0
    for _ in range(300):
        row = frame({name: pool[rng.integers(len(pool))] for name, pool in pools.items()})
        said = SCHEMA.check(row).fits, schema.check(row).fits
        for declared, fits in zip((SCHEMA, schema), said, strict=True):
            try:
                dc.measure(row, declared, workload=1, epsilon=1, unit="add-remove")
                measured = True
            except DpcipherError:
                measured = False
            assert measured == fits, row
            refusals += not fits
    assert 100 < refusals < 590


def test_rows_are_counted_over_all_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Places are those of the table, however it is cut; of many only the first are told."""
    monkeypatch.setattr("dpcipher.io.objects.FRAME_ROWS", 7)
    rows = frame(*[{"sex": "X"} if i % 10 == 9 else {} for i in range(1000)])
    (finding,) = SCHEMA.check(rows).findings
    assert finding.rows == 100
    assert finding.first == (10, 20, 30, 40, 50)
    assert len(finding.first) == FIRST_ROWS
    assert "row 10, 20, 30, 40, 50, …" in str(finding)


def test_a_format_that_cannot_be_right_is_said_and_the_rest_is_listed_all_the_same(tmp_path: Path) -> None:
    """Separator, encoding and decimal comma are proposed; the columns are then judged under the proposal."""
    schema = Schema(
        (column("city", "categorical", levels=["Köln"]), column("pay", "number", edges=[0, 2, 3]))
    )
    path = tmp_path / "t.csv"
    path.write_bytes("city;pay\nKöln;1,5\nKöln;2,5\nBonn;9,25\n".encode("latin-1"))
    found = schema.check(path)
    assert found.format == {"separator": ";", "encoding": "cp1252", "decimal": ","}
    assert 'format: {separator: ";", encoding: cp1252, decimal: ","}' in str(found)
    assert {(one.column, one.problem, one.rows) for one in found.findings} == {
        ("", "format", 0),
        ("city", "undeclared", 1),
        ("pay", "above the range", 1),
    }
    declared = Schema(schema.columns, format=FileFormat(separator=";", encoding="latin-1", decimal=","))
    assert declared.check(path).format == {}
    path.write_text("city,pay\nKöln,1.5\n", encoding="utf-8")
    assert schema.check(path).fits


def test_absent_and_extra_columns_are_said(tmp_path: Path) -> None:
    """A name that differs in case is hinted at, others are counted; the columns that are there are judged."""
    path = tmp_path / "t.db"
    base = sqlite3.connect(path)
    base.execute(f"CREATE TABLE t (SEX, {CANARY}, age)")
    base.execute("INSERT INTO t VALUES ('F', 1, 200)")
    base.commit()
    base.close()
    schema = Schema(SCHEMA.columns[:2])
    found = schema.check(f"{path}::t")
    assert "did you mean 'SEX'" in str(found)
    assert "2 columns of the table are not in the schema and are ignored" in str(found)
    assert CANARY not in str(found)
    assert [(one.column, one.problem) for one in found.findings] == [
        ("sex", "name"),
        ("age", "above the range"),
    ]


def test_a_table_without_any_of_the_columns_is_said_to_be_one_once(tmp_path: Path) -> None:
    """Rows are counted all the same. Header lines are a matter of text files, separators of none that was looked at."""
    with sqlite3.connect(tmp_path / "t.db") as base:
        base.executescript('CREATE TABLE "t" (a INTEGER); INSERT INTO "t" VALUES (1), (2);')
    base.close()
    (tmp_path / "t.csv").write_text("a\n1\n2\n")
    for path, headed in ((f"{tmp_path / 't.db'}::t", 0), (tmp_path / "t.csv", 1)):
        found = dc.Schema.check(SCHEMA, path)
        assert found.n_rows == 2
        assert [one.column for one in found.findings] == ["", *SCHEMA.names][1 - headed :]
        assert str(found).count("header line") == headed
        assert "separator" not in str(found)
        assert "schema check" not in str(found)
        with pytest.raises(DpcipherError, match="no column 'sex'") as refused:
            dc.measure(path, SCHEMA, epsilon=1, unit="add-remove")
        assert ("separator" in str(refused.value)) == bool(headed)


def test_measuring_says_how_many_columns_it_ignores() -> None:
    """In its progress, without their names; nothing where all are wanted."""
    rows = pd.DataFrame({"a": [0, 1], CANARY: [1, 2], "who": [1, 2]})
    schema, said = Schema.from_domain({"a": 2}), list[str]()
    dc.measure(rows, schema, workload=1, epsilon=1, unit="add-remove", person="who", progress=said.append)
    assert said[0] == "1 column of the table is not in the schema and is ignored"
    assert CANARY not in " ".join(said)
    said.clear()
    dc.measure(rows[["a"]], schema, workload=1, epsilon=1, unit="add-remove", progress=said.append)
    assert not any("ignored" in text for text in said)


def test_rows_that_break_rules_are_counted() -> None:
    """Refused, or moved where the rule says where to; rows that a column refuses break none."""
    schema = Schema.from_dict(
        {
            "columns": {
                "age": {"kind": "integer", "min": 0, "max": 99},
                "status": {"kind": "categorical", "levels": ["single", "married"]},
                "work": {"kind": "boolean"},
            },
            "rules": [
                "age < 15 -> status == single",
                {"rule": "age < 10 -> work == false", "becomes": {"work": False}},
            ],
        }
    )
    rows = pd.DataFrame(
        {
            "age": [3, 12, 40, 200, 8],
            "status": ["married", "married", "married", "married", "single"],
            "work": [True, False, True, False, True],
        }
    )
    found = {
        (one.column, one.problem, one.refused): (one.rows, one.first) for one in schema.check(rows).findings
    }
    assert found == {
        ("age", "above the range", True): (1, (4,)),
        ("age and status", "rule", True): (2, (1, 2)),
        ("age and work", "rule", False): (2, (1, 5)),
    }


def test_special_values_may_lie_outside_the_range() -> None:
    """They are levels; what is neither is counted."""
    schema = Schema.from_dict({"columns": {"a": {"kind": "integer", "min": 0, "max": 3, "special": [-1]}}})
    assert schema.check(pd.DataFrame({"a": [0, -1, 3]})).fits
    assert [one.rows for one in schema.check(pd.DataFrame({"a": [0, -2, 4, 5]})).findings] == [1, 2]


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet"])
def test_reading_files_says_how_far_it_is_and_nothing_about_the_rows(ending: str, tmp_path: Path) -> None:
    """The same lines for three rows and for many: a log must not depend on them."""
    schema, logs = Schema.from_domain({"a": 2, "b": 9}), []
    for n_rows in (3, 600_000):
        rows = pd.DataFrame({"a": np.arange(n_rows) % 2, "b": np.arange(n_rows) % 9})
        path = tmp_path / f"t{n_rows}{ending}"
        if ending == ".parquet":
            rows.to_parquet(path)
        else:
            rows.to_csv(path, index=False)
        said: list[str] = []
        dc.measure(path, schema, workload=1, epsilon=1, unit="add-remove", progress=said.append)
        logs.append(said)
    assert logs[0] == logs[1]
    assert logs[0][1:4] == ["reading: 25 %", "reading: 50 %", "reading: 75 %"]


def test_solving_says_which_column_it_is_at() -> None:
    """Column by column, in both engines."""
    schema = Schema.from_domain({"a": 3, "b": 2, "c": 4})
    tables = {
        pair: np.full([schema.n_cells([name]) for name in pair], 50.0) for pair in (("a", "b"), ("b", "c"))
    }
    release = dc.Release.from_tables(tables, schema, scale=2.0)
    for engine in ("table", "rows"):
        said: list[str] = []
        dc.solve(release, engine=engine, progress=said.append)
        assert said[0] == "reconciling the tables"
        assert said[-1] == "solving: column 3 of 3"


def test_open_columns_are_checked_by_their_range():
    """Cells beyond the range of a column whose bins are yet to be found, no numbers and missing ones are listed; levels to be found have nothing to contradict."""
    schema = dc.Schema.from_dict(
        {
            "columns": {
                "age": {"kind": "integer", "min": 0, "max": 99, "bins": "auto"},
                "spend": {"kind": "number", "min": 0, "max": "auto", "bins": "auto", "missing": "level"},
                "job": {"kind": "categorical", "levels": "discover", "pattern": "[a-z]+", "max_length": 9},
            }
        }
    )
    rows = pd.DataFrame(
        {
            "age": ["3", "120", "x", None, "99"],
            "spend": [1.5, None, -3.0, 1e12, 0.0],
            "job": ["a", "b", None, "1", "c"],
        }
    )
    table = schema.check(rows).frame
    assert [(line.column, line.problem, line.rows, line.first) for line in table.itertuples()] == [
        ("age", "missing", 1, (4,)),
        ("age", "above the range", 1, (2,)),
        ("age", "no number", 1, (3,)),
        ("spend", "missing", 1, (2,)),
        ("spend", "below the range", 1, (3,)),
    ]
    assert table[table.refused].column.tolist() == ["age", "age", "age"]


@pytest.mark.parametrize("bins", [{"bins": "auto"}, {}])
def test_rules_and_zeros_on_open_bins_are_judged_as_on_declared_ones(bins: dict[str, str]) -> None:
    """Rows that a rule refuses, that it moves, and that a zero moves: what is counted row by row, whether edges are declared or found."""
    schema = dc.Schema.from_dict(
        {
            "columns": {
                "age": {"kind": "integer", "min": 0, "max": 99, **bins},
                "until": {"kind": "integer", "min": 0, "max": 99, **bins},
                "job": {"kind": "categorical", "levels": ["no", "yes"]},
                "city": {"kind": "categorical", "levels": "discover", "pattern": "[a-z]+", "max_length": 9},
            },
            "zeros": [{"impossible": {"age": {"max": 14}, "job": "yes"}, "becomes": {"job": "no"}}],
            "rules": ["age <= until", {"rule": "until < 90 or job == no", "becomes": {"job": "no"}}],
        }
    )
    rng = np.random.default_rng(5)
    age, until, working = rng.integers(0, 100, 400), rng.integers(0, 100, 400), rng.random(400) < 0.5
    rows = pd.DataFrame(
        {"age": age, "until": until, "job": np.where(working, "yes", "no"), "city": "x"}, dtype=object
    )
    moved = (age < 15) & working
    expected = {
        "structural zero": int(moved.sum()),
        "rule": int((age > until).sum()),
        "moved": int(((until >= 90) & working & ~moved).sum()),
    }
    found = schema.check(rows)
    said = {"moved" if f.problem == "rule" and not f.refused else f.problem: f.rows for f in found.findings}
    assert said == expected
    assert not found.fits
