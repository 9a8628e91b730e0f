"""Draws of the joint distribution: against brute force, against conjugate answers, and against planted failures."""

import os
import subprocess
import sys
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import dpcipher as dc
from dpcipher.errors import ParameterError, ReleaseError, SizeError, SolveError, WorkloadError
from dpcipher.posteriors import sampler
from dpcipher.posteriors.prior import CONTRAST_SD
from dpcipher.privacy.draws import SeededNoise
from dpcipher.schema.rules.rule import Zero
from dpcipher.tables.domain import Floats
from dpcipher.tables.measurement import Measurement, Noise

TWO = dc.Schema.from_domain({"a": 2, "b": 2})
THREE = dc.Schema.from_domain({"a": 2, "b": 3, "c": 2})
COUNTS = (
    np.random.default_rng(5)
    .multinomial(800, np.random.default_rng(4).dirichlet(np.full(12, 2.0)))
    .reshape(2, 3, 2)
)


def noisy(counts: np.ndarray, scale: float, seed: int, mechanism: str = "laplace") -> np.ndarray:
    """Counts with seeded noise."""
    law = Noise(mechanism, scale)  # type: ignore[arg-type]
    return SeededNoise(seed).add(np.ascontiguousarray(counts).astype(np.int64), law)


def pairs(
    counts: np.ndarray, schema: dc.Schema, scale: float, seed: int = 0
) -> dict[tuple[str, ...], np.ndarray]:
    """All pairs of a table, with noise."""
    tables = {}
    for axes in combinations(range(counts.ndim), 2):
        drop = tuple(axis for axis in range(counts.ndim) if axis not in axes)
        tables[tuple(schema.attrs[axis] for axis in axes)] = noisy(
            counts.sum(axis=drop), scale, seed + sum(axes)
        )
    return tables


def prior_draws(draws: int, rng: np.random.Generator) -> Floats:
    """Two-by-two tables from the stated prior, written out by hand: two contrasts of order 1 and a log odds ratio."""
    one, two = CONTRAST_SD[1] / 2**0.5, CONTRAST_SD[2] / 2
    a, b, ab = (rng.normal(size=(draws, 1, 1)) * scale for scale in (one, one, two))
    sign = np.array([1.0, -1.0])
    scores = a * sign[:, None] / 2**0.5 + b * sign / 2**0.5 + ab * np.outer(sign, sign) / 2
    powers = np.exp(scores)
    return np.asarray(powers / powers.sum(axis=(1, 2), keepdims=True))


def brute_force(
    seen: np.ndarray, n_rows: int, scale: float, draws: int, seed: int
) -> tuple[Floats, Floats, Floats]:
    """Importance sampling of (population, whole table of rows), with multinomial rows and discrete noise.

    The population is proposed from a Dirichlet; its prior density is normal in orthonormal contrasts of the logarithms.
    """
    rng = np.random.default_rng(seed)
    alpha = (1.2 / scale) * np.maximum(seen.ravel(), 1) + 1
    chances = rng.dirichlet(alpha, draws)
    rows = rng.multinomial(n_rows, chances)
    contrasts = np.array([[1, 1, -1, -1], [1, -1, 1, -1], [1, -1, -1, 1]]) / 2
    spread = np.array([CONTRAST_SD[1], CONTRAST_SD[1], CONTRAST_SD[2] / 2])
    logs = np.log(chances)
    prior = -0.5 * ((logs @ contrasts.T / spread) ** 2).sum(axis=1) - logs.sum(axis=1)
    weights = prior - ((alpha - 1) * logs).sum(axis=1) - np.abs(rows - seen.ravel()).sum(axis=1) / scale
    weights = np.exp(weights - weights.max())
    return chances.reshape(-1, 2, 2), rows.reshape(-1, 2, 2) / n_rows, weights / weights.sum()


@pytest.mark.parametrize("scale", [3.0, 12.0])
def test_two_by_two_agrees_with_importance_sampling(scale: float) -> None:
    """Means and spreads of cells, of the population and of the table itself, are those of brute force with whole rows and discrete noise."""
    counts = np.array([[60, 20], [30, 40]])
    seen = noisy(counts, scale, 3)
    release = dc.Release.from_tables({("a", "b"): seen}, TWO, scale=scale, n_rows=150)
    drawn = dc.posterior(release, ("a", "b"), draws=1_500, seed=1)
    chances, own, weights = brute_force(seen, 150, scale, 200_000, 2)
    assert 1 / (weights**2).sum() > 500  # the oracle itself has enough draws
    for ours, theirs in ((drawn.draws, chances), (drawn.table_draws, own)):
        mean = np.einsum("d,dij->ij", weights, theirs)
        spread = np.sqrt(np.einsum("d,dij->ij", weights, (theirs - mean) ** 2))
        assert ours.mean(axis=0) == pytest.approx(mean, abs=0.25 * spread.max())
        assert ours.std(axis=0) == pytest.approx(spread, rel=0.15)


