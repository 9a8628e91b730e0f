"""What error a solved release may have: noise that was shrunk by what is typical of tables, and not noise alone.

An engine does not take a noisy cell at its word. What a table says beyond its margins is shrunk toward nothing, the more so the larger its noise, so that
its error stays below the distance of the table from its margins, however small the budget is. The formulas are those which allocate the budget (`selection.risk`): every
interaction of a table is taken to lie at a typical distance from what smaller tables say of it, and rows to be spread evenly over its cells.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations

import numpy as np

from dpcipher.selection.risk import interaction_risk, one_way_risk
from dpcipher.selection.rounds import TYPICAL
from dpcipher.tables.domain import Axes
from dpcipher.tables.query import Groups, Query

_Columns = tuple[tuple[int, Groups | None], ...]


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
        return tuple(zip(table.axes, table.forms, strict=True))
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
