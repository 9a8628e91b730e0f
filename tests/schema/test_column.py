"""One column: its levels, and the way from cells to codes and back."""

import datetime as dt
from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcipher.errors import DataError, SchemaError, SizeError
from dpcipher.schema import MISSING_LABEL, column
from dpcipher.schema.columns import Boolean, Categorical, Ordinal
from dpcipher.schema.cut import Integer

CANARY = "Zebra-4711"
RNG = np.random.default_rng

words = st.text(min_size=1, max_size=6)


def shown(column, cells):
    """The labels a column gives to cells."""
    return [column.labels[code] for code in column.encode(pa.array(cells))]


@given(levels=st.lists(words, min_size=1, max_size=8, unique=True), data=st.data())
def test_texts_round_trip(levels, data):
    """Whatever texts are levels, they come back exactly, in any number and order."""
    declared = column("c", "categorical", levels=levels, missing="level")
    cells = data.draw(st.lists(st.sampled_from([*levels, None]), max_size=30))
    array = pa.array(cells, pa.string())
    assert cells == declared.decode(declared.encode(array), RNG(0)).to_pylist()


@given(
    levels=st.lists(st.integers(-(2**53) + 1, 2**53 - 1), min_size=1, max_size=8, unique=True),
    data=st.data(),
)
def test_integer_levels_round_trip_as_integers_and_as_text(levels, data):
    """Integer levels come back as integers, whether the cells were integers or their text."""
    declared = column("c", "ordinal", levels=levels)
    cells = data.draw(st.lists(st.sampled_from(levels), min_size=1, max_size=30))
    expected = [levels.index(cell) for cell in cells]
    assert expected == declared.encode(pa.array(cells)).tolist()
    assert expected == declared.encode(pa.array([str(cell) for cell in cells])).tolist()
    back = declared.decode(np.array(expected, dtype=np.int32), RNG(0))
    assert back.type == pa.int64()
    assert cells == back.to_pylist()


@given(low=st.integers(-1000, 1000), width=st.integers(1, 500), bins=st.integers(1, 20), data=st.data())
def test_integers_stay_integers_in_their_bin(low, width, bins, data):
    """An integer's bin follows from arithmetic, and what is drawn from a bin is an integer of it."""
    bins = min(bins, width)
    declared = column("i", "integer", min=low, max=low + width - 1, bins=bins, missing="level")
    cells = data.draw(st.lists(st.integers(low, low + width - 1) | st.none(), max_size=30))
    codes = declared.encode(pa.array(cells, pa.int64()))
    starts = [low + i * width // bins for i in range(bins)]
    expected = [bins if cell is None else sum(start <= cell for start in starts) - 1 for cell in cells]
    assert expected == codes.tolist()
    back = declared.decode(codes, RNG(0))
    assert back.type == pa.int64()
    assert expected == declared.encode(back).tolist()


@given(
    edges=st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=8, unique=True).map(sorted),
    data=st.data(),
)
def test_numbers_stay_in_their_bin(edges, data):
    """numpy's histogram finds the same bins, and a value drawn from a bin is in that bin."""
    declared = column("x", "number", edges=edges)
    cells = data.draw(st.lists(st.floats(edges[0], edges[-1]), min_size=1, max_size=30))
    codes = declared.encode(pa.array(cells))
    assert np.histogram(cells, edges)[0].tolist() == np.bincount(codes, minlength=len(edges) - 1).tolist()
    assert codes.tolist() == declared.encode(declared.decode(codes, RNG(1))).tolist()


@given(
    days=st.lists(st.dates(dt.date(1901, 1, 1), dt.date(2099, 12, 31)), min_size=1, max_size=30),
    bins=st.integers(1, 400),
)
def test_dates_stay_dates(days, bins):
    """Dates, datetimes and ISO texts have the same bin, and dates come back."""
    declared = column("d", "date", min="1901-01-01", max="2099-12-31", bins=bins)
    codes = declared.encode(pa.array(days))
    assert codes.tolist() == declared.encode(pa.array([day.isoformat() for day in days])).tolist()
    stamps = [dt.datetime.combine(day, dt.time(23, 59)) for day in days]
    assert codes.tolist() == declared.encode(pa.array(stamps)).tolist()
    back = declared.decode(codes, RNG(0))
    assert back.type == pa.date32()
    assert codes.tolist() == declared.encode(back).tolist()


@given(cells=st.lists(st.booleans() | st.none(), max_size=30))
def test_booleans_round_trip(cells):
    """CountSource values, 0/1 and their words are one thing."""
    declared = column("b", "boolean", missing="level")
    codes = declared.encode(pa.array(cells, pa.bool_()))
    assert cells == declared.decode(codes, RNG(0)).to_pylist()
    assert codes.tolist() == declared.encode(pa.array(cells, pa.bool_()).cast(pa.int8())).tolist()
    words = [None if cell is None else "Yes" if cell else "no" for cell in cells]
    assert codes.tolist() == declared.encode(pa.array(words, pa.string())).tolist()


