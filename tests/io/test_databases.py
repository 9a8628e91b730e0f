"""Tables of DuckDB and PostgreSQL: streamed once, of one state, each cell read as that of a file, and nothing left open."""

import datetime as dt
import random
import threading
import time
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from databases import Database, Server, connected_server, duckdb_in_memory, each_engine, running_server  # noqa: F401

import dpcipher as dc
from dpcipher.errors import DataError, ParameterError, TableFileError
from dpcipher.schema import column

# The noise of one table is then 0, but with probability e**-60 in a cell.
SURE: dict[str, Any] = {"epsilon": 60.0, "unit": "add-remove"}
CANARY = "31415926535"


def counts(data: Any, schema: dc.Schema, attrs: tuple[str, ...], **options: Any) -> np.ndarray:
    """The counts of a release whose noise is as good as none."""
    return np.asarray(dc.measure(data, schema, workload=[attrs], **{**SURE, **options}).project(attrs))


ALIKE = {  # texts that a collation takes for one
    "NOCASE": ["sea", "Sea", "sEa", "seA", "SEa", "sEA", "SEA"],
    "NOACCENT": ["e", "é", "è", "ê", "ë", "ē", "ė"],
    "NFC": [f"{one}{two}{three}" for one in ("\u00e9", "e\u0301") for two in ("\u00e9", "e\u0301") for three in ("a", "\u00e4")],
}  # fmt: skip


@pytest.mark.parametrize("collation", ALIKE)
def test_a_row_counts_once_under_a_collation_that_takes_texts_for_one(duck: Database, collation: str) -> None:
    """Its texts are levels of their own, as in a file; once they were joined with the list of levels, and a row counted several times."""
    levels = [*ALIKE[collation], *(f"level {number}" for number in range(12))]
    schema = dc.Schema((column("x", "categorical", levels=levels),))
    table = duck.table({"x": f"TEXT COLLATE {collation}"}, [[text] for text in [*levels, *levels[:1] * 60]])
    assert counts(table, schema, ("x",)).tolist() == [61, *[1] * (len(levels) - 1)]


TEXTS = {
    "sex": ["F", "M", "m", None, ""],
    "age": ["5", " 17 ", "1e1", "200", "-3", "99.0", None],
    "work": ["none", "part", "full", "N", "-9", "-9.0", "?", None],
}
PEOPLE = dc.Schema((
    column("sex", "categorical", levels=["F", "M"], missing="level", other="missing"),
    column("age", "integer", min=0, max=99, bins=5, missing="level", other="nearest"),
    column("work", "ordinal", levels=["none", "part", "full"], missing_values=["N", -9], other="N", missing="level"),
))  # fmt: skip


def test_texts_are_read_as_in_a_frame(database: Database) -> None:
    """All of them at once, and at most two rows of a person."""
    rng = random.Random(1)
    ids = ["7", "007", " 7.0", "ann", "Ann", " ann", "0", "-0", "\u00a0bo"]
    rows = [[*(rng.choice(cells) for cells in TEXTS.values()), rng.choice(ids)] for _ in range(400)]
    table = database.table(dict.fromkeys([*TEXTS, "who"], "TEXT"), rows)
    frame = pd.DataFrame(rows, columns=[*TEXTS, "who"], dtype=object)
    assert counts(table, PEOPLE, PEOPLE.attrs).sum() == 400
    for options in ({}, {"person": "who", "max_rows": 2}):
        here, there = (counts(data, PEOPLE, PEOPLE.attrs, **options) for data in (frame, table))
        assert np.array_equal(here, there)
    assert database.left_open() == []


DAY, NIGHT = dt.date(2024, 1, 31), dt.datetime(2024, 1, 31, 23, 30)
TYPED: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "BOOLEAN": ([True, False, None], {"kind": "boolean"}),
    "BIGINT": ([0, 7, 2**60, -1, None], {"kind": "integer", "min": 0, "max": 9}),
    "DOUBLE PRECISION": ([0.3, 0.1 + 0.2, 1e300, float("nan"), None], {"kind": "number", "edges": [0, 0.3, 1]}),
    "NUMERIC(38, 4)": ([Decimal("0.3"), Decimal("1.5000"), None], {"kind": "categorical", "levels": ["0.3", "1.5"]}),
    "DATE": ([DAY, dt.date(2024, 12, 31), dt.date(1, 1, 1), None], {"kind": "date", "min": "2024-01-01", "max": "2024-06-30", "bins": 6}),
    "TIMESTAMP": ([NIGHT, dt.datetime(2024, 1, 31), None], {"kind": "categorical", "levels": ["2024-01-31", "2024-01-31 23:30:00"]}),
    "TIME": ([dt.time(23, 30), dt.time(0, 0, 1, 500), None], {"kind": "time", "edges": ["00:00", "12:00", "23:59"]}),
    "UUID": (["00000000-0000-0000-0000-00000000000a", None], {"kind": "categorical", "levels": ["00000000-0000-0000-0000-00000000000a"]}),
}  # fmt: skip


