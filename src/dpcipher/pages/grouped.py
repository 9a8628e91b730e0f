"""Columns with more levels than a chart can show: neighbouring levels are added up.

Showing the largest ones instead would pick those whose noise is largest too (the winner's curse): their bars would stand above the synthetic rows,
as if these had missed something. Groups of neighbours are chosen by the schema alone, so that no noise is picked.
"""

import math
from dataclasses import replace

import numpy as np

from dpcipher.drawing.bars import Series
from dpcipher.marginals.arrays import Floats
from dpcipher.release.query import interval
from dpcipher.release.release import Release

EXPLAINED = (
    "Where a column has too many levels to draw, neighbouring ones are added up, in the order of the schema. The largest ones alone would be those whose noise happens to "
    "be largest, and would seem to disagree with the synthetic rows."
)


def grouped(release: Release, axis: int, series: Series, most: int) -> Series:
    """The series with at most `most` bars, each of as many neighbouring levels as the others; intervals are those of the sums."""
    n_levels = len(series.labels)
    if n_levels <= most:
        return series
    each = math.ceil(n_levels / most)
    starts = list(range(0, n_levels, each))
    counts = np.add.reduceat(series.counts, starts)
    compared = None if series.compared is None else np.add.reduceat(series.compared, starts)
    labels = tuple(
        _span(series.labels[start], series.labels[min(start + each, n_levels) - 1]) for start in starts
    )
    return replace(
        series,
        name=f"{series.name} ({n_levels:,} levels, {each} to a bar)",
        labels=labels,
        counts=counts,
        compared=compared,
        bounds=interval(counts, _variances(release, axis, starts, n_levels), 0.95),
    )


def _variances(release: Release, axis: int, starts: list[int], n_levels: int) -> Floats:
    """The variance of the sum of each group, covariances included."""
    groups = np.searchsorted(starts, np.arange(n_levels), side="right") - 1
    return np.array(
        [
            release.reconciled.linear_variance((axis,), (groups == number).astype(float))
            for number in range(len(starts))
        ]
    )


def _span(first: str, last: str) -> str:
    """The first and the last level of a group.

    >>> _span("0..9", "40..49"), _span("a", "a")
    ('0..9 – 40..49', 'a')
    """
    return first if first == last else f"{first} – {last}"
