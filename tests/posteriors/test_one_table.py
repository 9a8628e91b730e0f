"""One noisy table of all columns: sums over true counts against sums written out, and draws against brute force and the general way."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.special import gammaln
from scipy.stats import dlaplace, poisson

import dpcipher as dc
from dpcipher.posteriors import posterior as posterior_module
from dpcipher.posteriors import sampler
from dpcipher.posteriors.evidence import gather
from dpcipher.posteriors.log_linear import LogLinear
from dpcipher.posteriors.one_table import OneTableTarget, one_table
from dpcipher.posteriors.pair_sums import PairSums
from dpcipher.posteriors.prior import CONTRAST_SD
from dpcipher.posteriors.whole_counts import WholeCounts
from dpcipher.privacy.draws import SeededNoise
from dpcipher.schema.rules.rule import Zero
from dpcipher.tables.domain import Floats
from dpcipher.tables.measurement import Noise

TWO = dc.Schema.from_domain({"a": 2, "b": 2})
THREE = dc.Schema.from_domain({"a": 2, "b": 3, "c": 2})
COUNTS = np.random.default_rng(5).multinomial(400, np.full(12, 1 / 12)).reshape(2, 3, 2)


def noisy(counts: Floats, scale: float, seed: int) -> Floats:
    """Counts with seeded Laplace noise."""
    return SeededNoise(seed).add(np.asarray(counts).astype(np.int64), Noise("laplace", scale))


@pytest.mark.parametrize("name", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [0.3, 2.0])
@pytest.mark.parametrize("cells", [1, 2, 7])
def test_summed_noise_has_the_law_of_the_sum(name: str, scale: float, cells: int) -> None:
    """The law is that of convolving one cell's with itself, written out over whole numbers, and its variance is exact."""
    size = np.arange(-200, 201)
    one = np.exp(-np.abs(size) / scale) if name == "laplace" else np.exp(-0.5 * (size / scale) ** 2)
    law = one / one.sum()
    for _ in range(cells - 1):
        law = np.convolve(law, one / one.sum(), mode="same")
    noise = WholeCounts(np.zeros(1), Noise(name, scale), cells)  # type: ignore[arg-type]
    likely = int((law[200:] > 1e-11).sum())
    ours = noise.log_law[:likely]
    assert ours == pytest.approx(np.log(law[200 : 200 + likely] / law[200]), abs=1e-3)
    assert noise.variance == pytest.approx(float(law @ size**2), rel=1e-6)
    assert (np.diff(noise.log_law) < 0).all()


@pytest.mark.parametrize("scale", [0.14, 1.0, 6.0])
def test_counts_are_summed_out_exactly(scale: float) -> None:
    """Value and derivative are those of Poisson and Laplace chances summed over all counts, also for noisy counts below 0."""
    seen = np.array([-9.0, -1.0, 0.0, 1.0, 7.0, 130.0])
    counts = WholeCounts(seen, Noise("laplace", scale), 1)
    for rate in (1e-5, 0.01, 0.4, 3.3, 20.0, 160.0):
        value, slope = counts(np.full((1, len(seen)), np.log(rate)))
        true = np.arange(2_000)
        joint = poisson.pmf(true, rate) * np.exp(-np.abs(seen[:, None] - true) / scale)
        chance = joint.sum(axis=1)
        certain = chance > 1e-14
        assert (value[0] - rate)[certain] == pytest.approx(np.log(chance[certain]), abs=1e-4)
        assert slope[0, certain] == pytest.approx(joint[certain] @ true / chance[certain], abs=1e-3, rel=1e-4)


def test_true_counts_are_drawn_from_their_law() -> None:
    """Draws of the count behind a noisy one have the chances of Bayes' rule."""
    counts = WholeCounts(np.array([4.0, -2.0]), Noise("laplace", 1.5), 1)
    drawn = counts.draw(np.log(np.full((40_000, 2), 3.0)), np.random.default_rng(1))
    true = np.arange(60)
    for cell, seen in enumerate((4, -2)):
        chance = poisson.pmf(true, 3.0) * np.exp(-np.abs(seen - true) / 1.5)
        found = np.bincount(drawn[:, cell].astype(int), minlength=60) / len(drawn)
        assert found == pytest.approx(chance / chance.sum(), abs=0.01)


