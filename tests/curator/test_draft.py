"""Drafts: good guesses, marked as drawn from data."""

import datetime as dt

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dpcipher as dc
from dpcipher.curator.draft import MAX_LEVELS, draft
from dpcipher.errors import SchemaError
from dpcipher.schema import Schema
from dpcipher.tables.read import open_table
from dpcipher.tables.write import write_table

N = 400
RNG = np.random.default_rng(11)
FRAME = pd.DataFrame(
    {
        "age": RNG.integers(17, 94, N),
        "income": np.round(RNG.lognormal(10, 1, N)).astype(int),
        "height": RNG.normal(170, 10, N),
        "sex": RNG.choice(["F", "M"], N),
        "zip": RNG.choice(["01", "02"], N),
        "ok": RNG.choice([True, False], N),
        "born": [dt.date(1950, 1, 5) + dt.timedelta(days=int(day)) for day in RNG.integers(0, 20_000, N)],
        "child": RNG.choice([0.0, 1.0, np.nan], N),
        "poverty": [("N" if i % 3 == 0 else str(i)) for i in range(N)],
        "name": [f"person {i}" for i in range(N)],
        "void": [None] * N,
    }
)
KINDS = {
    "age": "integer",
    "income": "integer",
    "height": "number",
    "sex": "categorical",
    "zip": "categorical",
    "ok": "boolean",
    "born": "date",
    "child": "categorical",
    "poverty": "integer",
}


def encoded(schema, data):
    """The codes of all rows."""
    return np.concatenate([schema.encode(batch) for batch in open_table(data).batches(schema.names)])


@pytest.mark.parametrize("form", ["pandas", "csv", "parquet"])
def test_kinds_are_guessed_and_every_row_fits(form, tmp_path):
    """Typed and untyped sources give the same draft, under which all rows can be encoded."""
    data = FRAME
    if form != "pandas":
        data = tmp_path / f"t.{form}"
        write_table(data, pa.Table.from_pandas(FRAME))
    schema = draft(data)
    assert {column.name: column.kind for column in schema.columns} == KINDS
    assert schema == draft(FRAME)
    assert encoded(schema, data).shape == (N, len(KINDS))


def test_what_is_left_out_is_said(tmp_path):
    """Free text and empty columns are left out with a note that the file keeps."""
    schema = draft(FRAME)
    assert [
        note for note in schema.provenance.notes if "'name'" in note and "every text is different" in note
    ]
    assert [note for note in schema.provenance.notes if "'void'" in note]
    assert [note for note in schema.provenance.notes if "'poverty'" in note]
    schema.save(tmp_path / "draft.yaml")
    assert Schema.load(tmp_path / "draft.yaml") == schema


def test_ranges_are_rounded_outward():
    """The extremes of a table are somebody's; a draft does not show those of a wide column."""
    columns = {column.name: column for column in draft(FRAME).columns}
    height = columns["height"]
    assert height.min < FRAME["height"].min() < FRAME["height"].max() < height.max
    assert columns["born"].edges[0] == "1950-01-01"
    assert columns["income"].edges[-1] > FRAME["income"].max()
    assert columns["child"].missing == "level"


def test_a_draft_is_refused_until_it_is_signed():
    """It is marked as drawn from data."""
    schema = dc.Schema.draft(FRAME)
    assert schema.drawn_from_data
    with pytest.raises(SchemaError, match="drawn from data"):
        schema.require_signed()
    schema.sign("Ada Lovelace", "2024-05-01").require_signed()


def test_batches_of_different_looks_are_taken_together(tmp_path):
    """A column that is numeric in one file and text in the next is text."""
    (tmp_path / "1.csv").write_text("a,b\n1,true\n2,false\n")
    (tmp_path / "2.csv").write_text("a,b\n3,true\nx,maybe\n")
    columns = draft(str(tmp_path / "*.csv")).columns
    assert columns[0].levels == ("1", "2", "3", "x")
    assert columns[1].levels == ("false", "maybe", "true")


def test_a_table_of_free_text_cannot_be_drafted():
    """There is nothing to propose."""
    with pytest.raises(SchemaError, match="by hand"):
        draft(FRAME[["name", "void"]])


@pytest.mark.parametrize("value", [5, 0, -2.5, 1e-7, 2**60, 1e305, "2024-01-01", True])
def test_a_column_with_one_value_can_be_drafted(value):
    """A range of no width is widened, and numbers beyond reach are listed as texts."""
    frame = pd.DataFrame({"a": [value] * 3})
    assert encoded(draft(frame), frame).shape == (3, 1)


