"""Who draws: noise on counts, choices, and whole numbers below a bound; by OpenDP for releases, by a seeded stand-in for experiments.

A choice is the exponential mechanism: a candidate with integer score s is chosen with probability proportional to exp(s / scale) (McSherry and Talwar
2007). If one person changes every score by at most `sensitivity`, that costs epsilon = 2·sensitivity/scale, or rho = epsilon²/8 of zCDP
(Cesar and Rogers 2021). Scores are integers, so that no rounding of floats can tell neighbours apart. Choosing k candidates is k such rounds, each
among those that are left, and costs k times as much. Gumbel noise on every score and the k largest, in order, is exactly that (Durfee and Rogers 2019).
"""

import importlib.metadata
import math
import re
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from dpcipher.errors import BudgetError, DpcipherError, NotPrivate, ParameterError
from dpcipher.privacy.budget import Moved, choice_cost, cost, exponential_to_rho, float_up, sqrt_up
from dpcipher.tables.covering import at_once
from dpcipher.tables.domain import Counts
from dpcipher.tables.measurement import Noise

Scores = NDArray[np.int64]

CELLS_AT_ONCE = 2**18  # that are handed to a sampler together, unless one table has more
LARGEST_SCORE = 2**61  # so that sums and differences of scores stay within int64
# Earlier samplers were biased (OpenDP issue 2638): a release at a claimed epsilon of 1/3 was measured to leak 0.46.
OPENDP_MINIMUM = (0, 14, 2)


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


def split_like(joined: Counts, tables: Sequence[Counts]) -> list[Counts]:
    """Cut what was concatenated apart again."""
    return np.split(joined, np.cumsum([counts.size for counts in tables])[:-1])


class NoiseSource(ABC):
    """Something that adds independent integer noise to every cell of a table."""

    is_private: ClassVar[bool]

    @final
    def add(self, counts: Counts, noise: Noise) -> Counts:
        """The counts with fresh noise on every cell, observed or not; the input is left as it was."""
        self._refuse(counts, noise)
        return self._noisy(np.ascontiguousarray(counts).reshape(-1), noise).reshape(counts.shape)

    @final
    def add_many(
        self,
        tables: Sequence[Counts],
        noises: Sequence[Noise],
        *,
        progress: Callable[[int], None] = lambda _: None,
    ) -> list[Counts]:
        """The same for many tables, each with noise of its own; those whose noise has one law are handed to the sampler together.

        `progress` is told how many cells have their noise.
        """
        for counts, noise in zip(tables, noises, strict=True):
            self._refuse(counts, noise)
        by_mechanism: dict[Noise, list[int]] = {}
        for place, noise in enumerate(noises):
            by_mechanism.setdefault(noise, []).append(place)
        noisy: dict[int, Counts] = {}
        done = 0
        for noise, members in by_mechanism.items():
            # A call takes seconds, and its answer is a list of Python's numbers.
            for some in at_once(members, lambda place: tables[place].size, CELLS_AT_ONCE):
                flat = [np.ascontiguousarray(tables[place]).reshape(-1) for place in some]
                for place, answer in zip(some, self._noisy_tables(flat, noise), strict=True):
                    noisy[place] = answer.reshape(tables[place].shape)
                done += sum(counts.size for counts in flat)
                progress(done)
        return [noisy[place] for place in range(len(tables))]

    @final
    def _refuse(self, counts: Counts, noise: Noise) -> None:
        """Refuse what is no table of counts, and a release without noise."""
        if not isinstance(counts, np.ndarray) or counts.dtype != np.int64:
            raise ParameterError(f"counts ({type(counts).__name__}) must be an int64 array")
        if noise.kind == "none" and self.is_private:
            raise NotPrivate(
                "mechanism ('none') adds no noise, so its table cannot be released; try 'laplace'"
            )

    def add_named(self, names: Sequence[str], counts: Counts, noise: Noise) -> Counts:
        """The same for counts of things with names that are private, of which there may be none; an audit tells by the names which is which."""
        return self.add(counts, noise) if len(names) else counts

    @abstractmethod
    def _noisy(self, counts: Counts, noise: Noise) -> Counts:
        """Flat counts with noise, as a new array."""

    def _noisy_tables(self, tables: Sequence[Counts], noise: Noise) -> list[Counts]:
        """The same for several flat tables, one by one unless it is cheaper together."""
        return [self._noisy(counts, noise) for counts in tables]

    @abstractmethod
    def certificate(self, noise: Noise, moved: Moved) -> float:
        """What an answer costs, rounded up: epsilon for laplace, rho for gaussian, infinity for none."""


