"""Structural zeros inside measured tables: draws against brute force, with one measurement and several, and models on them."""

import numpy as np
import pytest

import dpcipher as dc
from dpcipher.posteriors.evidence import gather
from dpcipher.posteriors.log_linear import LogLinear
from dpcipher.posteriors.pair_sums import PairSums
from dpcipher.posteriors.prior import CONTRAST_SD
from dpcipher.privacy.draws import SeededNoise
from dpcipher.schema.rules.rule import Zero
from dpcipher.tables.domain import Floats
from dpcipher.tables.measurement import Measurement, Noise
from dpcipher.tables.query import Query

SCHEMA = dc.Schema(dc.Schema.from_domain({"a": 2, "b": 3}).columns, zeros=(Zero({"a": 0, "b": 2}),))
COUNTS = np.array([[14, 6, 0], [5, 3, 12]])
POSSIBLE = np.array([[True, True, False], [True, True, True]])
N_ROWS = int(COUNTS.sum())


def measured(*scales: float) -> list[tuple[Floats, float]]:
    """The table with noise of every scale; on the impossible cell, noise that nobody would draw."""
    readings = []
    for number, scale in enumerate(scales):
        counts = SeededNoise(number).add(COUNTS, Noise("laplace", scale)).astype(np.int64)
        counts[0, 2] = 400
        readings.append((counts, scale))
    return readings


def release_of(readings: list[tuple[Floats, float]]) -> dc.Release:
    """A release that measured the table several times."""
    tables = [
        Measurement(Query((0, 1)), counts, Noise("laplace", scale), number)
        for number, (counts, scale) in enumerate(readings)
    ]
    first = dc.Release.from_tables({("a", "b"): readings[0][0]}, SCHEMA, scale=1.0, n_rows=N_ROWS)
    return dc.Release(SCHEMA, tuple(tables), first.statement)


def prior_draws(draws: int, rng: np.random.Generator) -> Floats:
    """Tables from the stated prior, written out: centred normal effects of a, of b and of both, and no row where none can be."""
    a = rng.normal(size=(draws, 2, 1)) * CONTRAST_SD[1] / 2**0.5
    b = rng.normal(size=(draws, 1, 3)) * CONTRAST_SD[1] / 2**0.5
    both = rng.normal(size=(draws, 2, 3)) * CONTRAST_SD[2] / 2
    both = both - both.mean(axis=1, keepdims=True)
    both = both - both.mean(axis=2, keepdims=True)
    scores = a - a.mean(axis=1, keepdims=True) + b - b.mean(axis=2, keepdims=True) + both
    powers = np.where(POSSIBLE, np.exp(scores), 0.0)
    return np.asarray(powers / powers.sum(axis=(1, 2), keepdims=True))


@pytest.mark.parametrize("scales", [(3.0,), (6.0, 6.0, 6.0)])
def test_a_table_with_a_zero_agrees_with_brute_force(scales: tuple[float, ...]) -> None:
    """Population and table have the means and spreads of prior draws with whole rows, weighted by the noise on the possible cells alone."""
    readings, rng = measured(*scales), np.random.default_rng(3)
    drawn = dc.posterior(release_of(readings), ("a", "b"), draws=6_000, seed=1)
    chances = prior_draws(400_000, rng)
    rows = rng.multinomial(N_ROWS, chances.reshape(-1, 6)).reshape(-1, 2, 3)
    logs = -sum(np.abs(rows - counts)[:, POSSIBLE].sum(axis=1) / scale for counts, scale in readings)
    weights = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
    assert 1 / (weights**2).sum() > 1_000
    for ours, theirs in ((drawn.draws, chances), (drawn.table_draws, rows / N_ROWS)):
        mean = np.einsum("d,dij->ij", weights, theirs)
        spread = np.sqrt(np.einsum("d,dij->ij", weights, (theirs - mean) ** 2))[POSSIBLE]
        assert (ours[:, 0, 2] == 0).all()
        assert ours.mean(axis=0)[POSSIBLE] == pytest.approx(mean[POSSIBLE], abs=0.1 * spread.max())
        assert ours.std(axis=0)[POSSIBLE] == pytest.approx(spread, rel=0.15)


def test_every_sum_has_the_noise_of_its_own_cells() -> None:
    """Of five cells that can be, one level of a sums two and the other three: spreads and precisions are those of least squares."""
    counts, noise = np.where(POSSIBLE, 1_000, 0), Noise("gaussian", 20.0)
    stated = dc.Release.from_tables({("a", "b"): counts}, SCHEMA, scale=1.0).statement
    release = dc.Release(SCHEMA, (Measurement(Query((0, 1)), counts, noise),), stated)
    drawn = dc.posterior(release, "a", draws=2_000, seed=4, population=False)
    spread = (drawn.draws * drawn.rows[:, None]).std(axis=0)
    assert spread == pytest.approx(20 * np.sqrt([2, 3]), rel=0.07)
    assert release.std_error("a").values == pytest.approx(20 * np.sqrt([2, 3]))
    assert gather(release, (0,)).tables[0].law.variance.tolist() == [800, 1_200]


def test_pairs_of_a_table_with_uneven_sums_are_drawn_from_uncorrelated_sums() -> None:
    """A table of four columns with zeros, one of them summed out: its sums over pairs have one variance, whatever each cell sums."""
    schema = dc.Schema(
        dc.Schema.from_domain({"a": 2, "b": 3, "c": 2, "d": 3}).columns,
        zeros=(Zero({"a": 0, "d": 2}), Zero({"b": 1, "c": 1, "d": 0})),
    )
    counts = np.where(schema.domain.possible((0, 1, 2, 3)), 200, 0)
    release = dc.Release.from_tables({tuple("abcd"): counts}, schema, scale=4.0)
    evidence = gather(release, (0, 1, 2))
    sums = PairSums(LogLinear(evidence.levels, ((0, 1), (0, 2), (1, 2)), evidence.possible), evidence)
    assert len(np.unique(evidence.tables[0].law.variance)) == 3
    noise = (
        np.random.default_rng(3).normal(size=(20_000, 12)) * evidence.tables[0].law.variance.ravel() ** 0.5
    )
    assert np.cov(sums.sums(noise).T) == pytest.approx(np.diag(sums.variance), abs=0.06 * sums.variance.max())
