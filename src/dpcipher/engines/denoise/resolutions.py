"""Tables of different resolution, for rules that know plain tables alone: every grouping of a column is a column of its own, until all are refined.

Tables in groups of levels are shrunk as they were counted. Then each becomes a table of every level: the one of largest entropy that has the tables in
groups inside it and the columns' own tables. So a group is divided among its levels as the column's own table says, evenly where none holds its levels.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, reduce
from math import prod, sqrt

import numpy as np

from dpcipher.engines.denoise.interactions import Ordered
from dpcipher.engines.targets import Targets
from dpcipher.errors import SizeError, shown_count
from dpcipher.release.reconcile import Reconciled
from dpcipher.tables.domain import Axes, Domain, Floats, Shape, Zero, maximal, subsets, zero_cells
from dpcipher.tables.measurement import Measurement
from dpcipher.tables.query import Groups, Query
from dpcipher.tables.raking import CLOSE, SWEEPS, ratio
from dpcipher.tables.table import broadcast_over, margin

LEAST_ORDERED = 5  # groups in an order: fewer have little to smooth
MOST_CELLS = 2**27  # of all tables together, once every level stands by itself


class Resolutions:
    """Reconciled tables as plain ones: of every column with all its levels and, beside it, in each of its groups."""

    def __init__(self, fine: Reconciled) -> None:
        self.fine = fine
        forms: dict[int, dict[Groups | None, None]] = {axis: {None: None} for axis in range(len(fine.shape))}
        for query in fine.merged:
            for axis, form in query.columns:
                forms[axis].setdefault(form)
        self.columns = [(axis, form) for axis, held in forms.items() for form in held]
        self.number = {column: place for place, column in enumerate(self.columns)}
        self.shape: Shape = tuple(
            fine.shape[axis] if form is None else form.size for axis, form in self.columns
        )
        self.total = fine.total

    @cached_property
    def domain(self) -> Domain:
        """All columns, and the cells that are impossible because all of their levels are."""
        names = tuple(
            f"{self.fine.domain.names[axis]} {place}" for place, (axis, _) in enumerate(self.columns)
        )
        return Domain(names, self.shape, tuple(self._zeros()))

    def _zeros(self) -> Iterable[Zero]:
        for axes, mask in self.fine.domain.zeros:
            yield tuple(self.number[axis, None] for axis in axes), mask
        if self.fine.domain.zeros:
            alone = [(place,) for place in range(len(self.columns))]
            for axes in dict.fromkeys([*map(self.axes, self.fine.merged), *alone]):
                query = self.query(axes)
                mask = query.apply(self.fine.domain.possible(query.axes).astype(int), query.axes) == 0
                if query.groups and mask.any():
                    yield axes, mask

    @cached_property
    def measured(self) -> tuple[Measurement, ...]:
        """The measurements of plain tables and of groups that are columns here."""
        known = [(one, one.query) for one in self.fine.measured if isinstance(one.query, Query)]
        return tuple(
            replace(one, query=Query(self.axes(query)))
            for one, query in known
            if all(column in self.number for column in query.columns)
        )

    def axes(self, query: Query) -> Axes:
        """The columns that a query is about, as they are numbered here; they ascend as the query's do."""
        return tuple(self.number[column] for column in query.columns)

    def query(self, axes: Axes) -> Query:
        """What is asked of the rows for a table of some of the columns."""
        return Query(
            tuple(self.columns[place][0] for place in axes), tuple(self.columns[place][1] for place in axes)
        )

    def table(self, axes: Axes) -> Floats:
        """The reconciled counts."""
        return self.fine.table(self.query(axes))

    def mean_variance(self, axes: Axes) -> float:
        """The mean variance of the cells."""
        return self.fine.mean_variance(self.query(axes))

    def interaction_variance(self, axes: Axes) -> float:
        """The variance of a unit contrast that no smaller table sees."""
        return self.fine.interaction_variance(self.query(axes))

    def maximal(self) -> list[Axes]:
        """The measured sets of columns, each in its groups, that no other contains."""
        plain = [tuple(self.number[axis, None] for axis in axes) for axes in self.fine.maximal()]
        return maximal([*plain, *map(self.axes, self.fine.merged)])

    @cached_property
    def _whole(self) -> set[int]:
        """The columns whose levels some table holds one by one."""
        queries = (one.query for one in self.fine.measured if isinstance(one.query, Query))
        return {axis for query in queries for axis, form in query.columns if form is None}

    @cached_property
    def seen(self) -> list[int]:
        """The columns that are shrunk by themselves: with all levels or, where no table has these, in the finest groups."""
        return [place for place, column in enumerate(self.columns) if self._is_finest(*column)]

    def _is_finest(self, axis: int, form: Groups | None) -> bool:
        if axis in self._whole or form is None:
            return form is None and axis in self._whole
        others = [other for own, other in self.columns if own == axis and other is not None and other != form]
        return not any(form.within(other) for other in others)

    def with_all_columns(self, built: Mapping[Axes, Floats]) -> dict[Axes, Floats]:
        """One-way tables of all columns from those that are seen."""
        tables: dict[Axes, Floats] = {}
        for axis in range(len(self.fine.shape)):
            own = (self.number[axis, None],)
            goals = [
                (self.query((place,)), built[(place,)])
                for place in self.seen
                if self.columns[place][0] == axis
            ]
            tables[own] = (
                built[own] if axis in self._whole else _raked(self._possible((axis,)), (axis,), goals)
            )
        for place, (axis, form) in enumerate(self.columns):
            if form is not None:
                tables[(place,)] = form.merge(tables[(self.number[axis, None],)], 0)
        return tables

    def _possible(self, axes: Axes) -> Floats:
        return np.asarray(~zero_cells(axes, self.fine.shape, self.fine.domain.zeros), dtype=np.float64)

    def coarser(self, sets: Sequence[Axes]) -> dict[Axes, Axes]:
        """The sets whose table another one of the same columns, in finer groups, can be added up to; and that one."""
        alike: dict[Axes, list[Axes]] = defaultdict(list)
        for axes in sets:
            alike[self.query_axes(axes)].append(axes)
        found: dict[Axes, Axes] = {}
        for held in alike.values():
            ordered = sorted(held, key=lambda axes: -prod(self.shape[place] for place in axes))
            for number, axes in enumerate(ordered):
                finer = (
                    other
                    for other in ordered[:number]
                    if other not in found and self.query(other).refines(self.query(axes))
                )
                if (first := next(finer, None)) is not None:
                    found[axes] = first
        return found

    def orders(self, orders: Mapping[int, Ordered]) -> dict[int, Ordered]:
        """Which columns have levels in an order, and which levels; runs of such levels follow one another, too."""
        found = {self.number[axis, None]: ordered for axis, ordered in orders.items()}
        for place, (axis, form) in enumerate(self.columns):
            if form is not None and form.are_runs and axis in orders:
                last = len(orders[axis]) - 1
                n_ordered = form.of[last] + (last + 1 == len(form.of) or form.of[last + 1] > form.of[last])
                if n_ordered >= LEAST_ORDERED:
                    found[place] = np.arange(n_ordered)
        return found

    def query_axes(self, axes: Axes) -> Axes:
        """The columns of the rows that some columns are about."""
        return tuple(self.columns[place][0] for place in axes)

    def merged(self, table: Floats, own: Axes, wanted: Axes) -> Floats:
        """A table of some columns in coarser groups."""
        return np.asarray(self.query(wanted).of_cells(self.query(own)).merge(table))

    def targets(self, tables: Mapping[Axes, Floats], one_way: Mapping[Axes, Floats]) -> Targets:
        """Probabilities of every level from shrunk tables that agree: `tables` of the maximal sets, and of each column."""
        goals: dict[Axes, list[tuple[Query, Floats]]] = defaultdict(list)
        for axes, table in tables.items():
            goals[self.query_axes(axes)].append((self.query(axes), table))
        largest = maximal(goals)
        check_cells(self.fine.shape, largest)
        alone = [one_way[(self.number[axis, None],)] for axis in range(len(self.fine.shape))]
        alone = [table / table.sum() for table in alone]
        refined: dict[Axes, Query] = {}
        found, sigma = {}, {}
        for axes in largest:
            inside = [goal for part in subsets(axes) for goal in goals.get(part, ())]
            finest, table = max(goals[axes], key=lambda goal: goal[1].size)
            if finest.groups:
                start = reduce(np.multiply.outer, [alone[axis] for axis in axes]) * self._possible(axes)
                refined[axes], found[axes] = finest, _raked(start, axes, inside)
            else:
                found[axes] = table
            sigma[axes] = sqrt(self.fine.mean_variance(finest)) / self.total * table.size / found[axes].size
        for axis in range(len(alone)):
            if (axis,) not in found:
                cover = next(axes for axes in largest if axis in axes)
                found[(axis,)] = margin(found[cover], cover, (axis,))
                query = self.query((next(place for place in self.seen if self.columns[place][0] == axis),))
                spread = prod(query.shape(self.fine.shape)) / found[(axis,)].size
                sigma[(axis,)] = sqrt(self.fine.mean_variance(query)) / self.total * spread
                refined |= {(axis,): query} if query.groups else {}
        return Targets(self.fine.shape, self.total, found, sigma, self.fine.domain.zeros, refined)


def check_cells(shape: Shape, sets: Iterable[Axes]) -> None:
    """Refuse tables, some of them in groups of levels, that have too many cells once every level stands by itself."""
    cells = sum(prod(shape[axis] for axis in axes) for axes in maximal(sets))
    if cells > MOST_CELLS:
        raise SizeError(
            f"tables in groups of levels have {shown_count(cells)} cells once every level stands by itself; at most {MOST_CELLS:,} can be solved. Solve fewer "
            "columns, or give the schema wider bins"
        )


def _raked(start: Floats, axes: Axes, goals: Sequence[tuple[Query, Floats]]) -> Floats:
    """A table raked to others, each of some of its columns in groups; zeros stay zero."""
    table = start * (goals[0][1].sum() / start.sum())
    for _ in range(SWEEPS):
        worst = 0.0
        for query, wanted in goals:
            have = query.apply(table, axes)
            worst = max(worst, float(np.abs(have - wanted).sum()) / 2)
            factor = query.spread(ratio(wanted, have))
            table = table * broadcast_over(factor, query.axes, axes)
        if worst <= CLOSE * goals[0][1].sum():
            break
    return np.asarray(table)
