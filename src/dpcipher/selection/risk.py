"""The expected error of a table after it has been measured with a given precision, and denoised.

The deviation of a table from its prediction is modelled as normal in every cell, with a variance proportional to the predicted count and
scaled to the (estimated) distance. Noise of variance V leaves of a prior variance A the posterior variance
1/(1/A + 1/V), and the mean absolute value of a normal error is √(2/π) of its standard deviation. Summed over cells and halved, that is a total variation
distance in counts: a convex, decreasing function of the precision 1/V, from half the distance (not measured) to zero.
"""

import math

import numpy as np

from dpcipher.tables.domain import Floats

MEAN_SIZE = math.sqrt(2 / math.pi)  # E|X| of a standard normal X
BINS = 48  # classes of cells, by size, of a large table


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
    # Margins are known better than the table: only the fraction `freedom` of the noise variance falls on the interaction.
    return _error(deviations, cells, precision / freedom)


def one_way_risk(counts: Floats, precision: Floats) -> Floats:
    """The expected error of a one-way table: the prior standard deviation of each count is the count itself."""
    freedom = 1 - 1 / counts.size
    if freedom == 0:
        return np.zeros_like(precision)
    deviations, cells = _binned(np.maximum(counts, 1.0))
    return _error(deviations, cells, precision / freedom)


def _binned(deviations: Floats) -> tuple[Floats, Floats]:
    """Prior deviations and the number of cells that have each; a large table in classes of about equal numbers of cells."""
    if deviations.size <= BINS:
        return deviations, np.ones(deviations.size)
    ordered = np.sort(deviations)
    starts = np.linspace(0, ordered.size, BINS, endpoint=False).astype(int)
    cells = np.diff([*starts, ordered.size]).astype(float)
    return np.add.reduceat(ordered, starts) / cells, cells


def _error(deviations: Floats, cells: Floats, precision: Floats) -> Floats:
    left = deviations / np.sqrt(1 + precision[:, None] * deviations**2)
    return np.asarray(MEAN_SIZE / 2 * (left @ cells))
