"""MWEM: multiplicative weights with the exponential mechanism (Hardt, Ligett and McSherry 2012).

Each round chooses, privately, the query that the current table answers worst, measures it, and reweights the table. As the
authors advise in practice, all past measurements are replayed in every round, whole marginal tables are measured at once, and the
last table is returned; `average=True` returns the mean over the rounds, as their theorem does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpcipher.errors import ParameterError
from dpcipher.joint.joint import Joint
from dpcipher.methods.base import Synthesizer, check_whole, tables_of
from dpcipher.methods.outcome import ROWS_SHARE, Total, dense_joint, first_total, require_table
from dpcipher.methods.scores import GRID
from dpcipher.privacy.events import Sensitivity
from dpcipher.privacy.terms import Unit
from dpcipher.request.session import Choice, Expected, Question, Session, TrueCounts
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Attrs, Axes, Counts, Floats, Shape
from dpcipher.tables.query import Query


@dataclass(frozen=True)
class Measurement:
    """The noisy answer to a query: of a whole table, or of one cell of it."""

    axes: Axes
    answer: Floats
    cell: tuple[int, ...] | None = None

    def update(self, shape: tuple[int, ...], total: float) -> "_Update":
        """The measurement as a step on tables of this shape and total."""
        sizes = [size if axis in self.axes else 1 for axis, size in enumerate(shape)]
        # An answer far outside [0, n] is noise; unbounded, one draw could overflow the table. So the exponent stays within ±1.
        answer = np.clip(self.answer, -total, 2 * total) / (2 * total)
        drop = tuple(axis for axis in range(len(shape)) if axis not in self.axes)
        if self.cell is None:
            return _Update(drop, answer.reshape(sizes), 1 / (2 * total))
        place = np.zeros([shape[axis] for axis in self.axes])
        place[self.cell] = 1.0
        mask = place.reshape(sizes)
        return _Update(drop, mask * answer, mask / (2 * total))


@dataclass(frozen=True)
class _Update:
    """A(x) ← A(x)·exp(q(x)·(answer − q(A))/2n), normalised: the update of the paper's figure 1."""

    drop: Axes
    answer: Floats
    weight: Floats | float

    def apply(self, table: Floats, total: float) -> None:
        """Reweight the table in place."""
        step = table.sum(axis=self.drop, keepdims=True)
        step *= self.weight
        np.subtract(self.answer, step, out=step)
        table *= np.exp(step, out=step)
        table *= total / table.sum()


@dataclass(frozen=True)
class MWEM(Synthesizer):
    """Multiplicative weights over the full table.

    `workload` lists the candidate queries: an order or a list of attrs. `queries="tables"` takes whole tables, scored by their L1 error less
    their number of cells; `"cells"` takes single counts, scored by their error, as the paper has it. `rounds` defaults to the number of columns, at
    most the number of tables: a rule that looks at the schema alone. `passes` is how often all answers are replayed in a round; with 1 each is used
    once, in its own round. Where the number of rows is private, a tenth of the budget
    buys it.

    >>> import pandas as pd
    >>> import dpcipher as dc
    >>> schema = dc.Schema.from_domain({"smokes": 2, "ill": 2})
    >>> people = pd.DataFrame({"smokes": [0, 0, 1, 1] * 250, "ill": [0, 0, 0, 1] * 250})
    >>> fitted = dc.MWEM(epsilon=1.0, unit="add-remove", rounds=1).fit(people, schema)
    >>> fitted.sample(100, seed=1).shape
    (100, 2)
    """

    title: ClassVar[str] = "MWEM"

    workload: int | Sequence[Sequence[str]] = 2
    rounds: int | None = None
    queries: str = "tables"
    passes: int = 20
    average: bool = False

    def _check(self) -> None:
        if self.rounds is not None:
            check_whole("rounds", self.rounds, 1, 4)
        check_whole("passes", self.passes, 1, 20)
        if self.queries not in ("tables", "cells"):
            raise ParameterError(
                f"queries ({self.queries!r}) must be 'tables' or 'cells'; try queries='tables'"
            )

    def check_schema(self, schema: Schema) -> None:
        """The full table must fit in memory, and the workload must be one."""
        require_table(schema, "MWEM", 2**24)
        tables_of(schema, self.workload)

    def _finest(self, schema: Schema) -> Fraction:
        return (1 - ROWS_SHARE) / (2 * self._rounds(schema))

    def _rounds(self, schema: Schema) -> int:
        return self.rounds or min(len(schema.attrs), len(tables_of(schema, self.workload).tables))

    def _learn(self, session: Session) -> Sequence[Joint]:
        tables = tables_of(session.schema, self.workload).tables
        rounds = self._rounds(session.schema)
        total = first_total(session)
        share = session.left / (2 * rounds)
        table = np.full(session.schema.shape, total.rows / np.prod(session.schema.shape))
        seen: list[Measurement] = []
        mean = np.zeros_like(table)
        for _ in range(rounds):
            mean += table / rounds
            found, total = self._ask(session, tables, table, share, total)
            seen.append(found)
            # As published, an answer is used once, in its own round; more passes are the authors' advice in practice.
            used = seen if self.passes > 1 else seen[-1:]
            table = replay(table, used, total.rows, self.passes)
        fitted = mean if self.average else table
        return [dense_joint(session, fitted, n_rows=total.estimate, engine="mwem")]

    def _ask(
        self, session: Session, tables: Sequence[Attrs], table: Floats, share: Fraction, total: Total
    ) -> tuple[Measurement, Total]:
        if self.queries == "cells":
            return _worst_cell(session, tables, table, share), total
        attrs = _worst_table(session, tables, table, share)
        noisy = session.measure(Query(session.schema.axes(attrs)), share)
        better = total.with_table(noisy.values, noisy.noise.variance)
        return Measurement(noisy.query.axes, noisy.values.astype(float)), better


