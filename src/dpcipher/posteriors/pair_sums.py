"""The pairs of one noisy table: sums over its cells that are not correlated with one another.

All functions of two columns span a space; an orthonormal basis of it, times the noisy cells, says everything that the table says about its pairs. Independent
noise of one variance stays uncorrelated noise of that variance, and a sum over so many cells is nearly normal, whatever the law of one. A centred table says nothing
of the constant function: the number of rows that was measured beside it does.
"""

from functools import cached_property

import numpy as np

from dpcipher.marginals.arrays import Floats
from dpcipher.posteriors.evidence import Observed
from dpcipher.posteriors.noise_law import NoiseLaw
from dpcipher.posteriors.targets import Observations

# Directions that impossible cells leave without any cell.
VOID = 1e-9


class PairSums(Observations):
    """What one noisy table says about the interactions of a model, without the rest of it."""

    @cached_property
    def _table(self) -> Observed:
        return next(table for table in self.evidence.tables if table.axes)

    @cached_property
    def _rows(self) -> tuple[Observed, ...]:
        """The number of rows, where it was measured beside a centred table."""
        totals = [table for table in self.evidence.tables if not table.axes]
        return tuple(totals) if self._table.centred else ()

    @cached_property
    def _basis(self) -> Floats:
        """Orthonormal functions over the possible cells: cells by functions."""
        possible = self.model.possible.reshape(-1, 1)
        constant = [] if self._table.centred else [np.ones_like(possible)]
        functions = np.concatenate([*constant, self.model.design], axis=1) * possible
        basis, sizes, _ = np.linalg.svd(functions / np.linalg.norm(functions, axis=0), full_matrices=False)
        return np.asarray(basis[:, sizes > VOID])

    @cached_property
    def seen(self) -> Floats:
        """The noisy sums."""
        sums = self._table.counts.reshape(-1) @ self._basis
        return np.concatenate([sums, *(total.counts.reshape(1) for total in self._rows)])

    @cached_property
    def variance(self) -> Floats:
        """The noise variance of every sum."""
        own = np.full(self._basis.shape[1], self._table.law.variance)
        return np.concatenate([own, [total.law.variance for total in self._rows]])

    @cached_property
    def law(self) -> tuple[Floats, Floats]:
        """α and δ of every sum."""
        shapes = np.array([NoiseLaw(variance, 0.0).shape for variance in self.variance])
        return shapes[:, 0], shapes[:, 1]

    def sums(self, cells: Floats) -> Floats:
        """The sums of every row of a stack of cells."""
        totals = [cells.sum(axis=1, keepdims=True)] * len(self._rows)
        return np.concatenate([cells @ self._basis, *totals], axis=1)

    def back(self, slopes: Floats) -> Floats:
        """The transpose of `sums`."""
        own = self._basis.shape[1]
        return np.asarray(slopes[:, :own] @ self._basis.T + slopes[:, own:].sum(axis=1, keepdims=True))