@final
class OpenDPNoise(NoiseSource):
    """Exact discrete noise from OpenDP's samplers, with its privacy map as the certificate.

    The random bits come from the operating system through OpenSSL. There is no seed, here or in OpenDP.
    """

    is_private = True

    def _noisy(self, counts: Counts, noise: Noise) -> Counts:
        return np.asarray(_measurement(noise)(counts), dtype=np.int64)

    def _noisy_tables(self, tables: Sequence[Counts], noise: Noise) -> list[Counts]:
        """One call for all: noise is independent from cell to cell, so that it is no matter to which table a cell belongs."""
        return split_like(self._noisy(np.concatenate(tables), noise), tables)

    def certificate(self, noise: Noise, moved: Moved) -> float:
        """What OpenDP's privacy map says."""
        if noise.kind == "none":
            return math.inf
        distance = moved.l1 if noise.kind == "laplace" else sqrt_up(Fraction(moved.l2_squared))
        return float(_measurement(noise).map(distance))


@final
class SeededNoise(NoiseSource):
    """Repeatable noise of the same law, for experiments only: whoever knows the seed can subtract it. NOT PRIVATE.

    Unlike OpenDPNoise it accepts the noise "none", so that an experiment can also be run without noise.
    """

    is_private = False

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def _noisy(self, counts: Counts, noise: Noise) -> Counts:
        if noise.kind == "none":
            return counts.copy()
        draw = _discrete_laplace if noise.kind == "laplace" else _discrete_gaussian
        return counts + draw(self._rng, noise.scale, counts.size)

    def certificate(self, noise: Noise, moved: Moved) -> float:
        """What the law of the noise would cost if nobody could know the seed."""
        return math.inf if noise.kind == "none" else float_up(cost(noise, moved).amount)


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


class Chooser(ABC):
    """Something that runs the exponential mechanism."""

    is_private: ClassVar[bool]

    @final
    def choose(self, scores: Scores, scale: float) -> int:
        """The place of the chosen candidate."""
        return self.choose_many(scores, scale, 1)[0]

    @final
    def choose_many(self, scores: Scores, scale: float, k: int) -> list[int]:
        """The places of `k` different candidates in the order chosen: `k` rounds, each among those that are left."""
        if scores.dtype != np.int64 or scores.ndim != 1 or scores.size == 0:
            raise ParameterError("scores must be a one-dimensional int64 array with at least one candidate")
        if int(np.abs(scores).max()) > LARGEST_SCORE:
            raise ParameterError(f"scores must stay within ±{LARGEST_SCORE}; use a coarser grid")
        if not 0 < scale < float("inf"):
            raise BudgetError(f"scale ({scale!r}) of a choice must be finite and above 0; raise the budget")
        check_k(k, scores.size)
        return self._choose(scores, scale, k)

    @abstractmethod
    def _choose(self, scores: Scores, scale: float, k: int) -> list[int]:
        """The draw itself."""

    @final
    def certificate(self, scale: float, sensitivity: int, *, zcdp: bool, k: int = 1) -> float:
        """What choosing `k` candidates costs, rounded up: epsilon, or rho where the budget is one of zCDP."""
        if zcdp:
            return self._rho(scale, sensitivity, k)
        return float_up(choice_cost(scale, sensitivity, k).amount)

    @abstractmethod
    def _rho(self, scale: float, sensitivity: int, k: int) -> float:
        """The rho of `k` rounds."""


@final
class OpenDPChooser(Chooser):
    """Exact choices by OpenDP, in rational arithmetic, with bits from the operating system; there is no seed.

    OpenDP's measurement for zCDP is the exponential mechanism itself; the one for pure epsilon is permute-and-flip, another law
    at the same cost, so that the published methods would not be themselves with it.
    """

    is_private = True

    def _choose(self, scores: Scores, scale: float, k: int) -> list[int]:
        return [int(place) for place in _top_k(scale, k)(scores)]

    def _rho(self, scale: float, sensitivity: int, k: int) -> float:
        return float(_top_k(scale, k).map(sensitivity))


