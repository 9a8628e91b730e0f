"""`plan`: noise, expected error, memory and time of a release, before any row is read or budget spent."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any, Literal, Required, TypedDict, Unpack, overload

import numpy as np

from dpcipher.curator.find import after_finding, given_tables
from dpcipher.curator.measure import parse_auto
from dpcipher.curator.request import MeasurementRequest, Person, Terms, make_request
from dpcipher.drawing.card import Card, Shown
from dpcipher.drawing.plot import Drawable, Plot
from dpcipher.errors import DpcipherError, ParameterError
from dpcipher.marginals.arrays import Attrs
from dpcipher.planning import page, shown
from dpcipher.planning.auto import AutoPlan, plan_auto
from dpcipher.planning.bins import BinPlan, plan_bins
from dpcipher.planning.cost import Cost, foresee
from dpcipher.planning.expected import with_expected_bins, with_expected_levels
from dpcipher.planning.held import Held, held_rows
from dpcipher.planning.levels import LevelPlan, level_plan
from dpcipher.planning.solved import solved_tvds
from dpcipher.planning.tables import TablePlan, best_weights, expected_absolute, reconciled_sds, table_plan
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.noise import Mechanism
from dpcipher.privacy.unit import Unit
from dpcipher.schema.open_column import AUTO
from dpcipher.schema.schema import Schema
from dpcipher.selection.target import Auto

# Errors after reconciling and solving need all tables in memory; beyond this many cells they are left out.
RECONCILE_CELLS = 2_000_000


@dataclass(frozen=True, repr=False)
class Plan(Shown, Drawable):
    """Noise, expected error, memory and time of a release; nothing in it comes from data."""

    budget: Budget
    unit: Unit
    sets: int
    n_rows: int | None
    n_columns: int
    tables: tuple[TablePlan, ...]
    cost: Cost
    gain: float
    warnings: tuple[str, ...]
    n_rows_told: (
        bool  # whether the release will state the exact number of rows, which changes what it protects
    )
    held: Held | None = None  # what is held of the rows until the release is done
    headings: Mapping[str, str] = field(default_factory=dict)  # what the columns are, for people
    bins: tuple[
        BinPlan, ...
    ] = ()  # of columns whose bins are found: tables are planned with as many as are expected
    levels: LevelPlan | None = None  # what will be found where levels are left open

    @property
    def n_cells(self) -> int:
        """The cells of all tables together."""
        return sum(table.n_cells for table in self.tables)

    @property
    def weights(self) -> dict[Attrs, float]:
        """The shares of the budget that minimise the total error: `measure(..., weights=plan.weights)`."""
        return {table.attrs: table.weight for table in self.tables}

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for programs."""
        return page.to_dict(self)

    def __str__(self) -> str:
        return page.to_text(self)

    def _card(self) -> Card:
        return shown.card(self)

    def _draw(self, columns: Attrs | None) -> Plot:
        return shown.draw(self, columns)


class _Promise(TypedDict, total=False):
    """Parameters of every plan."""

    epsilon: float | None
    delta: float | None
    rho: float | None
    mechanism: str | None
    unit: Required[str]
    max_rows: int
    person: str | None
    n_rows_public: bool
    sets: int
    n_rows: int | None


@overload
def plan(  # type: ignore[overload-overlap]  # "auto" is a word, though a word is a sequence of words
    schema: Schema,
    *,
    workload: Literal["auto"] | Auto,
    **promise: Unpack[_Promise],
) -> AutoPlan: ...


