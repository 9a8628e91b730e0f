"""Engines to test with: DuckDB in this process, and a PostgreSQL server of our own in a temporary folder."""

import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from conftest import missing

BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
ROWS_A_STATEMENT = 500


@dataclass
class Database:
    """An ibis connection, and how tables come into it."""

    connection: Any
    name: str

    def table(self, types: Mapping[str, str], rows: Sequence[Sequence[Any]]) -> Any:
        """An ibis table of these columns, each of a type of the engine, and of these rows."""
        name = f"t{secrets.token_hex(6)}"
        columns = ", ".join(f'"{column}" {kind}' for column, kind in types.items())
        self.run(f"CREATE TABLE {name} ({columns})")
        self.insert(name, rows)
        return self.connection.table(name)

    def insert(self, name: str, rows: Sequence[Sequence[Any]]) -> None:
        """More rows."""
        mark = "?" if self.name == "duckdb" else "%s"
        for start in range(0, len(rows), ROWS_A_STATEMENT):
            some = rows[start : start + ROWS_A_STATEMENT]
            places = ", ".join("(" + ", ".join([mark] * len(row)) + ")" for row in some)
            self.run(f"INSERT INTO {name} VALUES {places}", [cell for row in some for cell in row])

    def run(self, statement: str, values: Sequence[Any] = ()) -> Any:
        """One statement."""
        return self.connection.con.execute(statement, list(values) or None)

    def left_open(self) -> list[Any]:
        """The cursors, transactions and temporary tables that the connection has: asking fails where a result is still open."""
        if self.name == "duckdb":
            return list(self.run("SELECT table_name FROM duckdb_tables() WHERE temporary").fetchall())
        status = self.connection.con.info.transaction_status
        cursors = self.run("SELECT name FROM pg_cursors").fetchall()
        temporary = self.run("SELECT relname FROM pg_class WHERE relpersistence = 't'").fetchall()
        return [*([status] if status else []), *cursors, *temporary]


@dataclass(frozen=True)
class Server:
    """A running PostgreSQL."""

    folder: Path

    def connect(self) -> Database:
        """A connection of its own."""
        import ibis

        connection = ibis.postgres.connect(host=str(self.folder), user="postgres", database="postgres")
        return Database(connection, "postgres")


@pytest.fixture(name="duck")
def duckdb_in_memory() -> Iterator[Database]:
    """DuckDB in memory, behind ibis."""
    connection = _ibis().duckdb.connect()
    yield Database(connection, "duckdb")
    connection.disconnect()


@pytest.fixture(name="server", scope="session")
def running_server() -> Iterator[Server]:
    """PostgreSQL as a user without rights, on a socket in a folder of its own."""
    _ibis()
    if not BINARIES:
        missing("postgres", "no server binaries under /usr/lib/postgresql")
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    try:
        if os.getuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        data, control = folder / "data", BINARIES[0] / "pg_ctl"
        made = ["-U", "postgres", "--auth=trust", "-E", "UTF8", "--locale=C.UTF-8"]
        _as_nobody([BINARIES[0] / "initdb", "-D", data, *made])
        settings = f"-k {folder} -c listen_addresses='' -c fsync=off"
        _as_nobody([control, "-D", data, "-o", settings, "-l", folder / "log", "-w", "start"])
        yield Server(folder)
        _as_nobody([control, "-D", data, "-m", "immediate", "-w", "stop"])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(name="postgres")
def connected_server(server: Server) -> Iterator[Database]:
    """A connection to PostgreSQL, behind ibis."""
    database = server.connect()
    yield database
    database.connection.disconnect()


@pytest.fixture(name="database", params=["duck", "postgres"])
def each_engine(request: pytest.FixtureRequest) -> Database:
    """Each engine in turn."""
    database: Database = request.getfixturevalue(request.param)
    return database


def _ibis() -> Any:
    try:
        import ibis
    except ImportError:
        missing("postgres", "ibis is not installed")
    return ibis


def _as_nobody(command: Sequence[object]) -> None:
    """PostgreSQL refuses to run as root."""
    user = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.getuid() == 0 else {}
    words = [str(word) for word in command]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **user)  # type: ignore[call-overload]
