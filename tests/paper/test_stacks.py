"""Stacked arithmetic against the same arithmetic, one table at a time, by other code."""

import numpy as np
import pytest
import statsmodels.api as sm

from dpcipher.engines.paper import solve_paper
from dpcipher.evaluation.distances import choose_tables, distances
from dpcipher.inference.combine import combine
from dpcipher.inference.glm import fit_logit
from dpcipher.methods.mwem import Measurement
from dpcipher.methods.mwem import replay as replay_one
from experiments.paper.population import POPULATION, REGRESSIONS, SHAPE
from experiments.paper.results import Intervals, infer
from experiments.paper.simulated import CIPHER, FDH, METHODS, combine_identified
from experiments.paper.stacks import (
    SWEPT,
    Answer,
    Sanitized,
    draw_rows,
    fit_mwem_cells,
    fit_mwem_tables,
    linf,
    margins,
    normalised,
    read,
    replay,
    tvd,
)

KEYS = ("estimate", "variance", "dof")
SEEDS = tuple(np.random.SeedSequence(1).spawn(2))
PAIRS = [(i, j) for i in range(4) for j in range(i + 1, 4)]


def tables(n: int = 200, many: int = 6, seed: int = 3) -> np.ndarray:
    """Some simulated data sets as counts."""
    return POPULATION.draw(n, many, np.random.default_rng(seed))


def rows(table: np.ndarray) -> np.ndarray:
    """The rows of a table of counts, as codes."""
    return np.repeat(np.argwhere(np.ones(table.shape)), table.ravel(), axis=0).astype(np.int32)


def test_distances_equal_those_of_evaluate() -> None:
    """Mean TVD by order and largest error, from rows."""
    first, second = tables(seed=1), tables(seed=2)
    for order in (1, 2, 3):
        found = [
            distances(rows(a), rows(b), SHAPE, choose_tables(4, order))
            for a, b in zip(first, second, strict=True)
        ]
        np.testing.assert_allclose(
            [np.mean([d.tvd for d in one]) for one in found], tvd(first, second, [order])[:, 0]
        )
        np.testing.assert_allclose(
            [max(d.linf for d in one) for one in found], linf(first, second, [order])[:, 0]
        )


@pytest.mark.parametrize("regression", REGRESSIONS, ids=lambda one: one.name)
def test_many_fits_equal_statsmodels(regression: object) -> None:
    """Unpenalised, on data large enough not to be separated."""
    counts = tables(n=2000)
    fits = fit_logit(regression.x, regression.grouped(counts))
    for number, table in enumerate(counts):
        codes = rows(table)
        where = np.ravel_multi_index(
            tuple(np.delete(codes, regression.outcome, axis=1).T), np.delete(SHAPE, regression.outcome)
        )
        theirs = sm.MNLogit(codes[:, regression.outcome], regression.x[where]).fit(disp=0)
        np.testing.assert_allclose(fits.coefficients[number], np.asarray(theirs.params).T, atol=1e-6)
        np.testing.assert_allclose(np.sqrt(fits.variances[number]), np.asarray(theirs.bse).T, atol=1e-6)


@pytest.mark.parametrize("regression", REGRESSIONS, ids=lambda one: one.name)
def test_many_penalised_fits_equal_one_at_a_time(regression: object) -> None:
    """Firth fits of sparse and separated tables, side by side with easy ones."""
    rng = np.random.default_rng(8)
    sparse = rng.multinomial(40, rng.dirichlet(np.full(36, 0.5), size=12)).reshape(-1, *SHAPE)
    counts = regression.grouped(np.concatenate([tables(), sparse]))
    fits = fit_logit(regression.x, counts, firth=True)
    known = ~np.isnan(fits.coefficients).any(axis=(1, 2))
    assert known.sum() > 12
    for number in np.flatnonzero(known):
        one = fit_logit(regression.x, counts[number], firth=True)
        np.testing.assert_allclose(fits.coefficients[number], one.coefficients, atol=1e-5)
        np.testing.assert_allclose(fits.variances[number], one.variances, rtol=1e-4)


