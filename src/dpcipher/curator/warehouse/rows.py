"""Rows of an ibis table: counted where they are, for the tables that are asked for.

    ibis table ─▶ steps of SQL (`stages`) ─▶ tried on public cells (`probe`) ─▶ one query (`queries`) ─▶ counts

Stability is that of files: a row's codes depend on that row and the schema alone, a row counts once in every table, and which rows of a person count
depends on that person's rows alone.
"""

import math
import weakref
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any, final

from dpcipher.curator.count import Incoming
from dpcipher.curator.kernel import Columns
from dpcipher.curator.request import Person
from dpcipher.curator.truth import CountSource, Recoding, Tally
from dpcipher.curator.warehouse.engines import Engine, engine_of
from dpcipher.curator.warehouse.expressions import has_memtable
from dpcipher.curator.warehouse.probe import check_reading
from dpcipher.curator.warehouse.queries import (
    MAX_TABLES,
    Answer,
    counting_query,
    counts_of,
    n_rows_of,
    refusal_of,
)
from dpcipher.curator.warehouse.stages import coding
from dpcipher.errors import DataError, ParameterError
from dpcipher.marginals.arrays import Axes, Counts
from dpcipher.schema.schema import Schema
from dpcipher.tables.header import check_names, said_extra

Say = Callable[[str], None]
CELL_BYTES = 20  # of a cell that comes back, at most: table, cell and count
FIRST_CELLS = 2**18


@final
class WarehouseRows(Incoming):
    """Rows that an engine holds."""

    kind = "pandas"

    def __init__(self, table: Any, schema: Schema, person: Person | None, say: Say) -> None:
        if schema.is_open:
            raise ParameterError(
                "data (ibis table): bins: auto and levels: discover are found among coded rows, which stay where they are; declare bins and "
                "levels, or write the table to Parquet and measure that"
            )
        if has_memtable(table):
            raise ParameterError(
                "data (ibis table) must not join rows of this process (a memtable) with a table that lives elsewhere; "
                "create the memtable there first, with connection.create_table(...)"
            )
        wanted = list(dict.fromkeys([*schema.names, *([] if person is None else [person.column])]))
        check_names(table.columns, wanted)
        self.extra = said_extra(table.columns, wanted)
        self._schema, self._say = schema, say
        self.engine: Engine = engine_of(table)
        check_reading(table, schema, person, self.engine)
        self._coding = coding(table, schema, person, self.engine.reader)

    def tally(self, tables: Sequence[Axes]) -> Tally:
        """In one query, or in several that see one state of the table."""
        questions = Questions(self, several=len(tables) > MAX_TABLES)
        try:
            counts = [counts for some in _batches(tables) for counts in questions.counts(some)]
        finally:
            questions.close()
        return Tally(questions.n_rows, tuple(counts))

    def rows(self) -> list[Columns]:
        """Never: they stay where they are."""
        raise AssertionError("rows of a warehouse stay there")

    def on_demand(self) -> CountSource:
        """Counts whenever they are asked for, all of one state of the table."""
        return WarehouseCounts(self)

    def ask(self, steps: list[tuple[str, str]], rows: str, tables: Sequence[Axes]) -> Answer:
        """The answer to one query; every refusal of a row happens here."""
        shape, messages = self._schema.shape, self._coding.messages
        most = sum(math.prod(shape[axis] for axis in axes) for axes in tables)
        self._say(
            f"asking {self.engine.name} for {len(tables):,} tables of {len(self._schema.names):,} columns in one query; at most "
            f"{most:,} counts come back ({CELL_BYTES * most / 1e6:,.1f} MB)"
        )
        answer = self.engine.ask(counting_query(steps, rows, shape, tables, refuses=bool(messages)))
        refusal = refusal_of(answer)
        if refusal is not None:
            raise DataError(messages[refusal])
        return answer

    def steps(self) -> tuple[list[tuple[str, str]], str]:
        """The steps as SQL, and the name of the last."""
        return self.engine.compiled(self._coding), self._coding.last

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the full table."""
        return self._schema.shape


class Questions:
    """Queries about one state of the table: one, or several."""

    def __init__(self, warehouse: WarehouseRows, *, several: bool) -> None:
        self._warehouse, self.n_rows = warehouse, 0
        steps, rows = warehouse.steps()
        self._steps, self._rows = warehouse.engine.hold(steps, rows) if several else (steps, rows)
        self._end = weakref.finalize(self, warehouse.engine.let_go)

    def counts(self, tables: Sequence[Axes]) -> list[Counts]:
        """The counts of some tables, in one query."""
        answer = self._warehouse.ask(self._steps, self._rows, tables)
        self.n_rows = n_rows_of(answer)
        return counts_of(answer, self._warehouse.shape, tables)

    def close(self) -> None:
        """No more questions."""
        self._end()


@final
class WarehouseCounts(CountSource):
    """Counts of whatever is asked later, from the state that the table had when it was opened; what was counted once is kept.

    All columns and, where they are small enough, all pairs are counted at once, before anything is charged. What is asked after that goes to the
    held state: it cannot be refused because of a row, but a connection that breaks then has cost its charge.
    """

    def __init__(self, warehouse: WarehouseRows) -> None:
        self._shape = warehouse.shape
        self._questions = Questions(warehouse, several=True)
        self._counted: dict[Axes, Counts] = {}
        try:
            self._count(_first_tables(self._shape))
        except BaseException:
            self.close()
            raise
        self.n_rows = self._questions.n_rows

    def close(self) -> None:
        """Let the state of the table go."""
        self._questions.close()

    def many(self, tables: Sequence[Axes]) -> Iterator[Counts]:
        """Those that were not counted yet in as few queries as possible."""
        self._count([axes for axes in dict.fromkeys(tables) if axes and axes not in self._counted])
        return (self.counts(axes) for axes in tables)

    def recoded(self, codes: Recoding, shape: tuple[int, ...]) -> CountSource:
        """Never: an open schema was refused."""
        raise AssertionError("an open schema is refused where the data live")

    def _counts(self, axes: Axes) -> Counts:
        if axes not in self._counted:
            self._count([axes])
        return self._counted[axes]

    def _count(self, tables: Sequence[Axes]) -> None:
        for some in _batches(tables):
            self._counted.update(zip(some, self._questions.counts(some), strict=True))


def _first_tables(shape: tuple[int, ...]) -> list[Axes]:
    """The columns, and the pairs where all of them together have few cells; every later selection begins with these."""
    columns: list[Axes] = [(axis,) for axis in range(len(shape))]
    pairs = list(combinations(range(len(shape)), 2))
    small = sum(shape[first] * shape[second] for first, second in pairs) <= FIRST_CELLS
    return [*columns, *pairs] if small else columns


def _batches(tables: Sequence[Axes]) -> Iterator[Sequence[Axes]]:
    for start in range(0, max(len(tables), 1), MAX_TABLES):
        yield tables[start : start + MAX_TABLES]
