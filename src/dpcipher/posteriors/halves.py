"""Sums of interactions over all cells, by the leading axes (the head) and the trailing ones (the tail).

A table of all columns is a matrix, head by tail. Interactions inside either half are small tables, added to its rows or columns; those that cross
are products of a function of the head and one of the tail, so that all of them are two products of small matrices. That takes a fraction of
the multiplications of the design matrix, cells by coefficients, and a few passes over the cells.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from dpcipher.tables.domain import Floats, Shape

Places = NDArray[np.intp]
Basis = tuple[int, Floats]  # an axis, and functions of it: levels by functions
Part = tuple[int, ...]  # the bases, by number, of an interaction: one for each of its axes


@dataclass(frozen=True, eq=False)
class Halves:
    """Interactions `parts` over the cells of a table of this `shape`, whose first `split` axes are the head.

    A part is a tuple of bases, by number: `bases` has for each its axis and its functions of that axis (levels by functions). The coefficients of
    the parts follow one another, one for every product of functions. `scores` and `pull` are each other's transpose; both take stacks, one row
    for each chain.
    """

    parts: tuple[Part, ...]
    bases: tuple[Basis, ...]
    shape: Shape
    split: int

    @classmethod
    def cheapest(cls, parts: tuple[Part, ...], bases: tuple[Basis, ...], shape: Shape) -> "Halves":
        """The division that takes the fewest multiplications."""
        divided = [cls(parts, bases, shape, split) for split in range(1, max(2, len(shape)))]
        return min(divided, key=lambda halves: halves.work)

    @property
    def work(self) -> int:
        """Multiplications for one chain."""
        (_, head), (_, tail) = self._inside
        first, second = self._crossing_functions
        crossing = len(second) * first.shape[1] * (len(first) + second.shape[1])
        return int(head.size + tail.size + crossing)

    def scores(self, coefficients: Floats) -> Floats:
        """The sum of the interactions in every cell: chains by cells."""
        chains, (first, second) = len(coefficients), self._crossing_functions
        grid = np.zeros((chains, len(second) * len(first)))
        grid[:, self._slots] = coefficients[:, self._crossing]
        by_head = grid.reshape(chains * len(second), len(first)) @ first
        mixed = _turned(by_head, chains)
        cells = (mixed @ second).reshape(chains, first.shape[1], second.shape[1])
        for (places, functions), axis in zip(self._inside, (2, 1), strict=True):
            cells += np.expand_dims(coefficients[:, places] @ functions, axis)
        return np.asarray(cells.reshape(chains, -1))

    def pull(self, slopes: Floats) -> Floats:
        """What slopes by cell (chains by cells) say about each coefficient."""
        chains, (first, second) = len(slopes), self._crossing_functions
        stack = slopes.reshape(chains, first.shape[1], second.shape[1])
        by_tail = stack.reshape(-1, second.shape[1]) @ second.T
        grid = _turned(by_tail, chains) @ first.T
        pulled = np.empty((chains, self.size))
        pulled[:, self._crossing] = grid.reshape(chains, len(second) * len(first))[:, self._slots]
        sums = stack @ np.ones(second.shape[1]), stack.sum(axis=1)
        for (places, functions), by_half in zip(self._inside, sums, strict=True):
            pulled[:, places] = by_half @ functions.T
        return pulled

    @cached_property
    def size(self) -> int:
        """How many coefficients there are."""
        return sum(map(self._count, self.parts))

    def _count(self, part: Part) -> int:
        return prod(self.bases[basis][1].shape[1] for basis in part)

    @cached_property
    def _pieces(self) -> dict[Part, tuple[Part, Part]]:
        """What of every part is in the head, and what in the tail."""

        def within(part: Part, half: int) -> Part:
            return tuple(basis for basis in part if (self.bases[basis][0] >= self.split) == half)

        return {part: (within(part, 0), within(part, 1)) for part in self.parts}

    def _places(self, parts: Sequence[Part]) -> Places:
        """Where the coefficients of these parts stand."""
        ends = np.cumsum([0, *map(self._count, self.parts)])
        starts = dict(zip(self.parts, ends, strict=False))
        ranges = [starts[part] + np.arange(self._count(part)) for part in parts]
        return np.concatenate([np.empty(0, dtype=np.intp), *ranges])

    @cached_property
    def _inside(self) -> list[tuple[Places, Floats]]:
        """For either half: where the coefficients of the parts inside it stand, and their functions."""
        inside = [[part for part, piece in self._pieces.items() if not piece[1 - half]] for half in (0, 1)]
        return [(self._places(parts), self._functions(parts, half)) for half, parts in enumerate(inside)]

    @cached_property
    def _crossing_parts(self) -> list[Part]:
        return [part for part, piece in self._pieces.items() if all(piece)]

    @cached_property
    def _crossing(self) -> Places:
        """Where the coefficients of the crossing parts stand."""
        return self._places(self._crossing_parts)

    @cached_property
    def _crossing_pieces(self) -> list[list[Part]]:
        """For either half: the pieces that the crossing parts have there, each once."""
        return [
            list(dict.fromkeys(self._pieces[part][half] for part in self._crossing_parts)) for half in (0, 1)
        ]

    @cached_property
    def _crossing_functions(self) -> list[Floats]:
        """For either half: the functions that crossing interactions are products of."""
        return [self._functions(pieces, half) for half, pieces in enumerate(self._crossing_pieces)]

    @cached_property
    def _slots(self) -> Places:
        """Where each crossing coefficient belongs in the grid of functions, tail by head."""
        first, second = (
            dict(zip(pieces, np.cumsum([0, *map(self._count, pieces)]), strict=False))
            for pieces in self._crossing_pieces
        )
        width, slots = len(self._crossing_functions[0]), [np.empty(0, dtype=np.intp)]
        for part in self._crossing_parts:
            head, tail = self._pieces[part]
            rows, columns = (
                second[tail] + np.arange(self._count(tail)),
                first[head] + np.arange(self._count(head)),
            )
            slots.append((columns[:, None] + width * rows).ravel())
        return np.concatenate(slots)

    def _functions(self, parts: Sequence[Part], half: int) -> Floats:
        """Every product of functions of the axes of each part, as a row over the cells of a half."""
        axes = range(self.split) if half == 0 else range(self.split, len(self.shape))
        rows = []
        for part in parts:
            own = dict(self.bases[basis] for basis in part)
            rows.append(
                kronecker([own[axis].T if axis in own else np.ones((1, self.shape[axis])) for axis in axes])
            )
        cells = prod(self.shape[axis] for axis in axes)
        return np.concatenate([np.empty((0, cells)), *rows])


def kronecker(matrices: Sequence[Floats]) -> Floats:
    """The Kronecker product of matrices; the number one of none.

    >>> kronecker([np.array([[1.0, 2.0]]), np.array([[1.0, 10.0]])]).tolist()
    [[1.0, 10.0, 2.0, 20.0]]
    """
    product: Floats = np.ones((1, 1))
    for matrix in matrices:
        product = np.asarray(np.kron(product, matrix), dtype=float)
    return product


def _turned(stack: Floats, chains: int) -> Floats:
    """Matrices below one another, one for each chain, each transposed."""
    rows, columns = len(stack) // chains, stack.shape[1]
    return stack.reshape(chains, rows, columns).swapaxes(1, 2).reshape(chains * columns, rows)
