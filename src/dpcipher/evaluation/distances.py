"""How far two sets of coded rows are apart: total variation and largest difference of their tables, overlap of confidence intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb, prod

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from dpcipher.errors import ParameterError
from dpcipher.tables.domain import Axes, Codes, Floats
from dpcipher.tables.table import cell_numbers, count_rows

# How many tables of an order are compared at the most: of wider ones the customary 100 (NIST's k-marginal score).
LIMITS = {1: 10_000, 2: 10_000}
WIDE_LIMIT = 100
# A table with more cells than this is compared through its occupied cells.
DENSE_CELLS = 2**22


@dataclass(frozen=True)
class Distance:
    """How far one synthetic table is from the private one, in probability: ½Σ|P − Q| and max|P − Q|."""

    axes: Axes
    tvd: float
    linf: float


def choose_tables(p: int, order: int, *, limit: int | None = None, seed: int = 0) -> list[Axes]:
    """All tables of an order, or a seeded sample of `limit` of them without replacement.

    >>> choose_tables(3, 2)
    [(0, 1), (0, 2), (1, 2)]
    """
    _check_order(p, order, limit)
    many, most = comb(p, order), LIMITS.get(order, WIDE_LIMIT) if limit is None else limit
    if many <= most:
        return list(combinations(range(p), order))
    picked = np.random.default_rng(seed).choice(many, most, replace=False)
    return [_unrank(int(rank), p, order) for rank in picked]


def distances(
    private: Codes, synthetic: Codes, shape: Sequence[int], tables: Sequence[Axes]
) -> list[Distance]:
    """Compare every table."""
    return [_distance(private, synthetic, shape, axes) for axes in tables]


def _distance(private: Codes, synthetic: Codes, shape: Sequence[int], axes: Axes) -> Distance:
    first, second = (cell_numbers(codes, axes, shape) for codes in (private, synthetic))
    size = prod(shape[axis] for axis in axes)
    if size > DENSE_CELLS:
        # Cells that neither side occupies differ by nothing.
        occupied, where = np.unique(np.concatenate([first, second]), return_inverse=True)
        first, second, size = where[: len(first)], where[len(first) :], len(occupied)
    gap = np.abs(
        np.bincount(first, minlength=size) / len(first) - np.bincount(second, minlength=size) / len(second)
    )
    return Distance(axes, float(gap.sum() / 2), float(gap.max()))


def _unrank(rank: int, p: int, order: int) -> Axes:
    """The combination of a rank in lexicographic order, without listing the combinations."""
    chosen: list[int] = []
    for axis in range(p):
        if len(chosen) == order:
            break
        starting_here = comb(p - axis - 1, order - len(chosen) - 1)
        if rank < starting_here:
            chosen.append(axis)
        else:
            rank -= starting_here
    return tuple(chosen)


def _check_order(p: int, order: int, limit: int | None) -> None:
    if isinstance(order, bool) or not isinstance(order, int) or not 1 <= order <= p:
        raise ParameterError(
            f"orders ({order!r}) must be whole numbers from 1 to the number of attributes, {p}"
        )
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise ParameterError(f"limit ({limit!r}) must be a whole number above 0; try limit=100")


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
