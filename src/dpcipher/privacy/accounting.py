"""What noise costs, and what noise a budget buys: exact numbers, rounded toward privacy.

Costs add up: pure epsilons by summing, zCDP by summing rho. The two formulas that are not exact in fractions, the
conversion of zCDP to (epsilon, delta) and a square root, are computed in floats and then moved by more than the
float error in the safe direction: epsilon and scales up, rho down.
"""

import math
from collections.abc import Callable
from fractions import Fraction

# Far above the float error of the few operations below (about 1e-15), far below anything that matters.
_SLACK = 1e-14
# Search range of log(alpha - 1): it holds the best order for every epsilon, rho and delta that a Budget accepts.
_LOG_ORDERS = (-40.0, 60.0)
_GOLDEN = (math.sqrt(5) - 1) / 2


def _log_inverse(delta: Fraction) -> float:
    """log(1/delta), also where delta itself would underflow."""
    return math.log(delta.denominator) - math.log(delta.numerator)


def _order_terms(t: float, log_inverse_delta: float) -> tuple[float, float, float]:
    """The order alpha = 1 + e^t, the additive term of epsilon at that order, and the size of what was summed.

    Canonne, Kamath, Steinke 2020 ("The discrete Gaussian for differential privacy", arXiv v4, Proposition 12
    with divergence alpha rho): rho-zCDP gives (epsilon, delta) with, for any alpha > 1,
    epsilon = alpha rho + log(1/delta)/(alpha-1) - log(alpha)/(alpha-1) + log(1 - 1/alpha).
    Every order gives a true statement, so an imperfect search only costs accuracy, never privacy.
    """
    u = math.exp(t)
    gain, edge = math.log1p(u) / u, math.log1p(1 / u)
    return 1 + u, log_inverse_delta / u - gain - edge, log_inverse_delta / u + gain + edge


def _best(objective: Callable[[float], float]) -> float:
    """The minimum over log(alpha - 1) by golden section.

    log(delta) of CKS20 is convex in alpha, hence both objectives below are quasi-convex and have one valley.
    """
    low, high = _LOG_ORDERS
    for _ in range(120):
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        if objective(left) <= objective(right):
            high = right
        else:
            low = left
    return (low + high) / 2


def zcdp_to_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    """The smallest epsilon such that rho-zCDP implies (epsilon, delta), rounded up.

    >>> round(float(zcdp_to_epsilon(Fraction(1, 2), Fraction(1, 10**6))), 3)
    5.222
    """
    log_inverse, r = _log_inverse(delta), float(rho)

    def epsilon(t: float) -> float:
        alpha, additive, _ = _order_terms(t, log_inverse)
        return alpha * r + additive

    t = _best(epsilon)
    alpha, _, size = _order_terms(t, log_inverse)
    return max(Fraction(0), Fraction(epsilon(t) + _SLACK * (alpha * r + size)))


def rho_for(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho such that rho-zCDP implies (epsilon, delta), rounded down.

    >>> round(1 / math.sqrt(2 * rho_for(Fraction(1), Fraction(1, 10**6))), 6)
    4.530877
    """
    log_inverse, e = _log_inverse(delta), float(epsilon)

    def minus_rho(t: float) -> float:
        alpha, additive, _ = _order_terms(t, log_inverse)
        return (additive - e) / alpha

    t = _best(minus_rho)
    alpha, _, size = _order_terms(t, log_inverse)
    return Fraction(-minus_rho(t) - _SLACK * (e + size) / alpha)


def pure_to_rho(epsilon: Fraction) -> Fraction:
    """Pure epsilon implies (epsilon²/2)-zCDP (Bun and Steinke 2016, Proposition 1.4)."""
    return epsilon**2 / 2


def exponential_to_rho(epsilon: Fraction) -> Fraction:
    """The exponential mechanism at epsilon is (epsilon²/8)-zCDP (Cesar and Rogers 2021)."""
    return epsilon**2 / 8


def float_up(value: Fraction) -> float:
    """The smallest float that is not below `value`.

    >>> float_up(Fraction(28)), Fraction(float_up(Fraction(1, 3))) >= Fraction(1, 3)
    (28.0, True)
    """
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def sqrt_up(value: Fraction) -> float:
    """A float at or just above the square root of `value`."""
    root = math.sqrt(value)
    while Fraction(root) ** 2 < value:
        root = math.nextafter(root, math.inf)
    return root


def laplace_scale(epsilon: Fraction, l1: int) -> float:
    """The scale of discrete Laplace noise that costs at most `epsilon` at this L1 sensitivity: l1 / epsilon, rounded up."""
    return float_up(l1 / epsilon)


def gaussian_scale(rho: Fraction, l2_squared: int) -> float:
    """The sigma of discrete Gaussian noise that costs at most `rho`: sqrt(l2² / (2 rho)), rounded up.

    Multivariate discrete Gaussian noise is l2²/(2 sigma²)-zCDP (CKS20). The last factor keeps OpenDP's map
    within the budget too: it takes the L2 distance as a float, itself rounded up.
    """
    return sqrt_up(l2_squared / (2 * rho)) * (1 + 2**-48)
