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

from dpcipher.inference.design import one_hot
from dpcipher.marginals.arrays import Codes
from dpcipher.scoring.classifier import MOST_COEFFICIENTS, fit_classifier, subsample

# Fewer rows than this for each coefficient, and maximum likelihood is mostly noise.
ROWS_EACH = 10
# Enough to stop perfect separation from running away, too little to matter otherwise.
RIDGE = 2e-4


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
    sides = [subsample(codes, rng) for codes in (private, synthetic)]
    codes, sizes, order = _with_pairs(np.concatenate(sides), shape)
    x, is_synthetic = one_hot(codes, sizes), np.repeat([0, 1], [len(side) for side in sides])
    chances = fit_classifier(x, is_synthetic, 2, ridge=RIDGE).probabilities(x)[:, 1]
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
