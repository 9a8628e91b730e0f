"""What a plan advises: what it warns of, with what would help, and whether to select tables."""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from dpcipher.errors import DpcipherError
from dpcipher.planning.forecast import TablePlan
from dpcipher.privacy.budget import Budget, noise_within
from dpcipher.request.request import Request, after_finding
from dpcipher.schema.grouped import said
from dpcipher.schema.open_bins import OpenBins
from dpcipher.selection.allocation import NoiseModel
from dpcipher.selection.rounds import GOOD_NOISE, MAX_TVD, READING

DELTA = Fraction(1, 10**6)  # of the Gaussian noise that is held against Laplace noise


def noise_warnings(request: Request, tables: Sequence[TablePlan], n_rows: int | None) -> tuple[str, ...]:
    """One warning where the standard deviation of the noise exceeds the mean count of a cell, with remedies."""
    noisy = [table for table in tables if table.count is not None and table.sd > table.count]
    if n_rows is None or not noisy:
        return ()
    worst = max(noisy, key=lambda table: table.sd * table.n_cells)
    ratio = worst.sd * worst.n_cells / n_rows
    return (
        f"in {len(noisy)} of {len(tables)} tables the noise on a cell is larger than the rows it can expect. "
        f"The worst is {said(worst.attrs)}: noise of {worst.sd:,.1f} rows on {n_rows / worst.n_cells:,.1f} rows per cell. "
        f"What would help: {'; '.join(_remedies(request, worst, n_rows, ratio))}",
    )


def range_warnings(rows_to_find: Mapping[str, int], n_rows: int | None) -> list[str]:
    """One warning for all columns whose range needs more rows to be found than there are."""
    hidden = {name: rows for name, rows in rows_to_find.items() if rows > (n_rows or math.inf)}
    if not hidden:
        return []
    return [
        f"{n_rows:,} rows may be too few to find the range of {', '.join(hidden)}: about {max(hidden.values()):,} stand out of the noise. Declare min and max where they are public"
    ]


def clear_rows(noise: NoiseModel, sizes: Sequence[int]) -> int:
    """The least number of rows with which the distances of all pairs, of so many cells, are read."""
    return math.ceil(noise.distance(len(sizes), float(READING)) / GOOD_NOISE) if sizes else 0


def selection_advice(
    noise: NoiseModel, columns: int, sizes: Sequence[int], tvd: float | None, designed: Sequence[str]
) -> str:
    """Whether to select tables, or to measure all candidate pairs with equal shares; for a small table the orders that are `designed`."""
    if designed:
        return f"nothing need be looked at: the table is small, and {' and '.join(designed)} follow from the noise and the number of rows"
    if not sizes:
        return "there is no pair to choose: workload=1 measures the same"
    if tvd is None:
        rows = math.ceil(noise.mean_tvd(sizes, 1) / MAX_TVD)
        return f"with fewer than about {rows:,} rows, all pairs would be mostly noise and choosing pays; say n_rows to learn more"
    if tvd >= MAX_TVD:
        return f"choose: measured alike, all pairs would be mostly noise, a TVD of {min(tvd, 1.0):.2g} each before solving"
    instead = "workload=2" if len(sizes) == math.comb(columns, 2) else "list the pairs"
    return (
        f"either will do: all pairs ({instead}) would have noise of an expected TVD of {tvd:.2g} each; choosing costs a twentieth of the "
        "budget, and pays where few pairs matter or a second round is held"
    )


def _remedies(request: Request, worst: TablePlan, n_rows: int, ratio: float) -> list[str]:
    """Each with the number at which the noise equals the mean count."""
    remedies = [_larger_budget(request, ratio), f"{math.ceil(n_rows * ratio):,} rows"]
    cells = math.floor(worst.n_cells / ratio)
    if cells > 1:
        largest = max(worst.attrs, key=lambda attr: request.schema.n_cells((attr,)))
        how = "a smaller max_bins" if isinstance(request.schema.column(largest), OpenBins) else "wider bins"
        remedies.append(f"{how}: {cells} cells instead of {worst.n_cells} ({largest} has most levels)")
    gaussian = _gaussian_sd(request)
    if gaussian is not None and gaussian < worst.sd:
        remedies.append(
            f"delta={float(DELTA):g} (Gaussian noise): {gaussian:,.1f} rows instead of {worst.sd:,.1f}"
        )
    if len(request.given.tables) > 1:
        remedies.append("fewer tables: list those that matter, or workload=1")
    return remedies


def _larger_budget(request: Request, ratio: float) -> str:
    """Laplace noise goes with 1/epsilon, Gaussian noise with 1/sqrt(rho)."""
    budget = request.privacy.budget
    if budget.rho is not None:
        return f"rho={_round_up(float(budget.rho) * ratio**2)}"
    return f"epsilon={_round_up(float(budget.epsilon or 0) * ratio)}"


def _round_up(value: float) -> str:
    """Two digits, never less than the value: what is advised must suffice.

    >>> _round_up(3.325), _round_up(0.0121)
    ('3.4', '0.013')
    """
    step = Fraction(10) ** (math.floor(math.log10(value)) - 1)
    return f"{float(math.ceil(Fraction(value) / step) * step):g}"


def _gaussian_sd(request: Request) -> float | None:
    """The noise that the same epsilon would buy with a small delta."""
    budget = request.privacy.budget
    if budget.epsilon is None or budget.delta is not None:
        return None
    gaussian = Budget(epsilon=budget.epsilon, delta=DELTA)
    left = after_finding(gaussian, request.schema).composable()
    share = Fraction(1, len(request.shares) * request.sets)
    try:
        return math.sqrt(noise_within(left, share, request.privacy.unit).variance)
    except DpcipherError:
        return None
