"""The mechanisms on neighbours: what installed draws prove of epsilon or mu, against what is claimed."""

import math
import secrets
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
from scipy.special import gammaln

from dpcipher.audits.check import EACH, Check, describe
from dpcipher.audits.evidence import epsilon_of, lower_bound, mu_on_integers, range_of
from dpcipher.audits.losses import additive_losses, choice_losses
from dpcipher.audits.subjects import UNITS
from dpcipher.methods.dirichlet_prior import least_prior
from dpcipher.privacy.budget import Budget, choice_cost, cost, noise_for
from dpcipher.privacy.draws import OpenDPChooser, OpenDPNoise, draw_posterior_counts
from dpcipher.privacy.terms import Unit
from dpcipher.tables.domain import Counts, Floats
from dpcipher.tables.measurement import Noise

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
