"""Linear, Poisson, logistic, multinomial and ordinal regression, many data sets at once.

The data sets share a design `x[row, term]`. Of each, a numeric outcome has the sums of weight, outcome and
squared outcome of every row, and one of classes has the weight of every class. Newton's method fits all of
them together: the paper's simulations need a million fits.

**Logistic and multinomial.** Firth (1993) adds ½ log det I(β) to the log-likelihood, which keeps estimates
finite. With V = diag(π) − ππᵀ of one row x, I = Σ V ⊗ xxᵀ, and with h_ab = xᵀ (I⁻¹)_ab x the penalty adds to
the score of row x and class k

    ½ Σ_ab h_ab ∂V_ab/∂η_k,   ∂V_ab/∂η_k = δ_ab π_a(δ_ak − π_k) − π_a π_b(δ_ak + δ_bk − 2π_k),

which for two classes is the familiar h π(1 − π)(½ − π).

**Ordinal** (McCullagh 1980): with classes 0 < 1 < … < K−1 and cut points θ_0 < … < θ_{K−2}, logit P(Y ≤ k |
x) = θ_k − xβ, so that a positive coefficient moves the outcome up, as in R's `polr`. With γ_k = P(Y ≤ k | x),
g_k = γ_k(1 − γ_k) and p_k = γ_k − γ_{k−1},

    ∂p_k/∂θ_k = g_k,   ∂p_k/∂θ_{k−1} = −g_{k−1},   ∂p_k/∂(xβ) = −(g_k − g_{k−1}),

and the expected information of one row is Σ_k ∂p_k ∂p_kᵀ / p_k. Steps that would put the cut points out of
order are halved.
"""

from dataclasses import dataclass
from functools import partial
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog
from scipy.special import expit, logit

from dpcipher.errors import SolveError
from dpcipher.inference.newton import Point, gram, inverse, maximise
from dpcipher.tables.domain import Bools, Floats


def identified(x: Floats) -> Bools:
    """The columns that earlier columns do not already determine (pivots of Gram-Schmidt, in order)."""
    _, r = np.linalg.qr(x)
    size = np.linalg.norm(x, axis=0)
    keep = np.zeros(x.shape[1], dtype=bool)
    diagonal = np.abs(np.diag(r))
    if (diagonal > 1e-9 * np.maximum(size[: len(diagonal)], 1e-300)).all() and len(diagonal) == x.shape[1]:
        return ~keep
    for column in range(x.shape[1]):
        chosen = x[:, [*np.flatnonzero(keep), column]]
        keep[column] = np.linalg.matrix_rank(chosen) == chosen.shape[1]
    return keep


def fit_linear(x: Floats, sums: Floats) -> tuple[Floats, Floats, Bools]:
    """Least squares: coefficients of every data set, their variances, and that all fits converged."""
    weights, totals, squares = sums[..., 0], sums[..., 1], sums[..., 2]
    information = gram(x, weights)
    beta = np.asarray(np.linalg.solve(information, (totals @ x)[..., None])[..., 0], dtype=float)
    # The squared residuals, as those of each row's mean and those about it: no large numbers cancel.
    means = totals / np.maximum(weights, 1e-300)
    about = np.maximum(squares - totals * means, 0.0) + weights * (means - beta @ x.T) ** 2
    noise = about.sum(axis=1) / np.maximum(weights.sum(axis=1) - x.shape[1], 1.0)
    spread = np.diagonal(np.linalg.inv(information), axis1=1, axis2=2)
    return beta, noise[:, None] * spread, np.ones(len(beta), dtype=bool)


def fit_poisson(x: Floats, sums: Floats, *, start: Floats | None = None) -> tuple[Floats, Floats, Bools]:
    """Poisson regression with a log link: coefficients, their variances, and which fits converged."""
    weights, totals = sums[..., 0], sums[..., 1]
    if start is None:
        # Least squares on a log that is finite at 0, too, is near enough to begin from.
        mean = totals.sum() / weights.sum()
        logs = np.log(np.maximum(totals / np.maximum(weights, 1e-300), 0) + 0.5 * mean + 1e-300)
        information = gram(x, weights.sum(axis=0)[None])[0]
        start = np.linalg.solve(information, (weights * logs).sum(axis=0) @ x)
    beta, point, converged = maximise(
        partial(_poisson_point, x, weights, totals), np.repeat(start[None], len(weights), axis=0)
    )
    return beta, np.diagonal(np.linalg.pinv(point.information), axis1=1, axis2=2), converged


def _poisson_point(
    x: Floats, weights: Floats, totals: Floats, which: NDArray[np.intp], beta: Floats
) -> Point:
    scores = np.minimum(beta @ x.T, 700.0)
    mean = weights[which] * np.exp(scores)
    value = (totals[which] * scores - mean).sum(axis=1)
    return Point(value, (totals[which] - mean) @ x, gram(x, mean))


