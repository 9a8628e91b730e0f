"""The law of the noise on a cell, as a potential: minus the log-density, smooth enough for Hamiltonian steps.

The symmetric hyperbolic law has the density proportional to exp(-α √(δ² + x²)). With ζ = αδ it runs from Laplace (ζ → 0) to normal (ζ → ∞), as
sums of Laplace noise do while a table is summed over columns: the sum of k has the variance of one times k and its excess kurtosis divided by
k, and tails of the same rate. So each cell gets the member of the family that has its variance and its excess kurtosis (Barndorff-Nielsen 1977):

    variance = (δ²/ζ) K₂(ζ)/K₁(ζ),    excess kurtosis = 3 (K₃(ζ)K₁(ζ)/K₂(ζ)² - 1).
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import kve

from dpcipher.tables.domain import Counts, Floats, Shape
from dpcipher.tables.measurement import NoiseKind

# Below this ζ the law is Laplace for all purposes (excess 2.9 of 3), but its gradient still has no jump; above the largest it is normal.
SHARPEST, FLATTEST = 0.3, 1e4
# Counts are whole numbers and the model's tables are not: the least variance of any cell.
ROUNDING = 1 / 12
_LAPLACE_EXCESS = 3.0


@dataclass(frozen=True)
class NoiseLaw:
    """The variance and the excess kurtosis of the noise on each cell of a table."""

    variance: Floats
    excess: Floats

    @classmethod
    def of(cls, kind: NoiseKind, variance: float, summed: Counts) -> "NoiseLaw":
        """The law of sums of so many independent cells of a measured table, each with noise of this kind and variance."""
        excess = _LAPLACE_EXCESS / np.maximum(summed, 1) if kind == "laplace" else np.zeros(summed.shape)
        return cls(np.maximum(variance * summed, ROUNDING), excess)

    @classmethod
    def normal(cls, shape: Shape, variance: float) -> "NoiseLaw":
        """Normal noise, alike on all cells."""
        return cls(np.full(shape, max(variance, ROUNDING)), np.zeros(shape))

    @classmethod
    def mean(cls, laws: "list[NoiseLaw]") -> "NoiseLaw":
        """The law of the inverse-variance mean of independent cells: fourth cumulants add, as variances do."""
        precision = sum((1 / law.variance for law in laws), np.zeros(()))
        # The weight of a law is 1/(v·precision), so its fourth cumulant, excess·v², counts with weight⁴.
        fourth = sum((law.excess / law.variance**2 for law in laws), np.zeros(())) / precision**4
        return cls(1 / precision, fourth * precision**2)

    @property
    def hyperbolic(self) -> tuple[Floats, Floats]:
        """α and δ, flat, of the hyperbolic law with this variance and excess kurtosis."""
        known, which = np.unique(np.round(self.excess, 9), return_inverse=True)
        zeta = np.array([_zeta(excess) for excess in known.tolist()])[which.ravel()]
        delta = np.sqrt(self.variance.ravel() * zeta * kve(1, zeta) / kve(2, zeta))
        return zeta / delta, delta


@lru_cache(maxsize=256)
def _zeta(excess: float) -> float:
    """The ζ of an excess kurtosis, within the bounds."""

    def gap(log_zeta: float) -> float:
        zeta = math.exp(log_zeta)
        return float(3 * (kve(3, zeta) * kve(1, zeta) / kve(2, zeta) ** 2 - 1) - excess)

    low, high = math.log(SHARPEST), math.log(FLATTEST)
    if gap(low) <= 0:
        return SHARPEST
    return FLATTEST if gap(high) >= 0 else math.exp(brentq(gap, low, high))
