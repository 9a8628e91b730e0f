"""Denoise a one-way table of many levels: posterior means of non-negative counts that must add up to the total.

The counts of the levels are drawn from an unknown distribution on [0, ∞): a point at zero and uniform pieces whose edges grow
geometrically from a fraction of the noise, so that it is flat where counts are far above the noise and nothing is shrunk there.
Its weights are estimated by EM from the levels themselves (a nonparametric empirical Bayes). That the counts add up to N is
information too: given the sum, the posterior is the same one with the observations shifted by a constant, which is found by
bisection; with a flat prior this is the projection on the simplex.

Where levels have an order, the answer is A + w·(B − A): A this estimate, B one with a smooth log-density, and w the number between 0 and 1 that minimises Stein's unbiased
estimate of the risk (Stein 1981), in which both count with their degrees of freedom; heaped and shuffled columns get a w near 0. B has the counts N·p with log p a sum of
cosines over the ordered levels, whose coefficients have the prior variance s·j^(−2·FALL) at frequency j: what is normal or exponential is smooth so, and nothing is
negative. Each s of a grid has a posterior mode and, by Laplace's approximation, an evidence; the fits are weighted by it.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.fft import dct, idct
from scipy.special import ndtr

from dpcipher.engines.denoise.interactions import Ordered
from dpcipher.tables.domain import Bools, Floats
from dpcipher.tables.raking import nearest

FALL = 2.0
WAVES = 32
SIZES: Floats = np.geomspace(1e-2, 1e3, 11)
NEWTON_STEPS = 30
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
    for _ in range(NEWTON_STEPS):
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


MANY_LEVELS = 12
STEPS = 50
FALLS = (0.0, 0.5, 1.0, 1.5, 2.0)
POWERS = 24
STRONG = 1000.0
NUDGE = 1e-3  # in noise deviations, for derivatives


def one_way_table(
    start: Floats,
    beyond: Floats,
    variance: float,
    kept: Floats,
    total: float,
    ordered: Ordered | None,
) -> Floats:
    """Non-negative counts of the possible levels: their posterior mean where there are many, else the nearest to what is kept."""
    possible, built = start > 0, np.zeros_like(start)
    if variance > 0 and np.count_nonzero(possible) >= MANY_LEVELS:
        counts = (start + beyond)[possible]
        built[possible] = denoise_one_way(counts, variance**0.5, total, _marked(ordered, possible))
    else:
        built[possible] = nearest((start + kept)[possible], total)
    return built


def _marked(ordered: Ordered | None, possible: Bools) -> Bools | None:
    """Which of the possible levels have an order; None where too few have."""
    if ordered is None:
        return None
    mask = np.zeros(len(possible), dtype=bool)
    mask[ordered] = True
    return mask[possible] if np.count_nonzero(mask & possible) >= MANY_LEVELS else None


def denoise_one_way(counts: Floats, sigma: float, total: float, ordered: Bools | None = None) -> Floats:
    """Non-negative counts that add up to `total`; `ordered` marks levels that are known to have an order, None where nothing is known."""
    inside = np.ones(len(counts), dtype=bool) if ordered is None else ordered
    smoothed = smooth(counts[inside], sigma)
    seen, left = counts.copy(), np.full(len(counts), sigma)
    seen[inside], left[inside] = smoothed.counts, smoothed.sigma
    found, slopes = posterior(seen, left, total)
    part = float(found[inside].sum())
    if ordered is None or part <= 0:
        return found
    plain = Estimate(found[inside], smoothed.own * float(slopes[inside].sum()))
    found[inside] = mixed(counts[inside], sigma, plain, smooth_counts(counts[inside], sigma, part))
    return found


def posterior(counts: Floats, sigma: Floats | float, total: float) -> tuple[Floats, Floats]:
    """The posterior mean of the counts given that they are non-negative and sum to `total`, and the derivative of each by its own observation.

    Noise is normal(0, sigma²).
    """
    sigma = np.broadcast_to(sigma, counts.shape)[:, None]
    edges = _edges(float(sigma.min()), max(1.5 * total, 1.2 * float(counts.max())))
    high = 4 * float(sigma.max())
    low = -high
    for _ in range(25):
        shift = (low + high) / 2
        pieces = _pieces(counts - shift, sigma, edges)
        weights = _weights(pieces[0])
        result = _mean(*pieces, weights)
        low, high = (shift, high) if result.sum() > total else (low, shift)
    nudge = NUDGE * sigma[:, 0]
    nudged = _mean(*_pieces(counts - shift + nudge, sigma, edges), weights)
    return result * (total / result.sum()), (nudged - result) / nudge


class Smoothed(NamedTuple):
    """Counts smoothed along their levels, the noise that is left in them, and the share of a count's own observation in it."""

    counts: Floats
    sigma: float
    own: float


