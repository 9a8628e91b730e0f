"""The installed samplers against their exact laws, and what draws on neighbours prove of epsilon or mu.

A test of a sampler is a statistic with a critical value that a right sampler exceeds with a chance of at most `alpha`. A sampler of a scale ten per cent
off is far beyond it at 100,000 draws; so is the bias of OpenDP before 0.14.2.
"""

import math
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.special import gammaln
from scipy.stats import chi2, norm

from dpcipher.evaluation.check import EACH, Check, describe
from dpcipher.evaluation.evidence import (
    additive_losses,
    choice_losses,
    epsilon_of,
    lower_bound,
    mu_on_integers,
    range_of,
)
from dpcipher.evaluation.subjects import UNITS
from dpcipher.methods.dirichlet_prior import least_prior
from dpcipher.privacy.budget import Budget, choice_cost, cost, noise_for
from dpcipher.privacy.draws import NoiseSource, OpenDPChooser, OpenDPNoise, draw_posterior_counts
from dpcipher.privacy.terms import Unit
from dpcipher.tables.domain import Counts, Floats
from dpcipher.tables.measurement import Noise

SCALES = {"laplace": (0.5, 1.0, 3.0, 10.0, 28.0, 300.0), "gaussian": (0.5, 1.0, 3.0, 10.0, 28.0, 300.0)}
MECHANISMS = tuple(Noise(name, scale) for name, scales in SCALES.items() for scale in scales)  # type: ignore[arg-type]
MAX_BINS, LEAST_EXPECTED = 60, 20
LAGS = (1, 2, 3)


@dataclass(frozen=True)
class Statistic:
    """The value of a test, and the critical value beyond which it rejects."""

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


def sampler_checks(draws: int) -> Iterator[Check]:
    """Every sampler at six scales; of its statistics, the one that comes nearest to its critical value."""
    for mechanism in MECHANISMS:
        statistics = sampler_statistics(OpenDPNoise(), mechanism, draws, EACH)
        worst = max(statistics, key=lambda statistic: statistic.value / statistic.critical)
        what = f"{mechanism.kind}, scale {mechanism.scale:g}: {worst.name}"
        yield Check("samplers", what, "any", worst.critical, worst.value, draws)


OTHERS = 3


def mechanism_checks(trials: int, slow_trials: int) -> Iterator[Check]:
    """Noise on a table; choices and the urn, which are drawn one by one and get `slow_trials`."""
    for unit in UNITS:
        for budget in (Budget(epsilon=Fraction(1)), Budget(rho=Fraction(1, 2))):
            yield noise_check(noise_for(budget, unit), unit, trials)
    yield choice_check(slow_trials)
    yield urn_check(slow_trials)


def noise_check(mechanism: Noise, unit: Unit, trials: int) -> Check:
    """One person's rows in the worst place: all of them in one cell and, replaced, taken from another."""
    gap = np.array(
        [unit.max_rows, -unit.max_rows][: 1 if unit.relation == "add-remove" else 2], dtype=np.int64
    )
    blank = np.zeros((trials, gap.size), dtype=np.int64)
    here, there = (
        additive_losses(
            mechanism.kind, mechanism.scale, OpenDPNoise().add(blank, mechanism), gap, of_first=first
        )
        for first in (True, False)
    )
    amount, pure = float(cost(mechanism, unit).amount), mechanism.kind == "laplace"
    claimed, measure, bound = (
        (amount, "epsilon", epsilon_of)
        if pure
        else (math.sqrt(2 * amount), "mu", mu_on_integers(mechanism.scale))
    )
    found = lower_bound(here, there, bound, EACH)
    return Check("mechanisms", f"{mechanism.kind} noise, {measure}", describe(unit), claimed, found, trials)


def choice_check(trials: int) -> Check:
    """Two candidates, of which a person raises the score of one and lowers the other's: their odds change by the whole range.

    What the exponential mechanism costs is its range: the logarithms of all ratios lie within epsilon of each other, and rho is epsilon²/8.
    """
    scale, claimed = 2 / 3, 3.0
    first, second = np.array([0, 1], dtype=np.int64), np.array([1, 0], dtype=np.int64)
    assert math.isclose(choice_cost(scale, 1).amount, claimed)
    here, there = (
        choice_losses(
            first / scale,
            second / scale,
            np.array([OpenDPChooser().choose_many(scores, scale, 1) for _ in range(trials)]),
        )
        for scores in (first, second)
    )
    found = lower_bound(here, there, range_of, EACH)
    return Check("mechanisms", "choice, epsilon = √(8 rho)", "any", claimed, found, trials)


def urn_check(trials: int) -> Check:
    """Rows from the Dirichlet posterior: one drawn row, of a cell that holds a person's row or none, beside a few others."""
    epsilon = Fraction(3)
    prior = least_prior(1, epsilon, 1)
    tables = [np.array(counts, dtype=np.int64) for counts in ([0, OTHERS], [1, OTHERS])]
    here, there = (_urn_losses(tables, side, prior, trials) for side in (0, 1))
    found = lower_bound(here, there, epsilon_of, EACH)
    return Check("mechanisms", "multinomial-Dirichlet, epsilon", "add-remove", float(epsilon), found, trials)


def _urn_losses(tables: Sequence[Counts], side: int, prior: Fraction, trials: int) -> Floats:
    weights = tables[side] * prior.denominator + prior.numerator
    drawn = np.array(
        [draw_posterior_counts(weights, prior.denominator, 1, secrets.randbelow) for _ in range(trials)]
    )
    log = [_log_posterior(drawn, np.asarray(table + float(prior), dtype=np.float64)) for table in tables]
    return np.asarray(log[0] - log[1])


def _log_posterior(drawn: Counts, weights: Floats) -> Floats:
    """The log probability of drawn counts, up to what does not depend on the weights."""
    n_rows = drawn.sum(axis=1)
    each = (gammaln(weights + drawn) - gammaln(weights)).sum(axis=1)
    return np.asarray(each + gammaln(weights.sum()) - gammaln(weights.sum() + n_rows))
