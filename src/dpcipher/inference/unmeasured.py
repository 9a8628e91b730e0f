"""Interactions that no measured table shows, left open: drawn from the prior while every measured table stays as it is.

Write the joint in the mixed parameters of a log-linear model (Barndorff-Nielsen 1978, §8.2): the measured tables by their probabilities, the other
interactions by their log-linear coefficients. The two vary independently of each other, and a release says nothing about the second but through
the first. With a prior under which they are independent, a draw from the posterior is therefore a draw of the measured tables, given the
release, joined with a draw of the others from their prior: multiply a draw of the joint by exp(interaction), then rake it back to its own tables.
"""

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

from dpcipher.errors import ParameterError
from dpcipher.posteriors.halves import kronecker
from dpcipher.posteriors.prior import Levels, coefficient_sd, contrasts
from dpcipher.posteriors.raking import rake
from dpcipher.tables.domain import Axes, Floats, closure

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
