"""How the budget is divided over tables: each gets the share at which one more unit of budget lowers every risk by the same amount."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dpcipher.selection.noise_model import NoiseModel
from dpcipher.selection.target import SelectionTarget
from dpcipher.tables.domain import Axes, Floats

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
