"""The engines that hold tables: how each is asked, and how several questions see one state of the table.

A single query sees one state everywhere. For several, DuckDB keeps the coded rows in a temporary table of the connection, which needs no right to
write to any database; PostgreSQL holds a transaction open (REPEATABLE READ, READ ONLY) and codes anew for each. Elsewhere several queries are refused.
"""

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, final

import numpy as np

from dpcipher.curator.warehouse.expressions import Expr
from dpcipher.curator.warehouse.queries import Answer
from dpcipher.curator.warehouse.readings import GuardedReader, Reader, TryCastReader
from dpcipher.curator.warehouse.stages import Coding
from dpcipher.errors import DpcipherError, ParameterError, TableFileError

Steps = list[tuple[str, str]]


class Engine(ABC):
    """One backend of ibis. `bytes_moved` adds up what came back: private, since it depends on the rows."""

    reader: Reader = TryCastReader()
    materialized = ""  # the word that keeps a step of a query for those that read it
    fence = (
        ""  # what keeps a step from being written into the next, where it would be evaluated again and again
    )

    def __init__(self, backend: Any) -> None:
        self.backend, self.bytes_moved = backend, 0
        self.name: str = {"duckdb": "DuckDB", "postgres": "PostgreSQL"}.get(backend.name, backend.name)

    def compiled(self, coding: Coding) -> Steps:
        """The steps as SQL."""
        return [(name, self.sql(step)) for name, step in coding.steps]

    def sql(self, step: Expr | str) -> str:
        """One step; its values are computed once."""
        if isinstance(step, str):
            return step
        text = self.backend.compile(step)
        return f"SELECT * FROM (\n{text}\n) AS step {self.fence}" if self.fence else str(text)

    def ask(self, query: str) -> Answer:
        """Three columns of whole numbers."""
        with saying_nothing(self.name):
            table = self._rows(query)
        self.bytes_moved += sum(column.nbytes for column in table)
        return table

    @abstractmethod
    def _rows(self, query: str) -> Answer:
        """The rows of the answer."""

    @abstractmethod
    def hold(self, steps: Steps, last: str) -> tuple[Steps, str]:
        """One state for several queries: the steps to write before each, and the name of the coded rows."""

    @abstractmethod
    def let_go(self) -> None:
        """The end of the last question."""


@final
class OtherEngine(Engine):
    """An engine that was not tried by our tests: what it makes of public cells decides (`probe`)."""

    def _rows(self, query: str) -> Answer:
        return _columns(self.backend.raw_sql(query).fetchall())

    def hold(self, steps: Steps, last: str) -> tuple[Steps, str]:
        """Refused: nobody knows how it holds a state."""
        raise ParameterError(
            f"data (ibis table on {self.name}) can be asked one query here, and this workload takes several: "
            "measure fewer tables by name, or write the table to Parquet and measure that"
        )

    def let_go(self) -> None:
        """Nothing is held."""


@final
class DuckDBEngine(Engine):
    """DuckDB, which runs in this process."""

    materialized = "MATERIALIZED "

    def __init__(self, backend: Any) -> None:
        super().__init__(backend)
        self._kept: str | None = None

    def _rows(self, query: str) -> Answer:
        columns = self.backend.con.execute(query).fetchnumpy()
        table, cell, count = (np.ma.filled(column, -1).astype(np.int64) for column in columns.values())
        return table, cell, count

    def hold(self, steps: Steps, last: str) -> tuple[Steps, str]:
        """Coded rows in a temporary table: what it is read from may change afterwards, or be a file that has no states."""
        name = f"dpcipher_{secrets.token_hex(8)}"
        texts = ", ".join(f"{step} AS (\n{text}\n)" for step, text in steps)
        with saying_nothing(self.name):
            self.backend.con.execute(f"CREATE TEMP TABLE {name} AS WITH {texts} SELECT * FROM {last}")
        self._kept = name
        return [], name

    def let_go(self) -> None:
        """Without the temporary table."""
        name, self._kept = self._kept, None
        if name is not None:
            with saying_nothing(self.name):
                self.backend.con.execute(f"DROP TABLE IF EXISTS temp.{name}")


@final
class PostgresEngine(Engine):
    """PostgreSQL, over the connection that the ibis backend holds."""

    reader = GuardedReader()
    materialized = "MATERIALIZED "
    fence = "OFFSET 0"

    def __init__(self, backend: Any) -> None:
        super().__init__(backend)
        self._is_held = False

    def _rows(self, query: str) -> Answer:
        if not self._is_held:
            self._begin()
        try:
            with self.backend.con.cursor() as cursor:
                cursor.execute(query)
                rows = cursor.fetchall()
        except BaseException:
            self._end("ROLLBACK")
            raise
        if not self._is_held:
            self._end("COMMIT")
        return _columns(rows)

    def hold(self, steps: Steps, last: str) -> tuple[Steps, str]:
        """A transaction that sees one state and cannot write."""
        with saying_nothing(self.name):
            self._begin()
        self._is_held = True
        return steps, last

    def let_go(self) -> None:
        """The transaction ends."""
        if self._is_held:
            with saying_nothing(self.name):
                self._end("COMMIT")

    def _begin(self) -> None:
        connection = self.backend.con
        if connection.info.transaction_status != 0:
            raise ParameterError(
                "data (ibis table on PostgreSQL): its connection is inside a transaction; commit it, or connect anew"
            )
        with connection.cursor() as cursor:
            cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def _end(self, word: str) -> None:
        self._is_held = False
        with self.backend.con.cursor() as cursor:
            cursor.execute(word)


def engine_of(table: Expr) -> Engine:
    """The engine behind an ibis table."""
    try:
        backend = table.get_backend()
    except Exception:
        raise TableFileError(
            "data (ibis table) must belong to one connection; make it with connection.table(...)"
        ) from None
    known: dict[str, Callable[[Any], Engine]] = {"duckdb": DuckDBEngine, "postgres": PostgresEngine}
    return known.get(backend.name, OtherEngine)(backend)


@contextmanager
def saying_nothing(name: str) -> Iterator[None]:
    """Whatever an engine raises may quote cells, and is said in our words."""
    try:
        yield
    except DpcipherError:
        raise
    except Exception:
        raise TableFileError(
            f"data (ibis table on {name}) could not be counted; run table.count().execute() to see the engine's own reason"
        ) from None


def _columns(rows: Sequence[Sequence[Any]]) -> Answer:
    numbers = [[-1 if value is None else int(value) for value in row] for row in rows]
    table, cell, count = np.array(numbers, dtype=np.int64).reshape(-1, 3).T
    return table, cell, count
