"""Noise on counts: what it costs, and who draws it: OpenDP for releases, a seeded stand-in for experiments."""

import importlib.metadata
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any, ClassVar, Protocol, final

import numpy as np

from dpcipher.errors import BudgetError, DpcipherError, NotPrivate, ParameterError
from dpcipher.privacy.accounting import float_up, gaussian_scale, laplace_scale, sqrt_up
from dpcipher.privacy.budget import Budget
from dpcipher.tables.domain import Counts
from dpcipher.tables.measurement import SMALLEST_SCALE, Noise, NoiseKind

CELLS_AT_ONCE = 2**18  # that are handed to a sampler together, unless one table has more


def split_like(joined: Counts, tables: Sequence[Counts]) -> list[Counts]:
    """Cut what was concatenated apart again."""
    return np.split(joined, np.cumsum([counts.size for counts in tables])[:-1])


def runs_of_cells(members: Sequence[int], tables: Sequence[Counts]) -> Iterator[list[int]]:
    """The tables in runs of a bounded number of cells: a call takes seconds, and its answer is a list of Python's numbers."""
    some: list[int] = []
    cells = 0
    for place in members:
        if some and cells + tables[place].size > CELLS_AT_ONCE:
            yield some
            some, cells = [], 0
        some.append(place)
        cells += tables[place].size
    yield some


class Moved(Protocol):
    """How far one person moves what the noise is added to: a `Unit` says it of one table of counts, a `Sensitivity` of any answer."""

    @property
    def l1(self) -> int:
        """The L1 distance."""

    @property
    def l2_squared(self) -> int:
        """The squared L2 distance."""

    def __hash__(self) -> int:
        """Noise and costs are cached."""


def cost(noise: Noise, moved: Moved) -> Budget:
    """What an answer with this noise spends, exactly."""
    if noise.kind == "none":
        raise BudgetError("mechanism ('none') adds no noise, so no budget covers it; try 'laplace'")
    scale = Fraction(noise.scale)
    if noise.kind == "laplace":
        return Budget(epsilon=moved.l1 / scale)
    return Budget(rho=moved.l2_squared / (2 * scale**2))


@lru_cache(maxsize=256)
def mechanism_for(share: Budget, moved: Moved) -> Noise:
    """The least noise on an answer that costs at most `share`: Laplace for pure epsilon, Gaussian otherwise.

    >>> from dpcipher.privacy.unit import Unit
    >>> mechanism_for(Budget.parse(epsilon=0.25), Unit("replace"))
    Noise(kind='laplace', scale=8.0)
    """
    if share.kind == "pure":
        return Noise("laplace", laplace_scale(share.amount, moved.l1))
    return Noise("gaussian", gaussian_scale(share.amount, moved.l2_squared))


@lru_cache(maxsize=256)
def largest_share(whole: Budget, moved: Moved) -> Fraction:
    """The share of a budget that buys the least noise which is still noise.

    >>> from dpcipher.privacy.unit import Unit
    >>> largest_share(Budget.parse(epsilon=640.0), Unit("add-remove"))
    Fraction(1, 10)
    """
    name: NoiseKind = "laplace" if whole.kind == "pure" else "gaussian"
    return cost(Noise(name, SMALLEST_SCALE[name]), moved).amount / whole.amount


# Earlier samplers were biased (OpenDP issue 2638): a release at a claimed epsilon of 1/3 was measured to leak 0.46.
OPENDP_MINIMUM = (0, 14, 2)


