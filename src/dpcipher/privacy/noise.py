"""Who draws the noise: OpenDP for releases, a seeded stand-in for experiments only."""

import importlib.metadata
import math
import re
from abc import ABC, abstractmethod
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any, ClassVar, final

import numpy as np

from dpcipher.errors import DpcipherError, NotPrivate, ParameterError
from dpcipher.marginals.arrays import Counts
from dpcipher.privacy.accounting import float_up, sqrt_up
from dpcipher.privacy.mechanism import Mechanism
from dpcipher.privacy.unit import Unit

# Earlier samplers were biased (OpenDP issue 2638): a release at a claimed epsilon of 1/3 was measured to leak 0.46.
OPENDP_MINIMUM = (0, 14, 2)


class NoiseSource(ABC):
    """Something that adds independent integer noise to every cell of a table."""

    is_private: ClassVar[bool]

    @final
    def add(self, counts: Counts, mechanism: Mechanism) -> Counts:
        """The counts with fresh noise on every cell, observed or not; the input is left as it was."""
        if not isinstance(counts, np.ndarray) or counts.dtype != np.int64:
            raise ParameterError(f"counts ({type(counts).__name__}) must be an int64 array")
        if mechanism.name == "none" and self.is_private:
            raise NotPrivate(
                "mechanism ('none') adds no noise, so its table cannot be released; try 'laplace'"
            )
        return self._noisy(np.ascontiguousarray(counts).reshape(-1), mechanism).reshape(counts.shape)

    @abstractmethod
    def _noisy(self, counts: Counts, mechanism: Mechanism) -> Counts:
        """Flat counts with noise, as a new array."""

    @abstractmethod
    def certificate(self, mechanism: Mechanism, unit: Unit) -> float:
        """What one table costs, rounded up: epsilon for laplace, rho for gaussian, infinity for none."""


@final
class OpenDPNoise(NoiseSource):
    """Exact discrete noise from OpenDP's samplers, with its privacy map as the certificate.

    The random bits come from the operating system through OpenSSL. There is no seed, here or in OpenDP.
    """

    is_private = True

    def _noisy(self, counts: Counts, mechanism: Mechanism) -> Counts:
        return np.asarray(_measurement(mechanism)(counts), dtype=np.int64)

    def certificate(self, mechanism: Mechanism, unit: Unit) -> float:
        """What OpenDP's privacy map says about one table."""
        if mechanism.name == "none":
            return math.inf
        distance = unit.l1 if mechanism.name == "laplace" else sqrt_up(Fraction(unit.l2_squared))
        return float(_measurement(mechanism).map(distance))


@final
class SeededNoise(NoiseSource):
    """Repeatable noise of the same law, for experiments only: whoever knows the seed can subtract it. NOT PRIVATE.

    Unlike OpenDPNoise it accepts the mechanism "none", so that an experiment can also be run without noise.
    """

    is_private = False

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def _noisy(self, counts: Counts, mechanism: Mechanism) -> Counts:
        if mechanism.name == "none":
            return counts.copy()
        draw = _discrete_laplace if mechanism.name == "laplace" else _discrete_gaussian
        return counts + draw(self._rng, mechanism.scale, counts.size)

    def certificate(self, mechanism: Mechanism, unit: Unit) -> float:
        """What the law of the noise would cost if nobody could know the seed."""
        return math.inf if mechanism.name == "none" else _cost(mechanism, unit)


@lru_cache(maxsize=256)
def _cost(mechanism: Mechanism, unit: Unit) -> float:
    """What one table costs by the law of its noise, rounded up."""
    cost = mechanism.cost(unit)
    return float_up(cost.rho if cost.rho is not None else cost.epsilon or Fraction(0))


@cache
def opendp() -> Any:
    """OpenDP, imported at first use (it takes a second) and refused if it is one of the biased versions."""
    version = importlib.metadata.version("opendp")
    if tuple(int(part) for part in re.findall(r"\d+", version)[:3]) < OPENDP_MINIMUM:
        raise DpcipherError(
            f"opendp ({version}) must be at least 0.14.2: earlier samplers are biased; run: pip install -U opendp"
        )
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp


@lru_cache(maxsize=256)
def _measurement(mechanism: Mechanism) -> Any:
    """OpenDP's measurement on a vector of 64-bit counts."""
    dp = opendp()
    # T is always said: OpenDP's plain `int` means 32 bits and saturates.
    domain = dp.vector_domain(dp.atom_domain(T=dp.i64))
    if mechanism.name == "laplace":
        return dp.m.make_laplace(domain, dp.l1_distance(T=dp.i64), scale=mechanism.scale)
    return dp.m.make_gaussian(domain, dp.l2_distance(T=dp.f64), scale=mechanism.scale)


def _discrete_laplace(rng: np.random.Generator, scale: float, size: int) -> Counts:
    """The difference of two geometric variables with ratio e^(-1/scale)."""
    stop = -np.expm1(-1 / scale)
    return np.asarray(rng.geometric(stop, size) - rng.geometric(stop, size), dtype=np.int64)


def _discrete_gaussian(rng: np.random.Generator, sigma: float, size: int) -> Counts:
    """Rejection from discrete Laplace (Canonne, Kamath, Steinke 2020, Algorithm 3), in floats."""
    t = np.floor(sigma) + 1
    kept = np.empty(0, dtype=np.int64)
    while kept.size < size:
        proposal = _discrete_laplace(rng, t, 2 * (size - kept.size) + 16)
        accept = np.exp(-((np.abs(proposal) - sigma**2 / t) ** 2) / (2 * sigma**2))
        kept = np.concatenate([kept, proposal[rng.random(proposal.size) < accept]])
    return kept[:size]
