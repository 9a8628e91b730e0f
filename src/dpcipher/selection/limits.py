"""What bounds a selection before anything is asked: whether its options fit the schema, and what zeros let be reconciled."""

from collections.abc import Iterable, Sequence
from itertools import combinations

from dpcipher.errors import SizeError
from dpcipher.release.reconcile import check_size
from dpcipher.request.auto import Auto
from dpcipher.request.request import Request
from dpcipher.schema.schema import Schema
from dpcipher.selection.design import orders_of
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