class NoiseSource(ABC):
    """Something that adds independent integer noise to every cell of a table."""

    is_private: ClassVar[bool]

    @final
    def add(self, counts: Counts, mechanism: Noise) -> Counts:
        """The counts with fresh noise on every cell, observed or not; the input is left as it was."""
        self._refuse(counts, mechanism)
        return self._noisy(np.ascontiguousarray(counts).reshape(-1), mechanism).reshape(counts.shape)

    @final
    def add_many(
        self,
        tables: Sequence[Counts],
        mechanisms: Sequence[Noise],
        *,
        progress: Callable[[int], None] = lambda _: None,
    ) -> list[Counts]:
        """The same for many tables, each with noise of its own; those that share a mechanism are handed to the sampler together.

        `progress` is told how many cells have their noise.
        """
        for counts, mechanism in zip(tables, mechanisms, strict=True):
            self._refuse(counts, mechanism)
        by_mechanism: dict[Noise, list[int]] = {}
        for place, mechanism in enumerate(mechanisms):
            by_mechanism.setdefault(mechanism, []).append(place)
        noisy: dict[int, Counts] = {}
        done = 0
        for mechanism, members in by_mechanism.items():
            for some in runs_of_cells(members, tables):
                flat = [np.ascontiguousarray(tables[place]).reshape(-1) for place in some]
                drawn = self._noisy_tables(flat, mechanism)
                noisy |= {
                    place: answer.reshape(tables[place].shape)
                    for place, answer in zip(some, drawn, strict=True)
                }
                done += sum(counts.size for counts in flat)
                progress(done)
        return [noisy[place] for place in range(len(tables))]

    @final
    def _refuse(self, counts: Counts, mechanism: Noise) -> None:
        """Refuse what is no table of counts, and a release without noise."""
        if not isinstance(counts, np.ndarray) or counts.dtype != np.int64:
            raise ParameterError(f"counts ({type(counts).__name__}) must be an int64 array")
        if mechanism.kind == "none" and self.is_private:
            raise NotPrivate(
                "mechanism ('none') adds no noise, so its table cannot be released; try 'laplace'"
            )

    def add_named(self, names: Sequence[str], counts: Counts, mechanism: Noise) -> Counts:
        """The same for counts of things with names that are private, of which there may be none; an audit tells by the names which is which."""
        return self.add(counts, mechanism) if len(names) else counts

    @abstractmethod
    def _noisy(self, counts: Counts, mechanism: Noise) -> Counts:
        """Flat counts with noise, as a new array."""

    def _noisy_tables(self, tables: Sequence[Counts], mechanism: Noise) -> list[Counts]:
        """The same for several flat tables, one by one unless it is cheaper together."""
        return [self._noisy(counts, mechanism) for counts in tables]

    @abstractmethod
    def certificate(self, mechanism: Noise, moved: Moved) -> float:
        """What an answer costs, rounded up: epsilon for laplace, rho for gaussian, infinity for none."""


@final
class OpenDPNoise(NoiseSource):
    """Exact discrete noise from OpenDP's samplers, with its privacy map as the certificate.

    The random bits come from the operating system through OpenSSL. There is no seed, here or in OpenDP.
    """

    is_private = True

    def _noisy(self, counts: Counts, mechanism: Noise) -> Counts:
        return np.asarray(_measurement(mechanism)(counts), dtype=np.int64)

    def _noisy_tables(self, tables: Sequence[Counts], mechanism: Noise) -> list[Counts]:
        """One call for all: noise is independent from cell to cell, so that it is no matter to which table a cell belongs."""
        return split_like(self._noisy(np.concatenate(tables), mechanism), tables)

    def certificate(self, mechanism: Noise, moved: Moved) -> float:
        """What OpenDP's privacy map says."""
        if mechanism.kind == "none":
            return math.inf
        distance = moved.l1 if mechanism.kind == "laplace" else sqrt_up(Fraction(moved.l2_squared))
        return float(_measurement(mechanism).map(distance))


@final
class SeededNoise(NoiseSource):
    """Repeatable noise of the same law, for experiments only: whoever knows the seed can subtract it. NOT PRIVATE.

    Unlike OpenDPNoise it accepts the mechanism "none", so that an experiment can also be run without noise.
    """

    is_private = False

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def _noisy(self, counts: Counts, mechanism: Noise) -> Counts:
        if mechanism.kind == "none":
            return counts.copy()
        draw = _discrete_laplace if mechanism.kind == "laplace" else _discrete_gaussian
        return counts + draw(self._rng, mechanism.scale, counts.size)

    def certificate(self, mechanism: Noise, moved: Moved) -> float:
        """What the law of the noise would cost if nobody could know the seed."""
        return math.inf if mechanism.kind == "none" else _cost(mechanism, moved)


@lru_cache(maxsize=256)
def _cost(mechanism: Noise, moved: Moved) -> float:
    """What an answer costs by the law of its noise, rounded up."""
    return float_up(cost(mechanism, moved).amount)


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
def _measurement(mechanism: Noise) -> Any:
    """OpenDP's measurement on a vector of 64-bit counts."""
    dp = opendp()
    # T is always said: OpenDP's plain `int` means 32 bits and saturates.
    domain = dp.vector_domain(dp.atom_domain(T=dp.i64))
    if mechanism.kind == "laplace":
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
