"""What the strongest pairs imply about the others: the pair tables of a tree-shaped distribution, in closed form.

The tree is the maximum spanning tree of the mutual information (Chow & Liu 1968), found by Prim's algorithm (`order`). Along it
P(x, v) = Σ_u P(x, u)·P(v | u) for neighbours u, v with u on the way to x: a table is a product of small matrices, one for each edge of
the path between its attributes. The table of a pair that is no edge is made without that pair's own measurement. The noise of the two is
therefore independent, and one can judge the other.
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dpcipher.engines.denoise.shrink import CLEAR, Deviations
from dpcipher.engines.raking import ratio
from dpcipher.engines.targets import information, spanning_tree
from dpcipher.tables.domain import Axes, Floats

# The share that a pair shows of what the tree implies has the prior mean 1 and this precision: a standard deviation of one half.
PRECISION = 4.0


def implied(
    pairs: Mapping[Axes, Floats], one_way: Mapping[int, Floats], wanted: Iterable[Axes]
) -> dict[Axes, Floats]:
    """The tables of those `wanted` pairs that are joined by a path of the tree, but not by one of its edges.

    All tables are probabilities; `pairs` are those that the tree is made from.
    """
    tree = Tree.of(pairs, one_way)
    targets: dict[int, list[int]] = defaultdict(list)
    for left, right in wanted:
        if (left, right) not in tree.given:
            targets[left].append(right)
    return {pair: table for source in targets for pair, table in tree.tables(source, targets[source]).items()}


@dataclass(frozen=True)
class Tree:
    """A forest: the parent of every attribute, and P(v | u) for the neighbours (u, v), both ways, levels of u as rows."""

    parents: Mapping[int, int | None]
    given: Mapping[Axes, Floats]
    one_way: Mapping[int, Floats]

    @classmethod
    def of(cls, pairs: Mapping[Axes, Floats], one_way: Mapping[int, Floats]) -> "Tree":
        """The tree of the strongest pairs."""
        shape = [len(one_way[axis]) for axis in range(len(one_way))]
        parents = spanning_tree(information(pairs, len(shape)), shape)
        given: dict[Axes, Floats] = {}
        for child, parent in parents.items():
            if parent is not None:
                table = pairs[parent, child] if parent < child else pairs[child, parent].T
                given[parent, child], given[child, parent] = _conditional(table), _conditional(table.T)
        return cls(parents, given, one_way)

    def tables(self, source: int, targets: Sequence[int]) -> dict[Axes, Floats]:
        """The tables of one attribute with others; none where no path leads."""
        back = self._back(source)
        known = {source: np.diag(self.one_way[source])}
        for target in targets:
            for there, here in pairwise(self._path(target, known, back)):
                known[here] = known[there] @ self.given[there, here]
        return {(source, target): known[target] for target in targets if target in known}

    def _path(self, target: int, known: Container[int], back: Mapping[int, int]) -> list[int]:
        """From the nearest known attribute to the target; empty where there is none."""
        path = [target]
        while path[-1] not in known:
            there = back.get(path[-1], self.parents[path[-1]])
            if there is None:
                return []
            path.append(there)
        return path[::-1]

    def _back(self, source: int) -> dict[int, int]:
        """The way back to `source` from those above it; from all others it leads over their parents."""
        back: dict[int, int] = {}
        here, above = source, self.parents[source]
        while above is not None:
            back[above] = here
            here, above = above, self.parents[above]
        return back


def _conditional(table: Floats) -> Floats:
    """Each row divided by its sum; an empty row stays empty."""
    return ratio(table, np.repeat(table.sum(axis=1, keepdims=True), table.shape[1], axis=1))


def shares(found: Deviations, steps: Floats) -> Floats:
    """How much of its step, from independence to what the tree implies, each pair should take before it is shrunk: between 0 and 1.

    Least squares of what the pair shows beyond independence on the step, with the prior of `PRECISION`; 0 where more is left than
    the tree could explain: a table as clear as that would be shrunk away from what it shows.
    """
    prior = PRECISION * found.variance
    taken = np.clip((_dots(found.counts, steps) + prior) / (_dots(steps, steps) + prior), 0.0, 1.0)
    rest = found.counts - taken[:, None, None] * steps
    free = (rest.shape[1] - 1) * (rest.shape[2] - 1)
    return np.where(_dots(rest, rest) * (1 - CLEAR) < free * found.variance, taken, 0.0)


def _dots(left: Floats, right: Floats) -> Floats:
    """The inner product of each table with the one beside it."""
    return np.asarray(np.einsum("tij,tij->t", left, right))
