"""The mode of a posterior: where the sampler starts, and where the prior is found wide enough or not."""

from dataclasses import replace
from typing import TypeVar

import numpy as np

from dpcipher.posteriors.evidence import Evidence
from dpcipher.posteriors.targets import Observations, RowsTarget, TableTarget
from dpcipher.tables.domain import Floats

REFRESHES, STEPS = 5, 40
LEAST_INFORMATION = 0.5

AnyTarget = TypeVar("AnyTarget", bound=RowsTarget)


def find_table_mode(tables: Observations) -> tuple[TableTarget, Floats]:
    """The target of the tables with the prior that fits its number of rows, and its mode with the noise taken for normal."""
    target = TableTarget(tables.model, tables.evidence.n_rows, tables, np.eye(tables.model.size), normal=True)
    point = _start(target, tables.evidence)
    for _ in range(REFRESHES):
        target, point = _widened(target, _climb(target, point))
        target = replace(target, shrink=_prior_precision(target, point))
    return replace(target, normal=False), point


def find_mode(target: AnyTarget, evidence: Evidence) -> tuple[AnyTarget, Floats]:
    """The target with a prior that is wide enough, and its mode."""
    point = _climb(target, _start(target, evidence))
    for _ in range(REFRESHES):
        wider, moved = _widened(target, point)
        if wider is target:
            break
        target, point = wider, _climb(wider, moved)
    return target, point


def _widened(target: AnyTarget, point: Floats) -> tuple[AnyTarget, Floats]:
    """The same distribution in a model whose prior is wide enough for it; the target itself where it is."""
    model = target.model.widened(point[: target.model.size])
    if model is target.model:
        return target, point
    moved = point.copy()
    moved[: model.size] *= target.model.scales / model.scales
    return target.within(model), moved


def _start(target: RowsTarget, evidence: Evidence) -> Floats:
    """All cells equally likely, and the tables' own total."""
    point = np.zeros(target.size)
    if target.n_rows is None:
        spread = min(table.total_variance for table in evidence.tables) ** 0.5
        point[-1] = np.log(max(evidence.rows_estimate, 0.1 * spread, 1.0))
    return point


def _prior_precision(target: TableTarget, point: Floats) -> Floats:
    """(I + M⁻¹)⁻¹ = I - (I + M)⁻¹, with M the information that a table of so many rows has, and a little more.

    Structural zeros leave directions without any information: there, too, the prior must stay one.
    """
    information, unit = target.model.information(target.rates(point)), np.eye(target.model.size)
    return np.asarray(unit - np.linalg.inv((1 + LEAST_INFORMATION) * unit + information))


def _climb(target: RowsTarget, point: Floats) -> Floats:
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
