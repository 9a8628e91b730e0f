"""`plan`: noise, expected error, memory and time of a release, before any row is read or budget spent.

A plan is a session that simulates: it takes the steps of `measure`, with a source that says what is expected of rows. Its steps are the events of a run, up to
where answers decide what is asked next.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import groupby
from math import sqrt
from statistics import fmean
from typing import Any

import numpy as np

from dpcipher.drawing.card import Card, Shown
from dpcipher.drawing.curator_only import UNSIGNED
from dpcipher.drawing.plot import Drawable, Plot
from dpcipher.errors import ParameterError
from dpcipher.planning import page
from dpcipher.planning.advice import (
    clear_rows,
    designed_advice,
    noise_warnings,
    range_warnings,
    selection_advice,
)
from dpcipher.planning.cost import Cost, Held, estimate_cost, held_rows
from dpcipher.planning.forecast import TablePlan, best_weights, reconciled_sds, solved_tvds, table_plan
from dpcipher.planning.simulate import (
    SimulatedRows,
    Undecided,
    evenly,
    rehearse_finding,
    with_expected_bins,
    with_expected_levels,
)
from dpcipher.privacy.budget import noise_for, percent, show
from dpcipher.privacy.events import Event
from dpcipher.privacy.terms import Privacy
from dpcipher.request.request import (
    Auto,
    Request,
    after_levels,
    check_person,
    coarse_share,
    discovery_share,
    finding_share,
    selection_for,
    table_shares,
)
from dpcipher.request.session import Choice, Counted, Decision, Question, Session
from dpcipher.schema.schema import Schema
from dpcipher.selection.allocation import GUMBEL, NoiseModel
from dpcipher.selection.design import design_tables
from dpcipher.selection.edges import bin_risk, clear_of_noise, planned_tables
from dpcipher.selection.find import check_finding
from dpcipher.selection.rounds import n_cells
from dpcipher.selection.search import level_share, open_searches
from dpcipher.selection.select import Distances, Scores, select
from dpcipher.selection.target import SelectionTarget, check_auto, fitting_orders
from dpcipher.tables.domain import Attrs, Axes
from dpcipher.tables.measurement import Measurement, Noise

WORTH = "tables worth measuring"
MANY_ROWS = 10**9  # stands for a number of rows that was not given
# Errors after reconciling and solving need all tables in memory; beyond this many cells they are left out.
RECONCILE_CELLS = 2_000_000
USUALLY = 0.95
TEXTS = 256  # that rows are taken to hold: the second is half as frequent as the first, the third a third, and so on


@dataclass(frozen=True)
class Step:
    """One step: its share of the budget, how many tables out of how many it is about, and the standard deviation of its noise in rows.

    `tables` and `sd` are None where the rows decide which tables are measured.
    """

    name: str
    share: Fraction
    tables: int | None
    of: int
    sd: float | None


@dataclass(frozen=True)
class BinPlan:
    """The search for the bins of one open column.

    At most `share` of the budget is spent, over at most `levels` levels, each with noise of standard deviation `sd` on the count of an interval. At most
    `most` bins are found, and an interval is cut where its noisy count is above `rows_to_cut`. `found` has the bins that a rehearsal found of rows that are even,
    bell-shaped, skewed or of few values, and `expected` their mean: these need a number of rows. Coarse counts of the bins then take `coarse`. A range that is
    to be found stands out of the noise from `rows_to_find` rows on; None where it is declared.
    """

    column: str
    share: Fraction
    levels: int
    sd: float
    most: int
    expected: int | None
    rows_to_cut: int | None
    is_unbounded: bool
    coarse: Fraction = Fraction(0)
    found: Mapping[str, int] = field(default_factory=dict)
    rows_to_find: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for programs."""
        return vars(self) | {"share": str(self.share), "coarse": str(self.coarse), "found": dict(self.found)}


