"""Neighbours, from the frame or the file that a user hands to `measure`: what reaches the noise moves by no more than the noise pays for."""

import datetime as dt
import gzip
import io
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from handed_counts import handed_counts  # noqa: F401

from dpcipher.curator.measure import measure
from dpcipher.errors import BudgetError, DataError, ParameterError
from dpcipher.methods import PrivBayes
from dpcipher.privacy.ledger import Ledger
from dpcipher.privacy.terms import Unit
from dpcipher.schema import Column, Schema, column

CODES = column("x", "categorical", levels=[1, 2, "N"], other="N", missing="level")
PLACE = column("y", "categorical", levels=["a", "b"], other="b", missing="level")
DAY = column("d", "date", min="2024-01-01", max="2024-12-31", bins=12, missing="level", other="missing")
AMOUNT = column("z", "number", edges=[0, 0.3, 1, 10], missing="level", other="missing")
CELLS = [1, 2, 1.0, "1", "2", "N", True, "x", None, float("nan"), "", Decimal("1.00"), Decimal("0.3"), 0.3, dt.date(2024, 1, 31),
         pd.Timestamp("2024-05-31 23:00", tz="America/New_York"), pd.Timestamp("2024-05-31 23:00", tz="UTC"), "2024-06-30", "a", "b"]  # fmt: skip
IDS: list[Any] = [7, 7.0, "7", "7.0", "007", Decimal("7"), 8, "8", "ann", "Ann", "bo", 8.5]


def counted(handed: list[np.ndarray], data: Any, schema: Schema, **options: Any) -> list[np.ndarray]:
    """The true counts behind a release."""
    handed.clear()
    measure(data, schema, **({"epsilon": 1.0, "unit": "add-remove", "workload": 1} | options))
    return list(handed)


def moved(before: list[np.ndarray], after: list[np.ndarray]) -> tuple[int, int]:
    """The largest L1 and squared L2 distance of a table."""
    changes = [b - a for a, b in zip(before, after, strict=True)]
    return max(int(np.abs(c).sum()) for c in changes), max(int((c**2).sum()) for c in changes)


def frame(rows: list[dict[str, Any]], names: list[str]) -> pd.DataFrame:
    """A frame as people have it: columns of objects where types are mixed, of pandas' own choice where they are not."""
    columns = {name: [row[name] for row in rows] for name in names}
    try:
        return pd.DataFrame(columns)
    except UnicodeEncodeError:  # what pandas' own text type cannot hold, columns of objects can
        return pd.DataFrame(columns, dtype=object)


def test_one_text_among_numbers_moves_nobody_else(handed: list[np.ndarray]) -> None:
    """Two thousand cells of 1.0 stay in the level "1" when a row "N" comes; once they all went to `other`."""
    schema, rows = Schema((CODES,)), [{"x": 1.0}] * 2_000
    before = counted(handed, frame(rows, ["x"]), schema)
    after = counted(handed, frame([*rows, {"x": "N"}], ["x"]), schema)
    assert before[0].tolist() == [2_000, 0, 0, 0]
    assert after[0].tolist() == [2_000, 0, 1, 0]


@pytest.mark.filterwarnings("ignore:Columns")
def test_a_file_that_pandas_read_with_its_defaults(handed: list[np.ndarray]) -> None:
    """pandas infers types in pieces of a file, so that one N leaves texts in one piece and numbers in the others."""
    lines = ["x,y"] + [f"{1 + i % 2},a" for i in range(300_000)]
    tables = [
        counted(handed, pd.read_csv(io.StringIO("\n".join(text)), low_memory=True), Schema((CODES, PLACE)))
        for text in (lines, [*lines, "N,a"])
    ]
    assert moved(*tables) == (1, 1)


