"""Many margins of one stack of tables, and the sum of many tables spread over it, with the steps that they share taken once.

A pass over a large table costs more than all work on its margins. Each step drops one axis; the tables that lack an axis are reached through the margin
without it, so that all pairs of any number of columns take three passes over the whole table and not one for each pair.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpcipher.marginals.arrays import Axes, Floats, Shape


def sum_out(stack: Floats, place: int) -> Floats:
    """The sum over one dimension; over the last one by a matrix product, which NumPy does several times faster."""
    if place == stack.ndim - 1:
        size = stack.shape[-1]
        return np.asarray(stack.reshape(-1, size) @ np.ones(size)).reshape(stack.shape[:-1])
    return np.asarray(np.add.reduce(stack, axis=place))


@dataclass(frozen=True)
class Nested:
    """The wanted tables on `axes` themselves (by number), and the margins, each without one axis, through which the others are reached."""

    axes: Axes
    own: tuple[int, ...]
    margins: tuple[tuple[int, "Nested"], ...]

    @classmethod
    def of(cls, axes: Axes, wanted: Sequence[Axes]) -> "Nested":
        """The steps to every wanted table from one on all of `axes`.

        >>> [axes.axes for _, axes in Nested.of((0, 1, 2), [(0, 1), (1, 2), (0, 2)]).margins]
        [(0, 1), (0, 2), (1, 2)]
        """
        return cls._of(axes, dict(enumerate(wanted)))

    @classmethod
    def _of(cls, axes: Axes, wanted: Mapping[int, Axes]) -> "Nested":
        rest = {number: table for number, table in wanted.items() if table != axes}
        own, margins = tuple(number for number in wanted if number not in rest), []
        while rest:
            # The axis that most of them lack; the last of several, which is the cheapest to sum over.
            axis = max(axes, key=lambda axis: (sum(axis not in table for table in rest.values()), axis))
            reached = {number: table for number, table in rest.items() if axis not in table}
            inner = cls._of(tuple(other for other in axes if other != axis), reached)
            margins.append((1 + axes.index(axis), inner))
            rest = {number: table for number, table in rest.items() if number not in reached}
        return cls(axes, own, tuple(margins))

    def sums(self, stack: Floats) -> dict[int, Floats]:
        """Every wanted table of a stack (its first dimension runs over tables of all axes)."""
        tables = dict.fromkeys(self.own, stack)
        for place, inner in self.margins:
            tables |= inner.sums(sum_out(stack, place))
        return tables

    def spread(self, tables: Sequence[Floats], shape: Shape) -> Floats:
        """The transpose: the sum of the tables, each spread over the axes that it lacks; a new array of a stack over `shape`."""
        total = self._spread(tables)
        full = (len(tables[0]), *shape)
        return total if total.shape == full and total.base is None else np.array(np.broadcast_to(total, full))

    def _spread(self, tables: Sequence[Floats]) -> Floats:
        parts = [tables[number] for number in self.own]
        for place, inner in self.margins:
            table = inner._spread(tables)
            parts.append(table.reshape(*table.shape[:place], 1, *table.shape[place:]))
        total = parts[0]
        for number, part in enumerate(parts[1:]):
            total = (
                total + part
                if not number
                else np.add(total, part, out=total if _holds(total, part) else None)
            )
        return np.asarray(total)


def _holds(total: Floats, part: Floats) -> bool:
    """Whether a sum with `part` has the shape of `total`."""
    return np.broadcast_shapes(total.shape, part.shape) == total.shape
