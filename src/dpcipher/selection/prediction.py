"""Predictions of the number of rows and of the counts of any table, from noisy answers alone; and what noisy distances from them say about the true ones."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpcipher.engines.denoise.denoise import denoise
from dpcipher.engines.rows import solve_rows
from dpcipher.engines.targets import Targets
from dpcipher.errors import SolveError
from dpcipher.release.reconcile import Reconciled
from dpcipher.selection.allocation import interaction_risk
from dpcipher.tables.domain import Axes, Floats, zero_cells
from dpcipher.tables.measurement import Noise
from dpcipher.tables.table import count_rows

GRAIN = 16  # predictions are rounded to sixteenths of a row
EMPTY = 0.25  # rows added to every predicted cell of a fitted table, for cells that no fitted row is in


@dataclass(frozen=True)
class Prediction:
    """A prediction of every table, a deterministic function of the noisy answers; `slack` rows are added to a cell where risk is computed."""

    total: float
    predict: Callable[[Axes], Floats]
    slack: float = 0.0

    def goal(self, axes: Axes) -> NDArray[np.int64]:
        """The predicted counts in sixteenths, as integers: distances are measured from these."""
        return np.asarray(np.rint(GRAIN * self.predict(axes)), dtype=np.int64)

    def risk(self, axes: Axes, distance: float) -> Callable[[Floats], Floats]:
        """The expected error of a table at this distance from its prediction, as a function of the precision of its noise."""
        return partial(interaction_risk, self.predict(axes) + self.slack, distance)


def independent(reconciled: Reconciled) -> Prediction | None:
    """Independent columns, each with its one-way table; None where the noisy total is not positive."""
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

    return Prediction(targets.total, predict)


def fitted(reconciled: Reconciled, last: int | None = None) -> Prediction | None:
    """Rows fitted to all measured tables, `last` a column to predict, with a fixed seed; None where the noisy total is not positive."""
    targets = _targets(reconciled)
    if targets is None:
        return None
    chain, fit = solve_rows(targets, last=last)
    codes = np.concatenate(list(chain.sample(fit.population, np.random.default_rng(0))))

    def predict(axes: Axes) -> Floats:
        return np.asarray(count_rows(codes, axes, targets.shape) * (targets.total / len(codes)))

    return Prediction(targets.total, predict, EMPTY)


def _targets(reconciled: Reconciled) -> Targets | None:
    try:
        return denoise(reconciled)
    except SolveError:
        return None


GRID = 160
STEPS = 100
MAX_SAMPLE = 400  # readings that the prior is estimated from
UNIFORM = (
    1e-9  # weight of a uniform component of the prior, so that an outlying distance keeps non-zero likelihood
)


def posterior_distances(noisy: NDArray[np.int64] | Floats, mechanism: Noise, largest: float) -> Floats:
    """The posterior mean of each distance, under the prior of maximum likelihood for all readings (EM on a grid).

    A distance lies between 0 and `largest`. Where the noise exceeds all differences, every posterior mean is close to the common mean.
    """
    readings = np.asarray(noisy, dtype=np.float64)
    deviation = max(mechanism.variance**0.5, 1e-9 * largest)
    least = min(deviation / 10, largest / 100)
    grid = np.concatenate([[0.0], np.geomspace(least, largest, GRID)])
    sample, multiplicity = _sample(readings)
    prior = _prior(_likelihood(sample, grid, mechanism, deviation), multiplicity)
    posterior = _likelihood(readings, grid, mechanism, deviation) * prior
    return np.asarray(posterior @ grid / posterior.sum(axis=1))


def _sample(readings: Floats) -> tuple[Floats, Floats]:
    """The readings to estimate from, and how many each stands for: all, or of many the largest and evenly spaced ranks of the rest."""
    if readings.size <= MAX_SAMPLE:
        return readings, np.ones(readings.size)
    half, ordered = MAX_SAMPLE // 2, np.sort(readings)
    rest = ordered[:-half]
    ranks = np.linspace(0, rest.size - 1, half).astype(int)
    return np.concatenate([rest[ranks], ordered[-half:]]), np.repeat([rest.size / half, 1.0], half)


def _likelihood(readings: Floats, grid: Floats, mechanism: Noise, deviation: float) -> Floats:
    """The likelihood of each distance of the grid, relative to the largest."""
    off = np.abs(readings[:, None] - grid) / deviation
    log = -(2**0.5) * off if mechanism.kind == "laplace" else -0.5 * off**2
    return np.asarray(np.exp(log - log.max(axis=1, keepdims=True)))


def _prior(likelihood: Floats, multiplicity: Floats) -> Floats:
    weights = np.full(likelihood.shape[1], 1 / likelihood.shape[1])
    for _ in range(STEPS):
        posterior = likelihood * weights
        weights = (multiplicity / multiplicity.sum() / posterior.sum(axis=1)) @ posterior
    return weights + UNIFORM / weights.size
