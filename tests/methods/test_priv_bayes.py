"""PrivBayes: its degree, its candidates, its noise, and what it recovers."""

import math
from itertools import combinations

import numpy as np
import pytest
from replaying import run
from test_contract import SCHEMA, planted

from dpcipher.errors import DpcipherWarning, ParameterError
from dpcipher.methods import PrivBayes
from dpcipher.methods.scores import GRID, degree_within, maximal_parents
from dpcipher.privacy.draws import Draws
from dpcipher.schema.schema import Schema

BINARY = Schema.from_domain(dict.fromkeys("abcdef", 2))


def chain(columns: int, levels: int, keep: float, n_rows: int) -> np.ndarray:
    """Counts of a Markov chain: every column repeats the one before with probability `keep`."""
    step = np.full((levels, levels), (1 - keep) / (levels - 1))
    np.fill_diagonal(step, keep)
    joint = np.full(levels, 1 / levels)
    for _ in range(columns - 1):
        joint = joint[..., :, None] * step
    return np.rint(n_rows * joint).astype(int)


@pytest.mark.filterwarnings("ignore::dpcipher.errors.DpcipherWarning")
@pytest.mark.parametrize("n_rows", [50, 500, 5000, 50_000])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_the_degree_of_a_binary_network_is_the_published_one(n_rows: int, epsilon: float) -> None:
    """The largest k with n·ε₂/((d−k)·2^(k+2)) ≥ θ; then d−k tables of k+1 columns with noise 2(d−k)/ε₂."""
    counts = np.random.default_rng(1).multinomial(n_rows, np.full(64, 1 / 64)).reshape((2,) * 6)
    tape, _ = run(PrivBayes(epsilon, unit="replace"), counts, BINARY)
    second = 0.7 * epsilon
    # The rule is stated for the Laplace scale; discrete Laplace noise has very nearly the same, so stay off the edge.
    k = max([0, *(k for k in range(1, 6) if n_rows * second / ((6 - k) * 2 ** (k + 2)) >= 4)])
    edge = min(abs(n_rows * second / ((6 - k) * 2 ** (k + 2)) - 4) for k in range(1, 6))
    tables = [(truth.size, scale) for kind, truth, scale in tape.asked if kind == "laplace"]
    choices = [scale for kind, _, scale in tape.asked if kind == "choice"]
    assert edge > 0.1
    if k == 0:
        assert choices == []
        assert tables == [(2, pytest.approx(2 * 6 / epsilon))] * 6
    else:
        assert tables == [(2 ** (k + 1), pytest.approx(2 * (6 - k) / second))] * (6 - k)
        assert choices == [pytest.approx(2 * GRID * 5 / (0.3 * epsilon))] * 5


def test_general_tables_are_useful() -> None:
    """No measured table of several columns has a mean count below θ scales of its noise (2d/ε₂ under replacement)."""
    counts = planted(20_000)
    tape, _ = run(PrivBayes(1.0, unit="replace", score="R"), counts, SCHEMA)
    tables = [(truth.size, scale) for kind, truth, scale in tape.asked if kind == "laplace"]
    assert [scale for _, scale in tables] == [pytest.approx(2 * 4 / 0.7)] * 4
    assert all(20_000 / size >= 4 * scale * 0.999 for size, scale in tables)
    assert max(size for size, _ in tables) > 9  # and some table has more than two columns


def test_maximal_parents_are_those_of_brute_force() -> None:
    """Every set that fits and cannot take another column, over random sizes and limits."""
    rng = np.random.default_rng(2)
    for _ in range(60):
        shape = rng.integers(1, 6, size=5).tolist()
        cells, most = float(rng.integers(1, 80)), int(rng.integers(1, 5))
        fitting = [
            set_
            for size in range(most + 1)
            for set_ in combinations(range(5), size)
            if math.prod(shape[axis] for axis in set_) <= cells
        ]
        expected = {set_ for set_ in fitting if not any(set(set_) < set(other) for other in fitting)}
        assert set(maximal_parents(range(5), shape, cells, most)) == expected


def test_the_search_is_bounded() -> None:
    """The degree shrinks as columns grow, and is never below what all pairs need for fifty columns."""
    assert degree_within(4, 5000) == 3
    assert degree_within(14, 5000) >= 3
    assert degree_within(50, 5000) >= 1
    assert degree_within(139, 5000) == 1
    assert degree_within(141, 5000) == 0


@pytest.mark.parametrize(
    ("columns", "levels", "score"), [(6, 2, "F"), (6, 2, "R"), (6, 2, "I"), (4, 3, "R"), (4, 3, "I")]
)
def test_a_markov_chain_is_recovered(columns: int, levels: int, score: str) -> None:
    """With a large budget the joint of a planted chain comes back."""
    counts = chain(columns, levels, 0.8, 50_000)
    schema = Schema.from_domain({f"c{number}": levels for number in range(columns)})
    method = PrivBayes(200.0, unit="replace", score=score).fit_counts(counts, schema, draws=Draws.seeded(3))
    assert np.abs(method.joint.core.probabilities - counts / counts.sum()).sum() / 2 < 0.01


def test_bad_scores_are_refused() -> None:
    """F is for binary columns, I for a public number of rows, and others do not exist."""
    with pytest.raises(ParameterError, match="score"):
        PrivBayes(1.0, unit="replace", score="F").fit_counts(planted(), SCHEMA, draws=Draws.seeded(1))
    with pytest.raises(ValueError, match="replace"):
        PrivBayes(1.0, unit="add-remove", score="I")
    with pytest.raises(ParameterError, match="score"):
        PrivBayes(1.0, unit="replace", score="X")
    with pytest.raises(ParameterError, match="beta"):
        PrivBayes(1.0, unit="replace", beta=1.0)
    with pytest.raises(ParameterError, match="theta"):
        PrivBayes(1.0, unit="replace", theta=0)


def test_the_binary_form_costs_one_table_less_for_every_parent() -> None:
    """Replay counts the tables: d − k, the first of them standing for k + 1 columns."""
    counts = chain(6, 2, 0.9, 5000)
    _, events = run(PrivBayes(1.0, unit="add-remove"), counts, BINARY)
    measured = [event["what"] for event in events if "×" in str(event["what"])]
    degree = measured[0].count("×")
    assert len(measured) == 6 - degree


def test_a_table_with_very_many_columns_is_taken_as_independent() -> None:
    """No parents can be chosen among so many, so every column is measured alone with its full share."""
    schema = Schema.from_domain({f"c{number}": 2 for number in range(150)})
    codes = np.random.default_rng(1).integers(0, 2, (300, 150))
    with pytest.warns(DpcipherWarning, match=r"nothing is known of c0, c35, c44 and 10 more"):
        method = PrivBayes(1.0, unit="replace").fit_counts(codes, schema, draws=Draws.seeded(1), codes=True)
    assert [event["share"] for event in method.statement.certificate["events"]] == ["1/150"] * 150
    assert method.sample(20, seed=1).shape == (20, 150)
