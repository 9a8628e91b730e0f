"""The generalized Gaussian mechanism (Liu 2019), for research only: real-valued noise, and a weaker promise.

Its density is proportional to exp(−(|x|/b)^p): p = 1 is Laplace, p = 2 Gaussian with σ = b/√2. For whole p ≥ 2 it gives (ε, δ)-probabilistic
privacy, which implies (ε, δ)-privacy. The noise is drawn in floats from a seeded generator, so whatever it touches is
stamped NOT PRIVATE.
"""

import math
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import gammainccinv

from dpcipher.errors import BudgetError, ParameterError
from dpcipher.marginals.arrays import Counts
from dpcipher.privacy.noise import Mechanism, NoiseSource
from dpcipher.privacy.unit import Unit


def generalized_scale(power: int, epsilon: float, delta: float | None, unit: Unit) -> float:
    """The b of the noise on one table of counts.

    p = 1: Δ₁/ε. p ≥ 2: the smallest b with Pr(Σ_cells Σ_{j=1}^{p−1} C(p,j)|a|^{p−j}Δ^j > b^p·ε − Σ_cells Δ^p) ≤ δ, where a is the noise of
    a cell that a person changes by Δ. Rows added or removed change one cell by `max_rows`; rows replaced change two, for which a union
    bound is taken.
    """
    if power == 1:
        return unit.l1 / epsilon
    if delta is None:
        raise BudgetError(f"delta (None) must be given for power {power}; try delta=1e-6")
    cells, shift = (1, unit.max_rows) if unit.relation == "add-remove" else (2, unit.max_rows)

    def excess(log_scale: float) -> float:
        b = math.exp(log_scale)
        tail = b * float(gammainccinv(1 / power, delta / cells)) ** (1 / power)
        spread = sum(math.comb(power, j) * tail ** (power - j) * shift**j for j in range(1, power))
        return math.log(b**power * epsilon) - math.log(cells * (spread + shift**power))

    return math.exp(brentq(excess, math.log(shift * 1e-6), math.log(shift * 1e9), xtol=1e-13))


@final
class GeneralizedGaussianNoise(NoiseSource):
    """Generalized Gaussian noise of a fixed scale on every cell, rounded to whole numbers. NOT PRIVATE: for experiments.

    It replaces whatever mechanism the budget would have bought, so it belongs to methods that measure one table, such as
    FullHistogram; `scale` comes from `generalized_scale`.
    """

    is_private = False

    def __init__(self, power: int, scale: float, seed: int) -> None:
        if isinstance(power, bool) or not isinstance(power, int) or power < 1:
            raise ParameterError(f"power ({power!r}) must be a whole number of at least 1; try power=2")
        if not 0 < scale < math.inf:
            raise ParameterError(f"scale ({scale!r}) must be finite and above 0; try generalized_scale(...)")
        self.power, self.scale = power, scale
        self._rng = np.random.default_rng(seed)

    def draw(self, size: int) -> NDArray[np.float64]:
        """Real-valued noise: the p-th root of a gamma variable, with a random sign."""
        sizes = self.scale * self._rng.gamma(1 / self.power, size=size) ** (1 / self.power)
        return np.where(self._rng.random(size) < 0.5, -sizes, sizes)

    def _check(self, mechanism: Mechanism) -> None:
        """Any budget will do: the scale was given."""

    def _noisy(self, counts: Counts, mechanism: Mechanism) -> Counts:
        return counts + np.rint(self.draw(counts.size)).astype(np.int64)

    def certificate(self, mechanism: Mechanism, unit: Unit) -> float:
        """Nothing is certified."""
        return math.inf
