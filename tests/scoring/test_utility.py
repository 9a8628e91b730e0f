"""Propensity score, interval overlap and accuracy, against statsmodels, theory and planted answers."""

import itertools

import numpy as np
import pytest
import statsmodels.api as sm

from dpcipher.errors import ParameterError
from dpcipher.evaluation import classifier
from dpcipher.evaluation.classifier import accuracy, fit_classifier, propensity
from dpcipher.evaluation.distances import interval_overlap, share_interval
from dpcipher.inference.design import one_hot

SHAPE = (2, 3, 4)


def rows(rng: np.random.Generator, n: int) -> np.ndarray:
    """Rows with some dependence between columns."""
    first = rng.integers(0, 2, n)
    second = np.where(rng.random(n) < 0.7, first, rng.integers(0, 3, n))
    return np.column_stack([first, second, rng.integers(0, 4, n)]).astype(np.int32)


def test_one_hot_has_a_column_for_every_level_but_the_first() -> None:
    """By hand."""
    found = one_hot(np.array([[0, 2], [1, 0]], dtype=np.int32), (2, 3)).toarray()
    assert found.tolist() == [[1, 0, 0, 1], [1, 1, 0, 0]]


def test_pmse_is_that_of_a_maximum_likelihood_logit() -> None:
    """The fitted chances of statsmodels give the same pMSE, and the null expectation is Snoke's formula."""
    rng = np.random.default_rng(0)
    private, synthetic = rows(rng, 400), rows(rng, 300)
    synthetic[:100, 2] = 1
    found = propensity(private, synthetic, SHAPE)
    main = one_hot(np.concatenate([private, synthetic]), SHAPE).toarray()
    blocks = [main[:, 1:2], main[:, 2:4], main[:, 4:7]]
    pairs = [
        (a[:, :, None] * b[:, None, :]).reshape(len(main), -1) for a, b in itertools.combinations(blocks, 2)
    ]
    x = np.column_stack([main, *pairs])
    chance = sm.Logit(np.r_[np.zeros(400), np.ones(300)], x).fit(disp=0).predict()
    assert found.pmse == pytest.approx(((chance - 3 / 7) ** 2).mean(), rel=1e-4)
    assert (found.coefficients, found.order) == (18, 2)
    assert found.expected == pytest.approx(17 * (4 / 7) ** 2 * (3 / 7) / 700)


def test_resampled_rows_have_the_null_expectation() -> None:
    """Rows drawn with replacement from the private ones: the mean ratio over 60 draws is 1."""
    rng = np.random.default_rng(1)
    private = rows(rng, 500)
    ratios = [propensity(private, private[rng.integers(0, 500, 500)], SHAPE).ratio for _ in range(60)]
    # The ratio is about chi-square(17)/17, so its mean over 60 draws has standard error .044.
    assert np.mean(ratios) == pytest.approx(1, abs=0.16)


def test_rows_that_are_easy_to_tell_apart_have_a_large_ratio() -> None:
    """All synthetic rows in one level."""
    rng = np.random.default_rng(2)
    private = rows(rng, 300)
    assert propensity(private, np.zeros((300, 3), dtype=np.int32), SHAPE).ratio > 50


def test_a_lost_dependence_is_seen_through_the_pairs() -> None:
    """Shuffling a column leaves every one-way table as it was; only interactions can tell."""
    rng = np.random.default_rng(5)
    private = rows(rng, 600)
    shuffled = np.column_stack([rng.permutation(column) for column in private.T]).astype(np.int32)
    assert propensity(private, shuffled, SHAPE).ratio > 3


def test_wide_rows_get_main_effects_only() -> None:
    """Too few rows for all pairs: the result says so."""
    rng = np.random.default_rng(6)
    wide = rng.integers(0, 2, (100, 30)).astype(np.int32)
    found = propensity(wide, wide, (2,) * 30)
    assert (found.order, found.coefficients) == (1, 31)


@pytest.mark.parametrize(
    ("synthetic", "share"),
    [((0.0, 2.0), 1.0), ((3.0, 4.0), 0.0), ((1.0, 3.0), 0.5), ((0.5, 1.5), 0.75), ((2.0, 2.0), 0.0)],
)
def test_the_overlap_of_two_intervals(synthetic: tuple[float, float], share: float) -> None:
    """Same, apart, half, inside, and a point: Karr's average of the two shares."""
    assert float(interval_overlap((0.0, 2.0), synthetic)) == pytest.approx(share)


def test_a_turned_interval_is_refused() -> None:
    """Low above high is a slip."""
    with pytest.raises(ParameterError, match="low at most high"):
        interval_overlap(([1.0], [0.0]), ([0.0], [1.0]))


def test_share_intervals_are_wilsons() -> None:
    """As statsmodels computes them."""
    from statsmodels.stats.proportion import proportion_confint

    low, high = share_interval(np.array([0.0, 3.0, 10.0]), 10)
    expected = proportion_confint(np.array([0, 3, 10]), 10, method="wilson")
    np.testing.assert_allclose((low, high), expected, atol=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_classifier_is_at_the_optimum_of_its_penalised_likelihood(classes: int) -> None:
    """The gradient of the loss, computed here from its definition, vanishes for Newton's method and for L-BFGS."""
    rng = np.random.default_rng(3)
    codes, y = rows(rng, 200), rng.integers(0, classes, 200)
    x = one_hot(codes, SHAPE)
    weights = fit_classifier(x, y, classes).weights
    scores = x.toarray() @ weights
    chance = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    slope = x.toarray().T @ (chance - np.eye(classes)[y])
    slope[1:] += weights[1:]
    assert np.abs(slope).max() < 0.01


def test_two_classes_have_the_same_fit_by_either_method(monkeypatch: pytest.MonkeyPatch) -> None:
    """Newton's method below the limit of coefficients, L-BFGS above it."""
    rng = np.random.default_rng(7)
    x, y = one_hot(rows(rng, 300), SHAPE), rng.integers(0, 2, 300)
    newton = fit_classifier(x, y, 2).probabilities(x)
    monkeypatch.setattr(classifier, "MOST_COEFFICIENTS", 0)
    np.testing.assert_allclose(fit_classifier(x, y, 2).probabilities(x), newton, atol=1e-4)


def test_a_level_that_training_never_shows_is_not_predicted() -> None:
    """One class only in the synthetic rows: the fit ends, and is right as often as that class occurs."""
    rng = np.random.default_rng(8)
    private, holdout = rows(rng, 300), rows(rng, 200)
    synthetic = rows(rng, 300)
    synthetic[:, 0] = 0
    found = accuracy(private, synthetic, holdout, SHAPE, 0, target="first")
    assert found.synthetic == pytest.approx((holdout[:, 0] == 0).mean())


def test_training_on_rows_with_the_rule_finds_it_and_on_noise_does_not() -> None:
    """The target copies the first column: learnt from private rows, not from scrambled ones."""
    rng = np.random.default_rng(4)
    private, holdout = rows(rng, 400), rows(rng, 300)
    private[:, 2], holdout[:, 2] = private[:, 0], holdout[:, 0]
    scrambled = np.column_stack([rng.permutation(column) for column in private.T]).astype(np.int32)
    found = accuracy(private, scrambled, holdout, SHAPE, 2, target="copy")
    assert found.private == 1
    assert found.synthetic < 0.75
    assert found.majority == pytest.approx((holdout[:, 2] == np.bincount(private[:, 2]).argmax()).mean())
