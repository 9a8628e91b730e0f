"""Settling: redraw single cells of a drawn column until its tables with the earlier columns match their goals."""

import numpy as np
from numpy.typing import NDArray

from dpcipher.joint.sequence import Codes, Floats, Ladder

PASSES = 8
BATCHES = 32


def settle(
    drawn: Codes, cells: NDArray[np.int64], goals: Floats, ladder: Ladder, rng: np.random.Generator
) -> Codes:
    """Redraw levels from the rows' own probabilities wherever that brings the column's tables nearer to `goals`.

    `cells[i, k] + level` is where row i falls in its k-th table, all tables laid out in one flat array; `goals` is that array
    filled with the counts wanted. Every pass proposes a new level to each row, drawn from the row's own probabilities, and keeps
    those that lower the squared distance: a Metropolis walk at temperature zero, so that a row never takes a level it could not
    have had. The moves of a batch interfere; each is kept with the probability that minimises the distance along their sum.
    """
    levels = drawn.copy()
    excess = np.bincount((cells + levels[:, None]).ravel(), minlength=len(goals)) - goals
    for _ in range(PASSES):
        proposed = ladder.draw(rng.random(len(levels)))
        rows = rng.permutation(np.flatnonzero(proposed != levels))
        for batch in np.array_split(rows, BATCHES):
            _move(levels, proposed, batch, cells, excess, rng)
    return levels


def _move(
    levels: Codes,
    proposed: Codes,
    rows: NDArray[np.intp],
    cells: NDArray[np.int64],
    excess: Floats,
    rng: np.random.Generator,
) -> None:
    """Carry out the moves of one batch that pay, in place."""
    origin, aim = cells[rows] + levels[rows, None], cells[rows] + proposed[rows, None]
    # Moving one row changes half the squared distance by the sum over its tables of (excess at aim + 1/2) - (excess at origin - 1/2).
    pays = (excess[aim] - excess[origin]).sum(axis=1) + cells.shape[1] < 0
    rows, origin, aim = rows[pays], origin[pays], aim[pays]
    keep = rng.random(len(rows)) < _step(origin, aim, excess)
    np.add.at(excess, aim[keep].ravel(), 1.0)
    np.add.at(excess, origin[keep].ravel(), -1.0)
    levels[rows[keep]] = proposed[rows[keep]]


def _step(origin: NDArray[np.int64], aim: NDArray[np.int64], excess: Floats) -> float:
    """The share of the moves to keep: the minimum of |excess + t·change|² over t, where change is the sum of all moves."""
    touched = np.concatenate([aim.ravel(), origin.ravel()])
    where, back = np.unique(touched, return_inverse=True)
    change = np.bincount(back, weights=np.repeat([1.0, -1.0], aim.size), minlength=len(where))
    length = float(change @ change)
    return min(1.0, -float(excess[where] @ change) / length) if length else 0.0
