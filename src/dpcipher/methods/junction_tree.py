"""The junction tree of Chen, Xiao, Zhang and Xu (2015), with a selection step that is private.

Pairs of columns that depend on each other become the edges of a graph; its triangulated cliques, merged where that lowers the noise, are measured,
made consistent and multiplied along a junction tree. The source finds the edges with a variant of the sparse vector technique that Lyu, Su and Li (2017)
show not to be private; here the dependence of every pair is measured with noise, which costs what it says, and everything after is post-processing.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpcipher.curator.count import CountSource
from dpcipher.curator.event import Sensitivity
from dpcipher.curator.session import Session
from dpcipher.errors import SizeError
from dpcipher.joint.joint import Joint
from dpcipher.joint.network import Network, Node, conditional
from dpcipher.marginals.arrays import Axes
from dpcipher.methods.base import Synthesizer, check_between
from dpcipher.methods.outcome import (
    ROWS_SHARE,
    Total,
    drowned,
    first_total,
    network_joint,
    no_total,
)
from dpcipher.methods.scores import GRID, dependence
from dpcipher.release.reconcile import Reconciled
from dpcipher.release.release import Release
from dpcipher.schema.schema import Schema

Edge = tuple[int, int]


def cliques(columns: int, edges: Iterable[Edge]) -> list[Axes]:
    """The maximal cliques of the graph after a min-fill triangulation; a column without edges is a clique of its own."""
    near: dict[int, set[int]] = {axis: set() for axis in range(columns)}
    for one, other in edges:
        near[one].add(other)
        near[other].add(one)
    fill = {axis: _fill(near, axis) for axis in near}
    found: list[set[int]] = []
    while near:
        # The column whose removal adds the fewest edges, the smallest number first: a rule that looks at the graph alone.
        axis = min(near, key=lambda a: (fill[a], len(near[a]), a))
        clique = {axis, *near[axis]}
        # Whatever lies inside another clique lies inside one that was found before it.
        if not any(clique <= other for other in found):
            found.append(clique)
        for other in _eliminate(near, axis):
            fill[other] = _fill(near, other)
    return [tuple(sorted(clique)) for clique in found]


def _eliminate(near: dict[int, set[int]], axis: int) -> set[int]:
    """Join the neighbours of a column and take it away; returns the columns whose surroundings changed."""
    around = near.pop(axis)
    for one in around:
        near[one] |= around - {one}
        near[one].discard(axis)
    return around.union(*(near[one] for one in around))


def _fill(near: dict[int, set[int]], axis: int) -> int:
    """How many edges are missing between the neighbours of a column."""
    around = near[axis]
    return sum(len(around) - 1 - len(near[one] & around) for one in around) // 2


@dataclass(frozen=True)
class Cluster:
    """A group of columns in a junction tree, in an order where `given` lies inside one earlier cluster."""

    axes: Axes
    given: Axes


def junction_tree(groups: Sequence[Axes]) -> list[Cluster]:
    """Order groups by a maximum spanning tree over what they share, which has the running intersection property for cliques.

    Prim's algorithm: every group that has no place yet remembers the most it shares with one that has.
    """
    first, *others = sorted(groups, key=lambda axes: (-len(axes), axes))
    placed, newest = [Cluster(first, ())], first
    shared: dict[Axes, Axes] = dict.fromkeys(others, ())
    while shared:
        for axes, most in shared.items():
            common = tuple(axis for axis in axes if axis in newest)
            if len(common) > len(most):
                shared[axes] = common
        newest = min(shared, key=lambda axes: (-len(shared[axes]), axes))
        placed.append(Cluster(newest, shared.pop(newest)))
    return placed


def merged(
    groups: Sequence[Axes], shape: Sequence[int], cost: Callable[[Sequence[Axes]], float], most: float
) -> list[Axes]:
    """Merge neighbours in the junction tree while that lowers `cost` and no group has more than `most` cells (greedy)."""
    current = list(groups)
    while True:
        options = [option for option in _contractions(current) if _largest(option, shape) <= most]
        best = min(options, key=cost, default=current)
        if cost(best) >= cost(current):
            return current
        current = list(best)


def _contractions(groups: Sequence[Axes]) -> list[list[Axes]]:
    """Every way to merge two clusters that are neighbours in the tree."""
    tree = junction_tree(groups)
    options = []
    for place, cluster in enumerate(tree):
        for earlier in tree[:place]:
            if cluster.given and set(cluster.given) <= set(earlier.axes):
                union = tuple(sorted({*cluster.axes, *earlier.axes}))
                options.append(
                    [axes for axes in groups if axes not in (cluster.axes, earlier.axes)] + [union]
                )
                break
    return options


def _largest(groups: Sequence[Axes], shape: Sequence[int]) -> int:
    return max(math.prod(shape[axis] for axis in axes) for axes in groups)


MAX_COLUMNS = 200
MAX_PAIR_CELLS = 2**24
# No cluster above this, whatever the noise allows.
MAX_CLUSTER_CELLS = 2**22


@dataclass(frozen=True)
class JunctionTree(Synthesizer):
    """Cliques of a private dependency graph.

    `beta` is the share that finds the graph. A pair becomes an edge if its noisy dependence exceeds what Cramér's V of `strength` allows, and
    two standard deviations of the noise. Clusters stay θ-useful: a mean count of `theta` noise scales a cell.

    >>> import pandas as pd
    >>> import dpcipher as dc
    >>> schema = dc.Schema.from_domain({"smokes": 2, "ill": 2})
    >>> people = pd.DataFrame({"smokes": [0, 0, 1, 1] * 250, "ill": [0, 0, 0, 1] * 250})
    >>> fitted = dc.JunctionTree(epsilon=1.0, unit="add-remove").fit(people, schema)
    >>> fitted.sample(100, seed=1).shape
    (100, 2)
    """

    title: ClassVar[str] = "junction tree"

    beta: float = 0.3
    strength: float = 0.2
    theta: float = 4.0

    def _check(self) -> None:
        check_between("beta", self.beta, 0, 1, 0.3)
        check_between("strength", self.strength, 0, 1, 0.2)
        check_between("theta", self.theta, 0, math.inf, 4.0)

    def check_schema(self, schema: Schema) -> None:
        """The graph has an edge for every pair of columns to be thought of."""
        if len(schema.attrs) > MAX_COLUMNS:
            raise SizeError(
                f"JunctionTree takes at most {MAX_COLUMNS} columns, not {len(schema.attrs)}; use Cipher, or fewer columns"
            )
        pair = math.prod(sorted(schema.shape)[-2:])
        if pair > MAX_PAIR_CELLS:
            raise SizeError(
                f"JunctionTree counts every pair of columns, at most {MAX_PAIR_CELLS:,} cells each, not {pair:,}; use fewer levels"
            )

    def _finest(self, schema: Schema) -> Fraction:
        columns, beta = len(schema.attrs), Fraction(repr(float(self.beta)))
        most = 8 * math.comb(columns, 2)  # of `_stretch`, over both units
        return (1 - ROWS_SHARE) * min((1 - beta) / columns, beta / max(1, most))

    def _learn(self, session: Session) -> Sequence[Joint]:
        several = len(session.schema.attrs) > 1
        total = first_total(session) if several else no_total(session)
        ranked = self._edges(session, total) if several else []
        groups = self._clusters(session, ranked, total)
        share = session.left / len(groups)
        tables = tuple(
            session.measure(tuple(session.schema.attrs[axis] for axis in axes), share) for axes in groups
        )
        release = Release(session.schema, tables, session.statement(), kind=session.kind)
        for table in tables:
            total = total.with_table(table.counts, table.mechanism.variance)
        network = Network(session.schema.shape, _nodes(release, groups))
        return [
            network_joint(
                session, network, n_rows=total.estimate, engine="junction tree", warnings=drowned(tables)
            )
        ]

    def _edges(self, session: Session, total: Total) -> list[Edge]:
        """Pairs that depend on each other, the strongest first."""
        pairs = list(combinations(range(len(session.schema.shape)), 2))
        share = session.left * Fraction(repr(float(self.beta)))
        noisy, mechanism = session.query(
            "dependence of all pairs",
            lambda truth: pair_dependence(truth, pairs),
            share,
            sensitivity=_sensitivity(session, len(pairs)),
        )
        values = dict(zip(pairs, noisy, strict=True))
        limit = {pair: self._limit(session, pair, total, math.sqrt(mechanism.variance)) for pair in pairs}
        return sorted(
            (pair for pair in pairs if values[pair] > limit[pair]), key=lambda pair: (-values[pair], pair)
        )

    def _limit(self, session: Session, pair: Edge, total: Total, deviation: float) -> float:
        """R ≤ ½·V·√(min K − 1) for Cramér's V (by Cauchy and Schwarz); and no less than two standard deviations of the noise."""
        smaller = min(session.schema.shape[axis] for axis in pair)
        return max(total.rows * self.strength * math.sqrt(smaller - 1) / 2, 2 * deviation)

    def _clusters(self, session: Session, ranked: Sequence[Edge], total: Total) -> list[Axes]:
        """The cliques of as many edges as fit, then merged where fewer tables mean less noise."""
        columns, shape = len(session.schema.shape), session.schema.shape
        edges: list[Edge] = []
        found = cliques(columns, edges)
        for edge in ranked:
            if any(set(edge) <= set(axes) for axes in found):
                continue  # the triangulation holds it already
            trial = cliques(columns, [*edges, edge])
            useful = self._useful_cells(session, len(trial), total)
            if all(len(axes) == 1 or _cells(shape, axes) <= useful for axes in trial):
                edges, found = [*edges, edge], trial
        return merged(
            found,
            shape,
            lambda groups: _noise(session, shape, groups),
            self._useful_cells(session, len(found), total),
        )

    def _useful_cells(self, session: Session, tables: int, total: Total) -> float:
        least = max(self.theta * math.sqrt(session.mechanism(session.left / tables).variance / 2), 1e-300)
        return min(MAX_CLUSTER_CELLS, total.rows / least)