@given(text=st.text(alphabet="0123456789.eE+- naif_x", max_size=7))
def test_reading_a_number_does_not_depend_on_its_neighbours(text):
    """A cell beside an unreadable one gets the bin that it gets alone."""
    declared = column("x", "number", min=-100, max=100, bins=7, missing="level", other="missing")
    alone = declared.encode(pa.array([text]))[0]
    beside = declared.encode(pa.array([text, "?"]))[0]
    assert alone == beside


def test_values_in_a_bin_are_uniform():
    """Each integer of a bin is drawn as often as the others, up to chance."""
    declared = column("i", "integer", min=0, max=9, bins=2)
    drawn = Counter(declared.decode(np.zeros(50_000, dtype=np.int32), RNG(3)).to_pylist())
    assert set(range(5)) == set(drawn)
    assert max(abs(count - 10_000) for count in drawn.values()) < 450  # five standard deviations


def test_labels_name_the_bins():
    """Labels read as people write ranges, and the missing level comes last."""
    assert column("i", "integer", min=0, max=9, bins=2).labels == ("0..4", "5..9")
    assert column("i", "integer", min=7, max=8, missing="level").labels == ("7", "8", MISSING_LABEL)
    assert column("x", "number", min=0, max=1, bins=2).labels == ("[0, 0.5)", "[0.5, 1]")
    assert column("i", "integer", edges=[0, 18, 120]).labels == ("0..17", "18..120")
    assert column("d", "date", min="2024-02-28", max="2024-02-29", bins=1).labels == (
        "2024-02-28..2024-02-29",
    )


def test_codes_in_text_survive():
    """01, N and NA are levels like any other, and an empty text is missing unless it is a level."""
    declared = column("c", "categorical", levels=["01", "N", "NA"], missing="level")
    assert shown(declared, ["01", "N", "NA", "", None]) == ["01", "N", "NA", MISSING_LABEL, MISSING_LABEL]
    blank = column("c", "categorical", levels=["", "x"])
    assert blank.encode(pa.array(["", "x"])).tolist() == [0, 1]


def test_floats_from_missing_integers_are_found():
    """pandas turns integers beside missing values into floats; they are still the levels 1 and 2."""
    frame = pd.Series([1.0, np.nan, 2.0])
    for levels in ([1, 2], ["1", "2"]):
        declared = column("c", "categorical", levels=levels, missing="level")
        assert declared.encode(pa.Array.from_pandas(frame)).tolist() == [0, 2, 1]


def test_other_values_go_where_the_schema_says():
    """To a level, to the missing level, or to the end bins."""
    assert shown(column("c", "categorical", levels=["a", "rest"], other="rest"), ["a", "b"]) == ["a", "rest"]
    declared = column("x", "number", min=0, max=1, bins=2, missing="level", other="missing")
    assert shown(declared, ["N", "0.1"]) == [MISSING_LABEL, "[0, 0.5)"]
    nearest = column("i", "integer", min=0, max=9, bins=2, other="nearest")
    assert shown(nearest, [-50, 9, 10**15]) == ["0..4", "5..9", "5..9"]
    assert shown(column("x", "number", min=0, max=1, bins=2, other="nearest"), [-np.inf, np.inf]) == [
        "[0, 0.5)",
        "[0.5, 1]",
    ]


def test_unused_categories_do_not_matter():
    """A dictionary may hold entries that no row has; only the rows are judged."""
    declared = column("c", "categorical", levels=["a", "b"], missing="level")
    cells = pa.DictionaryArray.from_arrays(pa.array([1, None, 0]), pa.array(["b", "a", CANARY]))
    assert declared.encode(cells).tolist() == [0, 2, 1]
    chunks = pa.chunked_array([cells, pa.DictionaryArray.from_arrays(pa.array([0]), pa.array(["b"]))])
    assert declared.encode(chunks).tolist() == [0, 2, 1, 1]


BAD_CELLS = [
    (column("c", "categorical", levels=["a", "b"]), ["a", CANARY]),
    (column("c", "categorical", levels=["a", "b"]), ["a", None]),
    (column("c", "ordinal", levels=[1, 2]), ["1", CANARY]),
    (column("c", "ordinal", levels=[1, 2]), [1, 4711]),
    (column("i", "integer", min=0, max=9), [3, 4711]),
    (column("i", "integer", min=0, max=9), ["3", CANARY]),
    (column("i", "integer", min=0, max=9), [3.0, 4.711]),
    (column("i", "integer", min=0, max=9, other="nearest"), ["3", CANARY]),
    (column("i", "integer", min=0, max=9), [float("nan")]),
    (column("x", "number", min=0, max=1, bins=2), [0.5, 4711.0]),
    (column("x", "number", min=0, max=1, bins=2), ["0.5", CANARY]),
    (column("d", "date", min="2024-01-01", max="2024-12-31"), ["2024-02-01", "2024-02-30"]),
    (column("d", "date", min="2024-01-01", max="2024-12-31"), [dt.date(4711, 1, 1)]),
    (column("b", "boolean"), ["true", CANARY]),
    (column("b", "boolean"), [1, 4711]),
    (column("b", "boolean"), [[4711]]),
]


