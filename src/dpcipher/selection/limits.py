"""What bounds a selection before anything is asked: whether its options fit the schema, what zeros let be reconciled, and every table that it may ask for."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from dpcipher.errors import SizeError
from dpcipher.release.reconcile import check_size
from dpcipher.request.auto import Auto
from dpcipher.request.request import Request
from dpcipher.schema.schema import Schema
from dpcipher.selection.design import first_design_table, is_small, orders_of
from dpcipher.selection.rounds import n_cells
from dpcipher.selection.target import SelectionTarget
from dpcipher.tables.domain import Axes, Domain
from dpcipher.tables.query import Query


def check_auto(request: Request) -> None:
    """Refuse options that do not fit the schema, and tables that structural zeros keep from being reconciled; nothing private is opened."""
    if request.auto is not None:
        check_options(request.auto, request.schema)


def check_options(auto: Auto, schema: Schema) -> None:
    """The same of options alone."""
    target = SelectionTarget.of(auto, schema)
    if schema.zero_masks:
        check_size(schema.domain, list(map(Query, [*one_way_tables(schema.shape), *target.tables(2)])))


def one_way_tables(shape: Sequence[int]) -> list[Axes]:
    """The table of every column."""
    return [(axis,) for axis in range(len(shape))]


def fitting(domain: Domain, tables: Sequence[Axes], more: Iterable[Axes]) -> list[Axes]:
    """Those of `more` tables that can be reconciled with `tables` and one another: all, unless there are structural zeros."""
    kept: list[Axes] = []
    for axes in more:
        if not domain.zeros or _reconcilable(domain, [*tables, *kept, axes]):
            kept.append(axes)
    return kept


def fitting_orders(target: SelectionTarget, domain: Domain) -> tuple[int, ...]:
    """The orders of a design; with structural zeros, those whose tables can be reconciled."""
    orders = orders_of(target)
    if not domain.zeros:
        return orders
    return tuple(
        order for order in orders if _reconcilable(domain, list(combinations(target.varying, order)))
    )


def _reconcilable(domain: Domain, tables: Sequence[Axes]) -> bool:
    try:
        check_size(domain, list(map(Query, tables)))
    except SizeError:
        return False
    return True


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
