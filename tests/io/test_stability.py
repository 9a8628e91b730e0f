"""Stability: the code of a row depends on that row and the schema alone, whatever holds the rows."""

import datetime as dt
import random
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from brute_cells import code_of

from dpcipher.curator.counts import receive
from dpcipher.io.source import open_table
from dpcipher.schema import Column, Schema, column

TABLES = 2_000  # random tables in all, over the kinds of input below
ROWS = 5

COLUMNS = (
    column("x", "categorical", levels=["1", "2", "N"], other="N", missing="level"),
    column(
        "x", "categorical", levels=["01", "2.50", "true", "2024-01-31", ""], other="true", missing="level"
    ),
    column("x", "categorical", levels=["yes", "1", "true"], other="missing", missing="level"),
    column("x", "categorical", levels=["=1", "-", "'@", "-1", "1"], other="missing", missing="level"),
    column("x", "ordinal", levels=[3, 1, 0], other=3, missing="level"),
    column("x", "ordinal", levels=[0.5, 2.5, 1.0], other="missing", missing="level"),
    column("x", "boolean", missing="level", other="missing"),
    column("x", "integer", min=-3, max=9, bins=4, missing="level", other="missing"),
    column("x", "number", edges=[-1.5, 0.0, 0.3, 2.5], missing="level", other="missing"),
    column("x", "categorical", levels=["1", "2"], missing_values=["N", "-", 7], other="-", missing="level"),
    column("x", "ordinal", levels=[1, 0], missing_values=[3, -3], other=3, missing="level"),
    column("x", "boolean", missing_values=["NA", 7], missing="level", other="missing"),
    column("x", "integer", min=-9, max=9, missing_values=[-3, "N"], missing="level", other="N"),
    column("x", "number", edges=[-1.5, 0.0, 2.5], missing_values=[-1.5, 1], missing="level", other="missing"),
    column(
        "x",
        "date",
        min="2024-01-01",
        max="2024-12-31",
        missing_values=["2024-01-31", 7],
        missing="level",
        other=7,
    ),
    column("x", "date", min="2024-01-01", max="2024-12-31", bins=6, missing="level", other="missing"),
)
DAYS = [dt.date(2024, 1, 31), dt.date(2024, 12, 31), dt.date(2023, 2, 28)]
FAMILIES: dict[str, list[Any]] = {
    "whole": [1, 2, 3, 0, 7, -3, None],
    "real": [0.5, 2.5, 1.0, 0.25, -1.5, None],
    "truth": [True, False, None],
    "text": [
        "1",
        "01",
        "N",
        "1.0",
        " 2",
        "true",
        "True",
        "",
        "nan",
        "2.50",
        "yes",
        "NA",
        "2024-01-31",
        "2024-02-30",
        "'=1",
        "'-",
        "''@",
        "'-1",
        None,
    ],
    "day": [*DAYS, None],
    "moment": [
        dt.datetime(2024, 1, 31),
        dt.datetime(2024, 1, 31, 23, 30),
        dt.datetime(2024, 1, 31, 0, 0, 0, 500),
        None,
    ],
}
ODD = ["\ud800", b"N", b"1", 10**30, Decimal("1.00"), Decimal("0.30"), Decimal("NaN"), np.int8(2), np.float32(1),
       np.bool_(True), np.datetime64("2024-01-31"), float("nan"), float("inf"), pd.NA, pd.NaT, [1], {"a": 1}, 1j, uuid4(),
       pd.Period("2024-01"), pd.Timestamp("2024-01-31 23:30", tz="America/New_York"), pd.Timestamp("2024-01-31 01:30", tz="UTC")]  # fmt: skip
ARROW: dict[str, list[tuple[pa.DataType, Callable[[Any], Any]]]] = {
    "whole": [
        *((kind, int) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())),
        *((kind, float) for kind in (pa.float32(), pa.float64())),
        *((pa.decimal128(12, scale), Decimal) for scale in (0, 2, 5)),
        *((kind, str) for kind in (pa.string(), pa.large_string(), pa.string_view())),
        (pa.binary(), lambda value: str(value).encode()),
    ],
    "real": [
        (pa.float32(), float),
        (pa.float64(), float),
        (pa.decimal128(12, 2), lambda value: Decimal(str(value))),
        (pa.decimal128(38, 7), lambda value: Decimal(str(value))),
        (pa.string(), repr),
    ],
    "truth": [(pa.bool_(), bool)],
    "text": [(kind, str) for kind in (pa.string(), pa.large_string(), pa.string_view())],
    "day": [(pa.date32(), lambda day: day), (pa.date64(), lambda day: day), (pa.string(), dt.date.isoformat)],
    "moment": [(pa.timestamp(unit), lambda moment: moment) for unit in ("us", "ns")],
}