def make_target(schema: dc.Schema, counts: Floats, scale: float, **rows: int) -> OneTableTarget | None:
    """The target of a full table."""
    release = dc.Release.from_tables({schema.attrs: counts}, schema, scale=scale, **rows)
    evidence = gather(release, tuple(range(len(schema.attrs))))
    return one_table(evidence, LogLinear(evidence.levels, tuple(evidence.measured), evidence.possible))


@pytest.mark.parametrize("rows", [{}, {"n_rows": 400}])
def test_the_gradient_is_the_slope_of_the_potential(rows: dict[str, int]) -> None:
    """Against finite differences, with and without a public number of rows, with a structural zero."""
    schema = dc.Schema(THREE.columns, zeros=(Zero({"a": 0, "b": 2}),))
    target = make_target(schema, noisy(COUNTS, 2.0, 1), 2.0, **rows)
    assert target is not None
    point = 0.3 * np.random.default_rng(2).normal(size=target.size)
    if not rows:
        point[-1] = np.log(380)
    size = float(np.linalg.norm(target(point[None])[1]))
    wrong = check_grad(lambda x: target(x[None])[0][0], lambda x: target(x[None])[1][0], point, epsilon=1e-5)
    assert wrong < 1e-3 * size


def test_it_is_taken_where_one_table_says_everything() -> None:
    """Several tables, fractions, and noise above the chance of the rows, go the general way."""
    whole = noisy(COUNTS, 2.0, 1)
    assert make_target(THREE, whole, 2.0) is not None
    assert make_target(THREE, whole, 2.0, n_rows=400) is not None
    assert make_target(THREE, whole, 5.0) is None
    assert make_target(THREE, whole, 5.0, n_rows=400) is None
    assert make_target(THREE, whole + 0.5, 2.0) is None
    tables = {("a", "b", "c"): whole, ("a", "b"): whole.sum(axis=2)}
    evidence = gather(dc.Release.from_tables(tables, THREE, scale=2.0), (0, 1, 2))
    assert one_table(evidence, LogLinear(evidence.levels, ((0, 1, 2),), evidence.possible)) is None


def brute_force(seen: Floats, scale: float) -> tuple[Floats, Floats, Floats]:
    """Importance sampling of (population, table): tables from the noise around the counts, then gamma rates around each table."""
    rng, draws = np.random.default_rng(8), 400_000
    rows = seen.ravel() + dlaplace.rvs(1 / scale, size=(draws, 4), random_state=rng)
    rates = np.maximum(rng.gamma(np.maximum(rows, 0) + 0.5), 1e-30)
    total = rates.sum(axis=1)
    logs = np.log(rates / total[:, None])
    contrasts = np.array([[1, 1, -1, -1], [1, -1, 1, -1], [1, -1, -1, 1]]) / 2
    spread = np.array([CONTRAST_SD[1], CONTRAST_SD[1], CONTRAST_SD[2] / 2])
    # Flat in the number of rows, normal in contrasts of the logarithms: the rates have that density times total / (their product).
    prior = (
        -0.5 * ((logs @ contrasts.T / spread) ** 2).sum(axis=1) + np.log(total) - np.log(rates).sum(axis=1)
    )
    poisson_to_gamma = (
        0.5 * np.log(rates) + gammaln(np.maximum(rows, 0) + 0.5) - gammaln(np.maximum(rows, 0) + 1)
    )
    weights = np.where((rows >= 0).all(axis=1), prior + poisson_to_gamma.sum(axis=1), -np.inf)
    weights = np.exp(weights - weights.max())
    return rates / total[:, None], rows / np.maximum(rows.sum(axis=1), 1)[:, None], weights / weights.sum()


