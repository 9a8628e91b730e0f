"""Whether chains have converged: rank-normalised split R-hat, effective sample size, and the energy's share of movement.

Vehtari, Gelman, Simpson, Carpenter & Bürkner (2021) for the first two; Betancourt (2016) for the last. Arrays are iterations by chains by
quantities.
"""

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from dpcipher.tables.domain import Floats


def rank_normalised(values: Floats) -> Floats:
    """Each quantity's ranks over all chains, as normal quantiles."""
    flat = values.reshape(-1, values.shape[2])
    ranks = rankdata(flat, axis=0)
    return np.asarray(ndtri((ranks - 0.375) / (len(flat) + 0.25))).reshape(values.shape)


def split(values: Floats) -> Floats:
    """Every chain as two: its first and its second half."""
    half = len(values) // 2
    return np.concatenate([values[:half], values[-half:]], axis=1)


def _r_hat(values: Floats) -> Floats:
    length = len(values)
    within = values.var(axis=0, ddof=1).mean(axis=0)
    between = values.mean(axis=0).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.sqrt((length - 1) / length + between / within)
    return np.where(within > 0, ratio, np.where(between > 0, np.inf, 1.0))


def r_hat(values: Floats) -> Floats:
    """The larger of the R-hats of location (ranks) and of spread (ranks of the distance from the median)."""
    folded = np.abs(values - np.median(values, axis=(0, 1)))
    return np.maximum(_r_hat(split(rank_normalised(values))), _r_hat(split(rank_normalised(folded))))


def effective_size(values: Floats) -> Floats:
    """The bulk effective sample size: split chains, rank-normalised, Geyer's initial monotone sequence."""
    draws = split(rank_normalised(values))
    length, chains = draws.shape[:2]
    covariance = _autocovariance(draws).mean(axis=1)
    within = covariance[0] * length / (length - 1)
    total = within * (length - 1) / length + draws.mean(axis=0).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = np.nan_to_num(1 - (within - covariance) / total, nan=0.0)
    correlation[0] = 1.0
    even = length - length % 2
    pairs = correlation[:even].reshape(even // 2, 2, -1).sum(axis=1)
    pairs = np.where(np.minimum.accumulate(pairs > 0, axis=0), np.minimum.accumulate(pairs, axis=0), 0.0)
    time = np.maximum(2 * pairs.sum(axis=0) - 1, 1 / np.log10(chains * length))
    return np.asarray(chains * length / time)


def _autocovariance(draws: Floats) -> Floats:
    """The autocovariance of every chain at every lag, by the Fourier transform."""
    length = len(draws)
    centred = draws - draws.mean(axis=0)
    waves = np.fft.rfft(centred, n=2 * length, axis=0)
    return np.asarray(np.fft.irfft(np.abs(waves) ** 2, n=2 * length, axis=0)[:length]) / length


def energy_share(energies: Floats) -> float:
    """The smallest fraction, over chains, of the energy's variance that one new momentum covers (E-BFMI); below 0.2 tails go unseen."""
    steps = (np.diff(energies, axis=0) ** 2).mean(axis=0)
    spread = energies.var(axis=0)
    return float(np.min(np.where(spread > 0, steps / np.where(spread > 0, spread, 1.0), 1.0)))