def test_a_missing_level_leaves_the_other_parameters() -> None:
    """Without V3 = 2 its two parameters are unknown; the others are those of the table without it."""
    counts, regression = tables(n=400), REGRESSIONS[0]
    counts[:, :, :, 2, :] = 0
    fits = fit_logit(regression.x, regression.grouped(counts), firth=True)
    assert np.isnan(fits.coefficients)[:, :, 4].all()
    seen = regression.x[:, 4] == 0
    one = fit_logit(regression.x[seen][:, :4], regression.grouped(counts)[0][seen], firth=True)
    np.testing.assert_allclose(fits.coefficients[0][:, :4], one.coefficients, atol=1e-6)


def test_sets_that_do_not_identify_a_parameter_are_left_out() -> None:
    """Each parameter is combined over the sets that know it; with one set alone it stays unknown."""
    rng = np.random.default_rng(2)
    estimates, variances = rng.normal(size=(5, 1, 3)), rng.random((5, 1, 3))
    estimates[[0, 3], 0, 1] = np.nan
    estimates[1:, 0, 2] = np.nan
    found = combine_identified(estimates, variances)
    assert float(found["variance"][0, 0]) == pytest.approx(
        float(combine(estimates[:, 0, 0], variances[:, 0, 0]).variance)
    )
    few = combine(estimates[[1, 2, 4], 0, 1], variances[[1, 2, 4], 0, 1])
    assert float(found["dof"][0, 1]) == pytest.approx(float(few.dof))
    assert np.isnan(found["estimate"][0, 2])


def test_replaying_many_equals_the_method() -> None:
    """The update of a stack, against `dpcipher.methods.mwem` table by table."""
    counts, rng = tables(), np.random.default_rng(4)
    stack = np.full(counts.shape, 200 / 36)
    seen, each = [], [[] for _ in counts]
    for axes in [(0, 2), (1, 3), (0, 2)]:
        drop = tuple(1 + axis for axis in range(4) if axis not in axes)
        truth = counts.sum(axis=drop, keepdims=True)
        noisy = truth + rng.normal(0, 5, truth.shape)
        seen.append(Answer(np.arange(len(counts)), drop, noisy))
        for one, answer in zip(each, noisy, strict=True):
            one.append(Measurement(axes, answer.squeeze()))
    replay(stack, seen, 200)
    for found, answers in zip(stack, each, strict=True):
        np.testing.assert_allclose(
            found, replay_one(np.full(SHAPE, 200 / 36), answers, 200.0, 20), rtol=1e-10
        )


def test_mwem_without_noise_meets_the_tables_it_chose() -> None:
    """With a boundless budget the worst tables are measured exactly, and many rounds meet all pairs."""
    counts = tables()
    stack, _ = fit_mwem_tables(counts, PAIRS, 768, SEEDS, 12)
    assert tvd(counts, stack, [2]).max() < 0.02


def test_one_cell_of_mwem_by_hand() -> None:
    """Two rounds, no noise: the mean of the uniform table and of one update on the worst cell."""
    counts = tables(many=1)
    found = 200 * fit_mwem_cells(counts, PAIRS, 128, SEEDS, 2)[0][0]
    uniform = np.full(SHAPE, 200 / 36)
    cells = [
        (abs(margins(counts, axes)[0][cell] - margins(uniform[None], axes)[0][cell]), axes, cell)
        for axes in PAIRS
        for cell in np.ndindex(*[SHAPE[axis] for axis in axes])
    ]
    _, axes, cell = max(cells)
    inside = np.ones(SHAPE, dtype=bool)
    for axis, level in zip(axes, cell, strict=True):
        inside &= np.indices(SHAPE)[axis] == level
    gap = margins(counts, axes)[0][cell] - uniform[inside].sum()
    step = np.where(inside, uniform * np.exp(gap / 400), uniform)
    np.testing.assert_allclose(found, (uniform + step * 200 / step.sum()) / 2, rtol=1e-4)


def test_the_noise_has_the_scale_of_the_shares() -> None:
    """Six tables share epsilon: Laplace noise of scale 6 / epsilon, to within a few per cent over many cells."""
    counts = tables(many=2000)
    noisy = Sanitized.of(counts, PAIRS, 0.5, np.random.SeedSequence(7))
    errors = noisy.tables[0] - margins(counts, PAIRS[0])
    assert np.abs(errors).mean() == pytest.approx(12.0, rel=0.05)


