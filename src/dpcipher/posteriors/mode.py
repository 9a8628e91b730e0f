"""The mode of the table's posterior with normal noise, and the curvature there: the coordinates in which the sampler moves."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_triangular

from dpcipher.marginals.arrays import Floats
from dpcipher.posteriors.hamiltonian import Whitening
from dpcipher.posteriors.targets import Tables, TableTarget

REFRESHES, STEPS = 5, 40
LEAST_INFORMATION = 0.5


@dataclass(frozen=True)
class Mode:
    """The target with the prior that fits its number of rows, and the coordinates that are white at its mode."""

    target: TableTarget
    whitening: Whitening


def find_mode(tables: Tables) -> Mode:
    """Maximise with the noise taken for normal; the prior follows what is found at the mode."""
    target = TableTarget(tables.model, tables, np.eye(tables.model.size), normal=True)
    point = _start(target)
    for _ in range(REFRESHES):
        point = _climb(target, point)
        target, point = _widened(target, point)
        target = replace(target, shrink=_prior_precision(target, point))
    return Mode(replace(target, normal=False), _whitening(target, point))


def _widened(target: TableTarget, point: Floats) -> tuple[TableTarget, Floats]:
    """The same distribution in a model whose prior is wide enough for it."""
    model = target.model.widened(point[: target.model.size])
    if model is target.model:
        return target, point
    moved = point.copy()
    moved[: model.size] *= target.model.scales / model.scales
    return replace(target, model=model, tables=replace(target.tables, model=model)), moved


def _start(target: TableTarget) -> Floats:
    """All cells equally likely, and the tables' own total."""
    point = np.zeros(target.size)
    if target.n_rows is None:
        spread = min(table.law.variance * table.counts.size for table in target.tables.evidence.tables) ** 0.5
        point[-1] = np.log(max(target.tables.evidence.rows_estimate, 0.1 * spread, 1.0))
    return point


def _prior_precision(target: TableTarget, point: Floats) -> Floats:
    """(I + M⁻¹)⁻¹ = I - (I + M)⁻¹, with M the information that a table of so many rows has, and a little more.

    Structural zeros leave directions without any information: there, too, the prior must stay one.
    """
    information, unit = target.model.information(_rates(target, point)), np.eye(target.model.size)
    return np.asarray(unit - np.linalg.inv((1 + LEAST_INFORMATION) * unit + information))


def _rates(target: TableTarget, point: Floats) -> Floats:
    coefficients, rows = target.split(point[None])
    return np.asarray(rows[0] * target.model.probabilities(coefficients)[0])


def _curvature(target: TableTarget, point: Floats) -> Floats:
    """The Gauss-Newton matrix: how the tables answer to each number, in units of their noise, and the prior."""
    rates = _rates(target, point)
    design = target.model.design
    directions = (design - rates @ design / rates.sum()).T * rates
    if target.n_rows is None:
        directions = np.concatenate([directions, rates[None]])
    answers = target.tables.sums(directions)
    curvature = (answers / target.tables.variance) @ answers.T
    size = target.model.size
    curvature[:size, :size] += target.shrink
    return np.asarray(curvature)


def _climb(target: TableTarget, point: Floats) -> Floats:
    """Damped Gauss-Newton (Levenberg and Marquardt)."""
    damping = 1.0
    value, gradient = (part[0] for part in target(point[None]))
    for _ in range(STEPS):
        curvature = _curvature(target, point)
        while damping < 1e10:
            damped = curvature + damping * np.diag(np.diag(curvature) + 1e-12)
            step = np.clip(np.linalg.solve(damped, gradient), -3, 3)
            tried, slope = (part[0] for part in target((point - step)[None]))
            if tried < value:
                break
            damping *= 6
        else:
            return point
        gain, point, value, gradient = value - tried, point - step, tried, slope
        damping = max(damping / 6, 1e-8)
        if gain < 1e-2:
            break
    return point


def _whitening(target: TableTarget, point: Floats) -> Whitening:
    curvature = _curvature(target, point)
    curvature += 1e-9 * np.trace(curvature) / len(curvature) * np.eye(len(curvature))
    lower = np.linalg.cholesky(curvature)
    root = solve_triangular(lower, np.eye(len(lower)), lower=True).T
    return Whitening(point, np.ascontiguousarray(root))
