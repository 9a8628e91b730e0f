"""A spanning forest of pairs first: the exponential mechanism on the edges that join two components, as in Kruskal's algorithm.

Two strong pairs of three columns often imply the third. The candidates of a draw are the pairs whose columns are in different components
of the pairs chosen so far; once no such pair is left, all remaining pairs. The candidates depend on earlier choices alone, so that k draws
cost what k draws of the exponential mechanism cost (adaptive composition; McKenna, Miklau and Sheldon 2021 choose a spanning tree so).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpcipher.privacy.choose import Chooser
from dpcipher.tables.domain import Axes


class SpanningFirst:
    """Chooses pairs: a spanning forest, then from the others."""

    def __init__(self, pairs: Sequence[Axes]) -> None:
        self.pairs = np.array(pairs, dtype=np.int64).reshape(-1, 2)

    def __call__(self, chooser: Chooser, scores: NDArray[np.int64], scale: float, k: int) -> list[int]:
        """The positions of `k` pairs, in the order chosen."""
        component = np.arange(int(self.pairs.max()) + 1)
        picked: list[int] = []
        while len(picked) < k:
            joining = np.flatnonzero(component[self.pairs[:, 0]] != component[self.pairs[:, 1]])
            if not joining.size:
                break
            place = int(joining[chooser.choose(scores[joining], scale)])
            picked.append(place)
            left, right = component[self.pairs[place]]
            component[component == right] = left
        others = np.setdiff1d(np.arange(len(self.pairs)), picked)
        rest = chooser.choose_many(scores[others], scale, k - len(picked)) if len(picked) < k else []
        return [*picked, *(int(others[place]) for place in rest)]
