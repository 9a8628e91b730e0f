"""Least squares of measurements over the full joint table, by dense algebra: slow, obvious, and independent of the package's own."""

from collections.abc import Sequence
from functools import reduce

import numpy as np

from dpcipher.tables.domain import Domain
from dpcipher.tables.measurement import Measurement
from dpcipher.tables.query import Combination, Query


class BruteLeastSquares:
    """The least-squares joint table of minimum norm, and its covariance."""

    def __init__(self, domain: Domain, measured: Sequence[Measurement]) -> None:
        self.domain = domain
        everything = tuple(range(len(domain.sizes)))
        self.possible = domain.possible(everything).ravel()
        rows, right, variances = [], [], []
        for one in measured:
            matrix, values, variance = self._observed(one)
            rows.append(matrix)
            right.append(values)
            variances.append(np.full(len(values), variance))
        matrix, right, v = np.vstack(rows), np.concatenate(right), np.concatenate(variances)
        seen = matrix.any(axis=1)
        self._solve(matrix[seen], right[seen], v[seen])

    def reader(self, query: Query | Combination) -> np.ndarray:
        """The matrix that answers a query from the possible cells of the joint table."""
        if isinstance(query, Combination):
            return np.asarray(sum(matrix @ self.reader(one) for one, matrix in query.terms))
        forms = []
        for axis, size in enumerate(self.domain.sizes):
            form = np.ones((1, size))
            if axis in query.axes:
                groups = query.forms[query.axes.index(axis)]
                form = np.eye(size) if groups is None else np.eye(groups.size)[:, list(groups.of)]
            forms.append(form)
        return reduce(np.kron, forms)[:, self.possible]

    def _observed(self, one: Measurement) -> tuple[np.ndarray, np.ndarray, float]:
        """Orthonormal combinations of the answers that say something, with noise of one variance."""
        values, variance = one.in_rows()
        matrix = self.reader(one.query)
        if isinstance(one.query, Combination):
            return matrix, values.ravel(), variance
        shape, keep = values.shape, np.eye(1)
        if one.query.centred:
            keep = np.linalg.qr(np.vstack([np.ones(values.size), np.eye(values.size)[1:]]).T)[0].T[1:]
        else:
            for axis, n in zip(one.query.axes, shape, strict=True):
                turn = np.linalg.qr(np.vstack([np.ones(n), np.eye(n)[1:]]).T)[0].T
                keep = np.kron(keep, turn[1:] if axis in one.query.contrasts else np.eye(n))
        if not one.query.centred and not one.query.contrasts:
            keep = np.eye(values.size)
        return keep @ matrix, keep @ values.ravel(), variance

    def _solve(self, rows: np.ndarray, right: np.ndarray, v: np.ndarray) -> None:
        exact, noisy = v == 0, v > 0
        start, free = np.zeros(rows.shape[1]), np.eye(rows.shape[1])
        if exact.any():
            start = np.linalg.lstsq(rows[exact], right[exact], rcond=None)[0]
            _, values, vectors = np.linalg.svd(rows[exact])
            free = vectors[(values > 1e-9).sum() :].T
        sd = np.sqrt(v[noisy])
        design = rows[noisy] @ free / sd[:, None]
        target = (right[noisy] - rows[noisy] @ start) / sd
        design[np.abs(design) < 1e-10] = 0
        inverse = np.linalg.pinv(design, rcond=1e-10)
        self.joint = start + free @ inverse @ target
        self.covariance = free @ inverse @ inverse.T @ free.T
        self.chi2 = float(((target - design @ inverse @ target) ** 2).sum())
        self.dof = len(target) - int(np.linalg.matrix_rank(design))

    def table(self, query: Query) -> np.ndarray:
        """The estimate of a table, flat."""
        return np.asarray(self.reader(query) @ self.joint)

    def table_covariance(self, query: Query) -> np.ndarray:
        """The covariance of that estimate."""
        reader = self.reader(query)
        return np.asarray(reader @ self.covariance @ reader.T)
