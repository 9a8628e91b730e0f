"""The schema as a whole: what is measured, conditions, structural zeros, rows and sign-off."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcipher.errors import ConditionError, DataError, ParameterError, SchemaError, WorkloadError
from dpcipher.schema import Provenance, Schema, Zero, column

COLUMNS = (
    column("a", "categorical", levels=["x", "y"]),
    column("b", "integer", min=0, max=29, bins=3),
    column("c", "boolean", missing="level"),
    column("d", "ordinal", levels=["lo", "hi"]),
)
SCHEMA = Schema(COLUMNS)
RNG = np.random.default_rng


def test_columns_have_axes_sizes_and_labels():
    """In the order of the schema, whatever the order of the names."""
    assert SCHEMA.attrs == ("a", "b", "c", "d")
    assert SCHEMA.shape == (2, 3, 3, 2)
    assert SCHEMA.labels("c") == ("False", "True", "(missing)")
    assert SCHEMA.n_cells(("d", "c", "b")) == 18
    assert SCHEMA.axes(("d", "a")) == (0, 3)


@given(st.lists(st.tuples(*(st.integers(0, size - 1) for size in SCHEMA.shape)), max_size=40))
def test_codes_survive_decoding_and_encoding(rows):
    """Rows drawn from codes have those codes, missing values included."""
    codes = np.array(rows, dtype=np.int32).reshape(-1, 4)
    table = SCHEMA.decode(codes, RNG(0))
    assert table.column_names == ["a", "b", "c", "d"]
    assert codes.tolist() == SCHEMA.encode(table).tolist()


@pytest.mark.parametrize("names", [("a", "b"), ("c", "b"), ("d", "a", "c"), "a"])
def test_cover_puts_the_axes_in_the_order_of_the_names(names):
    """Counting the rows by the named columns gives what folding the table of their axes gives."""
    rng = RNG(1)
    codes = np.stack([rng.integers(0, size, 300) for size in SCHEMA.shape], axis=1).astype(np.int32)
    cover = SCHEMA.cover(names)
    covering = np.zeros([SCHEMA.shape[axis] for axis in cover.axes])
    np.add.at(covering, tuple(codes[:, axis] for axis in cover.axes), 1)
    by_name = dict(zip("abcd", codes.T, strict=True))
    expected = np.zeros([len(labels) for labels in cover.labels])
    np.add.at(expected, tuple(by_name[name] for name in names), 1)
    assert expected.tolist() == cover.fold(covering).tolist()
    assert covering.tolist() == cover.spread(expected).tolist()


@pytest.mark.parametrize("names", [("z",), ("a", "a"), "z"])
def test_a_wrong_cover_is_refused(names):
    """Unknown names, and a column asked for twice."""
    with pytest.raises(WorkloadError):
        SCHEMA.cover(names)


@pytest.mark.parametrize("attrs", [("z",), ("b", "b"), "z"])
def test_wrong_attrs_have_no_axes(attrs):
    """Unknown names and repeats."""
    with pytest.raises(WorkloadError):
        SCHEMA.axes(attrs)


def test_one_name_stands_for_itself():
    """A column by its name is the table of that column."""
    assert SCHEMA.axes("b") == SCHEMA.axes(("b",))
    assert SCHEMA.cover("a") == SCHEMA.cover(("a",))


CONDITIONS = [
    ({"a": "x"}, lambda row: row["a"] == "x"),
    ({"a": ["x", "y"], "d": "hi"}, lambda row: row["d"] == "hi"),
    ({"c": None}, lambda row: row["c"] is None),
    ({"c": True, "a": "y"}, lambda row: row["c"] is True and row["a"] == "y"),
    ({"b": 14}, lambda row: 10 <= row["b"] <= 19),
    ({"b": "10..19"}, lambda row: 10 <= row["b"] <= 19),
    ({"b": {"min": 10}}, lambda row: row["b"] >= 10),
]


@pytest.mark.parametrize(("condition", "holds"), CONDITIONS)
def test_conditions_allow_the_rows_that_meet_them(condition, holds):
    """A row's codes are allowed exactly when the row meets the condition."""
    codes = np.stack(np.unravel_index(np.arange(36), SCHEMA.shape), axis=1).astype(np.int32)
    rows = SCHEMA.decode(codes, RNG(0)).to_pylist()
    masks = SCHEMA.allowed(condition)
    allowed = np.all([mask[codes[:, axis]] for axis, mask in masks.items()], axis=0)
    assert [holds(row) for row in rows] == allowed.tolist()


@pytest.mark.parametrize(
    ("condition", "hint"),
    [
        ({"aa": "x"}, "is not in the schema"),
        ({"a": "z"}, "no level 'z'"),
        ({"d": "low"}, "did you mean 'lo'"),
        ({"a": None}, "no level None"),
        ({"b": 31}, "no level 31"),
        ({"b": 10**30}, "no level"),
        ({"b": {"min": 12, "max": 15}}, "whole bins"),
        ({"b": {"low": 1}}, "min, max"),
        ({"a": {"min": 1}}, "min, max"),
        ({"b": {"min": "x"}}, "numbers"),
        ({"a": []}, "allows no level"),
    ],
)
def test_a_condition_that_cannot_be_met_is_refused(condition, hint):
    """Unknown columns, unknown levels and none at all."""
    with pytest.raises(ConditionError, match=hint):
        SCHEMA.allowed(condition)


