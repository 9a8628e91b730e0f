"""Graphs of columns: their triangulated cliques, the junction tree of those, and which of them to merge."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from dpcipher.tables.domain import Axes

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


def is_junction_tree(tree: Sequence[Cluster]) -> bool:
    """Whether what each cluster shares with all earlier ones together is what it shares with one of them."""
    earlier: set[int] = set()
    for cluster in tree:
        if set(cluster.axes) & earlier != set(cluster.given):
            return False
        earlier |= set(cluster.axes)
    return True


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
