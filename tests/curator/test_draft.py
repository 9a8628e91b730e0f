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
    "child": "integer",
    "poverty": "number",
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
    assert [note for note in schema.provenance.notes if "'name'" in note and str(MAX_LEVELS) in note]
    assert [note for note in schema.provenance.notes if "'void'" in note]
    assert [note for note in schema.provenance.notes if "'poverty'" in note]
    schema.save(tmp_path / "draft.yaml")
    assert Schema.load(tmp_path / "draft.yaml") == schema


def test_ranges_are_rounded_outward():
    """The extremes of a table are somebody's; a draft does not show those of a wide column."""
    columns = {column.name: column for column in draft(FRAME).columns}
    height = columns["height"]
    assert height.min < FRAME["height"].min() < FRAME["height"].max() < height.max
    assert columns["born"].min == "1950-01-01"
    assert columns["income"].max > FRAME["income"].max()
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
