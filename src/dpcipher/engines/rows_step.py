"""One step of the rows engine: the probabilities of one attribute given the rows drawn so far."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from math import prod
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from dpcipher.joint.even_rows import row_sums
from dpcipher.joint.link import Link, incidence, raw_probabilities, scaled
from dpcipher.marginals.arrays import Axes, Bools, Codes, Floats, Shape
from dpcipher.marginals.tables import count_rows

SWEEPS = 3
RIDGE = 0.01  # of the mean weight of an unknown: rows / unknowns
REFINE = 2  # solves with the ridge centred on the last solution
NEGATIVE = 0.05  # negative mass up to which an additive solution is kept: data seldom show more, noise does
UNKNOWNS = 2_048  # in the linear system; weaker groups beyond are left to the raking
FACTOR = 10.0  # the most that one raking step changes a cell by
_DRIFT = 1e-12  # rows are scaled back to sum to one before single precision can overflow
TOLERANCE = 1e-5  # total variation distance at which raking stops

Barred = tuple[tuple[Axes, Bools], ...]
Chances = NDArray[np.floating]


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
    """Counts of the population's rows by pairs of groups: the blocks of the Burt matrix, each counted once."""

    def __init__(self, codes: Codes, shape: Shape) -> None:
        self.codes, self.shape = codes, shape
        self._blocks: dict[tuple[Axes, Axes], Floats] = {}

    def burt(self, groups: Sequence[Axes], sizes: Sequence[int]) -> Floats:
        """The co-occurrence counts of all levels of `groups`, which must have been drawn."""
        stops = np.cumsum([0, *sizes])
        matrix = np.zeros((stops[-1], stops[-1]))
        for i, left in enumerate(groups):
            for j, right in enumerate(groups[: i + 1]):
                block = self._block(left, right) if left <= right else self._block(right, left).T
                matrix[stops[i] : stops[i + 1], stops[j] : stops[j + 1]] = block
                matrix[stops[j] : stops[j + 1], stops[i] : stops[i + 1]] = block.T
        return matrix

    def _block(self, left: Axes, right: Axes) -> Floats:
        if (left, right) not in self._blocks:
            counts = count_rows(self.codes, (*left, *right), self.shape)
            levels = prod(self.shape[axis] for axis in left)
            self._blocks[left, right] = counts.reshape(levels, -1).astype(np.float64)
        return self._blocks[left, right]


def fit_link(
    attribute: int,
    base: Floats,
    equations: Sequence[Equation],
    barred: Barred,
    crossings: Crossings,
    *,
    sweeps: int,
) -> tuple[Link, Chances, float, int]:
    """Solve the linear equations of a step, make the solution a distribution, and rake it to the same equations.

    Returned are the link, its probabilities for every row, the mass that was negative in the linear solution, and the raking sweeps.

    Where little of the additive solution is negative it is kept, with next to nothing in its negative cells: additive conditionals
    come out exact. Otherwise it is mostly noise, and raking starts from the base rates.
    """
    link = _empty_link(attribute, base, equations, barred)
    codes, shape = crossings.codes, crossings.shape
    places = link.places(codes, shape)
    rows = incidence(places, len(link.weights))
    link, negative = _linear(link, rows, crossings)
    chances = raw_probabilities(link, rows)
    link.bar(chances, codes, shape)
    scaled(chances)
    link, used = _rake(link, places, chances, sweeps)
    return link, chances, negative, used


def _empty_link(attribute: int, base: Floats, equations: Sequence[Equation], barred: Barred) -> Link:
    sizes = tuple(len(equation.table) for equation in equations)
    nothing = np.zeros((sum(sizes), len(base)))
    goals = np.concatenate([nothing[:0], *(equation.rates(base) for equation in equations)])
    groups = tuple(equation.group for equation in equations)
    return Link(attribute, groups, sizes, base, nothing, nothing, goals, barred)


def _linear(link: Link, rows: Any, crossings: Crossings) -> tuple[Link, float]:
    """The minimum-norm additive solution, with a ridge centred on the base rates, if it may be kept; and its negative mass."""
    weights = np.zeros_like(link.weights)
    stops = list(takewhile(lambda stop: stop <= UNKNOWNS, np.cumsum(link.sizes)))
    if not stops:
        return link, 0.0
    unknowns = stops[-1]
    burt = crossings.burt(link.groups[: len(stops)], link.sizes[: len(stops)])
    wanted = burt.diagonal()[:, None] * (link.goals[:unknowns] - link.base)
    weights[:unknowns] = _ridge(burt, wanted, RIDGE * rows.shape[0] / unknowns)
    values = rows @ weights.astype(rows.dtype) + link.base.astype(rows.dtype)
    negative = float(np.maximum(-values, 0).sum(dtype=np.float64)) / rows.shape[0]
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


def _rake(link: Link, places: NDArray[np.int64], chances: Chances, sweeps: int) -> tuple[Link, int]:
    """Multiply the chances, in place, by factors that meet one group's equations after another; at most `sweeps` times round."""
    factors = link.factors.copy()
    counts = np.bincount(places.ravel(), minlength=len(factors))[:, None]
    for sweep in range(sweeps):
        worst = 0.0
        for number, (start, size) in enumerate(zip(link.starts, link.sizes, strict=True)):
            own, part = places[:, number] - start, slice(start, start + size)
            wanted = link.goals[part] * counts[part]
            factor, misfit = _factor(_grouped(own, size, chances), wanted)
            factors[part] += np.log(factor)
            chances *= factor.astype(chances.dtype)[own]
            worst = max(worst, misfit / len(places))
        scaled(chances)
        if worst <= TOLERANCE:
            return replace(link, factors=factors), sweep
    return replace(link, factors=factors), sweeps if link.groups else 0


def _factor(current: Floats, wanted: Floats) -> tuple[Floats, float]:
    """What to multiply by, within bounds, and the distance before doing so."""
    ratio = np.divide(wanted, current, out=np.ones_like(wanted), where=current > 1e-9)
    return np.clip(ratio, 1 / FACTOR, FACTOR), float(np.abs(current - wanted).sum() / 2)


def _grouped(own: NDArray[np.int64], size: int, chances: Chances) -> Floats:
    """The sums over the rows of each level of a group, of chances that need not sum to one yet."""
    total = row_sums(chances)
    if total.min() < _DRIFT or total.max() > 1 / _DRIFT:
        total = row_sums(scaled(chances))
    scale = np.divide(1, total, out=np.zeros_like(total), where=total > 0)
    matrix = sp.csc_matrix((scale, own, np.arange(len(own) + 1)), shape=(size, len(own)))
    return np.asarray(matrix @ chances, dtype=np.float64)
