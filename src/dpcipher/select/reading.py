"""Distances as they are believed after reading them with noise."""

import numpy as np
from numpy.typing import NDArray

from dpcipher.privacy.mechanism import Mechanism

Floats = NDArray[np.float64]

GRID = 160
STEPS = 100
MOST = 400  # readings that the prior is learnt from; more are taken at even ranks


def believed(noisy: NDArray[np.int64] | Floats, mechanism: Mechanism, largest: float) -> Floats:
    """The posterior mean of each distance, under the prior that makes all readings together most likely (by EM on a grid).

    A distance lies between 0 and `largest`. Where the noise drowns all of them, every one is believed to be like the mean.
    """
    readings = np.asarray(noisy, dtype=np.float64)
    deviation = max(mechanism.variance**0.5, 1e-9 * largest)
    least = min(deviation / 10, largest / 100)
    grid = np.concatenate([[0.0], np.geomspace(least, largest, GRID)])
    sample = readings
    if readings.size > MOST:
        sample = np.sort(readings)[np.linspace(0, readings.size - 1, MOST).astype(int)]
    weights = _prior(_likelihood(sample, grid, mechanism, deviation))
    belief = _likelihood(readings, grid, mechanism, deviation) * weights
    return np.asarray(belief @ grid / belief.sum(axis=1))


def _likelihood(readings: Floats, grid: Floats, mechanism: Mechanism, deviation: float) -> Floats:
    """How likely each reading is at each distance, relative to the most likely."""
    off = np.abs(readings[:, None] - grid) / deviation
    log = -(2**0.5) * off if mechanism.name == "laplace" else -0.5 * off**2
    return np.asarray(np.exp(log - log.max(axis=1, keepdims=True)))


def _prior(likelihood: Floats) -> Floats:
    weights = np.full(likelihood.shape[1], 1 / likelihood.shape[1])
    for _ in range(STEPS):
        belief = likelihood * weights
        weights = (belief / belief.sum(axis=1, keepdims=True)).mean(axis=0)
    return weights
