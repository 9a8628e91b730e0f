"""When the noise would drown the counts, and what would help."""

import math
from collections.abc import Sequence
from fractions import Fraction

from dpcipher.errors import DpcipherError
from dpcipher.plan.table import TablePlan
from dpcipher.privacy.budget import Budget
from dpcipher.private.sanitize import Order, make_order

_DELTA = Fraction(1, 10**6)


def warnings(order: Order, tables: Sequence[TablePlan], n_rows: int | None) -> tuple[str, ...]:
    """One warning when the noise on a cell exceeds the rows it can expect, with the ways out."""
    drowned = [table for table in tables if table.count is not None and table.sd > table.count]
    if not drowned:
        return ()
    worst = max(drowned, key=lambda table: table.sd / (table.count or 1))
    ratio = worst.sd / (worst.count or 1)
    return (
        f"in {len(drowned)} of {len(tables)} tables the noise on a cell is larger than the rows it can expect; the worst is "
        f"{' × '.join(worst.attrs)}: noise of {worst.sd:.3g} rows, {worst.count:.3g} rows per cell at n_rows={n_rows}. "
        f"What would help: {'; '.join(_ways_out(order, worst, ratio))}",
    )


def _ways_out(order: Order, worst: TablePlan, ratio: float) -> list[str]:
    """Each with the number that would bring noise and counts level."""
    ways = [_larger_budget(order, ratio), f"{ratio:.2g} times as many rows", _coarser(order, worst, ratio)]
    gaussian = _gaussian_sd(order)
    if gaussian is not None and gaussian < worst.sd:
        ways.append(
            f"delta={float(_DELTA):g} (Gaussian noise): {gaussian:.3g} rows instead of {worst.sd:.3g}"
        )
    if len(order.workload.tables) > 1:
        ways.append("fewer tables: list those that matter, or workload=1")
    return ways


def _larger_budget(order: Order, ratio: float) -> str:
    """Laplace noise goes with 1/epsilon, Gaussian noise with 1/sqrt(rho)."""
    if order.budget.rho is not None:
        return f"rho={float(order.budget.rho) * ratio**2:.3g}"
    return f"epsilon={float(order.budget.epsilon or 0) * ratio:.3g}"


def _coarser(order: Order, worst: TablePlan, ratio: float) -> str:
    cells = max(1, math.floor(worst.n_cells / ratio))
    largest = max(worst.attrs, key=lambda attr: order.schema.n_cells((attr,)))
    return f"wider bins ({cells} cells instead of {worst.n_cells}; {largest} has most levels)"


def _gaussian_sd(order: Order) -> float | None:
    """The noise that the same epsilon would buy with a small delta."""
    if order.budget.epsilon is None or order.budget.delta is not None:
        return None
    try:
        budget = Budget(epsilon=order.budget.epsilon, delta=_DELTA)
        other = make_order(
            order.schema, workload=order.workload.tables, budget=budget, unit=order.unit, sets=order.sets
        )
        return max(math.sqrt(mechanism.variance) for mechanism in other.mechanisms)
    except DpcipherError:
        return None
