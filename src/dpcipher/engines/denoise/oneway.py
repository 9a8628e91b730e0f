"""Denoise a one-way table of many levels: posterior means of non-negative counts that must add up to the total.

The counts of the levels are drawn from an unknown distribution on [0, ∞): a point at zero and uniform pieces whose edges grow
geometrically from a fraction of the noise, so that it is flat where counts are far above the noise and nothing is shrunk there.
Its weights are estimated by EM from the levels themselves (a nonparametric empirical Bayes). That the counts add up to N is
information too: given the sum, the posterior is the same one with the observations shifted by a constant, which is found by
bisection; with a flat prior this is the projection on the simplex.
"""

import numpy as np
from scipy.fft import dct, idct
from scipy.special import ndtr

from dpcipher.marginals.arrays import Floats

STEPS = 50
FALLS = (0.0, 0.5, 1.0, 1.5, 2.0)
POWERS = 24
STRONG = 1000.0


def posterior_counts(counts: Floats, sigma: float, total: float) -> Floats:
    """The posterior mean of the counts given that they are non-negative and sum to `total`; noise is normal(0, sigma²)."""
    edges = _edges(sigma, max(1.5 * total, 1.2 * float(counts.max())))
    low, high = -4 * sigma, 4 * sigma
    for _ in range(25):
        shift = (low + high) / 2
        result = _posterior_mean(counts - shift, sigma, edges)
        low, high = (shift, high) if result.sum() > total else (low, shift)
    return np.asarray(result * (total / result.sum()))


def smooth(counts: Floats, sigma: float) -> tuple[Floats, float]:
    """Use the order of the levels where the counts themselves show that it matters; else return what was given.

    The cosine coefficients of a smooth histogram fall off with frequency j as j^(−2q); those of an arbitrary order do not (q = 0).
    The posterior mean over a grid of (q, size) is taken when the evidence for some q > 0 is `STRONG` to one. Returns the counts
    and the noise that is left in them.
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
        return counts, sigma
    kept = (belief[:, None] * prior / variance).sum(axis=0)
    flat = np.full(levels, counts.mean())
    return flat + idct(np.concatenate([[0.0], kept * z]), norm="ortho"), sigma * float(
        np.sqrt((kept**2).mean())
    )


def _powers(z: Floats, sigma: float, frequency: Floats, fall: float) -> Floats:
    """Sizes that bracket the strength of the lowest frequencies."""
    return np.geomspace(sigma**2 / 10, 10 * max(float((z**2).max()), sigma**2) * float(frequency[-1]), POWERS)


def _edges(sigma: float, top: float) -> Floats:
    growth = np.concatenate(
        [2.0 ** np.arange(-3, 1), 2.0 ** np.arange(0.5, 3.1, 0.5), 2.0 ** np.arange(4, 60)]
    )
    edges = np.concatenate([[0.0], sigma * growth])
    return edges[: int(np.searchsorted(edges, top)) + 1]


def _posterior_mean(counts: Floats, sigma: float, edges: Floats) -> Floats:
    likelihood, mean = _pieces(counts, sigma, edges)
    size = likelihood.shape[1]
    weights = np.full(size, 1 / size)
    for _ in range(STEPS):
        belief = likelihood * weights
        belief /= belief.sum(axis=1, keepdims=True)
        weights = (belief.sum(axis=0) + 1 / size) / (len(counts) + 1)
    belief = likelihood * weights
    return np.asarray((belief * mean).sum(axis=1) / belief.sum(axis=1))


def _pieces(counts: Floats, sigma: float, edges: Floats) -> tuple[Floats, Floats]:
    """Likelihood and posterior mean of each count (rows) under the point at zero and every uniform piece (columns)."""
    z = (edges - counts[:, None]) / sigma
    mass = np.maximum(np.diff(ndtr(z), axis=1), 0.0)
    density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    offset = np.divide(-np.diff(density, axis=1), mass, out=np.zeros_like(mass), where=mass > 1e-10)
    mean = np.clip(counts[:, None] + sigma * offset, edges[:-1], edges[1:])
    at_zero = np.exp(-0.5 * (counts / sigma) ** 2) / np.sqrt(2 * np.pi)
    likelihood = np.column_stack([at_zero, mass * sigma / np.diff(edges)])
    return np.maximum(likelihood, 1e-250), np.column_stack([np.zeros(len(counts)), mean])
