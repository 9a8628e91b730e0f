"""The junction tree: graphs, and planted structures."""

from itertools import combinations

import numpy as np
import pytest
from replaying import run
from test_contract import SCHEMA, planted
from test_priv_bayes import chain

from dpcipher.errors import SizeError
from dpcipher.methods import JunctionTree
from dpcipher.methods.clique_trees import cliques, junction_tree, merged
from dpcipher.methods.growth import Growth
from dpcipher.methods.scores import GRID
from dpcipher.privacy.draws import Chooser, Draws
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
    assert whats == ["choice of the junction tree", "a × b × c"]
    assert np.abs(method.joint.core.probabilities - base / base.sum()).sum() / 2 < 0.01


def test_independent_columns_stay_apart() -> None:
    """No edge, so one-way tables or whatever merging makes cheaper; the product comes back."""
    counts = np.rint(60_000 * np.multiply.outer([0.3, 0.7], [0.2, 0.3, 0.5])).astype(int)
    schema = Schema.from_domain({"a": 2, "b": 3})
    method = JunctionTree(20.0, unit="replace").fit_counts(counts, schema, draws=Draws.seeded(1))
    assert np.abs(method.joint.core.probabilities - counts / counts.sum()).sum() / 2 < 0.005


class Picking(Chooser):
    """Chooses at random, and remembers how many candidates each round had."""

    is_private = False

    def __init__(self, seed: int) -> None:
        self.rng, self.rounds = np.random.default_rng(seed), []

    def _choose(self, scores, scale, k) -> list[int]:
        self.rounds.append(scores.tolist())
        return [int(self.rng.integers(len(scores)))]

    def _rho(self, scale, sensitivity, k) -> float:
        return 0.0


def may_join(shape, cells, picked) -> set[tuple[int, tuple[int, ...]]]:
    """From the definition: any column without a place, with neighbours inside one clique that no further column of it fits beside."""
    found = [{0}]
    for axis, near in picked:
        found = [clique for clique in found if clique != set(near)] + [{axis, *near}]
    placed = set().union(*found)

    def fits(axis, near) -> bool:
        return not near or np.prod([shape[a] for a in (axis, *near)]) <= cells

    return {
        (axis, near)
        for axis in set(range(len(shape))) - placed
        for clique in found
        for size in range(len(clique) + 1)
        for near in combinations(sorted(clique), size)
        if fits(axis, near) and not any(fits(axis, (*near, other)) for other in clique - set(near))
    }


@pytest.mark.parametrize("cells", [1, 4, 12, 30, 10**6])
def test_a_tree_grows_by_what_may_join_it(cells: float) -> None:
    """Every round has exactly the candidates of the definition, and the cliques have a junction tree at the end."""
    shape = (2, 3, 2, 4, 2, 3)
    growth = Growth(shape, cells)
    for seed in range(8):
        chooser = Picking(seed)
        places = growth(chooser, np.arange(len(growth.candidates)), 1.0, 5)
        picked = [growth.candidates[place] for place in places]
        for number, offered in enumerate(chooser.rounds):
            expected = may_join(shape, cells, picked[:number])
            assert {growth.candidates[place] for place in offered} == expected
        found = growth.cliques(picked)
        assert {axis for clique in found for axis in clique} == set(range(6))
        assert not any(set(a) < set(b) for a in found for b in found)
        assert running_intersection(junction_tree(found))


def test_the_candidates_of_many_columns_are_bounded() -> None:
    """Pairs alone for two hundred columns, and more neighbours for fewer."""
    assert max(len(near) for _, near in Growth((2,) * 200, 1e6).candidates) == 1
    assert max(len(near) for _, near in Growth((2,) * 16, 1e6).candidates) == 4


@pytest.mark.parametrize(
    ("unit", "scale"), [("add-remove", 2 * 3 * 2 / (0.3 * 0.9)), ("replace", 2 * 3 * 3.1 / 0.3)]
)
def test_a_tree_costs_its_share(unit: str, scale: float) -> None:
    """Three rounds at a third of β each, scores that one person moves by 2 rows (3 + 2/n under replacement: n is 20 here)."""
    counts = np.zeros(SCHEMA.shape, dtype=int)
    counts[0, 0, 0, 0] = counts[1, 1, 2, 2] = 10
    tape, events = run(JunctionTree(1.0, unit=unit, theta=1e-3), counts, SCHEMA)
    choices = [event for event in events if event["what"] == "choice of the junction tree"]
    assert [event["rounds"] for event in choices] == [3]
    scales = [asked[2] for asked in tape.asked if asked[0] == "choice"]
    assert scales == [pytest.approx(GRID * scale, rel=1e-3)] * 3


def test_no_budget_chooses_where_no_pair_is_useful() -> None:
    """Then all of it measures single columns."""
    _, events = run(JunctionTree(0.01, unit="replace"), planted(100), SCHEMA)
    assert [event["what"] for event in events] == [*SCHEMA.attrs]


@pytest.mark.parametrize(("unit", "scale"), [("add-remove", 6 * 2 / (0.3 * 0.9)), ("replace", 6 * 4 / 0.3)])
def test_the_dependence_of_all_pairs_costs_its_share(unit: str, scale: float) -> None:
    """Six pairs, each moved by at most 2 rows (4 under replacement), within β of what is left after the number of rows."""
    tape, _ = run(JunctionTree(1.0, unit=unit, selection="laplace"), planted(), SCHEMA)
    place = 1 if unit == "add-remove" else 0
    assert tape.asked[place][1].size == 6
    assert tape.asked[place][2] == pytest.approx(scale)


def test_choosing_needs_less_budget_than_measuring_every_pair() -> None:
    """Twelve columns of a chain at a budget that drowns 66 noisy dependences: the pairs of a chosen tree are nearer the truth."""
    rng = np.random.default_rng(3)
    codes = np.empty((4000, 12), dtype=int)
    codes[:, 0] = rng.integers(0, 2, 4000)
    for axis in range(1, 12):
        codes[:, axis] = codes[:, axis - 1] ^ (rng.random(4000) < 0.15)
    schema = Schema.from_domain({f"c{axis}": 2 for axis in range(12)})

    def error(selection: str, seed: int) -> float:
        method = JunctionTree(0.5, unit="add-remove", selection=selection)
        core = method.fit_counts(codes, schema, draws=Draws.seeded(seed), codes=True).joints[0].core
        gaps = [
            np.abs(core.project(pair) - np.histogram2d(*codes[:, pair].T, bins=2)[0] / 4000).sum() / 2
            for pair in combinations(range(12), 2)
        ]
        return float(np.mean(gaps))

    chosen, measured = (
        np.mean([error(selection, seed) for seed in range(4)]) for selection in ("exponential", "laplace")
    )
    assert chosen < 0.7 * measured


@pytest.mark.parametrize(
    "options", [{"beta": 0}, {"strength": 1.0}, {"theta": -1}, {"selection": "sparse vector"}]
)
def test_bad_options_are_refused(options: dict[str, object]) -> None:
    """At birth."""
    with pytest.raises(ValueError, match=next(iter(options))):
        JunctionTree(1.0, unit="replace", **options)


def test_too_many_columns_are_refused_from_the_schema() -> None:
    """Before the data are opened."""
    wide = Schema.from_domain({f"c{number}": 2 for number in range(201)})
    with pytest.raises(SizeError, match="200 columns"):
        JunctionTree(1.0, unit="replace").fit("no such file", wide)
