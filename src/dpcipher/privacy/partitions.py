"""Which texts are frequent enough to be named: noise on the count of each, and a threshold.

Every text that is in the rows gets discrete Gaussian noise on its count, and those whose noisy count reaches the threshold are named. Texts that are
in no row are never named, so that this is no noise on every cell of a declared table: it is delta-approximate rho-zCDP, and the threshold sees to delta.

Proof. Take two neighbours, and call a text *lone* if it is in the rows of one of them only because of the one person in whom they differ. On that
neighbour, let the event be that no lone text is named. Given the events, both outputs come from texts that both neighbours have, whose counts differ as
those of a table do, by at most the unit's L2 distance: thresholds, sorting and caps are post-processing of independent discrete
Gaussian noise, so that they are rho-zCDP of one another. It is left to bound the probability that a lone text is named. The person has k = max_rows
rows and so at most k lone texts, with counts c₁, c₂, … that sum to at most k. With t(c) the probability that c and the noise reach the threshold,
it is at most Σ t(cᵢ). Up to the threshold, t grows by ever larger steps (each is a probability of the noise nearer to its mode): it is convex. A sum of
convex functions over such counts is largest at a corner: j − 1 texts of one row and one text of the rest; and that is convex in j, so that the worst person has
either k texts of one row each, k·t(1), or one text of k rows, t(k). The threshold is the smallest at which both are at most delta, and at least k.
Under replacement each neighbour has lone texts of its own, of the same person's k rows, and the same bound. ∎

Nothing here depends on the order of the rows or of the texts; which texts are there, and how many, is private until the threshold is passed.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dpcipher.errors import BudgetError
from dpcipher.privacy.budget import show
from dpcipher.privacy.draws import NoiseSource
from dpcipher.privacy.terms import Unit
from dpcipher.tables.measurement import Noise

# Up to this sigma the tail is summed term by term; beyond, the bound by the normal tail loses one row in thousands.
_SUMMED_SIGMA = 2048.0
_REACH = 40  # e^(-40²/2) is below any delta times any number of terms
_SLACK = 1e-9  # far above the float error of a sum of positive terms
_LEAST = 1e-300  # no underflow may pass for certainty


@lru_cache(maxsize=64)
def _summed_tails(sigma: float) -> tuple[float, ...]:
    """P(noise ≥ m) of the discrete Gaussian, for m = 0, 1, …, rounded up: sums from the far end, where the terms are smallest."""
    weights = np.exp(-(np.arange(int(_REACH * sigma) + 2, dtype=float) ** 2) / (2 * sigma**2))
    whole = 2 * math.fsum(weights) - 1
    tails = np.cumsum(weights[::-1])[::-1] / whole * (1 + _SLACK)
    return tuple(map(float, tails))


def tail(sigma: float, m: int) -> float:
    """An upper bound of the probability that discrete Gaussian noise is at least `m`, above 0 for every m.

    Beyond the sums it is P(Z ≥ m) ≤ P(N(0, sigma²) ≥ m - 1) (Canonne, Kamath and Steinke 2020, Proposition 25).

    >>> round(tail(1.0, 1), 4), round(tail(1.0, 2), 4)
    (0.3005, 0.0586)
    """
    if m <= 0:
        return 1.0
    if sigma <= _SUMMED_SIGMA:
        tails = _summed_tails(sigma)
        return max(tails[min(m, len(tails) - 1)], _LEAST)
    return max(math.erfc((m - 1) / (sigma * math.sqrt(2))) / 2 * (1 + _SLACK), _LEAST)


def named_alone(sigma: float, threshold: int, max_rows: int) -> float:
    """At most how probable it is that a text which only one person has is named: the worst of their possible rows."""
    return max(max_rows * tail(sigma, threshold - 1), tail(sigma, threshold - max_rows))


def threshold_for(sigma: float, delta: Fraction, unit: Unit) -> int:
    """The smallest noisy count at which a text may be named.

    >>> threshold_for(4.530877, Fraction(1, 10**6), Unit("add-remove"))
    23
    """
    k, limit = unit.max_rows, float(delta) * (1 - _SLACK)
    low, high = k - 1, k + 1  # below k the proof does not hold
    while named_alone(sigma, high, k) > limit:
        low, high = high, 2 * high
        if high > 2**62:
            raise BudgetError(f"delta ({show(delta)}) is too small for a threshold at this noise; raise it")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if named_alone(sigma, middle, k) > limit else (low, middle)
    return high


@dataclass(frozen=True)
class PartitionSelection:
    """Noise and threshold for finding texts, and what it may fail by."""

    noise: Noise
    threshold: int
    delta: Fraction

    @classmethod
    def calibrated(cls, noise: Noise, delta: Fraction, unit: Unit) -> "PartitionSelection":
        """The lowest threshold that keeps `delta` with this noise."""
        if noise.kind != "gaussian":
            raise BudgetError(
                f"mechanism ({noise.kind!r}) must be 'gaussian' where levels are found; give delta"
            )
        return cls(noise, threshold_for(noise.scale, delta, unit), delta)

    def found_at(self, probability: float) -> int:
        """How many rows a text must have to be named with this probability.

        >>> chosen = PartitionSelection(Noise("gaussian", 4.0), 20, Fraction(1, 10**6))
        >>> chosen.found_at(0.5), chosen.found_at(0.95)
        (20, 27)
        """
        count = max(1, self.threshold)
        while 1 - tail(self.noise.scale, count - self.threshold + 1) < probability:
            count += max(1, int(self.noise.scale / 64))
        return count

    def named(self, counts: Mapping[str, int], source: NoiseSource, most: int) -> tuple[str, ...]:
        """The texts whose noisy count reaches the threshold, sorted; of more than `most`, those with the largest noisy counts.

        `counts` holds each text that is in the rows, once, with its number of rows above 0. What is returned is public; nothing else is.
        """
        texts = sorted(counts)
        true = np.array([counts[text] for text in texts], dtype=np.int64)
        noisy = source.add_named(texts, true, self.noise)
        passed = [
            (-int(count), text) for count, text in zip(noisy, texts, strict=True) if count >= self.threshold
        ]
        return tuple(sorted(text for _, text in sorted(passed)[:most]))
