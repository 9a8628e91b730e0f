"""Values drawn inside bins: on the grid of their column, and never one of its special values."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcipher.schema.grid import Grid, Places
from dpcipher.schema.inside_bins import Spread
from dpcipher.tables.domain import Floats

Range = tuple[float, float]


@dataclass(frozen=True)
class BinValues:
    """The values of bins between `edges`: those of the grid but for the special ones, or all reals where there is no grid.

    `closed` says that the last edge belongs to the last bin.
    """

    edges: tuple[float, ...]
    closed: bool
    special: tuple[float, ...]
    grid: Grid | None

    def draw(
        self,
        bins: NDArray[np.integer],
        rng: np.random.Generator,
        *,
        masses: Floats | None = None,
        within: Range | None = None,
    ) -> NDArray[Any]:
        """A value in each bin, along the density that the `masses` of all bins suggest; uniform without them.

        `within` keeps to the values from `low` to `high`, both included: each of the bins must have one.
        """
        spread, uniforms = self._spread(masses), rng.random(len(bins))
        if within is not None:
            within = max(within[0], self.edges[0]), min(within[1], self.edges[-1])
        if self.grid is None:
            return self._reals(bins, spread.draw(bins, uniforms, within=within), within)
        first, last, span = self.starts[bins], self.starts[bins + 1] - 1, None
        if within is not None:
            low, high = self._ranks(self.grid, np.array([within[0], np.nextafter(within[1], np.inf)]))
            first, last, span = np.maximum(first, low), np.minimum(last, high - 1), (float(low), float(high))
        ranks = np.floor(spread.draw(bins, uniforms, within=span)).astype(np.int64)
        return self.grid.values(self._places(np.clip(ranks, first, last)))  # rounding may reach the next bin

    def nearest(self, points: Floats) -> NDArray[Any]:
        """The value of each bin that is nearest to a point in it, given in the order of the bins; the higher one of two."""
        if self.grid is None:
            return points
        ranks = self._ranks(self.grid, points)
        above, below = (
            self.grid.values(self._places(np.clip(rank, self.starts[:-1], self.starts[1:] - 1)))
            for rank in (ranks, ranks - 1)
        )
        return np.where(np.abs(above - points) <= np.abs(points - below), above, below)

    def _reals(self, bins: NDArray[np.integer], points: Floats, within: Range | None) -> Floats:
        """The points, kept in their bins and in the range: rounding may reach the next bin's edge."""
        low, high = self.starts[bins], self.starts[bins + 1]
        low, high = low, np.nextafter(high, low)
        if within is not None:
            low, high = np.maximum(low, within[0]), np.minimum(high, within[1])
        return np.clip(points, low, high)

    def _spread(self, masses: Floats | None) -> Spread:
        if masses is None:
            return Spread.uniform(self.starts)
        return Spread.smooth(self.starts, masses, single=0.0 if self.grid is None else 1.0)

    @cached_property
    def starts(self) -> NDArray[Any]:
        """Where each bin begins and the last one ends, as ranks on the grid; the edges themselves where there is none."""
        points = np.asarray(self.edges, dtype=float)
        if self.grid is None:
            return points
        if self.closed:
            points[-1] = np.nextafter(points[-1], np.inf)
        return self._ranks(self.grid, points)

    def _ranks(self, grid: Grid, points: Floats) -> Places:
        """The number of values below each point, counted from zero and without the special ones."""
        places = grid.places(points)
        return np.asarray(places - np.searchsorted(self._taken, places))

    def _places(self, ranks: Places) -> Places:
        """The places on the grid of values with these ranks."""
        return np.asarray(
            ranks + np.searchsorted(self._taken - np.arange(len(self._taken)), ranks, side="right")
        )

    @cached_property
    def _taken(self) -> Places:
        """The places of the special values on the grid, ascending."""
        if self.grid is None or not self.special:
            return np.empty(0, dtype=np.int64)
        points = np.sort(np.asarray(self.special, dtype=float))
        places = self.grid.places(points)
        return np.asarray(places[self.grid.values(places) == points])
