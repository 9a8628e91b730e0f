"""Iterative proportional fitting of a stack of joint distributions, each to tables of its own: the interactions beyond these stay as they are."""

from collections.abc import Sequence
from itertools import groupby
from math import prod

import numpy as np

from dpcipher.posteriors.prior import Levels, draw_interaction
from dpcipher.posteriors.targets import BLOCK
from dpcipher.tables.domain import Axes, Floats
from dpcipher.tables.query import Query

# It stops when no cell of a table is further off than this, or after so many sweeps.
TOLERANCE, SWEEPS = 1e-6, 300


def open_interactions(
    joints: Floats, levels: Sequence[Levels], parts: Sequence[Axes], tables: Sequence[Query], seed: int
) -> Floats:
    """Joint distributions with the given tables of `joints`, and prior draws of the interactions of `parts` beyond these.

    Write the joint in the mixed parameters of a log-linear model (Barndorff-Nielsen 1978, §8.2): the measured tables by their probabilities, the other
    interactions by their log-linear coefficients. The two vary independently of each other, and a release says nothing about the second but through
    the first. With a prior under which they are independent, a draw from the posterior is therefore a draw of the measured tables, given the
    release, joined with a draw of the others from their prior: multiply a draw of the joint by exp(interaction), then rake it back to its own tables.

    Draw i of an interaction is the same for the same seed, however many draws there are.
    """
    scores = np.zeros_like(joints)
    for part in parts:
        scores += draw_interaction(len(joints), levels, part, np.random.default_rng([seed, *part]))
    return rake(joints * np.exp(scores - scores.max()), joints, tables)


def rake(joints: Floats, goals: Floats, tables: Sequence[Query]) -> Floats:
    """Iterative proportional fitting of every joint to the tables of its goal, as many at once as a processor's cache holds."""
    block = max(1, BLOCK // int(np.prod(joints.shape[1:])))
    parts = [slice(start, start + block) for start in range(0, len(joints), block)]
    return np.concatenate([_rake(joints[part], goals[part], tables) for part in parts])


def _rake(joints: Floats, goals: Floats, tables: Sequence[Query]) -> Floats:
    fitted = joints / joints.sum(axis=tuple(range(1, joints.ndim)), keepdims=True)
    wanted = [_counted(goals, query) for query in tables]
    left = np.arange(len(fitted))  # those that are not there yet
    for _ in range(SWEEPS):
        moving, furthest = fitted[left], np.zeros(len(left))
        for query, goal in zip(tables, wanted, strict=True):
            now, there = _counted(moving, query), goal[left]
            np.maximum(furthest, np.abs(now - there).reshape(len(left), -1).max(axis=1), out=furthest)
            factor = np.divide(there, now, out=np.zeros_like(there), where=now > 0)
            for axis, groups in query.columns:
                factor = factor if groups is None else groups.spread(factor, 1 + axis)
            moving *= factor
        fitted[left] = moving
        left = left[furthest >= TOLERANCE]
        if not len(left):
            break
    return np.asarray(fitted)


def _counted(stack: Floats, query: Query) -> Floats:
    """The tables of a query, with dimensions of one level for the axes that it leaves out."""
    table = _margin(stack, query.axes)
    for axis, groups in query.columns:
        table = table if groups is None else groups.merge(table, 1 + axis)
    return table


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
