"""Coded rows as 0/1 columns, and ridge-stabilised multinomial logits over them, for any number of columns."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import logsumexp

Codes = NDArray[np.int32]
Floats = NDArray[np.float64]


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
    """Maximise the log-likelihood less ½·ridge·|weights|² (the intercept is free), by L-BFGS."""
    target = np.zeros((x.shape[0], classes))
    target[np.arange(x.shape[0]), outcome] = 1
    penalty = np.full((x.shape[1], 1), ridge)
    penalty[0] = 1e-8 * ridge

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(x.shape[1], classes)
        scores = np.asarray(x @ weights)
        norm = logsumexp(scores, axis=1, keepdims=True)
        value = float(
            (norm.ravel() - (scores * target).sum(axis=1)).sum() + 0.5 * (penalty * weights**2).sum()
        )
        slope = x.T @ (np.exp(scores - norm) - target) + penalty * weights
        # Scaled by the number of rows, so that the stopping rule does not depend on it.
        return value / x.shape[0], np.asarray(slope).ravel() / x.shape[0]

    start = np.zeros(x.shape[1] * classes)
    found = minimize(
        loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 1000, "ftol": 1e-14, "gtol": 1e-8}
    )
    return Classifier(np.asarray(found.x).reshape(x.shape[1], classes))