def smooth(counts: Floats, sigma: float) -> Smoothed:
    """Use the order of the levels where the counts themselves show that it matters; else return what was given.

    The cosine coefficients of a smooth histogram fall off with frequency j as j^(−2q); those of an arbitrary order do not (q = 0).
    The posterior mean over a grid of (q, size) is taken when the evidence for some q > 0 is `STRONG` to one.
    """
    levels = len(counts)
    z = dct(counts, norm="ortho")[1:]
    frequency = np.arange(1.0, levels)
    prior = np.stack(
        [size * frequency ** (-2.0 * fall) for fall in FALLS for size in _powers(z, sigma, frequency, fall)]
    )
    variance = prior + sigma**2
    evidence = -0.5 * (np.log(variance) + z**2 / variance).sum(axis=1)
    belief = np.exp(evidence - evidence.max())
    belief /= belief.sum()
    if belief[:POWERS].sum() * STRONG > 1:
        return Smoothed(counts, sigma, 1.0)
    kept = (belief[:, None] * prior / variance).sum(axis=0)
    flat = np.full(levels, counts.mean())
    smoothed = flat + idct(np.concatenate([[0.0], kept * z]), norm="ortho")
    return Smoothed(smoothed, sigma * float(np.sqrt((kept**2).mean())), (1 + float(kept.sum())) / levels)


def _powers(z: Floats, sigma: float, frequency: Floats, fall: float) -> Floats:
    """Sizes that bracket the strength of the lowest frequencies."""
    return np.geomspace(sigma**2 / 10, 10 * max(float((z**2).max()), sigma**2) * float(frequency[-1]), POWERS)


def _edges(sigma: float, top: float) -> Floats:
    growth = np.concatenate(
        [2.0 ** np.arange(-3, 1), 2.0 ** np.arange(0.5, 3.1, 0.5), 2.0 ** np.arange(4, 60)]
    )
    edges = np.concatenate([[0.0], sigma * growth])
    return edges[: int(np.searchsorted(edges, top)) + 1]


def _weights(likelihood: Floats) -> Floats:
    """The weights of the pieces, by EM."""
    size = likelihood.shape[1]
    weights = np.full(size, 1 / size)
    for _ in range(STEPS):
        belief = likelihood * weights
        belief /= belief.sum(axis=1, keepdims=True)
        weights = (belief.sum(axis=0) + 1 / size) / (len(likelihood) + 1)
    return weights


def _mean(likelihood: Floats, mean: Floats, weights: Floats) -> Floats:
    """The posterior mean of each count."""
    belief = likelihood * weights
    return np.asarray((belief * mean).sum(axis=1) / belief.sum(axis=1))


def _pieces(counts: Floats, sigma: Floats, edges: Floats) -> tuple[Floats, Floats]:
    """Likelihood and posterior mean of each count (rows) under the point at zero and every uniform piece (columns)."""
    z = (edges - counts[:, None]) / sigma
    mass = np.maximum(np.diff(ndtr(z), axis=1), 0.0)
    density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    offset = np.divide(-np.diff(density, axis=1), mass, out=np.zeros_like(mass), where=mass > 1e-10)
    mean = np.clip(counts[:, None] + sigma * offset, edges[:-1], edges[1:])
    at_zero = np.exp(-0.5 * (counts / sigma[:, 0]) ** 2) / np.sqrt(2 * np.pi)
    likelihood = np.column_stack([at_zero, mass * sigma / np.diff(edges)])
    return np.maximum(likelihood, 1e-250), np.column_stack([np.zeros(len(counts)), mean])