@overload
def plan(
    schema: Schema,
    *,
    workload: int | Sequence[Sequence[str]] = 2,
    weights: Mapping[Attrs, float] | None = None,
    **promise: Unpack[_Promise],
) -> Plan: ...


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
    **choice: Any,
) -> Plan | AutoPlan:
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
    budget = Budget.parse(
        epsilon=epsilon, delta=delta, rho=rho, mechanism=mechanism, may_fail=schema.discovers
    )
    protects, rows = Unit.parse(unit, max_rows), _checked_rows(n_rows)
    limit = None if person is None else Person(person, protects.max_rows)
    told = Terms(budget, protects, limit, n_rows_public).tells_n_rows
    auto = parse_auto(workload, weights=weights, **choice)
    held = held_rows(schema, rows, auto=auto, person=person is not None)
    if auto is not None:
        chosen = plan_auto(
            schema, auto, budget=budget, unit=protects, sets=sets, n_rows=rows, n_rows_told=told
        )
        return replace(chosen, held=held)
    assert not isinstance(workload, str | Auto)  # parse_auto refused every other word
    request_on = partial(
        make_request,
        workload=workload,
        budget=after_finding(budget, schema),
        unit=protects,
        sets=sets,
        weights=weights,
        n_rows_public=told,
    )
    request = request_on(schema)  # with the most that may be found: what `measure` refuses is refused
    levels = level_plan(schema, budget, protects, rows)
    likely = with_expected_levels(schema, levels)
    bins = plan_bins(likely, budget, protects, given_tables(request), rows, n_rows_told=told)
    planned = _plan_given(request_on(with_expected_bins(likely, bins)), rows, budget)
    warnings = (*planned.warnings, *_range_warnings(bins, rows))
    return replace(
        planned, held=held, bins=bins, levels=levels, cost=foresee(request, rows), warnings=warnings
    )


def _plan_given(request: MeasurementRequest, rows: int | None, whole: Budget) -> Plan:
    """The plan of tables that get what finding bins and levels leaves of the whole budget."""
    tables = _table_plans(request, rows)
    return Plan(
        budget=whole,
        unit=request.unit,
        sets=request.sets,
        n_rows=rows,
        n_columns=len(request.schema.attrs),
        tables=tables,
        cost=foresee(request, rows),
        gain=_gain(request, tables),
        warnings=_warnings(replace(request, budget=whole), tables, rows),
        n_rows_told=request.n_rows_public,
        headings={attr: request.schema.heading(attr) for attr in request.schema.attrs},
    )


def _table_plans(request: MeasurementRequest, n_rows: int | None) -> tuple[TablePlan, ...]:
    sizes, mechanisms = request.workload.cells, request.mechanisms
    shares = best_weights(sizes, mechanisms[0].name)
    after, solved = _after_reconciling(request, n_rows), _after_solving(request, n_rows)
    return tuple(
        table_plan(attrs, mechanism, size, n_rows, after=sd, solved=tvd, weight=share)
        for (attrs, size, mechanism), sd, tvd, share in zip(
            zip(request.workload.tables, sizes, mechanisms, strict=True), after, solved, shares, strict=True
        )
    )


def _after_reconciling(request: MeasurementRequest, n_rows: int | None) -> list[float] | list[None]:
    if request.workload.n_cells > RECONCILE_CELLS:
        return [None] * len(request.workload.tables)
    total = n_rows if request.n_rows_public else None
    return reconciled_sds(request.schema, request.workload.tables, request.mechanisms, n_rows=total)


def _after_solving(request: MeasurementRequest, n_rows: int | None) -> list[float] | list[None]:
    if n_rows is None or request.workload.n_cells > RECONCILE_CELLS:
        return [None] * len(request.workload.tables)
    return solved_tvds(request.schema.shape, request.axes, request.mechanisms, n_rows)


def _gain(request: MeasurementRequest, tables: Sequence[TablePlan]) -> float:
    """The relative decrease of the total expected error under the best weights."""
    weights = {table.attrs: table.weight for table in tables}
    best = make_request(
        request.schema,
        workload=request.workload.tables,
        budget=request.budget,
        unit=request.unit,
        sets=request.sets,
        weights=weights,
    )
    now, then = (
        _total_error(request.workload.cells, mechanisms)
        for mechanisms in (request.mechanisms, best.mechanisms)
    )
    return max(0.0, 1 - then / now)


def _total_error(sizes: Sequence[int], mechanisms: Sequence[Mechanism]) -> float:
    return sum(size * expected_absolute(mechanism) for size, mechanism in zip(sizes, mechanisms, strict=True))


