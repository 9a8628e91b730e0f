"""How strong a Dirichlet prior must be for a draw of rows to hide any one person: always, or but for a small probability.

ñ rows are drawn from the posterior of a table of N rows in K cells, with α of prior in each and A = Kα. Adding a row to cell j, which holds n_j, multiplies
the chance of an output with c rows there by (A+N)/(A+N+ñ) · (α+n_j+c)/(α+n_j). A replaced row multiplies by (α+n_j+c)/(α+n_j) and by a factor of at most 1.

*Always* (`least_prior`): with c ≤ ñ both are at most 1 + ñ/α and at least 1/(1 + ñ/α). Hence α ≥ ñ/(e^ε − 1), for k rows a person ñ/(e^(ε/k) − 1).

*But for δ* (`probable_prior`; Machanavajjhala et al. 2008, (ε, δ)-probabilistic privacy): the factor is never below 1/(1 + ñ/A), and exceeds e^ε only
if c > (e^ε − 1)(α+n_j). With the row in place, c is beta-binomial with the weights α+n_j+1 and at least (K−1)α, since other rows draw away from
cell j. So δ is at most the largest of these tails over all n_j, of which those beyond ñ/(e^ε − 1) − α are zero. That bounds (ε, δ) both ways, so that the
draw is, on either neighbour, a coin that fails with probability δ, the same on both, and a law of pure ε when it does not (Kairouz, Oh and
Viswanath 2015): ε²/2 of rho but for δ. For k rows a person it is k steps of ε/k, whose δs add up to δ(1 + e^(ε/k) + … + e^(ε−ε/k)).
"""

import math
from fractions import Fraction

import numpy as np
from scipy.special import betaln, gammaln

from dpcipher.tables.domain import Counts, Floats

# The prior is a multiple of 1/1024, rounded up, after a margin for the float logarithm.
_GRAIN = 1024
_MARGIN = 1 + 1e-12
# Logarithms of gamma functions of up to 2**51 are known to a few hundredths.
_TAIL_MARGIN = 1.25


def least_prior(n_rows: int, epsilon: Fraction, max_rows: int) -> Fraction:
    """The smallest α that makes `n_rows` draws cost at most epsilon, rounded up.

    >>> float(least_prior(200, Fraction(1), 1))
    116.3955078125
    """
    exact = n_rows / math.expm1(float(epsilon / max_rows)) if epsilon < 700 * max_rows else 0.0
    return _up(exact)


def probable_prior(n_rows: int, epsilon: Fraction, max_rows: int, *, cells: int, delta: Fraction) -> Fraction:
    """An α below `least_prior` that makes `n_rows` draws over so many cells cost at most epsilon, but for `delta`; that one where none is found.

    >>> float(probable_prior(200, Fraction(1), 1, cells=36, delta=Fraction(1, 10**6)))
    14.5498046875
    """
    always, each = least_prior(n_rows, epsilon, max_rows), float(epsilon / max_rows)
    if cells == 1 or each >= 700:
        return always
    step_delta = float(delta) / sum(math.exp(step * each) for step in range(max_rows))
    low = max(
        _up(n_rows / math.expm1(each) / cells), _up(1 / (cells - 1))
    )  # weights of 1 and more: see `_tails`
    least, most = int(low * _GRAIN), int(always * _GRAIN)
    while least < most:
        middle = (least + most) // 2
        if failure(Fraction(middle, _GRAIN), n_rows, each, cells) <= step_delta:
            most = middle
        else:
            least = middle + 1
    return Fraction(most, _GRAIN)


def failure(prior: Fraction, n_rows: int, epsilon: float, cells: int) -> float:
    """A bound on the probability of an output that tells one row by more than e^epsilon, whatever the table."""
    alpha, gain = float(prior), math.expm1(epsilon) / _MARGIN
    fullest = math.floor(n_rows / gain - alpha)
    if fullest < 0:
        return 0.0
    # From 64 rows on, n_j in steps of a thirty-second: the draw from the last of a step beside the limit of its first.
    first = np.unique(np.concatenate((np.arange(min(64, fullest) + 1), _steps(fullest)))).astype(np.int64)
    last = np.append(first[1:] - 1, fullest)
    fewest = np.floor(gain * (alpha + first)).astype(np.int64) + 1
    tails = _tails(fewest, n_rows, alpha + last + 1.0, (cells - 1) * alpha)
    return min(1.0, _TAIL_MARGIN * float(tails.max()))


def _steps(fullest: int) -> Floats:
    """Whole numbers from 64 up, each about a thirty-second more than the last."""
    if fullest <= 64:
        return np.empty(0)
    return np.floor(np.geomspace(64, fullest, 2 + math.ceil(32 * math.log(fullest / 64))))


def _tails(fewest: Counts, n_rows: int, a: Floats, b: float) -> Floats:
    """At most these chances of a beta-binomial to reach `fewest`.

    The ratio of one chance to the one before falls where a and b are at least 1, so that the chances from `fewest` on are below a
    geometric series.
    """
    k = np.minimum(fewest, n_rows).astype(np.float64)
    ways = gammaln(n_rows + 1) - gammaln(k + 1) - gammaln(n_rows - k + 1)
    chance = np.exp(np.minimum(0.0, ways + betaln(k + a, n_rows - k + b) - betaln(a, b)))
    ratio = (n_rows - k) * (a + k) / ((k + 1) * (b + n_rows - k - 1))
    with np.errstate(divide="ignore"):
        tail = np.where(ratio < 1, chance / np.maximum(1 - ratio, 0.0), 1.0)
    return np.where(fewest > n_rows, 0.0, np.minimum(tail, 1.0))


def _up(exact: float) -> Fraction:
    return Fraction(max(1, math.ceil(exact * _MARGIN * _GRAIN)), _GRAIN)