@pytest.mark.parametrize(("column", "cells"), BAD_CELLS)
def test_refused_cells_are_not_quoted(column, cells):
    """The error names the column and the rule, and neither the value nor how many there were."""
    with pytest.raises(DataError, match=repr(column.name)) as caught:
        column.encode(pa.array(cells * 7))
    text = str(caught.value)
    assert "refuse" in text
    assert not any(secret in text for secret in (CANARY, "4711", "4.711", "02-30", "7"))
    assert caught.value.__cause__ is None


BAD_COLUMNS = [
    ({"kind": "categoric", "levels": ["a"]}, "did you mean 'categorical'"),
    ({"kind": "categorical"}, "must declare levels"),
    ({"kind": "categorical", "levels": []}, "at least one"),
    ({"kind": "categorical", "levels": ["a", "a"]}, "listed twice"),
    ({"kind": "categorical", "levels": ["a", None]}, "missing: level"),
    ({"kind": "categorical", "levels": [True, "x"]}, "one type"),
    ({"kind": "categorical", "levels": [1.0, float("nan")]}, "finite"),
    ({"kind": "categorical", "levels": [2**53]}, r"2\*\*53"),
    ({"kind": "categorical", "levels": ["a", "rest"], "other": "rset"}, "did you mean 'rest'"),
    ({"kind": "categorical", "levels": ["a"], "other": "nearest"}, "nearest"),
    ({"kind": "categorical", "levels": ["(missing)"], "missing": "level"}, "rename"),
    ({"kind": "categorical", "levels": ["a"], "missing": "drop"}, "level or refuse"),
    ({"kind": "number", "min": 0, "max": 1}, "bins"),
    ({"kind": "number", "min": 1, "max": 1, "bins": 2}, "below"),
    ({"kind": "number", "min": 1, "max": float("inf"), "bins": 2}, "finite"),
    ({"kind": "number", "edges": [0, 0, 1]}, "increasing"),
    ({"kind": "number", "edges": [0, 1], "bins": 3}, "must declare"),
    ({"kind": "integer", "min": 0.5, "max": 3}, "whole"),
    ({"kind": "integer", "min": True, "max": 3}, "number"),
    ({"kind": "integer", "min": 0, "max": 3, "bins": 9}, "leave bins out"),
    ({"kind": "integer", "min": 0, "max": 3, "bins": 0}, "from 1 up"),
    ({"kind": "integer", "min": 0, "max": 3, "other": "missing"}, "refuse or nearest"),
    ({"kind": "date", "min": "2024-02-30", "max": "2024-03-01"}, "such as 2024-01-31"),
    ({"kind": "boolean", "levels": [True, False]}, "nothing more"),
]


@pytest.mark.parametrize(("spec", "hint"), BAD_COLUMNS)
def test_a_column_is_checked_at_birth(spec, hint):
    """Each way to declare a column wrongly is refused with its name and a hint."""
    with pytest.raises(SchemaError, match=hint) as caught:
        column("salary", **spec)
    assert "'salary'" in str(caught.value)


def test_too_many_levels_are_refused_for_their_number():
    """Levels beyond 32-bit codes are refused without being built."""
    with pytest.raises(SizeError, match="use bins"):
        column("i", "integer", min=0, max=2**40)
    assert column("i", "integer", min=1, max=10**9).size == 10**9


def test_codes_outside_the_column_are_refused():
    """A negative or too large code is an error, never another level."""
    declared = column("b", "boolean")
    for code in (-1, 2):
        with pytest.raises(DataError, match=r"0\.\.1"):
            declared.decode(np.array([code], dtype=np.int32), RNG(0))


def test_a_class_declares_what_column_declares():
    """By its class or by its kind, a column is the same; a class refuses two ways of saying the bins, too."""
    assert Integer("i", min=0, max=9, bins=2) == column("i", "integer", min=0, max=9, bins=2)
    assert Ordinal("o", levels=["lo", "hi"], missing="level") == column(
        "o", "ordinal", levels=["lo", "hi"], missing="level"
    )
    assert Ordinal("o", levels=["a"]) != Categorical("o", levels=["a"])
    for facts in ({"min": 0, "max": 9, "edges": [0, 9]}, {"min": 0}, {}):
        with pytest.raises(SchemaError, match="column 'i': a column of kind integer must declare"):
            Integer("i", **facts)
    with pytest.raises(SchemaError, match=r"name .* must be a text of 1 to 500"):
        Boolean("")


def test_a_key_of_another_kind_is_refused_with_where_it_belongs():
    """Before anything is made of the others."""
    for key, value, home in (
        ("step", 2, "integer, number, date and time"),
        ("max_bins", 3, "bins: auto"),
        ("keep", ["a"], "levels: discover"),
    ):
        with pytest.raises(SchemaError, match=f"column 'b': {key} is for {home}"):
            column("b", "boolean", **{key: value})
    with pytest.raises(SchemaError, match="unknown key 'level'; did you mean 'levels'"):
        column("b", "categorical", level=["a"])
