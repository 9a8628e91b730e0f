"""Values with their Monte Carlo error, by the jackknife over groups of repeats.

A *replicated* value has one more axis, the first: the value from all repeats, then from all but one group of them, for each group. Arithmetic on
replicated values (ratios, differences, roots, logarithms) carries the error along, and values of the same repeats stay paired.
"""

import numpy as np

from dpcipher.tables.domain import Floats
from experiments.paper.contenders import Stack

GROUPS = 50


def replicated_sum(values: Stack) -> Floats:
    """The sum over all repeats (first axis), and over all but each group.

    >>> replicated_sum(np.arange(100.0))[:3].tolist()
    [4950.0, 4900.0, 4898.0]
    """
    member = np.arange(len(values)) % GROUPS
    parts = np.stack([values[member == group].sum(axis=0) for group in range(GROUPS)])
    total = parts.sum(axis=0)
    return np.concatenate([total[None], total - parts]).astype(float)


def replicated_mean(values: Stack) -> Floats:
    """The mean over the repeats where it is known, replicated."""
    known = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(replicated_sum(np.where(known, values, 0.0)) / replicated_sum(known))


def standard_error(replicated: Floats) -> Floats:
    """The Monte Carlo error of replicated values; infinite where a group held all there was."""
    left = replicated[1:]
    with np.errstate(invalid="ignore"):
        error = np.sqrt((GROUPS - 1) / GROUPS * ((left - left.mean(axis=0)) ** 2).sum(axis=0))
    return np.asarray(np.where(np.isnan(error), np.inf, error))


def freedom(replicated: Floats) -> int:
    """The degrees of freedom of a standard error: one less than the groups that held any repeats."""
    left = replicated[1:].reshape(GROUPS, -1)
    return max(int(np.any(left != replicated[0].ravel(), axis=1).sum()) - 1, 1)


def exactly(value: Stack | float) -> Floats:
    """A value without Monte Carlo error, replicated."""
    return np.repeat(np.asarray(value, dtype=float)[None], 1 + GROUPS, axis=0)
