"""Let the non-negativity of cells correct the margins, where an estimate of risk says that it helps.

Least squares over tables that agree *and* are non-negative is what max-entropy fits. In small joint tables it removes a good part of
the noise from the one-way tables. In large sparse ones it only adds bias: thousands of clipped cells add up. Which is the case
is judged by Stein's unbiased risk estimate on the one-way tables: with raw estimates y of noise variance W in d dimensions, a corrected
ŷ has risk |ŷ − y|² + 2W·div − Wd against Wd; the divergence is measured along one fixed perturbation.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from dpcipher.release.components import centre
from dpcipher.release.reconcile import Noisy, Reconciled, reconcile
from dpcipher.solve.targets import Axes, Floats

LARGEST_JOINT = 100_000
ROUNDS = 30
STEP = 0.1


@dataclass(frozen=True)
class Positive:
    """One-way tables to trust (`one_way`) and larger ones (`larger`), and the share of the one-way noise that is left."""

    one_way: Reconciled
    larger: Reconciled
    passed: float


def use_positivity(reconciled: Reconciled) -> Positive:
    """Non-negative least-squares tables for the one-way tables if their estimated risk is lower, else what was given.

    With at least one row per cell of the joint table they are used throughout.
    """
    as_given = Positive(reconciled, reconciled, 1.0)
    exact = any(one.variance == 0 for one in reconciled.measured)
    if exact or prod(reconciled.shape) > LARGEST_JOINT or not _has_negative(reconciled):
        return as_given
    corrected = project(reconciled)
    risk, passed = _relative_risk(reconciled, corrected)
    if prod(reconciled.shape) <= reconciled.total:
        return Positive(corrected, corrected, passed)
    return Positive(corrected, reconciled, passed) if risk < 1 else as_given


def _relative_risk(reconciled: Reconciled, corrected: Reconciled) -> tuple[float, float]:
    """Stein's estimate of the risk of the corrected one-way tables, relative to the raw ones, and div/d."""
    sigma = np.sqrt([interaction_variance(reconciled, (axis,)) for axis in range(len(reconciled.shape))])
    sigma[sigma == 0] = 1.0  # an attribute of one level has no deviation
    nudged = _nudge(reconciled)
    raw, best = _one_ways(reconciled, sigma), _one_ways(corrected, sigma)
    before, after = _one_ways(nudged, sigma) - raw, _one_ways(project(nudged), sigma) - best
    passed = min(max(float(before @ after) / max(float(before @ before), 1e-300), 0.1), 1.0)
    freedom = max(sum(levels - 1 for levels in reconciled.shape), 1)
    return float(((best - raw) ** 2).sum()) / freedom + 2 * passed - 1, passed


def project(reconciled: Reconciled) -> Reconciled:
    """Non-negative tables that agree, nearest in least squares (Dykstra's alternating projections)."""
    tables = {axes: reconciled.table(axes) for axes in reconciled.maximal()}
    variance = {axes: float(reconciled.variance(axes).mean()) for axes in tables}
    held: Mapping[Axes, Floats] = {axes: np.zeros_like(table) for axes, table in tables.items()}
    result = reconciled
    for _ in range(ROUNDS):
        clipped = {axes: np.maximum(tables[axes] + held[axes], 0.0) for axes in tables}
        held = {axes: tables[axes] + held[axes] - clipped[axes] for axes in tables}
        measured = [Noisy(axes, clipped[axes], variance[axes]) for axes in tables]
        result = reconcile(reconciled.shape, measured, total=reconciled.total, zeros=reconciled.zeros)
        tables = {axes: result.table(axes) for axes in tables}
    return result


def _has_negative(reconciled: Reconciled) -> bool:
    return any(float(reconciled.table(axes).min()) < 0 for axes in reconciled.maximal())


def _nudge(reconciled: Reconciled) -> Reconciled:
    """The same release with a little more noise, of the same kind and always the same."""
    rng = np.random.default_rng(0)
    moved = [
        Noisy(
            one.axes,
            one.counts + STEP * one.variance**0.5 * rng.standard_normal(one.counts.shape),
            one.variance,
        )
        for one in reconciled.measured
    ]
    return reconcile(reconciled.shape, moved, total=reconciled.total, zeros=reconciled.zeros)


def interaction_variance(reconciled: Reconciled, axes: Axes) -> float:
    """The noise variance of one direction of the interaction on `axes`: that of a unit contrast of the first two levels."""
    contrast = np.ones(())
    for axis in axes:
        step = np.zeros(reconciled.shape[axis])
        step[:2] = [0.5**0.5, -(0.5**0.5)][: len(step)] if len(step) > 1 else 0.0
        contrast = np.multiply.outer(contrast, step)
    return reconciled.linear_variance(axes, contrast)


def _one_ways(reconciled: Reconciled, sigma: Floats) -> Floats:
    """All one-way deviations from uniform, in units of their noise."""
    axes = range(len(reconciled.shape))
    return np.concatenate([centre(reconciled.table((axis,))) / sigma[axis] for axis in axes])
