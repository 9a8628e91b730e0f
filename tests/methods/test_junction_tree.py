"""The junction tree: graphs, and planted structures."""

from itertools import combinations

import numpy as np
import pytest
from replaying import run
from test_contract import SCHEMA, planted
from test_priv_bayes import chain

from dpcipher.errors import SizeError
from dpcipher.methods import JunctionTree
from dpcipher.methods.junction_tree import cliques, junction_tree, merged
from dpcipher.privacy.choose import Draws
from dpcipher.schema.schema import Schema


def random_graphs(count: int = 60):
    """Graphs of seven columns, sparse to dense."""
    rng = np.random.default_rng(5)
    for _ in range(count):
        density = rng.random()
        yield [edge for edge in combinations(range(7), 2) if rng.random() < density]


def test_cliques_cover_every_edge_and_column() -> None:
    """Each edge lies in a clique, each column too, and no clique is inside another."""
    for edges in random_graphs():
        found = cliques(7, edges)
        assert all(any(set(edge) <= set(clique) for clique in found) for edge in edges)
        assert {axis for clique in found for axis in clique} == set(range(7))
        assert not any(set(a) < set(b) for a in found for b in found)


def test_known_graphs() -> None:
    """A triangle is one clique, a square gets one chord, a path has none."""
    assert cliques(3, [(0, 1), (1, 2), (0, 2)]) == [(0, 1, 2)]
    assert sorted(cliques(4, [(0, 1), (1, 2), (2, 3), (0, 3)])) == [(0, 1, 3), (1, 2, 3)]
    assert sorted(cliques(3, [(0, 1), (1, 2)])) == [(0, 1), (1, 2)]
    assert cliques(2, []) == [(0,), (1,)]


def running_intersection(tree) -> bool:
    """What a cluster shares with all earlier ones together lies in `given`, and `given` in one of them."""
    for place, cluster in enumerate(tree):
        earlier = {axis for other in tree[:place] for axis in other.axes}
        if set(cluster.axes) & earlier != set(cluster.given):
            return False
        if cluster.given and not any(set(cluster.given) <= set(other.axes) for other in tree[:place]):
            return False
    return True


def test_trees_have_the_running_intersection_property() -> None:
    """Also after merging, and merging never raises the cost or breaks the limit."""
    shape = (2, 3, 2, 4, 2, 3, 2)

    def cost(groups) -> float:
        return len(groups) ** 2 * sum(np.prod([shape[axis] for axis in group]) for group in groups)

    for edges in random_graphs():
        found = cliques(7, edges)
        limit = max(64, *(np.prod([shape[axis] for axis in clique]) for clique in found))
        joined = merged(found, shape, cost, limit)
        assert running_intersection(junction_tree(found))
        assert running_intersection(junction_tree(joined))
        assert cost(joined) <= cost(found)
        assert max(np.prod([shape[axis] for axis in group]) for group in joined) <= limit


def test_a_planted_chain_is_recovered() -> None:
    """Neighbours become edges, and the joint of the chain comes back."""
    counts = chain(5, 2, 0.85, 40_000)
    schema = Schema.from_domain(dict.fromkeys("abcde", 2))
    method = JunctionTree(100.0, unit="add-remove").fit_counts(counts, schema, draws=Draws.seeded(1))
    assert np.abs(method.joint.core.probabilities - counts / counts.sum()).sum() / 2 < 0.01


def test_cliques_of_three_columns_are_measured_together() -> None:
    """A noisy parity that also depends pairwise: only a table of all three holds it."""
    base = np.array([[[20, 1], [1, 6]], [[1, 6], [6, 9]]]) * 1000
    schema = Schema.from_domain({"a": 2, "b": 2, "c": 2})
    method = JunctionTree(50.0, unit="replace").fit_counts(base, schema, draws=Draws.seeded(1))
    whats = [event["what"] for event in method.statement.certificate["events"]]
    assert whats == ["dependence of all pairs", "a × b × c"]
    assert np.abs(method.joint.core.probabilities - base / base.sum()).sum() / 2 < 0.01


def test_independent_columns_stay_apart() -> None:
    """No edge, so one-way tables or whatever merging makes cheaper; the product comes back."""
    counts = np.rint(60_000 * np.multiply.outer([0.3, 0.7], [0.2, 0.3, 0.5])).astype(int)
    schema = Schema.from_domain({"a": 2, "b": 3})
    method = JunctionTree(20.0, unit="replace").fit_counts(counts, schema, draws=Draws.seeded(1))
    assert np.abs(method.joint.core.probabilities - counts / counts.sum()).sum() / 2 < 0.005


@pytest.mark.parametrize(("unit", "scale"), [("add-remove", 6 * 2 / (0.3 * 0.9)), ("replace", 6 * 4 / 0.3)])
def test_the_graph_costs_its_share(unit: str, scale: float) -> None:
    """Six pairs, each moved by at most 2 rows (4 under replacement), within β of what is left after the number of rows."""
    tape, _ = run(JunctionTree(1.0, unit=unit), planted(), SCHEMA)
    place = 1 if unit == "add-remove" else 0
    assert tape.asked[place][1].size == 6
    assert tape.asked[place][2] == pytest.approx(scale)


@pytest.mark.parametrize("options", [{"beta": 0}, {"strength": 1.0}, {"theta": -1}])
def test_bad_options_are_refused(options: dict[str, object]) -> None:
    """At birth."""
    with pytest.raises(ValueError, match=next(iter(options))):
        JunctionTree(1.0, unit="replace", **options)


def test_too_many_columns_are_refused_from_the_schema() -> None:
    """Before the data are opened."""
    wide = Schema.from_domain({f"c{number}": 2 for number in range(201)})
    with pytest.raises(SizeError, match="200 columns"):
        JunctionTree(1.0, unit="replace").fit("no such file", wide)
