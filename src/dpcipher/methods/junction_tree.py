"""The junction tree of Chen, Xiao, Zhang and Xu (2015), with a selection step that is private.

Columns that depend on each other become neighbours in a graph; its cliques, merged where that lowers the noise, are measured, made consistent and
multiplied along a junction tree. The source finds the graph with a variant of the sparse vector technique that Lyu, Su and Li (2017) show not to be
private. Here it grows by the exponential mechanism (`growth`), or the dependence of every pair is measured with noise and compared with a threshold.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpcipher.errors import ParameterError, SizeError
from dpcipher.joint.joint import Joint
from dpcipher.joint.network import Network, Node, conditional
from dpcipher.methods import scores
from dpcipher.methods.base import Synthesizer, check_between
from dpcipher.methods.clique_trees import Edge, cliques, junction_tree, merged
from dpcipher.methods.growth import Growth
from dpcipher.methods.outcome import (
    ROWS_SHARE,
    Total,
    drowned,
    first_total,
    network_joint,
    no_total,
)
from dpcipher.privacy.draws import Chooser
from dpcipher.privacy.events import Sensitivity
from dpcipher.privacy.terms import Unit
from dpcipher.release.reconcile import Reconciled
from dpcipher.release.release import Release
from dpcipher.request.session import Expected, Question, Session, TrueCounts
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Axes, Counts, Floats, Shape
from dpcipher.tables.query import Query

SELECTIONS = ("exponential", "laplace")

MAX_COLUMNS = 200
MAX_PAIR_CELLS = 2**24
# No cluster above this, whatever the noise allows.
MAX_CLUSTER_CELLS = 2**22
# Nor any table whose dependence is scored: there are many of them.
MAX_TABLE_CELLS = 2**18


@dataclass(frozen=True)
class JunctionTree(Synthesizer):
    """Cliques of a private dependency graph.

    `beta` is the share that finds the graph. With `selection="exponential"` each column in turn is joined to a clique by the exponential mechanism.
    With "laplace" the dependence of every pair is measured, and a pair becomes an edge if that exceeds what Cramér's V of `strength` allows, and
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
    selection: str = "exponential"

    def _check(self) -> None:
        if self.selection not in SELECTIONS:
            raise ParameterError(
                f"selection ({self.selection!r}) must be 'exponential' or 'laplace'; try selection='exponential'"
            )
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
        # A choice is d − 1 rounds; of `Dependence`, 8 is the most over both units.
        parts = 8 * math.comb(columns, 2) if self.selection == "laplace" else columns
        return (1 - ROWS_SHARE) * min((1 - beta) / columns, beta / max(1, parts))

    def _learn(self, session: Session) -> Sequence[Joint]:
        several = len(session.schema.attrs) > 1
        total = first_total(session) if several else no_total(session)
        groups = self._clusters(session, total) if several else [(0,)]
        share = session.left / len(groups)
        tables = tuple(session.measure(Query(axes), share) for axes in groups)
        release = Release(session.schema, tables, session.statement(), kind=session.kind)
        for table in tables:
            total = total.with_table(table.values, table.noise.variance)
        network = Network(session.schema.shape, _nodes(release, groups))
        return [
            network_joint(
                session,
                network,
                n_rows=total.estimate,
                engine="junction tree",
                warnings=drowned(session.schema, tables),
            )
        ]

    def _clusters(self, session: Session, total: Total) -> list[Axes]:
        """The cliques of the graph, merged where fewer tables mean less noise."""
        if self.selection == "laplace":
            found = self._cliques(session, self._edges(session, total), total)
        else:
            found = self._grown(session, total)
        shape = session.schema.shape
        return merged(
            found,
            shape,
            lambda groups: _noise(session, shape, groups),
            self._useful_cells(session, len(found), total),
        )

    def _grown(self, session: Session, total: Total) -> list[Axes]:
        """The cliques of a tree that the exponential mechanism grew; single columns where no pair would be useful."""
        shape, beta = session.schema.shape, Fraction(repr(float(self.beta)))
        cells = self._useful_cells(session, len(shape) / (1 - beta), total)
        growth = Growth(shape, min(cells, MAX_TABLE_CELLS))
        if not growth.is_free:
            return [(axis,) for axis in range(len(shape))]
        choice = TreeScores(
            "choice of the junction tree", growth.candidates, "R", session.n_rows, growth=growth
        )
        picked = session.choose(choice, len(shape) - 1, session.left * beta)
        return growth.cliques(growth.candidates[place] for place in picked)

    def _edges(self, session: Session, total: Total) -> list[Edge]:
        """Pairs that depend on each other, the strongest first."""
        pairs = list(combinations(range(len(session.schema.shape)), 2))
        share = session.left * Fraction(repr(float(self.beta)))
        noisy, mechanism = session.ask(Dependence(pairs), share)
        values = dict(zip(pairs, noisy, strict=True))
        limit = {pair: self._limit(session, pair, total, math.sqrt(mechanism.variance)) for pair in pairs}
        return sorted(
            (pair for pair in pairs if values[pair] > limit[pair]), key=lambda pair: (-values[pair], pair)
        )

    def _limit(self, session: Session, pair: Edge, total: Total, deviation: float) -> float:
        """R ≤ ½·V·√(min K − 1) for Cramér's V (by Cauchy and Schwarz); and no less than two standard deviations of the noise."""
        smaller = min(session.schema.shape[axis] for axis in pair)
        return max(total.rows * self.strength * math.sqrt(smaller - 1) / 2, 2 * deviation)

    def _cliques(self, session: Session, ranked: Sequence[Edge], total: Total) -> list[Axes]:
        """The cliques of as many edges as fit."""
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
        return found

    def _useful_cells(self, session: Session, tables: int | Fraction, total: Total) -> float:
        """The most cells with a mean count of θ noise scales, where so many tables share what is left."""
        least = max(self.theta * math.sqrt(session.noise(session.left / tables).variance / 2), 1e-300)
        return min(MAX_CLUSTER_CELLS, total.rows / least)


@dataclass(frozen=True)
class TreeScores(scores.PairScores):
    """The scores of a tree that grows: what a round may choose follows from earlier choices and public sizes."""

    growth: Growth | None = None

    def rounds(self, chooser: Chooser, scores: NDArray[np.int64], scale: float, k: int) -> list[int]:
        """One column at a time."""
        assert self.growth is not None
        return self.growth(chooser, scores, scale, k)


@dataclass(frozen=True, eq=False)
class Dependence(Question):
    """n·R of pairs, rounded down to whole rows: a row added or removed moves each by at most 2, a replaced one by at most 4 (`scores.dependence`)."""

    pairs: Sequence[Edge]

    def words(self, schema: Schema) -> str:
        """Of every pair."""
        return "dependence of all pairs"

    def sensitivity(self, unit: Unit, shape: Shape) -> Sensitivity:
        """Squares add up over the pairs."""
        each = 2 * unit.l1
        return Sensitivity(each * len(self.pairs), each**2 * len(self.pairs))

    def of(self, counts: TrueCounts) -> Counts:
        """From the scores, which are in units of 1/GRID."""
        return scores.pair_scores(counts, [(one, (other,)) for one, other in self.pairs], "R") // scores.GRID

    def expected(self, rows: Expected) -> Floats:
        """No dependence."""
        return np.zeros(len(self.pairs))


def _noise(session: Session, shape: Sequence[int], groups: Sequence[Axes]) -> float:
    """The total variance of all measured cells: each of t tables gets a t-th of the budget."""
    cells = sum(_cells(shape, axes) for axes in groups)
    return cells * session.noise(session.left / len(groups)).variance


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