@pytest.mark.parametrize("scale", [0.2, 1.2])
def test_draws_agree_with_importance_sampling(scale: float) -> None:
    """Means and spreads of the population and of the table itself, with few rows, one cell empty, and an unknown number of rows."""
    seen = noisy(np.array([[14, 3], [9, 0]]), scale, 3)
    drawn = dc.posterior(
        dc.Release.from_tables({("a", "b"): seen}, TWO, scale=scale), TWO.attrs, draws=3_000, seed=1
    )
    chances, own, weights = brute_force(seen, scale)
    assert 1 / (weights**2).sum() > 1_000  # the oracle itself has enough draws
    for ours, theirs in ((drawn.draws, chances), (drawn.table_draws, own)):
        mean = weights @ theirs
        spread = np.sqrt(weights @ (theirs - mean) ** 2)
        assert ours.mean(axis=0).ravel() == pytest.approx(mean, abs=0.2 * max(spread.max(), 0.01))
        assert ours.std(axis=0).ravel() == pytest.approx(spread, rel=0.15, abs=0.003)


def test_both_ways_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where either way can be taken, they have the same draws but for chance."""
    release = dc.Release.from_tables({THREE.attrs: noisy(COUNTS, 3.0, 4)}, THREE, scale=3.0)

    def moments() -> tuple[Floats, Floats, Floats]:
        drawn = dc.posterior(release, THREE.attrs, draws=1_500, seed=1)
        return drawn.draws.mean(axis=0), drawn.draws.std(axis=0), drawn.table_draws.std(axis=0)

    ours = moments()
    monkeypatch.setattr(posterior_module, "one_table", lambda *_: None)
    general = moments()
    assert ours[0] == pytest.approx(general[0], abs=0.25 * general[1].mean())
    assert ours[1].mean() == pytest.approx(general[1].mean(), rel=0.1)
    assert ours[2].mean() == pytest.approx(general[2].mean(), rel=0.1)


def test_nearly_exact_tables_are_the_table_itself() -> None:
    """With hardly any noise the draws are those of exact counts: the table itself to a row, and its sampling error."""
    release = dc.Release.from_tables({THREE.attrs: COUNTS}, THREE, scale=0.05)
    drawn = dc.posterior(release, THREE.attrs, draws=1_000, seed=1)
    exact = dc.posterior(
        dc.Release.from_tables({THREE.attrs: COUNTS}, THREE, scale=0), THREE.attrs, draws=1_000, seed=1
    )
    assert np.abs(400 * drawn.table_draws - COUNTS).max() < 1.5
    assert drawn.rows == pytest.approx(np.full(1_000, 400.0), abs=5)
    assert drawn.draws.mean(axis=0) == pytest.approx(exact.draws.mean(axis=0), abs=0.003)
    assert drawn.draws.std(axis=0) == pytest.approx(exact.draws.std(axis=0), rel=0.12)


def make_pair_sums(schema: dc.Schema, counts: Floats, scale: float) -> PairSums:
    """What a noisy full table says about its pairs."""
    evidence = gather(dc.Release.from_tables({schema.attrs: counts}, schema, scale=scale), (0, 1, 2))
    model = LogLinear(evidence.levels, tuple(combinations(range(3), 2)), evidence.possible)
    return PairSums(model, evidence)


@pytest.mark.parametrize("zeros", [(), (Zero({"a": 0, "b": 2}),)])
def test_sums_know_every_pair_and_nothing_else(zeros: tuple[Zero, ...]) -> None:
    """Tables with the same pairs have the same sums, others have others; noise stays uncorrelated, of the same variance."""
    schema = dc.Schema(THREE.columns, zeros=zeros)
    pairs = make_pair_sums(schema, noisy(COUNTS, 2.0, 1), 2.0)
    possible = pairs.model.possible
    table = np.where(possible, COUNTS, 0.0)
    parity = np.zeros((2, 3, 2))
    parity[:, :2] = np.array([1, -1])[:, None, None] * np.array([1, -1])[:, None] * np.array([1, -1])
    moved = table.copy()
    moved[0, 0, 0] += 1
    same, other = (pairs.sums(cells.reshape(1, -1)) for cells in (table + parity, moved))
    assert same == pytest.approx(pairs.sums(table.reshape(1, -1)), abs=1e-9)
    assert np.abs(other - same).max() > 0.1
    noise = np.random.default_rng(3).normal(size=(20_000, possible.size)) * possible.ravel()
    assert np.cov(pairs.sums(noise).T) == pytest.approx(np.eye(len(pairs.seen)), abs=0.05)
    assert len(pairs.seen) == 10 - len(
        zeros
    )  # a total, 4 contrasts of columns, 5 of pairs; less the empty cell of one
    slopes = np.random.default_rng(4).normal(size=(1, len(pairs.seen)))
    assert float((pairs.back(slopes) * table.ravel()).sum()) == pytest.approx(
        float((slopes * pairs.sums(table.reshape(1, -1))).sum())
    )


def test_sums_of_nearly_empty_cells_are_not_blurred(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three of five cells are empty, no pair of levels is: the rows by level stay near those of the noisy table, from which cells alone would draw them away."""
    schema = dc.Schema.from_domain({"a": 5, "b": 5, "c": 5})
    a, b, c = np.indices(schema.shape)
    counts = np.where((a + b + c) % 5 < 2, np.array([60, 30, 12, 6, 6])[a], 0)
    seen = noisy(counts, 3.0, 2)
    release = dc.Release.from_tables({schema.attrs: seen}, schema, scale=3.0)
    noise_sd = (25 * Noise("laplace", 3.0).variance) ** 0.5

    def furthest() -> float:
        """How far the rows by level of the first column are from the noisy table's own, in their noise."""
        drawn = dc.posterior(release, schema.attrs, draws=200, seed=1, population=False)
        rows = (drawn.draws.sum(axis=(2, 3)) * counts.sum()).mean(axis=0)
        return float(np.abs(rows - seen.sum(axis=(1, 2))).max() / noise_sd)

    assert furthest() < 1.7
    monkeypatch.setattr(posterior_module, "_with_pairs_cut_off", lambda drawn, *_: drawn)
    assert furthest() > 3.0


