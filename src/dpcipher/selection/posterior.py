"""Distances as they are believed after reading them with noise."""

import numpy as np
from numpy.typing import NDArray

from dpcipher.privacy.mechanism import Mechanism

Floats = NDArray[np.float64]

GRID = 160
STEPS = 100
MOST = 400  # readings that the prior is learnt from
OPEN = 1e-9  # of the prior, spread over the grid: a reading unlike those it was learnt from is believed too


def believed(noisy: NDArray[np.int64] | Floats, mechanism: Mechanism, largest: float) -> Floats:
    """The posterior mean of each distance, under the prior that makes all readings together most likely (by EM on a grid).

    A distance lies between 0 and `largest`. Where the noise drowns all of them, every one is believed to be like the mean.
    """
    readings = np.asarray(noisy, dtype=np.float64)
    deviation = max(mechanism.variance**0.5, 1e-9 * largest)
    least = min(deviation / 10, largest / 100)
    grid = np.concatenate([[0.0], np.geomspace(least, largest, GRID)])
    sample, times = _sample(readings)
    prior = _prior(_likelihood(sample, grid, mechanism, deviation), times)
    belief = _likelihood(readings, grid, mechanism, deviation) * prior
    return np.asarray(belief @ grid / belief.sum(axis=1))


def _sample(readings: Floats) -> tuple[Floats, Floats]:
    """The readings to learn from, and how many each stands for: all; of many the largest, which matter, and even ranks of the rest."""
    if readings.size <= MOST:
        return readings, np.ones(readings.size)
    half, ordered = MOST // 2, np.sort(readings)
    rest = ordered[:-half]
    ranks = np.linspace(0, rest.size - 1, half).astype(int)
    return np.concatenate([rest[ranks], ordered[-half:]]), np.repeat([rest.size / half, 1.0], half)


def _likelihood(readings: Floats, grid: Floats, mechanism: Mechanism, deviation: float) -> Floats:
    """How likely each reading is at each distance, relative to the most likely."""
    off = np.abs(readings[:, None] - grid) / deviation
    log = -(2**0.5) * off if mechanism.name == "laplace" else -0.5 * off**2
    return np.asarray(np.exp(log - log.max(axis=1, keepdims=True)))


def _prior(likelihood: Floats, times: Floats) -> Floats:
    weights = np.full(likelihood.shape[1], 1 / likelihood.shape[1])
    for _ in range(STEPS):
        belief = likelihood * weights
        weights = (times / times.sum() / belief.sum(axis=1)) @ belief
    return weights + OPEN / weights.size
