"""Rows of one draw that agree with rows of another on some attributes."""

import numpy as np
from numpy.typing import NDArray

from dpcipher.tables.domain import Axes, Bools, Codes, Shape
from dpcipher.tables.table import cell_numbers


def matched_rows(
    codes: Codes, pool: Codes, axes: Axes, shape: Shape, rng: np.random.Generator
) -> tuple[Bools, NDArray[np.intp]]:
    """Which rows have a counterpart in the pool on `axes`, and a counterpart for each of them, as few of them twice as can be."""
    order = rng.permutation(len(pool))
    keys = cell_numbers(pool[order], axes, shape)
    by_key = np.argsort(keys, kind="stable")
    keys, wanted = keys[by_key], cell_numbers(codes, axes, shape)
    first, last = np.searchsorted(keys, wanted), np.searchsorted(keys, wanted, side="right")
    matched = last > first
    place = first[matched] + _rank_within(wanted[matched]) % (last - first)[matched]
    return matched, order[by_key[place]]


def _rank_within(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """The how-manieth of its key each entry is, from 0 up."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    start = np.searchsorted(ordered, ordered)
    ranks = np.empty(len(keys), np.int64)
    ranks[order] = np.arange(len(keys)) - start
    return ranks
