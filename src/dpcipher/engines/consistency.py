"""Making tables non-negative and making them agree: the simplex, proportional sweeps, consensus."""

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations

import numpy as np

from dpcipher.marginals.arrays import Axes, Floats
from dpcipher.marginals.tables import broadcast_over, dropped, margin

SWEEPS = 100
CLOSE = 1e-10
# Margins that contradict one another drive cells toward nothing; below this a ratio of margins could overflow.
VANISHING = 1e-150


def nearest(table: Floats, total: float) -> Floats:
    """The non-negative table with sum `total` that is nearest in least squares (subtract a constant, clip at zero).

    >>> nearest(np.array([3.0, 1.0, -2.0]), 2.0)
    array([2., 0., 0.])
    """
    if table.min(initial=0.0) >= 0 and abs(float(table.sum()) - total) <= 1e-12 * abs(total):
        return table
    flat = np.sort(table, axis=None)[::-1]
    excess = (np.cumsum(flat) - total) / np.arange(1, flat.size + 1)
    return np.asarray(np.maximum(table - excess[np.nonzero(flat > excess)[0][-1]], 0.0))


def sweep_to(table: Floats, axes: Axes, margins: Mapping[Axes, Floats], *, sweeps: int = SWEEPS) -> Floats:
    """Scale `table` proportionally until it has the given margins (iterative proportional fitting; zeros stay zero)."""
    table = table.copy()
    steps = [
        (dropped(axes, keep), broadcast_over(wanted, keep, axes), max(float(wanted.sum()), 1e-300))
        for keep, wanted in margins.items()
    ]
    for _ in range(sweeps):
        worst = 0.0
        for drop, wanted, total in steps:
            have = table.sum(axis=drop, keepdims=True)
            worst = max(worst, float(np.abs(have - wanted).sum()) / total)
            meet(table, wanted, have)
        if worst < CLOSE:
            break
    return table


def meet(table: Floats, wanted: Floats, have: Floats) -> None:
    """Scale `table`, in place, so that its margin `have` becomes `wanted`; all of the same number of dimensions.

    A margin that has all but vanished is met by the shares of its cells, which are at most one, instead of by a ratio.
    """
    if have.min(initial=np.inf) > VANISHING or not ((have > 0) & (have <= VANISHING)).any():
        table *= ratio(wanted, have)
    else:
        np.divide(table, have, out=table, where=have > 0)
        table *= wanted


def ratio(wanted: Floats, have: Floats) -> Floats:
    """wanted / have, 0 where there is nothing to scale."""
    if have.min(initial=np.inf) > 0:
        return wanted / have
    return np.divide(wanted, have, out=np.zeros_like(have), where=have > 0)


def consensus(
    tables: Mapping[Axes, Floats], weight: Mapping[Axes, float], *, sweeps: int = SWEEPS
) -> dict[Axes, Floats]:
    """Make tables agree on what they share: sweep each to the weighted mean of the shared margins, until none moves."""
    shared = _shared(tables)
    result = {axes: table.copy() for axes, table in tables.items()}
    for _ in range(sweeps):
        worst = 0.0
        for keep, covers in shared.items():
            have = {axes: margin(result[axes], axes, keep) for axes in covers}
            total = sum(weight[axes] for axes in covers)
            mean = sum((weight[axes] / total * have[axes] for axes in covers), np.zeros(1))
            for axes in covers:
                worst = max(worst, float(np.abs(have[axes] - mean).sum()))
                meet(result[axes], broadcast_over(mean, keep, axes), broadcast_over(have[axes], keep, axes))
        if worst < CLOSE:
            break
    return result


def _shared(tables: Collection[Axes]) -> dict[Axes, list[Axes]]:
    """The largest sets that two tables have in common, each with all the tables that hold it."""
    if len(tables) == 1:
        return {}
    holding: dict[Axes, list[Axes]] = {}
    for axes in tables:
        for k in range(1, len(axes)):
            for sub in combinations(axes, k):
                holding.setdefault(sub, []).append(axes)
    shared = {sub: covers for sub, covers in holding.items() if len(covers) > 1}
    inside = {(small, axes) for sub, covers in shared.items() for small in _faces(sub) for axes in covers}
    return {
        sub: covers for sub, covers in shared.items() if any((sub, axes) not in inside for axes in covers)
    }


def _faces(axes: Sequence[int]) -> list[Axes]:
    return list(combinations(axes, len(axes) - 1))