MIXTURES: dict[str, tuple[Column, Any, Any]] = {
    "truth values and texts": (column("x", "categorical", levels=["true", "no"], other="no"), True, "no"),
    "truth values as pandas writes them": (column("x", "categorical", levels=["True", "N"], other="N"), True, "N"),
    "decimals of another scale": (
        column("x", "categorical", levels=["1", "0.125"], other="0.125"), Decimal("1"), Decimal("0.125")
    ),
    "decimals at an edge": (
        column("x", "number", edges=[0, 0.3, 1]), Decimal("0.3"), Decimal("0.1234567890123456789")
    ),
    "days of other time zones": (
        column("x", "date", min="2024-01-01", max="2024-12-31"),
        pd.Timestamp("2024-05-31 23:00", tz="America/New_York"), pd.Timestamp("2024-05-31 23:00", tz="UTC"),
    ),
    "a date among times": (
        column("x", "categorical", levels=["2024-05-31", "2024-06-30"]), dt.datetime(2024, 5, 31), dt.date(2024, 6, 30)
    ),
    "whole numbers and a fraction": (column("x", "categorical", levels=["7", "0.5"]), 7, 0.5),
    "a number too long for 64 bits": (column("x", "categorical", levels=["7", "x"], other="x"), 7, 10**30),
    "half a character": (column("x", "categorical", levels=["a", "b"], other="b"), "a", "\ud800"),
    "bytes that are no text": (column("x", "categorical", levels=["a", "b"], other="b"), b"a", b"\xff"),
    "a list": (column("x", "categorical", levels=["a", "b"], other="b"), "a", ["a"]),
    "a missing value": (column("x", "categorical", levels=["3", "4"], missing="level"), 3, None),
    "a space before a number": (column("x", "number", edges=[0, 1, 5], other="missing", missing="level"), "+1", " 1"),
}  # fmt: skip


@pytest.mark.parametrize("case", MIXTURES)
def test_mixtures_that_people_have(case: str, handed: list[np.ndarray]) -> None:
    """A hundred cells of one type stay where they are when a cell of another comes."""
    column, usual, odd = MIXTURES[case]
    schema = Schema((column,))
    before = counted(handed, frame([{"x": usual}] * 100, ["x"]), schema)
    after = counted(handed, frame([{"x": usual}] * 100 + [{"x": odd}], ["x"]), schema)
    assert before[0].max() == 100
    assert moved(before, after) == (1, 1)


UNITS = [("add-remove", 1), ("add-remove", 3), ("replace", 1), ("replace", 3)]


@pytest.mark.parametrize(("relation", "max_rows"), UNITS)
@pytest.mark.parametrize("by_person", [False, True], ids=["rows", "persons"])
def test_random_neighbours_of_random_frames(
    relation: str, max_rows: int, by_person: bool, handed: list[np.ndarray]
) -> None:
    """Columns of everything at once; one person's rows come, go or change, and the tables move within the sensitivity."""
    rng, schema = random.Random(f"{relation}{max_rows}"), Schema((CODES, PLACE, DAY, AMOUNT))
    unit, names = Unit.parse(relation, max_rows), [*schema.names, "who"]
    options = {"unit": relation, "max_rows": max_rows, "workload": 2, "person": "who" if by_person else None}

    def row(who: Any) -> dict[str, Any]:
        return {name: rng.choice(CELLS) for name in schema.names} | {"who": who}

    furthest = 0
    for _ in range(60):
        rest = [row(rng.choice([8, "8", "ann", "bo", 8.0])) for _ in range(rng.randint(0, 12))]
        mine = [
            row(rng.choice([7, "7", 7.0, "7.0"])) for _ in range(rng.randint(1, 6 if by_person else max_rows))
        ]
        other = [row(one["who"]) for one in mine] if relation == "replace" else []
        tables = [
            counted(handed, frame(rng.sample(rows, len(rows)), names), schema, **options)
            for rows in (rest + mine, rest + other)
        ]
        l1, l2_squared = moved(*tables)
        assert l1 <= unit.l1
        assert l2_squared <= unit.l2_squared
        furthest = max(furthest, l1)
    assert furthest == unit.l1  # neighbours that use all of it were among them