@final
class SeededChooser(Chooser):
    """Repeatable choices of the same law by Gumbel noise in floats, for experiments only. NOT PRIVATE."""

    is_private = False

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def _choose(self, scores: Scores, scale: float, k: int) -> list[int]:
        noisy = (scores - scores.max()) / scale + self._rng.gumbel(size=scores.size)
        best = np.argpartition(noisy, -k)[-k:]
        return [int(place) for place in best[np.argsort(-noisy[best])]]

    def _rho(self, scale: float, sensitivity: int, k: int) -> float:
        return float_up(k * exponential_to_rho(choice_cost(scale, sensitivity).amount))


def check_k(k: int, candidates: int) -> None:
    """Refuse to choose fewer than one candidate, or more than there are."""
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= candidates:
        raise ParameterError(
            f"k ({k!r}) must be a whole number from 1 to the number of candidates ({candidates})"
        )


@dataclass(frozen=True)
class Draws:
    """Noise, choices, and exact whole numbers below a bound; `rng` is for post-processing, which needs no secrecy."""

    noise: NoiseSource
    chooser: Chooser
    below: Callable[[int], int]
    rng: np.random.Generator

    @classmethod
    def secure(cls) -> "Draws":
        """Everything from the operating system's secure bits; nothing can be repeated."""
        return cls(OpenDPNoise(), OpenDPChooser(), secrets.randbelow, np.random.default_rng())

    @classmethod
    def seeded(cls, seed: int) -> "Draws":
        """Everything repeatable, for experiments only. NOT PRIVATE."""
        one, two, three = np.random.SeedSequence(seed).spawn(3)
        rng = np.random.default_rng(two)
        source = SeededNoise(int(one.generate_state(1, np.uint64)[0]))
        return cls(
            source, SeededChooser(rng), lambda bound: int(rng.integers(bound)), np.random.default_rng(three)
        )

    @property
    def is_private(self) -> bool:
        """Whether nobody can repeat what is drawn."""
        return self.noise.is_private and self.chooser.is_private and self.below is secrets.randbelow


def draw_posterior_counts(weights: Counts, step: int, n_rows: int, below: Callable[[int], int]) -> Counts:
    """How often each cell is drawn in `n_rows` draws from an urn, when every drawn ball goes back with `step` more of its kind.

    This is exactly a multinomial draw with probabilities from Dirichlet(weights / step), in whole numbers: no float is drawn.
    """
    ends = np.cumsum(weights)
    start = int(ends[-1])
    drawn: list[int] = []
    for _ in range(n_rows):
        place = below(start + step * len(drawn))
        cell = (
            int(np.searchsorted(ends, place, side="right"))
            if place < start
            else drawn[(place - start) // step]
        )
        drawn.append(cell)
    return np.bincount(np.asarray(drawn, dtype=np.int64), minlength=len(weights)).astype(np.int64)


@lru_cache(maxsize=256)
def _measurement(noise: Noise) -> Any:
    """OpenDP's measurement on a vector of 64-bit counts."""
    dp = opendp()
    # T is always said: OpenDP's plain `int` means 32 bits and saturates.
    domain = dp.vector_domain(dp.atom_domain(T=dp.i64))
    if noise.kind == "laplace":
        return dp.m.make_laplace(domain, dp.l1_distance(T=dp.i64), scale=noise.scale)
    return dp.m.make_gaussian(domain, dp.l2_distance(T=dp.f64), scale=noise.scale)


@lru_cache(maxsize=256)
def _top_k(scale: float, k: int) -> Any:
    """OpenDP's `k` rounds of the exponential mechanism on 64-bit scores."""
    dp = opendp()
    domain = dp.vector_domain(dp.atom_domain(T=dp.i64))
    return dp.m.make_noisy_top_k(
        domain, dp.linf_distance(T=dp.i64), dp.zero_concentrated_divergence(), k=k, scale=scale
    )
