"""modips: shares of the sets, bounds, and the posterior."""

import numpy as np
import pytest
from replaying import run
from test_contract import SCHEMA, planted

from dpcipher.errors import WorkloadError
from dpcipher.methods import Modips
from dpcipher.privacy.draws import Draws
from dpcipher.schema.schema import Schema


@pytest.mark.parametrize("sets", [1, 5])
def test_every_set_has_its_own_noise_and_share(sets: int) -> None:
    """m full tables with noise of scale Δm/ε."""
    tape, events = run(Modips(2.0, unit="replace", sets=sets), planted(), SCHEMA)
    assert [(truth.size, scale) for _, truth, scale in tape.asked] == [(36, 2 * sets / 2.0)] * sets
    assert [event["share"] for event in events] == [str(1) if sets == 1 else f"1/{sets}"] * sets


def test_sets_come_back_as_a_list() -> None:
    """m joints, m tables, all different; a seed repeats all of them."""
    method = Modips(1.0, unit="replace", sets=3).fit_counts(planted(), SCHEMA, draws=Draws.seeded(1))
    assert len(method.joint) == 3
    tables = method.sample(40, seed=2)
    assert [len(table) for table in tables] == [40, 40, 40]
    assert not tables[0].equals(tables[1])
    assert tables[2].equals(method.sample(40, seed=2)[2])


def test_probabilities_follow_the_posterior() -> None:
    """Without noise to speak of, the mean over sets is (α + n)/Σ(α + n), and the spread is that of a Dirichlet."""
    counts, alpha = planted(), 0.5
    method = Modips(10_000.0, unit="replace", sets=400, alpha=alpha).fit_counts(
        counts, SCHEMA, draws=Draws.seeded(1)
    )
    drawn = np.array([joint.core.probabilities for joint in method.joint])
    shape = counts + alpha
    mean = shape / shape.sum()
    deviation = np.sqrt(mean * (1 - mean) / (shape.sum() + 1))
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=5 * deviation.max() / 20)
    np.testing.assert_allclose(drawn.std(axis=0)[counts > 5], deviation[counts > 5], rtol=0.25)


CHAIN = [("a", "b"), ("b", "c"), ("c", "d")]


def test_a_chain_of_tables_costs_its_shares() -> None:
    """Three pairs in each of two sets: noise of scale Δ·6/ε on every one of them."""
    tape, events = run(Modips(2.0, unit="add-remove", sets=2, workload=CHAIN), planted(), SCHEMA)
    assert sorted((truth.size, scale) for _, truth, scale in tape.asked) == [
        (size, 3.0) for size in (4, 4, 6, 6, 9, 9)
    ]
    assert [event["share"] for event in events] == ["1/6"] * 6


def test_the_posterior_of_a_chain_is_a_product_of_dirichlet_laws() -> None:
    """Without noise to speak of: the mean of every pair's conditional is that of its Dirichlet, and columns apart are independent given those between."""
    counts, alpha = planted(2000), 0.5
    method = Modips(20_000.0, unit="replace", sets=200, alpha=alpha, workload=CHAIN).fit_counts(
        counts, SCHEMA, draws=Draws.seeded(1)
    )
    drawn = np.array([joint.core.project((0, 1, 2, 3)) for joint in method.joint])
    np.testing.assert_allclose(drawn.sum(axis=(1, 2, 3, 4)), 1)
    pairs = {
        pair: counts.sum(axis=tuple(a for a in range(4) if a not in pair))
        for pair in ((0, 1), (1, 2), (2, 3))
    }
    expected = np.einsum(
        "ab,bc,cd->abcd",
        pairs[0, 1] / 2000,
        pairs[1, 2] / pairs[1, 2].sum(axis=1, keepdims=True),
        pairs[2, 3] / pairs[2, 3].sum(axis=1, keepdims=True),
    )
    np.testing.assert_allclose(drawn.mean(axis=0), expected, atol=0.004)
    given = drawn[0] / drawn[0].sum(axis=(0, 2, 3), keepdims=True)
    apart = given.sum(axis=(2, 3), keepdims=True) * given.sum(axis=0, keepdims=True)
    np.testing.assert_allclose(given, apart, atol=1e-12)


def test_the_full_table_as_a_workload_is_the_default() -> None:
    """The same draws give the same joint."""
    one, other = (
        Modips(1.0, unit="replace", workload=workload).fit_counts(planted(), SCHEMA, draws=Draws.seeded(1))
        for workload in (None, 4)
    )
    np.testing.assert_array_equal(one.joint.core.probabilities, other.joint.core.probabilities)


@pytest.mark.parametrize(
    ("workload", "words"), [(2, "junction tree"), ([("a", "b"), ("b", "c")], "omits the column 'd'")]
)
def test_tables_without_a_junction_tree_are_refused_before_reading(workload: object, words: str) -> None:
    """All pairs form cycles; and every column must be in some table."""
    with pytest.raises(WorkloadError, match=words):
        Modips(1.0, unit="replace", workload=workload).fit("no such file", SCHEMA)


def test_a_wide_table_that_does_not_fit_is_synthesized_by_its_tables() -> None:
    """Forty columns in a chain: the full table has 2^40 cells."""
    schema = Schema.from_domain({f"c{number}": 2 for number in range(40)})
    codes = np.random.default_rng(1).integers(0, 2, (500, 40))
    chain = [(f"c{number}", f"c{number + 1}") for number in range(39)]
    method = Modips(50.0, unit="replace", workload=chain)
    fitted = method.fit_counts(codes, schema, draws=Draws.seeded(1), codes=True)
    assert fitted.sample(30, seed=1).shape == (30, 40)


@pytest.mark.parametrize("options", [{"sets": 0}, {"alpha": 0.0}, {"alpha": "1"}])
def test_bad_options_are_refused(options: dict[str, object]) -> None:
    """At birth."""
    with pytest.raises(ValueError, match=next(iter(options))):
        Modips(1.0, unit="replace", **options)
