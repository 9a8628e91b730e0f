"""How values are spread inside the bins of a column: along the density that the probabilities of all its bins suggest.

The cumulative probability is known at the edges. Between them it is a monotone cubic (Fritsch & Carlson 1980, with the slopes of Fritsch & Butland
1984): its slope at an edge, the density there, is a mean of the mean densities of the two bins that meet, so that a bin beside a fuller one is
fuller on that side, and a bin beside an empty one thins out toward it. Every bin keeps its own probability.

How far a column follows that is asked of the column itself: neighbouring bins are joined, the curve through the joined bins says how each should
be divided, and least squares on the division that is known gives a share between 0 (uniform inside bins) and 1. So a column in which neighbours say
nothing about one another stays uniform. It is post-processing of probabilities that are known already and costs no privacy.

The bins at the two ends are often wide and nearly empty: public bounds are generous, tails are long. A cubic cannot fall steeply enough there. Where the
exponential density through an end bin and its neighbour falls by more than a cubic can, the end bin follows that, whatever the other bins say: it
holds little, and what it holds lies near its neighbour rather than far out.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcipher.tables.domain import Floats

HALVINGS = 40
ROUNDS = 20
NOTHING = 1e-9  # of its neighbour: a bin that is as good as empty
# The density at the end of a bin over its mean density: a cubic that is steeper is not monotone.
STEEPEST = 3.0
BELOW_ONE = np.nextafter(1.0, 0.0)
JUDGED_BINS = 8  # with fewer, joined bins are so few that they cannot judge; the density is followed in full


@dataclass(frozen=True)
class Spread:
    """Where values fall between the edges of bins; `left` and `right` are the density at the two ends of a bin over its mean density.

    A bin whose `decay` is not zero has an exponential density instead, which falls by exp(decay) from its left end to its right one.
    """

    edges: Floats
    left: Floats
    right: Floats
    decay: Floats

    @classmethod
    def uniform(cls, edges: NDArray[np.number]) -> "Spread":
        """Evenly inside every bin."""
        even = np.ones(len(edges) - 1)
        return cls(np.asarray(edges, dtype=float), even, even, np.zeros_like(even))

    @classmethod
    def smooth(cls, edges: NDArray[np.number], masses: Floats, *, single: float) -> "Spread":
        """Along the density that the masses of the bins suggest; `single` is the width of a bin of one value."""
        points, masses = np.asarray(edges, dtype=float), np.maximum(masses, 0.0)
        kept = ~_atoms(np.diff(points), single)
        widths, left, right = np.diff(points)[kept], np.ones(len(masses)), np.ones(len(masses))
        decay = np.zeros(len(masses))
        if masses[kept].sum() > 0:
            share = _share(widths, masses[kept])
            left[kept], right[kept] = (1 + share * (end - 1) for end in _ends(widths, masses[kept]))
            decay[kept] = _decays(widths, masses[kept])
        return cls(points, left, right, decay)

    def draw(
        self, bins: NDArray[np.integer], uniforms: Floats, *, within: tuple[float, float] | None = None
    ) -> Floats:
        """The point of each bin below which it has the share `uniforms` of its values; of those `within` two points, where they are given."""
        low, width = self.edges[bins], np.diff(self.edges)[bins]
        if within is not None:
            ends = [np.clip((point - low) / width, 0.0, 1.0) for point in within]
            first, last = (self._below(bins, end) for end in ends)
            uniforms = first + uniforms * (last - first)
        return np.asarray(low + width * self._quantile(bins, uniforms))

    def _below(self, bins: NDArray[np.integer], t: Floats) -> Floats:
        """The share of each bin's values below the fraction t of its width."""
        even = _below(t, self.left[bins], self.right[bins])
        return np.where(self.decay[bins] == 0, even, _fallen(t, self.decay[bins]))

    def _quantile(self, bins: NDArray[np.integer], uniforms: Floats) -> Floats:
        """The fraction of each bin's width below which it has the share `uniforms` of its values."""
        even = _quantile(uniforms, self.left[bins], self.right[bins])
        return np.where(self.decay[bins] == 0, even, _fallen_quantile(uniforms, self.decay[bins]))


def _atoms(widths: Floats, single: float) -> NDArray[np.bool_]:
    """Bins of one value whose neighbours have more: zero, a top code. They say nothing about the density beside them."""
    beside = np.concatenate([[np.inf], widths, [np.inf]])
    return np.asarray((widths <= single) & (beside[:-2] > single) & (beside[2:] > single))


def _below(t: Floats, left: Floats, right: Floats) -> Floats:
    """The share of a bin below the fraction t of its width: the cubic with these slopes at its ends."""
    return np.asarray(t * (left + t * (3 - 2 * left - right + t * (left + right - 2))))


