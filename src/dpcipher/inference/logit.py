"""Multinomial and binary logistic regression by Newton's method, with Firth's penalty and an exact test of separation.

Rows with the same design are grouped, so categorical data of any length cost no more than their distinct rows.

Firth (1993) adds ½ log det I(β) to the log-likelihood, which keeps estimates finite. With V = diag(π) − ππᵀ of one row x,
I = Σ V ⊗ xxᵀ, and with h_ab = xᵀ (I⁻¹)_ab x the penalty adds to the score of row x and class k

    ½ Σ_ab h_ab ∂V_ab/∂η_k,   ∂V_ab/∂η_k = δ_ab π_a(δ_ak − π_k) − π_a π_b(δ_ak + δ_bk − 2π_k),

which for two classes is the familiar h π(1 − π)(½ − π).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

from dpcipher.errors import SolveError

Floats = NDArray[np.float64]

STEPS = 200
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Grouped:
    """Distinct design rows `x`, and how many rows of each class each has; class 0 is the reference."""

    x: Floats
    counts: Floats

    @classmethod
    def of(cls, x: Floats, outcome: NDArray[np.int64], classes: int) -> "Grouped":
        """Group equal rows of the design."""
        distinct, where = np.unique(x, axis=0, return_inverse=True)
        counts = np.zeros((len(distinct), classes))
        np.add.at(counts, (where.ravel(), outcome), 1)
        return cls(distinct, counts)

    @property
    def size(self) -> int:
        """How many coefficients a fit has."""
        return int(self.x.shape[1] * (self.counts.shape[1] - 1))


@dataclass(frozen=True)
class Fit:
    """Coefficients by class (reference left out) and term, their covariance in the same order, and the penalised likelihood."""

    coefficients: Floats
    covariance: Floats
    log_likelihood: float
    converged: bool
    extreme: bool


def fit_logit(data: Grouped, *, firth: bool = False) -> Fit:
    """Newton's method with step halving; expected information, which for logits is also the observed one."""
    beta = np.zeros((data.counts.shape[1] - 1, data.x.shape[1]))
    value, score, information = _evaluate(data, beta, firth)
    converged = False
    for _ in range(STEPS):
        step = np.asarray(np.linalg.solve(information, score), dtype=float).reshape(beta.shape)
        if float(np.abs(step).max(initial=0.0)) < TOLERANCE:
            converged = True
            break
        # A penalised step of more than 5 on the log-odds scale overshoots; this is the limit R's logistf uses.
        step *= min(1.0, 5.0 / float(np.abs(step).max()))
        beta, value, score, information, moved = _halve(data, beta, step, value, firth)
        if not moved:
            converged = True
            break
        if np.linalg.cond(information) > 1e14:
            break
    chances = _probabilities(data.x, beta)
    extreme = bool((chances.min(axis=1) < 1e-6).any())
    return Fit(beta, np.asarray(np.linalg.pinv(information), dtype=float), value, converged, extreme)


def _halve(
    data: Grouped, beta: Floats, step: Floats, value: float, firth: bool
) -> tuple[Floats, float, Floats, Floats, bool]:
    """The longest halved step that does not lower the objective; none at all once the objective is flat."""
    for halving in range(30):
        trial = beta + step / 2**halving
        found = _evaluate(data, trial, firth)
        if found[0] >= value - 1e-12 * abs(value) and np.isfinite(found[0]):
            return trial, *found, True
    return beta, *_evaluate(data, beta, firth), False


def _probabilities(x: Floats, beta: Floats) -> Floats:
    """Probabilities of every class by row, the reference first."""
    scores = np.column_stack([np.zeros(len(x)), x @ beta.T])
    scores -= scores.max(axis=1, keepdims=True)
    powers = np.exp(scores)
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _evaluate(data: Grouped, beta: Floats, firth: bool) -> tuple[float, Floats, Floats]:
    """The (penalised) log-likelihood, its gradient and the information matrix."""
    chances = _probabilities(data.x, beta)
    rows = data.counts.sum(axis=1)
    with np.errstate(divide="ignore"):
        logs = np.where(data.counts > 0, np.log(chances), 0.0)
    value = float((data.counts * logs).sum())
    pi = chances[:, 1:]
    residual = data.counts[:, 1:] - rows[:, None] * pi
    weights = (np.eye(pi.shape[1]) * pi[:, :, None] - pi[:, :, None] * pi[:, None, :]) * rows[:, None, None]
    information = _information(data.x, weights)
    if firth:
        sign, logdet = np.linalg.slogdet(information)
        if sign <= 0:
            return -np.inf, residual.T @ data.x, information
        value += 0.5 * float(logdet)
        residual = residual + rows[:, None] * _firth_pull(data.x, pi, information)
    return value, (residual.T @ data.x).ravel(), information


def _information(x: Floats, weights: Floats) -> Floats:
    classes, terms = weights.shape[1], x.shape[1]
    blocks = np.empty((classes, terms, classes, terms))
    for a in range(classes):
        for b in range(a, classes):
            blocks[a, :, b, :] = blocks[b, :, a, :] = (x * weights[:, a, b, None]).T @ x
    return blocks.reshape(classes * terms, classes * terms)


def _firth_pull(x: Floats, pi: Floats, information: Floats) -> Floats:
    """Per row and class, ½ Σ_ab h_ab ∂V_ab/∂η_k (the module's formula, summed over a and b)."""
    classes, terms = pi.shape[1], x.shape[1]
    inverse = np.linalg.inv(information).reshape(classes, terms, classes, terms)
    h = np.einsum("ip,apbq,iq->iab", x, inverse, x, optimize=True)
    own = np.einsum("iaa,ia->ia", h, pi)
    cross = np.einsum("iab,ia,ib->ia", h, pi, pi)
    return np.asarray(
        0.5
        * (own - pi * own.sum(axis=1, keepdims=True) - 2 * cross + 2 * pi * cross.sum(axis=1, keepdims=True))
    )


def is_separated(data: Grouped) -> bool:
    """Whether some direction improves the likelihood for ever, so that no finite estimate maximises it.

    Exact, by a linear programme (Konis 2007): a direction d with (d_own − d_k)·x ≥ 0 for every observed row and class k, and
    above 0 for at least one.
    """
    rows = [_gains(data.x[i], own, data.counts.shape[1]) for i, own in np.argwhere(data.counts > 0)]
    gains = sparse.csr_matrix(np.vstack(rows))
    found = linprog(
        -np.asarray(gains.sum(axis=0)).ravel(),
        A_ub=-gains,
        b_ub=np.zeros(gains.shape[0]),
        bounds=(-1, 1),
        method="highs",
    )
    if found.status != 0:
        raise SolveError("the test for separation did not finish; scale the numeric columns of the formula")
    return bool(-found.fun > 1e-7)


def _gains(x: Floats, own: int, classes: int) -> Floats:
    """One row per other class: what each coefficient adds to the log-odds of the observed class over it."""
    block = np.zeros((classes, classes, len(x)))
    block[:, own] += x
    for other in range(classes):
        block[other, other] -= x
    others = [k for k in range(classes) if k != own]
    return np.asarray(block[others][:, 1:].reshape(len(others), -1))
