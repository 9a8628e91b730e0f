"""What noisy distances say about the true ones: empirical Bayes with a non-parametric prior."""

import numpy as np
from numpy.typing import NDArray

from dpcipher.tables.domain import Floats
from dpcipher.tables.measurement import Noise

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
