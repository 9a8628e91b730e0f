"""Firth-penalised logits of many tables at once.

The formulas are those of `dpcipher.inference.logit`, one fit at a time there. Here all fits share one small design, so that a Newton step
of thousands of fits is a few matrix products: the paper's first experiment needs a million fits. Every fit is penalised: at small
epsilon most synthetic tables are separated, and a method must not change with the table.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcipher.inference.design import identified

Floats = NDArray[np.float64]

STEPS = 200
TOLERANCE = 1e-8
# The longest step on the log-odds scale, as in `fit_logit`, and the shortest before a fit counts as flat.
_LONGEST = 5.0
_SHORTEST = 2.0**-20


@dataclass(frozen=True)
class ManyFits:
    """Estimates and variances, fits by parameters (class by class); NaN where a table does not identify a parameter."""

    estimates: Floats
    variances: Floats


@dataclass(frozen=True)
class _Values:
    """The penalised likelihood at a point, its gradient and the information, for every fit."""

    value: Floats
    score: Floats
    information: Floats


def fit_many(x: Floats, counts: Floats, *, firth: bool = True) -> ManyFits:
    """Fit every table of `counts` (fits by design rows by classes) on the design `x`, class 0 the reference."""
    classes = counts.shape[2] - 1
    estimates, variances = np.full((2, len(counts), classes, x.shape[1]), np.nan)
    keeps, which = np.unique(_identified(x, counts), axis=0, return_inverse=True)
    for number, keep in enumerate(keeps):
        # Fits that identify the same parameters are made together.
        part = np.flatnonzero(which == number)
        beta, information = _newton(x[:, keep], counts[part], firth)
        spread = np.diagonal(np.linalg.inv(information), axis1=1, axis2=2)
        for all_, some in ((estimates, beta), (variances, spread)):
            all_[np.ix_(part, np.arange(classes), keep)] = some.reshape(len(part), classes, -1)
    return ManyFits(estimates.reshape(len(counts), -1), variances.reshape(len(counts), -1))


def _identified(x: Floats, counts: Floats) -> NDArray[np.bool_]:
    """Which terms the rows of each table identify, as `fit_models` has it: those that earlier terms do not determine."""
    patterns, which = np.unique(counts.sum(axis=2) > 0, axis=0, return_inverse=True)
    return np.stack([identified(x[seen]) for seen in patterns])[which.ravel()]


def _newton(x: Floats, counts: Floats, firth: bool) -> tuple[Floats, Floats]:
    """Newton's method with step halving, each fit at its own pace; finished fits are left out of the work."""
    beta = np.zeros((len(counts), x.shape[1] * (counts.shape[2] - 1)))
    now = _evaluate(x, counts, beta, firth)
    step, scale = _step(now), np.ones(len(counts))
    active = np.arange(len(counts))
    for _ in range(STEPS):
        moving = (np.abs(step[active]).max(axis=1) > TOLERANCE) & (scale[active] > _SHORTEST)
        active = active[moving]
        if not len(active):
            break
        trial = beta[active] + scale[active, None] * step[active]
        found = _evaluate(x, counts[active], trial, firth)
        old = now.value[active]
        better = found.value >= old - 1e-12 * np.abs(old)
        kept = active[better]
        beta[kept] = trial[better]
        for whole, part in zip(_arrays(now), _arrays(found), strict=True):
            whole[kept] = part[better]
        step[kept], scale[kept] = _step(_Values(*(part[better] for part in _arrays(found)))), 1.0
        scale[active[~better]] /= 2
    return beta, now.information


def _arrays(values: _Values) -> tuple[Floats, Floats, Floats]:
    return values.value, values.score, values.information


def _step(values: _Values) -> Floats:
    """The Newton step, cut to its longest length."""
    step = np.linalg.solve(values.information, values.score[..., None])[..., 0]
    size = np.abs(step).max(axis=1, keepdims=True, initial=0.0)
    return np.asarray(step * np.minimum(1.0, _LONGEST / np.maximum(size, 1e-300)))


def _evaluate(x: Floats, counts: Floats, beta: Floats, firth: bool) -> _Values:
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
        residual = residual + rows[..., None] * _firth_pull(x, pi, information)
    return _Values(value, _score(x, residual), information)


def _score(x: Floats, residual: Floats) -> Floats:
    return (residual.transpose(0, 2, 1) @ x).reshape(len(residual), -1)


def _probabilities(x: Floats, beta: Floats, classes: int) -> Floats:
    scores = np.zeros((len(beta), len(x), classes))
    scores[:, :, 1:] = x @ beta.reshape(len(beta), classes - 1, -1).transpose(0, 2, 1)
    scores -= scores.max(axis=2, keepdims=True)
    powers = np.exp(scores)
    return np.asarray(powers / powers.sum(axis=2, keepdims=True))


def _information(x: Floats, weights: Floats) -> Floats:
    """Σ over rows of V ⊗ xxᵀ, for every fit, by one product with the flattened xxᵀ."""
    fits, rows, classes, _ = weights.shape
    terms = x.shape[1]
    flat = weights.reshape(fits, rows, -1).transpose(0, 2, 1) @ _outer(x)
    blocks = flat.reshape(fits, classes, classes, terms, terms)
    return blocks.transpose(0, 1, 3, 2, 4).reshape(fits, classes * terms, classes * terms)


def _outer(x: Floats) -> Floats:
    return (x[:, :, None] * x[:, None, :]).reshape(len(x), -1)


def _firth_pull(x: Floats, pi: Floats, information: Floats) -> Floats:
    """Per row and class, ½ Σ_ab h_ab ∂V_ab/∂η_k, as in `dpcipher.inference.logit`."""
    fits, _, classes = pi.shape
    terms = x.shape[1]
    # A point that Newton will refuse may have a singular information; its pull does not matter, but it must not stop the others.
    inverse = np.linalg.pinv(information) if _any_singular(information) else np.linalg.inv(information)
    blocks = inverse.reshape(fits, classes, terms, classes, terms).transpose(0, 1, 3, 2, 4)
    h = (blocks.reshape(fits, classes * classes, -1) @ _outer(x).T).transpose(0, 2, 1)
    h = h.reshape(fits, len(x), classes, classes)
    own = np.diagonal(h, axis1=2, axis2=3) * pi
    cross = pi * (h @ pi[..., None])[..., 0]
    return np.asarray(
        0.5
        * (own - pi * own.sum(axis=2, keepdims=True) - 2 * cross + 2 * pi * cross.sum(axis=2, keepdims=True))
    )


def _any_singular(information: Floats) -> bool:
    return bool((np.linalg.slogdet(information)[0] <= 0).any())