def _checked_rows(n_rows: int | None) -> int | None:
    if n_rows is None:
        return None
    if isinstance(n_rows, bool) or not isinstance(n_rows, int | np.integer) or n_rows < 1:
        raise ParameterError(
            f"n_rows ({n_rows!r}) must be a whole number above 0, a public guess will do; try n_rows=1000"
        )
    return int(n_rows)


_DELTA = Fraction(1, 10**6)


def _warnings(
    request: MeasurementRequest, tables: Sequence[TablePlan], n_rows: int | None
) -> tuple[str, ...]:
    """One warning where the standard deviation of the noise exceeds the mean count of a cell, with remedies."""
    noisy = [table for table in tables if table.count is not None and table.sd > table.count]
    if n_rows is None or not noisy:
        return ()
    worst = max(noisy, key=lambda table: table.sd * table.n_cells)
    ratio = worst.sd * worst.n_cells / n_rows
    return (
        f"in {len(noisy)} of {len(tables)} tables the noise on a cell is larger than the rows it can expect. "
        f"The worst is {' × '.join(worst.attrs)}: noise of {worst.sd:,.1f} rows on {n_rows / worst.n_cells:,.1f} rows per cell. "
        f"What would help: {'; '.join(_remedies(request, worst, n_rows, ratio))}",
    )


def _range_warnings(bins: Sequence[BinPlan], n_rows: int | None) -> list[str]:
    """One warning for all columns whose range needs more rows to be found."""
    hidden = [
        found
        for found in bins
        if found.rows_to_find is not None and found.rows_to_find > (n_rows or math.inf)
    ]
    if not hidden:
        return []
    most = max(found.rows_to_find or 0 for found in hidden)
    names = ", ".join(found.column for found in hidden)
    return [
        f"{n_rows:,} rows may be too few to find the range of {names}: about {most:,} stand out of the noise. Declare min and max where they are public"
    ]


def _remedies(request: MeasurementRequest, worst: TablePlan, n_rows: int, ratio: float) -> list[str]:
    """Each with the number at which the noise equals the mean count."""
    remedies = [_larger_budget(request, ratio), f"{math.ceil(n_rows * ratio):,} rows"]
    cells = math.floor(worst.n_cells / ratio)
    if cells > 1:
        largest = max(worst.attrs, key=lambda attr: request.schema.n_cells((attr,)))
        how = "a smaller max_bins" if request.schema.parts(largest)[0].bins == AUTO else "wider bins"
        remedies.append(f"{how}: {cells} cells instead of {worst.n_cells} ({largest} has most levels)")
    gaussian = _gaussian_sd(request)
    if gaussian is not None and gaussian < worst.sd:
        remedies.append(
            f"delta={float(_DELTA):g} (Gaussian noise): {gaussian:,.1f} rows instead of {worst.sd:,.1f}"
        )
    if len(request.workload.tables) > 1:
        remedies.append("fewer tables: list those that matter, or workload=1")
    return remedies


def _larger_budget(request: MeasurementRequest, ratio: float) -> str:
    """Laplace noise goes with 1/epsilon, Gaussian noise with 1/sqrt(rho)."""
    if request.budget.rho is not None:
        return f"rho={_round_up(float(request.budget.rho) * ratio**2)}"
    return f"epsilon={_round_up(float(request.budget.epsilon or 0) * ratio)}"


def _round_up(value: float) -> str:
    """Two digits, never less than the value: what is advised must suffice.

    >>> _round_up(3.325), _round_up(0.0121)
    ('3.4', '0.013')
    """
    step = Fraction(10) ** (math.floor(math.log10(value)) - 1)
    return f"{float(math.ceil(Fraction(value) / step) * step):g}"


def _gaussian_sd(request: MeasurementRequest) -> float | None:
    """The noise that the same epsilon would buy with a small delta."""
    if request.budget.epsilon is None or request.budget.delta is not None:
        return None
    try:
        budget = Budget(epsilon=request.budget.epsilon, delta=_DELTA)
        gaussian = make_request(
            request.schema,
            workload=request.workload.tables,
            budget=budget,
            unit=request.unit,
            sets=request.sets,
        )
        return max(math.sqrt(mechanism.variance) for mechanism in gaussian.mechanisms)
    except DpcipherError:
        return None
