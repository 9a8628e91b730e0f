"""Newton's method for many fits at once: every fit has its own steps, all share each matrix product."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcipher.tables.domain import Bools, Floats

STEPS = 200
TOLERANCE = 1e-9
# A penalised step of more than 5 on the log-odds scale overshoots; this is the limit R's logistf uses.
LONGEST_STEP = 5.0
# A step that has been halved this often without raising the likelihood: the likelihood is flat.
SHORTEST_SCALE = 2.0**-20
# Beyond this condition number the information is singular: an unpenalised fit goes to infinity.
SINGULAR = 1e14
# The squared ratio of a Cholesky factor's diagonal is at most the condition number, and near it:
# the number itself is computed only beyond this.
SUSPECT = 1e6


@dataclass(frozen=True)
class Point:
    """The (penalised) log-likelihood of every fit at a point, its gradient and the information matrix."""

    value: Floats
    score: Floats
    information: Floats

    def take(self, which: NDArray[np.intp] | Bools) -> "Point":
        """The point of some of the fits."""
        return Point(self.value[which], self.score[which], self.information[which])

    def put(self, which: NDArray[np.intp], other: "Point") -> None:
        """Overwrite the point of some of the fits."""
        self.value[which], self.score[which] = other.value, other.score
        self.information[which] = other.information


Evaluate = Callable[[NDArray[np.intp], Floats], Point]  # the fits by number, and their coefficients


def maximise(evaluate: Evaluate, start: Floats, *, finite: bool = False) -> tuple[Floats, Point, Bools]:
    """Newton's method with step halving: coefficients, the point at them, and which fits converged.

    `evaluate` gives the point of some fits; its information is the expected one. A fit whose information
    becomes singular is given up, unless `finite` says that a penalty keeps its maximum finite.
    """
    beta, active = start.copy(), np.arange(len(start))
    point = evaluate(active, beta)
    step, scale = _step(point), np.ones(len(beta))
    converged = np.zeros(len(beta), dtype=bool)
    for _ in range(STEPS):
        done = (np.abs(step[active]).max(axis=1, initial=0.0) < TOLERANCE) | (scale[active] < SHORTEST_SCALE)
        converged[active[done]] = True
        active = active[~done]
        if not len(active):
            break
        trial = beta[active] + scale[active, None] * step[active]
        tried, before = evaluate(active, trial), point.value[active]
        better = tried.value >= before - 1e-12 * np.abs(before)
        moved = active[better]
        beta[moved] = trial[better]
        point.put(moved, tried.take(better))
        scale[active[~better]] /= 2
        if not finite:
            lost = moved[_singular(point.information[moved])]
            active, moved = np.setdiff1d(active, lost), np.setdiff1d(moved, lost)
        step[moved], scale[moved] = _step(point.take(moved)), 1.0
    return beta, point, converged


def gram(x: Floats, weights: Floats) -> Floats:
    """Σ over rows of w xxᵀ for every fit, by one matrix product."""
    (fits, rows), terms = weights.shape, x.shape[1]
    return ((weights[:, None, :] * x.T).reshape(-1, rows) @ x).reshape(fits, terms, terms)


def inverse(information: Floats) -> Floats:
    """The inverse of every information matrix, by pseudo-inverse of those that are nearly singular."""
    suspect = _suspect(information)
    if suspect.all():
        return np.asarray(np.linalg.pinv(information), dtype=float)
    out = np.empty_like(information)
    out[~suspect] = np.linalg.inv(information[~suspect])
    if suspect.any():
        out[suspect] = np.linalg.pinv(information[suspect])
    return out


def _singular(information: Floats) -> Bools:
    """Which matrices are singular in floating point."""
    singular = _suspect(information)
    singular[singular] = np.linalg.cond(information[singular]) > SINGULAR
    return singular


def _suspect(information: Floats) -> Bools:
    """Which matrices may be nearly singular; all of them where one has no Cholesky factor."""
    try:
        diagonal = np.diagonal(np.linalg.cholesky(information), axis1=1, axis2=2)
    except np.linalg.LinAlgError:
        return np.ones(len(information), dtype=bool)
    ratio = diagonal.max(axis=1, initial=0.0) / diagonal.min(axis=1, initial=np.inf)
    return np.asarray(ratio**2 > SUSPECT)


def _step(point: Point) -> Floats:
    """The Newton step, cut to its longest length."""
    step = np.linalg.solve(point.information, point.score[..., None])[..., 0]
    size = np.abs(step).max(axis=1, keepdims=True, initial=0.0)
    return np.asarray(step * np.minimum(1.0, LONGEST_STEP / np.maximum(size, 1e-300)))