def replay(table: Floats, seen: Sequence[Measurement], total: float, passes: int) -> Floats:
    """Several passes of the update over all measurements so far."""
    fresh: Floats = np.asarray(table * (total / table.sum()))
    updates = [measurement.update(table.shape, total) for measurement in seen]
    for _ in range(passes):
        for update in updates:
            update.apply(fresh, total)
    return fresh


Models = Sequence[tuple[Axes, NDArray[np.int64]]]


@dataclass(frozen=True, eq=False)
class TableScores(Choice):
    """L1 error of each table less its number of cells, in units of 1/GRID: one person changes it by GRID times the unit's L1."""

    models: Models

    def words(self, schema: Schema) -> str:
        """What is chosen."""
        return "choice of a table"

    @property
    def n_candidates(self) -> int:
        """A table each."""
        return len(self.models)

    def sensitivity(self, unit: Unit) -> int:
        """That of a table of counts."""
        return GRID * unit.l1

    def of(self, counts: TrueCounts) -> NDArray[np.int64]:
        """From what the current table says, which is public."""
        errors = [
            np.abs(GRID * counts.counts(axes) - model).sum() - GRID * model.size
            for axes, model in self.models
        ]
        return np.array(errors, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class CellScores(TableScores):
    """The error of every cell of every table, in units of 1/GRID: one person changes it by GRID times `max_rows`."""

    def words(self, schema: Schema) -> str:
        """What is chosen."""
        return "choice of a cell"

    @property
    def n_candidates(self) -> int:
        """A cell each."""
        return sum(model.size for _, model in self.models)

    def sensitivity(self, unit: Unit) -> int:
        """Under replacement, too, no one count moves further."""
        return GRID * unit.max_rows

    def of(self, counts: TrueCounts) -> NDArray[np.int64]:
        """From what the current table says, which is public."""
        return np.concatenate(
            [np.abs(GRID * counts.counts(axes) - model).ravel() for axes, model in self.models]
        )


@dataclass(frozen=True, eq=False)
class Cell(Question):
    """One cell of a table: any one count changes by at most `max_rows`, under replacement too."""

    axes: Axes
    cell: tuple[int, ...]

    def words(self, schema: Schema) -> str:
        """The columns; which cell it is follows from earlier answers."""
        return f"a cell of {' × '.join(schema.attrs_on(self.axes))}"

    def sensitivity(self, unit: Unit, shape: Shape) -> Sensitivity:
        """One number."""
        return Sensitivity(unit.max_rows, unit.max_rows**2)

    def of(self, counts: TrueCounts) -> Counts:
        """One count."""
        return np.asarray(counts.counts(self.axes)[self.cell])

    def expected(self, rows: Expected) -> Floats:
        """Rows that are spread evenly."""
        return np.asarray(rows.n_rows / np.prod([rows.shape[axis] for axis in self.axes]))


def _models(schema: Schema, tables: Sequence[Attrs], table: Floats) -> list[tuple[Axes, NDArray[np.int64]]]:
    """What the current table says of each candidate, on the grid: it is public, so rounding it costs nothing."""
    found = []
    for attrs in tables:
        axes = schema.axes(attrs)
        margin = table.sum(axis=tuple(axis for axis in range(table.ndim) if axis not in axes))
        found.append((axes, np.rint(GRID * margin).astype(np.int64)))
    return found


def _worst_table(session: Session, tables: Sequence[Attrs], table: Floats, share: Fraction) -> Attrs:
    return tables[session.choose(TableScores(_models(session.schema, tables, table)), 1, share)[0]]


def _worst_cell(session: Session, tables: Sequence[Attrs], table: Floats, share: Fraction) -> Measurement:
    models = _models(session.schema, tables, table)
    cells = [(axes, cell) for axes, model in models for cell in np.ndindex(model.shape)]
    axes, cell = cells[session.choose(CellScores(models), 1, share)[0]]
    answer, _ = session.ask(Cell(axes, cell), share)
    return Measurement(axes, np.array(float(answer)), cell)
