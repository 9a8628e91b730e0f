"""How tables are chosen by the exponential mechanism: the public part of their scores, and which of them a round may choose from.

Two strong pairs of three columns often imply the third. So a spanning forest of pairs comes first, as in Kruskal's algorithm: the candidates of a draw are the pairs whose columns are in different components
of the pairs chosen so far; once no such pair is left, all remaining pairs. The candidates depend on earlier choices alone, so that k draws
cost what k draws of the exponential mechanism cost (adaptive composition; McKenna, Miklau and Sheldon 2021 choose a spanning tree so).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpcipher.privacy.draws import Chooser
from dpcipher.selection.prediction import Prediction
from dpcipher.selection.target import SelectionTarget
from dpcipher.tables.domain import Axes

STRONG = 0.25  # distance over rows at which tables are compared


def weights_256(target: SelectionTarget, tables: Sequence[Axes]) -> NDArray[np.int64]:
    """The importance of each table relative to the largest, in 256ths: at most 1."""
    importance = np.array([target.importance(axes) for axes in tables])
    return np.asarray(np.round(importance / importance.max() * 256), dtype=np.int64)


def penalties(
    prediction: Prediction, tables: Sequence[Axes], precision: float, known: Callable[[Axes], float]
) -> NDArray[np.int64]:
    """What is taken off each distance: what is `known` without the table, and the error that noise would leave if it were measured."""
    strong, noise = STRONG * prediction.total, np.array([precision])
    left = (2 * float(prediction.risk(axes, strong)(noise)[0]) for axes in tables)
    return np.array(
        [round(error + known(axes)) for error, axes in zip(left, tables, strict=True)], dtype=np.int64
    )


def explained(distance: Mapping[Axes, float], axes: Axes) -> float:
    """The distances of the smaller tables inside a table, added up: without an interaction of its own it hardly shows more.

    >>> explained({(0, 1): 5.0, (1, 2): 3.0, (2, 3): 9.0}, (0, 1, 2))
    8.0
    """
    parts = (part for k in range(2, len(axes)) for part in combinations(axes, k))
    return math.fsum(distance.get(part, 0.0) for part in parts)


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
