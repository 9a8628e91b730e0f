"""Tables of DuckDB and PostgreSQL behind ibis: their rows are streamed once, by one query, which sees one state of the table.

Cells are read here, as those of files are, and not by the engine: under a collation an engine may take two texts for one.
"""

import secrets
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from dpcipher.errors import ParameterError, TableFileError
from dpcipher.io.frame import object_cells

FETCHED_ROWS = 2**16


def is_ibis(data: object) -> bool:
    """Whether `data` is an ibis table of some engine, told without importing ibis; one whose rows are all in this process is an Arrow stream."""
    if not any(
        base.__module__ == "ibis.expr.types.relations" and base.__name__ == "Table"
        for base in type(data).__mro__
    ):
        return False
    from ibis.expr import operations

    elsewhere = (operations.DatabaseTable, operations.UnboundTable, operations.SQLQueryResult)
    return not _memtables(data) or bool(data.op().find(elsewhere))  # type: ignore[attr-defined]


def ibis_backend(table: Any) -> Any:
    """The engine behind an ibis table, if it is one whose cells can be read one by one."""
    try:
        backend = table.get_backend()
    except Exception:
        raise TableFileError(
            "data (ibis table) must belong to one connection; make it with connection.table(...)"
        ) from None
    if backend.name not in ("duckdb", "postgres"):
        raise TableFileError(
            f"data (ibis table on {backend.name}) must be on DuckDB or PostgreSQL, whose cells are read one by one; write it to a Parquet file "
            "with table.to_parquet(...) and hand over the path"
        )
    if _memtables(table):
        raise ParameterError(
            "data (ibis table) must not join rows of this process (a memtable) with a table that lives elsewhere; "
            "create the memtable there first, with connection.create_table(...)"
        )
    return backend


def unreadable(backend: Any) -> TableFileError:
    """What is said instead of an engine's own words, which may quote cells."""
    name = {"duckdb": "DuckDB", "postgres": "PostgreSQL"}[backend.name]
    return TableFileError(
        f"data (ibis table on {name}) could not be read to its end; run table.count().execute() to see the engine's own reason"
    )


def postgres_batches(backend: Any, rows: Any) -> Iterator[pa.RecordBatch]:
    """The rows of one query, in a transaction that cannot write; when the batches end or are closed, so do the cursor and the transaction."""
    connection, columns = backend.con, tuple(rows.columns)
    if connection.info.transaction_status != 0:
        raise ParameterError(
            "data (ibis table on PostgreSQL): its connection is inside a transaction; commit it, or connect anew"
        )
    cells = ", ".join(_cell(name, kind) for name, kind in rows.schema().items())
    query = f"SELECT {cells} FROM (\n{backend.compile(rows)}\n) AS t"
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        with connection.cursor(name=f"dpcipher_{secrets.token_hex(8)}") as cursor:
            cursor.execute(query)
            while fetched := cursor.fetchmany(FETCHED_ROWS):
                yield pa.RecordBatch.from_arrays(
                    [_cells(fetched, place) for place in range(len(columns))], list(columns)
                )


def _cell(name: str, kind: Any) -> str:
    """A cell as a number, a truth value or a text. As values of Python, a day after the year 9999 or an address would fail, and with it all rows."""
    cell = 't."' + name.replace('"', '""') + '"'
    if kind.is_numeric() or kind.is_boolean():
        return cell
    if kind.is_timestamp():
        moment = cell if kind.timezone is None else f"{cell} AT TIME ZONE '{kind.timezone}'"
        # JSON has one form of a moment, whatever the session's DateStyle; ours has a space in it, and leaves midnight out.
        return f"replace(regexp_replace(to_json({moment}) #>> '{{}}', 'T00:00:00$', ''), 'T', ' ')"
    return f"to_json({cell}) #>> '{{}}'" if kind.is_date() else f"CAST({cell} AS text)"


def _cells(rows: list[tuple[Any, ...]], place: int) -> pa.Array:
    cells = np.empty(len(rows), dtype=object)
    cells[:] = [row[place] for row in rows]
    return object_cells(cells)


def _memtables(table: Any) -> bool:
    from ibis.expr import operations

    return bool(table.op().find(operations.InMemoryTable))