@dataclass(frozen=True)
class LevelPlan:
    """What finding levels takes of the budget, and what it finds: a text of `half` rows every other time, of `usually` rows 19 times out of 20.

    No more than `most` texts of a column can have so many rows, and `expected` of them do where the k-th text is a k-th as frequent as the first: these need a
    number of rows.
    """

    columns: tuple[str, ...]
    share: Fraction
    delta: Fraction
    threshold: int
    half: int
    usually: int
    most: int | None = None
    expected: int | None = None

    def lines(self) -> list[str]:
        """For people."""
        names = ", ".join(self.columns)
        found = f"a text of {self.half:,} rows is found every other time, of {self.usually:,} rows 19 times out of 20"
        if self.expected is not None:
            found += f"; about {self.expected:,} in a column where the k-th text is 1/k as frequent as the first, never more than {self.most:,}"
        cost = f"{percent(self.share)} of the budget, and delta = {show(self.delta)} that a lone text shows"
        return [f"Levels   {names}: {found}; {cost}. Rarer texts become other."]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for programs."""
        return {
            **vars(self),
            "columns": list(self.columns),
            "share": str(self.share),
            "delta": str(self.delta),
        }


@dataclass(frozen=True)
class SelectionPlan:
    """What is known before tables are selected; nothing in it comes from data.

    `design` says that the tables follow from the number of rows alone, as for every small table: nothing is looked at before. Otherwise
    `clear_rows` is the number of rows from which the distances of all candidate pairs are read; with fewer, those of a shortlist.
    `second_tvd` is the mean TVD of the pairs from independence at which the second round is held; None where it never is, or no number of
    rows was given. `all_pairs_tvd` is the mean TVD from noise alone if all candidate pairs were measured with equal shares, and `solved_tvd` what is
    expected of pairs in a solved release (`solved_tvds`); None unless it is known that all of them will be measured.
    """

    max_cells: int
    pairs: int
    triples: int
    larger: int
    design: bool
    clear_rows: int
    second_tvd: float | None
    all_pairs_tvd: float | None
    solved_tvd: float | None
    advice: str


@dataclass(frozen=True, repr=False)
class Plan(Shown, Drawable):
    """Noise, expected error, memory and time of a release; nothing in it comes from data.

    `steps` are the events of a run. Where tables are selected there is a `selection`, and `tables` and `cost` are not known.
    """

    privacy: Privacy
    sets: int
    n_rows: int | None
    n_columns: int
    steps: tuple[Step, ...]
    tables: tuple[TablePlan, ...] = ()
    cost: Cost | None = None
    gain: float = 0.0
    warnings: tuple[str, ...] = ()
    held: Held | None = None  # what is held of the rows until the release is done
    headings: Mapping[str, str] = field(default_factory=dict)  # what the columns are, for people
    bins: tuple[
        BinPlan, ...
    ] = ()  # of columns whose bins are found: tables are planned with as many as are expected
    levels: LevelPlan | None = None  # what will be found where levels are left open
    selection: SelectionPlan | None = None  # where tables are selected
    stamp: str = UNSIGNED  # that of the schema: sizes of a draft are private facts

    @property
    def n_cells(self) -> int:
        """The cells of all tables together."""
        return sum(table.n_cells for table in self.tables)

    @property
    def weights(self) -> dict[Attrs, float]:
        """The shares of the budget that minimise the total error: `measure(..., weights=plan.weights)`."""
        return {table.attrs: table.weight for table in self.tables}

    @property
    def predicted(self) -> bool:
        """Whether it is known which tables will be measured; else the rows decide, and it may be none but single columns."""
        return all(step.tables is not None for step in self.steps)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for programs."""
        return self._stamped(page.to_dict(self))

    def _text(self) -> str:
        return page.to_text(self)

    def _card(self) -> Card:
        return page.card(self)

    def _draw(self, columns: Attrs | None) -> Plot:
        return page.draw(self, columns)