def one(values, name="x"):
    """The draft of a single column."""
    return draft(pd.DataFrame({name: values, "sex": ["F", "M"] * (len(values) // 2)})).columns[0]


def notes(values, name="x"):
    """What the draft tells about a single column."""
    return " ".join(
        draft(pd.DataFrame({name: values, "sex": ["F", "M"] * (len(values) // 2)})).provenance.notes
    )


def test_small_integer_codes_are_categories():
    """Sex as 1 and 2, race as 1 to 9, and industry codes far apart; ages and counts of many are numbers."""
    rng = np.random.default_rng(3)
    assert one(rng.integers(1, 3, 1000)).levels == (1, 2)
    assert one(rng.integers(1, 10, 1000)).kind == "categorical"
    industries = rng.choice(np.arange(170, 9000, 190), 2000)
    assert one(industries).levels == tuple(sorted(set(industries.tolist())))
    ages = one(rng.integers(0, 95, 2000))
    assert (ages.kind, ages.min, ages.max, ages.bins) == ("integer", 0, 94, None)
    assert "taken for codes" in notes(rng.integers(1, 3, 1000))


def test_skewed_amounts_have_round_edges_that_share_the_rows_out():
    """Incomes and debts: edges of one or two digits, no bin with more than a fifth of the rows, and every row inside."""
    rng = np.random.default_rng(4)
    income = np.where(rng.random(5000) < 0.1, 0, rng.lognormal(10.5, 1.2, 5000)).round()
    for values in (income, -income, rng.pareto(1.5, 5000) * 1000, np.concatenate([income, -income[:500]])):
        column = one(values)
        edges = np.array(column.edges, dtype=float)
        digits = {f"{abs(edge):.3e}"[:5].rstrip("0").rstrip(".") for edge in edges if edge}
        assert digits <= {"1", "1.5", "2", "3", "4", "5", "7"}
        counts = np.bincount(column.encode(pa.array(values)), minlength=column.size)
        assert counts.max() < 0.2 * len(values)
        assert edges[0] <= values.min() <= values.max() <= edges[-1]
    assert one(income).labels[0] == "0"


def test_amounts_without_a_tail_have_bins_of_one_round_width():
    """A bell and a uniform: about twenty bins of width 1, 2 or 5 times a power of ten."""
    rng = np.random.default_rng(5)
    for values, width in ((rng.normal(170, 10, 2000), 5.0), (rng.uniform(0, 1, 2000), 0.05), (rng.integers(0, 9000, 2000), 500)):  # fmt: skip
        column = one(values)
        last = column.max + (column.kind == "integer")
        assert 10 <= column.bins <= 22
        assert (last - column.min) / column.bins == pytest.approx(width)
        assert column.min <= values.min() <= values.max() < last


@pytest.mark.parametrize(
    ("days", "starts", "end"),
    [
        (10, None, None),
        (200, ["2020-03-01", "2020-04-01"], "2020-09-30"),
        (2000, ["2020-01-01", "2020-04-01"], "2025-09-30"),
        (5000, ["2020-01-01", "2021-01-01"], "2033-12-31"),
        (30000, ["2020-01-01", "2025-01-01"], "2104-12-31"),
    ],
)
def test_dates_are_cut_where_the_calendar_is(days, starts, end):
    """Days, months, quarters, years or five years, by the span."""
    first = dt.date(2020, 3, 5)
    column = one([first + dt.timedelta(days=days * i // 99) for i in range(100)])
    if starts is None:
        assert (column.min, column.max, column.edges) == ("2020-03-05", "2020-03-15", None)
        return
    assert list(column.edges[:2]) == starts
    assert column.edges[-1] == end
    assert all(edge.endswith("-01") for edge in column.edges[:-1])


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("person_id", [f"p{i * 7919 % 100}" for i in range(100)], "by its name"),
        ("personId", [i * 7919 % 100 for i in range(100)], "by its name"),
        ("number", list(range(5000, 5100)), "count the rows"),
        ("key", [f"{i * 7919 % 1000:04}-x" for i in range(400)], "every text is different"),
        ("email", [f"a{i % 300}@b" for i in range(400)], "by its name"),
    ],
)
def test_ids_are_left_out_and_said_to_be(name, values, reason):
    """Whatever names rows makes no level."""
    schema = draft(pd.DataFrame({name: values, "sex": ["F", "M"] * (len(values) // 2)}))
    assert schema.names == ("sex",)
    assert [note for note in schema.provenance.notes if f"left out: {name!r} looks like an id" in note and reason in note]  # fmt: skip


def test_free_text_is_left_out_and_said_to_be():
    """Sentences that come twice are no ids, and no levels either."""
    told = notes([f"This person said a thing that is long, number {i // 2}." for i in range(800)])
    assert f"holds more than {MAX_LEVELS} distinct long texts" in told


def test_codes_with_leading_zeros_stay_texts(tmp_path):
    """ZIP codes are categories, also where only the last file has a zero in front."""
    column = one([f"{code:05}" for code in np.random.default_rng(6).choice([501, 2139, 90210], 100)])
    assert column.levels == ("00501", "02139", "90210")
    (tmp_path / "1.csv").write_text("zip\n90210\n10001\n")
    (tmp_path / "2.csv").write_text("zip\n02139\n")
    assert draft(str(tmp_path / "*.csv")).columns[0].levels == ("02139", "10001", "90210")


def test_codes_for_missing_values_are_set_aside():
    """Texts among numbers, and the usual negative numbers; a debt of 500 is no code."""
    rng = np.random.default_rng(7)
    ages = [str(age) if age % 5 else "N" for age in rng.integers(0, 90, 400)]
    column = one(ages)
    assert (column.kind, column.missing_values) == ("integer", ("N",))
    column = one(np.where(rng.random(400) < 0.1, -9, rng.integers(5, 90, 400)))
    assert (column.min, column.missing_values) == (5, (-9,))
    assert "N taken for missing values" in notes(ages)
    assert one(rng.integers(-500, 500, 400)).missing_values is None
    codes = one(["N", "1", "2", "2"] * 10)
    assert (codes.levels, codes.missing_values) == ((1, 2), ("N",))


def test_many_codes_that_each_come_often_are_categories():
    """Industry codes with N among them, and names of towns: no numbers and no ids; the note tells of the other way."""
    rng = np.random.default_rng(8)
    codes = rng.choice(np.arange(170, 9990, 37), 8000)
    column = one(["N" if code % 7 == 0 else str(code) for code in codes])
    assert (column.kind, column.missing_values) == ("categorical", ("N",))
    assert column.levels == tuple(sorted({int(code) for code in codes if code % 7}))
    towns = one([f"Town {number}" for number in rng.integers(0, 300, 8000)])
    assert (towns.kind, towns.size) == ("categorical", 300)
    assert "levels: discover" in notes(codes)
