"""Narrow codes: of whole batches, as of each cell alone; and wide enough for every code."""

import datetime as dt
import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dpcipher.errors import DataError
from dpcipher.schema import Column, Schema, column
from dpcipher.schema.cells import ABSENT
from dpcipher.schema.rules.rule import Zero

LONG = 2_000  # rows of a batch in which values repeat
WHOLE = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
COLUMNS = (
    column("x", "integer", min=-3, max=300, missing="level", other="nearest"),
    column("x", "integer", min=0, max=254, missing="level", other="missing"),
    column("x", "integer", min=0, max=255, other="nearest", missing="level"),
    column("x", "integer", min=-100, max=70_000, bins=7, missing="level", other="missing"),
    column("x", "integer", min=0, max=70_000, missing="level", other="missing"),
    column("x", "number", edges=[-2.5, 0, 1.5, 7, 200], missing="level", other="nearest"),
    column("x", "categorical", levels=["3", "1", "N", "007"], missing="level", other="N"),
    column("x", "categorical", levels=[5, 3, 127, 128, 255, 256], missing="level", other=3),
    column("x", "categorical", levels=[str(2**64 - 1), str(-(2**63)), "true"], missing="level", other="true"),
    column("x", "boolean", missing="level", other="missing"),
    column("x", "date", min="1969-12-01", max="1970-03-01", missing="level", other="nearest"),
    column("x", "date", min="1900-01-01", max="2100-01-01", bins=9, missing="level", other="missing"),
    column("x", "categorical", levels=["1970-01-02", "1970-01-03"], missing="level", other="missing"),
)


def encoded(column: Column, cells: pa.Array) -> list[int] | str:
    """The codes of a batch, or why it was refused."""
    try:
        return column.encode(cells).tolist()
    except DataError as refusal:
        return str(refusal)


def one_at_a_time(column: Column, cells: pa.Array) -> list[int] | str:
    """The same with each cell read alone, and then the rules: in plain Python, nothing looked up."""
    known: dict[Any, int] = {}
    marks = []
    for i, cell in enumerate(cells):
        key = (str(cell), cell.is_valid)
        if key not in known:
            known[key] = int(column.judged(cells[i : i + 1])[2][0])  # by itself
        marks.append(known[key])
    try:
        absent = column.missing_code if ABSENT in marks else -9
        other = column.other_code if -1 in marks else -9
    except DataError as refusal:
        return str(refusal)
    return [{ABSENT: absent, -1: other}.get(mark, mark) for mark in marks]


def whole_numbers(rng: random.Random, kind: pa.DataType) -> pa.Array:
    """A long batch of integers somewhere in the range of their type, its ends included, with and without nulls."""
    limits = np.iinfo(kind.to_pandas_dtype())
    middle = rng.choice([limits.min, limits.max, 0, 127, 255, -130, 65_536, 2**31])
    width = rng.choice([1, 3, 140, 300, 2_000, 10**6])
    values = [min(max(middle + rng.randint(-width, width), limits.min), limits.max) for _ in range(50)]
    return pa.array([rng.choice([*values, *[None] * rng.choice([0, 1])]) for _ in range(LONG)], kind)


def other_cells(rng: random.Random, pool: list[Any], kind: pa.DataType | None) -> pa.Array:
    """A long batch of a few values, or a short one, sometimes as a dictionary or a slice."""
    values = rng.choices([*pool, None], k=rng.randint(1, 6))
    cells = pa.array(rng.choices(values, k=rng.choice([5, LONG])), kind)
    if rng.random() < 0.3:
        cells = cells.dictionary_encode()
    return cells[rng.randint(0, 4) :] if rng.random() < 0.5 else cells


DAY = dt.date(1970, 1, 1)
POOLS: list[tuple[list[Any], pa.DataType | None]] = [
    (["1", "1.0", " 3", "N", "", "nan", "true", "007", "1e2", "x", "1970-01-02", "-5", "1e400", "'=x"], pa.string()),
    ([True, False], pa.bool_()),
    ([0.0, -0.0, 1.5, 3.0, float("nan"), float("inf"), 1e300, 255.0, 2.0**53], pa.float64()),
    ([Decimal("3.00"), Decimal("-2.5"), Decimal("127")], pa.decimal128(9, 2)),
    ([DAY + dt.timedelta(days) for days in (0, 1, 2, -40, 60, 40_000, -60_000)], pa.date32()),
    ([DAY + dt.timedelta(days) for days in (0, 1, 2, -40, 60)], pa.date64()),
]  # fmt: skip


