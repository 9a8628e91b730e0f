"""Interactions that no measured table shows, left open: drawn from the prior while every measured table stays as it is (`open_interactions`)."""

from collections.abc import Sequence
from typing import Literal, get_args

from dpcipher.errors import ParameterError
from dpcipher.posteriors.prior import Levels
from dpcipher.posteriors.raking import open_interactions
from dpcipher.tables.domain import Axes, Floats, closure
from dpcipher.tables.query import Query

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

    >>> import numpy as np
    >>> even = np.full((1, 2, 2), 0.25)
    >>> opened = leave_open(even, [Levels(2), Levels(2)], [(0,), (1,)], [(0, 1)], seed=1)
    >>> opened.sum(axis=1).round(4).tolist(), bool(abs(opened[0, 0, 0] - 0.25) > 0.01)
    ([[0.5, 0.5]], True)
    """
    known = set(closure(measured))
    parts = [part for part in closure(sets) if part and part not in known]
    if not parts:
        return joints
    return open_interactions(joints, levels, parts, [Query(axes) for axes in measured], seed)