@pytest.mark.parametrize("kind", TYPED)
def test_types_are_read_as_in_a_frame(database: Database, kind: str) -> None:
    """Each value of a type falls where the same value of a frame does."""
    values, facts = TYPED[kind]
    schema = dc.Schema((column("x", **facts, missing="level", other="missing"),))
    rows = [value for place, value in enumerate(values) for _ in range(place + 1)]
    frame = pd.DataFrame({"x": pd.Series(rows, dtype=object)})
    here, there = (
        counts(data, schema, ("x",)) for data in (frame, database.table({"x": kind}, [[row] for row in rows]))
    )
    assert here.tolist() == there.tolist()
    assert here.sum() == len(rows)


UNUSUAL = {
    "NUMERIC": "1e70", "DATE": "infinity", "TIMESTAMP": "20000-01-01", "TIMESTAMPTZ": "-infinity", "TIME": "24:00",
    "INET": "10.0.0.1", "BYTEA": "a", "JSONB": '{"a": 1}', "INTERVAL": "1 day", "TEXT[]": "{a}", "INT4RANGE": "[1,2)",
}  # fmt: skip


def test_no_cell_of_a_server_fails_the_others(postgres: Database) -> None:
    """What Python has no value for, such as days after the year 9999, is a cell that fits no level."""
    facts: dict[str, Any] = {"levels": ["a", "b"], "other": "b", "missing": "level"}
    columns = tuple(column(f"x{place}", "categorical", **facts) for place in range(len(UNUSUAL)))
    table = postgres.table(
        {f"x{place}": kind for place, kind in enumerate(UNUSUAL)}, [list(UNUSUAL.values())]
    )
    release = dc.measure(table, dc.Schema(columns), workload=1, epsilon=60 * len(columns), unit="add-remove")
    for declared in columns:
        assert release.project((declared.name,)).tolist() == [0, 1, 0], declared.name


def test_what_is_told_of_a_day_follows_no_session(postgres: Database) -> None:
    """Days and moments are read alike under every DateStyle and time zone of the connection."""
    facts: dict[str, Any] = {"kind": "date", "min": "2024-01-01", "max": "2024-12-31"}
    schema = dc.Schema(tuple(column(name, **facts) for name in "abc"))
    table = postgres.table(
        {"a": "DATE", "b": "TIMESTAMP", "c": "TIMESTAMPTZ"},
        [["2024-01-31", "2024-01-31 23:30", "2024-01-31 23:30+00"]] * 3,
    )
    for setting in ("datestyle TO 'SQL, DMY'", "timezone TO 'Asia/Tokyo'"):
        postgres.run(f"SET {setting}")
        release = dc.measure(table, schema, workload=1, epsilon=180, unit="add-remove")
        assert [release.project((name,))[30] for name in "abc"] == [3, 3, 3]


def test_bins_and_levels_are_found_among_streamed_rows(duck: Database) -> None:
    """Rows that are held here after the one reading can be asked anything."""
    rows = [[f"word{place % 3}", place % 60] for place in range(3_000)]
    word = column("word", "categorical", levels="discover", pattern="word.", max_length=5, other="other")
    schema = dc.Schema((word, column("age", "integer", min=0, max=99, bins="auto")))
    release = dc.measure(
        duck.table({"word": "TEXT", "age": "INTEGER"}, rows),
        schema,
        epsilon=50,
        delta=1e-3,
        unit="add-remove",
    )
    assert set(release.schema.column("word").levels or ()) == {"word0", "word1", "word2", "other"}
    assert duck.left_open() == []


