"""The exponential mechanism: choose one candidate or several, the better its score the likelier.

A candidate with integer score s is chosen with probability proportional to exp(s / scale) (McSherry and Talwar 2007). If one
person changes every score by at most `sensitivity`, that costs epsilon = 2·sensitivity/scale, or rho = epsilon²/8 of zCDP
(Cesar and Rogers 2021). Scores are integers, so that no rounding of floats can tell neighbours apart.

Choosing k candidates is k such rounds, each among those that are left, and costs k times as much. Gumbel noise on every score and
the k largest, in order, is exactly that (Durfee and Rogers 2019).
"""

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from dpcipher.errors import BudgetError, ParameterError
from dpcipher.privacy.accounting import exponential_to_rho, float_up, sqrt_up
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.noise import NoiseSource, OpenDPNoise, SeededNoise, opendp
from dpcipher.tables.domain import Counts

Scores = NDArray[np.int64]

# Sums and differences of scores stay within int64.
LARGEST_SCORE = 2**61


def choice_scale(share: Budget, sensitivity: int) -> float:
    """The smallest scale of a choice that costs at most `share`, rounded up.

    Pure: 2·sensitivity/epsilon. zCDP: from rho = epsilon²/8, sensitivity/sqrt(2 rho); the last factor keeps OpenDP's own
    map, which rounds up too, within the share.

    >>> choice_scale(Budget.parse(epsilon=0.5), 3)
    12.0
    """
    if isinstance(sensitivity, bool) or not isinstance(sensitivity, int) or sensitivity < 1:
        raise ParameterError(
            f"sensitivity ({sensitivity!r}) must be a whole number above 0; scores are integers"
        )
    if share.kind == "pure":
        return float_up(2 * sensitivity / share.amount)
    return sqrt_up(sensitivity**2 / (2 * share.amount)) * (1 + 2**-48)


def choice_cost(scale: float, sensitivity: int, k: int = 1) -> Budget:
    """What choosing `k` candidates costs, exactly, as pure epsilon."""
    return Budget(epsilon=k * 2 * sensitivity / Fraction(scale))


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
        return [int(place) for place in _measurement(scale, k)(scores)]

    def _rho(self, scale: float, sensitivity: int, k: int) -> float:
        return float(_measurement(scale, k).map(sensitivity))


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


@lru_cache(maxsize=256)
def _measurement(scale: float, k: int) -> Any:
    """OpenDP's `k` rounds of the exponential mechanism on 64-bit scores."""
    dp = opendp()
    domain = dp.vector_domain(dp.atom_domain(T=dp.i64))
    return dp.m.make_noisy_top_k(
        domain, dp.linf_distance(T=dp.i64), dp.zero_concentrated_divergence(), k=k, scale=scale
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