def write(rows: list[dict[str, Any]], names: list[str], path: Path) -> Path:
    """A CSV file as pandas writes it."""
    frame(rows, names).to_csv(path, index=False)
    return path


@pytest.mark.parametrize(("relation", "max_rows"), UNITS)
def test_random_neighbours_of_files(
    relation: str, max_rows: int, handed: list[np.ndarray], tmp_path: Path
) -> None:
    """The same from CSV files, whose cells are text."""
    rng, schema = random.Random(3), Schema((CODES, PLACE, AMOUNT))
    unit, names = Unit.parse(relation, max_rows), [*schema.names, "who"]
    cells = [1, 2, "N", "", "a", "b", 0.3, "1.0", '"', "x,y", "é"]
    for _ in range(25):
        rest = [
            {name: rng.choice(cells) for name in schema.names} | {"who": rng.choice("bc")} for _ in range(8)
        ]
        mine = [{name: rng.choice(cells) for name in schema.names} | {"who": "a"} for _ in range(5)]
        other = [{name: rng.choice(cells) for name in schema.names} | {"who": "a"} for _ in mine]
        tables = [
            counted(
                handed,
                write(rows, names, tmp_path / "rows.csv"),
                schema,
                unit=relation,
                max_rows=max_rows,
                person="who",
            )
            for rows in (rest + mine, rest + (other if relation == "replace" else []))
        ]
        l1, l2_squared = moved(*tables)
        assert l1 <= unit.l1
        assert l2_squared <= unit.l2_squared


# Persons


def people(ids: list[Any]) -> pd.DataFrame:
    """Rows with all kinds of ids, the columns of objects."""
    return pd.DataFrame({"x": [1] * len(ids), "who": pd.Series(ids, dtype=object)})


def kept(handed: list[np.ndarray], data: Any, **options: Any) -> int:
    """How many rows count, at two for each person."""
    return int(counted(handed, data, Schema((CODES,)), person="who", max_rows=2, **options)[0].sum())


