"""What an engine is asked to reproduce: non-negative tables that agree with one another."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcipher.marginals.arrays import Axes, Floats
from dpcipher.marginals.tables import margin


@dataclass(frozen=True)
class Targets:
    """Probabilities to reproduce, after reconciling and denoising.

    `tables` holds every maximal set of the workload and every one-way table; each is non-negative, sums to one and agrees with
    the others on what they share. `sigma` is the standard deviation of a cell's noise (0 = exact), on the same scale.
    `zeros` are the structural zeros: `(axes, mask)` with True where no row can be.
    """

    shape: tuple[int, ...]
    total: float
    tables: Mapping[Axes, Floats]
    sigma: Mapping[Axes, float]
    zeros: tuple[tuple[Axes, NDArray[np.bool_]], ...] = ()

    def table(self, axes: Axes) -> Floats | None:
        """The table of `axes`, summed out of a table that covers it; None outside closure(Q)."""
        if axes in self.tables:
            return self.tables[axes]
        covering = [known for known in self.tables if set(axes) <= set(known)]
        if not covering:
            return None
        smallest = min(covering, key=lambda known: (self.tables[known].size, known))
        return margin(self.tables[smallest], smallest, axes)