def arrow_cells(family: str, values: list[Any], rng: random.Random) -> pa.Array:
    """The values under one of the types that can hold them, sometimes as a dictionary."""
    kind, convert = rng.choice(ARROW[family])
    cells = pa.array([None if value is None else convert(value) for value in values], kind)
    plain = kind not in (pa.string_view(), pa.large_string(), pa.date64())
    return cells.dictionary_encode() if plain and rng.random() < 0.3 else cells


def arrow(family: str, values: list[Any], rng: random.Random, folder: Path) -> pa.Table:
    """A pyarrow table."""
    return pa.table({"x": arrow_cells(family, values, rng)})


def objects(family: str, values: list[Any], rng: random.Random, folder: Path) -> pd.DataFrame:
    """A pandas frame of Python objects."""
    return pd.DataFrame({"x": pd.Series(values, dtype=object)})


def inferred(family: str, values: list[Any], rng: random.Random, folder: Path) -> pd.DataFrame:
    """A pandas frame of whatever type pandas takes for the values."""
    return pd.DataFrame({"x": values})


def nullable(family: str, values: list[Any], rng: random.Random, folder: Path) -> pd.DataFrame:
    """A pandas frame of nullable types."""
    return pd.DataFrame({"x": values}).convert_dtypes()


def categorical(family: str, values: list[Any], rng: random.Random, folder: Path) -> pd.DataFrame:
    """A pandas frame of categories, in the order in which they come."""
    entries = list(dict.fromkeys(value for value in values if value is not None and value == value))
    return pd.DataFrame({"x": pd.Series(pd.Categorical(values, categories=pd.Index(entries, dtype=object)))})


def arrow_backed(family: str, values: list[Any], rng: random.Random, folder: Path) -> pd.DataFrame:
    """A pandas frame whose columns are Arrow's."""
    cells = arrow_cells(family, values, rng)
    return pd.DataFrame({"x": pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([cells])))})


def polars(family: str, values: list[Any], rng: random.Random, folder: Path) -> Any:
    """A polars frame."""
    return pytest.importorskip("polars").from_arrow(arrow(family, values, rng, folder))


def duckdb(family: str, values: list[Any], rng: random.Random, folder: Path) -> Any:
    """A DuckDB relation."""
    table = arrow(family, values, rng, folder)
    plain = table.cast(pa.schema({"x": pa.string()})) if table["x"].type == pa.string_view() else table
    return pytest.importorskip("duckdb").from_arrow(plain)


def csv(family: str, values: list[Any], rng: random.Random, folder: Path) -> Path:
    """A CSV file by pandas; its cells are texts."""
    path = folder / f"{rng.getrandbits(60)}.csv"
    pd.DataFrame({"x": pd.Series(values, dtype=object), "last": 0}).to_csv(path, index=False)
    return path


def parquet(family: str, values: list[Any], rng: random.Random, folder: Path) -> str:
    """Several Parquet files, each of a type of its own."""
    name = rng.getrandbits(60)
    for i, start in enumerate(range(0, max(len(values), 1), 2)):
        cells = arrow_cells(family, values[start : start + 2], rng)
        if cells.type == pa.string_view():
            cells = cells.cast(pa.string())
        pq.write_table(pa.table({"x": cells}), folder / f"{name}-{i}.parquet")
    return str(folder / f"{name}-*.parquet")


FORMS = {
    f.__name__: f
    for f in (arrow, objects, inferred, nullable, categorical, arrow_backed, polars, duckdb, csv, parquet)
}
MIXTURES = {  # forms whose columns hold values of several types; for pandas, True and 1 are one category
    "objects": [value for values in FAMILIES.values() for value in values],
    "categorical": [value for family in FAMILIES if family != "truth" for value in FAMILIES[family]],
}


def codes(data: Any, column: Column) -> list[int]:
    """The codes of a table of one column."""
    schema = Schema((column,))
    return [int(code) for batch in open_table(data).batches(["x"]) for code in schema.encode(batch)[:, 0]]


def in_file(value: Any) -> Any:
    """What a cell is once it has been written as text."""
    if value is None or value != value:
        return ""
    return str(value)


