"""The water level: how much of a budget each table gets, when each gets what is worth one common price."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

STEPS = 64
LEAST = 1e-4  # of the budget: the smallest part that a table can get


def parts(budget: float) -> Floats:
    """The parts of a budget that are weighed: none, and from a ten-thousandth to all of it."""
    return np.concatenate([[0.0], budget * np.geomspace(LEAST, 1.0, STEPS)])


def water_level(risks: Floats, grid: Floats) -> Floats:
    """What each table (row of `risks`, its error at each part of `grid`) should get of the budget, the last value of `grid`.

    At a price, a table takes the part where error plus cost is least, which may be nothing; the price is lowered until the parts
    taken exhaust the budget. For convex risks that is the optimum (a Lagrange multiplier). Pure epsilon, where a little budget
    buys almost nothing, is not convex at the start: there tables enter with a part at once, several perhaps at one price, and the
    best of a few ways to stop in between is taken. No table is ranked or counted by hand: how many get something is what comes out.
    """
    budget = float(grid[-1])
    low, high = 0.0, float(np.max(risks[:, :1] - risks)) / grid[1] * 2
    if high <= 0:
        return np.zeros(len(risks))
    cheapest = high * 1e-15
    while high > max(low, cheapest) * 1.0001:
        price = np.sqrt(max(low, cheapest) * high)
        spent = float(grid[_taken(risks, grid, price)].sum())
        low, high = (price, high) if spent > budget else (low, price)
    below, above = (grid[_taken(risks, grid, price)] for price in (high, max(low, cheapest)))
    ways = [below, _filled(below, above, budget), above, _best(risks, grid)]
    spent_up = [way * (budget / way.sum()) for way in ways if way.any()]
    return min(spent_up, key=lambda way: _total(risks, grid, way))


def _taken(risks: Floats, grid: Floats, price: float) -> NDArray[np.intp]:
    return np.asarray(np.argmin(risks + price * grid, axis=1))


def _filled(below: Floats, above: Floats, budget: float) -> Floats:
    """The parts at the lower price for as many of those that have nothing as the budget allows, in order."""
    entering = np.where(below == 0, above, 0.0)
    return below + np.where(np.cumsum(entering) <= budget - below.sum(), entering, 0.0)


def _best(risks: Floats, grid: Floats) -> Floats:
    """All for the one table that gains most from it."""
    taken = np.zeros(len(risks))
    taken[np.argmax(risks[:, 0] - risks[:, -1])] = grid[-1]
    return taken


def _total(risks: Floats, grid: Floats, way: Floats) -> float:
    """The error that is left, read between the parts of the grid."""
    after = np.clip(np.searchsorted(grid, way), 1, len(grid) - 1)
    between = (way - grid[after - 1]) / (grid[after] - grid[after - 1])
    tables = np.arange(len(risks))
    return float(np.sum(risks[tables, after - 1] * (1 - between) + risks[tables, after] * between))
