"""How the budget is divided over tables: each gets the share at which one more unit of budget lowers every risk by the same amount.

The noise that a share pays for, and the error that it leaves in a table after it was denoised, are public numbers. The deviation of a table from its prediction is modelled as normal in every
cell, with a variance proportional to the predicted count and scaled to the (estimated) distance. Noise of variance V leaves of a prior variance A the
posterior variance 1/(1/A + 1/V), and the mean absolute value of a normal error is √(2/π) of its standard deviation. Summed over cells and halved, that is a total
variation distance in counts: a convex, decreasing function of the precision 1/V, from half the distance (not measured) to zero.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpcipher.privacy.budget import Budget
from dpcipher.privacy.terms import Unit
from dpcipher.selection.target import SelectionTarget
from dpcipher.tables.domain import Axes, Floats
from dpcipher.tables.measurement import SMALLEST_SCALE, Noise, NoiseKind

MEAN_SIZE = math.sqrt(2 / math.pi)  # E|X| of a standard normal X
BINS = 48  # classes of cells, by size, of a large table


def interaction_risk(expected: Floats, distance: float, precision: Floats) -> Floats:
    """The expected error of a table at each precision of its noise; `distance` is its L1 distance from `expected`, in counts.

    With no precision it is half the distance.

    >>> interaction_risk(np.full((2, 2), 25.0), 20.0, np.array([0.0]))
    array([10.])
    """
    freedom = math.prod(1 - 1 / levels for levels in expected.shape)
    roots = np.sqrt(np.maximum(expected, 0.0)).ravel()
    if freedom == 0 or distance <= 0 or roots.sum() == 0:
        return np.zeros_like(precision)
    deviations, cells = _binned(roots * (distance / (MEAN_SIZE * roots.sum())))
    # Margins are known better than the table: only the fraction `freedom` of the noise variance falls on the interaction.
    return _error(deviations, cells, precision / freedom)


def one_way_risk(counts: Floats, precision: Floats) -> Floats:
    """The expected error of a one-way table: the prior standard deviation of each count is the count itself."""
    freedom = 1 - 1 / counts.size
    if freedom == 0:
        return np.zeros_like(precision)
    deviations, cells = _binned(np.maximum(counts, 1.0))
    return _error(deviations, cells, precision / freedom)


def _binned(deviations: Floats) -> tuple[Floats, Floats]:
    """Prior deviations and the number of cells that have each; a large table in classes of about equal numbers of cells."""
    if deviations.size <= BINS:
        return deviations, np.ones(deviations.size)
    ordered = np.sort(deviations)
    starts = np.linspace(0, ordered.size, BINS, endpoint=False).astype(int)
    cells = np.diff([*starts, ordered.size]).astype(float)
    return np.add.reduceat(ordered, starts) / cells, cells


def _error(deviations: Floats, cells: Floats, precision: Floats) -> Floats:
    left = deviations / np.sqrt(1 + precision[:, None] * deviations**2)
    return np.asarray(MEAN_SIZE / 2 * (left @ cells))


GUMBEL = math.pi / math.sqrt(6)  # the standard deviation of a standard Gumbel variable, the noise of a choice


@dataclass(frozen=True)
class NoiseModel:
    """Standard deviations of noise, in rows, for shares of a whole budget that is rho or pure epsilon.

    Continuous noise stands for discrete noise, which differs only far below one row. One person changes a table of counts by `unit.l1`
    in L1, and every distance and score by as much. Tables split their share over the `sets`; questions of the selection do not.
    """

    whole: Budget
    unit: Unit
    sets: int = 1

    @property
    def is_zcdp(self) -> bool:
        """Whether shares add up as rho."""
        return self.whole.rho is not None

    def precision(self, share: float) -> float:
        """The inverse variance of the noise on a cell, in each set, of a table that gets a share."""
        part = share / self.sets
        if self.is_zcdp:
            return 2 * self._amount * part / self.unit.l2_squared
        return (self._amount * part / self.unit.l1) ** 2 / 2

    def discrete_precision(self, share: float) -> float:
        """The same of discrete noise, as a session draws it: more where the noise is below one row."""
        scale = 1 / math.sqrt(self.precision(share) * (1 if self.is_zcdp else 2))
        name: NoiseKind = "gaussian" if self.is_zcdp else "laplace"
        return 1 / Noise(name, max(scale, SMALLEST_SCALE[name])).variance

    def distance(self, tables: int, share: float) -> float:
        """The noise on each of so many distances that are read together."""
        if self.is_zcdp:
            return self.unit.l1 * math.sqrt(tables / (2 * self._amount * share))
        return math.sqrt(2) * self.unit.l1 * tables / (self._amount * share)

    def choice(self, tables: int, share: float) -> float:
        """The noise on a score when so many tables are chosen by the exponential mechanism."""
        if self.is_zcdp:
            return GUMBEL * self.unit.l1 * math.sqrt(tables / (2 * self._amount * share))
        return GUMBEL * 2 * self.unit.l1 * tables / (self._amount * share)

    def mean_tvd(self, sizes: Sequence[int], rows: float) -> float:
        """The mean TVD from noise alone if all tables, of so many cells each, shared the whole budget; above 1 where noise outweighs rows."""
        deviation = 1 / math.sqrt(self.precision(1 / len(sizes)))
        mean = deviation * (MEAN_SIZE if self.is_zcdp else math.sqrt(0.5))
        return mean * sum(sizes) / len(sizes) / (2 * rows)

    def triple_error(self, levels: float, share: float) -> float:
        """The error, in rows, that noise leaves in the three-way interaction of columns of so many levels."""
        return MEAN_SIZE / 2 * math.pow(levels * (levels - 1), 1.5) / math.sqrt(self.precision(share))

    @cached_property
    def _amount(self) -> float:
        return float(self.whole.amount)


Risk = Callable[[Floats], Floats]  # the expected error of a table at each precision of its noise

STEPS = 64
LEAST = 1e-4  # of the budget: the smallest share that a table can get
ITERATIONS = 4  # of shares and the precision that pairs add to one-way tables


def share_grid(budget: float) -> Floats:
    """The shares that are compared: none, and from a ten-thousandth to all of the budget."""
    return np.concatenate([[0.0], budget * np.geomspace(LEAST, 1.0, STEPS)])


def allocate_budget(risks: Floats, grid: Floats) -> Floats:
    """The share of each table (row of `risks`, its error at each share of `grid`) of the budget, the last value of `grid`.

    At a price, a table takes the share where error plus cost is least, which may be nothing; the price is lowered until the shares
    exhaust the budget. For convex risks that is the optimum (a Lagrange multiplier). Under pure epsilon, where a little budget
    buys almost nothing, risks are not convex near zero: tables enter with a positive share, several perhaps at one price, and the
    best of a few allocations between the two last prices is taken. The number of tables that get a share is a result, not a parameter.
    """
    budget = float(grid[-1])
    low, high = 0.0, float(np.max(risks[:, :1] - risks)) / grid[1] * 2
    if high <= 0:
        return np.zeros(len(risks))
    cheapest = high * 1e-15
    while high > max(low, cheapest) * 1.0001:
        price = np.sqrt(max(low, cheapest) * high)
        spent = float(grid[_best_at(price, risks, grid)].sum())
        low, high = (price, high) if spent > budget else (low, price)
    below, above = (grid[_best_at(price, risks, grid)] for price in (high, max(low, cheapest)))
    trials = [below, _filled(below, above, budget), above, _single(risks, grid)]
    exhausted = [trial * (budget / trial.sum()) for trial in trials if trial.any()]
    return min(exhausted, key=lambda trial: _total_risk(risks, grid, trial))


def _best_at(price: float, risks: Floats, grid: Floats) -> NDArray[np.intp]:
    return np.asarray(np.argmin(risks + price * grid, axis=1))


def _filled(below: Floats, above: Floats, budget: float) -> Floats:
    """The shares at the higher price, and at the lower price for as many of the other tables as the budget allows, in order."""
    entering = np.where(below == 0, above, 0.0)
    return below + np.where(np.cumsum(entering) <= budget - below.sum(), entering, 0.0)


def _single(risks: Floats, grid: Floats) -> Floats:
    """Everything for the one table that gains most from it."""
    shares = np.zeros(len(risks))
    shares[np.argmax(risks[:, 0] - risks[:, -1])] = grid[-1]
    return shares


def _total_risk(risks: Floats, grid: Floats, shares: Floats) -> float:
    """The sum of risks, interpolated linearly between the shares of the grid."""
    after = np.clip(np.searchsorted(grid, shares), 1, len(grid) - 1)
    between = (shares - grid[after - 1]) / (grid[after] - grid[after - 1])
    tables = np.arange(len(risks))
    return float(np.sum(risks[tables, after - 1] * (1 - between) + risks[tables, after] * between))


def allocate_shares(
    target: SelectionTarget,
    noise: NoiseModel,
    risks: Mapping[Axes, Risk],
    measured: Mapping[Axes, float],
    tables: Sequence[Axes],
    budget: float,
) -> dict[Axes, float]:
    """The share that each table should get of `budget`, a share of the whole, beyond the precision it was `measured` with.

    One-way tables are sums of larger ones. Damped fixed-point iteration (step 1/2): their precision depends on shares, and shares on
    precision.
    """
    grid = share_grid(1.0)
    gained = np.array([noise.precision(share * budget) for share in grid])
    weight = [target.importance(axes) for axes in tables]
    implied, shares = dict.fromkeys(tables, 0.0), dict.fromkeys(tables, 0.0)
    for _ in range(ITERATIONS):
        curves = [
            importance * risks[axes](gained + measured.get(axes, 0.0) + implied[axes])
            for axes, importance in zip(tables, weight, strict=True)
        ]
        allocated = allocate_budget(np.array(curves), grid)
        shares = dict(zip(tables, map(float, allocated), strict=True))
        precision = {
            axes: noise.precision(shares[axes] * budget) + measured.get(axes, 0.0) for axes in tables
        }
        new = _implied_precision(target.shape, precision)
        implied = {axes: (new.get(axes, 0.0) + before) / 2 for axes, before in implied.items()}
    return {axes: share * budget for axes, share in shares.items()}


def _implied_precision(shape: Sequence[int], precision: Mapping[Axes, float]) -> dict[Axes, float]:
    """The precision that tables of two or more columns add to the one-way tables of their columns."""
    added: dict[Axes, float] = {}
    for axes, value in precision.items():
        if len(axes) > 1:
            for axis in axes:
                part = value * shape[axis] / math.prod(shape[a] for a in axes)
                added[(axis,)] = added.get((axis,), 0.0) + part
    return added
