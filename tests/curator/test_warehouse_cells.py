"""What SQL makes of a cell is what files make of it: every kind of column, every type that people have, cell by cell."""

import datetime as dt
import math
import random
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from warehouses import Warehouse, duckdb_at_hand, each_engine, postgres_at_hand, running_server  # noqa: F401

from dpcipher.curator.count import receive
from dpcipher.curator.warehouse.engines import engine_of
from dpcipher.curator.warehouse.marks import refusals
from dpcipher.curator.warehouse.queries import Query
from dpcipher.curator.warehouse.stages import PROBE, code_steps
from dpcipher.errors import ParameterError
from dpcipher.schema import Column, Schema

MISSES: dict[str, Any] = {"missing": "level", "other": "missing"}
COLUMNS = (
    Column("texts", "categorical", levels=["a", "b", "=x", "'=x", "é", "null"], **MISSES),
    Column("digits", "categorical", levels=["01", "1", "2", "N", "1e5", "inf", "nan", "true"], other="N", missing="level"),
    Column("long", "categorical", levels=["a", "it's", "\\", "01", "1", "=x", "2024-01-31", *(f"level {n}" for n in range(30))], **MISSES),
    Column("whole", "categorical", levels=[1, 2, 30, -1], **MISSES),
    Column("halves", "ordinal", levels=[0.5, 1.5, 0.1], **MISSES),
    Column("truth", "boolean", **MISSES),
    Column("ages", "integer", min=0, max=9, **MISSES),
    Column("binned", "integer", min=-5, max=120, bins=7, other="nearest", missing="level", special=[99], missing_values=["N", -9]),
    Column("amount", "number", edges=[-1.5, 0, 0.1, 0.3, 1, 1e5, 1e299], other="nearest", missing="level", special=[0.25]),
    Column("strict", "number", min=0, max=1, bins=10, **MISSES),
    Column("many", "number", edges=[n / 4 for n in range(-8, 60)], other="nearest", missing="level"),
    Column("wholes", "categorical", levels=[*range(-5, 40), 99.5], **MISSES),
    Column("weeks", "date", min="2023-12-25", max="2024-12-31", bins=53, **MISSES),
    Column("days", "date", min="2023-12-25", max="2024-03-05", missing_values=["9999-12-31"], **MISSES),
    Column("months", "date", edges=["2000-01-01", "2024-01-31", "2024-02-29", "2025-01-01"], other="nearest", missing="level"),
    Column("clock", "time", edges=["00:00", "08:30", "12:00", "23:59:59"], **MISSES),
    Column("seconds", "time", min="08:30:00", max="08:31:00", other="nearest", missing="level"),
    Column("kinds", "categorical", levels=["a", "03", "2024-01-31"], missing_values=["NA", 2, "x"], other="a"),
)  # fmt: skip
TEXTS = ("it's", "level 7", "level 07", "a", "A", " a", "a ", "b", "=x", "'=x", "''=x", "é", "e\u0301", "null", "NULL", "N", "n", "NA", "na", "x", "X", "'", "\\", "\\n", "%s", "$1",
         "", " ", "nan", "NaN", "NAN", "Nan", "-nan", " nan", "inf", "-inf", "+inf", "Infinity", " INFINITY ", "infinit", "true", "TRUE", " True ",
         "t", "T", "yes", "YES", "y", "no", "n", "f", "False", "on", "off", "0", "00", "1", "01", "001", " 1 ", "\t1\n", "1\n", "1.0", "1.", ".5", "0.5",
         "5e-1", "50e-2", "+1", "-1", "--1", "+-1", "1e0", "1E0", "1e+0", "1e5", "1e05", "100000", "1e", "e1", "1_0", "1,5", "0x1", "0b1", "1d", "1f",
         "١", "１", "1 1", "-0", "-0.0", "30", "3e1", "2", "02", "2.0", "99", "99.0", "-9", "-9.0", "0.25", "0.1", "0.10", "0.30000000000000004", "0.3",
         "0.29999999999999999", "1e300", "1e301", "1e308", "1e309", "1e999", "-1e999", "1e-400", "1e99999", "-1e99999", "1e-99999", "0e99999", "1e0000001",
         "9" * 30, "9" * 310, "0" * 100 + "1", "0." + "0" * 320 + "1", "1" + "0" * 308, "9007199254740993", "9223372036854775808", "-9223372036854775809",
         "\u00a01", "1\u3000", "\u200b1", "\x1f1", "\u2028" "1", "2024-01-31", "2024-02-29", "2023-02-29", "2024-02-30", "2024-03-05", "2024-03-06",
         "1900-02-29", "2000-02-29", "2000-01-01", "1999-12-31", "2100-02-29", "0000-01-01", "0000-02-29", "0001-01-01", "9999-12-31", "10000-01-01",
         "2024-1-31", "24-01-31", "2024-13-01", "2024-00-01", "2024-01-00", "2024-01-32", "2024-04-31", "2024-01-31T00:00", "2024-01-31 junk",
         "2024-01-31\n", "2024-01-31T\nx", " 2024-01-31", "2024-01-31 ", "2024-01-31x", "20240131", "31.01.2024", "today", "infinity", "epoch", "now",
         "08:30", "8:30", "08:30:15", "08:30:59.999", "08:31", "08:29:59", "24:00", "24:00:00", "23:59:59", "23:59:60", "00:00", "0:0", "08:60", "8", "12",
         " 08:30 ", "\t08:30\n", "2024-01-31 08:30", "2024-01-31T08:30:30", "08:30 PM", "08:30+01", "allballs", None)  # fmt: skip


