"""Tables of SQLite and DuckDB files, named by `file.db::table`; opened for reading alone, and no error quotes a cell.

SQLite gives every cell a type of its own, whatever its column declares, so its cells are read one by one as those of a column of objects.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa

from dpcipher.errors import MissingExtra, TableFileError
from dpcipher.io.frame import object_cells
from dpcipher.io.header import spelt_hint

DATABASE_ROWS = 2**16
MARK = "::"
ENDINGS = (".db", ".sqlite", ".sqlite3", ".duckdb")
Reader = Callable[[tuple[str, ...]], Iterator[pa.RecordBatch]]


def open_database(path: Path, table: str) -> tuple[tuple[str, ...], Reader]:
    """The column names of a table, and how to read its rows; what kind of file it is, its first bytes say."""
    with open(path, "rb") as file:
        head = file.read(16)
    if head == b"SQLite format 3\0":
        return _sqlite_names(path, table), lambda columns: _sqlite_batches(path, table, columns)
    if head[8:12] == b"DUCK":
        return _duckdb_names(path, table), lambda columns: _duckdb_batches(path, table, columns)
    raise TableFileError(
        f"{path}: is neither a SQLite nor a DuckDB file; {MARK}TABLE is for those and for .xlsx"
    )


def _sqlite_names(path: Path, table: str) -> tuple[str, ...]:
    try:
        with closing(_sqlite(path)) as base:
            known = base.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            tables = [str(name, "utf-8", "replace") for (name,) in known]
            columns = base.execute("SELECT name FROM pragma_table_xinfo(?) WHERE hidden <> 1", [table])
            names = tuple(str(name, "utf-8", "replace") for (name,) in columns)
    except sqlite3.Error:
        raise _damaged(path, "SQLite") from None
    if table not in tables:
        raise _no_table(path, table, tables)
    return names


def _sqlite_batches(path: Path, table: str, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    chosen = ", ".join(_name(column) for column in columns)
    try:
        with closing(_sqlite(path)) as base:
            cursor = base.execute(f"SELECT {chosen} FROM main.{_name(table)}")
            while rows := cursor.fetchmany(DATABASE_ROWS):
                yield pa.RecordBatch.from_arrays(
                    [_cells(rows, i) for i in range(len(columns))], list(columns)
                )
    except sqlite3.Error:
        raise _damaged(path, "SQLite") from None


def _sqlite(path: Path) -> sqlite3.Connection:
    """A connection that cannot write. Texts come as bytes: decoding them is done cell by cell, since SQLite's error quotes the cell."""
    # Without a journal beside it nobody is writing: then not even a lock is left in its folder.
    journals = (path.with_name(path.name + ending) for ending in ("-wal", "-journal"))
    still = "" if any(journal.exists() for journal in journals) else "&immutable=1"
    base = sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro{still}", uri=True)
    base.text_factory = bytes
    base.execute("PRAGMA trusted_schema = OFF")
    return base


def _cells(rows: list[tuple[Any, ...]], place: int) -> pa.Array:
    cells = np.empty(len(rows), dtype=object)
    cells[:] = [row[place] for row in rows]
    return object_cells(cells)


def _duckdb_names(path: Path, table: str) -> tuple[str, ...]:
    with closing(_duckdb(path)) as base:
        try:
            known = base.execute(
                "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main'"
            ).fetchall()
            if (table,) not in known:
                raise _no_table(path, table, [str(name) for (name,) in known])
            described = base.execute(f"SELECT * FROM main.{_name(table)} LIMIT 0").description
            return tuple(str(column[0]) for column in described)
        except TableFileError:
            raise
        except Exception:
            raise _damaged(path, "DuckDB") from None


def _duckdb_batches(path: Path, table: str, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    chosen = ", ".join(_name(column) for column in columns)
    with closing(_duckdb(path)) as base:
        try:
            rows = base.sql(f"SELECT {chosen} FROM main.{_name(table)}")
            for batch in pa.RecordBatchReader.from_stream(rows):
                yield pa.RecordBatch.from_arrays(batch.columns, list(columns))
        except Exception:
            raise _damaged(path, "DuckDB") from None


def _duckdb(path: Path) -> Any:
    try:
        import duckdb
    except ImportError:
        raise MissingExtra("duckdb", "duckdb") from None
    config: Any = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    try:
        return duckdb.connect(str(path), read_only=True, config=config)
    except Exception:
        raise _damaged(path, "DuckDB") from None


def _name(text: str) -> str:
    """A name as SQL quotes it."""
    return '"' + text.replace('"', '""') + '"'


def _no_table(path: Path, table: str, tables: list[str]) -> TableFileError:
    return TableFileError(
        f"{path}: has no table {table!r:.100}; it has {len(tables)} tables{spelt_hint(table, tables) or ', check the name'}"
    )


def _damaged(path: Path, form: str) -> TableFileError:
    return TableFileError(
        f"{path}: cannot be read as {form}; check that the file is complete and that nobody is writing to it"
    )
