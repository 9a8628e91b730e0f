"""What the chosen tables are for: the tables whose error counts, and the tables that may be measured."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from numbers import Integral, Real

from dpcipher.errors import ParameterError, WorkloadError
from dpcipher.schema.schema import Schema
from dpcipher.schema.workload import MAX_TABLE_CELLS, Workload

Axes = tuple[int, ...]

# The error of a table is made of those of its parts, which add up in squares: half of a part's own shows in the whole.
PART = 0.5
LARGEST_WEIGHT = 1e6  # so that the product over a target stays a number


@dataclass(frozen=True)
class Auto:
    """How to choose tables: orders up to `max_order` and sizes up to `max_cells` cells, for the sake of `target`.

    `target` is the workload whose error should be small: an order, or a list of attrs; by default all tables of `max_order` columns. A
    target table weighs the product of its columns' `column_weights`, which are 1 unless given. Every column's own table is measured
    whatever its size.
    """

    max_order: int = 3
    max_cells: int = 10_000
    target: int | Sequence[Sequence[str]] | None = None
    column_weights: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        _whole("max_order", self.max_order, 1, 3)
        _whole("max_cells", self.max_cells, 4, 10_000)
        if self.max_cells > MAX_TABLE_CELLS:
            raise ParameterError(
                f"max_cells ({self.max_cells}) must be at most {MAX_TABLE_CELLS}; try max_cells=10_000"
            )
        if self.max_order > 3:
            raise ParameterError(f"max_order ({self.max_order}) must be 1, 2 or 3; try max_order=3")
        if not isinstance(self.column_weights, Mapping | None):
            raise ParameterError(
                f"column_weights ({self.column_weights!r}) must give numbers by column; try column_weights={{'income': 2.0}}"
            )
        for name, weight in (self.column_weights or {}).items():
            if isinstance(weight, bool) or not isinstance(weight, Real) or not 0 <= weight <= LARGEST_WEIGHT:
                raise ParameterError(
                    f"column_weights[{name!r}] ({weight!r}) must be a number from 0 to 1e6; try 2.0, or leave it out for 1.0"
                )

    def on(self, schema: Schema) -> "Aim":
        """The same on a schema's attributes, by number."""
        weights = [1.0] * len(schema.attrs)
        for name, weight in (self.column_weights or {}).items():
            weights[schema.axes((name,))[0]] = float(weight)
        if not any(weights):
            raise ParameterError(
                "column_weights must leave at least one column with a weight above 0; leave a column out for 1.0"
            )
        order, listed = self._target(schema)
        # A table that no target holds is never measured.
        largest = min(self.max_order, order or max(map(len, listed)))
        aim = Aim(schema.shape, tuple(weights), largest, self.max_cells, order, listed)
        if not any(aim.importance((axis,)) for axis in range(len(schema.shape))):
            raise ParameterError(
                "column_weights leave no target table with a weight above 0; name a target of the columns that matter"
            )
        return aim

    def _target(self, schema: Schema) -> tuple[int, tuple[Axes, ...]]:
        """An order, or a list of tables (then the order is 0)."""
        if self.target is None:
            return min(self.max_order, len(schema.shape)), ()
        if isinstance(self.target, Integral) and not isinstance(self.target, bool):
            order = int(self.target)
            if not 1 <= order <= len(schema.shape):
                raise WorkloadError(
                    f"target ({order}) must be an order from 1 to {len(schema.shape)}, the number of attributes; try target=2"
                )
            return order, ()
        return 0, _listed(schema, self.target)


@dataclass(frozen=True)
class Aim:
    """Which tables may be measured, and how much the error of each counts."""

    shape: tuple[int, ...]
    weights: tuple[float, ...]
    max_order: int
    max_cells: int
    order: int
    listed: tuple[Axes, ...] = ()

    def tables(self, order: int) -> Iterator[Axes]:
        """Every table of an order that may be measured and whose error counts."""
        if order > self.max_order:
            return
        useful = [axis for axis in range(len(self.shape)) if self.shape[axis] > 1]
        for axes in combinations(useful, order):
            if self.fits(axes) and self.importance(axes) > 0:
                yield axes

    def fits(self, axes: Axes) -> bool:
        """Whether a table is small enough."""
        return math.prod(self.shape[axis] for axis in axes) <= self.max_cells

    def importance(self, axes: Axes) -> float:
        """How much an error in what `axes` show beyond their parts counts: once in itself, half in every target that holds it.

        >>> Aim((2, 2, 2), (1.0, 1.0, 1.0), 3, 100, order=3).importance((0, 1))
        0.5
        """
        if not self.listed:
            own = tuple(sorted(self.weights[axis] for axis in axes))
            return math.prod(own) * self._completions(own) * (1.0 if len(axes) == self.order else PART)
        holding = [target for target in self.listed if set(axes) <= set(target)]
        return sum(
            math.prod(self.weights[axis] for axis in target) * (1.0 if len(target) == len(axes) else PART)
            for target in holding
        )

    def _completions(self, own: tuple[float, ...]) -> float:
        """The sum over all targets that hold columns of these weights of the product of their other weights.

        Remembered, since few columns have a weight of their own.
        """
        if own not in self._known:
            rest = list(self.weights)
            for weight in own:
                rest.remove(weight)
            self._known[own] = _symmetric(rest, self.order - len(own))
        return self._known[own]

    @cached_property
    def _known(self) -> dict[tuple[float, ...], float]:
        return {}


def _symmetric(numbers: Sequence[float], order: int) -> float:
    """The sum over all choices of `order` of the numbers of their product; only additions, so that nothing cancels.

    >>> _symmetric([1.0, 2.0, 3.0], 2)
    11.0
    """
    if order < 0:
        return 0.0
    sums = [1.0] + [0.0] * order
    for number in numbers:
        for k in range(order, 0, -1):
            sums[k] += number * sums[k - 1]
    return sums[order]


def _listed(schema: Schema, target: object) -> tuple[Axes, ...]:
    """The target tables, by number; columns in none of them are completed by their own table only in what is measured."""
    if not (isinstance(target, Sequence) and target and all(map(_is_table, target))):
        raise WorkloadError(
            f"target ({target!r}) must be an order such as 2, or a list of tables such as [('age', 'sex')]"
        )
    covered = {name for table in target for name in table}
    rest = [(attr,) for attr in schema.attrs if attr not in covered]
    tables = Workload.parse(schema, [*target, *rest]).tables
    return tuple(schema.axes(table) for table in tables[: len(target)])


def _is_table(names: object) -> bool:
    return (
        isinstance(names, Sequence)
        and not isinstance(names, str)
        and len(names) > 0
        and all(isinstance(name, str) for name in names)
    )


def _whole(name: str, value: object, least: int, example: int) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ParameterError(
            f"{name} ({value!r}) must be a whole number of at least {least}; try {name}={example}"
        )
