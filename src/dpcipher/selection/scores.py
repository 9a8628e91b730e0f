"""The public part of the scores that tables are chosen by: what is taken off a distance, and what it is multiplied by."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

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
