"""Measurements: noisy answers to queries, and the law of their noise."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpcipher.errors import BudgetError, ParameterError, ReleaseError
from dpcipher.tables.domain import Floats
from dpcipher.tables.query import Combination, Query

NoiseKind = Literal["laplace", "gaussian", "none"]

# Below these the chance of any noise on a cell is under 1e-27, and "noisy" would be only a word; above the largest, sums of
# noise and counts (at most 2**53) could leave int64.
SMALLEST_SCALE: dict[NoiseKind, float] = {"laplace": 1 / 64, "gaussian": 1 / 16}
LARGEST_SCALE = 2.0**40
# From here on the variance of the discrete Gaussian and sigma² agree to all digits (they differ by a factor e^(-2 pi² sigma²)).
_SMOOTH_SIGMA = 2.0
# From here on two terms of Euler and Maclaurin's formula give the discrete Gaussian's E|X| to five digits.
_SMOOTH_ABSOLUTE = 8.0
# Of the mean absolute value of normal noise and its standard deviation.
NORMAL_ABSOLUTE = math.sqrt(2 / math.pi)
LARGEST_VALUE = 2**62  # so that no difference of two answers leaves int64


@dataclass(frozen=True)
class Noise:
    """Independent integer noise on every cell of a table.

    laplace: P(k) is proportional to exp(-|k|/scale). gaussian: P(k) is proportional to exp(-k²/(2 scale²)). none: exact counts, scale 0.
    """

    kind: NoiseKind
    scale: float

    def __post_init__(self) -> None:
        if self.kind not in ("laplace", "gaussian", "none"):
            raise ParameterError(f"mechanism ({self.kind!r}) must be 'laplace', 'gaussian' or 'none'")
        object.__setattr__(self, "scale", _checked_scale(self.kind, self.scale))

    @property
    def variance(self) -> float:
        """The exact variance of the noise on one cell.

        >>> round(Noise("laplace", 1.0).variance, 6), Noise("gaussian", 10.0).variance
        (1.841347, 100.0)
        """
        if self.kind == "none":
            return 0.0
        return _laplace_variance(self.scale) if self.kind == "laplace" else _gaussian_variance(self.scale)

    @property
    def mean_absolute(self) -> float:
        """The mean size of the noise on one cell, in counts.

        Discrete Laplace, P(k) proportional to q^|k| with q = e^(-1/scale): 2q/(1-q²). Discrete Gaussian: its series, or
        sqrt(2/pi) * (sigma - 1/(12 sigma)) where sigma is large.

        >>> round(Noise("laplace", 28.0).mean_absolute, 3), round(Noise("gaussian", 28.0).mean_absolute, 3)
        (27.994, 22.338)
        """
        if self.kind == "none":
            return 0.0
        if self.kind == "laplace":
            return -2 * math.exp(-1 / self.scale) / math.expm1(-2 / self.scale)
        if self.scale >= _SMOOTH_ABSOLUTE:
            return NORMAL_ABSOLUTE * (self.scale - 1 / (12 * self.scale))
        weights = [math.exp(-(k**2) / (2 * self.scale**2)) for k in range(100)]
        return 2 * sum(k * w for k, w in enumerate(weights)) / (2 * sum(weights) - 1)

    def describe(self) -> str:
        """A phrase for people.

        >>> Noise("laplace", 28).describe()
        'discrete Laplace noise of scale 28'
        """
        if self.kind == "none":
            return "no noise"
        return f"discrete {self.kind.capitalize()} noise of scale {self.scale:.6g}"


def _checked_scale(kind: NoiseKind, scale: object) -> float:
    """A scale that makes noise, and noise that fits; 0 for none."""
    if isinstance(scale, bool) or not isinstance(scale, int | float) or not math.isfinite(scale):
        raise ParameterError(f"scale ({scale!r}) must be a finite number; try scale=1.0")
    if kind == "none":
        if scale != 0:
            raise ParameterError(
                f"scale ({scale!r}) must be 0 with mechanism 'none'; try mechanism 'laplace'"
            )
        return 0.0
    if scale < SMALLEST_SCALE[kind]:
        raise BudgetError(
            f"scale ({scale:.6g}) of {kind} noise must be at least {SMALLEST_SCALE[kind]:.6g}; "
            f"lower the budget, or, for exact counts, try mechanism 'none' with scale 0"
        )
    if scale > LARGEST_SCALE:
        raise BudgetError(
            f"scale ({scale:.6g}) of {kind} noise must be at most {LARGEST_SCALE:.6g}; raise the budget"
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


@dataclass(frozen=True, eq=False)
class Measurement:
    """A noisy answer: what was asked, the numbers, the law of their noise, and the independent set it belongs to.

    >>> Measurement(Query((0,)), np.array([12, 30]), Noise("laplace", 2.0)).in_rows()[0].tolist()
    [12.0, 30.0]
    """

    query: Query | Combination
    values: NDArray[np.float64] | NDArray[np.int64]
    noise: Noise
    set: int = 0

    def __post_init__(self) -> None:
        if self.values.dtype.kind not in "if":
            raise ReleaseError(f"values of the table on axes {self.query.axes} must be numbers")
        low, high = (self.values.min(), self.values.max()) if self.values.size else (0, 0)
        if not (low >= -LARGEST_VALUE and high <= LARGEST_VALUE):  # a NaN is neither
            raise ReleaseError(
                f"the table on axes {self.query.axes} must hold finite counts within ±2**62; it has others"
            )

    @property
    def whole(self) -> bool:
        """Whether the values are whole numbers."""
        return self.values.dtype.kind == "i"

    @property
    def exact(self) -> bool:
        """Whether there is no noise."""
        return self.noise.kind == "none"

    def in_rows(self) -> tuple[Floats, float]:
        """Counts, and the variance of each; of a centred query or of contrasts counts but for what they do not say.

        The sum of all cells of a centred table is noise alone, which is taken out.
        """
        variance = _variance(self.noise)
        if isinstance(self.query, Combination) or not (self.query.centred or self.query.contrasts):
            return np.asarray(self.values, dtype=np.float64), variance
        asked = zip(self.query.axes, self.values.shape, strict=True)
        size = math.prod(n for axis, n in asked if self.query.centred or axis in self.query.contrasts)
        values = self.values - self.values.mean() if self.query.centred else self.values
        return np.asarray(values / size, dtype=np.float64), variance / size**2


@lru_cache(maxsize=256)
def _variance(noise: Noise) -> float:
    return noise.variance
