"""Combine: one estimate and one variance from m synthetic data sets.

The rule is Reiter's (2003) for partially synthetic data, which Liu (2016) shows to hold for m independently sanitized sets:
with the mean estimate, W the mean of the m variances and B the variance between the m estimates,

    T = B/m + W,    (estimate - truth) / sqrt(T) ~ t with nu = (m - 1)(1 + mW/B)² degrees of freedom.

It is not Rubin's rule for imputation, whose T has (1 + 1/m)B.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri, stdtrit

from dpcipher.errors import ParameterError
from dpcipher.marginals.arrays import Floats

ONE_SET = (
    "m = 1: the spread between sets is unknown, so the variance is that of one set alone and leaves out "
    "the privacy noise; measure with sets=5 for intervals that include it"
)
BIAS = "bias from shrinkage and clipping is not in the variance; see docs/evaluate.md for measured coverage"


@dataclass(frozen=True)
class Combined:
    """Combined inference: arrays over parameters (0-dimensional for one parameter), and what to keep in mind.

    `within` is W, `between` is B and `variance` is T = B/m + W; `dof` is infinite where the sets agree exactly.
    """

    estimate: Floats
    variance: Floats
    dof: Floats
    within: Floats
    between: Floats
    sets: int
    notes: tuple[str, ...] = ()

    @property
    def std_error(self) -> Floats:
        """The square root of the variance."""
        return np.sqrt(self.variance)

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Bounds `(low, high)` from Student's t."""
        half = t_quantile(level, self.dof) * self.std_error
        return self.estimate - half, self.estimate + half

    def significant(self, level: float = 0.95) -> NDArray[np.bool_]:
        """Whether the interval excludes 0."""
        low, high = self.interval(level)
        return np.asarray((low > 0) | (high < 0))


def combine(estimates: ArrayLike, variances: ArrayLike, *, sanitizations: int | None = None) -> Combined:
    """Combine m estimates and their variances: the first axis runs over sets, any further axes over parameters.

    The sets must come from m independent sanitizations (`measure(sets=m)`), each with as many rows as the private table. Say
    `sanitizations` if there were fewer: several draws from one sanitization share its noise, so B misses it and the rule is
    refused.

    >>> both = combine([1.0, 3.0], [0.5, 0.5])
    >>> float(both.estimate), float(both.variance), float(both.dof)
    (2.0, 1.5, 2.25)
    """
    each, spread = _checked(estimates, variances)
    m = len(each)
    _check_sanitizations(m, sanitizations)
    if m == 1:
        infinite = np.full(each.shape[1:], np.inf)
        return Combined(each[0], spread[0], infinite, spread[0], np.zeros(each.shape[1:]), 1, (ONE_SET,))
    within, between = spread.mean(axis=0), each.var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        dof = np.where(between == 0, np.inf, (m - 1) * (1 + m * within / between) ** 2)
    return Combined(each.mean(axis=0), between / m + within, dof, within, between, m, (BIAS,))


def t_quantile(level: float, dof: ArrayLike) -> Floats:
    """The two-sided Student quantile; the normal one where `dof` is infinite.

    >>> t_quantile(0.95, [4, float("inf")]).round(3).tolist()
    [2.776, 1.96]
    """
    if not isinstance(level, (int, float)) or isinstance(level, bool) or not 0 < level < 1:
        raise ParameterError(f"level ({level!r}) must be a number between 0 and 1; try level=0.95")
    freedom = np.asarray(dof, dtype=float)
    finite = np.where(np.isfinite(freedom), freedom, 1.0)
    return np.asarray(
        np.where(np.isfinite(freedom), stdtrit(finite, 0.5 + level / 2), ndtri(0.5 + level / 2))
    )


def _checked(estimates: ArrayLike, variances: ArrayLike) -> tuple[Floats, Floats]:
    each, spread = np.asarray(estimates, dtype=float), np.asarray(variances, dtype=float)
    if each.ndim == 0 or not len(each):
        raise ParameterError(
            "estimates must hold one entry per data set on the first axis; give a list of m estimates"
        )
    if each.shape != spread.shape:
        raise ParameterError(
            f"variances {spread.shape} must have the shape of estimates {each.shape}; give one variance each"
        )
    if np.isinf(each).any() or np.isinf(spread).any():
        raise ParameterError(
            "estimates and variances must be finite; an infinite one is a sign of separation: fit with Firth's penalty"
        )
    if (spread < 0).any():
        raise ParameterError("variances must be 0 or more; give squared standard errors")
    return each, spread


def _check_sanitizations(m: int, sanitizations: int | None) -> None:
    if sanitizations is None or sanitizations == m:
        return
    raise ParameterError(
        f"sanitizations ({sanitizations}) must equal the number of sets ({m}): sets drawn from one sanitization share its noise, "
        "so their spread leaves it out and the intervals would be too short. Use measure(sets=m), or the closed-form "
        "release.query(...) for linear queries"
    )