ZEROS = (Zero({"a": "x", "b": {"max": 9}}), Zero({"d": "hi", "b": 25}, {"d": "lo"}))
WITH_ZEROS = Schema(COLUMNS, zeros=ZEROS)


def test_zero_masks_mark_what_cannot_be():
    """Each mask is True exactly at the cells whose rows are impossible."""
    codes = np.stack(np.unravel_index(np.arange(36), SCHEMA.shape), axis=1).astype(np.int32)
    rows = SCHEMA.decode(codes, RNG(0)).to_pylist()
    (first_axes, first), (second_axes, second) = WITH_ZEROS.zero_masks
    assert (first_axes, second_axes) == ((0, 1), (1, 3))
    assert [row["a"] == "x" and row["b"] <= 9 for row in rows] == first[codes[:, 0], codes[:, 1]].tolist()
    assert [row["d"] == "hi" and row["b"] >= 20 for row in rows] == second[codes[:, 1], codes[:, 3]].tolist()


def test_rows_in_a_structural_zero_are_moved_or_refused():
    """A declared way out is taken; without one the rows are refused by rule, not by value."""
    moved = WITH_ZEROS.encode(pa.table({"a": ["y"], "b": [25], "c": [True], "d": ["hi"]}))
    assert WITH_ZEROS.decode(moved, RNG(0)).to_pylist()[0]["d"] == "lo"
    with pytest.raises(DataError, match="'a', 'b': rows in structural zero 1 are refused"):
        WITH_ZEROS.encode(pa.table({"a": ["x"], "b": [5], "c": [True], "d": ["lo"]}))


def test_a_condition_on_a_structural_zero_is_refused():
    """No row can be sampled there."""
    with pytest.raises(ConditionError, match="structural zero"):
        WITH_ZEROS.allowed({"a": "x", "b": 3})


@pytest.mark.parametrize(
    ("zero", "hint"),
    [
        (Zero({}), "impossible"),
        (Zero({"zz": "x"}), "not in the schema"),
        (Zero({"a": "zz"}), "no level"),
        (Zero({"a": "x"}, {"a": "x"}), "must leave it"),
        (Zero({"a": "x"}, {"d": "lo"}), "must leave it"),
    ],
)
def test_a_wrong_structural_zero_is_refused(zero, hint):
    """Zeros are checked at birth."""
    with pytest.raises(SchemaError, match=hint):
        Schema(COLUMNS, zeros=(zero,))


def test_compounds_are_refused_with_what_to_write():
    """A table of crossed columns is listed in the workload."""
    with pytest.raises(SchemaError, match="list the tables to measure"):
        Schema.from_dict({"columns": {"a": {"kind": "boolean"}}, "compounds": {"ab": ["a", "b"]}})


def test_columns_are_needed_and_distinct():
    """No column, or one declared twice."""
    with pytest.raises(SchemaError, match="at least one"):
        Schema(())
    with pytest.raises(SchemaError, match="declared once"):
        Schema((COLUMNS[0], COLUMNS[0]))


def test_a_table_without_a_column_is_refused_without_quoting_its_names():
    """A headerless file has cells where names should be."""
    with pytest.raises(DataError, match="'b' is not in the table") as caught:
        SCHEMA.encode(pa.table({"a": ["x"], "bb-secret": [1]}))
    assert "secret" not in str(caught.value)
    twice = pa.table([pa.array(["x"]), pa.array(["x"])], names=["a", "a"])
    with pytest.raises(DataError, match="'a' appears more than once"):
        SCHEMA.encode(twice)


def test_codes_of_a_wrong_width_are_refused():
    """decode wants one column for each attribute."""
    with pytest.raises(ParameterError, match="one column for each"):
        SCHEMA.decode(np.zeros((2, 5), dtype=np.int32), RNG(0))


@given(st.dictionaries(st.text(min_size=1, max_size=4), st.integers(1, 50), min_size=1, max_size=5))
def test_a_domain_keeps_integer_codes(sizes):
    """Integer-coded data comes back integer-coded, columns in the same order."""
    schema = Schema.from_domain(sizes)
    assert tuple(sizes.values()) == schema.shape
    table = pa.table({name: [0, size - 1] for name, size in sizes.items()})
    codes = schema.encode(table)
    assert [[0] * len(sizes), [size - 1 for size in sizes.values()]] == codes.tolist()
    assert table.equals(schema.decode(codes, RNG(0)))


