"""What to expect of one table."""

import math
from dataclasses import dataclass

from dpcipher.planning.error import NORMAL_ABSOLUTE, expected_absolute, expected_tvd
from dpcipher.privacy.mechanism import Mechanism

Attrs = tuple[str, ...]


@dataclass(frozen=True)
class TablePlan:
    """What to expect of one table.

    `sd` and `absolute` are the standard deviation and the mean size of the noise on a cell, in counts; `reconciled_sd` the former once
    the tables have been made to agree. `count` (rows per cell) and the two TVDs need a number of rows. `weight` is the share of
    the budget that would minimise the error of all tables together.
    """

    attrs: Attrs
    n_cells: int
    mechanism: Mechanism
    sd: float
    absolute: float
    reconciled_sd: float | None
    count: float | None
    tvd: float | None
    reconciled_tvd: float | None
    weight: float


def table_plan(
    attrs: Attrs, n_cells: int, mechanism: Mechanism, after: float | None, weight: float, n_rows: int | None
) -> TablePlan:
    """The plan of one table: `after` is the deviation of a reconciled cell, where it is known."""
    absolute = expected_absolute(mechanism)
    # A reconciled cell averages many noises, so its error is close to normal.
    after_absolute = None if after is None else after * NORMAL_ABSOLUTE
    return TablePlan(
        attrs,
        n_cells,
        mechanism,
        sd=math.sqrt(mechanism.variance),
        absolute=absolute,
        reconciled_sd=after,
        count=None if n_rows is None else n_rows / n_cells,
        tvd=None if n_rows is None else expected_tvd(absolute, n_cells, n_rows),
        reconciled_tvd=None
        if n_rows is None or after_absolute is None
        else expected_tvd(after_absolute, n_cells, n_rows),
        weight=weight,
    )
