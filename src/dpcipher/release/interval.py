"""Intervals of reconciled counts: the noise is public, so no simulation is needed."""

import math

import numpy as np
from scipy.special import ndtri

from dpcipher.errors import ParameterError
from dpcipher.marginals.arrays import Floats


def interval(estimate: Floats, variance: Floats, level: float) -> tuple[Floats, Floats]:
    """Normal bounds around reconciled counts.

    A reconciled cell averages many independent noises, so its error is close to normal (benchmarks/results/coverage.md). Counts cannot be
    negative, so neither are the bounds; that loses no coverage.
    """
    half = quantile(level) * np.sqrt(variance)
    return np.maximum(estimate - half, 0.0), np.maximum(estimate + half, 0.0)


def quantile(level: float) -> float:
    """The normal quantile that a two-sided interval of this level uses.

    >>> round(quantile(0.95), 4)
    1.96
    """
    real = isinstance(level, (int, float)) and not isinstance(level, bool)
    if not real or not math.isfinite(level) or not 0 < level < 1:
        raise ParameterError(f"level ({level!r}) must be a number between 0 and 1; try level=0.95")
    return float(ndtri(0.5 + level / 2))
