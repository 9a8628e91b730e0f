"""modips (Liu 2016): sanitized sufficient statistics, a draw of the parameters from their posterior, then rows; m times over.

The model is the saturated one, whose sufficient statistic is the full table, or a decomposable one, whose sufficient statistics are the tables
of its cliques. Along a junction tree every clique given what it shares with earlier ones has a Dirichlet prior of its own, so that the posterior is a product
of Dirichlet laws and is drawn exactly. Models whose tables form cycles, such as all pairs, have no such posterior: `posterior` and
`fit_models` draw from theirs by Markov chains.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dpcipher.errors import WorkloadError
from dpcipher.joint.joint import Joint
from dpcipher.joint.network import Network, Node, conditional
from dpcipher.methods.base import Synthesizer, check_between, check_whole, tables_of
from dpcipher.methods.clique_trees import Cluster, is_junction_tree, junction_tree
from dpcipher.methods.outcome import dense_joint, drowned, network_joint, require_table
from dpcipher.request.session import Session
from dpcipher.schema.schema import Schema
from dpcipher.selection.edges import PlannedTables, typical_tables
from dpcipher.tables.domain import Floats
from dpcipher.tables.measurement import Measurement
from dpcipher.tables.query import Query


@dataclass(frozen=True)
class Modips(Synthesizer):
    """Noisy counts, bounded to [0, n]; probabilities from Dirichlet(α + counts); `sets` independent times.

    The counts are those of the full table or, with `workload`, of tables that have a junction tree: a chain, a tree, cliques that overlap like
    tiles. Each table of each set takes an equal share of the budget. n is public under replacement; otherwise the sums of the noisy counts stand for it.

    >>> import pandas as pd
    >>> import dpcipher as dc
    >>> schema = dc.Schema.from_domain({"smokes": 2, "ill": 2})
    >>> people = pd.DataFrame({"smokes": [0, 0, 1, 1] * 250, "ill": [0, 0, 0, 1] * 250})
    >>> fitted = dc.Modips(epsilon=1.0, unit="add-remove", sets=2).fit(people, schema)
    >>> len(fitted.joint)
    2
    """

    title: ClassVar[str] = "modips"

    sets: int = 1
    alpha: float = 0.5
    workload: int | Sequence[Sequence[str]] | None = None

    def _check(self) -> None:
        check_whole("sets", self.sets, 1, 5)
        check_between("alpha", self.alpha, 0, 1e6, 0.5)

    def check_schema(self, schema: Schema) -> None:
        """The full table must fit in memory, or the tables of the workload must have a junction tree."""
        if self.workload is None:
            require_table(schema, "Modips", 2**24)
        self._clusters(schema)

    def _clusters(self, schema: Schema) -> list[Cluster]:
        """The cliques of the model, each with what it shares with earlier ones."""
        if self.workload is None:
            return [Cluster(tuple(range(len(schema.attrs))), ())]
        tables = tables_of(schema, self.workload).maximal()
        tree = junction_tree([schema.axes(attrs) for attrs in tables])
        if not is_junction_tree(tree):
            raise WorkloadError(
                "workload must have a junction tree, and these tables form a cycle; leave some out, or use Cipher, which takes any tables"
            )
        return tree

    def _finest(self, schema: Schema) -> Fraction:
        return Fraction(1, self.sets * len(self._clusters(schema)))

    def _planned_tables(self, schema: Schema) -> PlannedTables:
        return typical_tables([len(cluster.axes) for cluster in self._clusters(schema)], self.sets)

    def _learn(self, session: Session) -> Sequence[Joint]:
        clusters = self._clusters(session.schema)
        return [self._one(session, clusters, number) for number in range(self.sets)]

    def _one(self, session: Session, clusters: Sequence[Cluster], number: int) -> Joint:
        share = Fraction(1, self.sets * len(clusters))
        noisy = [session.measure(Query(cluster.axes), share, set=number) for cluster in clusters]
        total = _total(session, noisy)
        # A Dirichlet draw as normalised gammas; post-processing, so plain randomness serves.
        drawn = [session.rng.gamma(self.alpha + _bounded(table, total)) for table in noisy]
        if len(clusters) == 1:
            return dense_joint(session, drawn[0], n_rows=total, engine="modips")
        nodes = tuple(_node(cluster, weights) for cluster, weights in zip(clusters, drawn, strict=True))
        network = Network(session.schema.shape, nodes)
        return network_joint(
            session, network, n_rows=total, engine="modips", warnings=drowned(session.schema, noisy)
        )


def _total(session: Session, noisy: Sequence[Measurement]) -> float:
    """The public number of rows, or the mean of the tables' sums."""
    if session.n_rows is not None:
        return float(session.n_rows)
    return max(0.0, float(np.mean([float(table.values.sum()) for table in noisy])))


def _bounded(table: Measurement, total: float) -> Floats:
    """Noisy counts between 0 and n that add up to n."""
    bounded: Floats = np.clip(table.values.astype(float), 0.0, total)
    return bounded * (total / bounded.sum()) if bounded.sum() > 0 else bounded


def _node(cluster: Cluster, weights: Floats) -> Node:
    """The columns that a cluster adds, given those it shares."""
    own = tuple(axis for axis in cluster.axes if axis not in cluster.given)
    order = [cluster.axes.index(axis) for axis in (*cluster.given, *own)]
    return Node(own, cluster.given, conditional(weights.transpose(order), len(cluster.given)))
