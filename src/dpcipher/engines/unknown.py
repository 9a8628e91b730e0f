"""The answer where nothing is known: every row that the schema allows is equally likely, and the joint says why."""

import math
from collections.abc import Sequence

import numpy as np

from dpcipher.engines.rows import solve_rows
from dpcipher.engines.targets import Targets
from dpcipher.joint.chain import Chain
from dpcipher.joint.dense import DenseTable
from dpcipher.joint.joint import Joint
from dpcipher.joint.network import Network, Node
from dpcipher.joint.report import SolveReport
from dpcipher.marginals.arrays import Axes, Floats
from dpcipher.release.gls import zero_cells
from dpcipher.release.reconcile import Zeros
from dpcipher.release.release import Release

# Up to so many cells independent columns are written out as one table, which also samples more evenly and knows structural zeros.
DENSE_CELLS = 2**16


def unknown(release: Release, *, n_rows: int, why: str, warning: str) -> Joint:
    """The uniform joint over a release's schema, with a warning: its tables gave no other."""
    core = independent(uniform(release.schema.shape), release.schema.zero_masks)
    return Joint(
        release.schema,
        core,
        n_rows,
        SolveReport("uniform", why=why, converged=False, warnings=(warning,)),
        kind=release.kind,
    )


def uniform(shape: Sequence[int]) -> list[Floats]:
    """One-way tables that say nothing."""
    return [np.full(size, 1.0 / size) for size in shape]


def independent(one_way: Sequence[Floats], zeros: Zeros) -> DenseTable | Network | Chain:
    """Independent columns with these probabilities, but for the structural zeros: a large table with zeros becomes a chain."""
    shape = tuple(map(len, one_way))
    if math.prod(shape) <= DENSE_CELLS:
        return DenseTable(_product(one_way, shape, zeros))
    if zeros:
        tables: dict[Axes, Floats] = {(axis,): table for axis, table in enumerate(one_way)}
        return solve_rows(Targets(shape, 1.0, tables, dict.fromkeys(tables, 0.0), zeros))[0]
    return Network(shape, tuple(Node((axis,), (), table) for axis, table in enumerate(one_way)))


def _product(one_way: Sequence[Floats], shape: tuple[int, ...], zeros: Zeros) -> Floats:
    """The product table over the possible cells; even over them where the product leaves none."""
    table = np.ones(())
    for one in one_way:
        table = np.multiply.outer(table, one)
    possible = ~zero_cells(tuple(range(len(shape))), shape, zeros)
    kept = np.where(possible, table, 0.0)
    kept = kept if kept.sum() > 0 else possible.astype(float)
    return np.asarray(kept / kept.sum())
