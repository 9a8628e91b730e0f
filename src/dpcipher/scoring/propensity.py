"""Propensity score: can a logistic regression tell synthetic rows from private ones?

pMSE = mean (p̂ − c)², where p̂ is the fitted chance that a row is synthetic and c the share of synthetic rows (Woo et al. 2009).
If the synthetic rows were drawn from the very distribution of the private rows, its expectation would be
(k − 1)(1 − c)²c/N for k coefficients and N rows in all (Snoke et al. 2018, J. R. Statist. Soc. A 181, Theorem 1). The ratio to
that expectation is near 1 for such rows; low-variance samples can go below it.

The regression has every pair of columns as an interaction where the rows can carry that many coefficients, because main effects alone
cannot see a lost dependence; else main effects only. The result says which.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit

from dpcipher.inference.design import one_hot
from dpcipher.scoring.onehot import fit_classifier

Codes = NDArray[np.int32]
Floats = NDArray[np.float64]

MOST_ROWS = 50_000
MOST_COEFFICIENTS = 1_000
# Fewer rows than this for each coefficient, and maximum likelihood is mostly noise.
ROWS_EACH = 10
# Enough to stop perfect separation from running away, too little to matter otherwise.
RIDGE = 1e-4


@dataclass(frozen=True)
class Propensity:
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
    """Fit a logit of "is synthetic" on every column, and on every pair if there are rows enough; at most 50,000 rows of each side."""
    rng = np.random.default_rng(seed)
    first, second = _some(private, rng), _some(synthetic, rng)
    codes = np.concatenate([first, second])
    is_synthetic = np.r_[np.zeros(len(first), dtype=np.int64), np.ones(len(second), dtype=np.int64)]
    codes, sizes, order = _with_pairs(codes, shape)
    x = one_hot(codes, sizes)
    chances = _chances(x, is_synthetic.astype(float))
    share, total = len(second) / len(codes), len(codes)
    k = int((x.getnnz(axis=0) > 0).sum())
    return Propensity(
        float(((chances - share) ** 2).mean()), (k - 1) * (1 - share) ** 2 * share / total, k, order
    )


def _chances(x: sparse.csr_matrix, y: Floats) -> Floats:
    """Fitted chances of a logit: Newton's method while the information matrix is small, L-BFGS beyond."""
    if x.shape[1] > MOST_COEFFICIENTS:
        return fit_classifier(x, y.astype(np.int64), 2, ridge=RIDGE).probabilities(x)[:, 1]
    beta, ridge = np.zeros(x.shape[1]), np.full(x.shape[1], RIDGE)
    for _ in range(30):
        chances = np.asarray(expit(x @ beta))
        slope = x.T @ (y - chances) - ridge * beta
        information = (x.T @ x.multiply((chances * (1 - chances))[:, None])).toarray() + np.diag(ridge)
        step = np.linalg.solve(information, slope)
        # The log-odds of a separated cell may drift for ever; a bounded step lets the ridge stop it.
        beta += step * min(1.0, 4.0 / max(float(np.abs(step).max()), 1e-300))
        if float(np.abs(slope).max()) < 1e-6:
            break
    return np.asarray(expit(x @ beta))


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


def _some(codes: Codes, rng: np.random.Generator) -> Codes:
    return codes if len(codes) <= MOST_ROWS else codes[rng.choice(len(codes), MOST_ROWS, replace=False)]