def test_exact_tables_give_the_conjugate_answer() -> None:
    """With no noise and a weak prior, the population of a full table is close to its Dirichlet posterior, and the table is itself."""
    release = dc.Release.from_tables({("a", "b"): np.array([[400, 300], [200, 100]])}, TWO, scale=0)
    drawn = dc.posterior(release, ("a", "b"), draws=2_000, seed=2)
    alpha = np.array([[400, 300], [200, 100]])
    mean, n = alpha / 1_000, 1_000
    assert drawn.draws.mean(axis=0) == pytest.approx(mean, abs=0.002)
    assert drawn.draws.std(axis=0) == pytest.approx(np.sqrt(mean * (1 - mean) / (n + 1)), rel=0.08)
    assert drawn.table_draws == pytest.approx(np.broadcast_to(mean, (2_000, 2, 2)), abs=1e-9)
    assert (drawn.rows == n).all()


def test_the_table_itself_comes_back_from_exact_tables() -> None:
    """`population=False` leaves sampling out: with exact tables nothing is unknown."""
    release = dc.Release.from_tables({("a", "b", "c"): COUNTS}, THREE, scale=0)
    drawn = dc.posterior(release, ("c", "a", "b"), draws=5, seed=0, population=False)
    assert drawn.draws == pytest.approx(
        np.broadcast_to(COUNTS.transpose(2, 0, 1) / 800, (5, 2, 2, 3)), abs=1e-9
    )


def test_exact_and_noisy_tables_mix() -> None:
    """An exact margin stays within a fraction of a row, while the noisy table moves."""
    tables = {
        ("a",): COUNTS.sum((1, 2)),
        ("a", "b"): noisy(COUNTS.sum(2), 8.0, 1),
        ("b", "c"): noisy(COUNTS.sum(0), 8.0, 2),
    }
    release = dc.Release.from_tables(tables, THREE, scale={("a",): 0.0, ("a", "b"): 8.0, ("b", "c"): 8.0})
    drawn = dc.posterior(release, ("a", "b"), draws=200, seed=0, population=False)
    assert drawn.rows == pytest.approx(np.full(200, 800.0))
    assert np.abs(drawn.draws.sum(axis=2) * 800 - COUNTS.sum((1, 2))).max() < 1e-6
    assert (drawn.draws * 800).std(axis=0).max() > 3


def test_exact_tables_inside_noisy_ones_are_sampled() -> None:
    """An exact pair inside a noisy table of three, and a column known well beside them: chains that had to follow the pair to a fraction of a row diverged."""
    schema = dc.Schema.from_domain({"a": 3, "b": 2, "c": 4})
    rng = np.random.default_rng(4)
    counts = rng.multinomial(2_000, rng.dirichlet(np.ones(24))).reshape(3, 2, 4)
    scales = {("a", "b"): 0.0, ("a", "b", "c"): 6.0, ("c",): 1.0}
    tables = {
        ("a", "b"): counts.sum(2),
        ("a", "b", "c"): noisy(counts, 6.0, 1),
        ("c",): noisy(counts.sum((0, 1)), 1.0, 2),
    }
    release = dc.Release.from_tables(tables, schema, scale=scales)
    drawn = dc.posterior(release, ("a", "b", "c"), draws=200, seed=1, population=False)
    assert drawn.report.attempts == 1
    assert np.abs(2_000 * drawn.draws.sum(axis=3) - counts.sum(2)).max() < 1e-6
    known = 2_000 * drawn.draws.sum(axis=(1, 2))
    assert np.abs(known.mean(axis=0) - counts.sum((0, 1))).max() < 6
    assert known.std(axis=0).max() < 2.5


@pytest.mark.parametrize(
    ("tables", "scale", "n_rows"),
    [
        ({("a",): [400, 400], ("a", "b"): [[300, 100], [300, 100]]}, 0.0, 900),
        ({("a",): [500, 300], ("a", "b"): [[300, 100], [300, 100]]}, 0.0, None),
        ({("b",): [500, 300], ("a",): [400, 401]}, 0.0, None),
        ({("a", "b"): [[300, 100], [300, 100]]}, 2.0, 50),
    ],
)
def test_contradictions_are_refused(
    tables: dict[tuple[str, ...], list[int]], scale: float, n_rows: int | None
) -> None:
    """Between exact tables that share a column or the number of rows, and between a public number of rows and what noise can explain."""
    release = dc.Release.from_tables(tables, TWO, scale=scale, n_rows=n_rows)
    with pytest.raises(ReleaseError, match=r"contradict|n_rows"):
        dc.posterior(release, ("a", "b"))


