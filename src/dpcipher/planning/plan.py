"""`plan`: noise, expected error, memory and time of a release, before any row is read or budget spent.

A plan is a session that simulates: it takes the steps of `measure`, with a source that says what is expected of rows. Its steps are the events of a run, up to
where answers decide what is asked next.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
from dpcipher.planning.advice import clear_rows, noise_warnings, range_warnings, selection_advice
from dpcipher.planning.cost import Cost, Held, estimate_cost, held_rows
from dpcipher.planning.forecast import TablePlan, best_weights, reconciled_sds, solved_tvds, table_plan
from dpcipher.planning.simulate import BinPlan, LevelPlan, SimulatedRows, Undecided, evenly, plan_finding
from dpcipher.privacy.budget import noise_within
from dpcipher.privacy.terms import Privacy
from dpcipher.request.request import Auto, Request, check_person, coarse_share, discovery_share, finding_share
from dpcipher.request.session import Choice, Counted, Decision, Question, Session
from dpcipher.schema.schema import Schema
from dpcipher.selection.allocation import NoiseModel
from dpcipher.selection.design import design_tables
from dpcipher.selection.find import check_finding
from dpcipher.selection.rounds import n_cells
from dpcipher.selection.select import Distances, Scores, select
from dpcipher.selection.target import SelectionTarget, check_auto, fitting_orders
from dpcipher.tables.domain import Attrs, Axes
from dpcipher.tables.measurement import Measurement, Noise

WORTH = "tables worth measuring"
MANY_ROWS = 10**9  # stands for a number of rows that was not given
# Errors after reconciling and solving need all tables in memory; beyond this many cells they are left out.
RECONCILE_CELLS = 2_000_000


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
    bins: tuple[BinPlan, ...] = ()  # where bins are found: tables are planned with as many as are expected
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
    request = likely = Request.parse(schema, privacy, workload=workload, weights=weights, sets=sets)
    if request.auto is not None:
        check_auto(request.auto, schema)
    levels, bins = None, tuple[BinPlan, ...]()
    if schema.is_open:
        check_finding(schema, privacy, sets)
        levels, bins, likely = plan_finding(request, rows)
    ranges = {found.column: found.rows_to_find for found in bins if found.rows_to_find is not None}
    session = Session(likely.schema, privacy, source := SimulatedRows(likely.schema, rows or MANY_ROWS))
    closed = _set_aside(session)
    if schema.is_open:
        likely = likely.on(closed, session.part(Fraction(1)))
    facts = _given(likely, session, rows) if likely.auto is None else _selected(likely, session, source, rows)
    return Plan(
        privacy,
        sets,
        rows,
        len(closed.attrs),
        facts.pop("steps"),
        cost=estimate_cost(request, rows) if request.auto is None else None,
        warnings=(*facts.pop("warnings", ()), *range_warnings(ranges, rows)),
        held=held_rows(request, rows),
        headings={attr: closed.heading(attr) for attr in closed.attrs},
        bins=bins,
        levels=levels,
        stamp=schema.stamp,
        **facts,
    )


def _set_aside(session: Session) -> Schema:
    """Take the shares of what is planned by itself, and go on with a schema in which as much is found as is expected."""
    schema = session.schema
    for share in (discovery_share(schema), finding_share(schema) + coarse_share(schema)):
        if share:
            session.set_aside(share)
    closed = schema.stand_in()
    session.close_schema(closed, {})
    return closed


def _given(request: Request, session: Session, n_rows: int | None) -> dict[str, Any]:
    """The one step of given tables, and what to expect of each, by those of the first set."""
    measured, noises, sizes = session.measure_all(request), request.noises, request.given.cells
    (event,) = session.events
    number = len(sizes)
    after: Sequence[float | None] = [None] * number
    solved: Sequence[float | None] = after
    if request.given.n_cells <= RECONCILE_CELLS:
        total = n_rows if request.privacy.tells_n_rows else None
        after = reconciled_sds(request.schema, measured[:number], n_rows=total)
        if n_rows is not None:
            variances = [noise.variance for noise in noises]
            solved = solved_tvds(request.schema.shape, request.queries, variances, n_rows)
    weights = best_weights(sizes, noises[0].kind)
    each = zip(request.given.tables, noises, sizes, after, solved, weights, strict=True)
    tables = tuple(
        table_plan(attrs, noise, size, n_rows, after=sd, solved=tvd, weight=weight)
        for attrs, noise, size, sd, tvd, weight in each
    )
    return {
        "steps": (
            Step("tables", event.share, number, number, sqrt(fmean(noise.variance for noise in noises))),
        ),
        "tables": tables,
        "gain": _gain(request, tables),
        "warnings": noise_warnings(request, tables, n_rows),
    }


def _gain(request: Request, tables: Sequence[TablePlan]) -> float:
    """The relative decrease of the total expected error under the best weights."""
    left, weights = request.left.composable(), [Fraction(table.weight) for table in tables]
    whole = sum(weights, Fraction(0)) * request.sets
    best = {part: noise_within(left, part / whole, request.privacy.unit) for part in set(weights)}

    def error(noises: Iterable[Noise]) -> float:
        return sum(
            size * noise.mean_absolute for size, noise in zip(request.given.cells, noises, strict=True)
        )

    return max(0.0, 1 - error(best[part] for part in weights) / error(request.noises))


def _selected(
    request: Request, session: Session, source: SimulatedRows, n_rows: int | None
) -> dict[str, Any]:
    """The steps of a selection up to where answers decide, and what is known beside them."""
    assert request.auto is not None
    noise = NoiseModel(session.part(Fraction(1)), request.privacy.unit, request.sets)
    measured, decision = list[Measurement](), None
    try:
        measured = select(session, request.auto, sets=request.sets, predict=evenly)
    except Undecided as undecided:
        decision = undecided.decision
    steps = list(_steps(session, source, request.sets))
    if decision is not None:
        steps.append(Step(WORTH, session.of_charge(session.left), None, decision.candidates, None))
    return {"steps": tuple(steps), "selection": _selection(request, noise, n_rows, measured, decision, steps)}


def _steps(session: Session, source: SimulatedRows, sets: int) -> Iterator[Step]:
    """Groups of the events so far: those of one kind that follow one another."""
    asked = zip(session.events, source.asked, strict=True)
    for name, group in groupby(asked, lambda pair: _name(pair[1][0], source.shape)):
        events, questions = zip(*group, strict=True)
        share = sum((event.share for event in events), Fraction(0))
        question, sd = questions[0]
        if isinstance(question, Scores):
            yield Step(name, share, question.n_chosen, question.n_candidates, sd)
        elif isinstance(question, Distances):
            yield Step(name, share, len(question.tables), question.candidates, sd)
        else:
            yield _measuring(name, share, questions, source.shape, sets)


def _measuring(
    name: str, share: Fraction, questions: Sequence[tuple[Counted, float]], shape: Axes, sets: int
) -> Step:
    """The step in which some tables are measured, perhaps several times, and all of them in every set."""
    precisions: dict[Axes, float] = {}
    for counted, sd in questions:
        query = counted.query
        cells = math.prod(query.shape(shape)) if query.centred else 1
        precisions[query.axes] = precisions.get(query.axes, 0.0) + (cells / sd) ** 2
    # The number of rows, where the steps follow from it, is asked once.
    each = sets if len(questions) >= sets * len(precisions) else 1
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
    rows, zeros, design = float(n_rows or MANY_ROWS), request.schema.zero_masks, False
    if target.is_small:
        orders = fitting_orders(target, request.schema.domain)
        design = design_tables(target, noise, rows, orders, mixed=not zeros) is not None
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
        advice=selection_advice(noise, columns, sizes, tvd, named if design else ()),
    )


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


def _checked_rows(n_rows: int | None) -> int | None:
    if n_rows is None:
        return None
    if isinstance(n_rows, bool) or not isinstance(n_rows, int | np.integer) or n_rows < 1:
        raise ParameterError(
            f"n_rows ({n_rows!r}) must be a whole number above 0, a public guess will do; try n_rows=1000"
        )
    return int(n_rows)
