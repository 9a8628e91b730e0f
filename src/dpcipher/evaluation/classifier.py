"""Classifiers on synthetic rows: accuracy on held-out rows, and telling synthetic from private rows (propensity).

The classifiers are ridge-penalised logits over 0/1 columns, any number of them. They predict and are not for inference: they have no
variances, and the ridge keeps them finite on every table. Models with intervals are in `dpcipher.inference`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit, logsumexp

from dpcipher.drawing.card import CuratorOnly
from dpcipher.inference.design import one_hot
from dpcipher.tables.domain import Codes, Floats

MOST_ROWS = 50_000
# Newton's method solves a dense system of this many equations at the most.
MOST_COEFFICIENTS = 1_000
# Fewer rows than this for each coefficient, and maximum likelihood is mostly noise.
ROWS_EACH = 10
# Enough to stop perfect separation from running away, too little to matter otherwise.
PROPENSITY_RIDGE = 2e-4


@dataclass(frozen=True)
class Classifier:
    """A fitted multinomial logit: one column of weights per class."""

    weights: Floats

    def probabilities(self, x: sparse.csr_matrix) -> Floats:
        """The probability of every class for every row."""
        scores = np.asarray(x @ self.weights)
        return np.asarray(np.exp(scores - logsumexp(scores, axis=1, keepdims=True)))

    def predict(self, x: sparse.csr_matrix) -> NDArray[np.int64]:
        """The most probable class of every row."""
        return np.asarray(np.asarray(x @ self.weights).argmax(axis=1))


def fit_classifier(
    x: sparse.csr_matrix, outcome: NDArray[np.integer], classes: int, *, ridge: float = 1.0
) -> Classifier:
    """Maximise the log-likelihood less ½·ridge·|weights|², the intercept nearly free.

    Two classes by Newton's method while the information matrix is small, everything else by L-BFGS.
    """
    penalty = np.full(x.shape[1], ridge)
    penalty[0] *= 1e-8
    if classes == 2 and x.shape[1] <= MOST_COEFFICIENTS:
        return _newton(x, np.asarray(outcome, dtype=float), penalty)
    return _lbfgs(x, outcome, classes, penalty[:, None])


def _newton(x: sparse.csr_matrix, outcome: Floats, penalty: Floats) -> Classifier:
    """Two classes have the weights ∓β/2, so that β carries half the penalty."""
    beta, half = np.zeros(x.shape[1]), penalty / 2
    for _ in range(30):
        chances = np.asarray(expit(x @ beta))
        slope = x.T @ (outcome - chances) - half * beta
        information = (x.T @ x.multiply((chances * (1 - chances))[:, None])).toarray() + np.diag(half)
        step = np.linalg.solve(information, slope)
        # The log-odds of a separated cell may drift for ever; a bounded step lets the ridge stop it.
        beta += step * min(1.0, 4.0 / max(float(np.abs(step).max()), 1e-300))
        if float(np.abs(slope).max()) < 1e-6:
            break
    return Classifier(np.column_stack([-beta / 2, beta / 2]))


def _lbfgs(x: sparse.csr_matrix, outcome: NDArray[np.integer], classes: int, penalty: Floats) -> Classifier:
    target = np.zeros((x.shape[0], classes))
    target[np.arange(x.shape[0]), outcome] = 1

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(x.shape[1], classes)
        scores = np.asarray(x @ weights)
        norm = logsumexp(scores, axis=1, keepdims=True)
        value = float(
            (norm.ravel() - (scores * target).sum(axis=1)).sum() + 0.5 * (penalty * weights**2).sum()
        )
        slope = x.T @ (np.exp(scores - norm) - target) + penalty * weights
        # Divided by the number of rows, so that the stopping rule does not depend on it.
        return value / x.shape[0], np.asarray(slope).ravel() / x.shape[0]

    options = {"maxiter": 1000, "ftol": 1e-14, "gtol": 1e-8}
    start = np.zeros(x.shape[1] * classes)
    solution = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    return Classifier(np.asarray(solution.x).reshape(x.shape[1], classes))


def subsample(codes: Codes, rng: np.random.Generator) -> Codes:
    """At most 50,000 of the rows."""
    return codes if len(codes) <= MOST_ROWS else codes[rng.choice(len(codes), MOST_ROWS, replace=False)]


@dataclass(frozen=True, repr=False)
class Accuracy(CuratorOnly):
    """Shares of held-out rows predicted rightly: trained on synthetic rows, on private rows, and by the most common level."""

    target: str
    synthetic: float
    private: float
    majority: float


def accuracy(
    private: Codes,
    synthetic: Codes,
    holdout: Codes,
    shape: Sequence[int],
    axis: int,
    *,
    target: str,
    seed: int = 0,
) -> Accuracy:
    """Train a classifier of one column on all others with synthetic and with private rows, and test both on `holdout`.

    Private rows that are in the held-out set must not be among the rows the release was measured on, or the comparison flatters.
    """
    rng = np.random.default_rng(seed)
    others = [other for other in range(len(shape)) if other != axis]
    sizes, truth = [shape[other] for other in others], holdout[:, axis]

    def score(rows: Codes) -> float:
        some = subsample(rows, rng)
        model = fit_classifier(one_hot(some[:, others], sizes), some[:, axis], shape[axis])
        return float((model.predict(one_hot(holdout[:, others], sizes)) == truth).mean())

    majority = int(np.bincount(private[:, axis]).argmax())
    return Accuracy(target, score(synthetic), score(private), float((truth == majority).mean()))


@dataclass(frozen=True, repr=False)
class Propensity(CuratorOnly):
    """The propensity score: pMSE, what it would be by chance alone, the number of coefficients, and the order of interactions."""

    pmse: float
    expected: float
    coefficients: int
    order: int

    @property
    def ratio(self) -> float:
        """pMSE over its null expectation; about 1 when only chance tells the two apart."""
        return self.pmse / self.expected if self.expected > 0 else 0.0

    @property
    def words(self) -> str:
        """Which regression it was."""
        return "main effects and all pairs" if self.order == 2 else "main effects only"


def propensity(private: Codes, synthetic: Codes, shape: Sequence[int], *, seed: int = 0) -> Propensity:
    """Fit a logit of "is synthetic" on every column, and on every pair if there are rows enough; at most 50,000 rows of each side.

    pMSE = mean (p̂ − c)², where p̂ is the fitted chance that a row is synthetic and c the share of synthetic rows (Woo et al. 2009).
    If the synthetic rows were drawn from the very distribution of the private rows, its expectation would be
    (k − 1)(1 − c)²c/N for k coefficients and N rows in all (Snoke et al. 2018, J. R. Statist. Soc. A 181, Theorem 1). The ratio to
    that expectation is near 1 for such rows; low-variance samples can go below it.

    The regression has every pair of columns as an interaction where the rows can carry that many coefficients, because main effects alone
    cannot see a lost dependence; else main effects only. The result says which.
    """
    rng = np.random.default_rng(seed)
    sides = [subsample(codes, rng) for codes in (private, synthetic)]
    codes, sizes, order = _with_pairs(np.concatenate(sides), shape)
    x, is_synthetic = one_hot(codes, sizes), np.repeat([0, 1], [len(side) for side in sides])
    chances = fit_classifier(x, is_synthetic, 2, ridge=PROPENSITY_RIDGE).probabilities(x)[:, 1]
    share, total = len(sides[1]) / len(codes), len(codes)
    pmse = float(((chances - share) ** 2).mean())
    coefficients = int((x.getnnz(axis=0) > 0).sum())
    return Propensity(pmse, (coefficients - 1) * (1 - share) ** 2 * share / total, coefficients, order)


def _with_pairs(codes: Codes, shape: Sequence[int]) -> tuple[Codes, list[int], int]:
    """The codes, and those of every pair: 0 where either is at its first level, which the main effects already say."""
    sizes, pairs = list(shape), list(combinations(range(len(shape)), 2))
    crossed = [(shape[a] - 1) * (shape[b] - 1) + 1 for a, b in pairs]
    wanted = 1 + sum(size - 1 for size in [*sizes, *crossed])
    if not pairs or wanted > min(MOST_COEFFICIENTS, len(codes) / ROWS_EACH):
        return codes, sizes, 1
    columns = [
        np.where(
            (codes[:, a] > 0) & (codes[:, b] > 0), 1 + (codes[:, a] - 1) * (shape[b] - 1) + codes[:, b] - 1, 0
        )
        for a, b in pairs
    ]
    return np.column_stack([codes, *columns]), sizes + crossed, 2
