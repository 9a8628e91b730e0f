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
from functools import partial
from itertools import accumulate, combinations

import numpy as np

from dpcipher.engines.raking import collapse
from dpcipher.engines.ridge import conjugate_gradients
from dpcipher.tables.domain import Axes, Floats
from dpcipher.tables.table import broadcast_over, pair_margins

RIDGE = 1e-9
# Up to this many unknowns per level the system is held as a matrix; beyond, conjugate gradients need only axis sums.
_DENSE_UNKNOWNS = 1500
_CG_STEPS = 500
_CG_TOLERANCE = 1e-12


@dataclass(frozen=True)
class LinkedGoal:
    """A goal that brings the new attribute together with earlier ones: their axes, and P(new | them), the new one last."""

    axes: Axes
    conditional: Floats


def conditional(
    earlier: Floats, base: Floats, links: Sequence[LinkedGoal], *, dense: bool | None = None
) -> Floats:
    """The additive z(x|e), x on the last axis; dimensions of length one where z does not depend on an attribute.

    `base` is z0. `dense` forces one of the two solvers; by default the number of unknowns decides.
    """
    links = [link for link in links if link.axes]
    if not links:
        return base.reshape((1,) * earlier.ndim + base.shape)
    system = _System.of(earlier, [link.axes for link in links])
    parts = zip(links, system.weights, strict=True)
    excess = [(w[..., None] * (link.conditional - base)).reshape(-1, base.size) for link, w in parts]
    right = np.concatenate(excess) / system.scale
    if dense is None:
        dense = len(right) <= _DENSE_UNKNOWNS
    return system.assemble(base, system.solve_dense(right) if dense else system.solve_free(right))


@dataclass(frozen=True)
class _System:
    """The earlier table and what the goals see of it: the axes t of each, P(t), and for every unknown the root of its P(t)."""

    earlier: Floats
    axes: Sequence[Axes]
    weights: Sequence[Floats]
    scale: Floats

    @classmethod
    def of(cls, earlier: Floats, axes: Sequence[Axes]) -> "_System":
        weights = [collapse(earlier, keep) for keep in axes]
        flat = np.concatenate([w.reshape(-1, 1) for w in weights])
        return cls(earlier, axes, weights, np.sqrt(np.where(flat > 0, flat, 1.0)))

    def solve_dense(self, right: Floats) -> Floats:
        """Solve for the scaled unknowns with the system matrix in memory."""
        matrix = self._matrix()
        matrix.flat[:: len(matrix) + 1] += RIDGE
        return np.asarray(np.linalg.solve(matrix, right), dtype=np.float64)

    def _matrix(self) -> Floats:
        """The margins of P(e) on every two goals together, scaled to a unit diagonal."""
        matrix = np.diag(np.concatenate([w.ravel() for w in self.weights]))
        parts = self._parts()
        pairs = pair_margins(self.earlier) if all(len(keep) == 1 for keep in self.axes) else {}
        for i, j in combinations(range(len(parts)), 2):
            block, levels = matrix[parts[i], parts[j]], self.weights[i].shape + self.weights[j].shape
            both = (*self.axes[i], *self.axes[j])
            union = tuple(sorted(set(both)))
            # A view of the cells where both goals have the same levels of the attributes they share; the others stay 0.
            view = np.einsum(block.reshape(levels), [union.index(axis) for axis in both], range(len(union)))
            view[...] = pairs[union] if pairs else collapse(self.earlier, union)  # type: ignore[index]
            matrix[parts[j], parts[i]] = block.T
        return np.asarray(matrix / (self.scale * self.scale.T))

    def _parts(self) -> list[slice]:
        """Where the unknowns of each goal are."""
        ends = accumulate(w.size for w in self.weights)
        return [slice(end - w.size, end) for end, w in zip(ends, self.weights, strict=True)]

    def solve_free(self, right: Floats) -> Floats:
        """Solve for the scaled unknowns by conjugate gradients, one level of the new attribute after another."""
        enough = _CG_TOLERANCE * max(1.0, float(np.linalg.norm(right, axis=0).max(initial=0.0)))
        solve = partial(conjugate_gradients, self._apply, steps=_CG_STEPS, relative=0.0, absolute=enough)
        return np.stack([solve(right[:, level])[0] for level in range(right.shape[1])], axis=1)

    def _apply(self, unknowns: Floats) -> Floats:
        """The system matrix times the unknowns of one level: broadcasts, one product with P(e), axis sums."""
        spread = self.assemble(np.zeros(1), unknowns[:, None])[..., 0] * self.earlier
        sums = np.concatenate([collapse(spread, keep).ravel() for keep in self.axes])
        return np.asarray(RIDGE * unknowns + sums / self.scale[:, 0])

    def assemble(self, base: Floats, unknowns: Floats) -> Floats:
        """Base + the sum of all g(t, x), grown one axis at a time so that small sums are made once."""
        flat = unknowns / self.scale
        places = zip(self._parts(), self.weights, strict=True)
        parts = [flat[place].reshape(*weight.shape, -1) for place, weight in places]
        total = base
        for axis in range(self.earlier.ndim):
            total = total[..., None, :]
            for keep, part in zip(self.axes, parts, strict=True):
                if keep[-1] == axis:
                    total = total + broadcast_over(part, (*keep, axis + 1), range(axis + 2))
        return total
