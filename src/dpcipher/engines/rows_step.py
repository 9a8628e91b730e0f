"""One step of the rows engine: the probabilities of one attribute given the rows drawn so far."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, takewhile
from math import prod

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from dpcipher.joint.blocks import Block, Blocks, Cells, Chances, grouped
from dpcipher.joint.even_rows import row_sums
from dpcipher.joint.link import Link, scaled
from dpcipher.tables.domain import Axes, Bools, Codes, Floats, Shape
from dpcipher.tables.table import count_rows

SWEEPS = 3
RIDGE = 0.01  # of the mean weight of an unknown: rows / unknowns
REFINE = 2  # solves with the ridge centred on the last solution
NEGATIVE = 0.05  # negative mass up to which an additive solution is kept: data seldom show more, noise does
UNKNOWNS = 2_048  # in the linear system; weaker groups beyond are left to the raking
FACTOR = 10.0  # the most that one raking step changes a cell by
LEAST = 1e-9  # rows, added to all counts, so that none is zero
_DRIFT = 1e-12  # rows are scaled back to sum to one before single precision can overflow
MOST_LEVELS = 8_192  # of all attributes, of which every two are counted in one matrix
TOLERANCE = 1e-5  # total variation distance at which raking stops

Barred = tuple[tuple[Axes, Bools], ...]


@dataclass(frozen=True)
class Equation:
    """The table of a group of earlier attributes (its levels are the rows) with the attribute of the step."""

    group: Axes
    table: Floats

    def rates(self, base: Floats) -> Floats:
        """The conditional probabilities that the table asks for; the base rates where it holds nothing."""
        total = self.table.sum(axis=1, keepdims=True)
        return np.where(total > 1e-12, self.table / np.where(total > 1e-12, total, 1.0), base)


class Crossings:
    """Counts of the population's rows by pairs of groups: the blocks of the Burt matrix, each counted once.

    Pairs of attributes are counted as they are drawn (`add`), all in one matrix, unless they have too many levels for it.
    """

    def __init__(self, codes: Codes, shape: Shape) -> None:
        self.codes, self.shape = codes, shape
        self._blocks: dict[tuple[Axes, Axes], Floats] = {}
        self._starts = np.cumsum([0, *shape])
        self._drawn: list[int] = []
        size = sum(shape) if sum(shape) <= MOST_LEVELS else 0
        self._pairs = np.zeros((size, size), np.float32)

    def add(self, attribute: int) -> None:
        """Count an attribute that has just been drawn with those before it."""
        if not self._pairs.size:
            return
        self._drawn.append(attribute)
        groups = [(axis,) for axis in self._drawn]
        blocks = Blocks(groups, [self.shape[axis] for axis in self._drawn], self.shape[attribute])
        counts = blocks.counts(blocks.cells(self.codes, self.shape), self.codes[:, attribute])
        rows, own = self._places(self._drawn), self._places([attribute])
        self._pairs[np.ix_(rows, own)] = counts
        self._pairs[np.ix_(own, rows)] = counts.T

    def _places(self, axes: Sequence[int]) -> NDArray[np.intp]:
        """Where the levels of attributes are in the matrix of pairs."""
        return np.concatenate([np.arange(self._starts[axis], self._starts[axis + 1]) for axis in axes])

    def burt(self, groups: Sequence[Axes], sizes: Sequence[int]) -> Floats:
        """The co-occurrence counts of all levels of `groups`, which must have been drawn."""
        if all(len(group) == 1 for group in groups) and self._counted(axis for (axis,) in groups):
            places = self._places([axis for (axis,) in groups])
            return self._pairs[np.ix_(places, places)].astype(np.float64)
        stops = np.cumsum([0, *sizes])
        matrix = np.zeros((stops[-1], stops[-1]))
        for i, left in enumerate(groups):
            for j, right in enumerate(groups[: i + 1]):
                block = self._block(left, right) if left <= right else self._block(right, left).T
                matrix[stops[i] : stops[i + 1], stops[j] : stops[j + 1]] = block
                matrix[stops[j] : stops[j + 1], stops[i] : stops[i + 1]] = block.T
        return matrix

    def _counted(self, axes: Iterable[int]) -> bool:
        """Whether all pairs of these attributes are in the matrix."""
        return set(axes) <= set(self._drawn)

    def _block(self, left: Axes, right: Axes) -> Floats:
        if (left, right) not in self._blocks:
            counts = count_rows(self.codes, (*left, *right), self.shape)
            levels = prod(self.shape[axis] for axis in left)
            self._blocks[left, right] = counts.reshape(levels, -1).astype(np.float64)
        return self._blocks[left, right]

    def tables(self, sets: Sequence[Axes]) -> Floats:
        """The counts of the population in tables of one shape, one after another."""
        if len(sets[0]) != 2 or not self._counted(chain.from_iterable(sets)):
            return np.stack([count_rows(self.codes, axes, self.shape) for axes in sets]).astype(np.float64)
        rows, columns = (
            self._starts[[axes[side] for axes in sets], None] + np.arange(self.shape[sets[0][side]])
            for side in (0, 1)
        )
        return self._pairs[rows[:, :, None], columns[:, None, :]].astype(np.float64)


def fit_link(
    attribute: int,
    base: Floats,
    equations: Sequence[Equation],
    barred: Barred,
    crossings: Crossings,
    *,
    sweeps: int,
) -> tuple[Link, Cells, Chances, float, int]:
    """Solve the linear equations of a step, make the solution a distribution, and rake it to the same equations.

    Returned are the link, the cells and the probabilities of every row, the mass that was negative in the linear solution, and the raking sweeps.

    Where little of the additive solution is negative it is kept, with next to nothing in its negative cells: additive conditionals
    come out exact. Otherwise it is mostly noise, and raking starts from the base rates.
    """
    link = _empty_link(attribute, base, equations, barred)
    cells = link.blocks.cells(crossings.codes, crossings.shape)
    link, negative = _linear(link, cells, crossings)
    chances = link.raw_probabilities(cells)
    link.bar(chances, crossings.codes, crossings.shape)
    scaled(chances)
    link, used = _rake(link, cells, chances, sweeps)
    return link, cells, chances, negative, used


def _empty_link(attribute: int, base: Floats, equations: Sequence[Equation], barred: Barred) -> Link:
    sizes = tuple(len(equation.table) for equation in equations)
    nothing = np.zeros((sum(sizes), len(base)))
    goals = np.concatenate([nothing[:0], *(equation.rates(base) for equation in equations)])
    groups = tuple(equation.group for equation in equations)
    return Link(attribute, groups, sizes, base, nothing, nothing, goals, barred)


def _linear(link: Link, cells: Cells, crossings: Crossings) -> tuple[Link, float]:
    """The minimum-norm additive solution, with a ridge centred on the base rates, if it may be kept; and its negative mass."""
    weights = np.zeros_like(link.weights)
    stops = list(takewhile(lambda stop: stop <= UNKNOWNS, np.cumsum(link.sizes)))
    if not stops:
        return link, 0.0
    unknowns = stops[-1]
    burt = crossings.burt(link.groups[: len(stops)], link.sizes[: len(stops)])
    wanted = burt.diagonal()[:, None] * (link.goals[:unknowns] - link.base)
    weights[:unknowns] = _ridge(burt, wanted, RIDGE * cells.shape[1] / unknowns)
    values = link.blocks.looked_up(cells, weights, np.float32)
    values += link.base.astype(np.float32)
    negative = -float(np.minimum(values, 0, out=values).sum(dtype=np.float64)) / cells.shape[1]
    return (replace(link, weights=weights) if negative <= NEGATIVE else link), negative


def _ridge(matrix: Floats, wanted: Floats, ridge: float) -> Floats:
    """Solve the singular system by a ridge that is centred on nothing first, then on the last solution (iterated Tikhonov).

    What the equations determine well comes out exact; a direction in which columns all but repeat one another stays small,
    where a weaker ridge would give huge weights that cancel.
    """
    matrix[np.diag_indices(len(matrix))] += ridge
    factor = scipy.linalg.cho_factor(matrix, lower=True, overwrite_a=True)
    solution = np.zeros_like(wanted)
    for _ in range(REFINE):
        solution = scipy.linalg.cho_solve(factor, wanted + ridge * solution)
    return solution


def _rake(link: Link, cells: Cells, chances: Chances, sweeps: int) -> tuple[Link, int]:
    """Multiply the chances, in place, by factors that meet the equations of one block after another; at most `sweeps` times round."""
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
    return replace(link, factors=link.factors + np.log(factors)), used


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
