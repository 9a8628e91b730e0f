"""Every table that a selection may ask for, known from the schema and the options alone: where they are few, all are counted as the rows are read."""

from collections.abc import Iterator

from dpcipher.selection.design import first_design_table, is_small
from dpcipher.selection.rounds import n_cells
from dpcipher.selection.target import SelectionTarget
from dpcipher.tables.domain import Axes

MOST_TABLES, MOST_CELLS = 5_000, 2**22  # that are counted before it is known which of them are asked for


def foreseen_tables(target: SelectionTarget) -> list[Axes] | None:
    """All that a selection may ask for; None where they are too many, and where a small table may be asked for whole.

    >>> foreseen_tables(SelectionTarget((2, 3, 4000), (1.0, 1.0, 1.0), max_order=3, max_cells=10_000, order=3))
    [(0,), (1,), (2,), (0, 1), (0, 2)]
    """
    orders = range(2, target.max_order + 1)
    if is_small(target) or sum(map(target.count_tables, orders)) > MOST_TABLES:
        return None
    tables = list(dict.fromkeys(_askable(target)))
    return tables if sum(n_cells(target.shape, tables)) <= MOST_CELLS else None


def _askable(target: SelectionTarget) -> Iterator[Axes]:
    """Every column, every candidate, and the tables of a design of columns or pairs that hold columns of one level."""
    for axis in range(len(target.shape)):
        yield (axis,)
    for order in range(2, target.max_order + 1):
        yield from target.tables(order)
    for order in (1, 2):
        yield first_design_table(target, order)
