"""Evenly spread draws: rows whose tables match their probabilities nearly to rounding."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]

GOLDEN = (5**0.5 - 1) / 2
_BELOW_ONE = 1.0 - 2.0**-32


def spread(keys: Sequence[Codes], n_rows: int, rng: np.random.Generator) -> Floats:
    """Uniforms that are evenly spread among all rows, and among the rows that share any leading part of `keys`.

    The rows are sorted by the keys, most important first, and receive golden-ratio steps from a random start: any run of the
    sorted rows then holds nearly equally spaced numbers (the three-gap theorem), so that stratum by stratum a draw differs from
    its expectation by a few rows, instead of by the square root of their number.
    """
    place = np.lexsort([rng.random(n_rows), *reversed(keys)])
    uniforms = np.empty(n_rows)
    uniforms[place] = (rng.random() + np.arange(n_rows) * GOLDEN) % 1.0
    return uniforms


def systematic(weights: Floats, n_rows: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """`n_rows` row numbers, each row chosen as often as its weight says, up to one; a weight of zero is never chosen."""
    cumulative = np.cumsum(weights)
    height = (np.arange(n_rows) + rng.random()) / n_rows * _BELOW_ONE * cumulative[-1]
    return np.searchsorted(cumulative, height, side="right")


class Ladder:
    """The cumulative probabilities of all rows on one line: row i owns the stretch from i to i + 1.

    One binary search on that line draws a level for any choice of rows. A level of probability zero owns no stretch, and is
    never drawn.
    """

    def __init__(self, probabilities: NDArray[np.floating]) -> None:
        rungs = np.cumsum(probabilities, axis=1, dtype=np.float64)
        rungs /= rungs[:, -1:].copy()
        rungs += np.arange(len(rungs))[:, None]
        self._levels = rungs.shape[1]
        self._rungs = rungs.ravel()

    def draw(self, uniforms: Floats) -> Codes:
        """One level for every row."""
        rows = np.arange(len(uniforms))
        found = np.searchsorted(self._rungs, rows + np.minimum(uniforms, _BELOW_ONE), side="right")
        return np.asarray(found - rows * self._levels, dtype=np.int32)
