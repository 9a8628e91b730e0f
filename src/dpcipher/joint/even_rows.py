"""Even rows: draws whose tables match their probabilities nearly to rounding, instead of to the square root of the number of rows.

`spread` and `systematic` hand out evenly spaced uniforms; `match` then redraws single levels.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpcipher.tables.domain import Codes, Floats

Places = NDArray[np.int64]

GOLDEN = (5**0.5 - 1) / 2
_BELOW_ONE = 1.0 - 2.0**-20  # still below one after rounding to single precision


def spread(keys: Sequence[Codes], n_rows: int, rng: np.random.Generator) -> Floats:
    """Uniforms that are evenly spread among all rows, and among the rows that share any leading part of `keys`.

    The rows are sorted by the keys, most important first, and receive golden-ratio steps from a random start: any run of the
    sorted rows then holds nearly equally spaced numbers (the three-gap theorem), so that stratum by stratum a draw differs from
    its expectation by a few rows, instead of by the square root of their number.
    """
    order, uniforms = rng.permutation(n_rows), np.empty(n_rows)
    for key in reversed(keys):
        # Small integers are sorted by counting.
        narrow = key.astype(np.min_scalar_type(int(key.max(initial=0))))
        order = order[np.argsort(narrow[order], kind="stable")]
    uniforms[order] = (rng.random() + np.arange(n_rows) * GOLDEN) % 1.0
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
        # Column by column: a cumulative sum over a short axis is slow.
        for level in range(1, probabilities.shape[1]):
            self._rungs[:, level] += self._rungs[:, level - 1]

    def draw(self, rows: NDArray[np.intp], uniforms: Floats) -> Codes:
        """One level for each of the chosen rows: how many rungs are not above a height, found by halving."""
        flat, last = self._rungs.ravel(), self._rungs.shape[1] - 1
        first = np.asarray(rows * (last + 1))
        height = flat.take(first + last) * np.minimum(uniforms, _BELOW_ONE).astype(flat.dtype)
        levels = np.zeros(len(rows), np.intp)
        step = 1 << (last.bit_length() - 1) if last else 0
        while step:
            probe = np.minimum(levels + step, last)
            np.copyto(levels, probe, where=flat.take(first + probe - 1) <= height)
            step //= 2
        return levels.astype(np.int32)
