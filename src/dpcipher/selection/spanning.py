"""Choosing pairs so that every column is reached first: the exponential mechanism on the edges that join two groups of columns.

Two strong pairs of three columns often imply the third. A round looks only at pairs whose columns no chain of chosen pairs connects
yet, as in Kruskal's algorithm; once all are connected, the remaining rounds look at what is left. Which pairs a round looks at is
decided by what earlier rounds chose, so that k rounds cost what k rounds of the exponential mechanism cost, whatever they look at
(adaptive composition; McKenna, Miklau and Sheldon 2021 choose a spanning tree so).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpcipher.privacy.choose import Chooser

Axes = tuple[int, ...]


class SpanningFirst:
    """Picks of pairs: a spanning forest, then the best of the others."""

    def __init__(self, pairs: Sequence[Axes]) -> None:
        self.pairs = np.array(pairs, dtype=np.int64).reshape(-1, 2)

    def __call__(self, chooser: Chooser, scores: NDArray[np.int64], scale: float, k: int) -> list[int]:
        """The places of `k` pairs, in the order chosen."""
        group = np.arange(int(self.pairs.max()) + 1)
        picked: list[int] = []
        while len(picked) < k:
            joining = np.flatnonzero(group[self.pairs[:, 0]] != group[self.pairs[:, 1]])
            if not joining.size:
                break
            place = int(joining[chooser.choose(scores[joining], scale)])
            picked.append(place)
            left, right = group[self.pairs[place]]
            group[group == right] = left
        others = np.setdiff1d(np.arange(len(self.pairs)), picked)
        rest = chooser.choose_many(scores[others], scale, k - len(picked)) if len(picked) < k else []
        return [*picked, *(int(others[place]) for place in rest)]
