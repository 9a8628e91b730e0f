"""Engines to test with: DuckDB in this process, and a PostgreSQL server of our own in a temporary folder, with everything in its log."""

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
class Warehouse:
    """A connection, and how tables come into it."""

    connection: Any
    name: str
    log: Path | None = None

    def table(self, types: Mapping[str, str], rows: Sequence[Sequence[Any]]) -> Any:
        """An ibis table of these columns, each of a type of the engine, and of these rows."""
        name = f"t{secrets.token_hex(6)}"
        columns = ", ".join(f'"{column}" {kind}' for column, kind in types.items())
        self.run(f"CREATE TABLE {name} ({columns})")
        self.insert(name, rows)
        return self.connection.table(name)

    def insert(self, name: str, rows: Sequence[Sequence[Any]]) -> None:
        """More rows, over parameters: nothing of a row is in the text of a statement."""
        mark = "?" if self.name == "duckdb" else "%s"
        for start in range(0, len(rows), ROWS_A_STATEMENT):
            some = rows[start : start + ROWS_A_STATEMENT]
            places = ", ".join("(" + ", ".join([mark] * len(row)) + ")" for row in some)
            self.run(f"INSERT INTO {name} VALUES {places}", [cell for row in some for cell in row])

    def run(self, statement: str, values: Sequence[Any] = ()) -> Any:
        """One statement."""
        return self.connection.con.execute(statement, list(values) or None)


@dataclass(frozen=True)
class Server:
    """A running PostgreSQL."""

    folder: Path

    @property
    def log(self) -> Path:
        """Everything the server writes."""
        return self.folder / "log"

    def connect(self, user: str = "postgres", **options: Any) -> Any:
        """An ibis connection."""
        import ibis

        return ibis.postgres.connect(host=str(self.folder), user=user, database="postgres", **options)


@pytest.fixture(name="duck", scope="module")
def duckdb_at_hand() -> Iterator[Warehouse]:
    """DuckDB in memory, behind ibis."""
    ibis = _ibis()
    connection = ibis.duckdb.connect()
    yield Warehouse(connection, "duckdb")
    connection.disconnect()


@pytest.fixture(name="server", scope="session")
def running_server() -> Iterator[Server]:
    """PostgreSQL as a user without rights, on a socket in a folder of its own; every statement and every error is in its log."""
    _ibis()
    if not BINARIES:
        missing("postgres", "no server binaries under /usr/lib/postgresql")
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    try:
        if os.getuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        data, control = folder / "data", BINARIES[0] / "pg_ctl"
        _as_nobody(
            [
                BINARIES[0] / "initdb",
                "-D",
                data,
                "-U",
                "postgres",
                "--auth=trust",
                "-E",
                "UTF8",
                "--locale=C.UTF-8",
            ]
        )
        settings = f"-k {folder} -c listen_addresses='' -c fsync=off -c log_statement=all -c log_error_verbosity=verbose"
        _as_nobody([control, "-D", data, "-o", settings, "-l", folder / "log", "-w", "start"])
        yield Server(folder)
        _as_nobody([control, "-D", data, "-m", "immediate", "-w", "stop"])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(name="postgres")
def postgres_at_hand(server: Server) -> Iterator[Warehouse]:
    """A connection to PostgreSQL, behind ibis."""
    connection = server.connect()
    yield Warehouse(connection, "postgres", server.log)
    connection.disconnect()


@pytest.fixture(name="warehouse", params=["duck", "postgres"])
def each_engine(request: pytest.FixtureRequest) -> Warehouse:
    """Each engine in turn."""
    held: Warehouse = request.getfixturevalue(request.param)
    return held


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
