"""Ordinal regression with proportional odds, many fits at once.

McCullagh (1980): with classes 0 < 1 < … < K−1 and cut points θ_0 < … < θ_{K−2}, the model is logit P(Y ≤ k | x) = θ_k − xβ, so that a
positive coefficient moves the outcome up, as in R's `polr`. With γ_k = P(Y ≤ k | x), g_k = γ_k(1 − γ_k) and p_k = γ_k − γ_{k−1},

    ∂p_k/∂θ_k = g_k,   ∂p_k/∂θ_{k−1} = −g_{k−1},   ∂p_k/∂(xβ) = −(g_k − g_{k−1}),

and the expected information of one row is Σ_k ∂p_k ∂p_kᵀ / p_k. Steps that would put the cut points out of order are halved.
"""

from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from dpcipher.inference.newton import Point, gram, maximise
from dpcipher.tables.domain import Bools, Floats


def fit_ordinal(x: Floats, counts: Floats, *, start: Floats | None = None) -> tuple[Floats, Floats, Bools]:
    """Cut points then coefficients of every data set, their variances, and which fits converged.

    `counts[set, row, class]` stands beside a design `x[row, term]` without an intercept; every class must occur.
    """
    if start is None:
        start = _independent(x, counts.sum(axis=(0, 1)))
    beta, point, converged = maximise(
        partial(_evaluate, x, counts), np.repeat(start[None], len(counts), axis=0)
    )
    return beta, np.diagonal(np.linalg.pinv(point.information), axis1=1, axis2=2), converged


def _independent(x: Floats, totals: Floats) -> Floats:
    """The fit of a model in which nothing matters: cut points at the shares of the classes."""
    below = np.cumsum(totals / totals.sum())[:-1]
    return np.asarray(np.r_[logit(np.clip(below, 1e-9, 1 - 1e-9)), np.zeros(x.shape[1])], dtype=float)


def _evaluate(x: Floats, stack: Floats, which: NDArray[np.intp], beta: Floats) -> Point:
    counts, cuts = stack[which], stack.shape[2] - 1
    below = expit(beta[:, None, :cuts] - (beta[:, cuts:] @ x.T)[..., None])
    edge = np.zeros((*below.shape[:2], 1))
    chance = np.diff(np.concatenate([edge, below, edge + 1], axis=2), axis=2)
    orderly = (np.diff(beta[:, :cuts], axis=1) > 0).all(axis=1)
    safe = np.maximum(chance, 1e-300)
    value = np.where(orderly, (counts * np.log(safe)).sum(axis=(1, 2)), -np.inf)
    slopes = _slopes(below)
    pulls = np.einsum("fgk,fgkc->fgc", counts / safe, slopes)
    score = np.concatenate([pulls[..., :cuts].sum(axis=1), pulls[..., cuts] @ x], axis=1)
    weight = counts.sum(axis=2)[..., None] / safe
    return Point(value, score, _information(x, np.einsum("fgkc,fgk,fgkd->fgcd", slopes, weight, slopes)))


def _slopes(below: Floats) -> Floats:
    """∂p_k by cut point and, last, by the linear predictor: fits by rows by classes by (cut points + 1)."""
    fits, rows, cuts = below.shape
    slope = below * (1 - below)
    out = np.zeros((fits, rows, cuts + 1, cuts + 1))
    for cut in range(cuts):
        out[:, :, cut, cut] = slope[:, :, cut]
        out[:, :, cut + 1, cut] = -slope[:, :, cut]
    out[..., cuts] = -out[..., :cuts].sum(axis=3)
    return out


def _information(x: Floats, inner: Floats) -> Floats:
    """The information of cut points and coefficients from that of the cut points and the linear predictor of every row."""
    cuts, terms = inner.shape[2] - 1, x.shape[1]
    out = np.empty((len(inner), cuts + terms, cuts + terms))
    out[:, :cuts, :cuts] = inner[:, :, :cuts, :cuts].sum(axis=1)
    out[:, :cuts, cuts:] = inner[:, :, :cuts, cuts].transpose(0, 2, 1) @ x
    out[:, cuts:, :cuts] = out[:, :cuts, cuts:].transpose(0, 2, 1)
    out[:, cuts:, cuts:] = gram(x, inner[:, :, cuts, cuts])
    return out
