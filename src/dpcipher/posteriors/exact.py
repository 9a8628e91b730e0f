"""Tables that are known exactly: their statistics, and the log-linear fit to them."""

from collections.abc import Sequence

import numpy as np

from dpcipher.posteriors.evidence import Evidence, Observed
from dpcipher.posteriors.log_linear import LogLinear
from dpcipher.tables.domain import Floats
from dpcipher.tables.table import broadcast_over, margin

SWEEPS, CLOSE = 2_000, 1e-12


def fitted_to(evidence: Evidence) -> Floats:
    """The distribution without further interactions that has the exact tables: a stack of one."""
    start = evidence.possible / evidence.possible.sum()
    return np.asarray(fit_known(start[None], evidence.exact_margins or (), sweeps=SWEEPS)[0])


def fit_known(stack: Floats, known: Sequence[Observed], *, sweeps: int) -> Floats:
    """Distributions fitted to known tables by iterative proportional fitting, which adds no interaction."""
    axes = tuple(range(-1, stack.ndim - 1))  # -1 stands for the distributions
    for _ in range(sweeps if known else 0):
        before = stack
        for table in known:
            now = table.query.merge(margin(stack, axes, (-1, *table.axes)), 1)
            share = np.maximum(table.counts, 0.0) / table.counts.sum()
            factor = np.divide(share, now, out=np.zeros_like(now), where=now > 0)
            stack = stack * broadcast_over(table.query.spread(factor, 1), (-1, *table.axes), axes)
        if np.abs(stack - before).max() < CLOSE:
            break
    return np.asarray(stack / stack.sum(axis=tuple(range(1, stack.ndim)), keepdims=True))


def known_statistics(evidence: Evidence, model: LogLinear) -> Floats | None:
    """The sufficient statistics where exact tables give them all; None elsewhere."""
    known = evidence.exact_margins
    if known is None or evidence.n_rows is None or {table.axes for table in known} != set(model.tables):
        return None
    counts = evidence.n_rows * fitted_to(evidence)
    return np.asarray(model.pull(counts.reshape(1, -1))[0])


def population_mode(model: LogLinear, statistics: Floats, rows: float) -> Floats:
    """The mode of the population given the statistics of so many rows, by damped Newton steps."""
    point = np.zeros(model.size)
    for _ in range(60):
        chances = model.probabilities(point[None])
        slope = point + rows * model.pull(chances)[0] - statistics
        precision = np.eye(model.size) + model.information(rows * chances[0])
        step = np.linalg.solve(precision, slope)
        point = point - step * min(1.0, 2.0 / max(np.abs(step).max(), 1e-12))
        if np.abs(step).max() < 1e-6:
            break
    return point
