"""Whole numbers that travel in words: whatever the cells, the codes are those of the cells themselves."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcipher.curator.spark_packing import Packing, packing
from dpcipher.errors import DataError
from dpcipher.schema import Column, Schema

COLUMNS = (
    Column("range", "integer", min=-3, max=40, other="nearest"),
    Column("bins", "integer", min=-500, max=500, bins=7, missing="level", special=[-999, 9_999]),
    Column("number", "number", edges=[-0.5, 0, 2.5, 1e6], other="nearest", missing="level"),
    Column("texts", "categorical", levels=["1", "02", "x", "-7"], other="x", missing="level"),
    Column("codes", "ordinal", levels=[5, 3, 1000], other=3, missing_values=[-9, "N"], missing="level"),
    Column("truth", "boolean", other=False, missing="level"),
    Column("far", "categorical", levels=["9007199254740993", "2"], other="2", missing="level"),
    Column("wide", "integer", min=0, max=2**40, bins=3, other="nearest", missing="level"),
    Column("day", "date", min="2001-01-01", max="2001-12-31", bins=2, missing="level", other="missing"),
)
CELLS = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-12, 50),
    st.sampled_from([-1000, -999, -998, 500, 501, 9_998, 9_999, 10_000, 10**6, 10**6 + 1, 2**53 + 1]),
)


def packed_by_hand(how: Packing, table: pa.Table) -> pa.Table:
    """What Spark is asked to do, cell by cell."""
    words = [[0] * table.num_rows for _ in range(how.n_words)]
    for slot in how.slots:
        for row, cell in enumerate(table.column(slot.name).to_pylist()):
            inside = slot.size if cell is None else min(max(int(cell) - slot.low, 0), slot.size - 1)
            words[slot.word][row] |= inside << slot.shift
    assert all(0 <= number < 2**63 for word in words for number in word)
    numbers = {f"word {place}": pa.array(word, pa.int64()) for place, word in enumerate(words)}
    return pa.table(numbers | {name: table.column(name) for name in how.others})


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
@given(cells=st.lists(CELLS, min_size=1, max_size=30))
def test_cells_that_travelled_have_the_same_codes(column: Column, cells: Sequence[int | None]) -> None:
    """Also nulls, special values, numbers far outside, and numbers that a float cannot hold; a refusal stays one."""
    schema = Schema((column, Column("other", "boolean", missing="level")))
    table = pa.table(
        {column.name: pa.array(cells, pa.int64()), "other": pa.array([True, None, False] * 10)[: len(cells)]}
    )
    how = packing(schema, {column.name: "bigint", "other": "boolean"})
    packed = packed_by_hand(how, table)
    arrived = how.unpacked(packed)
    try:
        expected = schema.encode_columns(table)
    except DataError as refusal:
        with pytest.raises(DataError, match=str(refusal)[:20]):
            schema.encode_columns(arrived)
        with pytest.raises(DataError, match=str(refusal)[:20]):
            how.encoded(packed, schema)
        return
    for codes in (schema.encode_columns(arrived), how.encoded(packed, schema)):
        assert all(np.array_equal(mine, theirs) for mine, theirs in zip(codes, expected, strict=True))
        assert [mine.dtype for mine in codes] == [theirs.dtype for theirs in expected]


def test_rows_that_travelled_are_judged_on_the_grid_of_found_bins() -> None:
    """Rows that break a rule inside a bin go where they go when they did not travel."""
    ends = {"min": 0, "max": 60, "bins": "auto"}
    columns = (Column("a", "integer", **ends), Column("b", "integer", missing="level", **ends))
    open_schema = Schema(columns, rules=({"rule": "a <= b", "becomes": {"b": "(missing)"}},))
    schema = open_schema.closed({"a": [0.0, 30.0, 61.0], "b": [0.0, 61.0]})
    table = pa.table({"a": pa.array([5, 7, 60, 60]), "b": pa.array([6, 6, 59, None])})
    how = packing(schema, {"a": "bigint", "b": "bigint"})
    codes = how.encoded(packed_by_hand(how, table), schema)
    assert [each.tolist() for each in codes] == [[0, 0, 1, 1], [0, 1, 1, 1]]
    assert [each.tolist() for each in schema.encode_columns(table)] == [each.tolist() for each in codes]


def test_many_columns_share_few_words() -> None:
    """Adult's fourteen columns are two words; what is no whole number, or the column of persons, travels as it is."""
    sizes = (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2)
    schema = Schema.from_domain({f"c{axis}": size for axis, size in enumerate(sizes)})
    how = packing(schema, dict.fromkeys(schema.names, "bigint"))
    assert how.n_words == 2
    assert how.others == ()
    mixed = packing(
        schema, {name: "string" if name == "c3" else "int" for name in schema.names}, ["c0", "who"]
    )
    assert mixed.others == ("c0", "c3", "who")


def test_what_cannot_be_told_apart_is_not_packed() -> None:
    """Numbers beyond those that floats hold, days, ranges too long for their bits."""
    kept = [column.name for column in COLUMNS if packing(Schema((column,)), {column.name: "bigint"}).others]
    assert kept == ["far", "wide", "day"]
