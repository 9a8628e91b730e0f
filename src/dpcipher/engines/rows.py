"""The rows engine: largest entropy over a population of synthetic rows instead of over all cells.

Attributes are drawn one at a time. At step j every row has a distribution of x_j, its one-way table at first, which is raked to the target tables:
the rows with a given level of an earlier attribute (or tuple of attributes) must have x_j on average as that table says. What comes out is a chain
of small conditional models that samples any number of rows; the cost is linear in the rows and in the tables, whatever the number of cells.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpcipher.engines.engine import Problem, solve_denoised
from dpcipher.engines.targets import (
    Fit,
    Targets,
    moved_last,
    mutual_information,
    order_attributes,
    pair_information,
)
from dpcipher.errors import ParameterError, Progress, did_you_mean, silent
from dpcipher.joint.blocks import Block, Cells, Chances, grouped
from dpcipher.joint.chain import Chain
from dpcipher.joint.core import Core
from dpcipher.joint.even import row_sums
from dpcipher.joint.link import Link, draw_column, scaled
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Axes, Bools, Codes, Floats, Shape, maximal
from dpcipher.tables.table import margin

SWEEPS = 3
PASSES = 8  # of `match_goals` over the population: fewer than for rows that are handed out
MISFIT = (0.03, 0.1)  # total variation distance up to which a table counts as met: exact, and very noisy
# Numbers in the largest array of a step, beyond which the population shrinks to its lower bound.
WORKSPACE = 2**24
POPULATION = (16_384, 32_768)  # as large as the data within these bounds; more rows than that gain nothing
FACTOR = 10.0  # the most that one raking step changes a cell by
LEAST = 1e-9  # rows, added to all counts, so that none is zero
TOLERANCE = 1e-5  # total variation distance at which raking stops
_DRIFT = 1e-12  # rows are scaled back to sum to one before single precision can overflow

Barred = tuple[tuple[Axes, Bools], ...]


@dataclass(frozen=True)
class Rows:
    """Largest entropy under the denoised tables, attribute by attribute, over a population of rows: for any number of columns.

    The column `last` is drawn last, so that its step is the model of it given all others: by default the one that the tables were chosen to predict.

    >>> import dpcipher as dc
    >>> schema = dc.Schema.from_domain({"smokes": 2, "ill": 2})
    >>> release = dc.Release.from_tables({("smokes", "ill"): [[480, 20], [260, 240]]}, schema, scale=5.0)
    >>> dc.solve(release, engine=dc.Rows(last="ill")).health.engine
    'rows'
    """

    last: str | None = None
    name: ClassVar[str] = "rows"

    def check(self, schema: Schema) -> None:
        """Refuse a last column that there is not."""
        if self.last is not None and self.last not in schema.attrs:
            hint = did_you_mean(str(self.last), schema.attrs)
            raise ParameterError(f"last ({self.last!r:.60}) must be a column of the schema{hint}")

    def solve(self, problem: Problem) -> tuple[Core, Fit]:
        """The joint, and how well it meets the tables."""
        last = problem.predicted if self.last is None else problem.schema.attrs.index(self.last)
        return solve_denoised(
            problem, lambda targets: solve_rows(targets, last=last, seed=problem.seed, say=problem.say)
        )


@dataclass(frozen=True)
class Equation:
    """The table of a group of earlier attributes (its levels are the rows) with the attribute of the step."""

    group: Axes
    table: Floats

    def rates(self, base: Floats) -> Floats:
        """The conditional probabilities that the table asks for; the base rates where it holds nothing."""
        total = self.table.sum(axis=1, keepdims=True)
        return np.where(total > 1e-12, self.table / np.where(total > 1e-12, total, 1.0), base)


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
    links, used = [], 0
    for position, attribute in enumerate(order):
        say(f"solving: column {position + 1} of {len(order)}")
        barred = _barred(targets, order[: position + 1])
        link = _start(attribute, _base(targets, attribute), equations[attribute], barred)
        link, cells, chances, swept = fit_link(link, codes, targets.shape, sweeps=sweeps)
        if barred and _replace_dead_ends(codes, chances, rng):
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
        links.append(link)
        used = max(used, swept)
    residuals, converged = _misfit(targets, links, codes)
    return Chain(targets.shape, tuple(links)), Fit(converged, residuals, used, order, n_rows)


def _start(attribute: int, base: Floats, equations: Sequence[Equation], barred: Barred) -> Link:
    """The link that raking starts from: the base rates, whatever the row."""
    sizes = tuple(len(equation.table) for equation in equations)
    goals = np.concatenate([np.zeros((0, len(base))), *(equation.rates(base) for equation in equations)])
    groups = tuple(equation.group for equation in equations)
    return Link(attribute, groups, sizes, base, np.zeros_like(goals), goals, barred)


def fit_link(link: Link, codes: Codes, shape: Shape, *, sweeps: int) -> tuple[Link, Cells, Chances, int]:
    """Rake the probabilities of every row to the link's goals, one block of groups after another, at most `sweeps` times round.

    Returned are the link with the factors that this takes, the cells of the rows in its blocks, their probabilities, and the sweeps used.
    """
    cells = link.blocks.cells(codes, shape)
    chances = link.chances(codes, cells, shape)
    factors = np.ones_like(link.factors)
    wanted = link.goals * link.blocks.counts(cells) + LEAST
    used = 0
    for sweep in range(sweeps if link.groups else 0):
        worst = 0.0
        for block, own in zip(link.blocks.blocks, cells, strict=True):
            current = _grouped(own, block.size, chances) + LEAST
            goals = wanted[block.levels]
            worst = max(worst, float(np.abs(block.margins(current) - goals).sum()))
            raked = _raked(block, current, goals, factors[block.levels])
            chances *= (raked / current).astype(chances.dtype).take(own, axis=0)
        scaled(chances)
        if worst / 2 <= TOLERANCE * len(chances):
            break
        used = sweep + 1
    return replace(link, factors=np.log(factors)), cells, chances, used


def _raked(block: Block, current: Floats, wanted: Floats, factors: Floats) -> Floats:
    """The table of a block with its groups' equations met one after another, as if all rows of a cell had the same chances.

    `factors`, changed in place, are multiplied by what it takes, which is within bounds.
    """
    table, levels = current.copy(), np.ones(current.shape[1])
    rows = current @ levels
    for part, shape in block.parts():
        ratio = wanted[part] / block.margins(table, part)
        np.maximum(ratio, 1 / FACTOR, out=ratio)
        np.minimum(ratio, FACTOR, out=ratio)
        factors[part] *= ratio
        cells = table.reshape(*shape, -1, len(levels))
        cells *= ratio[:, None]
        table *= (rows / (table @ levels))[:, None]
    return table


def _grouped(own: NDArray[np.intp], size: int, chances: Chances) -> Floats:
    """The sums over the rows of each cell of a block, of chances that need not sum to one yet."""
    total = row_sums(chances)
    if total.min() < _DRIFT or total.max() > 1 / _DRIFT:
        total = row_sums(scaled(chances))
    scale = np.divide(1, total, out=np.zeros_like(total), where=total > 0)
    return grouped(own, size, chances, scale)


def _replace_dead_ends(codes: Codes, chances: Chances, rng: np.random.Generator) -> bool:
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


def _misfit(targets: Targets, links: Sequence[Link], codes: Codes) -> tuple[dict[Axes, float], bool]:
    """Root mean square misfit of each table of the population, and whether every table is as near as it should be.

    The last attribute of a table has a link that holds the table, so that the counts of all tables come from the links' blocks.
    """
    found: dict[Axes, float] = {}
    met, n_rows = True, len(codes)
    for link in links:
        levels = codes[:, link.attribute]
        counts = link.blocks.counts(link.blocks.cells(codes, targets.shape), levels)
        alone = np.bincount(levels, minlength=len(link.base))[None]
        parts = np.split(counts, link.starts[1:]) if link.groups else []
        for group, count in [((), alone), *zip(link.groups, parts, strict=True)]:
            axes = tuple(sorted((*group, link.attribute)))
            if axes in targets.tables:
                wanted = np.moveaxis(targets.tables[axes], axes.index(link.attribute), -1)
                missed = count / n_rows - wanted.reshape(count.shape)
                found[axes] = math.sqrt(float((missed**2).mean()))
                far = 0.5 * float(np.abs(missed).sum())
                met &= far <= _tolerance(targets.sigma.get(axes, 0.0), missed.size, n_rows)
    return {axes: found[axes] for axes in targets.tables}, met


def _tolerance(sigma: float, cells: int, n_rows: int) -> float:
    """The total variation distance to expect of a table: its own noise, within the bounds of `MISFIT`, and half a row per cell.

    Noisy tables need not have a joint in common, so that none can be nearer to all of them than they are to one another.
    """
    noise = sigma * cells * math.sqrt(2 / math.pi) / 2  # Σ|normal| / 2
    return float(np.clip(noise, *MISFIT)) + min(cells, n_rows) / (2 * n_rows)


def work(shape: Shape, tables: Sequence[Axes], n_rows: int) -> tuple[float, int]:
    """Operations (passes over one number) and peak bytes of a solve: linear in the population, whatever the number of cells.

    Every attribute is drawn, and for every table each row is looked up and raked over the levels of the attribute drawn last; small tables together. A step
    holds two columns of cells for each of its groups, and the probabilities of every row.
    """
    population = _population(Targets(shape, float(n_rows), {}, {}), None)
    visits = sum(4 + 1.2 * sum(shape[axis] for axis in axes) / len(axes) for axes in tables)
    groups = max(sum(last in axes for axes in tables) for last in range(len(shape)))
    return 3.9 * population * (visits + 30 * len(shape)), population * (38 * groups + 9 * max(shape))
