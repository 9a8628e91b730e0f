"""What a schema leaves open is found privately: first the levels of text columns, then the bins of columns with `bins: auto`.

Bins follow from noisy counts of intervals of a column's grid, and the edges from these. The counts are asked level by level: first of intervals that
cover the grid (columns whose range is to be found begin with a question that takes a larger share), then of the parts of those that hold enough rows
for a cut to pay. Of two parts the difference is asked, where that costs no more than their counts: what the interval holds is known already.
Everything after the noise is post-processing: which intervals are asked about next, the edges, the closed schema, and the bin of each cell of the
grid. No count that the search asked is released: edges were chosen by its noise, and estimates from it would not be unbiased. Once the edges are found,
a few runs of neighbouring bins of every column are counted anew: these coarse counts are part of the release, where they narrow sums over many bins,
which the tables blur with the noise of every bin. The tables of the found bins are measured with what is left of the charge.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

import numpy as np

from dpcipher.errors import Progress, silent
from dpcipher.privacy.budget import noise_within
from dpcipher.privacy.events import Sensitivity
from dpcipher.privacy.terms import Privacy, Unit
from dpcipher.request.request import after_levels, coarse_share, discovery_share, finding_share, selection_for
from dpcipher.request.session import Expected, Question, Session, TrueCounts
from dpcipher.schema.bins import Bins
from dpcipher.schema.columns import Column
from dpcipher.schema.open_levels import OpenLevels
from dpcipher.schema.schema import Schema
from dpcipher.selection.allocation import NoiseModel
from dpcipher.selection.edges import BinRisk, PlannedTables, bin_risk
from dpcipher.selection.search import Search, Split, level_share, open_searches
from dpcipher.tables.domain import Counts, Floats, Shape
from dpcipher.tables.query import Groups, Query

RUNS = 8  # of bins, at most; settled, as the share of coarse counts is, on generated columns (benchmarks/coarse.py)


@dataclass(frozen=True, eq=False)
class Intervals(Question):
    """Counts of disjoint intervals of a column's grid, or of two parts of an interval how many more rows the first holds.

    The code of a row on the grid follows from that row alone, and the intervals of one level are disjoint: their counts are cells of the column's table with its
    grid made coarser, some cells left out. So one person moves them by no more than a table of counts, under both relations and for any `max_rows`.
    Where a difference stands for two counts, each row that is added or removed still moves one number by one, so that m rows move the answer by at
    most m in L1 and m² in squared L2, as they do counts. A row that is replaced by another of the same interval moves it by two, which is more:
    so differences are asked under add-remove alone. Whether, and where, a further level is asked follows from noisy answers.
    """

    axis: int
    n_cells: int  # of the grid; levels beside it are not searched
    splits: tuple[Split, ...]

    def words(self, schema: Schema) -> str:
        """The column."""
        return f"intervals of {schema.attrs[self.axis]}"

    def sensitivity(self, unit: Unit, shape: Shape) -> Sensitivity:
        """That of a table of counts."""
        assert unit.relation == "add-remove" or not any(split.by_difference for split in self.splits)
        return Sensitivity.of_tables(unit)

    def of(self, counts: TrueCounts) -> Counts:
        """From the running sums of the cells."""
        return self._asked(counts.counts((self.axis,)))

    def expected(self, rows: Expected) -> Floats:
        """The same of made-up rows."""
        return self._asked(rows.cells(self.axis)).astype(float)

    def _asked(self, cells: Counts | Floats) -> Counts:
        sums = np.concatenate([[0], np.cumsum(cells[: self.n_cells])])
        return np.array([number for split in self.splits for number in split.asked(sums)], dtype=np.int64)


def find(session: Session, tables: PlannedTables, *, sets: int = 0, progress: Progress = silent) -> None:
    """Find levels and bins of all columns that leave them open, with a part of the charge, and let the session go on with the closed schema.

    Levels are found before bins: how many there are bears on how many bins pay. Coarse counts are measured for each of so many `sets` of tables; none for a
    method that could not use them.
    """
    if session.schema.discovers:
        progress("finding levels")
        _find_levels(session)
    if session.schema.is_open:
        progress("finding bins")
        _find_bins(session, tables, sets)


def check_finding(schema: Schema, privacy: Privacy, sets: int = 0) -> None:
    """Refuse a budget too small for what finding may ask; nothing private is opened."""
    selection_for(schema, privacy)
    whole = after_levels(privacy.budget, schema).composable()
    searches = open_searches(schema, privacy.unit, zcdp=whole.rho is not None)
    if searches:
        noise_within(whole, level_share(searches, schema), privacy.unit)
        noise_within(whole, coarse_share(schema) / max(sets, 1) / len(searches), privacy.unit)


def _find_levels(session: Session) -> None:
    """Close every column with `levels: discover` with the texts that are frequent enough to be named.

    The selection of texts, its threshold and the proof that it is delta-approximate rho-zCDP are in `privacy/partitions.py`. Each column takes an
    equal part of the delta that the charge has for failures, and an equal share of its rho; both add up (`privacy/composition.py`). What follows from
    the names, the closed schema and the code of every row's text in it, is post-processing and a look-up row by row.
    """
    schema = session.schema
    columns = [column for column in schema.columns if isinstance(column, OpenLevels)]
    share, delta = discovery_share(schema) / len(columns), session.failure / len(columns)
    named = {}
    for column in columns:
        named[column.name] = session.find_texts(schema.attrs.index(column.name), share, delta, column.most)
    session.remarks["levels"] = {name: len(texts) for name, texts in named.items()}
    session.close_schema(schema.closed(levels=named), {})
    session.rescale()


def _find_bins(session: Session, tables: PlannedTables, sets: int) -> None:
    """Find the bins of all open columns, with at most `finding_share` of the charge, and count them coarsely."""
    schema = session.schema
    searches = open_searches(schema, session.unit, zcdp=session.is_zcdp)
    coarse = coarse_share(schema) if sets else Fraction(0)
    noise = NoiseModel(session.part(1 - finding_share(schema) - coarse), session.unit)
    risks = _run(session, searches, lambda axis, rows: bin_risk(schema, axis, noise, rows, tables))
    edges = {search.axis: search.edges(risks[search.axis]) for search in searches}
    closed = schema.closed({search.column.name: edges[search.axis] for search in searches})
    columns = {search.axis: closed.column(search.column.name) for search in searches}
    bins: dict[str, Any] = {
        "share": str(session.of_charge(1 - session.left)),
        "found": {search.column.name: len(edges[search.axis]) - 1 for search in searches},
    }
    unbounded = [search for search in searches if search.is_unbounded]
    if unbounded:
        bins["ranges"] = {
            search.column.name: {"rows": search.rows_to_find, "guess": search.is_guess}
            for search in unbounded
        }
    session.remarks["bins"] = bins
    codes = {search.axis: search.recoding(columns[search.axis], edges[search.axis]) for search in searches}
    session.close_schema(closed, codes)
    for number in range(sets):
        for axis, column in columns.items():
            query = Query((axis,), (Groups.runs(run_starts(column), closed.shape[axis]),))
            session.kept.append(session.measure(query, coarse / sets / len(searches), set=number))
    session.rescale()


def _run(
    session: Session, searches: Sequence[Search], risk: Callable[[int, float], BinRisk]
) -> dict[int, BinRisk]:
    """Ask level by level, until no interval is worth cutting; the risk of each column's bins, by its axis.

    Columns whose range is to be found begin by themselves, with larger shares. The number of rows is public, or what the first levels tell.
    """
    each = level_share(searches, session.schema)

    def ask(asked: Sequence[Search], shares: int) -> None:
        """One level of some columns, which divide their shares equally."""
        for search in asked:
            question = Intervals(search.axis, len(search.points) - 1, tuple(search.splits))
            noisy, law = session.ask(question, each * shares / len(asked))
            search.update(noisy.astype(float), law.variance)

    for unbounded in (True, False):
        first = [search for search in searches if search.is_unbounded == unbounded]
        ask(first, sum(search.first_shares for search in first))
    rows = session.n_rows or max(1.0, float(np.mean([search.total for search in searches])))
    risks = {search.axis: risk(search.axis, float(rows)) for search in searches}
    asked = searches
    while asked := [search for search in asked if search.refine(risks[search.axis])]:
        ask(asked, len(asked))
    return risks


def run_starts(column: Column) -> list[int]:
    """The first levels of the runs: `RUNS` of about equally many bins, and every level beside the bins by itself."""
    bins = cast(Bins, column.domain).n_bins
    runs = min(RUNS, bins)
    return [*(bins * run // runs for run in range(runs)), *range(bins, column.size)]