def pair_dependence(truth: CountSource, pairs: Sequence[Edge]) -> NDArray[np.int64]:
    """n·R of every pair, rounded down to whole rows."""
    return np.array([dependence(truth.counts(pair)) // GRID for pair in pairs], dtype=np.int64)


def _sensitivity(session: Session, pairs: int) -> Sensitivity:
    """A row added or removed moves each n·R by at most 2, a replaced one by at most 4: see `scores.dependence`."""
    squared = 4 if session.unit.relation == "add-remove" else 8
    return Sensitivity(Fraction(2 * pairs), Fraction(squared * pairs))


def _noise(session: Session, shape: Sequence[int], groups: Sequence[Axes]) -> float:
    """The total variance of all measured cells: each of t tables gets a t-th of the budget."""
    cells = sum(_cells(shape, axes) for axes in groups)
    return cells * session.mechanism(session.left / len(groups)).variance


def _cells(shape: Sequence[int], axes: Axes) -> int:
    return math.prod(shape[axis] for axis in axes)


def _nodes(release: Release, groups: Sequence[Axes]) -> tuple[Node, ...]:
    """The consistent tables along the junction tree: each cluster given what it shares with an earlier one."""
    nodes, reconciled = [], _reconciled(release)
    for cluster in junction_tree(groups):
        own = tuple(axis for axis in cluster.axes if axis not in cluster.given)
        order = [cluster.axes.index(axis) for axis in (*cluster.given, *own)]
        table = reconciled.table(cluster.axes).transpose(order)
        nodes.append(Node(own, cluster.given, conditional(table, len(cluster.given))))
    return tuple(nodes)


def _reconciled(release: Release) -> Reconciled:
    """The clusters made to agree; as if without structural zeros where those are too many: the joint is cleared of them later."""
    try:
        return release.reconciled
    except SizeError:
        return replace(release, schema=replace(release.schema, zeros=())).reconciled
