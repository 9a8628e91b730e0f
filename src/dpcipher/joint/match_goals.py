"""Settling: redraw single cells of a drawn column until its tables with the earlier columns match their goals."""

import numpy as np
from numpy.typing import NDArray

from dpcipher.joint.even_rows import Ladder, row_sums
from dpcipher.marginals.arrays import Codes, Floats

PASSES = 8
BATCHES = 32
SMALLEST = 64  # rows in a batch
SETTLED = 0.2  # mean square distance from the goals, in rows, that counts as rounding

Places = NDArray[np.int64]


def match_goals(
    drawn: Codes,
    cells: Places,
    goals: Floats,
    ladder: Ladder,
    rng: np.random.Generator,
    *,
    passes: int = PASSES,
) -> Codes:
    """Redraw levels from the rows' own probabilities wherever that brings the column's tables nearer to `goals`.

    `cells[i, k] + level` is where row i falls in its k-th table, all tables laid out in one flat array; `goals` is that array
    filled with the counts wanted. Every pass proposes a new level, drawn from the row's own probabilities, to each row in cells
    that are too full, and keeps those that lower the squared distance: a Metropolis walk at temperature zero, so that a row never
    takes a level it could not have had.
    """
    levels = drawn.copy()
    excess = np.bincount((cells + levels[:, None]).ravel(), minlength=len(goals)) - goals
    change = np.zeros_like(excess)
    for _ in range(passes):
        if excess @ excess <= SETTLED * len(excess):
            break
        full = np.flatnonzero(row_sums(excess[cells + levels[:, None]]) > 0)
        proposed = ladder.draw(full, rng.random(len(full)))
        moving = rng.permutation(np.flatnonzero(proposed != levels[full]))
        for batch, level in zip(*_batches(full[moving], proposed[moving]), strict=True):
            kept = _move(
                cells[batch] + levels[batch, None], cells[batch] + level[:, None], excess, change, rng
            )
            levels[batch[kept]] = level[kept]
    return levels


def _batches(rows: NDArray[np.intp], proposed: Codes) -> tuple[list[NDArray[np.intp]], list[Codes]]:
    return np.array_split(rows, BATCHES), np.array_split(proposed, BATCHES)


def _move(
    origin: Places, aim: Places, excess: Floats, change: Floats, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Carry out, in `excess`, the moves of a batch that pay; which ones.

    The moves of a batch interfere: each is kept with the probability t that minimises |excess + t·(sum of the moves)|².
    `change` is scratch, zero on entry and on return.
    """
    # Moving one row changes half the squared distance by the sum over its tables of (excess at aim + 1/2) - (excess at origin - 1/2).
    pays = np.flatnonzero(row_sums(excess[aim] - excess[origin]) + origin.shape[1] < 0)
    share = _share(aim[pays].ravel(), origin[pays].ravel(), excess, change)
    kept = pays[rng.random(len(pays)) < share]
    np.add.at(excess, aim[kept].ravel(), 1.0)
    np.subtract.at(excess, origin[kept].ravel(), 1.0)
    return kept


def _share(aim: Places, origin: Places, excess: Floats, change: Floats) -> float:
    """The minimum over t of |excess + t·change|², where change is one up at each aim and one down at each origin."""
    np.add.at(change, aim, 1.0)
    np.subtract.at(change, origin, 1.0)
    length = float(change[aim].sum() - change[origin].sum())
    slope = float(excess[aim].sum() - excess[origin].sum())
    change[aim] = change[origin] = 0.0
    return -slope / length if length > 0 else 0.0
