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
    def _cell_variance(self) -> float:
        """The mean variance of the noise on a possible cell."""
        return float(self._table.law.variance[self.model.possible].mean())

    @cached_property
    def _basis(self) -> Floats:
        """Functions over the possible cells, orthonormal in units of the noise: cells by functions."""
        possible = self.model.possible.reshape(-1, 1)
        precise = np.sqrt(self._cell_variance / self._table.law.variance).reshape(-1, 1)
        constant = [] if self._table.query.centred else [np.ones_like(possible)]
        functions = np.concatenate([*constant, self.model.design], axis=1) * (possible * precise)
        basis, sizes, _ = np.linalg.svd(functions / np.linalg.norm(functions, axis=0), full_matrices=False)
        return np.asarray(basis[:, sizes > VOID]) * precise

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
        own = np.full(self._basis.shape[1], self._cell_variance)
        return np.concatenate([own, self._beside.variance])

    @cached_property
    def law(self) -> tuple[Floats, Floats]:
        """α and δ of every sum."""
        own = NoiseLaw.normal(self._basis.shape[1:], self._cell_variance).hyperbolic
        alpha, delta = (np.concatenate(parts) for parts in zip(own, self._beside.law, strict=True))
        return alpha, delta

    def sums(self, cells: Floats) -> Floats:
        """The sums of every row of a stack of cells."""
        return np.asarray(cells @ self._weights)

    def back(self, slopes: Floats) -> Floats:
        """The transpose of `sums`."""
        return np.asarray(slopes @ self._weights.T)
