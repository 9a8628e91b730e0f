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

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import cast

import numpy as np

from dpcipher.curator.discover import find_levels
from dpcipher.curator.event import Sensitivity
from dpcipher.curator.session import Session
from dpcipher.curator.truth import CountSource, Recoding
from dpcipher.request.shares import coarse_share, finding_share
from dpcipher.schema.binned import Binned
from dpcipher.schema.column import Column
from dpcipher.schema.schema import Schema
from dpcipher.selection.binning import BinRisk, PlannedTables, bin_risk
from dpcipher.selection.noise_model import NoiseModel
from dpcipher.selection.search import Search, level_share, open_searches, run_searches
from dpcipher.tables.domain import Counts
from dpcipher.tables.measurement import Measurement
from dpcipher.tables.query import Groups, Query

RUNS = 8  # of bins, at most; settled, as the share of coarse counts is, on generated columns (benchmarks/coarse.py)


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


def _ask(session: Session, searches: Sequence[Search], share: Fraction) -> None:
    """One level of all columns that are asked, with one share."""
    noisy, mechanism = session.query(
        f"intervals of {_names(searches)}",
        lambda truth: np.concatenate([search.asked(truth.counts((search.axis,))) for search in searches]),
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
