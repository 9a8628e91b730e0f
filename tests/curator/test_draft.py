"""Drafts: good guesses, marked as drawn from data."""

import datetime as dt
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from click.testing import CliRunner

import dpcipher as dc
from dpcipher.cli import main
from dpcipher.curator.draft import MAX_LEVELS, draft
from dpcipher.errors import SchemaError
from dpcipher.io.source import open_table
from dpcipher.io.write import write_table
from dpcipher.schema import Schema

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
    "child": "boolean",
    "poverty": "integer",
}


def encoded(schema, data):
    """The codes of all rows."""
    return np.concatenate(
        [schema.on_grid().encode(batch) for batch in open_table(data).batches(schema.names)]
    )


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
    schema.sign("Ada Lovelace", "2024-05-01", unchanged=True).require_signed()


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
    assert (ages.kind, ages.min, ages.max, ages.bins) == ("integer", 0, 94, "auto")
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
        ("pid", [i * 7919 % 1009 for i in range(400)] * 2, "by its name"),
        ("SEQN", [i // 3 for i in range(900)], "by its name"),
        ("nr", [i * 7919 % 1009 for i in range(1000)] * 2, "leave out few"),
    ],
)
def test_ids_are_left_out_and_said_to_be(name, values, reason):
    """Whatever names rows makes no level."""
    schema = draft(pd.DataFrame({name: values, "sex": ["F", "M"] * (len(values) // 2)}))
    assert schema.names == ("sex",)
    assert [note for note in schema.provenance.notes if f"left out: {name!r} looks like an id" in note and reason in note]  # fmt: skip


@pytest.mark.parametrize("rows_each", [1, 2])
def test_ids_of_people_with_several_rows_are_said_to_be_good_for_that(rows_each):
    """And those of people with one row each are not."""
    told = notes(list(range(800)) * rows_each, "patient")
    assert "left out: 'patient' looks like an id" in told
    assert ("give it to measure as the person" in told) == (rows_each > 1)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("day", [i * 7919 % 365 for i in range(1000)]),  # of the year
        ("score", np.random.default_rng(1).binomial(1000, 0.5, 2000)),
        ("paid", np.random.default_rng(2).integers(0, 5000, 2000)),
        ("subjects", np.random.default_rng(3).integers(0, 800, 900)),
        ("often", list(range(1000)) * 6),
    ],
)
def test_numbers_with_many_values_are_no_ids(name, values):
    """Not by a name that holds one, nor where values are missing between them, or come often."""
    schema = draft(pd.DataFrame({name: np.random.default_rng(4).permutation(values)}))
    assert schema.names == (name,)


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
    assert not one(rng.integers(-500, 500, 400)).missing_values
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


@pytest.mark.parametrize(
    ("times", "facts"),
    [
        ([f"{6 + i % 15:02}:{i % 60:02}" for i in range(300)], ("06:00", "20:59:59", 15, "00:01")),
        ([f"{8 + i % 10:02}:{i // 10 % 4 * 15:02}" for i in range(300)], ("08:00", "17:59:59", 10, "00:15")),
        ([f"{8 + i % 10:02}:{i % 60:02}:{i % 59:02}" for i in range(300)], ("08:00", "17:59:59", 10, None)),
        ([f"10:{i % 60:02}" for i in range(300)], ("10:00", "10:59:59", 12, "00:01")),
    ],
)
@pytest.mark.parametrize("typed", [False, True])
def test_times_of_day_are_seen_with_their_step(times, facts, typed):
    """Whole hours as bins, or five minutes, and the minutes that all rows keep; from texts and from times alike."""
    column = one([dt.time.fromisoformat(time) for time in times] if typed else times)
    assert column.kind == "time"
    assert (column.min, column.max, column.bins, column.step) == facts
    assert (column.encode(pa.array(times)) >= 0).all()


def test_zeros_and_ones_are_no_and_yes(tmp_path):
    """As numbers, as texts and beside a code; where a code says no itself, they stay numbers."""
    for zero, yes in ((0, 1), (0.0, 1.0), ("0", "1")):
        assert one([zero, yes] * 30).kind == "boolean"
    (tmp_path / "t.csv").write_text("x,y,z\n" + "0,true,0\n1,false,-9\n1,N,1\nNA,true,0\n" * 9)
    schema = draft(tmp_path / "t.csv")
    assert [(column.kind, column.missing_values) for column in schema.columns] == [
        ("boolean", ("NA",)),
        ("categorical", ("N",)),
        ("boolean", (-9,)),
    ]
    assert encoded(schema, tmp_path / "t.csv").shape == (36, 3)
    assert "0 and 1, taken for no and yes" in " ".join(schema.provenance.notes)
    assert one([0, 1, 2] * 20).kind == "categorical"


@pytest.mark.parametrize(
    ("name", "kind", "remark"),
    [
        ("children", "integer", "count something"),
        ("N_ROOMS", "integer", "count something"),
        ("hours per week", "integer", "count something"),
        ("education", "ordinal", "in order"),
        ("pain_score", "ordinal", "in order"),
        ("race", "categorical", "if they count something, say kind: integer; if they rank, kind: ordinal"),
        ("Kinds", "categorical", "taken for codes"),
        ("number", "integer", "if they are codes, say kind: categorical"),
    ],
)
def test_names_say_whether_few_numbers_count_or_rank(name, kind, remark):
    """And where they say nothing, the note asks a person."""
    values = np.random.default_rng(12).integers(1, 7, 300)
    column = one(values, name)
    assert (column.kind, column.size) == (kind, 6)
    assert remark in notes(values, name)


def test_columns_of_a_dictionary_are_taken_from_there(tmp_path):
    """Levels, ranges, order and words; what it leaves out stays out, and the rows are asked for the others alone."""
    fields = [
        {
            "name": "pain",
            "categories": [3, 1, 2, 0],
            "categoriesOrdered": True,
            "type": "integer",
            "title": "Pain",
        },
        {"name": "visits", "type": "integer", "constraints": {"minimum": 0, "maximum": 9}},
        {"name": "key", "type": "integer", "constraints": {"unique": True}},
        {"name": "elsewhere", "type": "boolean"},
    ]
    rng = np.random.default_rng(13)
    frame = pd.DataFrame({"visits": rng.integers(0, 4, 90), "key": rng.integers(0, 5, 90), "pain": rng.integers(0, 3, 90), "sex": ["F", "M"] * 45})  # fmt: skip
    frame.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "d.json").write_text(json.dumps({"fields": fields}))
    command = ["schema", "draft", str(tmp_path / "people.csv"), "--dictionary", str(tmp_path / "d.json"), "-o", str(tmp_path / "people.yaml")]  # fmt: skip
    assert CliRunner().invoke(main, command).exit_code == 0
    drafted = dc.Schema.draft(frame, dictionary={"fields": fields})
    assert Schema.load(tmp_path / "people.yaml").columns == drafted.columns
    imported = Schema.import_dictionary({"fields": fields})
    assert drafted.names == ("visits", "pain", "sex")
    assert [drafted.column(name) for name in ("visits", "pain")] == [
        imported.column(name) for name in ("visits", "pain")
    ]
    assert drafted.column("pain").kind == "ordinal"
    told = drafted.provenance.notes
    assert any(note.startswith("left out: 'key' is an id") for note in told)
    assert not any("elsewhere" in note for note in told)
    with pytest.raises(SchemaError, match="drawn from data"):
        drafted.require_signed()


def test_many_zeros_are_asked_about():
    """Among amounts with a fraction and among whole ones, whose zero has a bin of its own anyway."""
    rng = np.random.default_rng(14)
    for values in (rng.lognormal(5, 1, 2000).round(2), rng.lognormal(8, 1, 2000).round()):
        asked = "many zeros: is 0 an amount, or a code for not applicable?"
        assert asked in notes(np.where(rng.random(2000) < 0.3, 0, values))
        assert asked not in notes(values)


def test_few_times_are_categories():
    """Two shifts are two levels."""
    column = one(["06:00", "14:00"] * 50)
    assert column.levels == ("06:00", "14:00")
    assert "few times of day" in notes(["06:00", "14:00"] * 50)


def test_a_time_behind_a_date_is_said_to_be_dropped():
    """Midnight is no time: it is how dates are written."""
    days = [f"2024-01-{1 + i % 28:02}" for i in range(100)]
    assert "time of day is dropped" in notes([f"{day} 08:30:00" for day in days])
    assert "time of day is dropped" in notes(pd.to_datetime([f"{day} 08:30:00" for day in days]))
    assert "dropped" not in notes([f"{day} 00:00:00" for day in days])
    assert "dropped" not in notes(days)


def test_numbers_keep_their_decimals_and_steps():
    """Cents, halves of degrees and hundreds of dollars; numbers without end, and few rows, say nothing."""
    rng = np.random.default_rng(9)
    assert one(rng.lognormal(8, 1, 500).round(2)).decimals == 2
    assert one(rng.normal(50, 9, 500).round(1)).decimals == 1
    assert one(rng.normal(50, 9, 500)).decimals is None
    assert one(rng.integers(1, 900, 500) * 100).step == 100
    assert "step" not in one(rng.integers(1, 90000, 500)).to_spec()
    assert "step" not in one(rng.integers(100, 900, 10) * 100).to_spec()


def test_values_that_pile_up_have_levels_of_their_own():
    """A top code and zero among amounts; a bell has none, and whole amounts have a bin for zero anyway."""
    rng = np.random.default_rng(10)
    capped = np.minimum(rng.normal(40000, 20000, 2000).round().clip(1), 60000)
    assert one(capped).special == (60000,)
    assert "60000 in many rows" in notes(capped)
    spend = np.where(rng.random(2000) < 0.3, 0, rng.lognormal(5, 1, 2000).round(2))
    assert one(spend).special == (0,)
    assert not one(rng.normal(170, 10, 2000)).special
    whole = one(np.where(rng.random(2000) < 0.3, 0, rng.lognormal(8, 1, 2000).round()))
    assert (whole.special, whole.labels[0]) == ((), "0")


@pytest.mark.parametrize(
    ("texts", "what"),
    [
        (
            [f"{1 + i % 28}.{1 + i % 12:02}.{1990 + i % 30}" for i in range(800)],
            "dates that are written otherwise",
        ),
        (
            [f"{1 + i % 12}/{1 + i % 28}/{1990 + i % 30}" for i in range(800)],
            "dates that are written otherwise",
        ),
        ([f"\u20ac{i % 397}.{i % 100:02}" for i in range(800)], "numbers with a sign"),
        ([f"{i % 12}:{i % 60:02} pm" for i in range(800)], "times that are written otherwise"),
    ],
)
def test_what_must_be_converted_is_said(texts, what):
    """Dates, times and amounts that are texts as they stand are left out with the way to have them; few of them are listed, with a note."""
    frame = pd.DataFrame({"x": [text for text in texts for _ in range(2)], "sex": ["F", "M"] * len(texts)})
    schema = draft(frame)
    listed = "check" if frame["x"].nunique() <= MAX_LEVELS else "left out"
    assert [note for note in schema.provenance.notes if note.startswith(f"{listed}: 'x' holds {what}")]


def test_the_command_says_what_it_left_out(tmp_path):
    """In words and as JSON, with the format it read."""
    path = tmp_path / "people.csv"
    FRAME.drop(columns="void").to_csv(path, index=False, sep=";")
    command = ["schema", "draft", str(path), "-o", str(tmp_path / "people.yaml")]
    assert "left out: 'name' looks like an id" in CliRunner().invoke(main, command).output
    told = json.loads(CliRunner().invoke(main, [*command, "--force", "--json"]).output)
    assert told["format"] == {"separator": ";"}
    assert [note for note in told["notes"] if "'name'" in note]


def test_sorted_rows_are_looked_at_from_end_to_end() -> None:
    """The first rows of a sorted file say nothing of the others: half a million rows in order have the bins of the same rows in disorder."""
    values = np.round(np.random.default_rng(2).lognormal(8, 1, 500_000)).astype(int)
    mixed, rising = (draft(pd.DataFrame({"pay": each})).column("pay") for each in (values, np.sort(values)))
    assert mixed.edges is not None
    assert rising.edges is not None
    assert set(rising.edges) >= set(mixed.edges[2:])
    assert abs(len(rising.edges) - len(mixed.edges)) <= 2


def test_minus_one_below_amounts_is_a_code() -> None:
    """Days since the last contact, -1 for never: a level of its own, and no bin below zero."""
    rng = np.random.default_rng(3)
    days = np.where(rng.random(5_000) < 0.7, -1, rng.integers(1, 900, 5_000))
    schema = draft(pd.DataFrame({"days": np.sort(days)}))
    column = schema.column("days")
    assert column.special == (-1,)
    assert column.min == 0 or column.edges[0] == 0
    assert "-1 in many rows" in " ".join(schema.provenance.notes)
    few = np.where(rng.random(5_000) < 0.001, -1, rng.integers(1, 900, 5_000))
    assert not draft(pd.DataFrame({"days": few})).column("days").special


def test_codes_of_digits_are_written_so_that_every_reader_takes_them_for_texts(tmp_path: Path) -> None:
    """04109 is a text for YAML 1.1, since it is no octal number, and 4109 for version 1.2."""
    schema = draft(pd.DataFrame({"zip": ["04109", "01067", "10115"] * 50, "x": ["0o17", "a", "b"] * 50}))
    schema.save(tmp_path / "zip.yaml")
    text = (tmp_path / "zip.yaml").read_text(encoding="utf-8")
    assert all(f'"{code}"' in text for code in ("04109", "01067", "10115", "0o17"))
    assert Schema.load(tmp_path / "zip.yaml").column("zip").levels == ("01067", "04109", "10115")


@pytest.mark.parametrize(
    ("write", "said"),
    [("{:,}", "marks between thousands"), ("{},5", "a decimal comma"), ("€{}", "a sign beside them")],
)
def test_numbers_that_a_database_holds_as_texts_are_known(write: str, said: str) -> None:
    """A table that is no text file has no format that could say it."""
    numbers = np.random.default_rng(4).integers(100, 10**6, 1_000)
    frame = pd.DataFrame({"pay": [write.format(number) for number in numbers], "sex": ["F", "M"] * 500})
    assert any(said in note for note in draft(frame).provenance.notes)


def test_texts_that_hardly_repeat_are_not_listed() -> None:
    """A list of texts of which most are in one row is a list of rows, also where there are few of them."""
    frame = pd.DataFrame(
        {
            "note": [f"said {i % 90}" for i in range(100)],
            "sex": ["F", "M"] * 50,
            "paid": [f"{1000 + i:,}" for i in range(100)],
        }
    )
    frame.loc[3, "paid"] = "N/A"
    schema = draft(frame)
    assert schema.names == ("sex",)
    notes = " ".join(schema.provenance.notes)
    assert "'note' holds texts of which most are in one row" in notes
    assert "'paid' holds numbers with marks between thousands" in notes
    assert draft(frame.assign(note=["a", "b"] * 50)).names == ("note", "sex")


@pytest.mark.parametrize(
    ("name", "is_id"), [("paid", False), ("bid", False), ("userId", True), ("USER_ID", True)]
)
def test_names_that_end_like_an_id_are_none(name: str, is_id: bool) -> None:
    """Amounts that were paid, all of them different, are numbers."""
    amounts = np.random.default_rng(5).lognormal(5, 1, 500)
    schema = draft(pd.DataFrame({name: amounts, "sex": ["F", "M"] * 250}))
    assert (name not in schema.names) is is_id


@pytest.mark.parametrize(
    ("values", "levels"),
    [
        (["may", "apr", "dec", "jan"], ["jan", "apr", "may", "dec"]),
        (["Sunday", "Monday", "Friday"], ["Monday", "Friday", "Sunday"]),
        (["may", "must", "can"], ["can", "may", "must"]),
    ],
)
def test_months_and_days_stand_as_in_a_calendar(values: list[str], levels: list[str]) -> None:
    """And words that only sound like one by the alphabet."""
    column = draft(pd.DataFrame({"when": values * 20, "sex": ["F", "M"] * (10 * len(values))})).column("when")
    assert column.kind == "categorical"
    assert list(column.levels) == levels


def test_levels_that_look_alike_are_pointed_at() -> None:
    """F and f and ' F' may be one level, which only a person knows."""
    schema = draft(pd.DataFrame({"sex": ["F", "f", " F", "M"] * 50, "land": ["OR", "IN"] * 100}))
    assert [note for note in schema.provenance.notes if "case or spaces alone" in note] == [
        "check: 'sex' has levels that differ in case or spaces alone; if they are the same, make them so in the table"
    ]


def test_spaces_around_every_level_are_pointed_at() -> None:
    """As in files that are separated by a comma and a space: such levels are none of a table without the spaces."""
    schema = draft(pd.DataFrame({"sex": [" F", " M"] * 50, "land": ["OR", "IN"] * 50}))
    (note,) = (note for note in schema.provenance.notes if "spaces" in note)
    assert note.startswith("check: 'sex' has levels with spaces around them")


def test_few_numbers_with_a_fraction_are_levels() -> None:
    """Grades of 1.5, 2 and 2.5 are no amounts, and nothing lies between them."""
    column = draft(pd.DataFrame({"grade": [1.5, 2.0, 2.5] * 50, "sex": ["F", "M"] * 75})).column("grade")
    assert (column.kind, column.levels) == ("ordinal", (1.5, 2, 2.5))
    few = draft(pd.DataFrame({"grade": [1.5, 2.0, 2.5], "sex": ["F", "M", "F"]})).column("grade")
    assert few.kind == "number"


def test_a_table_without_rows_is_said_to_have_none() -> None:
    """And not to hold free text."""
    with pytest.raises(SchemaError, match="has no rows to draft a schema from"):
        draft(pd.DataFrame({"a": [], "b": []}))


def test_a_level_of_two_lines_is_shown_on_one(tmp_path: Path) -> None:
    """`schema show` has a line for each column."""
    draft(pd.DataFrame({"note": ["one\ntwo", "three"] * 50, "sex": ["F", "M"] * 50})).save(
        tmp_path / "s.yaml"
    )
    shown = CliRunner().invoke(main, ["schema", "show", str(tmp_path / "s.yaml")])
    assert [line.split()[0] for line in shown.output.splitlines()[1:3]] == ["note", "sex"]
    assert "one two" in shown.output
