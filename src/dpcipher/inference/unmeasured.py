"""Interactions that no measured table shows, left open: drawn from the prior while every measured table stays as it is.

Write the joint in the mixed parameters of a log-linear model (Barndorff-Nielsen 1978, §8.2): the measured tables by their probabilities, the other
interactions by their log-linear coefficients. The two vary independently of each other, and a release says nothing about the second but through
the first. With a prior under which they are independent, a draw from the posterior is therefore a draw of the measured tables, given the
release, joined with a draw of the others from their prior: multiply a draw of the joint by exp(interaction), then rake it back to its own tables.
"""

from collections.abc import Sequence
from itertools import groupby
from math import prod
from typing import Literal, get_args

import numpy as np

from dpcipher.errors import ParameterError
from dpcipher.marginals.arrays import Axes, Floats
from dpcipher.marginals.tables import closure
from dpcipher.posteriors.halves import kronecker
from dpcipher.posteriors.prior import Levels, coefficient_sd, contrasts
from dpcipher.posteriors.targets import BLOCK

# Proportional fitting stops when no cell of a table is further off than this, or after so many sweeps.
TOLERANCE = 1e-6
SWEEPS = 300


Unmeasured = Literal["open", "none"]


def check_unmeasured(unmeasured: str) -> None:
    """Refuse what is no way to treat interactions that no table shows."""
    if unmeasured not in get_args(Unmeasured):
        raise ParameterError(f"unmeasured ({unmeasured!r}) must be 'open' or 'none'")


def leave_open(
    joints: Floats, levels: Sequence[Levels], measured: Sequence[Axes], sets: Sequence[Axes], seed: int
) -> Floats:
    """Joint distributions with the tables of `joints` on `measured`, and prior draws of the interactions of `sets` beyond these.

    `levels` are those of every column. Draw i of an interaction is the same for the same seed, however many draws there are.

    >>> even = np.full((1, 2, 2), 0.25)
    >>> opened = leave_open(even, [Levels(2), Levels(2)], [(0,), (1,)], [(0, 1)], seed=1)
    >>> opened.sum(axis=1).round(4).tolist(), bool(abs(opened[0, 0, 0] - 0.25) > 0.01)
    ([[0.5, 0.5]], True)
    """
    known = set(closure(measured))
    parts = [part for part in closure(sets) if part and part not in known]
    if not parts:
        return joints
    scores = np.zeros_like(joints)
    for part in parts:
        scores += _interaction(len(joints), levels, part, np.random.default_rng([seed, *part]))
    return rake(joints * np.exp(scores - scores.max()), joints, measured)


def _interaction(draws: int, levels: Sequence[Levels], part: Axes, rng: np.random.Generator) -> Floats:
    """Draws of one interaction from the prior that the posterior has of it."""
    own = [levels[axis] for axis in part]
    deviation = coefficient_sd(own)
    table = deviation * rng.normal(size=(draws, len(deviation)))
    table = table @ kronecker([contrasts(one) for one in own]).T
    return table.reshape(draws, *(size if axis in part else 1 for axis, (size, _) in enumerate(levels)))


def rake(joints: Floats, goals: Floats, tables: Sequence[Axes]) -> Floats:
    """Iterative proportional fitting of every joint to the tables of its goal, as many at once as a processor's cache holds."""
    block = max(1, BLOCK // int(np.prod(joints.shape[1:])))
    parts = [slice(start, start + block) for start in range(0, len(joints), block)]
    return np.concatenate([_rake(joints[part], goals[part], tables) for part in parts])


def _rake(joints: Floats, goals: Floats, tables: Sequence[Axes]) -> Floats:
    fitted = joints / joints.sum(axis=tuple(range(1, joints.ndim)), keepdims=True)
    wanted = [_margin(goals, axes) for axes in tables]
    left = np.arange(len(fitted))  # those that are not there yet
    for _ in range(SWEEPS):
        moving, furthest = fitted[left], np.zeros(len(left))
        for axes, goal in zip(tables, wanted, strict=True):
            now, there = _margin(moving, axes), goal[left]
            np.maximum(furthest, np.abs(now - there).reshape(len(left), -1).max(axis=1), out=furthest)
            moving *= np.divide(there, now, out=np.zeros_like(there), where=now > 0)
        fitted[left] = moving
        left = left[furthest >= TOLERANCE]
        if not len(left):
            break
    return np.asarray(fitted)


def _sum_out(stack: Floats, place: int) -> Floats:
    """The sum over one dimension; over the last one by a matrix product, which NumPy does several times faster."""
    if place == stack.ndim - 1:
        size = stack.shape[-1]
        return np.asarray(stack.reshape(-1, size) @ np.ones(size)).reshape(stack.shape[:-1])
    return np.asarray(np.add.reduce(stack, axis=place))


def _margin(stack: Floats, axes: Axes) -> Floats:
    """The tables on `axes` of a stack, with dimensions of one level for the axes that are summed over; neighbours are summed over at once."""
    shape = stack.shape[1:]
    runs = [
        (kept, prod(shape[axis] for axis in run))
        for kept, run in groupby(range(len(shape)), key=lambda axis: axis in axes)
    ]
    table = stack.reshape(len(stack), *(size for _, size in runs))
    for place in reversed(range(len(runs))):
        if not runs[place][0]:
            table = _sum_out(table, 1 + place)
    return table.reshape(len(stack), *(size if axis in axes else 1 for axis, size in enumerate(shape)))
