"""Codes for kinds of missing: apart from one another, never numbers, and written back as they came."""

import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpcipher as dc
from dpcipher.errors import DataError, SchemaError
from dpcipher.evaluation.scores import level_frame
from dpcipher.inference.design import make_task
from dpcipher.io.source import coded_rows
from dpcipher.schema import Schema, column
from dpcipher.schema.cells import as_text
from dpcipher.schema.conditions import column_mask

RNG = np.random.default_rng


def income(**more):
    """A column with two kinds of missing beside true nulls."""
    return column("income", "integer", min=-10, max=99, bins=11, missing_values=["N", -9], **more)


def test_kinds_of_missing_are_the_last_levels_and_stay_apart():
    """N, -9 and a null are three levels, after those of the values."""
    column = income(missing="level")
    assert (column.size, column.n_missing) == (13 + 1, 3)
    assert column.labels[-3:] == ("(missing: N)", "(missing: -9)", "(missing)")
    assert column.encode(pa.array(["N", "-9", None, "40"])).tolist() == [11, 12, 13, 5]


@pytest.mark.parametrize(
    "cells",
    [
        pa.array([-9, -8], pa.int8()),
        pa.array([-9.0, -8.0]),
        pa.array(["-9", "-8"]),
        pa.array(["-9.0", "-8.00"]),
        pa.array([b"-9", b"-8"]),
    ],
)
def test_a_code_is_known_under_every_type_of_cell(cells):
    """The code -9 is no value of the range -10..99, whatever type the column has."""
    assert income().encode(cells).tolist() == [12, 0]


def test_a_condition_on_a_range_takes_no_code_for_a_number():
    """{min: -10} asks for values; -9 is none. The code itself and its label ask for the kind."""
    declared = income()
    assert not column_mask(declared, {"min": -10})[11:].any()
    for wanted in (-9, "-9", "(missing: -9)"):
        assert np.flatnonzero(column_mask(declared, wanted)).tolist() == [12]
    unit = column("n", "integer", min=0, max=3, missing_values=["N"])
    assert (unit.find("N"), unit.find("(missing: N)")) == (4, 4)


@settings(deadline=None)
@given(kinds=st.lists(st.sampled_from(["N", -9, "DK", 99.5, "-8"]), min_size=1, unique=True), data=st.data())
def test_what_is_decoded_is_encoded_to_the_same_codes(kinds, data):
    """Whatever the codes and the column, rows written out are read back as they were, through Arrow, pandas and CSV."""
    declared = data.draw(
        st.sampled_from(
            [
                column("x", "integer", min=0, max=9, bins=3, missing="level", missing_values=kinds),
                column("x", "number", min=0, max=1, bins=4, missing="level", missing_values=kinds),
                column("x", "categorical", levels=["a", "b"], missing="level", missing_values=kinds),
                column("x", "ordinal", levels=[1, 2, 3], missing="level", missing_values=kinds),
                column("x", "boolean", missing="level", missing_values=[k for k in kinds if k != "N"]),
                column(
                    "x", "date", min="2024-01-01", max="2024-03-31", missing_values=kinds, missing="level"
                ),
            ]
        )
    )
    codes = np.array(
        data.draw(st.lists(st.integers(0, declared.size - 1), min_size=1, max_size=20)), np.int32
    )
    cells = declared.decode(codes, RNG(0))
    assert codes.tolist() == declared.encode(cells).tolist()
    table = pa.table({"x": cells, "last": np.zeros(len(codes))})
    out = io.BytesIO()
    pacsv.write_csv(table, out)
    assert codes.tolist() == _codes(pd.read_csv(io.BytesIO(out.getvalue())), declared)


def _codes(frame, column):
    return coded_rows(frame, Schema((column,)), "frame").ravel().tolist()


@pytest.mark.parametrize(
    ("declared", "kind"),
    [
        (column("x", "integer", min=0, max=9, missing_values=[-9, -8]), pa.int64()),
        (column("x", "integer", min=0, max=9, missing_values=["-9"]), pa.int64()),
        (column("x", "integer", min=0, max=9, missing_values=[-9.5]), pa.float64()),
        (column("x", "number", min=0, max=9, bins=3, missing_values=[-9]), pa.float64()),
        (column("x", "integer", min=0, max=9, missing_values=["N", -9]), pa.string()),
        (column("x", "integer", min=0, max=9, missing_values=["-09"]), pa.string()),
        (column("x", "date", min="2024-01-01", max="2024-01-31", missing_values=["9999-12-31"]), pa.date32()),
        (column("x", "date", min="2024-01-01", max="2024-01-31", missing_values=[99999999]), pa.string()),
        (column("x", "categorical", levels=["a"], missing_values=[-9]), pa.string()),
        (column("x", "boolean", missing_values=[9]), pa.string()),
    ],
)
def test_a_column_stays_typed_where_its_codes_fit_the_type(declared, kind):
    """Numbers stay numbers beside codes that are numbers, dates beside dates; with any other code the column is text."""
    cells = declared.decode(np.array([0, declared.size - 1], np.int32), RNG(0))
    assert kind == cells.type
    assert declared.missing_codes.texts[-1] == as_text(cells)[1].as_py()