def plan(
    schema: Schema,
    *,
    workload: int | str | Auto | Sequence[Sequence[str]] = 2,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    mechanism: str | None = None,
    unit: str,
    max_rows: int = 1,
    person: str | None = None,
    n_rows_public: bool = False,
    sets: int = 1,
    weights: Mapping[Attrs, float] | None = None,
    n_rows: int | None = None,
) -> Plan:
    """Plan a release made with the same parameters: cells, noise, expected error, memory and time.

    No data is read. `n_rows` is a rough size of the table, from public knowledge; with it, errors are also given as total variation
    distances, and counts smaller than their noise are warned of. With workload="auto" the tables are not known yet: the plan gives the
    candidates, the steps of the selection with their shares and noise, and whether to select at all.

    >>> import dpcipher as dc
    >>> schema = dc.Schema.from_domain({"age": 10, "sex": 2, "region": 8})
    >>> plan = dc.plan(schema, workload=2, epsilon=1.0, unit="add-remove", n_rows=20_000)
    >>> plan.n_cells, round(plan.tables[0].sd, 1)
    (116, 4.2)
    """
    privacy = Privacy.parse(
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        mechanism=mechanism,
        unit=unit,
        max_rows=max_rows,
        person=person,
        n_rows_public=n_rows_public,
        may_fail=schema.discovers,
    )
    rows = _checked_rows(n_rows)
    check_person(schema, privacy.cap)
    request = Request.parse(schema, privacy, workload=workload, weights=weights, sets=sets)
    if request.auto is not None:
        check_auto(request.auto, schema)
    if schema.is_open:
        check_finding(schema, privacy, sets)
    levels = level_plan(schema, privacy, rows)
    likely = request.on(with_expected_levels(schema, None if levels is None else levels.expected))
    bins = plan_bins(likely, rows)
    likely = likely.on(with_expected_bins(likely.schema, {b.column: b.expected for b in bins if b.expected}))
    made = _planned(likely, rows)
    ranges = {found.column: found.rows_to_find for found in bins if found.rows_to_find is not None}
    return replace(
        made,
        privacy=privacy,
        held=held_rows(request, rows),
        bins=bins,
        levels=levels,
        cost=estimate_cost(request, rows) if request.auto is None else None,
        warnings=(*made.warnings, *range_warnings(ranges, rows)),
        stamp=schema.stamp,
    )


def _planned(request: Request, n_rows: int | None) -> Plan:
    """The plan of tables, given or selected, that get what finding levels and bins leaves of the budget."""
    source = SimulatedRows(request.schema, n_rows or MANY_ROWS)
    session = Session(request.schema, request.privacy, source)
    for share in (
        discovery_share(request.schema),
        finding_share(request.schema) + coarse_share(request.schema),
    ):
        if share:
            session.set_aside(share)
    closed = request.schema.stand_in()
    session.close_schema(closed, {})
    request = request.on(closed, session.part(Fraction(1))) if closed is not request.schema else request
    noise = NoiseModel(session.part(Fraction(1)), request.privacy.unit, request.sets)
    measured: Sequence[Measurement] = ()
    decision: Decision | None = None
    try:
        measured = (
            session.measure_all(request)
            if request.auto is None
            else select(session, request.auto, sets=request.sets, predict=evenly)
        )
    except Undecided as undecided:
        decision = undecided.decision
    steps = tuple(_steps(session, source, request.sets))
    if decision is not None:
        rest = session.of_charge(session.left)
        steps = (*steps, Step(WORTH, rest, None, decision.candidates, None))
    made = Plan(request.privacy, request.sets, n_rows, len(closed.attrs), steps)
    if request.auto is not None:
        return replace(made, selection=_selection(request, noise, n_rows, measured, decision, steps))
    tables = _table_plans(request, measured[: len(request.given.tables)], n_rows)
    return replace(
        made,
        tables=tables,
        gain=_gain(request, tables),
        warnings=noise_warnings(request, tables, n_rows),
        headings={attr: closed.heading(attr) for attr in closed.attrs},
    )


def _steps(session: Session, source: SimulatedRows, sets: int) -> Iterator[Step]:
    """Groups of the events so far: those of one kind that follow one another."""
    first = session.events[0]
    if (
        first.type == "tables"
        and (first.tables or 0) * (first.sets or 0) == len(source.asked)
        and len(session.events) == 1
    ):
        variances = [noise.variance for _, noise in source.asked if isinstance(noise, Noise)]
        yield Step("tables", first.share, first.tables, first.tables or 0, sqrt(fmean(variances)))
        return
    asked = zip(session.events, source.asked, strict=True)
    for name, group in groupby(asked, lambda pair: _name(pair[1][0], source.shape)):
        yield _step(name, list(group), source.shape, sets)