def codes_there(table: Any, schema: Schema) -> np.ndarray:
    """The code of every cell as the engine has it, or its mark where it is refused."""
    engine = engine_of(table)
    steps = tuple((name, engine.sql(step)) for name, step in code_steps(table, schema, None, engine.reader))
    parts = tuple(f"SELECT {place}, probe, m{place} FROM codes" for place in range(len(schema.columns)))
    column, row, code = engine.ask(Query(steps, parts))
    codes = np.full((row.max() + 1, len(schema.columns)), -99)
    codes[row, column] = code
    return codes


def codes_here(cells: pa.Array, schema: Schema) -> np.ndarray:
    """The same as files have it."""
    columns = []
    for column in schema.columns:
        absent, unlisted, codes = column.judged(cells)
        marks = refusals(column)
        columns.append(np.where(absent, marks[0], np.where(unlisted, marks[1], codes)))
    return np.stack(columns, axis=1)


def assert_same_codes(
    warehouse: Warehouse, kind: str, cells: list[Any], arrow: pa.Array, columns: tuple[Column, ...] = COLUMNS
) -> None:
    """Every cell has one code, here and there, in every column."""
    schema = Schema(columns)
    rows = [[place, *[cell] * len(columns)] for place, cell in enumerate(cells)]
    table = warehouse.table({PROBE: "BIGINT", **{column.name: kind for column in columns}}, rows)
    receive(table, schema)  # the engine passes the test of public cells
    here, there = codes_here(arrow, schema), codes_there(table, schema)
    wrong = [
        (columns[c].name, cells[r], int(here[r, c]), int(there[r, c]))
        for r, c in zip(*np.nonzero(here != there), strict=True)
    ]
    assert not wrong


def test_texts(warehouse: Warehouse) -> None:
    """Two hundred texts that engines read each in their own way."""
    assert_same_codes(warehouse, "TEXT", list(TEXTS), pa.array(TEXTS))


def test_texts_put_together_at_random(warehouse: Warehouse) -> None:
    """A thousand texts of the pieces that numbers, dates and times are made of."""
    rng = random.Random(7)
    pieces = [
        "0",
        "1",
        "2",
        "9",
        "00",
        ".",
        "-",
        "+",
        "e",
        "E5",
        "e-",
        ":",
        "08:30",
        "2024-",
        "02-",
        "29",
        " ",
        "\t",
        "\u00a0",
        "T",
        "nan",
        "inf",
        "N",
        "a",
        "'",
    ]
    texts = sorted({"".join(rng.choices(pieces, k=rng.randint(1, 5))) for _ in range(1_000)})
    assert_same_codes(warehouse, "TEXT", texts, pa.array(texts))


NUMBERS: dict[str, tuple[list[Any], pa.DataType]] = {
    "DOUBLE PRECISION": ([0.0, -0.0, 0.1, 0.25, 0.3, 0.30000000000000004, 0.5, 1.0, 1.5, 2.0, 30.0, -1.0, -1.5, -9.0, 99.0, 120.0, 121.0, 1e5, 1e300, 1.1e300,
                          -1e308, 5e-324, 2.0**53, 2.0**63, 1e19, math.inf, -math.inf, math.nan, None], pa.float64()),
    "REAL": ([0.0, 0.5, 1.0, 1.5, 0.25, 0.10000000149011612, 99.0, -9.0, 2.0**24, math.inf, -math.inf, math.nan, None], pa.float32()),
    "BIGINT": ([0, 1, 2, 30, -1, 9, 10, -9, 99, 120, 121, -5, -6, 100_000, 2**53 + 1, 2**63 - 1, -(2**63), None], pa.int64()),
    "SMALLINT": ([0, 1, 2, 30, -1, 9, 99, -9, 120, 32767, -32768, None], pa.int16()),
    "NUMERIC(20, 5)": ([Decimal(text) for text in ("0", "1", "1.00000", "2", "30", "-1", "0.1", "0.10000", "0.25", "0.3", "0.5", "1.5", "99", "-9", "120",
                        "121", "100000", "-0.00001", "999999999999999.99999")] + [None], pa.decimal128(20, 5)),
    "BOOLEAN": ([True, False, None], pa.bool_()),
    "DATE": ([dt.date(2024, 1, 31), dt.date(2024, 2, 29), dt.date(2023, 12, 25), dt.date(2024, 3, 5), dt.date(2024, 3, 6), dt.date(1, 1, 1),
              dt.date(9999, 12, 31), dt.date(1970, 1, 1), dt.date(1969, 12, 31), dt.date(2000, 1, 1), dt.date(1999, 12, 31), None], pa.date32()),
    "TIMESTAMP": ([dt.datetime(2024, 1, 31), dt.datetime(2024, 1, 31, 8, 30), dt.datetime(2024, 2, 29, 23, 59, 59, 999_999), dt.datetime(2023, 12, 24, 12),
                   dt.datetime(2024, 3, 5, 8, 30, 30, 500_000), dt.datetime(1969, 12, 31, 23, 59, 59), dt.datetime(9999, 12, 31), None], pa.timestamp("us")),
    "TIMESTAMP WITH TIME ZONE": ([dt.datetime(2024, 1, 31, tzinfo=dt.UTC), dt.datetime(2024, 1, 31, 8, 30, tzinfo=dt.UTC),
                   dt.datetime(2024, 3, 1, 0, 30, tzinfo=dt.timezone(dt.timedelta(hours=1))), None], pa.timestamp("us", "UTC")),
    "TIME": ([dt.time(8, 30), dt.time(8, 30, 30, 250_000), dt.time(0), dt.time(23, 59, 59, 999_999), dt.time(12), None], pa.time64("us")),
}  # fmt: skip