def _quantile(uniforms: Floats, left: Floats, right: Floats) -> Floats:
    """The fraction of the width below which the share `uniforms` lies, by bisection; the share itself where the bin is even."""
    bent = (left != 1) | (right != 1)
    if not bent.any():
        return uniforms
    left, right, wanted = left[bent], right[bent], uniforms[bent]
    middle, step = np.full(len(wanted), 0.5), 0.5
    for _ in range(HALVINGS):
        step /= 2
        middle += np.where(_below(middle, left, right) < wanted, step, -step)
    found = uniforms.copy()
    found[bent] = middle
    return found


def _fallen(t: Floats, decay: Floats) -> Floats:
    """The share of an exponential density that falls by exp(decay), or rises where that is negative, below the fraction t of the width."""
    steep = np.where(decay == 0, 1.0, np.abs(decay))
    share = np.expm1(-steep * np.where(decay < 0, 1 - t, t)) / np.expm1(-steep)
    return np.asarray(np.where(decay < 0, 1 - share, share))


def _fallen_quantile(uniforms: Floats, decay: Floats) -> Floats:
    """The fraction of the width below which the share `uniforms` of that density lies; one that rises is mirrored, so that no power overflows."""
    steep = np.where(decay == 0, 1.0, np.abs(decay))
    share = np.minimum(np.where(decay < 0, 1 - uniforms, uniforms), BELOW_ONE)
    t = -np.log1p(share * np.expm1(-steep)) / steep
    return np.asarray(np.where(decay < 0, 1 - t, t))


def _ends(widths: Floats, masses: Floats) -> tuple[Floats, Floats]:
    """The density at the left and right end of each bin over its mean density."""
    slopes, mean = _slopes(widths, masses / widths), masses / widths
    known = mean > 0
    over = np.where(known, mean, 1.0)
    left, right = (
        np.clip(np.where(known, end / over, 1.0), 0.0, STEEPEST) for end in (slopes[:-1], slopes[1:])
    )
    return left, right


def _decays(widths: Floats, masses: Floats) -> Floats:
    """What the exponential density of the two end bins falls by; zero in bins between, and where a cubic is steep enough."""
    decays = np.zeros(len(masses))
    if len(masses) > 1:
        decays[-1] = _decay(widths[-2:], masses[-2:])
        decays[0] = -_decay(widths[1::-1], masses[1::-1])
    return decays


def _decay(widths: Floats, masses: Floats) -> float:
    """The logarithm of what the exponential density with these two masses, one after the other, falls by over the second."""
    (near, far), (fuller, emptier) = widths.tolist(), masses.tolist()
    if emptier <= NOTHING * fuller or fuller / near <= emptier / far:
        return 0.0
    # From exp(near · rate) = 1 + fuller / emptier · (1 - exp(-far · rate)), downwards from an end bin without end; almost there at once, for a steep one.
    decay = math.inf
    for _ in range(ROUNDS):
        decay = math.log1p(-math.expm1(-decay) * fuller / emptier) * far / near
    return decay if decay > STEEPEST else 0.0


def _slopes(widths: Floats, mean: Floats) -> Floats:
    """The density at every edge: Fritsch and Butland's weighted harmonic mean inside, a straight line through two bins at the ends."""
    if len(mean) == 1:
        return np.repeat(mean, 2)
    before, after = 2 * widths[1:] + widths[:-1], widths[1:] + 2 * widths[:-1]
    weighted = before * mean[1:] + after * mean[:-1]
    both = mean[:-1] * mean[1:] * (before + after)
    inner = np.divide(both, weighted, out=np.zeros_like(both), where=weighted > 0)
    ends = [
        ((2 * w0 + w1) * m0 - w0 * m1) / (w0 + w1)
        for w0, w1, m0, m1 in ((*widths[:2], *mean[:2]), (*widths[:-3:-1], *mean[:-3:-1]))
    ]
    return np.asarray(np.maximum(np.concatenate([[ends[0]], inner, [ends[1]]]), 0.0))


def _share(widths: Floats, masses: Floats) -> float:
    """How much of the bend the bins themselves show when pairs of them are joined and divided again.

    Least squares through zero, less its squared standard error over itself (the positive part of James and Stein): chance shows a bend too.
    """
    if len(masses) < JUDGED_BINS:
        return 1.0
    step, known = (np.concatenate(parts) for parts in zip(*_divisions(widths, masses), strict=True))
    size = float(step.dot(step))
    share = float(step.dot(known)) / size if size > 0 else 0.0
    if share <= 0:
        return 0.0
    missed = known - share * step
    squared_error = float(missed.dot(missed)) / (len(missed) - 1) / size
    return min(max(share - squared_error / share, 0.0), 1.0)


def _divisions(widths: Floats, masses: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Pairs of neighbours joined, both ways: how far the division that the curve says, and the known one, are from an even one."""
    for start in (0, 1):
        stop = start + (len(masses) - start) // 2 * 2
        parts, wide = masses[start:stop].reshape(-1, 2), widths[start:stop].reshape(-1, 2)
        joined, width = parts.sum(axis=1), wide.sum(axis=1)
        cut = wide[:, 0] / width
        yield joined * (_below(cut, *_ends(width, joined)) - cut), parts[:, 0] - cut * joined
