"""Tables that are known exactly: their statistics, and the log-linear fit to them."""

import numpy as np

from dpcipher.marginals.arrays import Floats
from dpcipher.marginals.tables import broadcast_over, margin
from dpcipher.posteriors.evidence import Evidence
from dpcipher.posteriors.hamiltonian import Whitening
from dpcipher.posteriors.log_linear import LogLinear
from dpcipher.posteriors.mode import has_matrix

SWEEPS, CLOSE = 2_000, 1e-12


def fitted_to(evidence: Evidence) -> Floats:
    """The distribution without further interactions that has the exact tables: iterative proportional fitting."""
    known = evidence.exact_margins or {}
    axes = tuple(range(len(evidence.shape)))
    fitted = evidence.possible / evidence.possible.sum()
    for _ in range(SWEEPS):
        before = fitted
        for keep, counts in known.items():
            now = margin(fitted, axes, keep)
            share = np.maximum(counts, 0.0) / counts.sum()
            factor = np.divide(share, now, out=np.zeros_like(now), where=now > 0)
            fitted = fitted * broadcast_over(factor, keep, axes)
        if np.abs(fitted - before).max() < CLOSE:
            break
    return np.asarray(fitted / fitted.sum())


def known_statistics(evidence: Evidence, model: LogLinear) -> tuple[Floats, Whitening] | None:
    """The sufficient statistics where exact tables give them all, and coordinates to sample the population in; None elsewhere."""
    known = evidence.exact_margins
    if known is None or evidence.n_rows is None or set(known) != set(model.tables):
        return None
    counts = evidence.n_rows * fitted_to(evidence)
    statistics = model.pull(counts.reshape(1, -1))[0]
    # Half a row in every possible cell keeps the starting point finite where a table holds zeros.
    rates = (counts + 0.5 * evidence.possible).ravel()
    point = _mode(model, statistics, float(evidence.n_rows), rates)
    return statistics, point


def _mode(model: LogLinear, statistics: Floats, rows: float, rates: Floats) -> Whitening:
    """The mode by damped Newton steps, and the curvature there."""
    point = np.zeros(model.size)
    if not has_matrix(model):
        spread = 1 + model.diagonal(tuple(range(len(model.shape))), rates.reshape(model.shape))
        return Whitening(point, spread**-0.5)
    for _ in range(60):
        chances = model.probabilities(point[None])
        slope = point + rows * model.pull(chances)[0] - statistics
        precision = np.eye(model.size) + model.information(rows * chances[0])
        step = np.linalg.solve(precision, slope)
        point = point - step * min(1.0, 2.0 / max(np.abs(step).max(), 1e-12))
        if np.abs(step).max() < 1e-6:
            break
    root = np.linalg.inv(np.linalg.cholesky(precision)).T
    return Whitening(point, root)