@pytest.mark.parametrize("form", FORMS)
def test_coding_a_table_is_coding_each_row_alone(form: str, tmp_path: Path) -> None:
    """In any order and in any batches: 2,000 random tables over all kinds of input, against rules written out in plain Python."""
    make, rng = FORMS[form], random.Random(form)
    for _ in range(TABLES // len(FORMS)):
        column, family = rng.choice(COLUMNS), rng.choice(list(FAMILIES))
        pool = MIXTURES.get(form, FAMILIES[family])
        values = rng.choices(pool, k=rng.randint(1, ROWS))
        cells = [in_file(value) for value in values] if form == "csv" else values
        expected = [code_of(column, value) for value in cells]
        assert codes(make(family, values, rng, tmp_path), column) == expected, (column, values)
        assert [codes(make(family, [value], rng, tmp_path), column)[0] for value in values] == expected
        order = rng.sample(range(len(values)), len(values))
        shuffled = codes(make(family, [values[i] for i in order], rng, tmp_path), column)
        assert shuffled == [expected[i] for i in order]
        cut = rng.randint(0, len(values))
        parts = [
            codes(make(family, part, rng, tmp_path), column) for part in (values[:cut], values[cut:]) if part
        ]
        assert [code for part in parts for code in part] == expected


def test_whatever_an_object_column_holds_each_cell_is_read_by_itself() -> None:
    """Mixtures of everything that people have in one column, and things that fit no level: 300 columns of them."""
    rng = random.Random(9)
    pool = [*ODD, *(value for values in FAMILIES.values() for value in values)]
    for _ in range(300):
        column, values = rng.choice(COLUMNS), rng.choices(pool, k=8)
        together = codes(objects("", values, rng, Path()), column)
        assert together == [codes(objects("", [value], rng, Path()), column)[0] for value in values]
        plain = [i for i, value in enumerate(values) if not any(value is odd for odd in ODD)]
        assert [together[i] for i in plain] == [code_of(column, values[i]) for i in plain]


def test_odd_cells_are_read_for_what_they_are() -> None:
    """By hand: what is missing, what is a level, and what fits none and follows `other`."""
    one, levels = COLUMNS[0], {"1": 0, "2": 1, "other": 2, "missing": 3}
    expected = ["other", "other", "1", "other", "1", "other", "missing", "2", "1",
                "1", "other", "missing", "other", "missing", "missing", "other", "other", "other", "other",
                "other", "other", "other"]  # fmt: skip
    assert codes(objects("", ODD, random.Random(), Path()), one) == [levels[word] for word in expected]
    day = COLUMNS[-1]
    moments = [
        pd.Timestamp("2024-01-31 23:30", tz="America/New_York"),
        pd.Timestamp("2024-04-01 01:30", tz="UTC"),
    ]
    assert codes(pd.DataFrame({"x": pd.Series(moments, dtype=object)}), day) == [0, 1]


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore")
def test_spark_codes_each_row_alone(spark: Any) -> None:
    """Partitions are batches: every family of values under every type that Spark can be given."""
    rng = random.Random(5)
    columns = [replace(declared, name=f"x{place}") for place, declared in enumerate(COLUMNS)]
    for family in FAMILIES:
        values = FAMILIES[family] * 2
        cells = arrow_cells(family, values, rng)
        while pa.types.is_dictionary(cells.type) or cells.type in (pa.string_view(), pa.date64()):
            cells = arrow_cells(family, values, rng)
        frame = spark.createDataFrame(pa.table({declared.name: cells for declared in columns})).repartition(3)
        tally = receive(frame, Schema(tuple(columns))).tally([(axis,) for axis in range(len(columns))])
        for declared, counts in zip(COLUMNS, tally.tables, strict=True):
            expected = np.bincount([code_of(declared, value) for value in values], minlength=declared.size)
            assert counts.tolist() == expected.tolist(), (family, declared)


def test_bytes_that_are_no_text_harm_no_other_cell() -> None:
    """A column of bytes, as old Parquet writers leave texts, with one cell that is no UTF-8."""
    cells = pa.array([b"1", b"\xff", b"N", None], pa.binary())
    assert codes(pa.table({"x": cells}), COLUMNS[0]) == [0, 2, 2, 3]
    assert codes(pa.table({"x": cells.dictionary_encode()}), COLUMNS[0]) == [0, 2, 2, 3]


def test_a_duration_of_numpy_harms_no_other_cell() -> None:
    """To Python it is a whole number by its class, and cannot be turned into one: it fits no level, and one that is no time is missing."""
    cells = ["1", np.timedelta64(5, "s"), 2, np.timedelta64("NaT"), np.timedelta64(3)]
    assert codes(pd.DataFrame({"x": pd.Series(cells, dtype=object)}), COLUMNS[0]) == [0, 2, 1, 3, 2]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_text_that_is_no_utf8_harms_no_other_cell(kind) -> None:
    """A damaged Parquet file calls text what is none, and Arrow reads it unchecked; one such cell must not fail the batch."""
    raw = pa.array([b"1", b"\xff", b"N", None], pa.binary() if kind == pa.string() else pa.large_binary())
    cells = pa.Array.from_buffers(kind, len(raw), raw.buffers())
    assert codes(pa.table({"x": cells}), COLUMNS[0]) == [0, 2, 2, 3]
    for declared in COLUMNS:
        assert codes(pa.table({"x": cells}), declared)[0] == codes(pa.table({"x": cells[:1]}), declared)[0]
