"""Logistic regression, binary or multinomial, by Newton's method, with Firth's penalty and an exact test of separation.

Data are counts: `counts[..., row, class]` beside a design `x[row, term]`, class 0 the reference. Leading axes of `counts` run over
data sets that share the design, and all of them are fitted at once: the paper's simulations need a million fits.

Firth (1993) adds ½ log det I(β) to the log-likelihood, which keeps estimates finite. With V = diag(π) − ππᵀ of one row x,
I = Σ V ⊗ xxᵀ, and with h_ab = xᵀ (I⁻¹)_ab x the penalty adds to the score of row x and class k

    ½ Σ_ab h_ab ∂V_ab/∂η_k,   ∂V_ab/∂η_k = δ_ab π_a(δ_ak − π_k) − π_a π_b(δ_ak + δ_bk − 2π_k),

which for two classes is the familiar h π(1 − π)(½ − π).
"""

from dataclasses import dataclass
from functools import partial
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

from dpcipher.errors import SolveError
from dpcipher.inference.design import identified
from dpcipher.inference.newton import Point, gram, inverse, maximise
from dpcipher.tables.domain import Bools, Floats


@dataclass(frozen=True)
class LogitFit:
    """Coefficients and their variances by class (reference left out) and term, NaN where the data do not identify a term.

    `log_likelihood` includes the penalty; `extreme` says that some observed row has a fitted probability near 0. Every field has
    the leading axes of the counts.
    """

    coefficients: Floats
    variances: Floats
    log_likelihood: Floats
    converged: Bools
    extreme: Bools


def group_rows(x: Floats, outcome: NDArray[np.int64], classes: int) -> tuple[Floats, Floats]:
    """The distinct rows of a design, and how many rows of each class each has: a fit costs no more than the distinct rows."""
    distinct, where = np.unique(x, axis=0, return_inverse=True)
    counts = np.zeros((len(distinct), classes))
    np.add.at(counts, (where.ravel(), outcome), 1)
    return distinct, counts


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
            partial(_evaluate, x[:, keep], stack[part], firth), begin, finite=firth
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


def _evaluate(x: Floats, stack: Floats, firth: bool, which: NDArray[np.intp], beta: Floats) -> Point:
    counts = stack[which]
    chances = _probabilities(x, beta, counts.shape[2])
    rows = counts.sum(axis=2)
    value = (counts * np.log(np.maximum(chances, 1e-300))).sum(axis=(1, 2))
    pi = chances[:, :, 1:]
    residual = counts[:, :, 1:] - rows[..., None] * pi
    spread = np.eye(pi.shape[2]) * pi[..., None] - pi[..., None] * pi[..., None, :]
    information = _information(x, spread * rows[..., None, None])
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


def _information(x: Floats, weights: Floats) -> Floats:
    """Σ over rows of V ⊗ xxᵀ for every fit: one matrix product for each pair of classes."""
    (fits, _, classes, _), terms = weights.shape, x.shape[1]
    blocks = np.empty((fits, classes, terms, classes, terms))
    for a, b in combinations_with_replacement(range(classes), 2):
        blocks[:, a, :, b] = blocks[:, b, :, a] = gram(x, weights[..., a, b])
    return blocks.reshape(fits, classes * terms, classes * terms)


def _firth_pull(x: Floats, pi: Floats, inverse: Floats) -> Floats:
    """Per row and class, ½ Σ_ab h_ab ∂V_ab/∂η_k (the module's formula, summed over a and b)."""
    (fits, rows, classes), terms = pi.shape, x.shape[1]
    right = (inverse.reshape(-1, terms) @ x.T).reshape(fits, classes, terms, classes, rows)
    h = np.einsum("fapbi,ip->fiab", right, x)
    own = np.diagonal(h, axis1=2, axis2=3) * pi
    cross = pi * (h @ pi[..., None])[..., 0]
    pull = own - 2 * cross - pi * (own - 2 * cross).sum(axis=2, keepdims=True)
    return np.asarray(0.5 * pull)


def is_separated(x: Floats, counts: Floats) -> bool:
    """Whether some direction improves the likelihood of one data set for ever, so that no finite estimate maximises it.

    Exact, by a linear programme (Konis 2007): a direction d with (d_own − d_k)·x ≥ 0 for every observed row and class k, and
    above 0 for at least one.
    """
    gains = _gains(x, counts)
    return _furthest(gains, np.asarray(gains.sum(axis=0)).ravel()) > 1e-7


def unbounded(x: Floats, counts: Floats) -> Bools:
    """Which coefficients, classes by terms, some such direction sends to infinity; the design must identify all of them."""
    gains, size = _gains(x, counts), (counts.shape[1] - 1) * x.shape[1]
    ways = [_furthest(gains, sign * axis) for axis in np.eye(size) for sign in (1.0, -1.0)]
    return np.asarray(np.array(ways).reshape(-1, x.shape[1], 2).max(axis=2) > 1e-7)


def _furthest(gains: sparse.csr_matrix, toward: Floats) -> float:
    """How far a direction of at most 1 in every coefficient, along which no observed class loses, goes toward another."""
    solution = linprog(-toward, A_ub=-gains, b_ub=np.zeros(gains.shape[0]), bounds=(-1, 1), method="highs")
    if solution.status != 0:
        raise SolveError("the test for separation did not finish; scale the numeric columns of the formula")
    return float(-solution.fun)


def _gains(x: Floats, counts: Floats) -> sparse.csr_matrix:
    """One row per observed row and other class: what each coefficient adds to the log-odds of the observed class over it."""
    chosen = np.eye(counts.shape[1])
    rows = [
        np.kron((chosen[own] - np.delete(chosen, own, axis=0))[:, 1:], x[i])
        for i, own in np.argwhere(counts > 0)
    ]
    return sparse.csr_matrix(np.vstack(rows))
