"""The mode of the table's posterior with normal noise: where the sampler starts."""

from dataclasses import dataclass, replace

import numpy as np

from dpcipher.marginals.arrays import Floats
from dpcipher.posteriors.targets import Tables, TableTarget

REFRESHES, STEPS = 5, 40
LEAST_INFORMATION = 0.5


@dataclass(frozen=True)
class Mode:
    """The target with the prior that fits its number of rows, and where it has its mode."""

    target: TableTarget
    point: Floats


def find_mode(tables: Tables) -> Mode:
    """Maximise with the noise taken for normal; the prior follows what is found at the mode."""
    target = TableTarget(tables.model, tables, np.eye(tables.model.size), normal=True)
    point = _start(target)
    for _ in range(REFRESHES):
        point = _climb(target, point)
        target, point = _widened(target, point)
        target = replace(target, shrink=_prior_precision(target, point))
    return Mode(replace(target, normal=False), point)


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
    information, unit = target.model.information(target.rates(point)), np.eye(target.model.size)
    return np.asarray(unit - np.linalg.inv((1 + LEAST_INFORMATION) * unit + information))


def _climb(target: TableTarget, point: Floats) -> Floats:
    """Damped Gauss-Newton (Levenberg and Marquardt)."""
    damping = 1.0
    value, gradient = (part[0] for part in target(point[None]))
    for _ in range(STEPS):
        curvature = target.curvature(point)
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
