"""The law of the noise on a cell, as a potential: minus the log-density, smooth enough for Hamiltonian steps.

The symmetric hyperbolic law has the density proportional to exp(-α √(δ² + x²)). With ζ = αδ it runs from Laplace (ζ → 0) to normal (ζ → ∞), as
sums of Laplace noise do while a table is summed over columns: the sum of k has the variance of one times k and its excess kurtosis divided by
k, and tails of the same rate. So each cell gets the member of the family that has its variance and its excess kurtosis (Barndorff-Nielsen 1977):

    variance = (δ²/ζ) K₂(ζ)/K₁(ζ),    excess kurtosis = 3 (K₃(ζ)K₁(ζ)/K₂(ζ)² - 1).
"""

import math
from dataclasses import dataclass
from functools import lru_cache

from scipy.optimize import brentq
from scipy.special import kve

from dpcipher.tables.measurement import Noise

# Below this ζ the law is Laplace for all purposes (excess 2.9 of 3), but its gradient still has no jump; above the largest it is normal.
SHARPEST, FLATTEST = 0.3, 1e4
# Counts are whole numbers and the model's tables are not: the least variance of any cell.
ROUNDING = 1 / 12
_LAPLACE_EXCESS = 3.0


@dataclass(frozen=True)
class NoiseLaw:
    """The variance and the excess kurtosis of the noise on one cell of a table."""

    variance: float
    excess: float

    @classmethod
    def of(cls, mechanism: Noise, summed: int) -> "NoiseLaw":
        """The law of the sum of `summed` independent cells of a measured table."""
        if mechanism.kind == "none":
            return cls(ROUNDING, 0.0)
        excess = _LAPLACE_EXCESS / summed if mechanism.kind == "laplace" else 0.0
        return cls(max(mechanism.variance * summed, ROUNDING), excess)

    @classmethod
    def mean(cls, laws: "list[NoiseLaw]") -> "NoiseLaw":
        """The law of the inverse-variance mean of independent cells: fourth cumulants add, as variances do."""
        precision = sum(1 / law.variance for law in laws)
        # The weight of a law is 1/(v·precision), so its fourth cumulant, excess·v², counts with weight⁴.
        fourth = sum(law.excess / law.variance**2 for law in laws) / precision**4
        return cls(1 / precision, fourth * precision**2)

    @property
    def shape(self) -> tuple[float, float]:
        """α and δ of the hyperbolic law with this variance and excess kurtosis."""
        zeta = _zeta(round(self.excess, 9))
        delta = math.sqrt(self.variance * zeta * kve(1, zeta) / kve(2, zeta))
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