def _step(
    name: str, group: Sequence[tuple[Event, tuple[Question | Choice, Noise | float]]], shape: Axes, sets: int
) -> Step:
    """One step of events that have the same name."""
    share = sum((event.share for event, _ in group), Fraction(0))
    question, noise = group[0][1]
    if isinstance(noise, float):
        assert isinstance(question, Scores)
        return Step(name, share, question.n_chosen, question.n_candidates, GUMBEL * noise)
    if isinstance(question, Distances):
        return Step(name, share, len(question.tables), question.candidates, sqrt(noise.variance))
    precisions: dict[Axes, float] = {}
    for _, (counted, law) in group:
        assert isinstance(counted, Counted)
        assert isinstance(law, Noise)
        cells = math.prod(counted.query.shape(shape)) if counted.query.centred else 1
        axes = counted.query.axes
        precisions[axes] = precisions.get(axes, 0.0) + cells**2 / law.variance
    # A table is measured in every set; the number of rows, where the steps follow from it, once.
    each = sets if len(group) >= sets * len(precisions) else 1
    sd = sqrt(fmean(each / precision for precision in precisions.values()))
    return Step(name, share, len(precisions), len(precisions), sd)


def _name(question: Question | Choice, shape: Axes) -> str:
    """What a step is called: by the columns of more than one level that its tables have."""
    if isinstance(question, Scores):
        return f"shortlist of {_tables_of(len(question.distances.tables[0]))}"
    if isinstance(question, Distances):
        return f"distances of {_tables_of(len(question.tables[0]))}"
    assert isinstance(question, Counted)
    axes = question.query.axes
    return _tables_of(max(1, sum(shape[axis] > 1 for axis in axes))) if axes else "number of rows"


def _tables_of(order: int) -> str:
    return {1: "one-way tables", 2: "pairs", 3: "triples"}.get(order, f"tables of {order} columns")


def _selection(
    request: Request,
    noise: NoiseModel,
    n_rows: int | None,
    measured: Sequence[Measurement],
    decision: Decision | None,
    steps: Sequence[Step],
) -> SelectionPlan:
    """What is known of a selection beside its steps."""
    assert request.auto is not None
    target, columns = SelectionTarget.of(request.auto, request.schema), len(request.schema.attrs)
    sizes = n_cells(target.shape, list(target.tables(2)))
    design = target.is_small and _is_designed(target, noise, float(n_rows or MANY_ROWS), request.schema)
    tvd = noise.mean_tvd(sizes, n_rows) if n_rows and sizes else None
    counts = {order: target.count_tables(order) for order in range(3, target.max_order + 1)}
    named = [step.name for step in steps if step.name != "number of rows"]
    second = None if decision is None or not n_rows else decision.second
    return SelectionPlan(
        max_cells=request.auto.max_cells,
        pairs=len(sizes),
        triples=counts.get(3, 0),
        larger=sum(count for order, count in counts.items() if order > 3),
        design=design,
        clear_rows=0 if design else clear_rows(noise, sizes),
        second_tvd=None if second is None or not n_rows else second / n_rows,
        all_pairs_tvd=tvd,
        solved_tvd=_solved_pairs(target, measured, n_rows),
        advice=designed_advice(named) if design else selection_advice(noise, columns, sizes, tvd),
    )


def _is_designed(target: SelectionTarget, noise: NoiseModel, rows: float, schema: Schema) -> bool:
    orders = fitting_orders(target, schema.domain)
    return design_tables(target, noise, rows, orders, mixed=not schema.zero_masks) is not None


def _solved_pairs(
    target: SelectionTarget, measured: Sequence[Measurement], n_rows: int | None
) -> float | None:
    """The mean TVD that is expected of solved pairs, where it is known that all of them are measured."""
    pairs, precisions = list(target.tables(2)), dict[Axes, float]()
    for one in measured:
        if one.set == 0:
            precisions[one.query.axes] = precisions.get(one.query.axes, 0.0) + 1 / one.in_rows()[1]
    if not n_rows or not pairs or not set(pairs) <= set(precisions):
        return None
    tables = [*pairs, *(axes for axes in precisions if axes not in set(pairs))]
    variances = [1 / precisions[axes] for axes in tables]
    return fmean(solved_tvds(target.shape, tables, variances, n_rows)[: len(pairs)])


def _table_plans(
    request: Request, measured: Sequence[Measurement], n_rows: int | None
) -> tuple[TablePlan, ...]:
    """What to expect of each given table, by those of the first set."""
    sizes, mechanisms = request.given.cells, request.noises
    after: Sequence[float | None] = [None] * len(sizes)
    solved: Sequence[float | None] = after
    if request.given.n_cells <= RECONCILE_CELLS:
        total = n_rows if request.privacy.tells_n_rows else None
        after = reconciled_sds(request.schema, measured, n_rows=total)
        if n_rows is not None:
            variances = [noise.variance for noise in mechanisms]
            solved = solved_tvds(request.schema.shape, request.queries, variances, n_rows)
    each = zip(
        request.given.tables,
        mechanisms,
        sizes,
        after,
        solved,
        best_weights(sizes, mechanisms[0].kind),
        strict=True,
    )
    return tuple(
        table_plan(attrs, noise, size, n_rows, after=sd, solved=tvd, weight=weight)
        for attrs, noise, size, sd, tvd, weight in each
    )


