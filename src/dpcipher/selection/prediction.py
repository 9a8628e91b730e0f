"""What is predicted so far: the number of rows, and the counts of any table, from released numbers alone."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpcipher.engines.denoise.denoise import denoise
from dpcipher.engines.rows import solve_rows
from dpcipher.engines.targets import Targets
from dpcipher.errors import SolveError
from dpcipher.release.gls import zero_cells
from dpcipher.release.reconcile import Reconciled
from dpcipher.selection.risk import Floats, interaction_risk
from dpcipher.selection.target import Axes

GRAIN = 16  # distances are measured from whole sixteenths of a row
EMPTY = 0.25  # rows that a cell of a fitted table may hold though none of the fitted rows is in it


@dataclass(frozen=True)
class View:
    """A prediction of every table; always the same for the same noisy answers."""

    total: float
    predict: Callable[[Axes], Floats]
    slack: float = 0.0

    def goal(self, axes: Axes) -> NDArray[np.int64]:
        """The prediction in whole sixteenths: what distances are measured from."""
        return np.asarray(np.rint(GRAIN * self.predict(axes)), dtype=np.int64)

    def risk(self, axes: Axes, distance: float) -> Callable[[Floats], Floats]:
        """The error to expect of a table at each precision of its noise, when it is so far from its prediction."""
        return partial(interaction_risk, self.predict(axes) + self.slack, distance)


def independent(reconciled: Reconciled) -> View | None:
    """Columns as their one-way tables have them, independent; None where the noise has drowned the rows."""
    targets = _targets(reconciled)
    if targets is None:
        return None
    shape, zeros = targets.shape, targets.zeros

    def predict(axes: Axes) -> Floats:
        table = np.full((), targets.total)
        for axis in axes:
            table = np.multiply.outer(table, targets.tables[(axis,)])
        possible = np.where(zero_cells(axes, shape, zeros), 0.0, table)
        return np.asarray(possible * (targets.total / max(float(possible.sum()), 1e-300)))

    return View(targets.total, predict)


def fitted(reconciled: Reconciled) -> View | None:
    """Rows fitted to all tables, with a fixed seed; None where the noise has drowned them."""
    targets = _targets(reconciled)
    if targets is None:
        return None
    chain, fit = solve_rows(targets)
    codes = np.concatenate(list(chain.sample(fit.population, np.random.default_rng(0))))

    def predict(axes: Axes) -> Floats:
        sizes = [targets.shape[axis] for axis in axes]
        cells = np.ravel_multi_index([codes[:, axis] for axis in axes], sizes)
        counts = np.bincount(cells, minlength=math.prod(sizes)).reshape(sizes)
        return np.asarray(counts * (targets.total / len(codes)))

    return View(targets.total, predict, EMPTY)


def _targets(reconciled: Reconciled) -> Targets | None:
    try:
        return denoise(reconciled)
    except SolveError:
        return None
