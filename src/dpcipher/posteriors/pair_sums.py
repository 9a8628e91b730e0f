"""The pairs of one noisy table: sums over its cells that are not correlated with one another.

All functions of two columns span a space; an orthonormal basis of it, times the noisy cells, says everything that the table says about its pairs. Independent
noise of one variance stays uncorrelated noise of that variance, and a sum over so many cells is nearly normal, whatever the law of one. A centred table says nothing
of the constant function: the number of rows that was measured beside it does. Coarse counts of a column are sums over pairs too.
"""

from dataclasses import replace
from functools import cached_property

import numpy as np

from dpcipher.posteriors.evidence import Observed
from dpcipher.posteriors.noise_law import NoiseLaw
from dpcipher.posteriors.targets import Observations, Tables
from dpcipher.tables.domain import Floats

# Directions that impossible cells leave without any cell.
VOID = 1e-9


class PairSums(Observations):
    """What one noisy table says about the interactions of a model, without the rest of it, and what other counts say beside it."""

    @cached_property
    def _table(self) -> Observed:
        table = self.evidence.one_table
        assert table is not None
        return table

    @cached_property
    def _beside(self) -> Tables:
        """All else that was seen: coarse counts of a column, the number of rows."""
        others = tuple(table for table in self.evidence.tables if table is not self._table)
        return Tables(self.model, replace(self.evidence, tables=others))

    @cached_property
    def _basis(self) -> Floats:
        """Orthonormal functions over the possible cells: cells by functions."""
        possible = self.model.possible.reshape(-1, 1)
        constant = [] if self._table.centred else [np.ones_like(possible)]
        functions = np.concatenate([*constant, self.model.design], axis=1) * possible
        basis, sizes, _ = np.linalg.svd(functions / np.linalg.norm(functions, axis=0), full_matrices=False)
        return np.asarray(basis[:, sizes > VOID])

    @cached_property
    def _weights(self) -> Floats:
        """The weight of every cell in every sum: cells by sums."""
        return np.concatenate([self._basis, self._beside.by_cell], axis=1)

    @cached_property
    def seen(self) -> Floats:
        """The noisy sums."""
        return np.concatenate([self._table.counts.reshape(-1) @ self._basis, self._beside.seen])

    @cached_property
    def variance(self) -> Floats:
        """The noise variance of every sum."""
        own = np.full(self._basis.shape[1], self._table.law.variance)
        return np.concatenate([own, self._beside.variance])

    @cached_property
    def law(self) -> tuple[Floats, Floats]:
        """α and δ of every sum."""
        own, (alpha, delta) = NoiseLaw(self._table.law.variance, 0.0).shape, self._beside.law
        every = [np.full(self._basis.shape[1], part) for part in own]
        return np.concatenate([every[0], alpha]), np.concatenate([every[1], delta])

    def sums(self, cells: Floats) -> Floats:
        """The sums of every row of a stack of cells."""
        return np.asarray(cells @ self._weights)

    def back(self, slopes: Floats) -> Floats:
        """The transpose of `sums`."""
        return np.asarray(slopes @ self._weights.T)
