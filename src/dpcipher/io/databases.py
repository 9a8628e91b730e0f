"""Tables of databases: of SQLite and DuckDB files, named by `file.db::table`, and of DuckDB and PostgreSQL behind ibis.

Rows are streamed once, by one query, which sees one state of the table; no row is written, and no error quotes a cell. (SQLite itself leaves an empty
-wal and a -shm beside a file in WAL mode.) SQLite gives every cell a type of its own, whatever its column declares, so its cells are read one by one as Python objects; those of PostgreSQL come as numbers, truth values and texts.
No engine compares cells: under a collation it may take two texts for one.
"""

import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from dpcipher.errors import DpcipherError, MissingExtra, ParameterError, TableFileError
from dpcipher.io.header import check_part
from dpcipher.io.objects import row_batch

FETCHED_ROWS = 2**16
_ENGINES = {"duckdb": "DuckDB", "postgres": "PostgreSQL"}  # behind ibis
_LIGHT: Any = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}  # no code from elsewhere


def database_kind(path: Path) -> str:
    """SQLite or DuckDB, by the first bytes of a file."""
    with open(path, "rb") as file:
        head = file.read(16)
    if head == b"SQLite format 3\0":
        return "SQLite"
    if head[8:12] == b"DUCK":
        return "DuckDB"
    raise TableFileError(f"{path}: is neither a SQLite nor a DuckDB file; ::TABLE is for those and for .xlsx")


def sqlite_names(path: Path, table: str) -> tuple[str, ...]:
    """The column names of a table in a SQLite file."""
    with _sqlite(path) as base:
        tables = base.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        check_part(table, [_text(name) for (name,) in tables], path, "table")
        columns = base.execute("SELECT name FROM pragma_table_xinfo(?) WHERE hidden <> 1", [table])
        return tuple(_text(name) for (name,) in columns)


def sqlite_batches(path: Path, table: str, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    """The rows of a table in a SQLite file, every cell by itself."""
    with _sqlite(path) as base:
        cursor = base.execute(_select(table, columns))
        while rows := cursor.fetchmany(FETCHED_ROWS):
            yield row_batch(rows, columns)


def duckdb_names(path: Path, table: str) -> tuple[str, ...]:
    """The column names of a table in a DuckDB file."""
    with _duckdb(path) as base:
        tables = base.execute("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main'").fetchall()
        check_part(table, [str(name) for (name,) in tables], path, "table")
        described = base.execute(f"SELECT * FROM main.{_quoted(table)} LIMIT 0").description
        return tuple(str(column[0]) for column in described)


def duckdb_batches(path: Path, table: str, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    """The rows of a table in a DuckDB file, of the types that it declares."""
    with _duckdb(path) as base:
        for batch in pa.RecordBatchReader.from_stream(base.sql(_select(table, columns))):
            yield pa.RecordBatch.from_arrays(batch.columns, list(columns))


@contextmanager
def _sqlite(path: Path) -> Iterator[sqlite3.Connection]:
    """One transaction of a connection that cannot write. Texts come as bytes: SQLite's own decoding fails on a cell, and its error quotes it."""
    for journal in (path.with_name(path.name + ending) for ending in ("-wal", "-journal")):
        if journal.exists() and journal.stat().st_size:
            raise TableFileError(
                f"{path}: has rows that another program has not yet written into it (in {journal.name}); let it finish or close it, or run PRAGMA journal_mode=DELETE there, and try again"
            )
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True)) as base:
            base.text_factory, base.isolation_level = bytes, None
            base.execute("PRAGMA trusted_schema = OFF")
            base.execute("BEGIN")
            yield base
    except sqlite3.Error:
        raise _unreadable(path, "SQLite") from None


@contextmanager
def _duckdb(path: Path) -> Iterator[Any]:
    """A connection that cannot write."""
    try:
        import duckdb
    except ImportError:
        raise MissingExtra("duckdb", "duckdb") from None
    try:
        with closing(duckdb.connect(str(path), read_only=True, config=_LIGHT)) as base:
            yield base
    except DpcipherError:
        raise
    except Exception:
        raise _unreadable(path, "DuckDB") from None


