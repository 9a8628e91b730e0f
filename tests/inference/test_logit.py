"""Logits against statsmodels, Firth's penalty against closed forms, separation against a search over directions."""

import itertools

import numpy as np
import pytest
import statsmodels.api as sm

from dpcipher.inference.glm import fit_logit, is_separated
from dpcipher.inference.newton import SINGULAR, _singular, inverse

RNG = np.random.default_rng(5)
DESIGN = np.column_stack([np.ones(400), RNG.integers(0, 2, 400), RNG.normal(size=400)])


def as_counts(x: np.ndarray, outcome: np.ndarray, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Every row of a design by itself, as one row of its class."""
    return x, np.eye(classes)[outcome]


def test_binary_logit_equals_statsmodels() -> None:
    """Coefficients, standard errors and log-likelihood."""
    y = (RNG.random(400) < 1 / (1 + np.exp(-DESIGN @ [0.2, -0.7, 1.0]))).astype(int)
    ours, theirs = fit_logit(*as_counts(DESIGN, y, 2)), sm.Logit(y, DESIGN).fit(disp=0)
    np.testing.assert_allclose(ours.coefficients[0], theirs.params, atol=1e-8)
    np.testing.assert_allclose(np.sqrt(ours.variances[0]), theirs.bse, atol=1e-8)
    assert ours.log_likelihood == pytest.approx(theirs.llf)


def test_multinomial_logit_equals_statsmodels() -> None:
    """Three classes, class 0 the reference."""
    y = RNG.integers(0, 3, 400)
    ours, theirs = fit_logit(*as_counts(DESIGN, y, 3)), sm.MNLogit(y, DESIGN).fit(disp=0)
    np.testing.assert_allclose(ours.coefficients.T, theirs.params, atol=1e-8)
    np.testing.assert_allclose(np.sqrt(ours.variances).T, theirs.bse, atol=1e-8)


@pytest.mark.parametrize(
    "counts",
    [[[7, 3], [2, 8]], [[7, 0], [5, 6]], [[10, 0], [0, 10]], [[7, 0, 3], [5, 6, 2]], [[4, 0, 0], [0, 5, 1]]],
)
def test_firth_of_a_saturated_table_adds_one_half_to_every_cell(counts: list[list[int]]) -> None:
    """With one coefficient per cell the penalty is Jeffreys' prior, so the fit is the log-odds of the counts plus 1/2."""
    fit = fit_logit(np.array([[1.0, 0.0], [1.0, 1.0]]), np.array(counts, dtype=float), firth=True)
    raised = np.array(counts) + 0.5
    odds = np.log(raised[:, 1:] / raised[:, :1])
    np.testing.assert_allclose(fit.coefficients[:, 0], odds[0], atol=1e-6)
    np.testing.assert_allclose(fit.coefficients[:, 1], odds[1] - odds[0], atol=1e-6)
    assert fit.converged


@pytest.mark.parametrize("classes", [2, 3])
def test_firth_maximises_the_penalised_likelihood(classes: int) -> None:
    """Off the saturated case: no nearby point has a higher log-likelihood + ½ log det I, computed here from its definition."""
    rng = np.random.default_rng(classes)
    x = np.column_stack([np.ones(40), rng.normal(size=40), rng.integers(0, 2, 40)])
    y = rng.integers(0, classes, 40)
    fit = fit_logit(*as_counts(x, y, classes), firth=True)

    def objective(beta: np.ndarray) -> float:
        scores = np.column_stack([np.zeros(40), x @ beta.T])
        chance = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        information = sum(
            np.kron(np.diag(p[1:]) - np.outer(p[1:], p[1:]), np.outer(row, row))
            for p, row in zip(chance, x, strict=True)
        )
        return float(np.log(chance[np.arange(40), y]).sum() + 0.5 * np.linalg.slogdet(information)[1])

    best = objective(fit.coefficients)
    assert fit.log_likelihood == pytest.approx(best)
    for index in np.ndindex(fit.coefficients.shape):
        for step in (-1e-3, 1e-3):
            moved = fit.coefficients.copy()
            moved[index] += step
            assert objective(moved) < best


def _separated_by_search(x: np.ndarray, y: np.ndarray) -> bool:
    """Brute force over small integer directions, enough for 0/1 designs of three columns."""
    signs = np.where(y == 1, 1, -1)
    for direction in itertools.product(range(-3, 4), repeat=x.shape[1]):
        gain = signs * (x @ np.array(direction))
        if (gain >= 0).all() and (gain > 0).any():
            return True
    return False


def test_separation_agrees_with_a_search_over_directions() -> None:
    """200 small random data sets of 0/1 columns, separated and not."""
    rng = np.random.default_rng(0)
    answers = []
    for _ in range(200):
        x = np.column_stack([np.ones(7), rng.integers(0, 2, (7, 2))]).astype(float)
        y = rng.integers(0, 2, 7)
        if len(set(y)) < 2 or np.linalg.matrix_rank(x) < 3:
            continue
        answers.append((is_separated(*as_counts(x, y, 2)), _separated_by_search(x, y)))
    assert {ours for ours, _ in answers} == {True, False}
    assert all(ours == brute for ours, brute in answers)


def test_a_separated_fit_shows_itself() -> None:
    """Without a penalty the fit runs to the edge, which is what makes the caller test for separation."""
    data = np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([[7.0, 0.0], [5.0, 6.0]])
    fit = fit_logit(*data)
    assert fit.extreme or not fit.converged
    assert is_separated(*data)


def test_nearly_singular_matrices_are_told_from_others() -> None:
    """The cheap look at a Cholesky factor changes neither which matrices are singular nor any inverse."""
    rng = np.random.default_rng(0)
    turns = np.linalg.qr(rng.normal(size=(40, 5, 5)))[0]
    sizes = 10.0 ** -np.linspace(0, 18, 40)[:, None] * np.array([0, 0, 0, 0, 1.0]) + np.array([1, 2, 3, 4, 0])
    stack = (turns * sizes[:, None, :]) @ turns.transpose(0, 2, 1)
    stack = (stack + stack.transpose(0, 2, 1)) / 2
    for part in (stack, stack[:20]):
        assert (_singular(part) == (np.linalg.cond(part) > SINGULAR)).all()
        known = np.linalg.cond(part) < 1e10
        assert inverse(part)[known] == pytest.approx(np.linalg.pinv(part)[known], rel=1e-4, abs=1e-6)