def test_the_condition_on_a_range_takes_whole_bins():
    """Bins that lie entirely within min..max, for every kind that is cut, by comparison of their ends."""
    schema = Schema(
        (
            column("i", "integer", edges=[0, 10, 25, 40]),
            column("x", "number", edges=[0, 0.5, 2]),
            column("d", "date", min="2024-01-01", max="2024-12-31", bins=366),
            column("u", "integer", min=0, max=10**6),
        )
    )
    assert schema.allowed({"i": {"min": 5, "max": 24}})[0].tolist() == [False, True, False]
    assert schema.allowed({"i": {"max": 40}})[0].tolist() == [True, True, True]
    assert schema.allowed({"x": {"min": 0.5}})[1].tolist() == [False, True]
    assert schema.allowed({"d": {"min": "2024-02-01", "max": "2024-02-29"}})[2].nonzero()[0].tolist() == list(
        range(31, 60)
    )
    assert schema.allowed({"u": {"min": 999_998}})[3].sum() == 3
    with pytest.raises(ConditionError, match="no level"):
        schema.allowed({"u": "1000001"})


def test_equal_schemas_hash_alike():
    """A schema can be a key."""
    assert hash(Schema(COLUMNS)) == hash(Schema(list(COLUMNS)))
    assert len({Schema(COLUMNS), Schema(COLUMNS)}) == 1


@pytest.mark.parametrize("size", [0, -1, True, 2.0, "2", None])
def test_a_domain_size_starts_at_one(size):
    """Sizes are whole numbers from 1 up."""
    with pytest.raises(SchemaError, match="from 1 up"):
        Schema.from_domain({"age": size})


def test_a_draft_needs_a_signature_that_fits():
    """Unsigned drafts are refused, signed ones pass, and any edit voids the signature."""
    SCHEMA.require_signed()
    drawn = replace(SCHEMA, provenance=Provenance(drawn_from_data=True))
    with pytest.raises(SchemaError, match="has not been signed"):
        drawn.require_signed()
    signed = drawn.sign("Ada Lovelace", "2024-05-01")
    assert signed.signed
    signed.require_signed()
    edited = replace(signed, columns=(*COLUMNS[:3], column("d", "ordinal", levels=["hi", "lo"])))
    with pytest.raises(SchemaError, match="edited after"):
        edited.require_signed()
    swapped = replace(signed, columns=COLUMNS[::-1])
    assert not swapped.signed


@pytest.mark.parametrize(
    ("name", "date"), [("", "2024-05-01"), ("  ", "2024-05-01"), ("Ada", "soon"), ("Ada", "2024-13-01")]
)
def test_a_signature_needs_a_name_and_a_date(name, date):
    """An empty name or a wrong date is no signature."""
    with pytest.raises(SchemaError, match="sign_off"):
        SCHEMA.sign(name, date)


def test_a_schema_from_its_own_package_drafts_and_checks_rows():
    """Whoever never touched `dpcipher.Schema` has the curator's functions too."""
    program = "import pyarrow as pa; from dpcipher.schema import Schema; print(Schema.from_domain({'a': 2}).check(pa.table({'a': [0, 1]})).ready)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


def test_a_version_alone_is_no_domain():
    """It is a schema without columns, and not one with a column `version`."""
    with pytest.raises(SchemaError, match="with the key columns"):
        Schema.from_dict({"version": 1})
    assert Schema.from_dict({"version": 3, "age": 2}).names == ("version", "age")


def test_a_zero_that_is_not_negative_is_one_level():
    """0.0 and -0.0 are one number, and no row could reach the second level."""
    with pytest.raises(SchemaError, match="listed twice"):
        column("x", "ordinal", levels=[0.0, -0.0, 1.5])


def test_wrong_levels_beside_default_codes_name_their_column():
    """The schema's own list of codes does not hide where a mistake is."""
    with pytest.raises(SchemaError, match="column 'sex': levels must be of one type"):
        Schema.from_dict(
            {"missing_values": ["N"], "columns": {"sex": {"kind": "categorical", "levels": [True, "x"]}}}
        )


@pytest.mark.parametrize("most", [2, 8])
def test_a_zero_over_a_wide_and_an_open_column_leaves_the_grid_fine(most):
    """However few bins may be found, rows are judged on every cell of the grid."""
    columns = (
        column("a", "integer", min=0, max=999_999),
        column("b", "integer", min=0, max=99, bins="auto", max_bins=most),
    )
    schema = Schema(columns, zeros=(Zero({"a": {"max": 9}, "b": {"min": 50}}),))
    assert schema.on_grid().shape == (1_000_000, 100)


@pytest.mark.parametrize("facts", [{"title": 7}, {"description": "two\nlines"}, {"person": ""}])
def test_words_of_a_schema_are_short_and_on_one_line(facts):
    """From Python as from a file."""
    for make in (
        lambda: Schema(COLUMNS, **facts),
        lambda: Schema.from_dict({**Schema(COLUMNS).to_dict(), **facts}),
    ):
        with pytest.raises(SchemaError, match=next(iter(facts))):
            make()
