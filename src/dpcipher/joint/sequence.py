"""Evenly spread draws: rows whose tables match their probabilities nearly to rounding."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcipher.marginals.arrays import Codes, Floats

GOLDEN = (5**0.5 - 1) / 2
_BELOW_ONE = 1.0 - 2.0**-20  # still below one after rounding to single precision


def spread(keys: Sequence[Codes], n_rows: int, rng: np.random.Generator) -> Floats:
    """Uniforms that are evenly spread among all rows, and among the rows that share any leading part of `keys`.

    The rows are sorted by the keys, most important first, and receive golden-ratio steps from a random start: any run of the
    sorted rows then holds nearly equally spaced numbers (the three-gap theorem), so that stratum by stratum a draw differs from
    its expectation by a few rows, instead of by the square root of their number.
    """
    ranks: list[NDArray[Any]] = [rng.random(n_rows), *reversed(keys)]
    place = np.lexsort(ranks)
    uniforms = np.empty(n_rows)
    uniforms[place] = (rng.random() + np.arange(n_rows) * GOLDEN) % 1.0
    return uniforms


def systematic(weights: Floats, n_rows: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """`n_rows` row numbers, each row chosen as often as its weight says, up to one; a weight of zero is never chosen."""
    cumulative = np.cumsum(weights)
    height = (np.arange(n_rows) + rng.random()) / n_rows * _BELOW_ONE * cumulative[-1]
    return np.asarray(np.searchsorted(cumulative, height, side="right"))


def row_sums(values: NDArray[np.floating]) -> NDArray[np.floating]:
    """The sum of each row, as a product: many times faster than a reduction over a short axis."""
    return np.asarray(values @ np.ones(values.shape[1], values.dtype))


class Ladder:
    """The cumulative probabilities of every row, from which any number of levels can be drawn.

    A level of probability zero has no height, and is never drawn.
    """

    def __init__(self, probabilities: NDArray[np.floating]) -> None:
        self._rungs = probabilities.copy()
        for level in range(
            1, probabilities.shape[1]
        ):  # column by column: a cumulative sum over a short axis is slow
            self._rungs[:, level] += self._rungs[:, level - 1]

    def draw(self, rows: NDArray[np.intp], uniforms: Floats) -> Codes:
        """One level for each of the chosen rows."""
        rungs = self._rungs[rows]
        height = rungs[:, -1] * np.minimum(uniforms, _BELOW_ONE).astype(rungs.dtype)
        return np.asarray((rungs <= height[:, None]).sum(axis=1), dtype=np.int32)
