"""Joints of independent columns, and the uniform joint that stands where tables tell nothing."""

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np

from dpcipher.engines.rows import solve_rows
from dpcipher.engines.targets import Targets
from dpcipher.joint.core import Core
from dpcipher.joint.dense import DenseTable
from dpcipher.joint.joint import Joint, with_rule_cost
from dpcipher.joint.network import Network, Node
from dpcipher.joint.report import SolveReport
from dpcipher.release.reconcile import Reconciled
from dpcipher.release.release import Release
from dpcipher.tables.domain import Axes, Floats, Zero, zero_cells

# Up to so many cells independent columns are written out as one table, which also samples more evenly and knows structural zeros.
DENSE_CELLS = 2**16


def uniform(shape: Sequence[int]) -> list[Floats]:
    """One-way tables that say nothing."""
    return [np.full(size, 1.0 / size) for size in shape]


def independent(one_way: Sequence[Floats], zeros: tuple[Zero, ...]) -> Core:
    """Independent columns with these probabilities, but for the structural zeros: a large table with zeros becomes a chain."""
    shape = tuple(map(len, one_way))
    if math.prod(shape) <= DENSE_CELLS:
        possible = ~zero_cells(tuple(range(len(shape))), shape, zeros)
        kept = np.where(possible, reduce(np.multiply.outer, one_way), 0.0)
        # Even over the possible cells where the product leaves none.
        kept = kept if kept.sum() > 0 else possible.astype(float)
        return DenseTable(np.asarray(kept / kept.sum()))
    if zeros:
        tables: dict[Axes, Floats] = {(axis,): table for axis, table in enumerate(one_way)}
        return solve_rows(Targets(shape, 1.0, tables, dict.fromkeys(tables, 0.0), zeros))[0]
    return Network(shape, tuple(Node((axis,), (), table) for axis, table in enumerate(one_way)))


def unknown(release: Release, *, n_rows: int, why: str, warning: str) -> Joint:
    """The uniform joint over a release's schema, with a warning: its tables gave no other."""
    core = independent(uniform(release.schema.shape), release.schema.zero_masks)
    health = SolveReport("uniform", why=why, converged=False, warnings=(warning,))
    return with_rule_cost(
        Joint(release.schema, core, n_rows, health, kind=release.kind, release=release.origin)
    )


def uniform_when_noise_dominates(release: Release, reconciled: Reconciled) -> Joint:
    """The answer to tables that add up to nothing."""
    why = f"the release's number of rows ({reconciled.total:.0f}) is not above 0"
    cause = (
        "the noise is larger than the counts. A larger epsilon, fewer or smaller tables, or mechanism='gaussian' with a delta would help"
        if reconciled.total_variance > 0
        else "it is about no rows"
    )
    warning = f"nothing is known, because {why}: {cause}. All rows are equally likely here, and sample() draws none unless told how many"
    return unknown(release, n_rows=0, why=why, warning=warning)
