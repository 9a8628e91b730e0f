"""Iterative proportional fitting of a stack of joint distributions, each to tables of its own: the interactions beyond these stay as they are."""

from collections.abc import Sequence
from itertools import groupby
from math import prod

import numpy as np

from dpcipher.posteriors.targets import BLOCK
from dpcipher.tables.domain import Axes, Floats

# It stops when no cell of a table is further off than this, or after so many sweeps.
TOLERANCE, SWEEPS = 1e-6, 300


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
