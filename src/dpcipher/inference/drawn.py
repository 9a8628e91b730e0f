"""Inference from posterior draws of parameters: estimates, intervals by quantiles, tail probabilities."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dpcipher.inference.combine import checked_level
from dpcipher.tables.domain import Floats

# Below this size, beside the design's own scale, a coefficient is 0 by the model and not by the data.
EXACT_ZERO = 1e-7


def middle(draws: Floats, level: float) -> tuple[Floats, Floats]:
    """Bounds between which another draw of the same law falls with probability `level`, as often below as above.

    Of n draws the k-th smallest has k/(n + 1) of the law below it on average (Weibull 1939); quantiles that forget the 1 are too narrow for few draws.
    """
    half = checked_level(level) / 2
    low, high = np.quantile(draws, [0.5 - half, 0.5 + half], axis=0, method="weibull")
    return np.asarray(low), np.asarray(high)


@dataclass(frozen=True)
class Drawn:
    """Draws of every parameter, given one release; it answers what `Combined` answers for m sets.

    The estimate is the median of the draws: it is the same whichever way a parameter is written, and a long tail on one side does not
    move it. The standard error is their standard deviation. An interval holds the middle `level` of the draws.
    """

    draws: Floats
    notes: tuple[str, ...] = ()
    sets: int = 1

    @cached_property
    def estimate(self) -> Floats:
        """The median of the draws."""
        return np.asarray(np.median(self.draws, axis=0))

    @cached_property
    def variance(self) -> Floats:
        """The variance of the draws."""
        return np.asarray(self.draws.var(axis=0, ddof=1))

    @property
    def std_error(self) -> Floats:
        """The standard deviation of the draws."""
        return np.asarray(np.sqrt(self.variance))

    @property
    def dof(self) -> Floats:
        """Infinite: quantiles of draws need no degrees of freedom."""
        return np.full(self.draws.shape[1:], np.inf)

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Bounds `(low, high)`: the quantiles that leave the same share of the draws out on both sides."""
        return middle(self.draws, level)

    def significant(self, level: float = 0.95) -> NDArray[np.bool_]:
        """Whether the interval excludes 0."""
        low, high = self.interval(level)
        return np.asarray((low > 0) | (high < 0)) & ~self.zero

    @property
    def zero(self) -> NDArray[np.bool_]:
        """The parameters that every draw has at 0, up to rounding: the model leaves them no room."""
        with np.errstate(invalid="ignore"):
            return np.asarray(np.abs(self.draws).max(axis=0) < EXACT_ZERO)

    @property
    def p(self) -> Floats:
        """Twice the share of draws on the rarer side of 0: below 1 − level where the interval excludes 0.

        It is never below 2 / (draws + 1), which is as small as so many draws can tell.
        """
        above, below = (self.draws > 0).sum(axis=0), (self.draws < 0).sum(axis=0)
        tail = 2 * (np.minimum(above, below) + 1) / (len(self.draws) + 1)
        p = np.where(self.zero, 1.0, np.minimum(tail, 1.0))
        return np.where(np.isnan(self.draws).any(axis=0), np.nan, p)

    def monte_carlo_error(self, level: float = 0.95) -> float:
        """How well so many independent draws know an end of an interval, in standard errors (of a normal posterior)."""
        tail = 0.5 - level / 2
        height = np.exp(-0.5 * ndtri(tail) ** 2) / np.sqrt(2 * np.pi)
        return float(np.sqrt(tail * (1 - tail) / len(self.draws)) / height)
