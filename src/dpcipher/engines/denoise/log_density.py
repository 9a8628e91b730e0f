"""A one-way table of ordered levels: a smooth log-density beside the estimate that knows no order, mixed by estimated risk.

The counts are N·p with log p a sum of cosines over the ordered levels, whose coefficients have the prior variance s·j^(−2·FALL) at frequency j: what is
normal or exponential is smooth so, and nothing is negative. The noise is normal and its variance is known, so that each s of a grid has a
posterior mode and, by Laplace's approximation, an evidence; the fits are weighted by it.

No level is smooth because its column is called ordered. The answer is A + w·(B − A), A the estimate without order, B the smooth one, and w the number between 0
and 1 that minimises Stein's unbiased estimate of the risk (Stein 1981), in which both count with their degrees of freedom. Heaped and shuffled columns get a w near 0.
"""

from dataclasses import dataclass

import numpy as np

from dpcipher.tables.domain import Floats

FALL = 2.0
WAVES = 32
SIZES: Floats = np.geomspace(1e-2, 1e3, 11)
STEPS = 30
CLOSE = 1e-6


@dataclass(frozen=True)
class Estimate:
    """Estimated counts, and the degrees of freedom it took: the sum of the derivatives of each count by its own observation."""

    counts: Floats
    freedom: float


@dataclass(frozen=True)
class Fit:
    """Observed counts with their noise, and what a smooth log-density is made of."""

    observed: Floats
    noise: float
    total: float
    waves: Floats

    def state(self, coefficients: Floats, size: float) -> tuple[Floats, float]:
        """The counts of some coefficients, and minus their log posterior."""
        exponent = self.waves.dot(coefficients)
        weights = np.exp(exponent - exponent.max())
        counts = self.total * weights / weights.sum()
        missed = self.observed - counts
        return counts, 0.5 * float(missed.dot(missed)) / self.noise + 0.5 * float(
            coefficients.dot(coefficients)
        ) / size

    def slopes(self, counts: Floats) -> Floats:
        """The derivative of the counts by each coefficient."""
        return np.asarray(counts[:, None] * (self.waves - counts.dot(self.waves) / self.total))


def smooth_counts(observed: Floats, sigma: float, total: float) -> Estimate:
    """The counts of ordered levels under a smooth log-density; they add up to `total`, which is above 0."""
    fit = Fit(observed, sigma**2, total, _waves(len(observed)))
    coefficients = np.zeros(fit.waves.shape[1])
    counts, freedom, evidence = [], [], []
    for size in SIZES:
        coefficients, found, value = _mode(fit, coefficients, float(size))
        slopes = fit.slopes(found)
        spread = np.maximum(np.linalg.eigvalsh(slopes.T @ slopes), 0.0) * (size / fit.noise)
        counts.append(found)
        freedom.append(float((spread / (1 + spread)).sum()))
        evidence.append(-value - 0.5 * float(np.log1p(spread).sum()))
    weights = np.exp(np.array(evidence) - max(evidence))
    weights /= weights.sum()
    return Estimate(weights @ np.array(counts), float(weights @ freedom))


def mixed(observed: Floats, sigma: float, plain: Estimate, smooth: Estimate) -> Floats:
    """Between two estimates, where the estimated risk |y − ŷ|² + 2σ²·freedom is least."""
    step = smooth.counts - plain.counts
    size = float(step.dot(step))
    gain = float((observed - plain.counts).dot(step)) - sigma**2 * (smooth.freedom - plain.freedom)
    return plain.counts + (min(max(gain / size, 0.0), 1.0) if size > 0 else 0.0) * step


def _waves(levels: int) -> Floats:
    frequency = np.arange(1, min(levels - 1, WAVES) + 1)
    place = (np.arange(levels) + 0.5) / levels
    return np.asarray(np.sqrt(2) * np.cos(np.pi * place[:, None] * frequency) * frequency**-FALL)


def _mode(fit: Fit, coefficients: Floats, size: float) -> tuple[Floats, Floats, float]:
    """The coefficients of largest posterior density, by Gauss-Newton steps halved until they gain; with their counts and minus the log of it."""
    counts, value = fit.state(coefficients, size)
    ridge = np.eye(len(coefficients)) / size
    for _ in range(STEPS):
        slopes = fit.slopes(counts)
        downhill = slopes.T.dot(fit.observed - counts) / fit.noise - coefficients / size
        step = np.linalg.solve(slopes.T @ slopes / fit.noise + ridge, downhill)
        gain, length = float(downhill.dot(step)), 1.0
        if gain < CLOSE:
            break
        trial, lower = fit.state(coefficients + step, size)
        while lower > value - 1e-4 * length * gain and length > CLOSE:
            length /= 2
            trial, lower = fit.state(coefficients + length * step, size)
        if lower >= value:
            break
        coefficients, counts, value = coefficients + length * step, trial, lower
    return coefficients, counts, value
