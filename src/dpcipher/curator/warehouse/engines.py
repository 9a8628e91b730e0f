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
from dpcipher.curator.warehouse.queries import Answer, Query
from dpcipher.curator.warehouse.readings import GuardedReader, Reader, TryCastReader
from dpcipher.curator.warehouse.stages import Coding, Written
from dpcipher.errors import DpcipherError, ParameterError, TableFileError

Steps = list[tuple[str, str]]
ROW_BYTES = 15  # of PostgreSQL's protocol, for a row of two values


class Engine(ABC):
    """One backend of ibis. `bytes_moved` adds up what came back: private, since it depends on the rows."""

    reader: Reader = TryCastReader()
    fence = (
        ""  # what keeps a step from being written into the next, where it would be evaluated again and again
    )

    def __init__(self, backend: Any) -> None:
        self.backend, self.bytes_moved = backend, 0
        self.name: str = {"duckdb": "DuckDB", "postgres": "PostgreSQL"}.get(backend.name, backend.name)

    def compiled(self, coding: Coding) -> Steps:
        """The steps as SQL."""
        return [(name, self.sql(step)) for name, step in coding.steps]

    def sql(self, step: Expr | Written) -> str:
        """One step; its values are computed once."""
        if isinstance(step, Written):
            return step.sql
        try:
            text = self.backend.compile(step)
        except Exception:
            raise ParameterError(
                f"data (ibis table on {self.name}) cannot be encoded there: its SQL lacks a function that reading cells needs; "
                "write the table to Parquet and measure that"
            ) from None
        return f"SELECT * FROM (\n{text}\n) AS step {self.fence}" if self.fence else str(text)

    def ask(self, query: Query) -> Answer:
        """Three columns of whole numbers."""
        with saying_nothing(self.name):
            answer, n_bytes = self._answer(query)
        self.bytes_moved += n_bytes
        return answer

    @abstractmethod
    def _answer(self, query: Query) -> tuple[Answer, int]:
        """The answer, and how many bytes it took to come here."""

    @abstractmethod
    def hold(self, steps: Steps, last: str) -> tuple[Steps, str]:
        """One state for several queries: the steps to write before each, and the name of the coded rows."""

    @abstractmethod
    def let_go(self) -> None:
        """The end of the last question."""


@final
class OtherEngine(Engine):
    """An engine that was not tried by our tests: what it makes of public cells decides (`probe`)."""

    def _answer(self, query: Query) -> tuple[Answer, int]:
        answer = _columns(self.backend.raw_sql(query.sql()).fetchall())
        return answer, sum(column.nbytes for column in answer)

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

    def __init__(self, backend: Any) -> None:
        super().__init__(backend)
        self._kept: str | None = None

    def _answer(self, query: Query) -> tuple[Answer, int]:
        text = query.sql(materialized="MATERIALIZED ")
        columns = list(self.backend.con.execute(text).fetchnumpy().values())
        table, cell, count = (np.ma.filled(column, -1).astype(np.int64) for column in columns)
        return (table, cell, count), sum(column.nbytes for column in columns)

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
    fence = "OFFSET 0"

    def __init__(self, backend: Any) -> None:
        super().__init__(backend)
        self._is_held = False

    def _answer(self, query: Query) -> tuple[Answer, int]:
        if not self._is_held:
            self._begin()
        try:
            with self.backend.con.cursor() as cursor:
                cursor.execute(query.sql(materialized="MATERIALIZED ", packed=True))
                rows = cursor.fetchall()
        except BaseException:
            self._end("ROLLBACK")
            raise
        if not self._is_held:
            self._end("COMMIT")
        return _unpacked(rows), sum(ROW_BYTES + len(str(table)) + len(text) for table, text in rows)

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


def _unpacked(rows: Sequence[tuple[int, str]]) -> Answer:
    """Tables whose cells and counts are one text each."""
    numbers = [np.array(text.split(), dtype=np.int64).reshape(-1, 2) for _, text in rows]
    table = np.repeat(
        np.array([table for table, _ in rows], dtype=np.int64), [len(pairs) for pairs in numbers]
    )
    cell, count = np.concatenate([*numbers, np.empty((0, 2), dtype=np.int64)]).T
    return table, cell, count