def test_a_null_is_the_code_that_a_reader_took_for_nothing():
    """pandas reads NA as NaN by itself: where one such code is declared, and nulls have no level, a null is that code."""
    declared = column("x", "integer", min=0, max=9, missing_values=["NA", -9])
    frame = pd.read_csv(io.StringIO("x\n1\nNA\n-9\n"))
    assert _codes(frame, declared) == [1, 10, 11]
    assert _codes(frame.fillna(-9).assign(x=[1, -9, None]), income_like(declared)) == [1, 11, 12]
    with pytest.raises(DataError, match="missing values are refused"):
        _codes(frame, column("x", "integer", min=0, max=9, missing_values=["N", -9]))


def income_like(declared):
    """The same column with a level for nulls."""
    return column("x", "integer", min=0, max=9, missing="level", missing_values=declared.missing_values)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ("N", "must be a list"),
        ([""], "missing: level"),
        (["NaN"], "missing: level"),
        ([True], "texts or numbers"),
        ([2**60], "2\\*\\*53"),
        (["N", "N"], "distinct"),
        (["a"], "must not be a level too"),
        (["'-"], "must not begin with a quote"),
        (["x" * 201], "200 characters"),
        (list(range(-101, 0)), "at most 100"),
    ],
)
def test_what_is_no_code_is_refused(values, words):
    """Each rule of missing_values fires, and names the column."""
    with pytest.raises(SchemaError, match=f"column 'x'.*{words}"):
        column("x", "categorical", levels=["a", "b"], missing_values=values)


def test_a_schema_may_say_its_codes_once():
    """A column takes the schema's codes unless it lists its own, which may be none, or has a level of that name."""
    schema = Schema.from_dict(
        {
            "missing_values": ["N", -9],
            "columns": {
                "a": {"kind": "integer", "min": 0, "max": 3},
                "b": {"kind": "categorical", "levels": ["N", "Y"]},
                "c": {"kind": "boolean", "missing_values": []},
                "d": {"kind": "boolean"},
            },
        }
    )
    assert [column.missing_values for column in schema.columns] == [("N", -9), (-9,), (), (-9,)]
    assert schema == Schema.from_dict(schema.to_dict())


def test_a_column_without_codes_has_the_fingerprint_it_had():
    """What is default is not written."""
    plain = {"kind": "integer", "min": 0, "max": 3}
    assert plain == {key: value for key, value in column("a", missing_values=[], **plain).to_spec().items() if key != "name"}  # fmt: skip


def test_models_leave_every_kind_of_missing_out():
    """A model on a number sees no -9, neither over the cells of a release nor over rows."""
    schema = Schema((income(missing="level"), column("sex", "categorical", levels=["F", "M"])))
    assert len(make_task(schema, "sex ~ income", "logistic").cells.frame) == 11 * 2
    codes = np.array([[0, 0], [11, 1], [12, 0], [13, 1]], np.int32)
    assert level_frame(codes, schema)["income"].isna().tolist() == [False, True, True, True]


def test_a_release_of_kinds_of_missing_comes_back_as_they_came():
    """From a frame with N among its numbers to synthetic rows with N among theirs, at the right share."""
    rng = RNG(1)
    values = pd.Series(rng.integers(0, 50, 4000).astype(object)).mask(rng.random(4000) < 0.25, "N")
    frame = pd.DataFrame({"income": values, "sex": rng.choice(["F", "M"], 4000)})
    schema = Schema((income(), column("sex", "categorical", levels=["F", "M"])))
    release = dc.measure(frame, schema, epsilon=20.0, unit="add-remove")
    rows = dc.solve(release).sample(4000, seed=1)
    assert abs((rows["income"] == "N").mean() - 0.25) < 0.03
    assert pd.to_numeric(rows["income"][rows["income"] != "N"]).between(-10, 99).all()
