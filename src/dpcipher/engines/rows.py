"""The rows engine: the additive equations over a population of synthetic rows instead of over all cells.

Attributes are drawn one at a time. At step j the unknown is z(x_j | row), and an equation says that averaging z over the rows with
a given level of an earlier attribute (or tuple of attributes) gives the reconciled table. What comes out is a chain of small
conditional models that samples any number of rows; the cost is linear in the rows and in the tables, whatever the number of cells.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcipher.engines.rows_step import SWEEPS, UNKNOWNS, Barred, Crossings, Equation, fit_link
from dpcipher.engines.targets import (
    Fit,
    Targets,
    moved_last,
    mutual_information,
    order_attributes,
    pair_information,
)
from dpcipher.errors import ParameterError, Progress, silent
from dpcipher.joint.chain import Chain
from dpcipher.joint.link import draw_column
from dpcipher.tables.domain import Axes, Codes, Floats, Shape, maximal
from dpcipher.tables.table import margin, stacked

PASSES = 8  # of `match_goals` over the population: fewer than for rows that are handed out
MISFIT = (0.03, 0.1)  # total variation distance up to which a table counts as met: exact, and very noisy
# Numbers in the largest array of a step, beyond which the population shrinks to its lower bound.
WORKSPACE = 2**24
POPULATION = (16_384, 32_768)  # as large as the data within these bounds; more rows than that gain nothing


def solve_rows(
    targets: Targets,
    *,
    population: int | None = None,
    sweeps: int = SWEEPS,
    last: int | None = None,
    seed: int = 0,
    say: Progress = silent,
) -> tuple[Chain, Fit]:
    """Fit a chain to the targets over `population` rows (by default about as many as the data has).

    `sweeps` bounds the raking sweeps of a step. An attribute that is to be predicted goes `last`, so that its step is the model of it given all
    others, and the noise of tables without it stays out of that model. The same seed gives the same chain.
    """
    n_rows = _population(targets, population)
    rng = np.random.default_rng(seed)
    weights = pair_information(targets)
    order = moved_last(order_attributes(targets, weights), last)
    equations = _equations(targets, order, weights)
    codes = np.zeros((n_rows, len(order)), np.int32, order="F")
    crossings = Crossings(codes, targets.shape)
    links, negative, used = [], 0.0, 0
    for position, attribute in enumerate(order):
        say(f"solving: column {position + 1} of {len(order)}")
        base = _base(targets, attribute)
        barred = _barred(targets, order[: position + 1])
        link, cells, chances, below, swept = fit_link(
            attribute, base, equations[attribute], barred, crossings, sweeps=sweeps
        )
        if barred and _replace_dead_ends(codes, chances, rng):
            crossings = Crossings(codes, targets.shape)
            cells = link.blocks.cells(codes, targets.shape)
        codes[:, attribute] = draw_column(
            link,
            chances,
            codes,
            cells,
            rng,
            independent=False,
            to_goals=True,
            first=order[:position],
            passes=PASSES,
        )
        crossings.add(attribute)
        links.append(link)
        negative, used = max(negative, below), max(used, swept)
    residuals, converged = _misfit(targets, crossings)
    fit = Fit(negative, converged, residuals, used, order, n_rows)
    return Chain(targets.shape, tuple(links)), fit


def _replace_dead_ends(codes: Codes, chances: NDArray[np.floating[Any]], rng: np.random.Generator) -> bool:
    """Make rows that several structural zeros together leave without any level copies of others, in place, as `Chain` does when it samples."""
    dead = chances.sum(axis=1) == 0
    if not dead.any() or dead.all():
        return False
    copied = rng.choice(np.flatnonzero(~dead), int(dead.sum()))
    codes[dead], chances[dead] = codes[copied], chances[copied]
    return True


def _population(targets: Targets, population: int | None) -> int:
    if population is None:
        most = max(POPULATION[0], min(POPULATION[1], WORKSPACE // max(*targets.shape, len(targets.shape))))
        return int(np.clip(round(targets.total), POPULATION[0], most))
    if population < 1:
        raise ParameterError(
            f"population ({population}) must be a whole number above 0; try population=65_536"
        )
    return int(population)


def _base(targets: Targets, attribute: int) -> Floats:
    """The one-way table of an attribute; uniform if no table covers it."""
    table = targets.table((attribute,))
    levels = targets.shape[attribute]
    return np.full(levels, 1 / levels) if table is None else np.maximum(table, 0) / np.maximum(table, 0).sum()


def _equations(targets: Targets, order: tuple[int, ...], weights: Floats) -> dict[int, list[Equation]]:
    """For each attribute, the largest groups of earlier attributes that a table brings it together with, strongest first.

    The tables of smaller groups are sums of these, so that their equations are met with them. `weights` is the information of pairs.
    """
    position = {axis: place for place, axis in enumerate(order)}
    covering: dict[int, dict[Axes, Axes]] = defaultdict(dict)
    for axes in sorted(targets.tables, key=lambda axes: (-targets.tables[axes].size, axes)):
        for attribute in axes:
            group = tuple(axis for axis in axes if position[axis] < position[attribute])
            if group:
                covering[attribute][group] = axes  # the smallest table that covers it comes last
    return {axis: _strongest_first(targets, axis, covering[axis], weights) for axis in order}


def _strongest_first(
    targets: Targets, attribute: int, covering: dict[Axes, Axes], weights: Floats
) -> list[Equation]:
    """One equation for each group that no other group contains, from its table, by mutual information."""
    ranked = []
    for group in maximal(covering):
        axes = covering[group]
        keep = tuple(axis for axis in axes if axis == attribute or axis in group)
        table = np.moveaxis(margin(targets.tables[axes], axes, keep), keep.index(attribute), -1)
        pair = np.maximum(table.reshape(-1, targets.shape[attribute]), 0)
        strength = weights[attribute, group[0]] if len(group) == 1 else np.round(mutual_information(pair), 10)
        ranked.append((-float(strength), group, Equation(group, pair)))
    return [equation for _, _, equation in sorted(ranked, key=lambda entry: entry[:2])]


def _barred(targets: Targets, order: tuple[int, ...]) -> Barred:
    """What structural zeros forbid to the last attribute of `order`, given the ones before it.

    A level is also barred when it would leave every completion of the zero's attributes forbidden.
    """
    forbidden = []
    for axes, mask in targets.zeros:
        if order[-1] not in axes:
            continue
        later = tuple(place for place, axis in enumerate(axes) if axis not in order)
        group = tuple(axis for axis in axes if axis in order[:-1])
        keep = [axis for axis in axes if axis in order]
        barred = np.moveaxis(np.asarray(mask.all(axis=later)), keep.index(order[-1]), -1)
        if barred.any():
            forbidden.append((group, barred.reshape(-1, targets.shape[order[-1]])))
    return tuple(forbidden)


def _misfit(targets: Targets, crossings: Crossings) -> tuple[dict[Axes, float], bool]:
    """Root mean square misfit of each table of the population, and whether every table is as near as it should be."""
    residuals: dict[Axes, float] = {}
    converged, n_rows = True, len(crossings.codes)
    for sets, tables in stacked(targets.tables):
        missed = (crossings.tables(sets) / n_rows - tables).reshape(len(sets), -1)
        residuals |= zip(sets, np.sqrt(np.mean(missed**2, axis=1)).tolist(), strict=True)
        sigma = np.array([targets.sigma.get(axes, 0.0) for axes in sets])
        converged &= bool(
            (np.abs(missed).sum(axis=1) / 2 <= _tolerance(sigma, missed.shape[1], n_rows)).all()
        )
    return {axes: residuals[axes] for axes in targets.tables}, converged


def _tolerance(sigma: Floats, cells: int, n_rows: int) -> Floats:
    """The total variation distance to expect of tables: their own noise, within the bounds of `MISFIT`, and half a row per cell.

    Noisy tables need not have a joint in common, so that none can be nearer to all of them than they are to one another.
    """
    noise = sigma * cells * math.sqrt(2 / math.pi) / 2  # Σ|normal| / 2
    return np.asarray(np.clip(noise, *MISFIT) + min(cells, n_rows) / (2 * n_rows))


def work(shape: Shape, tables: Sequence[Axes], n_rows: int) -> tuple[float, int]:
    """Operations (passes over one number) and peak bytes of a solve: linear in the population, whatever the number of cells.

    Every attribute is drawn, and for every table each row is looked up and raked over the levels of the attribute drawn last; small tables together. A step
    holds two columns of cells for each of its groups, the probabilities of every row, and the linear system.
    """
    population = _population(Targets(shape, float(n_rows), {}, {}), None)
    visits = sum(4 + 1.2 * sum(shape[axis] for axis in axes) / len(axes) for axes in tables)
    groups, unknowns = 0, 0
    for last in range(len(shape)):
        sizes = [math.prod(shape[axis] for axis in axes if axis != last) for axes in tables if last in axes]
        groups, unknowns = max(groups, len(sizes)), max(unknowns, min(UNKNOWNS, sum(sizes)))
    peak = population * (38 * groups + 9 * max(shape)) + 8 * unknowns**2
    return 3.9 * population * (visits + 30 * len(shape)), peak