@dataclass(frozen=True)
class LogitFit:
    """Coefficients and variances by class (reference left out) and term; NaN where a term is not identified.

    `log_likelihood` includes the penalty; `extreme` says that some observed row has a fitted probability near
    0. Every field has the leading axes of the counts.
    """

    coefficients: Floats
    variances: Floats
    log_likelihood: Floats
    converged: Bools
    extreme: Bools


def fit_logit(x: Floats, counts: Floats, *, firth: bool = False, start: Floats | None = None) -> LogitFit:
    """Maximise the (penalised) likelihood of every data set; unidentified terms are left out of its fit.

    `start`, classes by terms, is where every fit begins: 0 unless something better is known.
    """
    lead, (rows, classes) = counts.shape[:-2], counts.shape[-2:]
    stack = counts.reshape(-1, rows, classes)
    coefficients, variances = np.full((2, len(stack), classes - 1, x.shape[1]), np.nan)
    value, (converged, extreme) = np.empty(len(stack)), np.empty((2, len(stack)), dtype=bool)
    keeps, which = np.unique(_identified(x, stack), axis=0, return_inverse=True)
    for number, keep in enumerate(keeps):
        part = np.flatnonzero(which.ravel() == number)
        begin = _start(start, len(part), classes - 1, keep)
        beta, point, converged[part] = maximise(
            partial(_logit_point, x[:, keep], stack[part], firth), begin, finite=firth
        )
        spread = np.diagonal(inverse(point.information), axis1=1, axis2=2)
        place = np.ix_(part, np.arange(classes - 1), keep)
        coefficients[place] = beta.reshape(len(part), classes - 1, -1)
        variances[place] = spread.reshape(len(part), classes - 1, -1)
        value[part] = point.value
        least = _probabilities(x[:, keep], beta, classes).min(axis=2)
        extreme[part] = ((least < 1e-6) & (stack[part].sum(axis=2) > 0)).any(axis=1)
    fields = (coefficients, variances, value, converged, extreme)
    return LogitFit(*(field.reshape((*lead, *field.shape[1:])) for field in fields))


def _identified(x: Floats, counts: Floats) -> Bools:
    """Which terms the rows of each data set identify."""
    patterns, which = np.unique(counts.sum(axis=2) > 0, axis=0, return_inverse=True)
    return np.stack([identified(x[seen]) for seen in patterns])[which.ravel()]


def _start(start: Floats | None, fits: int, classes: int, keep: Bools) -> Floats:
    """The first coefficients of every fit."""
    first = np.zeros((classes, len(keep))) if start is None else np.nan_to_num(start)
    return np.repeat(first[:, keep].reshape(1, -1), fits, axis=0)


def _logit_point(x: Floats, stack: Floats, firth: bool, which: NDArray[np.intp], beta: Floats) -> Point:
    counts = stack[which]
    probabilities = _probabilities(x, beta, counts.shape[2])
    rows = counts.sum(axis=2)
    value = (counts * np.log(np.maximum(probabilities, 1e-300))).sum(axis=(1, 2))
    pi = probabilities[:, :, 1:]
    residual = counts[:, :, 1:] - rows[..., None] * pi
    spread = np.eye(pi.shape[2]) * pi[..., None] - pi[..., None] * pi[..., None, :]
    information = _logit_information(x, spread * rows[..., None, None])
    if firth:
        sign, logdet = np.linalg.slogdet(information)
        value = np.where(sign > 0, value + 0.5 * logdet, -np.inf)
        # A trial point that is refused may have a singular information; it must not stop the other fits.
        inverted = (np.linalg.inv if (sign > 0).all() else np.linalg.pinv)(information)
        residual = residual + rows[..., None] * _firth_pull(x, pi, np.asarray(inverted, dtype=float))
    return Point(value, (residual.transpose(0, 2, 1) @ x).reshape(len(counts), -1), information)


def _probabilities(x: Floats, beta: Floats, classes: int) -> Floats:
    """Probabilities of every class by fit and row, the reference first."""
    scores = np.zeros((len(beta), len(x), classes))
    scores[:, :, 1:] = x @ beta.reshape(len(beta), classes - 1, -1).transpose(0, 2, 1)
    powers = np.exp(scores - scores.max(axis=2, keepdims=True))
    return np.asarray(powers / powers.sum(axis=2, keepdims=True))


def _logit_information(x: Floats, weights: Floats) -> Floats:
    """Σ over rows of V ⊗ xxᵀ for every fit: one matrix product for each pair of classes."""
    (fits, _, classes, _), terms = weights.shape, x.shape[1]
    blocks = np.empty((fits, classes, terms, classes, terms))
    for a, b in combinations_with_replacement(range(classes), 2):
        blocks[:, a, :, b] = blocks[:, b, :, a] = gram(x, weights[..., a, b])
    return blocks.reshape(fits, classes * terms, classes * terms)


def _firth_pull(x: Floats, pi: Floats, inverse: Floats) -> Floats:
    """Per row and class, ½ Σ_ab h_ab ∂V_ab/∂η_k (the formula at the top, summed over a and b)."""
    (fits, rows, classes), terms = pi.shape, x.shape[1]
    right = (inverse.reshape(-1, terms) @ x.T).reshape(fits, classes, terms, classes, rows)
    h = np.einsum("fapbi,ip->fiab", right, x)
    own = np.diagonal(h, axis1=2, axis2=3) * pi
    cross = pi * (h @ pi[..., None])[..., 0]
    pull = own - 2 * cross - pi * (own - 2 * cross).sum(axis=2, keepdims=True)
    return np.asarray(0.5 * pull)


