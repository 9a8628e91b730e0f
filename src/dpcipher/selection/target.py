"""The target of a selection: the tables whose error counts, the candidates that may be measured, and what bounds them before anything is asked."""

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from numbers import Integral
from typing import Self

from dpcipher.errors import ParameterError, SizeError, WorkloadError
from dpcipher.release.reconcile import check_size
from dpcipher.request.request import Auto
from dpcipher.schema.schema import Schema
from dpcipher.schema.workload import Workload
from dpcipher.tables.domain import Axes, Domain, elementary_symmetric
from dpcipher.tables.query import Query

# Errors of the parts of a table add up in squares: in a larger target table the error of a part counts half.
PART = 0.5
LOW_ORDER = 3  # of the target tables, where none are named
HIGH_ORDER = 4  # of the largest tables that are looked for, where nothing is said
MAX_LISTED = 200_000  # tables that are listed in order to be counted
MOST_TABLES, MOST_CELLS = 5_000, 2**22  # that are counted before it is known which of them are asked for


@dataclass(frozen=True)
class SelectionTarget:
    """Which tables may be measured, and the weight of the error of each: an `order` of target tables, or the `listed` ones (then it is 0).

    Where tables `beyond` the order count, each is a target of its own. Where a column is to be predicted, only targets that hold it count.
    """

    shape: tuple[int, ...]
    weights: tuple[float, ...]
    max_order: int
    max_cells: int
    order: int
    listed: tuple[Axes, ...] = ()
    beyond: bool = False
    predict: int | None = None
    widest: int | None = (
        None  # columns of the largest table that may be measured for the sake of smaller ones; None for all
    )

    @classmethod
    def of(cls, auto: Auto, schema: Schema) -> Self:
        """The options applied to a schema, with attributes by number."""
        weights = [1.0] * len(schema.attrs)
        for name, weight in (auto.column_weights or {}).items():
            weights[schema.axes((name,))[0]] = float(weight)
        if not any(weights):
            raise ParameterError(
                "column_weights must leave at least one column with a weight above 0; leave a column out for 1.0"
            )
        order, listed = _target(auto, schema)
        target = cls(
            schema.shape,
            tuple(weights),
            _largest(auto, order or max(map(len, listed)), len(weights)),
            auto.max_cells,
            order,
            listed,
            beyond=auto.target is None,
            predict=None if auto.predict is None else schema.axes((auto.predict,))[0],
            widest=auto.max_order,
        )
        if not any(target.importance((axis,)) for axis in range(len(schema.shape))):
            raise ParameterError(
                "column_weights leave no target table with a weight above 0; name a target of the columns that matter"
            )
        return target

    @cached_property
    def varying(self) -> tuple[int, ...]:
        """The columns of more than one level."""
        return tuple(axis for axis, size in enumerate(self.shape) if size > 1)

    @property
    def is_even(self) -> bool:
        """Whether all tables of an order count alike."""
        return not self.listed and self.predict is None and len(set(self.weights)) == 1

    @property
    def is_small(self) -> bool:
        """Whether designs are considered: a table of all columns within `max_cells`, whose tables of an order count alike."""
        cells, width = math.prod(self.shape), len(self.varying)
        return self.is_even and cells <= self.max_cells and min(width, self.widest or width) > 1

    @property
    def orders(self) -> tuple[int, ...]:
        """The orders that designs are made of: up to four columns, and the whole table."""
        width = len(self.varying)
        most = width if self.widest is None else min(width, self.widest)
        return tuple(order for order in range(1, most + 1) if order <= HIGH_ORDER or order == width)

    def first_table(self, order: int) -> Axes:
        """The first table of a design that begins with this order: so many columns, and all of one level."""
        constant = (axis for axis, size in enumerate(self.shape) if size == 1)
        return tuple(sorted((*self.varying[:order], *constant)))

    def tables(self, order: int) -> Iterator[Axes]:
        """Every candidate table of so many columns, none of which has only one level."""
        if order > self.max_order:
            return
        if self.listed:
            inside = {axes for table in self.listed for axes in combinations(table, order)}
            every: Iterable[Axes] = sorted(axes for axes in inside if set(axes) <= set(self.varying))
        else:
            every = combinations(self.varying, order)
        yield from filter(self.is_candidate, every)

    def is_candidate(self, axes: Axes) -> bool:
        """Whether a table is small enough and its error counts."""
        return math.prod(self.shape[axis] for axis in axes) <= self.max_cells and self.importance(axes) > 0

    def count_tables(self, order: int) -> int:
        """The number of candidates of so many columns; without listing them where all columns count alike."""
        if order > self.max_order:
            return 0
        sizes = sorted(size for size in self.shape if size > 1)
        if not self.is_even or order > 3:
            every = math.comb(len(sizes), order)
            return sum(1 for _ in self.tables(order)) if self.listed or every <= MAX_LISTED else every
        if order < 3:
            return (
                sum(a * b <= self.max_cells for a, b in combinations(sizes, 2)) if order == 2 else len(sizes)
            )
        # Sorted by size, the third column of a triple is one of those after the second that are small enough.
        return sum(
            max(0, bisect_right(sizes, self.max_cells // (a * b)) - second - 1)
            for (_, a), (second, b) in combinations(enumerate(sizes), 2)
        )

    def importance(self, axes: Axes) -> float:
        """The weight of an error in the interaction of `axes`: 1 in the target table itself, half in every larger one.

        >>> SelectionTarget((2, 2, 2), (1.0, 1.0, 1.0), 3, 100, order=3).importance((0, 1))
        0.5
        """
        if self.listed:
            holding = [target for target in self.listed if set(axes) <= set(target)]
            return sum(
                math.prod(self.weights[axis] for axis in target) * (1.0 if len(target) == len(axes) else PART)
                for target in holding
            )
        own = tuple(sorted(self.weights[axis] for axis in axes))
        missing = self.predict is not None and self.predict not in axes
        if len(axes) > self.order:
            return math.prod(own) if self.beyond and not missing else 0.0
        part = 1.0 if len(axes) == self.order else PART
        return math.prod(own) * self._completions(own, missing) * part

    def _completions(self, own: tuple[float, ...], missing: bool) -> float:
        """The sum over all target tables that contain columns of these weights, of the product of their other weights; cached.

        Where the column to predict is `missing`, it is one of the others.
        """
        if (own, missing) not in self._cache:
            rest, needed = list(self.weights), [*own]
            if missing:
                assert self.predict is not None
                needed.append(self.weights[self.predict])
            for weight in needed:
                rest.remove(weight)
            others = elementary_symmetric(rest, self.order - len(needed))
            self._cache[own, missing] = others * (needed[-1] if missing else 1.0)
        return self._cache[own, missing]

    @cached_property
    def _cache(self) -> dict[tuple[tuple[float, ...], bool], float]:
        return {}


def _largest(auto: Auto, order: int, columns: int) -> int:
    """The columns of the largest candidate: a table that no target holds is never measured."""
    largest = order if auto.target is not None else max(order, HIGH_ORDER)
    if auto.max_order is not None:
        largest = min(auto.max_order, order) if auto.target is not None else auto.max_order
    return min(largest, columns)


def _target(auto: Auto, schema: Schema) -> tuple[int, tuple[Axes, ...]]:
    """An order, or a list of tables (then the order is 0)."""
    if auto.target is None:
        return min(auto.max_order or LOW_ORDER, LOW_ORDER, len(schema.shape)), ()
    if isinstance(auto.target, int | Integral):
        order = int(auto.target)
        if not 1 <= order <= len(schema.shape):
            raise WorkloadError(
                f"target ({order}) must be an order from 1 to {len(schema.shape)}, the number of attributes; try target=2"
            )
        return order, ()
    return 0, _listed(schema, auto.target)


def _listed(schema: Schema, target: Sequence[Sequence[str]]) -> tuple[Axes, ...]:
    """The target tables, by number. A column in none of them is allowed: its one-way table is measured anyway."""
    covered = {name for table in target for name in table}
    rest = [(attr,) for attr in schema.attrs if attr not in covered]
    tables = Workload.parse(schema, [*target, *rest]).tables
    return tuple(schema.axes(table) for table in tables[: len(target)])


def check_auto(auto: Auto, schema: Schema) -> None:
    """Refuse options that do not fit the schema, and tables that structural zeros keep from being reconciled; nothing private is opened."""
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
    orders = target.orders
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


def foreseen_tables(target: SelectionTarget) -> list[Axes] | None:
    """All that a selection may ask for; None where they are too many, and where a small table may be asked for whole.

    >>> foreseen_tables(SelectionTarget((2, 3, 4000), (1.0, 1.0, 1.0), max_order=3, max_cells=10_000, order=3))
    [(0,), (1,), (2,), (0, 1), (0, 2)]
    """
    orders = range(2, target.max_order + 1)
    if target.is_small or sum(map(target.count_tables, orders)) > MOST_TABLES:
        return None
    tables = list(dict.fromkeys(_askable(target)))
    return (
        tables
        if sum(math.prod(target.shape[axis] for axis in axes) for axes in tables) <= MOST_CELLS
        else None
    )


def _askable(target: SelectionTarget) -> Iterator[Axes]:
    """Every column, every candidate, and the tables of a design of columns or pairs that hold columns of one level."""
    for axis in range(len(target.shape)):
        yield (axis,)
    for order in range(2, target.max_order + 1):
        yield from target.tables(order)
    for order in (1, 2):
        yield target.first_table(order)
