"""The error to expect of a table once it has been measured with a given share, and denoised.

What a table shows beyond its prediction is taken to be normal in every cell, with a variance in proportion to the predicted count; its
size is what a distance, read with noise, says it is. Noise of variance V leaves of a prior variance A the posterior variance
1/(1/A + 1/V), and the mean size of a normal error is √(2/π) of its deviation. Summed over cells and halved, that is a total variation
distance in counts: a convex, decreasing function of the precision 1/V, from half the distance (nothing measured) to zero.
"""

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MEAN_SIZE = math.sqrt(2 / math.pi)
BINS = 48  # cells of one table, after sorting, that are told apart


def interaction_risk(expected: Floats, distance: float, precision: Floats) -> Floats:
    """The expected error of a table at each precision of its noise; `distance` is its L1 distance from `expected`, in counts.

    With no precision it is half the distance.

    >>> interaction_risk(np.full((2, 2), 25.0), 20.0, np.array([0.0]))
    array([10.])
    """
    freedom = math.prod(1 - 1 / levels for levels in expected.shape)
    roots = np.sqrt(np.maximum(expected, 0.0)).ravel()
    if freedom == 0 or distance <= 0 or roots.sum() == 0:
        return np.zeros_like(precision)
    deviations, cells = _binned(roots * (distance / (MEAN_SIZE * roots.sum())))
    # The margins are known better than the table: only the share `freedom` of its noise is in the interaction.
    return _error(deviations, cells, precision / freedom)


def one_way_risk(counts: Floats, precision: Floats) -> Floats:
    """The expected error of a one-way table: each level is only known to be of the size of its count before it is measured."""
    freedom = 1 - 1 / counts.size
    if freedom == 0:
        return np.zeros_like(precision)
    deviations, cells = _binned(np.maximum(counts, 1.0))
    return _error(deviations, cells, precision / freedom)


def _binned(deviations: Floats) -> tuple[Floats, Floats]:
    """Prior deviations with their number of cells; a large table by classes of about equal size."""
    if deviations.size <= BINS:
        return deviations, np.ones(deviations.size)
    ordered = np.sort(deviations)
    starts = np.linspace(0, ordered.size, BINS, endpoint=False).astype(int)
    cells = np.diff([*starts, ordered.size]).astype(float)
    return np.add.reduceat(ordered, starts) / cells, cells


def _error(deviations: Floats, cells: Floats, precision: Floats) -> Floats:
    left = deviations / np.sqrt(1 + precision[:, None] * deviations**2)
    return np.asarray(MEAN_SIZE / 2 * (left @ cells))
