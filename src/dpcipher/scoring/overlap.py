"""Confidence-interval overlap: how much of each interval the other one covers."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from dpcipher.errors import ParameterError
from dpcipher.marginals.arrays import Codes, Floats
from dpcipher.marginals.tables import count_rows


def interval_overlap(original: tuple[ArrayLike, ArrayLike], synthetic: tuple[ArrayLike, ArrayLike]) -> Floats:
    """The overlap of intervals `(low, high)` as a share of either's length, averaged (Karr et al. 2006); 0 when they are apart.

    >>> interval_overlap(([0.0], [2.0]), ([1.0], [5.0])).tolist()
    [0.375]
    """
    low, high = (np.asarray(bound, dtype=float) for bound in original)
    other_low, other_high = (np.asarray(bound, dtype=float) for bound in synthetic)
    if (high < low).any() or (other_high < other_low).any():
        raise ParameterError("intervals must be (low, high) with low at most high; swap the bounds")
    shared = np.maximum(np.minimum(high, other_high) - np.maximum(low, other_low), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = (shared / (high - low) + shared / (other_high - other_low)) / 2
    same = (low == other_low) & (high == other_high)
    return np.asarray(np.where(same, 1.0, np.nan_to_num(value, nan=0.0, posinf=0.5)))


def share_interval(counts: Floats, total: float, level: float = 0.95) -> tuple[Floats, Floats]:
    """Wilson's interval for the share of every cell (Wilson 1927), which never leaves 0…1.

    >>> [round(float(bound[0]), 3) for bound in share_interval(np.array([5.0]), 10)]
    [0.237, 0.763]
    """
    z2 = float(ndtri(0.5 + level / 2)) ** 2
    share = counts / total
    middle = (share + z2 / (2 * total)) / (1 + z2 / total)
    half = np.sqrt(z2 * (share * (1 - share) / total + z2 / (4 * total**2))) / (1 + z2 / total)
    return middle - half, middle + half


def share_overlap(private: Codes, synthetic: Codes, shape: tuple[int, ...]) -> float:
    """The mean overlap of the 95 % intervals of every level's share."""
    overlaps = []
    for axis in range(len(shape)):
        counts = [count_rows(codes, (axis,), shape).astype(float) for codes in (private, synthetic)]
        overlaps.append(interval_overlap(*(share_interval(count, count.sum()) for count in counts)))
    return float(np.concatenate(overlaps).mean())
