"""The table engine: a dense joint, built one attribute at a time from weighted, centred linear equations.

Each step solves the equations of every table in closure(Q) that brings the new attribute together with earlier ones (`additive`).
Where that solution is non-negative it is kept: independence, and every tree-shaped dependence in the order that
`order_attributes` finds, come out exact. Where strong dependence makes it negative, its exponential takes its place: the two agree
to first order, and the exponential is positive and log-linear. Then the table so far is raked to all goals inside it (`raking`), which
does nothing where they are met already.

Clipping at zero instead of the exponential was measured: from the noiseless pair tables of 2×2×3×3 tables (n = 500) it left a 3-way TVD
of .0194 where the exponential leaves .0188, and of .0908 against .0867 on the 6×9×3×3×3 table of the paper's second experiment.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import prod, sqrt

import numpy as np
from numpy.typing import NDArray

from dpcipher.engines import raking
from dpcipher.engines.additive import LinkedGoal, conditional
from dpcipher.engines.raking import Goal, gaps, rake
from dpcipher.engines.targets import Fit, Targets, order_attributes
from dpcipher.errors import ParameterError, Progress, SizeError, SolveError, WorkloadError, silent
from dpcipher.tables.domain import Axes, Floats, Shape, maximal
from dpcipher.tables.table import Cell, broadcast_over

MAX_CELLS = 2**27
# Sweeps of the steps before the last, which rakes to all goals anyway.
_EARLY_SWEEPS = 20
# Raking toward cells that must vanish gains only as 1 / sweeps; a table within this TVD of its goal counts as met.
_ACCEPTED = 1e-3
# The total variation distance within which a table without noise is met.
_EXACT = 1e-6
# Ten sweeps must leave at most this share of the misfit: exact tables are worth a slow approach, noisy ones are not.
_PATIENT, _BRISK = 0.9, 0.7
# An additive solution with less negative probability than this is non-negative up to rounding.
_ROUNDING = 1e-9
# The exponent's reach: a rare level can ask for a hundredfold rise, which raking should meet, not the starting point.
_REACH = 5.0


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
    order = order_attributes(targets) if order is None else order
    work = _reorder(targets, order)
    # A table of all attributes is the joint; else attributes are added one at a time.
    whole = work.tables.get(tuple(range(len(order))))
    table, negative, used = (_table(work, (0,)) if whole is None else whole).copy(), 0.0, 0
    _clear(table, work, 0)
    for new in range(table.ndim, len(order)):
        say(f"solving: column {new + 1} of {len(order)}")
        table, below = _add(work, table, new)
        _clear(table, work, new)
        most = sweeps if new == len(order) - 1 else min(sweeps, _EARLY_SWEEPS)
        used = rake(table, _goals(work, new + 1), sweeps=most, tolerance=tolerance, gain=gain).sweeps
        negative = max(negative, below)
    _normalise(table)
    misses = gaps(table, [Goal(axes, goal) for axes, goal in work.tables.items()])
    met = _met(misses, max(tolerance, _ACCEPTED))
    fit = Fit(negative, met, _residuals(misses, order), used, order)
    return np.ascontiguousarray(table.transpose(np.argsort(order))), fit


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


def _add(work: Targets, earlier: Floats, new: int) -> tuple[Floats, float]:
    """The table with one more attribute, and the probability its additive solution put below zero."""
    base = _table(work, (new,))
    z = conditional(earlier, base, _links(work, base, new))
    table = z * earlier[..., None]
    below = float(-table.sum(where=table < 0))
    if below > _ROUNDING:
        np.multiply(_tilt(z, base), earlier[..., None], out=table)
        table /= table.sum()
        return table, below
    return np.maximum(table, 0.0, out=table), below


def _tilt(z: Floats, base: Floats) -> Floats:
    """base · exp(z / base − 1), in place of `z`; the exponent scaled down where it would exceed its reach."""
    z -= base
    z /= np.where(base > 0, base, 1.0)
    top = float(z.max())
    z *= min(1.0, _REACH / top) if top > 0 else 1.0
    np.exp(z, out=z)
    z *= base
    return z


def _links(work: Targets, base: Floats, new: int) -> list[LinkedGoal]:
    """What every goal says about the new attribute, given earlier ones."""
    sets = _below(tuple(axes for axes in work.tables if new in axes), new)
    return [LinkedGoal(axes, _given(_table(work, (*axes, new)), base)) for axes in sets]


def _given(table: Floats, base: Floats) -> Floats:
    """P(last | others); the base rate where the others have no probability."""
    sums = table.sum(axis=-1, keepdims=True)
    if sums.min() > 0:
        return np.asarray(table / sums)
    return np.where(sums > 0, table / np.where(sums > 0, sums, 1.0), base)


def _goals(work: Targets, n_axes: int) -> list[Goal]:
    """The maximal tables of the closure within the first `n_axes` attributes."""
    return [Goal(axes, _table(work, axes)) for axes in _below(tuple(work.tables), n_axes)]


@lru_cache(maxsize=512)
def _below(sets: tuple[Axes, ...], n_axes: int) -> tuple[Axes, ...]:
    """What the first `n_axes` attributes have in common with some sets, as far as no more than that is in another."""
    parts = maximal(tuple(axis for axis in axes if axis < n_axes) for axes in sets)
    return tuple(part for part in parts if part)


def _table(work: Targets, axes: Axes) -> Floats:
    """A table that is known to be in closure(Q)."""
    table = work.table(axes)
    assert table is not None
    return table


def _clear(table: Floats, work: Targets, new: int) -> None:
    """Set structural zeros to zero, in place, once all of their attributes are there; those before `new` were there already."""
    for axes, mask in work.zeros:
        if new <= axes[-1] < table.ndim:
            table *= ~broadcast_over(mask, axes, range(table.ndim))


def _reorder(targets: Targets, order: tuple[int, ...]) -> Targets:
    """The same targets with attributes numbered by their place in `order`."""
    if sorted(order) != list(range(len(targets.shape))):
        raise ParameterError(f"order ({order}) must name every attribute once; try order=None")
    place = {axis: number for number, axis in enumerate(order)}
    turns = {
        axes: sorted(axes, key=lambda axis: place[axis])
        for axes in [*targets.tables, *(axes for axes, _ in targets.zeros)]
    }
    moved = {axes: tuple(place[axis] for axis in turn) for axes, turn in turns.items()}
    tables = {moved[axes]: _turn(table, axes, turns[axes]) for axes, table in targets.tables.items()}
    zeros = tuple((moved[axes], _turn(mask, axes, turns[axes])) for axes, mask in targets.zeros)
    return Targets(tuple(targets.shape[axis] for axis in order), targets.total, tables, {}, zeros)


def _turn(table: NDArray[Cell], axes: Axes, turn: list[int]) -> NDArray[Cell]:
    """A table on `axes` with its dimensions in the order `turn`."""
    return np.ascontiguousarray(table.transpose([axes.index(axis) for axis in turn]))


def _normalise(table: Floats) -> None:
    """Divide by the sum, in place: structural zeros may have taken probability that no other cell could hold."""
    total = float(table.sum())
    if not total > 0:
        raise SolveError(
            "the tables leave no cell with probability; structural zeros contradict them: check both against the schema"
        )
    table /= total


def _residuals(misses: Mapping[Axes, Floats], order: tuple[int, ...]) -> dict[Axes, float]:
    return {
        tuple(sorted(order[i] for i in axes)): sqrt(float((miss**2).sum()) / miss.size)
        for axes, miss in misses.items()
    }


def _met(misses: Mapping[Axes, Floats], tolerance: float) -> bool:
    return all(0.5 * float(np.abs(miss).sum()) <= tolerance for miss in misses.values())


# Raking takes from one sweep a step to the limit, depending on the data; this many is usual.
USUAL_SWEEPS = 3
_PAIR_PASSES = 6  # over a table, that all its pair margins cost


def work(shape: Shape, tables: Sequence[Axes]) -> tuple[float, int]:
    """Operations (passes over one number) and peak bytes of a solve with so many tables and USUAL_SWEEPS a step.

    A step sums the earlier table down for every two tables that link the new attribute to earlier ones (all pairs at once, by products), and rakes the larger table; without
    links it is a product and needs no raking. The largest table exists twice, with some of its ratios.
    """
    operations = 0.0
    for new in range(1, len(shape)):
        goals = _below(tuple(tables), new + 1)
        linking = [axes for axes in goals if new in axes and len(axes) > 1]
        links, passes = len(linking), 2 * len(linking) ** 2
        if all(len(axes) == 2 for axes in linking):
            passes = min(passes, _PAIR_PASSES)
        operations += 2 * links**2 * raking.CALL + passes * prod(shape[:new]) + 4 * prod(shape[: new + 1])
        if links:
            operations += USUAL_SWEEPS * raking.work(shape[: new + 1], goals)
    return operations, 20 * prod(shape)