@pytest.mark.parametrize("kind", WHOLE, ids=str)
def test_integers_of_every_width_are_coded_as_each_alone(kind: pa.DataType) -> None:
    """Looked up or not, at the ends of their type too, where differences overflow."""
    rng = random.Random(str(kind))
    for _ in range(12):
        cells = whole_numbers(rng, kind)
        for declared in COLUMNS:
            assert encoded(declared, cells) == one_at_a_time(declared, cells)


@pytest.mark.parametrize("place", range(len(POOLS)))
def test_other_cells_are_coded_as_each_alone(place: int) -> None:
    """Texts, truth values, floats, decimals and days, also as dictionaries and slices."""
    rng = random.Random(place)
    for _ in range(12):
        cells = other_cells(rng, *POOLS[place])
        for declared in COLUMNS:
            assert encoded(declared, cells) == one_at_a_time(declared, cells)


def test_texts_that_do_not_repeat_are_coded_as_each_alone() -> None:
    """The first cells of a batch decide how it is read, and not what is read."""
    texts = [str(i % 1_700) for i in range(LONG)]
    distinct, repeated = pa.array(texts), pa.array(["3"] * 1_500 + texts)
    for declared in COLUMNS[3:8:2]:
        assert encoded(declared, distinct) == one_at_a_time(declared, distinct)
        assert encoded(declared, repeated) == one_at_a_time(declared, repeated)


@pytest.mark.parametrize("size", [1, 127, 128, 129, 255, 256, 257, 32_768, 32_769, 65_536, 65_537])
@pytest.mark.parametrize("missing", ["level", "refuse"])
def test_every_level_has_its_code_where_a_type_ends(size: int, missing: Any) -> None:
    """The last levels of the last size that a type holds, and of the next; and what comes out is the narrowest type."""
    declared = column("x", "integer", min=0, max=size - 1, missing=missing)
    cells = [*range(max(size - 600, 0), size), *([None] if missing == "level" else [])]
    codes = declared.encode(pa.array(cells, pa.int64()))
    assert codes.tolist() == [size if cell is None else cell for cell in cells]
    expected = np.uint8 if declared.size <= 256 else np.uint16 if declared.size <= 65_536 else np.int32
    assert codes.dtype == expected
    assert declared.decode(codes, np.random.default_rng(0)).to_pylist() == cells


def test_refusals_are_of_cells_and_not_of_dictionary_entries() -> None:
    """An entry that no row has is nobody's; an absent cell is refused before an unlisted one."""
    declared = column("x", "categorical", levels=["a"])
    entries = pa.array(["a", "?", None])
    harmless = pa.DictionaryArray.from_arrays(pa.array([0, 0]), entries)
    assert declared.encode(harmless).tolist() == [0, 0]
    for indices, rule in (
        ([0, 1], "other: refuse"),
        ([1, 2], "missing: refuse"),
        ([1, None], "missing: refuse"),
    ):
        with pytest.raises(DataError, match=rule):
            declared.encode(pa.DictionaryArray.from_arrays(pa.array(indices), entries))


def test_rows_that_are_moved_do_not_overflow() -> None:
    """Rows that are moved to a level past 127, against plain Python."""
    columns = (
        column("a", "integer", min=0, max=199),
        column("b", "integer", min=0, max=199),
        column("c", "integer", min=0, max=3),
    )
    schema = Schema(columns, (Zero({"a": [7], "b": {"min": 190}}, {"a": 199}),))
    rng = np.random.default_rng(3)
    rows = [(int(a), int(b), int(c)) for a, b, c in rng.integers(0, (200, 200, 4), (5_000, 3))] + [
        (7, 195, 3)
    ]
    moved = [(199 if a == 7 and b >= 190 else a, b, c) for a, b, c in rows]
    table = pa.table({name: [row[i] for row in rows] for i, name in enumerate("abc")})
    codes = schema.encode_columns(table)
    assert [declared.dtype for declared in codes] == [np.uint8] * 3
    assert list(zip(*(declared.tolist() for declared in codes), strict=True)) == moved
    assert schema.encode(table).tolist() == [list(row) for row in moved]