def test_rows_that_come_meanwhile_are_not_counted(postgres: Database, server: Server) -> None:
    """The first row waits until another session has written more: one query sees one state of the table, and there is no second."""
    schema = dc.Schema((column("x", "categorical", levels=["a", "b"]),))
    name, other = postgres.table({"x": "TEXT"}, [["a"]] * 40).get_name(), server.connect()
    postgres.run(
        f"CREATE VIEW waiting AS SELECT x FROM {name} WHERE pg_advisory_xact_lock_shared(40) IS NOT NULL"
    )
    other.run("SELECT pg_advisory_lock(40)")

    def write() -> None:
        waiting = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        for _ in range(1_000):
            if other.run(waiting).fetchall():
                break
            time.sleep(0.01)
        other.insert(name, [["b"]] * 25)
        other.run("SELECT pg_advisory_unlock(40)")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        release = dc.measure(
            postgres.connection.table("waiting"), schema, workload=1, epsilon=100, unit="replace"
        )
    finally:
        writer.join()
        other.connection.disconnect()
    assert release.statement.n_rows == 40
    assert release.project(("x",)).tolist() == [40, 0]
    assert counts(postgres.connection.table(name), schema, ("x",)).tolist() == [40, 25]
    postgres.run("DROP VIEW waiting")


STRICT = dc.Schema((column("x", "categorical", levels=["1"]),))


@pytest.mark.parametrize("use", ["measure", "check"])
def test_nothing_is_left_open_after_a_refused_row(database: Database, use: str) -> None:
    """Early among many rows, and while somebody still holds the exception: the connection takes the next query."""
    table = database.table({"x": "TEXT"}, [[CANARY]])
    database.run(f"INSERT INTO {table.get_name()} SELECT '1' FROM generate_series(1, 400000)")
    if use == "check":
        assert not STRICT.check(table).fits
    else:
        with pytest.raises(DataError) as refused:
            dc.measure(table, STRICT, workload=1, **SURE)
        assert CANARY not in str(refused.value)
    assert database.left_open() == []
    assert counts(table.filter(table.x == "1"), STRICT, ("x",)).tolist() == [400_000]


def test_nothing_is_left_open_after_a_refused_row_of_a_relation(duck: Database) -> None:
    """The same of a relation of DuckDB without ibis."""
    connection = duck.connection.con
    relation = connection.sql(f"SELECT '{CANARY}' AS x UNION ALL SELECT '1' FROM generate_series(1, 400000)")
    with pytest.raises(DataError) as refused:
        dc.measure(relation, STRICT, workload=1, **SURE)
    assert connection.sql("SELECT 42").fetchall() == [(42,)]
    assert CANARY not in str(refused.value)


def test_an_engine_that_fails_is_not_quoted(database: Database) -> None:
    """Its own message would hold the cell; afterwards the connection can be used."""
    table = database.table({"x": "TEXT"}, [["1"]] * 1_000 + [[CANARY * 40]])
    with pytest.raises(TableFileError, match="could not be read to its end") as failed:
        dc.measure(table.mutate(x=table.x.cast("int64")), STRICT, workload=1, **SURE)
    assert CANARY not in str(failed.value)
    assert failed.value.__cause__ is None
    assert database.left_open() == []
    assert counts(table.limit(1_000), STRICT, ("x",)).tolist() == [1_000]


def test_a_transaction_of_somebody_else_is_left_alone(postgres: Database) -> None:
    """We begin none inside another, and end none that is not ours."""
    table = postgres.table({"x": "TEXT"}, [["1"]] * 3)
    postgres.run("BEGIN")
    with pytest.raises(ParameterError, match="inside a transaction"):
        dc.measure(table, STRICT, workload=1, **SURE)
    assert postgres.connection.con.info.transaction_status == 2
    postgres.run("ROLLBACK")
    assert counts(table, STRICT, ("x",)).tolist() == [3]


def test_what_is_no_table_of_one_of_them_is_refused(duck: Database, tmp_path: Any) -> None:
    """By name, with the way out; rows of this process alone are an Arrow stream."""
    import ibis

    ours = ibis.memtable(pa.table({"x": ["1", "1"]}))
    assert counts(ours, STRICT, ("x",)).tolist() == [2]
    with pytest.raises(ParameterError, match="memtable"):
        dc.measure(duck.table({"x": "TEXT"}, []).semi_join(ours, "x"), STRICT, workload=1, **SURE)
    lite = ibis.sqlite.connect(tmp_path / "people.sqlite")
    lite.raw_sql("CREATE TABLE t (x TEXT)")
    with pytest.raises(TableFileError, match="must be on DuckDB or PostgreSQL"):
        dc.measure(lite.table("t"), STRICT, workload=1, **SURE)
    lite.disconnect()
