"""A junction tree that grows by the exponential mechanism: every round joins one column to neighbours inside one clique.

A column and its neighbours are a clique then, so that the graph stays chordal and its cliques have a junction tree. The score of a candidate is
the dependence of the column on its neighbours, n·R, whose sensitivity `scores.dependence` proves. What a round may choose from follows from
earlier choices and public sizes alone, so that the rounds cost what so many draws of the exponential mechanism cost (adaptive composition).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpcipher.methods.scores import Pair, maximal_parents
from dpcipher.privacy.draws import Chooser
from dpcipher.tables.domain import Axes, Shape

MAX_CANDIDATES = 40_000


@dataclass(frozen=True)
class Growth:
    """The trees that can grow from the first column: cliques of at most so many `cells`, and single columns of any size."""

    shape: Shape
    cells: float

    @cached_property
    def candidates(self) -> list[Pair]:
        """Every column but the first, with every set of neighbours that fits."""
        return [
            (axis, near)
            for axis in range(1, len(self.shape))
            for size in range(self._degree + 1)
            for near in combinations([other for other in range(len(self.shape)) if other != axis], size)
            if self._room(axis) >= math.prod(self.shape[other] for other in near)
        ]

    @property
    def is_free(self) -> bool:
        """Whether there is anything to choose: some pair of columns fits."""
        return any(near for _, near in self.candidates)

    def __call__(self, chooser: Chooser, scores: NDArray[np.int64], scale: float, k: int) -> list[int]:
        """The places of the chosen candidates: `k` rounds, each among the columns that have no place yet."""
        place = {pair: number for number, pair in enumerate(self.candidates)}
        columns = np.array([axis for axis, _ in self.candidates])
        left = np.ones(len(columns), dtype=bool)
        joins: dict[Axes, NDArray[np.int64]] = {(0,): self._joins((0,), place)}
        picked: list[int] = []
        while len(picked) < k:
            open_ = np.unique(np.concatenate(list(joins.values())))
            open_ = open_[left[open_]]
            picked.append(int(open_[chooser.choose(scores[open_], scale)]))
            axis, near = self.candidates[picked[-1]]
            left &= columns != axis
            joins.pop(near, None)  # a whole clique: it has grown
            clique = tuple(sorted((axis, *near)))
            joins[clique] = self._joins(clique, place)
        return picked

    def cliques(self, picked: Iterable[Pair]) -> list[Axes]:
        """The maximal cliques of a tree that has grown like this."""
        found: list[Axes] = [(0,)]
        for axis, near in picked:
            found = [*(clique for clique in found if clique != near), tuple(sorted((axis, *near)))]
        return found

    def _joins(self, clique: Axes, place: dict[Pair, int]) -> NDArray[np.int64]:
        """The places of every other column with as many neighbours in a clique as fit."""
        others = [axis for axis in range(1, len(self.shape)) if axis not in clique]
        pairs = [
            (axis, near)
            for axis in others
            for near in maximal_parents(clique, self.shape, self._room(axis), self._degree)
        ]
        return np.array([place[pair] for pair in pairs], dtype=np.int64)

    def _room(self, axis: int) -> float:
        """How many cells the neighbours of a column may have."""
        return max(1.0, self.cells / self.shape[axis])

    @cached_property
    def _degree(self) -> int:
        """The most neighbours such that all candidates can be scored."""
        d, degree = len(self.shape), 0
        while (
            degree < d - 1 and d * sum(math.comb(d - 1, size) for size in range(degree + 2)) <= MAX_CANDIDATES
        ):
            degree += 1
        return degree
