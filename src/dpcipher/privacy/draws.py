"""Who draws everything that privacy rests on: one bundle for releases, one for experiments."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpcipher.marginals.arrays import Counts
from dpcipher.privacy.choose import Chooser, OpenDPChooser, SeededChooser
from dpcipher.privacy.noise import NoiseSource, OpenDPNoise, SeededNoise


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
    def seeded(cls, seed: int, noise: NoiseSource | None = None) -> "Draws":
        """Everything repeatable, for experiments only. NOT PRIVATE."""
        one, two, three = np.random.SeedSequence(seed).spawn(3)
        rng = np.random.default_rng(two)
        source = noise or SeededNoise(int(one.generate_state(1, np.uint64)[0]))
        return cls(
            source, SeededChooser(rng), lambda bound: int(rng.integers(bound)), np.random.default_rng(three)
        )

    @property
    def is_private(self) -> bool:
        """Whether nobody can repeat what is drawn."""
        return self.noise.is_private and self.chooser.is_private and self.below is secrets.randbelow


def polya_urn(weights: Counts, step: int, n_rows: int, below: Callable[[int], int]) -> Counts:
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