def is_separated(x: Floats, counts: Floats) -> bool:
    """Whether the likelihood of one data set rises for ever in some direction: no estimate is finite.

    Exact, by a linear programme (Konis 2007): a direction d with (d_own − d_k)·x ≥ 0 for every observed row
    and class k, and above 0 for at least one.
    """
    gains = _gains(x, counts)
    return _furthest(gains, np.asarray(gains.sum(axis=0)).ravel()) > 1e-7


def unbounded(x: Floats, counts: Floats) -> Bools:
    """Which coefficients, classes by terms, separation sends to infinity; all must be identified."""
    gains, size = _gains(x, counts), (counts.shape[1] - 1) * x.shape[1]
    lengths = [_furthest(gains, sign * axis) for axis in np.eye(size) for sign in (1.0, -1.0)]
    return np.asarray(np.array(lengths).reshape(-1, x.shape[1], 2).max(axis=2) > 1e-7)


def _furthest(gains: sparse.csr_matrix, toward: Floats) -> float:
    """How far a direction that hurts no observed class goes toward a vector, by 1 in each coefficient."""
    solution = linprog(-toward, A_ub=-gains, b_ub=np.zeros(gains.shape[0]), bounds=(-1, 1), method="highs")
    if solution.status != 0:
        raise SolveError("the test for separation did not finish; scale the numeric columns of the formula")
    return float(-solution.fun)


def _gains(x: Floats, counts: Floats) -> sparse.csr_matrix:
    """By observed row and other class, what each coefficient adds to the log-odds of the observed class."""
    chosen = np.eye(counts.shape[1])
    rows = [
        np.kron((chosen[own] - np.delete(chosen, own, axis=0))[:, 1:], x[i])
        for i, own in np.argwhere(counts > 0)
    ]
    return sparse.csr_matrix(np.vstack(rows))


def fit_ordinal(x: Floats, counts: Floats, *, start: Floats | None = None) -> tuple[Floats, Floats, Bools]:
    """Cut points then coefficients of every data set, their variances, and which fits converged.

    `counts[set, row, class]` stands beside a design `x[row, term]` without an intercept; every class must
    occur.
    """
    if start is None:
        start = _no_effects(x, counts.sum(axis=(0, 1)))
    beta, point, converged = maximise(
        partial(_ordinal_point, x, counts), np.repeat(start[None], len(counts), axis=0)
    )
    return beta, np.diagonal(np.linalg.pinv(point.information), axis1=1, axis2=2), converged


def _no_effects(x: Floats, totals: Floats) -> Floats:
    """The fit of a model without effects: cut points at the shares of the classes."""
    below = np.cumsum(totals / totals.sum())[:-1]
    return np.asarray(np.r_[logit(np.clip(below, 1e-9, 1 - 1e-9)), np.zeros(x.shape[1])], dtype=float)


def _ordinal_point(x: Floats, stack: Floats, which: NDArray[np.intp], beta: Floats) -> Point:
    counts, cuts = stack[which], stack.shape[2] - 1
    below = expit(beta[:, None, :cuts] - (beta[:, cuts:] @ x.T)[..., None])
    edge = np.zeros((*below.shape[:2], 1))
    probabilities = np.diff(np.concatenate([edge, below, edge + 1], axis=2), axis=2)
    orderly = (np.diff(beta[:, :cuts], axis=1) > 0).all(axis=1)
    safe = np.maximum(probabilities, 1e-300)
    value = np.where(orderly, (counts * np.log(safe)).sum(axis=(1, 2)), -np.inf)
    slopes = _slopes(below)
    pulls = np.einsum("fgk,fgkc->fgc", counts / safe, slopes)
    score = np.concatenate([pulls[..., :cuts].sum(axis=1), pulls[..., cuts] @ x], axis=1)
    weight = counts.sum(axis=2)[..., None] / safe
    return Point(
        value, score, _ordinal_information(x, np.einsum("fgkc,fgk,fgkd->fgcd", slopes, weight, slopes))
    )


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


def _ordinal_information(x: Floats, inner: Floats) -> Floats:
    """The information of cut points and coefficients, from that of cut points and linear predictor by row."""
    cuts, terms = inner.shape[2] - 1, x.shape[1]
    out = np.empty((len(inner), cuts + terms, cuts + terms))
    out[:, :cuts, :cuts] = inner[:, :, :cuts, :cuts].sum(axis=1)
    out[:, :cuts, cuts:] = inner[:, :, :cuts, cuts].transpose(0, 2, 1) @ x
    out[:, cuts:, :cuts] = out[:, :cuts, cuts:].transpose(0, 2, 1)
    out[:, cuts:, cuts:] = gram(x, inner[:, :, cuts, cuts])
    return out
