"""The law of the noise: a name, a scale and a variance."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from dpcipher.errors import BudgetError, ParameterError
from dpcipher.privacy.accounting import gaussian_scale, laplace_scale
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.unit import Unit

MechanismName = Literal["laplace", "gaussian", "none"]

# Below these the chance of any noise on a cell is under 1e-27, and "noisy" would be only a word; above the largest, sums of
# noise and counts (at most 2**53) could leave int64.
SMALLEST_SCALE: dict[MechanismName, float] = {"laplace": 1 / 64, "gaussian": 1 / 16}
LARGEST_SCALE = 2.0**40
# From here on the variance of the discrete Gaussian and sigma² agree to all digits (they differ by a factor e^(-2 pi² sigma²)).
_SMOOTH_SIGMA = 2.0


@dataclass(frozen=True)
class Mechanism:
    """Independent integer noise on every cell of a table.

    laplace: P(k) is proportional to exp(-|k|/scale). gaussian: P(k) is proportional to exp(-k²/(2 scale²)). none: exact counts, scale 0.
    """

    name: MechanismName
    scale: float

    def __post_init__(self) -> None:
        if self.name not in ("laplace", "gaussian", "none"):
            raise ParameterError(f"mechanism ({self.name!r}) must be 'laplace', 'gaussian' or 'none'")
        object.__setattr__(self, "scale", _checked_scale(self.name, self.scale))

    @property
    def variance(self) -> float:
        """The exact variance of the noise on one cell.

        >>> round(Mechanism("laplace", 1.0).variance, 6), Mechanism("gaussian", 10.0).variance
        (1.841347, 100.0)
        """
        if self.name == "none":
            return 0.0
        return _laplace_variance(self.scale) if self.name == "laplace" else _gaussian_variance(self.scale)

    def cost(self, unit: Unit) -> Budget:
        """What one table with this noise spends, exactly."""
        if self.name == "none":
            raise BudgetError("mechanism ('none') adds no noise, so no budget covers it; try 'laplace'")
        scale = Fraction(self.scale)
        if self.name == "laplace":
            return Budget(epsilon=unit.l1 / scale)
        return Budget(rho=unit.l2_squared / (2 * scale**2))

    def describe(self) -> str:
        """A phrase for people.

        >>> Mechanism("laplace", 28).describe()
        'discrete Laplace noise of scale 28'
        """
        if self.name == "none":
            return "no noise"
        return f"discrete {self.name.capitalize()} noise of scale {self.scale:.6g}"


@lru_cache(maxsize=256)
def mechanism_for(share: Budget, unit: Unit) -> Mechanism:
    """The least noise on one table that costs at most `share`: Laplace for pure epsilon, Gaussian otherwise.

    >>> mechanism_for(Budget.parse(epsilon=0.25), Unit("replace"))
    Mechanism(name='laplace', scale=8.0)
    """
    part = share.composable()
    if part.rho is not None:
        return Mechanism("gaussian", gaussian_scale(part.rho, unit.l2_squared))
    assert part.epsilon is not None  # composable budgets are rho or pure epsilon
    return Mechanism("laplace", laplace_scale(part.epsilon, unit.l1))


def _checked_scale(name: MechanismName, scale: object) -> float:
    """A scale that makes noise, and noise that fits; 0 for none."""
    if isinstance(scale, bool) or not isinstance(scale, int | float) or not math.isfinite(scale):
        raise ParameterError(f"scale ({scale!r}) must be a finite number; try scale=1.0")
    if name == "none":
        if scale != 0:
            raise ParameterError(
                f"scale ({scale!r}) must be 0 with mechanism 'none'; try mechanism 'laplace'"
            )
        return 0.0
    if scale < SMALLEST_SCALE[name]:
        raise BudgetError(
            f"scale ({scale:.6g}) of {name} noise must be at least {SMALLEST_SCALE[name]:.6g}; "
            f"lower the budget, or, for exact counts, try mechanism 'none' with scale 0"
        )
    if scale > LARGEST_SCALE:
        raise BudgetError(
            f"scale ({scale:.6g}) of {name} noise must be at most {LARGEST_SCALE:.6g}; raise the budget"
        )
    return float(scale)


def _laplace_variance(scale: float) -> float:
    """2q/(1-q)² with q = e^(-1/scale), written so that large scales lose no digits."""
    return 2 * math.exp(-1 / scale) / math.expm1(-1 / scale) ** 2


def _gaussian_variance(sigma: float) -> float:
    """The variance of the discrete Gaussian: its series where sigma is small, sigma² elsewhere."""
    if sigma >= _SMOOTH_SIGMA:
        return sigma**2
    weights = [math.exp(-(k**2) / (2 * sigma**2)) for k in range(80)]
    return 2 * sum(k**2 * w for k, w in enumerate(weights)) / (2 * sum(weights) - 1)
