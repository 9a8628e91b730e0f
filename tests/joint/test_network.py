"""Networks of conditional tables against the product written out."""

import numpy as np
import pytest

from dpcipher.errors import ConditionError, JointError
from dpcipher.joint.network import Network, Node, conditional

SHAPE = (2, 3, 2, 4)


def example() -> Network:
    """P(c1)·P(c0, c3 | c1)·P(c2 | c0, c3)."""
    rng = np.random.default_rng(0)
    return Network(
        SHAPE,
        (
            Node((1,), (), conditional(rng.random(3), 0)),
            Node((0, 3), (1,), conditional(rng.random((3, 2, 4)), 1)),
            Node((2,), (0, 3), conditional(rng.random((2, 4, 2)), 2)),
        ),
    )


def written_out(network: Network) -> np.ndarray:
    """The product over all cells."""
    table = np.ones(SHAPE)
    for cell in np.ndindex(SHAPE):
        for node in network.nodes:
            table[cell] *= node.table[tuple(cell[axis] for axis in (*node.given, *node.axes))]
    return table


def test_every_projection_is_a_margin_of_the_product() -> None:
    """All sets of columns, in any order of their axes."""
    network, table = example(), written_out(example())
    assert table.sum() == pytest.approx(1)
    for axes in [(0,), (1,), (2,), (3,), (0, 1), (2, 3), (0, 2, 3), (0, 1, 2, 3)]:
        drop = tuple(axis for axis in range(4) if axis not in axes)
        np.testing.assert_allclose(network.project(axes), table.sum(axis=drop))
    np.testing.assert_allclose(network.project((3, 0)), table.sum(axis=(1, 2)).T)


@pytest.mark.parametrize("independent", [False, True])
def test_samples_follow_the_product(independent: bool) -> None:
    """Forty thousand rows: every cell within five standard deviations, evenly spread rows much closer."""
    network, n = example(), 40_000
    codes = np.concatenate(list(network.sample(n, np.random.default_rng(1), independent=independent)))
    seen = np.zeros(SHAPE)
    np.add.at(seen, tuple(codes.T), 1)
    gaps = np.abs(seen / n - written_out(network))
    assert (gaps <= 5 * np.sqrt(written_out(network) / n)).all()
    one_way = np.abs(seen.sum(axis=(0, 2, 3)) / n - network.project((1,))).max()
    assert one_way < (0.02 if independent else 0.0005)


def test_log_probabilities_are_those_of_the_cells() -> None:
    """Every cell at once."""
    network = example()
    codes = np.argwhere(np.ones(SHAPE, dtype=bool)).astype(np.int32)
    np.testing.assert_allclose(np.exp(network.log_prob(codes)), written_out(network).ravel())


def test_conditionals_of_nothing_are_uniform() -> None:
    """A parent combination whose noisy counts are all negative."""
    np.testing.assert_allclose(
        conditional(np.array([[-3.0, -1.0], [3.0, 1.0]]), 1), [[0.5, 0.5], [0.75, 0.25]]
    )


def test_conditions_are_refused_with_advice() -> None:
    """A large network has no exact conditional sampling."""
    with pytest.raises(ConditionError, match="filter"):
        example().sample(5, np.random.default_rng(0), allowed={0: np.array([True, False])})


def test_a_network_survives_its_arrays() -> None:
    """What `to_arrays` wrote comes back equal; arrays that do not fit are refused."""
    network = example()
    again = Network.from_arrays(network.to_arrays())
    np.testing.assert_array_equal(again.project((0, 1, 2, 3)), network.project((0, 1, 2, 3)))
    broken = network.to_arrays()
    del broken["given1"]
    with pytest.raises(JointError, match="fit together"):
        Network.from_arrays(broken)


@pytest.mark.parametrize(
    "nodes",
    [
        (Node((0,), (), np.array([0.5, 0.6])), Node((1,), (), np.array([1.0]))),
        (Node((0,), (), np.array([0.5, 0.5])),),
        (Node((0,), (1,), np.array([[0.5, 0.5]])), Node((1,), (), np.array([1.0]))),
        (Node((0,), (), np.array([1.5, -0.5])), Node((1,), (), np.array([1.0]))),
        (Node((0,), (), np.array([0.2, 0.3, 0.5])), Node((1,), (), np.array([1.0]))),
    ],
    ids=["not a distribution", "a column is missing", "given comes later", "negative", "wrong levels"],
)
def test_what_is_no_network_is_refused(nodes: tuple[Node, ...]) -> None:
    """Checked at birth."""
    with pytest.raises(JointError, match="fit the joint again"):
        Network((2, 1), nodes)
