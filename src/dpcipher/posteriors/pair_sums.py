"""The pairs of one noisy table: sums over its cells that are not correlated with one another.

All functions of two columns span a space; an orthonormal basis of it, times the noisy cells, says everything that the table says about its pairs. Independent
noise of one variance stays uncorrelated noise of that variance, and a sum over so many cells is nearly normal, whatever the law of one.
"""

from functools import cached_property

import numpy as np

from dpcipher.marginals.arrays import Floats
from dpcipher.posteriors.noise_law import NoiseLaw
from dpcipher.posteriors.targets import Observations

# Directions that impossible cells leave without any cell.
VOID = 1e-9


class PairSums(Observations):
    """What one noisy table says about the interactions of a model, without the rest of it."""

    @cached_property
    def _basis(self) -> Floats:
        """Orthonormal functions over the possible cells: cells by functions."""
        possible = self.model.possible.reshape(-1, 1)
        functions = np.concatenate([np.ones_like(possible), self.model.design], axis=1) * possible
        basis, sizes, _ = np.linalg.svd(functions / np.linalg.norm(functions, axis=0), full_matrices=False)
        return np.asarray(basis[:, sizes > VOID])

    @cached_property
    def _noise(self) -> NoiseLaw:
        return NoiseLaw(self.evidence.tables[0].law.variance, 0.0)

    @cached_property
    def seen(self) -> Floats:
        """The noisy sums."""
        return np.asarray(self.evidence.tables[0].counts.reshape(-1) @ self._basis)

    @cached_property
    def variance(self) -> Floats:
        """The noise variance of every sum."""
        return np.full(len(self.seen), self._noise.variance)

    @cached_property
    def law(self) -> tuple[Floats, Floats]:
        """α and δ of every sum."""
        alpha, delta = self._noise.shape
        return np.full(len(self.seen), alpha), np.full(len(self.seen), delta)

    def sums(self, cells: Floats) -> Floats:
        """The sums of every row of a stack of cells."""
        return np.asarray(cells @ self._basis)

    def back(self, slopes: Floats) -> Floats:
        """The transpose of `sums`."""
        return np.asarray(slopes @ self._basis.T)
