"""The installed samplers against the exact laws: chi-square, signs, lags, and one table against the next.

Each test is a statistic with a critical value that a right sampler exceeds with a chance of at most `alpha`. A sampler of a scale ten per cent
off is far beyond it at 100,000 draws; so is the bias of OpenDP before 0.14.2.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2, norm

from dpcipher.privacy.draws import NoiseSource
from dpcipher.tables.domain import Counts, Floats
from dpcipher.tables.measurement import Noise

SCALES = {"laplace": (0.5, 1.0, 3.0, 10.0, 28.0, 300.0), "gaussian": (0.5, 1.0, 3.0, 10.0, 28.0, 300.0)}
MECHANISMS = tuple(Noise(name, scale) for name, scales in SCALES.items() for scale in scales)  # type: ignore[arg-type]
MAX_BINS, LEAST_EXPECTED = 60, 20
LAGS = (1, 2, 3)


@dataclass(frozen=True)
class Statistic:
    """What a test found, and from where on it rejects."""

    name: str
    value: float
    critical: float


def sampler_statistics(
    source: NoiseSource, mechanism: Noise, draws: int, alpha: float
) -> Iterator[Statistic]:
    """All tests of one mechanism, on fresh draws; `alpha` is shared among them."""
    blank = np.zeros(draws, dtype=np.int64)
    first = source.add(blank, mechanism)
    second = source.add(blank[: draws // 2], mechanism)
    part = alpha / (3 + len(LAGS))
    yield chi_square(first, mechanism, part)
    critical, deviation = float(norm.isf(part / 2)), mechanism.variance**0.5
    signs = np.sign(first[first != 0])
    yield Statistic("signs", abs(float(signs.sum())) / max(1.0, signs.size**0.5), critical)
    # The products are heavy-tailed at small scales; at so many draws their mean is normal all the same.
    for lag in LAGS:
        yield Statistic(f"lag {lag}", _correlation(first[lag:], first[:-lag], deviation), critical)
    yield Statistic("next table", _correlation(first[: second.size], second, deviation), critical)


def _correlation(one: Counts, other: Counts, deviation: float) -> float:
    products = (one / deviation) * (other / deviation)
    return abs(float(products.sum())) / max(1e-12, float(np.sqrt((products**2).sum())))


def chi_square(draws: Counts, mechanism: Noise, alpha: float) -> Statistic:
    """Pearson's statistic against the exact law, in at most 60 bins of about equal chance, each expecting 20 draws or more."""
    edges, chances = bins(mechanism, draws.size)
    observed = np.bincount(np.searchsorted(edges, draws), minlength=len(chances))
    expected = chances * draws.size
    value = float(((observed - expected) ** 2 / expected).sum())
    return Statistic("chi-square", value, float(chi2.isf(alpha, max(1, len(chances) - 1))))


def bins(mechanism: Noise, draws: int) -> tuple[Counts, Floats]:
    """The last value of each bin but the last bin, and the chance of each bin."""
    reach = int(45 * mechanism.scale) + 5
    values = np.arange(-reach, reach + 1)
    size = np.abs(values)
    log = -size / mechanism.scale if mechanism.kind == "laplace" else -(size**2) / (2 * mechanism.scale**2)
    below = np.cumsum(np.exp(log) / np.exp(log).sum())
    least, last, edges = max(1 / MAX_BINS, LEAST_EXPECTED / draws), 0.0, []
    for value, chance in zip(values, below, strict=True):
        if chance - last >= least and 1 - chance >= least:
            edges.append(int(value))
            last = float(chance)
    inner = np.array(edges, dtype=np.int64)
    return inner, np.diff(np.concatenate([[0.0], below[inner + reach], [1.0]]))