def test_structural_zeros_have_probability_zero() -> None:
    """An impossible cell has probability 0 in every draw, and its noise teaches nothing."""
    schema = dc.Schema(THREE.columns, zeros=(Zero({"a": 0, "b": 2}),))
    counts = COUNTS.copy()
    counts[0, 2] = 0
    tables = pairs(counts, schema, 6.0)
    tables["a", "b"][0, 2] = 10_000  # noise alone may be anything there
    drawn = dc.posterior(dc.Release.from_tables(tables, schema, scale=6.0), ("a", "b", "c"), draws=60, seed=0)
    assert (drawn.draws[:, 0, 2] == 0).all()
    assert (drawn.table_draws[:, 0, 2] == 0).all()
    assert drawn.draws.sum(axis=(1, 2, 3)) == pytest.approx(1)
    assert drawn.draws.mean(axis=0).sum(axis=2) == pytest.approx(counts.sum(2) / counts.sum(), abs=0.04)


def test_other_columns_are_summed_out_and_order_is_as_asked() -> None:
    """Tables with other columns count through their margins; axes come in the order of the names."""
    release = dc.Release.from_tables(pairs(COUNTS, THREE, 2.0), THREE, scale=2.0)
    drawn = dc.posterior(release, ("c", "a"), draws=200, seed=0, population=False)
    assert drawn.columns == ("c", "a")
    assert drawn.schema.attrs == ("c", "a")
    assert drawn.draws.shape == (200, *drawn.schema.shape)
    assert drawn.draws.mean(axis=0) == pytest.approx(COUNTS.sum(1).T / 800, abs=0.02)
    assert drawn.rows.std() > 0
    assert drawn.rows.mean() == pytest.approx(800, abs=15)


def test_several_measurements_sharpen() -> None:
    """Ten sets of the same tables leave about a third of the spread of one."""

    def spread(sets: int) -> float:
        law = Noise("laplace", 20.0)
        tables = [
            dc.Release.from_tables(
                pairs(COUNTS, THREE, 20.0, seed=10 * number), THREE, scale=20.0
            ).measurements
            for number in range(sets)
        ]
        all_sets = tuple(
            Measurement(t.query, t.values, law, number) for number, one in enumerate(tables) for t in one
        )
        release = dc.Release(
            THREE, all_sets, dc.Release.from_tables(pairs(COUNTS, THREE, 20.0), THREE, scale=20.0).statement
        )
        return float(
            dc.posterior(release, ("a", "b"), draws=300, seed=0, population=False).draws.std(axis=0).mean()
        )

    assert 0.2 < spread(10) / spread(1) < 0.55


def test_population_includes_sampling_error() -> None:
    """The spread of the population is that of the table and of multinomial rows together."""
    release = dc.Release.from_tables(pairs(COUNTS, THREE, 4.0), THREE, scale=4.0, n_rows=800)
    drawn = dc.posterior(release, ("a", "b"), draws=1_500, seed=0)
    share = drawn.draws.mean(axis=0)
    expected = np.sqrt(drawn.table_draws.var(axis=0) + share * (1 - share) / 800)
    assert drawn.draws.std(axis=0) == pytest.approx(expected, rel=0.12)


def test_added_interactions_widen_what_no_table_shows() -> None:
    """What the measured tables do not show is named; adding it leaves their margins alone and widens the rest."""
    release = dc.Release.from_tables(pairs(COUNTS, THREE, 1.0), THREE, scale=1.0, n_rows=800)
    plain = dc.posterior(release, THREE.attrs, draws=300, seed=0, population=False)
    wide = dc.posterior(release, THREE.attrs, draws=300, seed=0, population=False, interactions=3)
    named = dc.posterior(
        release, THREE.attrs, draws=100, seed=0, population=False, interactions=[("a", "b", "c")]
    )
    assert plain.assumed == (("a", "b", "c"),)
    assert any("a × b × c" in note for note in plain.notes)
    assert wide.draws.sum(axis=3).mean(axis=0) == pytest.approx(
        plain.draws.sum(axis=3).mean(axis=0), abs=0.01
    )
    assert wide.draws.std(axis=0).mean() > 1.5 * plain.draws.std(axis=0).mean()
    assert named.draws.std(axis=0).mean() > 1.5 * plain.draws.std(axis=0).mean()


