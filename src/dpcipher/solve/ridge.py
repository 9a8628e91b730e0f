"""The ridge regression inside the paper's algorithm: z = (AᵀA + λI)⁻¹ Aᵀ b, for every level of the target at once.

A is never formed when it is large. With P the table of the attributes other than the target, and d_k its sum over attribute k,

    (A z)_k = (sum over k of P z) / d_k           Aᵀ y = P · sum over k of y_k / d_k

are axis sums and broadcasts, all that conjugate gradients need. When it is small the system is solved directly, in whichever of its
two forms, AᵀA + λI or AAᵀ + λI, is smaller: one factorisation for all levels.
"""

from dataclasses import dataclass

import numpy as np

from dpcipher.solve.blocks import cells_within
from dpcipher.solve.targets import Floats

DENSE_SIZE = 800
_STEPS = 2000
_TOLERANCE = 1e-8


@dataclass(frozen=True)
class Family:
    """The equations that sum over one attribute.

    `axis` is its place in P; `inverse` is 1 / d_k with that axis kept at length one, 0 where the equation is left out; `right` is
    b_k, its first axis the levels of the target.
    """

    axis: int
    inverse: Floats
    right: Floats


def solve_ridge(
    rest: Floats, families: list[Family], lam: float, *, dense: bool | None = None
) -> tuple[Floats, bool]:
    """The solution z, first axis the levels of the target, and whether it converged; `dense` forces one of the two ways."""
    n_levels = families[0].right.shape[0]
    if dense is None:
        dense = min(rest.size, sum(family.inverse.size for family in families)) <= DENSE_SIZE
    if dense:
        return _solve_dense(rest, families, lam).reshape(n_levels, *rest.shape), True
    z = np.empty((n_levels, *rest.shape))
    met = [_solve_free(rest, families, lam, level, out=z[level]) for level in range(n_levels)]
    return z, all(met)


def explicit(rest: Floats, families: list[Family]) -> Floats:
    """The matrix A of one level, rows by family, in the order of the cells in memory."""
    every = tuple(range(rest.ndim))
    rows = []
    for family in families:
        keep = tuple(axis for axis in every if axis != family.axis)
        block = np.zeros((family.inverse.size, rest.size))
        block[cells_within(rest.shape, keep, every), np.arange(rest.size)] = (rest * family.inverse).ravel()
        rows.append(block)
    return np.concatenate(rows)


def _solve_dense(rest: Floats, families: list[Family], lam: float) -> Floats:
    matrix = explicit(rest, families)
    right = np.concatenate([family.right.reshape(len(family.right), -1) for family in families], axis=1).T
    if matrix.shape[0] < matrix.shape[1]:
        return (matrix.T @ np.linalg.solve(matrix @ matrix.T + lam * np.eye(len(matrix)), right)).T
    return np.linalg.solve(matrix.T @ matrix + lam * np.eye(rest.size), matrix.T @ right).T


def _solve_free(rest: Floats, families: list[Family], lam: float, level: int, *, out: Floats) -> bool:
    """Conjugate gradients, preconditioned with the diagonal of the matrix; the answer goes to `out`."""
    squares = [family.inverse**2 for family in families]
    diagonal = _spread(rest * rest, squares) + lam
    residual = _spread(rest, [f.inverse * np.expand_dims(f.right[level], f.axis) for f in families])
    out[...] = 0.0
    guide = residual / diagonal
    direction, size = guide.copy(), float(np.vdot(residual, guide))
    enough = _TOLERANCE**2 * size
    for _ in range(_STEPS):
        if size <= enough:
            return True
        image = _normal(rest, families, squares, lam, direction)
        length = size / float(np.vdot(direction, image))
        out += length * direction
        image *= length
        residual -= image
        np.divide(residual, diagonal, out=guide)
        size, before = float(np.vdot(residual, guide)), size
        direction *= size / before
        direction += guide
    return False


def _normal(rest: Floats, families: list[Family], squares: list[Floats], lam: float, z: Floats) -> Floats:
    """(AᵀA + λI) z."""
    weighted = rest * z
    image = _spread(
        rest,
        [np.sum(weighted, axis=f.axis, keepdims=True) * s for f, s in zip(families, squares, strict=True)],
    )
    np.multiply(z, lam, out=weighted)
    image += weighted
    return image


def _spread(rest: Floats, parts: list[Floats]) -> Floats:
    """P times the sum of the parts, each of length one on its own axis."""
    total = np.zeros_like(rest)
    for part in parts:
        total += part
    total *= rest
    return total
