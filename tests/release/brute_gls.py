"""Generalised least squares over the full joint table, by dense algebra: slow, obvious, and independent of the package."""

from collections.abc import Sequence

import numpy as np
import pytest


def reader(shape: Sequence[int], axes: tuple[int, ...]) -> np.ndarray:
    """The 0/1 matrix that sums a flat joint table into its margin on `axes`."""
    grid = np.indices(shape).reshape(len(shape), -1)
    levels = [shape[axis] for axis in axes]
    code = (
        np.ravel_multi_index([grid[axis] for axis in axes], levels) if axes else np.zeros(grid.shape[1], int)
    )
    matrix = np.zeros((int(np.prod(levels)), grid.shape[1]))
    matrix[code, np.arange(grid.shape[1])] = 1
    return matrix


class BruteGLS:
    """The least-squares joint table (of minimum norm) for `(axes, counts, variance)` observations, variance 0 = exact.

    `coarse` are `(axis, starts, counts, variance)`: runs of levels of one axis. `centred` are observed like tables, less their mean.
    """

    def __init__(self, shape, observed, total=None, zeros=(), coarse=(), centred=()):
        self.shape, self.possible = shape, np.ones(shape, bool)
        for axes, mask in zeros:
            self.possible &= ~mask.reshape([shape[axis] if axis in axes else 1 for axis in range(len(shape))])
        observed = [*observed, *([((), np.asarray(total), 0.0)] if total is not None else [])]
        runs = [self.runs(axis, starts) for axis, starts, _, _ in coarse]
        less = [self.reader(axes) - self.reader(axes).mean(axis=0) for axes, _, _ in centred]
        rows = np.vstack([*(self.reader(axes) for axes, _, _ in observed), *runs, *less])
        observed += [*(one[1:] for one in coarse), *centred]
        y = np.concatenate([np.ravel(counts) for _, counts, _ in observed])
        v = np.concatenate([np.full(np.size(counts), variance) for _, counts, variance in observed])
        seen = rows.any(axis=1)
        self._fit(rows[seen], y[seen], v[seen])
        # The sum of a centred table is no observation; a single cell is none at all.
        self.dof -= sum(np.size(counts) > 1 for _, counts, _ in centred)

    def reader(self, axes):
        """The margin matrix over possible cells."""
        return reader(self.shape, axes)[:, self.possible.ravel()]

    def runs(self, axis, starts):
        """The rows that sum the possible cells of each run of levels."""
        level = np.indices(self.shape)[axis][self.possible]
        stops = [*starts[1:], self.shape[axis]]
        return np.array(
            [(first <= level) & (level < stop) for first, stop in zip(starts, stops, strict=True)], float
        )

    def _fit(self, rows, y, v):
        exact, noisy = v == 0, v > 0
        start, free = np.zeros(rows.shape[1]), np.eye(rows.shape[1])
        if exact.any():
            start = np.linalg.lstsq(rows[exact], y[exact], rcond=None)[0]
            _, values, vectors = np.linalg.svd(rows[exact])
            free = vectors[(values > 1e-9).sum() :].T
        sd = np.sqrt(v[noisy])
        design, target = rows[noisy] @ free / sd[:, None], (y[noisy] - rows[noisy] @ start) / sd
        design[np.abs(design) < 1e-10] = (
            0  # what exact tables fix leaves rounding, which a relative cutoff would keep
        )
        inverse = np.linalg.pinv(design, rcond=1e-10)
        self.joint = start + free @ inverse @ target
        self.covariance = free @ inverse @ inverse.T @ free.T
        self.chi2 = float(((target - design @ inverse @ target) ** 2).sum())
        self.dof = len(target) - np.linalg.matrix_rank(design)

    def table(self, axes):
        """The estimate of a margin, flat."""
        return self.reader(axes) @ self.joint

    def table_covariance(self, axes):
        """The covariance of that estimate."""
        return self.reader(axes) @ self.covariance @ self.reader(axes).T


def assert_same(found, expected, rng, tolerance=1e-9):
    """Every table, every variance, a random linear query, the total and the overall χ² are those of the dense algebra."""
    for axes in found.closure():
        covariance = expected.table_covariance(axes)
        weights = rng.normal(size=found.table(axes).shape)
        np.testing.assert_allclose(found.table(axes).ravel(), expected.table(axes), atol=tolerance)
        np.testing.assert_allclose(found.variance(axes).ravel(), np.diag(covariance), atol=tolerance)
        assert found.mean_variance(axes) == pytest.approx(np.diag(covariance).mean(), abs=tolerance)
        linear = weights.ravel() @ covariance @ weights.ravel()
        assert found.linear_variance(axes, weights) == pytest.approx(linear, abs=tolerance)
    assert found.total == pytest.approx(expected.table(())[0])
    assert found.total_variance == pytest.approx(expected.table_covariance(())[0, 0], abs=tolerance)
    assert found.disagreement.overall.chi2 == pytest.approx(expected.chi2, abs=10 * tolerance)
