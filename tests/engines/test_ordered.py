"""Smoothing along ordered levels: against brute force, and left alone where order says nothing."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import softmax
from scipy.stats import multivariate_normal

import dpcipher as dc
from dpcipher.engines.denoise import one_way as log_density
from dpcipher.engines.denoise.denoise import denoise
from dpcipher.engines.denoise.interactions import Basis, Proportional, Stack, proportional_basis, smooth_basis
from dpcipher.engines.denoise.one_way import Estimate, denoise_one_way, mixed, posterior, smooth_counts
from dpcipher.engines.solve import orders_of
from dpcipher.tables.table import centre, margin
from release.measured import noisy, reconcile

RNG = np.random.default_rng


def smooth_covariance(p, ordered, fall):
    """M K M with cosines over the ordered levels, as the docstring has it, scaled by brute force."""
    n, kernel = len(ordered), np.zeros((len(p), len(p)))
    for j in range(1, n):
        wave = np.zeros(len(p))
        wave[ordered] = np.cos(np.pi * j * (np.arange(n) + 0.5) / n)
        kernel += j ** (-2 * fall) * np.outer(wave, wave)
    mean = np.diag(kernel)[ordered].mean()
    for level in set(range(len(p))) - set(ordered):
        kernel[level, level] = mean
    spread = np.diag(p) - np.outer(p, p)
    covariance = spread @ kernel @ spread
    return covariance * (len(p) - 1) / (np.diag(covariance) / p).sum()


@pytest.mark.parametrize("ordered", [np.arange(6), np.array([0, 1, 3, 4])])
def test_the_smooth_basis_is_that_of_its_covariance(ordered):
    """Vectors and variances put together again are M K M; a level without order is independent of the others."""
    p = RNG(1).dirichlet(np.ones(6))
    basis = smooth_basis(p, ordered, 1.5)
    ((vectors,),), (variance,), (chance,) = basis.vectors, basis.variance, basis.chance
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(5), atol=1e-12)
    np.testing.assert_allclose(
        vectors @ np.diag(variance) @ vectors.T, smooth_covariance(p, ordered, 1.5), atol=1e-12
    )
    np.testing.assert_allclose(
        chance, np.diag(vectors.T @ (np.diag(p) - np.outer(p, p)) @ vectors), atol=1e-12
    )


@pytest.mark.parametrize("seed", range(20))
def test_chance_never_falls_below_zero(seed):
    """Where hardly any level has rows its variance is zero but for rounding, and an almost exact table has no noise to hide a negative one."""
    p = RNG(seed).dirichlet(np.full(12, 0.05))
    assert smooth_basis(p, np.arange(12), 1.5).chance.min() >= 0


def test_the_evidence_of_the_smooth_shape_is_a_normal_density():
    """With one table and one size: the log density of its coefficients, up to a constant."""
    p, q = RNG(2).dirichlet(np.ones(5)), RNG(3).dirichlet(np.ones(4))
    attributes = {0: smooth_basis(p, np.arange(5), 1.5), 1: proportional_basis(q)}
    basis = Basis.product([(0, 1), (0, 1)], attributes)
    tables = np.stack([centre(RNG(seed).normal(size=(5, 4))) for seed in (4, 5)])
    found = Proportional(Stack(tables, np.full(2, 0.3), 12, np.array([7.0])), basis, chance=2.0).evidence()[0]
    law = multivariate_normal(cov=np.diag(7.0 * basis.variance[0] + 2.0 * basis.chance[0] + 0.3))
    (smooth,), (plain,) = attributes[0].vectors[0], attributes[1].vectors[0]
    expected = [law.logpdf((smooth.T @ table @ plain).ravel()) for table in tables]
    assert found[0] - found[1] == pytest.approx(expected[0] - expected[1])


def test_the_smooth_log_density_is_the_posterior_mode(monkeypatch):
    """For one size of the prior a general optimiser finds the same counts, and numerical derivatives the same freedom."""
    monkeypatch.setattr(log_density, "SIZES", np.array([2.0]))
    truth = 500 * np.exp(-0.5 * ((np.arange(15) - 5) / 3.0) ** 2)
    seen, total = truth + RNG(6).normal(0, 20, 15), float(truth.sum())
    waves = log_density._waves(15)

    def objective(c):
        return 0.5 * ((seen - total * softmax(waves @ c)) ** 2).sum() / 400 + 0.25 * (c**2).sum()

    found = smooth_counts(seen, 20.0, total)
    best = minimize(objective, np.zeros(waves.shape[1]), method="BFGS", options={"gtol": 1e-8})
    np.testing.assert_allclose(found.counts, total * softmax(waves @ best.x), atol=0.05)
    steps = np.eye(15) * 2.0
    moved = [
        (smooth_counts(seen + step, 20.0, total).counts - found.counts).sum(where=step > 0) / 2
        for step in steps
    ]
    assert found.freedom == pytest.approx(sum(moved), rel=0.1)


def test_the_mix_has_the_least_estimated_risk():
    """No point between the two estimates has a lower one."""
    seen = np.array([3.0, 9.0, 4.0, 1.0])
    plain, smooth = (
        Estimate(np.array([3.0, 8.0, 4.0, 2.0]), 3.5),
        Estimate(np.array([4.0, 6.0, 5.0, 2.0]), 1.5),
    )

    def risk(w):
        counts = plain.counts + w * (smooth.counts - plain.counts)
        return ((seen - counts) ** 2).sum() + 2 * 1.1**2 * (3.5 + w * (1.5 - 3.5))

    grid = np.linspace(0, 1, 1001)
    best = grid[np.argmin([risk(w) for w in grid])]
    expected = plain.counts + best * (smooth.counts - plain.counts)
    assert 0 < best < 1
    np.testing.assert_allclose(mixed(seen, 1.1, plain, smooth), expected, atol=2e-3)


def test_derivatives_of_the_posterior_are_those_of_the_counts():
    """A count far above the noise follows its observation; counts lost in noise hardly do."""
    seen = np.concatenate([np.full(5, 9000.0), RNG(0).normal(0, 5, 40)])
    _, slopes = posterior(seen, 5.0, 45_000.0)
    assert np.allclose(slopes[:5], 1.0, atol=0.01)
    assert 0 <= slopes[5:].mean() < 0.3


def one_way_error(truth, sigma, ordered, repeats=12):
    """Mean absolute error of the counts with and without the order."""
    errors = np.zeros(2)
    for seed in range(repeats):
        seen = truth + RNG(seed).normal(0, sigma, len(truth))
        for place, known in enumerate((None, ordered)):
            errors[place] += np.abs(denoise_one_way(seen, sigma, float(truth.sum()), known) - truth).sum()
    return errors / repeats


def test_a_skewed_column_gains_from_its_order_and_a_shuffled_one_does_not_lose():
    """Exponential counts lose error by their order; in random order nothing changes much."""
    truth = 800 * np.exp(-np.arange(30) / 6.0)
    without, ordered = one_way_error(truth, 40.0, np.ones(30, dtype=bool))
    assert ordered < 0.85 * without
    without, ordered = one_way_error(RNG(3).permutation(truth), 40.0, np.ones(30, dtype=bool))
    assert ordered < 1.03 * without


def test_a_level_without_order_does_not_disturb_its_neighbours():
    """A large missing level beside smooth ones: marked as apart, it neither bends nor is bent."""
    truth = np.append(800 * np.exp(-np.arange(30) / 6.0), 3000.0)
    apart = np.append(np.ones(30, dtype=bool), False)
    _, together = one_way_error(truth, 40.0, np.ones(31, dtype=bool))
    _, known = one_way_error(truth, 40.0, apart)
    assert known < 0.9 * together


def pair_error(order, repeats=4):
    """Mean TVD of a pair of dependent columns of 30 levels, denoised without and with their order; `order` renames the levels."""
    errors, orders = np.zeros(2), {0: np.arange(30), 1: np.arange(30)}
    for seed in range(repeats):
        rng = RNG([seed, 1])
        x = rng.normal(size=5000)
        y = 0.6 * x + 0.8 * rng.normal(size=5000)
        codes = [order[np.clip((15 + 5 * z).astype(int), 0, 29)] for z in (x, y)]
        counts = np.zeros((30, 30))
        np.add.at(counts, tuple(codes), 1.0)
        release = reconcile((30, 30), [noisy((0, 1), counts + rng.laplace(0, 6, (30, 30)), 72.0)])
        for place, known in enumerate(({}, orders)):
            fitted = denoise(release, known).tables[0, 1]
            errors[place] += 0.5 * np.abs(fitted - counts / 5000).sum()
    return errors / repeats


def test_a_smooth_pair_gains_and_a_shuffled_one_is_left_alone():
    """The dependence of two ordered columns is smooth; after shuffling the levels the evidence says so."""
    without, ordered = pair_error(np.arange(30))
    assert ordered < 0.85 * without
    without, ordered = pair_error(RNG(9).permutation(30))
    assert ordered < 1.01 * without


def test_tables_without_noise_stay_as_they_are():
    """Order or not, exact tables are reproduced."""
    counts = RNG(1).poisson(20, (8, 9)).astype(float)
    release = reconcile((8, 9), [noisy((0, 1), counts, 0.0)])
    fitted = denoise(release, {0: np.arange(8), 1: np.arange(9)}).tables[0, 1]
    np.testing.assert_allclose(fitted, counts / counts.sum(), atol=1e-9)
    np.testing.assert_allclose(margin(fitted, (0, 1), (0,)), counts.sum(1) / counts.sum(), atol=1e-9)


def test_the_schema_says_what_has_an_order():
    """Bins and ordinal levels do; special values, missing, categories and short columns do not."""
    schema = dc.Schema.from_dict(
        {
            "columns": {
                "age": {
                    "kind": "integer",
                    "min": 0,
                    "max": 99,
                    "bins": 10,
                    "special": [0],
                    "missing": "level",
                },
                "school": {"kind": "ordinal", "levels": list("abcdefg"), "missing": "level"},
                "colour": {"kind": "categorical", "levels": list("abcdefg")},
                "short": {"kind": "integer", "min": 0, "max": 2},
            },
        }
    )
    assert {axis: levels.tolist() for axis, levels in orders_of(schema).items()} == {
        0: list(range(10)),
        1: list(range(7)),
    }