@pytest.mark.parametrize("kind", NUMBERS)
def test_typed_cells(warehouse: Warehouse, kind: str) -> None:
    """Numbers, truth values, dates and times, in the types of the engine."""
    cells, arrow = NUMBERS[kind]
    assert_same_codes(warehouse, kind, cells, pa.array(cells, arrow))


def test_uuids(warehouse: Warehouse) -> None:
    """A UUID is its text."""
    ids = [uuid.UUID(int=7), uuid.UUID(int=2**127 + 1), None]
    column = Column("who", "categorical", levels=[str(ids[0])], **MISSES)
    assert_same_codes(
        warehouse,
        "UUID",
        [None if one is None else str(one) for one in ids],
        pa.array([None if one is None else str(one) for one in ids]),
        (column,),
    )


def test_types_of_duckdb_alone(duck: Warehouse) -> None:
    """Enumerations, unsigned and huge integers."""
    duck.run("CREATE TYPE mood AS ENUM ('a', 'N', '01')")
    assert_same_codes(duck, "mood", ["a", "N", "01", None], pa.array(["a", "N", "01", None]))
    assert_same_codes(
        duck, "UBIGINT", [0, 1, 2**64 - 1, None], pa.array([0, 1, 2**64 - 1, None], pa.uint64())
    )
    huge = [0, 1, 10**30, -(10**30), None]
    assert_same_codes(
        duck,
        "HUGEINT",
        huge,
        pa.array([None if n is None else Decimal(n) for n in huge], pa.decimal128(38, 0)),
    )


def test_types_of_postgres_alone(postgres: Warehouse) -> None:
    """Enumerations, padded texts, decimals without bounds; and what only PostgreSQL's types hold."""
    postgres.run("CREATE TYPE mood AS ENUM ('a', 'N', '01')")
    assert_same_codes(postgres, "mood", ["a", "N", "01", None], pa.array(["a", "N", "01", None]))
    assert_same_codes(postgres, "CHAR(4)", ["a", "N", "01", None], pa.array(["a", "N", "01", None]))
    numbers = ["0", "1", "1.50", "0.1", "1e200", "1e400", "-1e400", "1e-400", "NaN", None]
    here = pa.array([0.0, 1.0, 1.5, 0.1, 1e200, math.inf, -math.inf, 0.0, math.nan, None])
    assert_same_codes(postgres, "NUMERIC", numbers, here, tuple(c for c in COLUMNS if c.name != "digits"))
    days = ["infinity", "-infinity", "0044-03-15 BC", "2024-01-31"]
    ends = pa.array([10**6 * 4, -(10**6), -735_000, 19_753], pa.int32()).cast(pa.date32())
    assert_same_codes(postgres, "DATE", days, ends)
    postgres.run("SET timezone = 'Asia/Tokyo'")  # of the session, and not of the column
    cells, arrow = NUMBERS["TIMESTAMP WITH TIME ZONE"]
    assert_same_codes(postgres, "TIMESTAMP WITH TIME ZONE", cells, pa.array(cells, arrow))


@pytest.mark.parametrize("kind", ["INTERVAL", "BYTEA", "JSON", "INTEGER[]"])
def test_other_types_are_refused_by_name(warehouse: Warehouse, kind: str) -> None:
    """What cannot be read is named with the way out, before anything is asked."""
    table = warehouse.table({"x": "BLOB" if (warehouse.name, kind) == ("duckdb", "BYTEA") else kind}, [])
    with pytest.raises(ParameterError, match=r"column 'x' is of type .* cast it"):
        receive(table, Schema((Column("x", "categorical", levels=["a"]),)))
