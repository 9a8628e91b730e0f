"""What bounds a selection before anything is asked: whether its options fit the schema, and what zeros let be reconciled."""

from collections.abc import Iterable, Sequence
from itertools import combinations

from dpcipher.errors import SizeError
from dpcipher.release.reconcile import Zeros, check_zeros
from dpcipher.request.auto import Auto
from dpcipher.request.request import Request
from dpcipher.schema.schema import Schema
from dpcipher.selection.design import orders_of
from dpcipher.selection.target import SelectionTarget
from dpcipher.tables.domain import Axes


def check_auto(request: Request) -> None:
    """Refuse options that do not fit the schema, and tables that structural zeros keep from being reconciled; nothing private is opened."""
    if request.auto is not None:
        check_options(request.auto, request.schema)


def check_options(auto: Auto, schema: Schema) -> None:
    """The same of options alone."""
    target = SelectionTarget.of(auto, schema)
    if schema.zero_masks:
        check_zeros(schema.shape, [*one_way_tables(schema.shape), *target.tables(2)], schema.zero_masks)


def one_way_tables(shape: Sequence[int]) -> list[Axes]:
    """The table of every column."""
    return [(axis,) for axis in range(len(shape))]


def fitting(shape: tuple[int, ...], tables: Sequence[Axes], more: Iterable[Axes], zeros: Zeros) -> list[Axes]:
    """Those of `more` tables that can be reconciled with `tables` and one another: all, unless there are structural zeros."""
    kept: list[Axes] = []
    for axes in more:
        if not zeros or _reconcilable(shape, [*tables, *kept, axes], zeros):
            kept.append(axes)
    return kept


def fitting_orders(target: SelectionTarget, zeros: Zeros) -> tuple[int, ...]:
    """The orders of a design; with structural zeros, those whose tables can be reconciled."""
    orders = orders_of(target)
    if not zeros:
        return orders
    return tuple(
        order
        for order in orders
        if _reconcilable(target.shape, list(combinations(target.varying, order)), zeros)
    )


def _reconcilable(shape: tuple[int, ...], tables: Sequence[Axes], zeros: Zeros) -> bool:
    try:
        check_zeros(shape, tables, zeros)
    except SizeError:
        return False
    return True
