"""The simple methods, and equalities between methods that theory demands."""

import numpy as np
import pytest
from replaying import run
from test_contract import SCHEMA, planted

from dpcipher.errors import NotPrivate, SizeError
from dpcipher.methods import Cipher, FullHistogram, Independent, Modips, Uniform
from dpcipher.privacy.draws import Draws, SeededNoise
from dpcipher.schema.schema import Schema
from dpcipher.tables.measurement import Measurement, Noise
from dpcipher.tables.query import Query
from release.measured import reconcile


def probabilities(method, counts: np.ndarray, seed: int = 1) -> np.ndarray:
    """The fitted joint of a seeded fit."""
    return method.fit_counts(counts, SCHEMA, draws=Draws.seeded(seed)).joint.core.probabilities


def test_full_histogram_is_noise_clip_normalise() -> None:
    """Exactly the recorded noisy counts, clipped and divided by their sum; noise of scale Δ/ε."""
    tape, _ = run(FullHistogram(0.5, unit="replace"), planted(), SCHEMA)
    assert [(truth.size, scale) for _, truth, scale in tape.asked] == [(36, 4.0)]
    kept = np.maximum(tape.answers[0], 0).reshape(SCHEMA.shape)
    np.testing.assert_allclose(tape.fitted.joint.core.probabilities, kept / kept.sum())


def test_cipher_on_the_full_table_with_the_paper_engine_is_the_full_histogram() -> None:
    """With Q = {all columns} Algorithm 1 has nothing to solve: the same noise gives the same joint."""
    ours = Cipher(0.5, unit="replace", workload=[SCHEMA.attrs], engine="paper")
    np.testing.assert_allclose(
        probabilities(ours, planted()),
        probabilities(FullHistogram(0.5, unit="replace"), planted()),
        rtol=1e-12,
        atol=1e-15,
    )


def test_independent_is_the_product_of_the_margins() -> None:
    """Without noise to speak of."""
    counts = planted()
    expected = np.ones(SCHEMA.shape)
    for axis, size in enumerate(SCHEMA.shape):
        margin = counts.sum(axis=tuple(other for other in range(4) if other != axis)) / counts.sum()
        expected = expected * margin.reshape([size if other == axis else 1 for other in range(4)])
    fitted = probabilities(Independent(10_000.0, unit="replace"), counts)
    np.testing.assert_allclose(fitted, expected, atol=1e-12)


def test_cipher_on_one_way_tables_is_independence() -> None:
    """The special case that the paper names: with all one-way tables the joint is their product."""
    ours = Cipher(10_000.0, unit="replace", workload=1)
    theirs = Independent(10_000.0, unit="replace")
    np.testing.assert_allclose(probabilities(ours, planted()), probabilities(theirs, planted()), atol=1e-4)


def test_uniform_is_uniform_and_buys_only_the_rows() -> None:
    """One question under add-remove, none under replacement."""
    np.testing.assert_allclose(probabilities(Uniform(1.0, unit="replace"), planted()), 1 / 36)
    assert len(run(Uniform(1.0, unit="add-remove"), planted(), SCHEMA)[0].asked) == 1
    assert run(Uniform(1.0, unit="replace"), planted(), SCHEMA)[0].asked == []


def test_cipher_recovers_its_tables_as_the_budget_grows() -> None:
    """All pairs of the planted table, to rounding."""
    counts = planted()
    fitted = probabilities(Cipher(5000.0, unit="replace"), counts)
    for pair in [(0, 1), (0, 2), (1, 3), (2, 3)]:
        drop = tuple(axis for axis in range(4) if axis not in pair)
        assert np.abs(fitted.sum(axis=drop) - counts.sum(axis=drop) / 400).sum() / 2 < 0.005


def test_cipher_splits_by_weights_and_sets() -> None:
    """Weights 1:2:…, two sets: each table's noise follows its share, and there are two joints."""
    tables = [("a", "b"), ("c", "d")]
    method = Cipher(3.0, unit="add-remove", workload=tables, weights={("a", "b"): 1, ("d", "c"): 2}, sets=2)
    tape, events = run(method, planted(), SCHEMA)
    assert [event["share"] for event in events] == ["1/6", "1/3"] * 2
    assert [scale for _, _, scale in tape.asked] == [2.0, 1.0] * 2
    assert len(tape.fitted.joint) == 2
    assert tape.fitted.release.sets == 2


def test_a_seeded_release_cannot_be_saved(tmp_path) -> None:
    """Cipher's release of an experiment is stamped, and refuses to become a file."""
    method = Cipher(1.0, unit="replace").fit_counts(planted(), SCHEMA, draws=Draws.seeded(1))
    with pytest.raises(NotPrivate):
        method.release.save(tmp_path / "x.release.parquet")


@pytest.mark.parametrize("options", [{"engine": "magic"}, {"sets": 0}, {"mechanism": "gaussian"}])
def test_bad_cipher_options_are_refused(options: dict[str, object]) -> None:
    """At birth; gaussian noise needs a delta."""
    with pytest.raises(ValueError, match=f"{next(iter(options))}|delta"):
        Cipher(1.0, unit="replace", **options)


def test_large_schemas_are_refused_from_the_schema() -> None:
    """Methods that hold the full table say so before the data are opened."""
    schema = Schema.from_domain({f"c{number}": 100 for number in range(9)})
    for method in (FullHistogram, Modips):
        with pytest.raises(SizeError, match="cells"):
            method(1.0, unit="replace").fit("no such file", schema)


def hay(levels: list[np.ndarray]) -> np.ndarray:
    """Hay et al. (2010), theorem 3: two passes over a binary tree of noisy counts; returns the consistent leaves."""
    depth = len(levels)
    upward = [level.astype(float) for level in levels]
    for place in range(depth - 2, -1, -1):
        height = depth - place
        own, below = (
            (2**height - 2 ** (height - 1)) / (2**height - 1),
            (2 ** (height - 1) - 1) / (2**height - 1),
        )
        upward[place] = own * levels[place] + below * upward[place + 1].reshape(-1, 2).sum(axis=1)
    final = [upward[0]]
    for place in range(1, depth):
        excess = final[-1] - upward[place].reshape(-1, 2).sum(axis=1)
        final.append(upward[place] + np.repeat(excess, 2) / 2)
    return final[-1]


def test_hierarchical_consistency_is_a_case_of_reconcile() -> None:
    """A binary tree over eight leaves is the nested tables (), a, a×b, a×b×c; both give the same leaves."""
    rng = np.random.default_rng(6)
    leaves = rng.integers(0, 100, 8)
    true = [leaves.reshape(-1, 2**height).sum(axis=1) for height in (3, 2, 1, 0)]
    noise = SeededNoise(3)
    law = Noise("laplace", 5.0)
    noisy = [noise.add(level.astype(np.int64), law) for level in true]
    tables = [
        Measurement(Query(tuple(range(depth))), level.reshape((2,) * depth), law)
        for depth, level in enumerate(noisy)
    ]
    ours = reconcile((2, 2, 2), tables).table((0, 1, 2))
    np.testing.assert_allclose(ours.ravel(), hay(noisy), atol=1e-9)
