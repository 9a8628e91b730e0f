"""What a server sees and allows: nothing private in its log, and no right beyond reading."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from warehouses import Server, Warehouse, postgres_at_hand, running_server  # noqa: F401

from conftest import missing
from dpcipher.curator.count import open_counts, receive
from dpcipher.curator.measure import measure
from dpcipher.curator.request import Person
from dpcipher.errors import DpcipherError, ParameterError, TableFileError
from dpcipher.privacy.ledger import Ledger
from dpcipher.schema import Column, Schema

KINDS: dict[str, dict[str, Any]] = {
    "word": {"kind": "categorical", "levels": ["a", "1"]},
    "whole": {"kind": "integer", "min": 0, "max": 9},
    "amount": {"kind": "number", "edges": [0, 1, 10]},
    "day": {"kind": "date", "min": "2024-01-01", "max": "2024-12-31", "bins": 4},
    "clock": {"kind": "time", "edges": ["00:00", "12:00", "23:59"]},
    "truth": {"kind": "boolean"},
}
ALL = Schema(
    tuple(Column(name, **facts, missing="level", other="missing") for name, facts in KINDS.items())  # type: ignore[arg-type]
)
# Cells that a careless cast would stumble over, each with a word that is found again.
CANARIES = ("314159265358", "1e31415926", "9" * 350 + "31415926535", "31415926535e400", "2024-02-30T31415926535", "2024-13-31 31415926535", "25:31:41 5926535", "31415926535 zebra", "-31415926535e-999", "'31415926535")  # fmt: skip


def rows() -> list[list[str]]:
    """Every canary in every column."""
    return [[canary] * len(KINDS) + [f"zebra{number}"] for number, canary in enumerate(CANARIES)]


@pytest.fixture
def table(postgres: Warehouse) -> Any:
    """All texts, with canaries in every cell."""
    return postgres.table({**dict.fromkeys(KINDS, "TEXT"), "who": "TEXT"}, rows())


def written(log: Path, start: int) -> str:
    """What the server wrote since, without the statements and parameters of our own set-up."""
    return log.read_text()[start:]


def test_no_cell_stands_in_the_log(postgres: Warehouse, table: Any, tmp_path: Path) -> None:
    """With every statement and every error logged, releases of all kinds leave no cell, no error and no number of rows in it."""
    assert postgres.log is not None
    start = len(postgres.log.read_text())
    for options in ({"workload": 2}, {"workload": "auto"}, {"workload": 1, "person": "who", "max_rows": 2}):
        path = tmp_path / f"{len(options)}{options['workload']}.ledger"
        release = measure(table, ALL, epsilon=1, unit="add-remove", ledger=path, create=True, **options)  # type: ignore[arg-type]
        assert release.statement.status == "certified"
    said = written(postgres.log, start)
    assert said.count("REPEATABLE READ READ ONLY") >= 3
    assert not re.findall(r"31415|zebra|ERROR|FATAL", said)
    strict = Schema(tuple(Column(name, **facts) for name, facts in KINDS.items()))  # type: ignore[arg-type]
    with pytest.raises(DpcipherError, match="refused") as refused:
        measure(table, strict, epsilon=1, unit="add-remove")
    assert not re.findall(r"31415|zebra", str(refused.value))
    assert not re.findall(r"31415|zebra|ERROR|FATAL", written(postgres.log, start))


def test_the_log_would_have_told(postgres: Warehouse, table: Any) -> None:
    """The same cells under a plain cast are in the log: the test above looks where such things stand."""
    assert postgres.log is not None
    start = len(postgres.log.read_text())
    with pytest.raises(Exception, match=r"invalid input|out of range"):
        postgres.run(f"SELECT CAST(whole AS DOUBLE PRECISION) FROM {table.get_name()}")
    assert "zebra" in written(postgres.log, start) or "31415" in written(postgres.log, start)


def test_a_role_that_may_only_read(postgres: Warehouse, server: Server, table: Any, tmp_path: Path) -> None:
    """No right to write, to create, or to make temporary tables; every transaction read-only by default."""
    for statement in (
        "DROP ROLE IF EXISTS reader",
        "CREATE ROLE reader LOGIN",
        "REVOKE TEMPORARY, CREATE ON DATABASE postgres FROM PUBLIC",
        "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
        "ALTER ROLE reader SET default_transaction_read_only = on",
        f"GRANT SELECT ON {table.get_name()} TO reader",
    ):
        postgres.run(statement)
    connection = server.connect("reader")
    try:
        with pytest.raises(Exception, match=r"read-only|permission denied"):
            connection.con.execute("CREATE TEMP TABLE mine (a int)")
        for number, workload in enumerate([2, "auto"]):
            release = measure(
                connection.table(table.get_name()), ALL, workload=workload, epsilon=1, unit="replace",
                ledger=tmp_path / f"{number}.ledger", create=True,
            )  # fmt: skip
            assert release.statement.n_rows == len(CANARIES)
        person = Person("who", 1)
        assert receive(connection.table(table.get_name()), ALL, person).tally([(0,)]).n_rows == len(CANARIES)
    finally:
        connection.disconnect()
        postgres.run(f"REVOKE ALL ON {table.get_name()} FROM reader")
        postgres.run("DROP ROLE reader")


def test_a_connection_in_a_transaction_is_left_alone(postgres: Warehouse, table: Any) -> None:
    """We begin no transaction inside another, and end none that is not ours."""
    postgres.run("BEGIN")
    with pytest.raises(ParameterError, match="inside a transaction"):
        receive(table, ALL)
    assert postgres.connection.con.info.transaction_status == 2
    postgres.run("ROLLBACK")
    assert receive(table, ALL).tally([(0,)]).n_rows == len(CANARIES)


def test_a_connection_that_breaks_after_the_charge(
    postgres: Warehouse, server: Server, table: Any, tmp_path: Path
) -> None:
    """The charge stands, the error is ours, and what the server said is not in it."""
    book = Ledger.create(tmp_path / "people.ledger", epsilon=2, unit="add-remove")
    connection = server.connect()
    truth = open_counts(receive(connection.table(table.get_name()), ALL), ALL)
    number = connection.con.info.backend_pid
    postgres.run(f"SELECT pg_terminate_backend({number})")
    assert np.array_equal(
        truth.counts((0, 1)), receive(table, ALL).tally([(0, 1)]).tables[0]
    )  # counted before
    with pytest.raises(TableFileError, match="could not be counted") as broken:
        truth.counts((0, 1, 2))
    assert broken.value.__cause__ is None
    assert not book.entries
    truth.close()
    connection.disconnect()


def test_collations_that_take_texts_for_one(postgres: Warehouse) -> None:
    """A column in which a equals A is refused."""
    if not postgres.run("SELECT 1 FROM pg_collation WHERE collprovider = 'i' LIMIT 1").fetchall():
        missing("icu", "this PostgreSQL was built without ICU")
    postgres.run(
        "CREATE COLLATION caseless (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
    )
    schema = Schema((Column("x", "categorical", levels=["a"], other="a", missing="level"),))
    with pytest.raises(DpcipherError, match=r"collation|could not be counted"):
        receive(postgres.table({"x": "TEXT COLLATE caseless"}, [["A"]]), schema)
