"""What bounds a selection before anything is asked: the finest share, what a release file can list, and what zeros let be reconciled."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations

from dpcipher.errors import SizeError
from dpcipher.privacy.noise import mechanism_for
from dpcipher.privacy.terms import Privacy
from dpcipher.release.file import most_tables
from dpcipher.release.reconcile import Zeros, check_zeros
from dpcipher.schema.schema import Schema
from dpcipher.selection.design import orders_of
from dpcipher.selection.target import Auto, SelectionTarget
from dpcipher.tables.domain import Axes

PARTS = 2**24  # allocated shares are rounded down to whole multiples of about 1 / PARTS of what is left
FINEST = 4 * PARTS  # no question gets less than 1 / FINEST of the charge, counted in tables


def check_auto(auto: Auto, schema: Schema, privacy: Privacy | None = None, sets: int = 1) -> None:
    """Refuse options that do not fit the schema, and a budget too small to be divided; nothing private is opened."""
    if privacy is not None:
        mechanism_for(privacy.budget.share(Fraction(1, FINEST * sets)), privacy.unit)
    target = auto.on(schema)
    if most_pairs(schema, sets) < 1:
        raise SizeError(
            f"workload: {len(schema.attrs):,} columns in each of {sets} sets are more than one release file can list; measure fewer sets"
        )
    if schema.zero_masks:
        check_zeros(schema.shape, [*one_way_tables(schema.shape), *target.tables(2)], schema.zero_masks)


def most_pairs(schema: Schema, sets: int) -> int:
    """How many pairs may be measured for the release to be written: each table of it perhaps twice."""
    return most_tables(schema, sets) // 2 - len(schema.attrs)


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
