"""Measured tables with any variance, for tests that compare least squares with dense algebra."""

from collections.abc import Sequence

import numpy as np
from scipy.optimize import brentq

from dpcipher.release import reconcile as package
from dpcipher.tables.domain import Axes, Domain, Zero
from dpcipher.tables.measurement import SMALLEST_SCALE, Measurement, Noise
from dpcipher.tables.query import Groups, Query


def noise(variance: float) -> Noise:
    """Gaussian noise of exactly this variance; none where it is 0."""
    if variance == 0:
        return Noise("none", 0.0)
    if variance >= 4:
        return Noise("gaussian", float(variance**0.5))
    least = SMALLEST_SCALE["gaussian"]
    return Noise(
        "gaussian", brentq(lambda s: Noise("gaussian", s).variance / variance - 1, least, 3.0, xtol=1e-15)
    )


def noisy(axes: Axes, counts: object, variance: float, *, centred: bool = False) -> Measurement:
    """A measured table: counts and the variance of each; a centred one is given in rows."""
    values = np.asarray(counts)
    size = values.size if centred else 1
    return Measurement(Query(axes, (), (), centred), values * size, noise(variance * size**2))


def runs(axis: int, starts: Sequence[int], counts: object, variance: float, levels: int) -> Measurement:
    """Measured counts of runs of levels of one column."""
    query = Query((axis,), (Groups.runs(list(starts), levels),))  # of no column where there is one run
    return Measurement(query, np.reshape(counts, query.shape({axis: levels})), noise(variance))  # type: ignore[arg-type]


def told(one: Measurement) -> tuple[Axes, np.ndarray, float]:
    """What a measured table says: its columns, its counts in rows, and the variance of each."""
    return (one.query.axes, *one.in_rows())


def told_runs(one: Measurement) -> tuple[int, tuple[int, ...], np.ndarray, float]:
    """What counts of runs say: the column, the first levels of the runs, the counts, and the variance of each."""
    counts, variance = one.in_rows()
    groups = one.query.groups[0] if one.query.groups else None
    starts = groups.starts if groups else tuple(range(counts.size))
    return max(one.query.axes, default=0), starts, counts.ravel(), variance


def domain(shape: Sequence[int], zeros: Sequence[Zero] = ()) -> Domain:
    """Columns called by their numbers."""
    return Domain(tuple(f"column {axis}" for axis in range(len(shape))), tuple(shape), tuple(zeros))


def reconcile(
    shape: Sequence[int],
    measured: Sequence[Measurement],
    *,
    total: float | None = None,
    zeros: Sequence[Zero] = (),
) -> package.Reconciled:
    """Reconcile tables of so many levels."""
    return package.reconcile(domain(shape, zeros), measured, total=total)