def test_other_columns_are_summed_out() -> None:
    """Two columns of a table of three have the noise of the sum, and its own law."""
    release = dc.Release.from_tables({THREE.attrs: noisy(COUNTS, 1.0, 6)}, THREE, scale=1.0)
    drawn = dc.posterior(release, ("c", "a"), draws=1_000, seed=1, population=False)
    noise_sd = (3 * Noise("laplace", 1.0).variance) ** 0.5
    assert drawn.draws.mean(axis=0) * 400 == pytest.approx(COUNTS.sum(axis=1).T, abs=4 * noise_sd)
    assert 0.5 * noise_sd < (drawn.draws * drawn.rows[:, None, None]).std(axis=0).mean() < 1.3 * noise_sd


def test_impossible_cells_stay_empty() -> None:
    """A structural zero has no rows in any draw, whatever its noise was."""
    schema = dc.Schema(THREE.columns, zeros=(Zero({"a": 0, "b": 2}),))
    counts = noisy(COUNTS, 2.0, 1)
    counts[0, 2] = 500
    release = dc.Release.from_tables({schema.attrs: counts}, schema, scale=2.0)
    drawn = dc.posterior(release, schema.attrs, draws=100, seed=0)
    assert (drawn.draws[:, 0, 2] == 0).all()
    assert (drawn.table_draws[:, 0, 2] == 0).all()
    assert drawn.rows.mean() < counts.sum() - 900


def test_the_checks_that_are_told_are_those_of_every_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs are drawn by chains of their own beside one table of three columns: each figure is the worse of the two."""
    reports = []

    def watched(*args: Any, **options: Any) -> sampler.Sampled:
        sampled = sampler.sample(*args, **options)
        reports.append(sampled.report)
        return sampled

    monkeypatch.setattr("dpcipher.posteriors.posterior.sample", watched)
    schema = dc.Schema.from_domain({"a": 3, "b": 2, "c": 4})
    counts = np.random.default_rng(1).integers(0, 60, schema.shape)
    release = dc.Release.from_tables({("a", "b", "c"): counts}, schema, scale=8.0)
    told = dc.posterior(release, ("a", "b", "c"), draws=50, seed=1).report
    assert len(reports) == told.runs == 2
    assert told.r_hat == max(report.r_hat for report in reports)
    assert told.ess == min(report.ess for report in reports)
    assert told.divergences == sum(report.divergences for report in reports)
    note = dc.fit_models(release, "b ~ a + c", draws=50, seed=1).notes[-1]
    assert "the worse of 2 runs, of cells and of pairs" in note
