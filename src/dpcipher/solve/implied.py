"""What the strongest pairs imply about the others: every pair of a tree-shaped distribution, in closed form.

The tree is the maximum spanning tree of the mutual information (Chow and Liu 1968). Along it, the table of two attributes is the sum over
the node m where their paths meet of P(m)·P(i | m)·P(j | m), and each conditional is a product of those of its edges.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from dpcipher.solve.order import mutual_information
from dpcipher.solve.targets import Axes, Floats


@dataclass(frozen=True)
class Tree:
    """A rooted forest: the parent of each attribute that has one, and the order in which attributes were reached."""

    parent: Mapping[int, int]
    rank: Mapping[int, int]
    one_way: Mapping[int, Floats]
    given: Mapping[int, Floats]  # P(attribute | parent), parents as rows

    @classmethod
    def of(cls, pairs: Mapping[Axes, Floats], one_way: Mapping[int, Floats]) -> "Tree":
        """The Chow-Liu tree of tables of probabilities; attributes that no pair joins have no path between them."""
        parent, rank = _span(pairs, len(one_way))
        given = {
            child: _conditional(
                pairs[(above, child)] if above < child else pairs[(child, above)].T, one_way[child]
            )
            for child, above in parent.items()
        }
        return cls(parent, rank, one_way, given)

    @property
    def edges(self) -> set[Axes]:
        """The pairs that the tree was made of."""
        return {(min(edge), max(edge)) for edge in self.parent.items()}

    def table(self, pair: Axes) -> Floats | None:
        """The table of a pair; None if no path joins it, where the tree knows nothing but independence."""
        left, right = pair
        down = {axis: np.eye(len(self.one_way[axis])) for axis in pair}
        while left != right:
            # Climb from the attribute that was reached later: the other cannot be below it.
            if self.rank[left] > self.rank[right]:
                if left not in self.parent:
                    return None
                down[pair[0]], left = self.given[left] @ down[pair[0]], self.parent[left]
            else:
                if right not in self.parent:
                    return None
                down[pair[1]], right = self.given[right] @ down[pair[1]], self.parent[right]
        return np.asarray(down[pair[0]].T @ (self.one_way[left][:, None] * down[pair[1]]))


def _span(pairs: Mapping[Axes, Floats], attributes: int) -> tuple[dict[int, int], dict[int, int]]:
    """Prim's algorithm from the attribute with the most information in all, and again for what it does not reach."""
    weights = np.full((attributes, attributes), -1.0)
    for pair, table in pairs.items():
        weights[pair] = weights[pair[::-1]] = round(mutual_information(table), 10)
    nearest, best = np.full(attributes, -1), np.full(attributes, -1.0)
    total = np.maximum(weights, 0.0).sum(axis=1)
    parent: dict[int, int] = {}
    rank: dict[int, int] = {}
    for step in range(attributes):
        left = [axis for axis in range(attributes) if axis not in rank]
        chosen = max(left, key=lambda axis: (best[axis], total[axis], -axis))
        rank[chosen] = step
        if best[chosen] >= 0:
            parent[chosen] = int(nearest[chosen])
        closer = weights[chosen] > best
        best[closer], nearest[closer] = weights[chosen][closer], chosen
    return parent, rank


def _conditional(table: Floats, otherwise: Floats) -> Floats:
    """Each row divided by its sum; the child's own rates where a row is empty."""
    total = table.sum(axis=1, keepdims=True)
    return np.where(total > 0, table / np.where(total > 0, total, 1.0), otherwise)


def implied(
    pairs: Mapping[Axes, Floats], one_way: Mapping[int, Floats], wanted: Iterable[Axes]
) -> dict[Axes, Floats]:
    """The tables that the tree of `pairs` implies for those `wanted` pairs that are not its edges."""
    tree = Tree.of(pairs, one_way)
    edges = tree.edges
    tables = {pair: tree.table(pair) for pair in wanted if pair not in edges}
    return {pair: table for pair, table in tables.items() if table is not None}
