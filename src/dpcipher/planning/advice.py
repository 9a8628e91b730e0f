"""When the noise would drown the counts, and what would help."""

import math
from collections.abc import Sequence
from fractions import Fraction

from dpcipher.curator.request import MeasurementRequest, make_request
from dpcipher.errors import DpcipherError
from dpcipher.planning.table import TablePlan
from dpcipher.privacy.budget import Budget

_DELTA = Fraction(1, 10**6)


def warnings(order: MeasurementRequest, tables: Sequence[TablePlan], n_rows: int | None) -> tuple[str, ...]:
    """One warning when the noise on a cell exceeds the rows it can expect, with the ways out."""
    drowned = [table for table in tables if table.count is not None and table.sd > table.count]
    if n_rows is None or not drowned:
        return ()
    worst = max(drowned, key=lambda table: table.sd * table.n_cells)
    ratio = worst.sd * worst.n_cells / n_rows
    return (
        f"in {len(drowned)} of {len(tables)} tables the noise on a cell is larger than the rows it can expect. "
        f"The worst is {' × '.join(worst.attrs)}: noise of {worst.sd:,.1f} rows on {n_rows / worst.n_cells:,.1f} rows per cell. "
        f"What would help: {'; '.join(_ways_out(order, worst, n_rows, ratio))}",
    )


def _ways_out(order: MeasurementRequest, worst: TablePlan, n_rows: int, ratio: float) -> list[str]:
    """Each with the number that would bring noise and counts level."""
    ways = [_larger_budget(order, ratio), f"{math.ceil(n_rows * ratio):,} rows"]
    cells = math.floor(worst.n_cells / ratio)
    if cells > 1:
        largest = max(worst.attrs, key=lambda attr: order.schema.n_cells((attr,)))
        ways.append(f"wider bins: {cells} cells instead of {worst.n_cells} ({largest} has most levels)")
    gaussian = _gaussian_sd(order)
    if gaussian is not None and gaussian < worst.sd:
        ways.append(
            f"delta={float(_DELTA):g} (Gaussian noise): {gaussian:,.1f} rows instead of {worst.sd:,.1f}"
        )
    if len(order.workload.tables) > 1:
        ways.append("fewer tables: list those that matter, or workload=1")
    return ways


def _larger_budget(order: MeasurementRequest, ratio: float) -> str:
    """Laplace noise goes with 1/epsilon, Gaussian noise with 1/sqrt(rho)."""
    if order.budget.rho is not None:
        return f"rho={_round_up(float(order.budget.rho) * ratio**2)}"
    return f"epsilon={_round_up(float(order.budget.epsilon or 0) * ratio)}"


def _round_up(value: float) -> str:
    """Two digits, never less than the value: what is advised must suffice.

    >>> _round_up(3.325), _round_up(0.0121)
    ('3.4', '0.013')
    """
    step = Fraction(10) ** (math.floor(math.log10(value)) - 1)
    return f"{float(math.ceil(Fraction(value) / step) * step):g}"


def _gaussian_sd(order: MeasurementRequest) -> float | None:
    """The noise that the same epsilon would buy with a small delta."""
    if order.budget.epsilon is None or order.budget.delta is not None:
        return None
    try:
        budget = Budget(epsilon=order.budget.epsilon, delta=_DELTA)
        other = make_request(
            order.schema, workload=order.workload.tables, budget=budget, unit=order.unit, sets=order.sets
        )
        return max(math.sqrt(mechanism.variance) for mechanism in other.mechanisms)
    except DpcipherError:
        return None
