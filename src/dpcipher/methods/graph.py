"""Graphs of columns: triangulate, find the cliques, hang them in a junction tree, merge them."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

Axes = tuple[int, ...]
Edge = tuple[int, int]


def cliques(columns: int, edges: Iterable[Edge]) -> list[Axes]:
    """The maximal cliques of the graph after a min-fill triangulation; a column without edges is a clique of its own."""
    near: dict[int, set[int]] = {axis: set() for axis in range(columns)}
    for one, other in edges:
        near[one].add(other)
        near[other].add(one)
    found: list[Axes] = []
    while near:
        # The column whose removal adds the fewest edges, the smallest number first: a rule that looks at the graph alone.
        axis = min(near, key=lambda a: (_fill(near, a), len(near[a]), a))
        found.append(tuple(sorted({axis, *near[axis]})))
        for one, other in combinations(near[axis], 2):
            near[one].add(other)
            near[other].add(one)
        for other in near.pop(axis):
            near[other].discard(axis)
    return [clique for clique in found if not any(set(clique) < set(other) for other in found)]


def _fill(near: dict[int, set[int]], axis: int) -> int:
    return sum(other not in near[one] for one, other in combinations(near[axis], 2))


@dataclass(frozen=True)
class Cluster:
    """A group of columns in a junction tree, in an order where `given` lies inside one earlier cluster."""

    axes: Axes
    given: Axes


def junction_tree(groups: Sequence[Axes]) -> list[Cluster]:
    """Order groups by a maximum spanning tree over what they share, which has the running intersection property for cliques."""
    rest = sorted(groups, key=lambda axes: (-len(axes), axes))
    placed = [Cluster(rest.pop(0), ())]
    while rest:
        share, group = max(
            ((tuple(sorted(set(axes) & set(done.axes))), axes) for axes in rest for done in placed),
            key=lambda pair: (len(pair[0]), [-axis for axis in pair[1]]),
        )
        rest.remove(group)
        placed.append(Cluster(group, share))
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
