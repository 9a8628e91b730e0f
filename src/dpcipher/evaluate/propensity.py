"""Propensity score: can a logistic regression tell synthetic rows from private ones?

pMSE = mean (p̂ − c)², where p̂ is the fitted chance that a row is synthetic and c the share of synthetic rows (Woo et al. 2009).
If the synthetic rows were drawn from the very distribution of the private rows, its expectation would be
(k − 1)(1 − c)²c/N for k coefficients and N rows in all (Snoke et al. 2018, J. R. Statist. Soc. A 181, Theorem 1). The ratio to
that expectation is near 1 for such rows; low-variance samples can go below it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcipher.evaluate.onehot import fit_classifier, one_hot

Codes = NDArray[np.int32]

MOST_ROWS = 50_000


@dataclass(frozen=True)
class Propensity:
    """The propensity score: pMSE, what it would be by chance alone, and the number of coefficients."""

    pmse: float
    expected: float
    coefficients: int

    @property
    def ratio(self) -> float:
        """pMSE over its null expectation; about 1 when only chance tells the two apart."""
        return self.pmse / self.expected if self.expected > 0 else 0.0


def propensity(private: Codes, synthetic: Codes, shape: Sequence[int], *, seed: int = 0) -> Propensity:
    """Fit a main-effects logit of "is synthetic" on every column; at most 50,000 seeded rows of each side."""
    rng = np.random.default_rng(seed)
    first, second = _some(private, rng), _some(synthetic, rng)
    codes = np.concatenate([first, second])
    is_synthetic = np.r_[np.zeros(len(first), dtype=np.int64), np.ones(len(second), dtype=np.int64)]
    x = one_hot(codes, shape)
    # Enough to stop perfect separation from running away, too little to matter otherwise.
    chances = fit_classifier(x, is_synthetic, 2, ridge=1e-4).probabilities(x)[:, 1]
    share, total = len(second) / len(codes), len(codes)
    k = 1 + sum(len(np.unique(column)) - 1 for column in codes.T)
    return Propensity(float(((chances - share) ** 2).mean()), (k - 1) * (1 - share) ** 2 * share / total, k)


def _some(codes: Codes, rng: np.random.Generator) -> Codes:
    return codes if len(codes) <= MOST_ROWS else codes[rng.choice(len(codes), MOST_ROWS, replace=False)]