def test_a_person_is_one_person_however_the_id_is_written(
    handed: list[np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    """7, 7.0, "7", "007" and Decimal("7") keep two rows in all, also when batches hold ids of different types."""
    assert kept(handed, people(IDS[:6] * 3)) == 2
    assert kept(handed, people(IDS)) == 2 + 2 + 1 + 1 + 1 + 1
    monkeypatch.setattr("dpcipher.io.objects.FRAME_ROWS", 3)
    assert kept(handed, people([7, 7, 7, 7.0, None, 7.0, "7", "7", "7"]), missing_person="drop") == 2


def test_a_person_is_one_person_over_files_of_different_types(
    handed: list[np.ndarray], tmp_path: Path
) -> None:
    """Parquet files with integer, float, text, decimal and dictionary ids, and CSV files beside each other."""
    kinds = [
        pa.int64(),
        pa.float64(),
        pa.string(),
        pa.decimal128(25, 2),
        pa.dictionary(pa.int8(), pa.string()),
    ]
    for i, kind in enumerate(kinds):
        ids = (
            pa.array([7, 7, 8], pa.int64()).cast(pa.string()).cast(kind)
            if i > 3
            else pa.array([7, 7, 8]).cast(kind)
        )
        pq.write_table(pa.table({"x": [1, 1, 1], "who": ids}), tmp_path / f"{i}.parquet")
    assert kept(handed, str(tmp_path / "*.parquet")) == 4
    for i, text in enumerate(["7", "7.0", "007"]):
        (tmp_path / f"{i}.csv").write_text(f"x,who\n1,{text}\n1,{text}\n")
    assert kept(handed, str(tmp_path / "*.csv")) == 2


BLANKS = ["", " ", "NA", "nan", "NaN", "null", "None", None, float("nan"), pd.NA, pd.NaT, ["no id"]]


@pytest.mark.parametrize("blank", BLANKS, ids=repr)
def test_a_blank_id_is_nobodys(blank: Any, handed: list[np.ndarray]) -> None:
    """Refused, or left out by a declared policy; never pooled as the rows of one person."""
    rows = people(["ann", blank, blank, blank])
    with pytest.raises(DataError, match=r"person column \(who\) has rows without a person"):
        kept(handed, rows)
    assert kept(handed, rows, missing_person="drop") == 1
    fewer = people(["ann", blank, blank])
    assert kept(handed, fewer, missing_person="drop") == 1  # one blank row less promotes no other


def test_blank_cells_of_a_file_are_nobodys(handed: list[np.ndarray], tmp_path: Path) -> None:
    """An empty cell of a CSV file is an empty text to its reader."""
    path = tmp_path / "rows.csv"
    path.write_text("x,who\n1,ann\n1,\n1,\n")
    with pytest.raises(DataError, match="without a person"):
        kept(handed, path)
    assert kept(handed, path, missing_person="drop") == 1


def test_a_policy_for_blank_ids_is_one_of_two(handed: list[np.ndarray]) -> None:
    """Anything else is refused before a row is read."""
    with pytest.raises(ParameterError, match=r"missing_person \('keep'\) must be 'refuse' or 'drop'"):
        kept(handed, people(["ann"]), missing_person="keep")


# The number of rows


def test_rows_that_are_left_out_leave_no_trace_in_the_number_of_rows(handed: list[np.ndarray]) -> None:
    """Under replacement n is public only where every row counts: with persons, what is left depends on the ids."""
    schema, rows = Schema((CODES,)), people(["ann", "ann", "ann", "bo"])
    plain = measure(rows, schema, epsilon=1, unit="replace", workload=1)
    limited = measure(rows, schema, epsilon=1, unit="replace", workload=1, person="who")
    dropped = measure(
        people(["ann", ""]),
        schema,
        epsilon=1,
        unit="replace",
        workload=1,
        person="who",
        missing_person="drop",
    )
    assert [one.statement.n_rows for one in (plain, limited, dropped)] == [4, None, None]


def test_a_number_of_rows_that_is_declared_public_gives_presence_away() -> None:
    """The statement then claims values alone, at the price of two steps, and says why."""
    schema, rows = Schema((CODES,)), people(["ann", "bo"])
    release = measure(rows, schema, epsilon=1, unit="add-remove", workload=1, n_rows_public=True)
    assert release.statement.n_rows == 2
    assert release.statement.protection.startswith(
        "Protects the values of any one row, at twice the stated epsilon"
    )
    assert "presence is not protected" in release.statement.protection
    guarantee = release.statement.guarantee
    assert guarantee is not None
    assert guarantee.epsilon == 2
    plain = measure(rows, schema, rho=0.5, unit="add-remove", workload=1)
    assert plain.statement.protection == "Protects the presence of any one row."
    concentrated = measure(rows, schema, rho=0.5, unit="add-remove", workload=1, n_rows_public=True)
    assert (plain.statement.guarantee.rho, concentrated.statement.guarantee.rho) == (0.5, 2)


def test_a_declared_number_of_rows_does_not_reach_what_is_left_of_persons() -> None:
    """The curator knows the table's number of rows, not that of the rows that count."""
    with pytest.raises(ParameterError, match=r"n_rows_public \(True\) must not be given with person"):
        measure(
            people(["ann"]), Schema((CODES,)), epsilon=1, unit="add-remove", person="who", n_rows_public=True
        )


def in_sheet(rows: list[list[Any]], path: Path) -> Path:
    """A workbook of these rows."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in [["x", "y"], *rows]:
        book.active.append(row)
    book.save(path)
    return path


@pytest.mark.parametrize("place", [0, 7, 19])
def test_a_row_that_turns_blank_in_a_sheet_changes_nothing_public(place: int, tmp_path: Path) -> None:
    """A blank row cannot be told from the end of a sheet: it is left out, and so the number of rows is told under no unit."""
    schema, rows = Schema((CODES, PLACE)), [[1 + number % 2, "ab"[number % 3 == 0]] for number in range(20)]
    neighbour = [[None, None] if number == place else row for number, row in enumerate(rows)]
    statements, sums = [], []
    for data in (rows, neighbour):
        path = in_sheet(data, tmp_path / "rows.xlsx")
        for workload in (1, "auto"):
            release = measure(path, schema, workload=workload, epsilon=120, unit="replace")  # type: ignore[arg-type]
            assert release.statement.n_rows is None
            assert release.statement.protection == "Protects the values of any one row."
        statements.append(measure(path, schema, workload=1, epsilon=120, unit="replace").statement)
        sums.append(measure(f"{path}::Sheet", schema, workload=[["x", "y"]], epsilon=120, unit="replace").project(("x",)).sum())  # fmt: skip
    assert statements[0] == statements[1]
    assert sums == [20, 19]  # every other row counts as before
    csv = tmp_path / "rows.csv"
    csv.write_text("x,y\n" + "".join(f"{x},{y}\n" for x, y in rows[:place]) + ",\n\n" + "".join(f"{x},{y}\n" for x, y in rows[place + 1 :]))  # fmt: skip
    assert measure(csv, schema, workload=1, epsilon=120, unit="replace").statement.n_rows == 20


def test_what_needs_the_number_of_rows_is_refused_of_a_sheet(tmp_path: Path) -> None:
    """Before anything is charged: a declaration about the table does not reach the rows that are left, and the score I needs them."""
    path, schema = in_sheet([[1, "a"], [2, "b"]] * 5, tmp_path / "rows.xlsx"), Schema((CODES, PLACE))
    book = Ledger.create(tmp_path / "rows.ledger", epsilon=9, unit="replace")
    with pytest.raises(
        ParameterError, match=r"n_rows_public \(True\) must not be given with an Excel workbook"
    ):
        measure(path, schema, epsilon=1, unit="replace", n_rows_public=True, ledger=book)
    with pytest.raises(BudgetError, match=r"score \('I'\) has no bounded sensitivity"):
        PrivBayes(1, unit="replace", score="I", ledger=book).fit(path, schema)
    assert book.entries == ()
    PrivBayes(8, unit="replace", ledger=book).fit(
        path, schema
    )  # at 1 the noise may hide ten rows, with a warning


@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz"])
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["unix", "windows"])
def test_an_empty_line_of_one_column_is_a_row(
    ending: str, end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its cell is missing, wherever it stands and however the file is cut into blocks; the number of rows is that of the lines."""
    rng, path = random.Random(4), tmp_path / f"rows.{ending}"
    lines = [rng.choice(["1", "2", ""]) for _ in range(200)] + ["", ""]
    raw = "".join(line + end for line in ["x", *lines]).encode()
    path.write_bytes(gzip.compress(raw) if ending == "csv.gz" else raw)
    for block in (2**24, 37):
        monkeypatch.setattr("dpcipher.io.text.BLOCK_BYTES", block)
        release = measure(path, Schema((CODES,)), workload=1, epsilon=120, unit="replace")
        assert release.statement.n_rows == 202
        assert release.project(("x",)).tolist() == [lines.count("1"), lines.count("2"), 0, lines.count("")]


# Errors


def test_no_error_quotes_a_cell_that_cannot_be_written() -> None:
    """Half of a surrogate pair, in a column and as an id, once raised an error of Python's that held the cell."""
    schema = Schema((column("x", "categorical", levels=["a"]),))
    for data, person in (
        ({"x": ["a", "\ud800secret"]}, None),
        ({"x": ["a"], "who": ["\ud800secret"]}, "who"),
    ):
        with pytest.raises(DataError) as refused:
            measure(pd.DataFrame({k: pd.Series(v, dtype=object) for k, v in data.items()}), schema,
                    epsilon=1, unit="add-remove", workload=1, person=person)  # fmt: skip
        assert "secret" not in str(refused.value)
        assert refused.value.__cause__ is None
