"""One step of the table engine: the conditional of a new attribute, from the tables that link it to earlier ones.

Given the table P(e) of the attributes so far and goals T(t, x), each linking the new attribute x to a set t of earlier ones, the
paper's equations, every one multiplied by its denominator, are

    sum over the rest of e of P(e) z(x|e) = T(t, x)          for every goal and every cell (t, x).

We take the z closest to z0(x) = P(x) in the norm weighted by P(e), with the misfit, weighted by 1/P(t), kept small by a ridge:

    minimise  sum P(e) (z - z0)² + (1/ridge) sum misfit² / P(t).

Its solution is additive, z = z0 + sum over goals of g(t, x). In these unknowns the system matrix holds margins of P(e) only, and it
is the same for every level of x. Constants are reproduced whatever the ridge: the levels of x sum to one and none is special.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from dpcipher.solve.blocks import cells_within, collapse, expand
from dpcipher.solve.targets import Axes, Floats

RIDGE = 1e-9
# Up to this many unknowns per level the system is held as a matrix; beyond, conjugate gradients need only axis sums.
_DENSE_UNKNOWNS = 1500
_CG_STEPS = 500
_CG_TOLERANCE = 1e-12


@dataclass(frozen=True)
class Link:
    """A goal that brings the new attribute together with earlier ones: their axes, and P(new | them), the new one last."""

    axes: Axes
    conditional: Floats


def conditional(earlier: Floats, base: Floats, links: Sequence[Link], *, dense: bool | None = None) -> Floats:
    """The additive z(x|e), x on the last axis; dimensions of length one where z does not depend on an attribute.

    `base` is z0. `dense` forces one of the two solvers; by default the number of unknowns decides.
    """
    links = [link for link in links if link.axes]
    weights = [collapse(earlier, link.axes) for link in links]
    excess = [w[..., None] * (link.conditional - base) for link, w in zip(links, weights, strict=True)]
    scales = [np.sqrt(np.where(w > 0, w, 1.0)) for w in weights]
    right = np.concatenate(
        [(e / s[..., None]).reshape(-1, base.size) for e, s in zip(excess, scales, strict=True)]
        or [base[None] * 0]
    )
    if dense is None:
        dense = len(right) <= _DENSE_UNKNOWNS
    axes = [link.axes for link in links]
    solve = _solve_dense if dense else _solve_free
    unknowns = solve(earlier, axes, scales, right) if links else right
    return _assemble(base, axes, scales, unknowns, earlier.ndim)


def _solve_dense(earlier: Floats, axes: Sequence[Axes], scales: Sequence[Floats], right: Floats) -> Floats:
    """Solve for the scaled unknowns with the system matrix in memory."""
    matrix = _system(earlier, axes, scales)
    matrix[np.diag_indices_from(matrix)] += RIDGE
    return np.asarray(np.linalg.solve(matrix, right), dtype=np.float64)


def _system(earlier: Floats, axes: Sequence[Axes], scales: Sequence[Floats]) -> Floats:
    """The margins of P(e) on every two goals together, scaled to a unit diagonal."""
    sizes = [scale.size for scale in scales]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    matrix = np.zeros((starts[-1], starts[-1]))
    for i, j in combinations_with_replacement(range(len(axes)), 2):
        union = tuple(sorted({*axes[i], *axes[j]}))
        row = starts[i] + cells_within(earlier.shape, axes[i], union)
        column = starts[j] + cells_within(earlier.shape, axes[j], union)
        values = collapse(earlier, union).ravel() / (
            scales[i].ravel()[row - starts[i]] * scales[j].ravel()[column - starts[j]]
        )
        matrix[row, column] = values
        matrix[column, row] = values
    return matrix


def _solve_free(earlier: Floats, axes: Sequence[Axes], scales: Sequence[Floats], right: Floats) -> Floats:
    """Solve for the scaled unknowns by conjugate gradients, all levels of the new attribute side by side."""
    guess, residual = np.zeros_like(right), right.copy()
    direction, size = residual.copy(), np.sum(residual**2, axis=0)
    enough = _CG_TOLERANCE**2 * max(1.0, float(size.max(initial=0.0)))
    for _ in range(_CG_STEPS):
        if size.max(initial=0.0) <= enough:
            break
        image = _apply(earlier, axes, scales, direction)
        length = np.divide(size, np.sum(direction * image, axis=0), out=np.zeros_like(size), where=size > 0)
        guess += length * direction
        residual -= length * image
        size, before = np.sum(residual**2, axis=0), size
        direction = residual + np.divide(size, before, out=np.zeros_like(size), where=before > 0) * direction
    return guess


def _apply(earlier: Floats, axes: Sequence[Axes], scales: Sequence[Floats], unknowns: Floats) -> Floats:
    """The system matrix times `unknowns`: broadcasts, one product with P(e), axis sums."""
    image = RIDGE * unknowns
    for level in range(unknowns.shape[1]):
        column = unknowns[:, level : level + 1]
        spread = _assemble(np.zeros(1), axes, scales, column, earlier.ndim)[..., 0] * earlier
        sums = [(collapse(spread, keep) / scale).ravel() for keep, scale in zip(axes, scales, strict=True)]
        image[:, level] += np.concatenate(sums)
    return image


def _assemble(
    base: Floats, axes: Sequence[Axes], scales: Sequence[Floats], unknowns: Floats, n_axes: int
) -> Floats:
    """Base + the sum of all g(t, x), grown one axis at a time so that small sums are made once."""
    starts = np.cumsum([0, *(scale.size for scale in scales)])
    parts = [
        (keep, (unknowns[start : start + scale.size].reshape(*scale.shape, -1) / scale[..., None]))
        for keep, scale, start in zip(axes, scales, starts[:-1], strict=True)
    ]
    total = base
    for axis in range(n_axes):
        total = total[..., None, :]
        for keep, part in parts:
            if keep[-1] == axis:
                total = total + expand(part, (*keep, axis + 1), axis + 2)
    return total
