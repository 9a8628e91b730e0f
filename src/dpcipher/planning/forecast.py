"""What error to expect of tables: of the noise alone, after reconciling and in a solved release. Known before any row is read, because the noise is public.

An engine does not take a noisy cell as it is. What a table says beyond its margins is shrunk toward nothing, the more so the larger its noise, so that
its error stays below the distance of the table from its margins, however small the budget is. The formulas are those which allocate the budget (`selection.allocation`): every
interaction of a table is taken to lie at a typical distance from what smaller tables say of it, and rows to be spread evenly over its cells.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np

from dpcipher.release.reconcile import reconcile
from dpcipher.schema.schema import Schema
from dpcipher.selection.allocation import interaction_risk, one_way_risk
from dpcipher.selection.rounds import TYPICAL
from dpcipher.tables.domain import Attrs, Axes
from dpcipher.tables.measurement import NORMAL_ABSOLUTE, Measurement, Noise
from dpcipher.tables.query import Groups, Query

_Columns = tuple[tuple[int, Groups | None], ...]


def expected_tvd(absolute: float, n_cells: int, n_rows: int) -> float:
    """The total variation distance that the noise alone puts between a table and the truth, at most 1.

    TVD is half the sum over cells of |noisy - true| / n_rows, so its expectation is E|noise| * n_cells / (2 n_rows).
    """
    return min(1.0, absolute * n_cells / (2 * n_rows))


def reconciled_sds(schema: Schema, measured: Sequence[Measurement], *, n_rows: int | None) -> list[float]:
    """The standard deviation of a reconciled cell of each table (root mean square over its cells).

    Least squares has variances that do not depend on the counts, so those that are expected serve. `n_rows` is passed where it is public.
    """
    reconciled = reconcile(schema.domain, measured, total=n_rows)
    queries = [one.query for one in measured if isinstance(one.query, Query)]
    return [math.sqrt(max(0.0, float(np.mean(reconciled.variance(query))))) for query in queries]


def best_weights(sizes: Sequence[int], mechanism: str) -> list[float]:
    """The split of the budget over tables that minimises the total expected error, as shares that sum to one.

    The total is the sum over tables of n_cells * E|noise|, which is 2 n_rows times the sum of their expected TVDs. A table with the
    share w has Laplace noise proportional to 1/w: minimising sum c/w subject to sum w = 1 gives w proportional to c^(1/2). Gaussian
    noise is proportional to w^(-1/2), which gives c^(2/3) (Lagrange: c w^(-3/2) is the same for all tables).

    >>> best_weights([1, 4], "laplace"), [round(w, 3) for w in best_weights([1, 8], "gaussian")]
    ([0.333333, 0.666667], [0.2, 0.8])
    """
    power = 1 / 2 if mechanism == "laplace" else 2 / 3
    raw = [size**power for size in sizes]
    return [float(f"{value / sum(raw):.6g}") for value in raw]


@dataclass(frozen=True)
class TablePlan:
    """What to expect of one table.

    `sd` and `absolute` are the standard deviation and the mean absolute value of the noise on a cell, in counts; `reconciled_sd` is the
    standard deviation after reconciling. `count` (rows per cell) and the TVDs need a number of rows: `tvd` and `reconciled_tvd` are those of the noise alone,
    `solved_tvd` that of a solved release (`solved_tvds`). `weight` is the share of the budget that would minimise the error of all tables together.
    """

    attrs: Attrs
    n_cells: int
    noise: Noise
    sd: float
    absolute: float
    reconciled_sd: float | None
    count: float | None
    tvd: float | None
    reconciled_tvd: float | None
    weight: float
    solved_tvd: float | None = None


def table_plan(
    attrs: Attrs,
    noise: Noise,
    n_cells: int,
    n_rows: int | None,
    *,
    after: float | None,
    solved: float | None,
    weight: float,
) -> TablePlan:
    """The plan of one table: `after` is the deviation of a reconciled cell, `solved` the distance of the solved table, where they are known."""

    def tvd(absolute: float | None) -> float | None:
        return None if absolute is None or n_rows is None else expected_tvd(absolute, n_cells, n_rows)

    return TablePlan(
        attrs,
        n_cells,
        noise,
        sd=math.sqrt(noise.variance),
        absolute=noise.mean_absolute,
        reconciled_sd=after,
        count=None if n_rows is None else n_rows / n_cells,
        tvd=tvd(noise.mean_absolute),
        # A reconciled cell averages many noises, so its error is close to normal; that of a table alone is its own.
        reconciled_tvd=tvd(None if after is None else min(after * NORMAL_ABSOLUTE, noise.mean_absolute)),
        weight=weight,
        solved_tvd=solved,
    )


def solved_tvds(
    shape: Sequence[int], tables: Sequence[Query | Axes], variances: Sequence[float], n_rows: int
) -> list[float]:
    """The expected total variation distance between each table of a solved release and the truth, by the variances of the noise on their cells.

    The errors of its parts add up as independent ones do. A table with levels in groups is one of its groups.
    """
    columns = [_columns(table) for table in tables]
    precisions: dict[_Columns, float] = {}
    for own, variance in zip(columns, variances, strict=True):
        cells = math.prod(_sizes(shape, own))
        for part in _parts(own):
            summed = cells / math.prod(_sizes(shape, part))  # in a cell of the part
            precisions[part] = precisions.get(part, 0.0) + 1 / (summed * variance)
    return [
        min(1.0, math.hypot(*(_error(_sizes(shape, part), precisions[part], n_rows) for part in _parts(own))))
        for own in columns
    ]


def _columns(table: Query | Axes) -> _Columns:
    """The columns of a table, each with its groups."""
    if isinstance(table, Query):
        return table.columns
    return tuple((axis, None) for axis in table)


def _parts(columns: _Columns) -> list[_Columns]:
    """All tables within a table, itself included: each is about what smaller ones do not say."""
    return [part for order in range(1, len(columns) + 1) for part in combinations(columns, order)]


def _sizes(shape: Sequence[int], columns: _Columns) -> tuple[int, ...]:
    return tuple(shape[axis] if groups is None else groups.size for axis, groups in columns)


@lru_cache(maxsize=4096)
def _error(sizes: tuple[int, ...], precision: float, n_rows: int) -> float:
    """The error of a one-way table, or of an interaction at the typical distance, as a fraction of the rows."""
    even, known = np.full(sizes, n_rows / math.prod(sizes)), np.array([precision])
    risk = one_way_risk(even, known) if len(sizes) == 1 else interaction_risk(even, TYPICAL * n_rows, known)
    return float(risk[0]) / n_rows
