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
    taken exhaust the budget. For convex risks that is the optimum (a Lagrange multiplier); pure epsilon, where a little budget
    buys almost nothing, is not convex at the start, and there it skips the parts in between. No table is ranked or counted
    by hand: how many get something is what comes out.
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
    taken = grid[_taken(risks, grid, high)]
    return np.asarray(taken * (budget / taken.sum()) if taken.any() else _best(risks, grid))


def _taken(risks: Floats, grid: Floats, price: float) -> NDArray[np.intp]:
    return np.asarray(np.argmin(risks + price * grid, axis=1))


def _best(risks: Floats, grid: Floats) -> Floats:
    """All for the one table that gains most from it."""
    taken = np.zeros(len(risks))
    taken[np.argmax(risks[:, 0] - risks[:, -1])] = grid[-1]
    return taken