def _unreadable(path: Path, form: str) -> TableFileError:
    return TableFileError(
        f"{path}: cannot be read as {form}; check that the file is complete and that nobody is writing to it"
    )


def _select(table: str, columns: tuple[str, ...]) -> str:
    return f"SELECT {', '.join(map(_quoted, columns))} FROM main.{_quoted(table)}"


def _quoted(name: str) -> str:
    """A name as SQL quotes it."""
    return '"' + name.replace('"', '""') + '"'


def _text(name: bytes) -> str:
    return str(name, "utf-8", "replace")


def is_ibis(data: object) -> bool:
    """Whether `data` is an ibis table of some engine, told without importing ibis; one whose rows are all in this process is an Arrow stream."""
    kinds = [(base.__module__, base.__name__) for base in type(data).__mro__]
    if ("ibis.expr.types.relations", "Table") not in kinds:
        return False
    from ibis.expr import operations

    elsewhere = (operations.DatabaseTable, operations.UnboundTable, operations.SQLQueryResult)
    return not _memtables(data) or bool(data.op().find(elsewhere))  # type: ignore[attr-defined]


def ibis_backend(table: Any) -> tuple[Any, TableFileError]:
    """The engine behind an ibis table, if its cells can be read one by one, and the error to raise instead of its own, which may quote cells."""
    try:
        backend = table.get_backend()
    except Exception:
        raise TableFileError(
            "data (ibis table) must belong to one connection; make it with connection.table(...)"
        ) from None
    if backend.name not in _ENGINES:
        raise TableFileError(
            f"data (ibis table on {backend.name}) must be on DuckDB or PostgreSQL, whose cells are read one by one; write it to a Parquet file "
            "with table.to_parquet(...) and hand over the path"
        )
    if _memtables(table):
        raise ParameterError(
            "data (ibis table) must not join rows of this process (a memtable) with a table that lives elsewhere; "
            "create the memtable there first, with connection.create_table(...)"
        )
    return backend, TableFileError(
        f"data (ibis table on {_ENGINES[backend.name]}) could not be read to its end; run table.count().execute() to see the engine's own reason"
    )


def postgres_batches(backend: Any, rows: Any) -> Iterator[pa.RecordBatch]:
    """The rows of one query, in a transaction that cannot write; when the batches end or are closed, so do the cursor and the transaction."""
    connection, columns = backend.con, tuple(rows.columns)
    if connection.info.transaction_status != 0:
        raise ParameterError(
            "data (ibis table on PostgreSQL): its connection is inside a transaction; commit it, or connect anew"
        )
    cells = ", ".join(_postgres_cell(name, kind) for name, kind in rows.schema().items())
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        with connection.cursor(name=f"dpcipher_{secrets.token_hex(8)}") as cursor:
            cursor.execute(f"SELECT {cells} FROM (\n{backend.compile(rows)}\n) AS t")
            while fetched := cursor.fetchmany(FETCHED_ROWS):
                yield row_batch(fetched, columns)


def _postgres_cell(name: str, kind: Any) -> str:
    """A cell as a number, a truth value or a text. As values of Python, a day after the year 9999 or an address would fail, and with it all rows."""
    cell = f"t.{_quoted(name)}"
    if kind.is_numeric() or kind.is_boolean():
        return cell
    if kind.is_timestamp():
        moment = cell if kind.timezone is None else f"{cell} AT TIME ZONE '{kind.timezone}'"
        # JSON has one form of a moment, whatever the session's DateStyle; ours has a space in it, and leaves midnight out.
        return f"replace(regexp_replace(to_json({moment}) #>> '{{}}', 'T00:00:00$', ''), 'T', ' ')"
    return f"to_json({cell}) #>> '{{}}'" if kind.is_date() else f"CAST({cell} AS text)"


def _memtables(table: Any) -> bool:
    from ibis.expr import operations

    return bool(table.op().find(operations.InMemoryTable))
