"""Bins found privately: noisy counts of intervals of an open column's grid, and from them the edges of its bins.

The counts are asked level by level: first of intervals that cover the grid (columns whose range is to be found begin with a question of their own, which
takes a larger share), then of the parts of those that hold enough rows for a cut to pay. Of two
parts the difference is asked, where that costs no more than their counts: what the interval holds is known already.
Everything after the noise is post-processing: which intervals are asked about next, the edges, the closed schema, and the bin of each cell of the
grid. No count that the search asked is released: edges were chosen by its noise, and estimates from it would not be unbiased. Once the edges are found,
a few runs of neighbouring bins of every column are counted anew: these coarse counts are part of the release, where they narrow sums over many bins,
which the tables blur with the noise of every bin. The tables of the found bins are measured with what is left of the charge.

Sensitivity. The intervals of one level are disjoint, and so are the runs, so their counts are cells of a table: that of the column with its grid made
coarser, some cells left out. The code of a row on the grid follows from that row alone. So one person moves the counts of one column at one level by no more than a table of
counts, in L1 and in L2: `unit.l1` and `unit.l2_squared`, under both relations and for any `max_rows`. The counts of k columns, asked together, move by
k times that in L1, and by k times that in squared L2 (`_sensitivity`). Where a difference of two counts stands for both, each row that is added or
removed still moves one number by one, so that m rows move it by at most m in L1 and m² in squared L2, as they do counts. A row that is replaced by another of the
same interval moves it by two, which is more: so differences are asked under add-remove alone. Whether, and where, a further level is asked follows from
noisy answers, and so do the runs.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import cast

import numpy as np

from dpcipher.curator.discover import discovery_share, find_levels
from dpcipher.curator.event import Sensitivity
from dpcipher.curator.intervals import Search
from dpcipher.curator.request import MeasurementRequest
from dpcipher.curator.session import Session
from dpcipher.curator.truth import CountSource, Recoding
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.unit import Unit
from dpcipher.schema.binned import Binned
from dpcipher.schema.column import Column
from dpcipher.schema.open_column import AUTO
from dpcipher.schema.schema import Schema
from dpcipher.selection.binning import BinRisk, PlannedTables, bin_risk
from dpcipher.selection.noise_model import NoiseModel
from dpcipher.selection.rounds import FEW
from dpcipher.tables.domain import Counts
from dpcipher.tables.measurement import Measurement
from dpcipher.tables.query import Groups, Query

MOST, EACH = Fraction(1, 10), Fraction(1, 30)  # of the charge: for all open columns, and for one
COARSE = Fraction(1, 2)  # of what finding may take: what coarse counts take beside it
RUNS = 8  # of bins, at most; both settled on generated columns (benchmarks/coarse.py)


def finding_share(schema: Schema) -> Fraction:
    """The most that finding bins takes of the charge: a thirtieth for every open column, up to a tenth."""
    n_open = sum(column.is_open and not column.discovers for column in schema.columns)
    return min(MOST, EACH * n_open)


def coarse_share(schema: Schema) -> Fraction:
    """What coarse counts of found bins take of the charge, beside the search."""
    return COARSE * finding_share(schema)


def level_share(searches: Sequence[Search], schema: Schema) -> Fraction:
    """What one level of one column takes: all have the same, and what is not asked for is left for the tables."""
    return finding_share(schema) / sum(search.shares for search in searches)


def after_finding(budget: Budget, schema: Schema) -> Budget:
    """What is left of a budget for tables, at least: all of it where there is nothing to find."""
    share, budget = finding_share(schema) + coarse_share(schema), after_levels(budget, schema)
    return budget.share(1 - share) if share else budget


def after_levels(budget: Budget, schema: Schema) -> Budget:
    """What finding levels leaves of a budget: all of it where there are none to find."""
    return budget.failing().share(1 - discovery_share(schema)) if schema.discovers else budget


def given_tables(request: MeasurementRequest) -> PlannedTables:
    """Tables that were asked for: as many as there are in all sets, of their typical order."""
    return typical_tables([len(attrs) for attrs in request.workload.tables], request.sets)


def typical_tables(orders: Sequence[int], sets: int) -> PlannedTables:
    """So many tables as there are orders, in every set, of the mean order."""
    return PlannedTables(round(sum(orders) / len(orders)), len(orders) * sets)


def chosen_pairs(schema: Schema, sets: int) -> PlannedTables:
    """Tables that are yet to be chosen: a few pairs per column, as a shortlist has them, or all."""
    columns = len(schema.attrs)
    return PlannedTables(2, max(1, min(math.comb(columns, 2), FEW * columns)) * sets)


def find_bins(
    session: Session, tables: PlannedTables, *, sets: int = 0, say: Callable[[str], None] = lambda _: None
) -> None:
    """Find the bins of all open columns, with at most `finding_share` of the charge, and let the session go on with the closed schema.

    Coarse counts are measured for each of so many `sets` of tables; none for a method that could not use them. Levels are found before bins: how many
    there are bears on how many bins pay.
    """
    find_levels(session, say=say)
    if not session.schema.is_open:
        return
    say("finding bins")
    share = finding_share(session.schema)
    searches = open_searches(session.schema, session.unit, zcdp=session.is_zcdp)
    each = level_share(searches, session.schema)
    coarse = coarse_share(session.schema) if sets else Fraction(0)
    noise = NoiseModel(session.part(1 - share - coarse), session.unit)
    risks = run_searches(
        searches,
        lambda asked, shares: _ask(session, asked, each * shares),
        lambda axis, rows: bin_risk(session.schema, axis, noise, rows, tables),
        n_rows=session.n_rows,
    )
    _close(session, searches, risks, sets)


def run_searches(
    searches: Sequence[Search],
    ask: Callable[[Sequence[Search], int], None],
    risk: Callable[[int, float], BinRisk],
    *,
    n_rows: int | None,
) -> dict[int, BinRisk]:
    """Ask level by level, until no interval is worth cutting; the risk of each column's bins, by its axis.

    `ask` asks one level of some columns, with so many shares of a level; `risk` is that of the bins of an axis of so many rows. The number of rows is
    public, or what the first level tells. A plan that rehearses a search with made-up rows takes the same steps.
    """
    for first in _with_first_shares(searches):
        ask(first, sum(search.first_shares for search in first))
    rows = n_rows or max(1.0, float(np.mean([search.total for search in searches])))
    risks = {search.axis: risk(search.axis, float(rows)) for search in searches}
    asked = searches
    while asked := [search for search in asked if search.refine(risks[search.axis])]:
        ask(asked, len(asked))
    return risks


def open_searches(schema: Schema, unit: Unit, *, zcdp: bool) -> list[Search]:
    """A search for every column with open bins; none of them is part of a compound."""
    grid, differences = schema.on_grid(), zcdp and unit.relation == "add-remove"
    return [
        Search(schema.column(attr), grid.column(attr), axis, zcdp=zcdp, differences=differences)
        for axis, attr in enumerate(schema.attrs)
        if attr not in schema.compounds and schema.column(attr).bins == AUTO
    ]


def _with_first_shares(searches: Sequence[Search]) -> list[list[Search]]:
    """Those whose range is to be found, and the others: each kind is a question of its own, since the first begins with a larger share."""
    unbounded = [search for search in searches if search.is_unbounded]
    bounded = [search for search in searches if not search.is_unbounded]
    return [kind for kind in (unbounded, bounded) if kind]


def _ask(session: Session, searches: Sequence[Search], share: Fraction) -> None:
    """One level of all columns that are asked, with one share."""
    noisy, mechanism = session.query(
        f"intervals of {_names(searches)}",
        lambda truth: np.concatenate([search.truth(truth) for search in searches]),
        share,
        sensitivity=_sensitivity(len(searches)),
    )
    ends = np.cumsum([search.n_asked for search in searches])
    for search, answers in zip(searches, np.split(noisy, ends[:-1]), strict=True):
        search.learn(answers.astype(float), mechanism.variance)


def _names(searches: Sequence[Search]) -> str:
    return ", ".join(search.column.name for search in searches)


def _sensitivity(columns: int) -> Sensitivity:
    """How far one person moves the counts of one level of so many columns: see the proof at the top."""
    return Sensitivity(Fraction(columns), Fraction(columns))


def _close(session: Session, searches: Sequence[Search], risks: Mapping[int, BinRisk], sets: int) -> None:
    """The closed schema, the bin of each cell of the grid, a remark on both for the certificate, and the coarse counts of the bins."""
    edges = {search.column.name: search.edges(risks[search.axis]) for search in searches}
    schema = session.schema.closed(edges)
    codes = {
        search.axis: search.recoding(schema.column(name), edges[name])
        for search in searches
        for name in [search.column.name]
    }
    found = {name: len(points) - 1 for name, points in edges.items()}
    ranges = {
        search.column.name: {"rows": search.rows_to_find, "guess": search.is_guess}
        for search in searches
        if search.is_unbounded
    }
    note = {"share": str(session.of_charge(1 - session.left)), "found": found}
    session.remark("bins", note | ({"ranges": ranges} if ranges else {}))
    for number in range(sets):
        _measure_coarse(session, searches, schema, codes, coarse_share(session.schema) / sets, number)
    session.go_on(schema, codes)


def _measure_coarse(
    session: Session,
    searches: Sequence[Search],
    schema: Schema,
    codes: Recoding,
    share: Fraction,
    number: int,
) -> None:
    """The coarse counts of all found bins for one set of tables, with one share."""
    starts = [run_starts(schema.column(search.column.name)) for search in searches]
    noisy, mechanism = session.query(
        f"runs of bins of {_names(searches)}",
        lambda truth: np.concatenate(
            [_run_counts(truth, s.axis, codes, first) for s, first in zip(searches, starts, strict=True)]
        ),
        share,
        sensitivity=_sensitivity(len(searches)),
    )
    parts = np.split(noisy, np.cumsum([len(first) for first in starts])[:-1])
    for search, first, counts in zip(searches, starts, parts, strict=True):
        query = Query((search.axis,), (Groups.runs(first, schema.shape[search.axis]),))
        session.keep(Measurement(query, counts.reshape(query.shape(schema.shape)), mechanism, number))


def run_starts(column: Column) -> list[int]:
    """The first levels of the runs: `RUNS` of about equally many bins, and every level beside the bins by itself."""
    bins = cast(Binned, column.domain).n_bins
    runs = min(RUNS, bins)
    return [*(bins * run // runs for run in range(runs)), *range(bins, column.size)]


def _run_counts(truth: CountSource, axis: int, codes: Recoding, starts: Sequence[int]) -> Counts:
    """The true counts of runs of levels, from those of the grid and the level of each of its cells. Private."""
    levels = np.zeros(int(codes[axis].max()) + 1, dtype=np.int64)
    np.add.at(levels, codes[axis], truth.counts((axis,)))
    return np.asarray(np.add.reduceat(levels, starts))
