"""The table engine: a dense joint of largest entropy under the tables, built one attribute at a time.

Each attribute enters as if it were independent of the earlier ones; then the table so far is raked to every target table inside it, as far
as the earlier attributes and the new one go (`raking`). The limit is the joint of largest entropy that has these tables. Adding attributes one
by one makes the large table start near its limit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod, sqrt
from typing import ClassVar

import numpy as np

from dpcipher.engines.engine import Problem, solve_denoised
from dpcipher.engines.targets import Fit, Targets, order_attributes
from dpcipher.errors import (
    ParameterError,
    Progress,
    SizeError,
    SolveError,
    WorkloadError,
    shown_count,
    silent,
)
from dpcipher.joint.core import Core
from dpcipher.joint.dense import DenseTable
from dpcipher.schema.schema import Schema
from dpcipher.tables import raking
from dpcipher.tables.domain import Axes, Floats, Shape, maximal
from dpcipher.tables.raking import Goal, gaps, rake
from dpcipher.tables.table import broadcast_over

MAX_CELLS = 2**27
# Sweeps of the steps before the last, which rakes to all goals anyway.
_EARLY_SWEEPS = 3
# Raking toward cells that must vanish gains only as 1 / sweeps; a table within this TVD of its goal counts as met.
_ACCEPTED = 1e-3
# The total variation distance within which a table without noise is met.
_EXACT = 1e-6
# Ten sweeps must leave at most this share of the misfit: exact tables are worth a slow approach, noisy ones are not.
_PATIENT, _BRISK = 0.9, 0.7


@dataclass(frozen=True)
class FullTable:
    """Largest entropy under the denoised tables, over all cells of the full table: at most 134 million.

    >>> import dpcipher as dc
    >>> schema = dc.Schema.from_domain({"smokes": 2, "ill": 2})
    >>> release = dc.Release.from_tables({("smokes", "ill"): [[480, 20], [260, 240]]}, schema, scale=5.0)
    >>> dc.solve(release, engine=dc.FullTable()).health.engine
    'table'
    """

    name: ClassVar[str] = "table"

    def check(self, schema: Schema) -> None:
        """Refuse a table that would not fit."""
        if (cells := prod(schema.shape)) > MAX_CELLS:
            raise SizeError(
                f"engine ('table') needs the full table of {shown_count(cells)} cells; at most {MAX_CELLS:,} fit. Use engine='rows'"
            )

    def solve(self, problem: Problem) -> tuple[Core, Fit]:
        """The joint, and how well it meets the tables."""

        def fit(targets: Targets) -> tuple[Core, Fit]:
            probabilities, ended = solve_table(targets, say=problem.say)
            return DenseTable(probabilities), ended

        return solve_denoised(problem, fit)


def solve_table(
    targets: Targets,
    *,
    order: tuple[int, ...] | None = None,
    sweeps: int = 200,
    tolerance: float | None = None,
    say: Progress = silent,
) -> tuple[Floats, Fit]:
    """The joint of all attributes, dense, axes in schema order, and how well it meets `targets`.

    `tolerance` is the total variation distance within which every table is to be met, `sweeps` the most raking sweeps of a step. The
    fit has converged when every table is met within a TVD of .001, or of the tolerance asked for.
    """
    check_targets(targets)
    tolerance = _worthwhile(targets) if tolerance is None else tolerance
    gain = _PATIENT if tolerance <= _EXACT else _BRISK
    order = _checked_order(targets, order)
    everything, used = tuple(range(len(order))), 0
    table: Floats | None = None
    if everything in targets.tables:
        table = _cleared(targets.tables[everything].copy(), everything, targets)
        order = ()
    for step, axis in enumerate(order):
        say(f"solving: column {step + 1} of {len(order)}")
        earlier, axes = tuple(sorted(order[:step])), tuple(sorted(order[: step + 1]))
        one = broadcast_over(_table(targets, (axis,)), (axis,), axes)
        table = np.ascontiguousarray(one if table is None else broadcast_over(table, earlier, axes) * one)
        table = _cleared(table, axes, targets)
        goals = [
            Goal(tuple(map(axes.index, keep)), _table(targets, keep))
            for keep in _inside(tuple(targets.tables), axes)
        ]
        most = sweeps if step == len(order) - 1 else min(sweeps, _EARLY_SWEEPS)
        used = rake(table, goals, sweeps=most, tolerance=tolerance, gain=gain).sweeps
    assert table is not None  # there is at least one attribute
    _normalise(table, targets)
    misses = gaps(table, [Goal(axes, goal) for axes, goal in targets.tables.items()])
    met = all(_distance(miss) <= max(tolerance, _ACCEPTED) for miss in misses.values())
    return table, Fit(met, _residuals(misses), used, order or everything)


def _worthwhile(targets: Targets) -> float:
    """How closely to meet the tables: to a fiftieth of the distance that their noise puts between them and the truth.

    Noise of standard deviation s on K cells moves a table by about .4·K·s in total variation.
    """
    distances = [
        0.4 * targets.tables[axes].size * targets.sigma.get(axes, 0.0) for axes in maximal(targets.tables)
    ]
    return max(_EXACT, 0.02 * min(distances))


def check_targets(targets: Targets) -> None:
    """Refuse a table that would not fit, or an attribute that no table holds, before any work."""
    if prod(targets.shape) > MAX_CELLS:
        cells = f"{prod(targets.shape):,} cells"
        raise SizeError(
            f"the full table ({cells}) must have at most {MAX_CELLS:,} for engine='table'; use engine='rows'"
        )
    missing = sorted(set(range(len(targets.shape))).difference(*targets.tables))
    if missing:
        raise WorkloadError(
            f"tables ({len(targets.tables)}) must hold every attribute; none holds number {missing[0]}"
        )


def _checked_order(targets: Targets, order: tuple[int, ...] | None) -> tuple[int, ...]:
    if order is None:
        return order_attributes(targets)
    if sorted(order) != list(range(len(targets.shape))):
        raise ParameterError(f"order ({order}) must name every attribute once; try order=None")
    return order


@lru_cache(maxsize=512)
def _inside(sets: tuple[Axes, ...], axes: Axes) -> tuple[Axes, ...]:
    """What some attributes have in common with each set, as far as no more than that is in another."""
    parts = maximal(tuple(axis for axis in own if axis in axes) for own in sets)
    return tuple(part for part in parts if part)


def _table(targets: Targets, axes: Axes) -> Floats:
    """A table that is known to be in closure(Q)."""
    table = targets.table(axes)
    assert table is not None
    return table


def _cleared(table: Floats, axes: Axes, targets: Targets) -> Floats:
    """The table with structural zeros set to zero, in place, as soon as all of their attributes are there."""
    for own, mask in targets.zeros:
        if set(own) <= set(axes):
            table *= ~broadcast_over(mask, own, axes)
    return table


def _normalise(table: Floats, targets: Targets) -> None:
    """Divide by the sum, in place: structural zeros may have taken probability that no other cell could hold."""
    total = float(table.sum())
    if not total > 0:
        cause = (
            "structural zeros contradict them: check both against the schema"
            if targets.zeros
            else "they contradict one another in which cells are empty. Use engine='rows', or measure tables of fewer columns"
        )
        raise SolveError(f"the tables leave no cell with probability; {cause}")
    table /= total


def _distance(miss: Floats) -> float:
    """The total variation distance between two tables, from their difference."""
    return 0.5 * float(np.abs(miss).sum())


def _residuals(misses: Mapping[Axes, Floats]) -> dict[Axes, float]:
    return {axes: sqrt(float((miss**2).sum()) / miss.size) for axes, miss in misses.items()}


# Raking takes from one sweep a step to the limit, depending on the data; this many is usual.
USUAL_SWEEPS = 3


def work(shape: Shape, tables: Sequence[Axes]) -> tuple[float, int]:
    """Operations (passes over one number) and peak bytes of a solve with so many tables and USUAL_SWEEPS a step.

    A step multiplies the earlier table by a one-way table and rakes the larger one; where no table links the new attribute to earlier ones it
    needs no raking. Beside the largest table only small ones are held.
    """
    operations = 0.0
    for new in range(1, len(shape)):
        goals = _inside(tuple(tables), tuple(range(new + 1)))
        operations += 2 * prod(shape[: new + 1])
        if any(new in axes and len(axes) > 1 for axes in goals):
            operations += USUAL_SWEEPS * raking.work(shape[: new + 1], goals)
    return operations, 10 * prod(shape)