def _gain(request: Request, tables: Sequence[TablePlan]) -> float:
    """The relative decrease of the total expected error under the best weights."""
    weights = {table.attrs: table.weight for table in tables}
    best = replace(request, shares=table_shares(request.given, weights, request.sets))
    now, then = (
        _total_error(request.given.cells, mechanisms) for mechanisms in (request.noises, best.noises)
    )
    return max(0.0, 1 - then / now)


def _total_error(sizes: Sequence[int], mechanisms: Sequence[Noise]) -> float:
    return sum(size * mechanism.mean_absolute for size, mechanism in zip(sizes, mechanisms, strict=True))


def plan_bins(request: Request, n_rows: int | None) -> tuple[BinPlan, ...]:
    """The searches for all open columns; none of a closed schema."""
    schema, privacy = request.schema, request.privacy
    if not finding_share(schema):
        return ()
    tables = planned_tables(request)
    whole, rest = after_levels(privacy.budget, schema).composable(), 1 - discovery_share(schema)
    searches = open_searches(schema, privacy.unit, zcdp=whole.rho is not None)
    each, coarse = level_share(searches, schema), coarse_share(schema)
    noise = NoiseModel(whole.share(1 - finding_share(schema) - coarse), privacy.unit)
    found = {} if n_rows is None else rehearse_finding(request, n_rows)
    unbounded = [search.first_shares for search in searches if search.is_unbounded]
    # Ranges that are to be found begin together.
    first = noise_for(whole.share(each * (Fraction(sum(unbounded), len(unbounded) or 1) or 1)), privacy.unit)
    later = noise_for(whole.share(each), privacy.unit)
    plans = []
    for search in searches:
        sd, bins = sqrt(search.settled(later.variance)), found.get(search.column.name, {})
        clear = clear_of_noise(search.most, laplace=not noise.is_zcdp) * sd
        cut = None
        if n_rows is not None:
            cut = round(
                bin_risk(schema, search.axis, noise, float(n_rows), tables).price(search.most) + clear
            )
        plans.append(
            BinPlan(
                search.column.name,
                each * search.shares * rest,
                search.levels,
                sd,
                search.most,
                round(fmean(bins.values())) if bins else None,
                cut,
                search.is_unbounded,
                coarse / len(searches) * rest,
                bins,
                search.rows_to_find_at(first.variance) if search.is_unbounded else None,
            )
        )
    return tuple(plans)


def level_plan(schema: Schema, privacy: Privacy, n_rows: int | None = None) -> LevelPlan | None:
    """What a release with this budget would find; None where the schema leaves no levels open. Refused as `measure` would."""
    chosen = selection_for(schema, privacy)
    if chosen is None:
        return None
    names = tuple(column.name for column in schema.columns if column.discovers)
    return LevelPlan(
        columns=names,
        share=discovery_share(schema),
        delta=chosen.delta * len(names),
        threshold=chosen.threshold,
        half=chosen.found_at(0.5),
        usually=chosen.found_at(USUALLY),
        most=None if n_rows is None else max(1, n_rows // max(chosen.threshold, 1)),
        expected=None if n_rows is None else _expected(n_rows, chosen.threshold),
    )


def _expected(n_rows: int, threshold: int) -> int:
    """The texts that reach the threshold where the k-th of `TEXTS` is a k-th as frequent as the first; at least one is foreseen.

    >>> _expected(6_000, 100)  # the first has a sixth of the rows
    9
    """
    first = n_rows / math.fsum(1 / k for k in range(1, TEXTS + 1))
    return max(1, min(TEXTS, math.floor(first / max(threshold, 1))))


def _checked_rows(n_rows: int | None) -> int | None:
    if n_rows is None:
        return None
    if isinstance(n_rows, bool) or not isinstance(n_rows, int | np.integer) or n_rows < 1:
        raise ParameterError(
            f"n_rows ({n_rows!r}) must be a whole number above 0, a public guess will do; try n_rows=1000"
        )
    return int(n_rows)
