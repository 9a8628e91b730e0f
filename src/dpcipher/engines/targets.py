"""What an engine is asked to reproduce, non-negative tables that agree with one another, and the order in which it adds attributes.

Parents come first for every tree-shaped dependence. The rule looks at released values only. Each pair in closure(Q) weighs its mutual
information; the order is the one in which Prim's algorithm visits the maximum spanning tree of those weights, starting from the
attribute with the most information about the others. Where the dependence is a tree, that spanning tree is the tree (Chow & Liu 1968),
and Prim's algorithm reaches every attribute over the edge to its only neighbour among those already visited: its parent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from scipy.special import rel_entr

from dpcipher.tables.domain import Axes, Bools, Floats, Shape
from dpcipher.tables.query import Query
from dpcipher.tables.table import margin, stacked

# Mutual information is compared to this many decimals: permuting levels moves the last bits of a sum, and a tie must stay one.
_DECIMALS = 10


@dataclass(frozen=True)
class Targets:
    """Probabilities to reproduce, after reconciling and denoising.

    `tables` holds every maximal set of the workload and every one-way table; each is non-negative, sums to one and agrees with
    the others on what they share. `sigma` is the standard deviation of a cell's noise (0 = exact), on the same scale.
    `zeros` are the structural zeros: `(axes, mask)` with True where no row can be. `refined` are the tables that were counted in groups of levels, and how.
    """

    shape: Shape
    total: float
    tables: Mapping[Axes, Floats]
    sigma: Mapping[Axes, float]
    zeros: tuple[tuple[Axes, Bools], ...] = ()
    refined: Mapping[Axes, Query] = field(default_factory=dict)

    def table(self, axes: Axes) -> Floats | None:
        """The table of `axes`, summed out of a table that covers it; None outside closure(Q)."""
        if axes in self.tables:
            return self.tables[axes]
        covering = [known for known in self.tables if set(axes) <= set(known)]
        if not covering:
            return None
        smallest = min(covering, key=lambda known: (self.tables[known].size, known))
        return margin(self.tables[smallest], smallest, axes)


@dataclass(frozen=True)
class Fit:
    """How well an engine met its targets, and what it took.

    `converged` says that every table is as near as the engine asks; `residuals` maps each table to the root mean square misfit of its
    cells, in probability; `sweeps` counts raking sweeps, those of the last step (table) or the most of any (rows); `order` is that of
    the attributes; `population` the number of rows it was fitted over; `negative_mass` the probability that the paper's clipping removed.
    """

    converged: bool
    residuals: Mapping[Axes, float] = field(default_factory=dict)
    sweeps: int = 0
    order: tuple[int, ...] = ()
    population: int = 0
    notes: tuple[str, ...] = ()
    negative_mass: float = 0.0


def order_attributes(targets: Targets, weights: Floats | None = None) -> tuple[int, ...]:
    """The attributes of `targets`, each one after the attribute it depends on most; `weights` are its `pair_information`, where that is known.

    Ties go to the attribute with more information in total, then to more levels, then to the lower number.

    >>> copy = np.array([[0.5, 0.0], [0.0, 0.5]])
    >>> order_attributes(Targets((2, 2, 2), 10.0, {(0, 1): copy, (1, 2): copy}, {}))
    (1, 0, 2)
    """
    return tuple(spanning_tree(pair_information(targets) if weights is None else weights, targets.shape))


def moved_last(order: tuple[int, ...], last: int | None) -> tuple[int, ...]:
    """The order with one attribute, if any, moved behind all others.

    >>> moved_last((1, 0, 2), 0)
    (1, 2, 0)
    """
    return order if last is None else (*(axis for axis in order if axis != last), last)


def pair_information(targets: Targets) -> Floats:
    """The symmetric matrix of mutual information in nats; 0 for a pair outside closure(Q)."""
    return information(_pairs(targets), len(targets.shape))


def information(pairs: Mapping[Axes, Floats], n_attrs: int) -> Floats:
    """The symmetric matrix of mutual information, from tables of probabilities; 0 for a pair that has none."""
    weights = np.zeros((n_attrs, n_attrs))
    for sets, tables in stacked(pairs):
        left, right = np.array(sets).T
        weights[left, right] = weights[right, left] = mutual_information(tables)
    return np.round(weights, _DECIMALS)


def spanning_tree(weights: Floats, shape: Sequence[int]) -> dict[int, int | None]:
    """Each attribute with the one that Prim's algorithm reaches it from, in the order of the visits.

    An attribute that no earlier one has information about is reached from none.

    >>> spanning_tree(np.array([[0.0, 0.7, 0.0], [0.7, 0.0, 0.2], [0.0, 0.2, 0.0]]), (2, 2, 2))
    {1: None, 0: 1, 2: 1}
    """
    totals = np.round(weights.sum(axis=1), _DECIMALS)
    rank = sorted(range(len(shape)), key=lambda axis: (-totals[axis], -shape[axis], axis))
    ranked = weights[np.ix_(rank, rank)]
    nearest, origin = np.zeros(len(rank)), np.zeros(len(rank), np.int64)
    left = np.ones(len(rank), bool)
    parents: dict[int, int | None] = {}
    for _ in rank:
        best = int(np.where(left, nearest, -1.0).argmax())  # the first in rank of equals
        parents[rank[best]] = rank[origin[best]] if nearest[best] > 0 else None
        left[best] = False
        closer = left & (ranked[best] > nearest)
        nearest[closer], origin[closer] = ranked[best][closer], best
    return parents


def mutual_information(tables: Floats) -> Floats:
    """The mutual information, in nats, of two-way tables of probabilities, in the last two dimensions.

    >>> mutual_information(np.array([[0.5, 0.0], [0.0, 0.5]])).round(6).tolist()
    0.693147
    """
    tables = np.maximum(tables, 0.0)  # rounding may have left less
    product = tables.sum(axis=-1, keepdims=True) * tables.sum(axis=-2, keepdims=True)
    return np.asarray(rel_entr(tables, product).sum(axis=(-2, -1)))


def _pairs(targets: Targets) -> dict[Axes, Floats]:
    """One table for every pair in closure(Q), from the smallest table that covers it."""
    pairs: dict[Axes, Floats] = {}
    for axes in sorted(targets.tables, key=lambda axes: (targets.tables[axes].size, axes)):
        for pair in combinations(axes, 2):
            if pair not in pairs:
                pairs[pair] = margin(targets.tables[axes], axes, pair)
    return pairs