def test_a_seed_repeats_the_draws() -> None:
    """Sampling is post-processing, so it may be repeated."""
    release = dc.Release.from_tables(pairs(COUNTS, THREE, 5.0), THREE, scale=5.0)
    first, again, other = (dc.posterior(release, ("a", "b"), draws=20, seed=seed).draws for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


DRAWS_OF_A_WIDE_TABLE = """
import hashlib
import numpy as np
import dpcipher as dc

schema = dc.Schema.from_domain({"a": 18, "b": 9, "c": 3})
counts = np.random.default_rng(1).poisson(30, schema.shape)
tables = {("a", "b"): counts.sum(2), ("a", "c"): counts.sum(1), ("b", "c"): counts.sum(0)}
release = dc.Release.from_tables(tables, schema, scale=10.0)
print(hashlib.sha256(dc.posterior(release, ("a", "b", "c"), draws=20, seed=1).draws).hexdigest())
"""


def test_a_seed_repeats_the_draws_on_any_number_of_cores() -> None:
    """Two threads would add up products in another order, after which chains go other ways."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    found = {
        subprocess.run(
            [sys.executable, "-c", DRAWS_OF_A_WIDE_TABLE],
            env=os.environ | dict.fromkeys(names, str(threads)),
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for threads in (1, 2)
    }
    assert len(found) == 1


def test_chains_that_do_not_agree_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted sampler whose chains never leave their start is an error with advice, never an answer."""

    def stuck(self: sampler.Chains) -> tuple[Floats, Floats, int]:
        return np.ones(len(self.white)), self._value + self.rng.normal(size=len(self.white)), 0

    monkeypatch.setattr(sampler.Chains, "move", stuck)
    release = dc.Release.from_tables(pairs(COUNTS, THREE, 5.0), THREE, scale=5.0)
    with pytest.raises(SolveError, match="R-hat"):
        dc.posterior(release, ("a", "b"), draws=20, seed=0)


def test_what_cannot_be_asked_is_refused() -> None:
    """Unknown columns, no draws, foreign interactions and too many cells are told apart."""
    release = dc.Release.from_tables(pairs(COUNTS, THREE, 5.0), THREE, scale=5.0)
    with pytest.raises(WorkloadError, match="'d'"):
        dc.posterior(release, ("a", "d"))
    with pytest.raises(ParameterError, match="draws"):
        dc.posterior(release, ("a", "b"), draws=0)
    with pytest.raises(WorkloadError, match="interactions"):
        dc.posterior(release, ("a", "b"), interactions=[("a", "c")])
    with pytest.raises(ParameterError, match="interactions"):
        dc.posterior(release, ("a", "b"), interactions=0)
    wide = dc.Schema.from_domain({"a": 200, "b": 200})
    with pytest.raises(SizeError, match="fewer columns"):
        dc.posterior(dc.Release.from_tables({("a", "b"): np.ones((200, 200))}, wide, scale=1.0), ("a", "b"))


def test_calibration_by_simulation() -> None:
    """Ranks of the truth among the draws are uniform when truth, rows and noise come from the model itself (Talts et al. 2018)."""
    rng, ranks = np.random.default_rng(11), []
    for number in range(120):
        truth = prior_draws(1, rng)[0]
        rows = rng.multinomial(400, truth.ravel()).reshape(2, 2)
        release = dc.Release.from_tables({("a", "b"): noisy(rows, 10.0, number)}, TWO, scale=10.0, n_rows=400)
        drawn = dc.posterior(release, ("a", "b"), draws=99, seed=number).draws
        odds = [
            np.log(one[..., 0, 0] / one[..., 0, 1] / one[..., 1, 0] * one[..., 1, 1])
            for one in (drawn, truth)
        ]
        ranks.append([(odds[0] < odds[1]).sum(), (drawn[:, 0, 0] < truth[0, 0]).sum()])
    for quantity in np.array(ranks).T:
        observed = np.histogram(quantity, bins=6, range=(0, 100))[0]
        assert ((observed - 20) ** 2 / 20).sum() < 20.5  # the 99.9 % quantile of χ² with 5 degrees


def test_a_choice_without_a_look_is_not_called_one() -> None:
    """Where `auto` took tables by their size and the noise alone, nothing rests on what the rows look like."""
    rows = pd.DataFrame({"a": [0, 1] * 400, "b": [0, 1, 2, 0] * 200, "c": [0, 0, 1, 1] * 200})
    release = dc.measure(rows, THREE, workload="auto", epsilon=2.0, delta=1e-9, unit="add-remove")
    assert release.statement.certificate["selection"]["rounds"] == 0
    assert dc.posterior(release, ("a", "b"), draws=50, seed=1).notes == ()
