"""`plan`: noise, expected error, memory and time of a release, before any row is read or budget spent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Required, TypedDict, Unpack, overload

import numpy as np

from dpcipher.drawing.card import Card, Shown
from dpcipher.drawing.curator_only import UNSIGNED
from dpcipher.drawing.plot import Drawable, Plot
from dpcipher.errors import ParameterError
from dpcipher.planning import page, shown
from dpcipher.planning.auto import AutoPlan, plan_auto
from dpcipher.planning.bins import BinPlan, plan_bins
from dpcipher.planning.cost import Cost, foresee
from dpcipher.planning.expected import with_expected_bins, with_expected_levels
from dpcipher.planning.held import Held, held_rows
from dpcipher.planning.levels import LevelPlan, level_plan
from dpcipher.planning.remedies import noise_warnings, range_warnings
from dpcipher.planning.solved import solved_tvds
from dpcipher.planning.tables import TablePlan, best_weights, reconciled_sds, table_plan
from dpcipher.privacy.terms import Privacy
from dpcipher.request.auto import Auto
from dpcipher.request.request import Request, check_person
from dpcipher.request.shares import table_shares
from dpcipher.schema.schema import Schema
from dpcipher.selection.binning import planned_tables
from dpcipher.selection.find import check_finding
from dpcipher.selection.limits import check_auto
from dpcipher.tables.domain import Attrs
from dpcipher.tables.measurement import Noise

# Errors after reconciling and solving need all tables in memory; beyond this many cells they are left out.
RECONCILE_CELLS = 2_000_000


@dataclass(frozen=True, repr=False)
class Plan(Shown, Drawable):
    """Noise, expected error, memory and time of a release; nothing in it comes from data."""

    privacy: Privacy
    sets: int
    n_rows: int | None
    n_columns: int
    tables: tuple[TablePlan, ...]
    cost: Cost
    gain: float
    warnings: tuple[str, ...]
    held: Held | None = None  # what is held of the rows until the release is done
    headings: Mapping[str, str] = field(default_factory=dict)  # what the columns are, for people
    bins: tuple[
        BinPlan, ...
    ] = ()  # of columns whose bins are found: tables are planned with as many as are expected
    levels: LevelPlan | None = None  # what will be found where levels are left open
    stamp: str = UNSIGNED  # that of the schema: sizes of a draft are private facts

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
        return self._stamped(page.to_dict(self))

    def _text(self) -> str:
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
    check_auto(request)
    check_finding(schema, privacy, sets)
    held = held_rows(request, rows)
    if request.auto is not None:
        return replace(plan_auto(request, rows), held=held, stamp=schema.stamp)
    levels = level_plan(schema, privacy, rows)
    likely = with_expected_levels(schema, levels)
    bins = plan_bins(likely, privacy, planned_tables(request), rows)
    planned = _plan_given(request.on(with_expected_bins(likely, bins)), rows)
    warnings = (*planned.warnings, *range_warnings(bins, rows))
    return replace(
        planned,
        held=held,
        bins=bins,
        levels=levels,
        cost=foresee(request, rows),
        warnings=warnings,
        stamp=schema.stamp,
    )


def _plan_given(request: Request, rows: int | None) -> Plan:
    """The plan of tables that get what finding bins and levels leaves of the budget."""
    tables = _table_plans(request, rows)
    return Plan(
        privacy=request.privacy,
        sets=request.sets,
        n_rows=rows,
        n_columns=len(request.schema.attrs),
        tables=tables,
        cost=foresee(request, rows),
        gain=_gain(request, tables),
        warnings=noise_warnings(request, tables, rows),
        headings={attr: request.schema.heading(attr) for attr in request.schema.attrs},
    )


def _table_plans(request: Request, n_rows: int | None) -> tuple[TablePlan, ...]:
    sizes, mechanisms = request.given.cells, request.mechanisms
    shares = best_weights(sizes, mechanisms[0].kind)
    after, solved = _after_reconciling(request, n_rows), _after_solving(request, n_rows)
    return tuple(
        table_plan(attrs, mechanism, size, n_rows, after=sd, solved=tvd, weight=share)
        for (attrs, size, mechanism), sd, tvd, share in zip(
            zip(request.given.tables, sizes, mechanisms, strict=True), after, solved, shares, strict=True
        )
    )


def _after_reconciling(request: Request, n_rows: int | None) -> list[float] | list[None]:
    if request.given.n_cells > RECONCILE_CELLS:
        return [None] * len(request.given.tables)
    total = n_rows if request.privacy.tells_n_rows else None
    return reconciled_sds(request.schema, request.given.tables, request.mechanisms, n_rows=total)


def _after_solving(request: Request, n_rows: int | None) -> list[float] | list[None]:
    if n_rows is None or request.given.n_cells > RECONCILE_CELLS:
        return [None] * len(request.given.tables)
    variances = [mechanism.variance for mechanism in request.mechanisms]
    return solved_tvds(request.schema.shape, request.axes, variances, n_rows)


def _gain(request: Request, tables: Sequence[TablePlan]) -> float:
    """The relative decrease of the total expected error under the best weights."""
    weights = {table.attrs: table.weight for table in tables}
    best = replace(request, shares=table_shares(request.given, weights, request.sets))
    now, then = (
        _total_error(request.given.cells, mechanisms) for mechanisms in (request.mechanisms, best.mechanisms)
    )
    return max(0.0, 1 - then / now)


def _total_error(sizes: Sequence[int], mechanisms: Sequence[Noise]) -> float:
    return sum(size * mechanism.mean_absolute for size, mechanism in zip(sizes, mechanisms, strict=True))


def _checked_rows(n_rows: int | None) -> int | None:
    if n_rows is None:
        return None
    if isinstance(n_rows, bool) or not isinstance(n_rows, int | np.integer) or n_rows < 1:
        raise ParameterError(
            f"n_rows ({n_rows!r}) must be a whole number above 0, a public guess will do; try n_rows=1000"
        )
    return int(n_rows)