@pytest.mark.parametrize("reading", ["literal", "guarded", "averaged", "literal, λ = 0.1"])
def test_cipher_is_the_paper_engine_on_the_same_noise(reading: str) -> None:
    """A method adds noise and calls the engine under its reading, nothing else; all readings see the same noise."""
    counts, seed, method = tables(many=2), METHODS[CIPHER[2]].seed(5), METHODS[read(CIPHER[2], reading)]
    drawn = method.draw(counts, epsilon=1.0, seed=method.seed(5))
    synthesis, rows_seed = seed.spawn(2)
    noisy = Sanitized.of(counts, PAIRS, 1.0, synthesis)
    direct = solve_paper(
        SHAPE,
        noisy.of_set(1),
        SWEPT[reading],
        rng=np.random.default_rng([int(rows_seed.generate_state(1)[0]), 1]),
    )
    np.testing.assert_allclose(drawn.chances[1], direct[0])


def test_averaging_is_zero_for_the_average_and_one_for_a_version() -> None:
    """The measure of how far a result is from the average of inconsistent tables, for two results whose answer is known."""
    noisy = Sanitized.of(tables(many=3), PAIRS, 1.0, np.random.SeedSequence(9))
    versions = [
        [normalised(margins(t, (a.index(k),))) for a, t in zip(PAIRS, noisy.tables, strict=True) if k in a]
        for k in range(4)
    ]

    def product(margins_of: list[np.ndarray]) -> np.ndarray:
        return np.stack([np.einsum("i,j,k,l", *(part[row] for part in margins_of)) for row in range(3)])

    average = noisy.averaging(product([np.mean(v, axis=0) for v in versions]))
    np.testing.assert_allclose(average[:, 0], 0, atol=1e-12)
    each = np.mean([noisy.averaging(product([v[i] for v in versions])) for i in range(3)], axis=0)
    np.testing.assert_allclose(each[:, 0], each[:, 1])


def test_drawn_rows_follow_the_distribution() -> None:
    """n rows each, and the right mean."""
    chances = METHODS[FDH].draw(tables(many=1), epsilon=50.0, seed=np.random.SeedSequence(1)).chances
    drawn = draw_rows(np.repeat(chances, 4000, axis=0), 200, np.random.default_rng(6))
    assert (drawn.reshape(4000, -1).sum(axis=1) == 200).all()
    np.testing.assert_allclose(drawn.mean(axis=0) / 200, chances[0], atol=0.004)


def test_inference_equals_loops_over_repeats_and_parameters() -> None:
    """Bias, RMSE, coverage and the share of Best from their definitions; what is unknown is left out."""
    rng = np.random.default_rng(4)
    own = [rng.normal(size=(30, 3)), rng.random((30, 3)), np.full((30, 3), np.inf)]
    original = [rng.normal(size=(30, 3)), rng.random((30, 3)), np.full((30, 3), np.inf)]
    own[0][4, 1] = own[1][4, 1] = np.nan
    truth = np.array([0.1, -0.2, 0.5])
    intervals = [Intervals.of(dict(zip(KEYS, each, strict=True)), "") for each in (own, original)]
    found = infer(*intervals, truth)
    best = known = 0
    for k in range(3):
        errors, inside = [], []
        for r in range(30):
            if np.isnan(own[0][r, k]):
                continue
            error, half = own[0][r, k] - truth[k], 1.959964 * own[1][r, k] ** 0.5
            errors.append(error)
            inside.append(abs(error) <= half)
            significant = abs(own[0][r, k]) > half
            other = abs(original[0][r, k]) > 1.959964 * original[1][r, k] ** 0.5
            best += (own[0][r, k] * original[0][r, k] > 0) and (significant == other)
            known += 1
        assert found["bias"][0, k] == pytest.approx(np.mean(errors))
        assert found["rmse"][0, k] == pytest.approx(np.mean(np.square(errors)) ** 0.5)
        assert found["coverage"][0, k] == pytest.approx(np.mean(inside))
    assert found["Best"][0, 0] == pytest.approx(best / known)
    assert found["unknown"][0, 0] == pytest.approx(1 / 90)
