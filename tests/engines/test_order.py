from itertools import combinations, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcipher.engines.targets import (
    Targets,
    mutual_information,
    order_attributes,
    pair_information,
    spanning_tree,
)
from dpcipher.tables.table import margin


def random_tree(n_attrs: int, rng: np.random.Generator) -> list[int]:
    """The parent of each attribute after the first, attributes numbered at random afterwards."""
    return [int(rng.integers(child)) for child in range(1, n_attrs)]


def tree_joint(parents: list[int], shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """A joint in which every attribute depends on its parent only."""
    joint = rng.dirichlet(np.ones(shape[0]))
    for child, parent in enumerate(parents, start=1):
        given_parent = rng.dirichlet(np.ones(shape[child]), size=shape[parent])
        dims = [shape[parent] if axis == parent else 1 for axis in range(child)]
        joint = joint[..., None] * given_parent.reshape(*dims, shape[child])
    return joint


def pair_targets(joint: np.ndarray, pairs: list[tuple[int, int]] | None = None) -> Targets:
    """Exact pair tables of a joint."""
    every = tuple(range(joint.ndim))
    sets = pairs if pairs is not None else list(combinations(every, 2))
    return Targets(
        joint.shape, 100.0, {axes: margin(joint, every, axes) for axes in sets}, dict.fromkeys(sets, 0.0)
    )


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 6), st.integers(0, 10**6), st.booleans())
def test_parents_come_first_in_every_tree(n_attrs: int, seed: int, only_edges: bool) -> None:
    """Each attribute after the first is a neighbour, in the true tree, of an earlier one: from all pairs or from the edges alone."""
    rng = np.random.default_rng(seed)
    shape = tuple(int(k) for k in rng.integers(2, 4, size=n_attrs))
    parents = random_tree(n_attrs, rng)
    place = rng.permutation(n_attrs)  # attribute i of the drawn tree becomes axis place[i]
    joint = np.moveaxis(tree_joint(parents, shape, rng), range(n_attrs), [int(p) for p in place])
    edges = {
        tuple(sorted((int(place[child]), int(place[parent]))))
        for child, parent in enumerate(parents, start=1)
    }
    order = order_attributes(pair_targets(joint, sorted(edges) if only_edges else None))  # type: ignore[arg-type]
    assert sorted(order) == list(range(n_attrs))
    for number in range(1, n_attrs):
        assert any(tuple(sorted((order[number], earlier))) in edges for earlier in order[:number])


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_the_order_follows_a_maximum_spanning_tree(seed: int) -> None:
    """The heaviest links of the order weigh as much as the best of all spanning trees."""
    joint = np.random.default_rng(seed).dirichlet(np.full(36, 0.5)).reshape(2, 3, 2, 3)
    weights = pair_information(pair_targets(joint))
    order = order_attributes(pair_targets(joint))
    found = sum(max(weights[order[i], order[j]] for j in range(i)) for i in range(1, 4))
    pairs = list(combinations(range(4), 2))
    trees = [edges for edges in combinations(pairs, 3) if len(_reached(edges)) == 4]
    assert len(trees) == 16  # Cayley: 4²
    assert found == pytest.approx(max(sum(weights[edge] for edge in edges) for edges in trees))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_every_attribute_is_reached_from_the_earlier_one_it_has_most_in_common_with(seed: int) -> None:
    """Each parent comes earlier and weighs as much as any attribute that does; one with nothing in common has none."""
    rng = np.random.default_rng(seed)
    weights = np.triu(np.round(rng.random((7, 7)), 1) * (rng.random((7, 7)) < 0.4), 1)
    weights = weights + weights.T
    tree = spanning_tree(weights, (2,) * 7)
    order = list(tree)
    assert sorted(order) == list(range(7))
    for place, (axis, parent) in enumerate(tree.items()):
        most = max((weights[axis, earlier] for earlier in order[:place]), default=0.0)
        assert (0.0 if parent is None else weights[axis, parent]) == most
        assert parent is None or parent in order[:place]


def _reached(edges: tuple[tuple[int, int], ...]) -> set[int]:
    found = {0}
    for _ in range(4):
        found |= {b for edge in edges for a, b in permutations(edge) if a in found}
    return found


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_the_order_does_not_see_the_order_of_levels(seed: int) -> None:
    """Permuting the levels of every attribute leaves the order alone."""
    rng = np.random.default_rng(seed)
    joint = rng.dirichlet(np.ones(48)).reshape(2, 3, 4, 2)
    shuffled = joint[np.ix_(*[rng.permutation(k) for k in joint.shape])]
    assert order_attributes(pair_targets(joint)) == order_attributes(pair_targets(shuffled))


def test_ties_go_to_more_levels_then_to_the_lower_number() -> None:
    """Independent attributes are visited by size, then by number."""
    uniform = np.full((2, 3, 2, 3), 1 / 36)
    assert order_attributes(pair_targets(uniform)) == (1, 3, 0, 2)


def test_mutual_information_is_entropy_arithmetic() -> None:
    """I(A;B) = H(A) + H(B) − H(A,B), summed cell by cell."""
    table = np.random.default_rng(1).dirichlet(np.ones(12)).reshape(3, 4)
    table[0, 0] = 0
    table /= table.sum()

    def entropy(cells: list[float]) -> float:
        return -sum(cell * np.log(cell) for cell in cells if cell > 0)

    rows = [sum(table[i, j] for j in range(4)) for i in range(3)]
    columns = [sum(table[i, j] for i in range(3)) for j in range(4)]
    together = [table[i, j] for i, j in product(range(3), range(4))]
    assert mutual_information(table) == pytest.approx(entropy(rows) + entropy(columns) - entropy(together))


def test_a_pair_outside_the_closure_weighs_nothing() -> None:
    """Pairs are also read from larger tables; the others count as unknown."""
    joint = np.random.default_rng(2).dirichlet(np.ones(16)).reshape(2, 2, 2, 2)
    targets = Targets(
        (2, 2, 2, 2),
        10.0,
        {(0, 1, 2): joint.sum(axis=3), (3,): joint.sum(axis=(0, 1, 2))},
        {(0, 1, 2): 0.0, (3,): 0.0},
    )
    weights = pair_information(targets)
    assert weights[0, 2] == pytest.approx(mutual_information(joint.sum(axis=(1, 3))), abs=1e-9)
    assert not weights[3].any()
    assert order_attributes(targets)[-1] == 3
