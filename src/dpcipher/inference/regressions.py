"""Regressions on weighted cells, every draw of a joint distribution at once.

A draw is a whole population, given by the probability of every cell. Its coefficients are those that maximise the expected log-likelihood
under it: what the regression would give on all of that population. That is well defined also where the model is wrong.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpcipher.inference.design import identified
from dpcipher.inference.logit import fit_logit, is_separated, unbounded
from dpcipher.inference.newton import Point, gram, maximise
from dpcipher.inference.ordinal import fit_ordinal
from dpcipher.tables.domain import Bools, Floats

# Numbers that one matrix product over several draws may hold: about 200 MB.
MOST_NUMBERS = 2**24


@dataclass(frozen=True)
class Regression:
    """A design over cells and the outcome of each: a number, or the code of one of `classes` classes (0 for a number).

    `terms` name the coefficients: the design's columns, by class for a multinomial model, after the cut points for an ordinal one.
    """

    family: str
    x: Floats
    outcome: Floats
    classes: int
    terms: tuple[str, ...]

    def fit(self, weights: Floats) -> tuple[Floats, Bools]:
        """The coefficients of every draw of the cells' weights, NaN where not identified, and which fits converged."""
        seen = np.asarray(weights.any(axis=0))
        grouped = _group(self, seen)
        keep = self._identified(grouped.x)
        size = np.sqrt((grouped.x[:, keep] ** 2).mean(axis=0))
        design = grouped.x[:, keep] / size
        whole = weights[:, seen] / weights[:, seen].sum(axis=1, keepdims=True)
        start, settled = self._fit_some(design, grouped.sums(whole.mean(axis=0)[None]), None)
        chunk = max(1, MOST_NUMBERS // max(1, design.size * max(1, self.classes)))
        parts = [
            self._fit_some(
                design, grouped.sums(whole[first : first + chunk]), start[0] if settled[0] else None
            )
            for first in range(0, len(whole), chunk)
        ]
        beta, converged = (np.concatenate(part) for part in zip(*parts, strict=True))
        infinite = self._infinite(design, grouped.sums(np.ones((1, len(whole[0]))))[0])
        if infinite.any():
            beta[:, infinite] = np.nan
            converged = np.ones_like(converged)
        return self._spread(beta, keep, size), converged

    def _infinite(self, x: Floats, possible: Floats) -> Bools:
        """The coefficients that structural zeros send to infinity: levels that leave the outcome no choice; the others keep their limits."""
        coefficients = np.zeros((max(1, self.classes - 1), x.shape[1]), dtype=bool)
        if self.family in ("logistic", "multinomial") and not possible.all() and is_separated(x, possible):
            coefficients = unbounded(x, possible)
        return coefficients.ravel()

    def _identified(self, x: Floats) -> Bools:
        """The columns that the earlier ones, cut points included, do not determine."""
        if self.family != "ordinal":
            return identified(x)
        return identified(np.c_[np.ones(len(x)), x])[1:]

    def _fit_some(self, x: Floats, sums: Floats, start: Floats | None) -> tuple[Floats, Bools]:
        if self.family == "linear":
            return fit_linear(x, sums[..., 0], sums[..., 1])
        if self.family == "poisson":
            return fit_poisson(x, sums[..., 0], sums[..., 1], start=start)[::2]
        if self.family == "ordinal":
            return fit_ordinal(x, sums, start=start)[::2]
        begin = None if start is None else start.reshape(self.classes - 1, -1)
        fit = fit_logit(x, sums, start=begin)
        return fit.coefficients.reshape(len(sums), -1), fit.converged

    def _spread(self, beta: Floats, keep: Bools, size: Floats) -> Floats:
        """The coefficients in the units of the design, those that are not identified put back as NaN."""
        cuts = self.classes - 1 if self.family == "ordinal" else 0
        blocks = self.classes - 1 if self.family in ("logistic", "multinomial") else 1
        slopes = np.full((len(beta), blocks, len(keep)), np.nan)
        slopes[:, :, keep] = beta[:, cuts:].reshape(len(beta), blocks, -1) / size
        return np.concatenate([beta[:, :cuts], slopes.reshape(len(beta), -1)], axis=1)


@dataclass(frozen=True)
class _Grouped:
    """The distinct rows of a design, and the map from cells to sums over them."""

    x: Floats
    into: sparse.csr_matrix
    columns: int

    def sums(self, weights: Floats) -> Floats:
        """By draw and distinct row: the weight of every class, or the weight and the weighted sum of the outcome."""
        return np.asarray(weights @ self.into).reshape(len(weights), len(self.x), self.columns)


def _group(regression: Regression, seen: Bools) -> _Grouped:
    distinct, where = np.unique(regression.x[seen], axis=0, return_inverse=True)
    where, y, cells = where.ravel(), regression.outcome[seen], np.arange(int(seen.sum()))
    if regression.classes:
        columns = regression.classes
        index, data = (cells, where * columns + y.astype(np.int64)), np.ones(len(cells))
    else:
        columns = 2
        index = (np.r_[cells, cells], np.r_[where * 2, where * 2 + 1])
        data = np.r_[np.ones(len(cells)), y]
    into = sparse.csr_matrix((data, index), shape=(len(cells), len(distinct) * columns))
    return _Grouped(distinct, into, columns)


def fit_linear(x: Floats, weights: Floats, totals: Floats) -> tuple[Floats, Bools]:
    """Weighted least squares of every data set, from the weight and the weighted sum of the outcome in every distinct row."""
    beta = np.asarray(np.linalg.solve(gram(x, weights), (totals @ x)[..., None])[..., 0], dtype=float)
    return beta, np.ones(len(beta), dtype=bool)


def fit_poisson(
    x: Floats, weights: Floats, totals: Floats, *, start: Floats | None = None
) -> tuple[Floats, Floats, Bools]:
    """Poisson regression with a log link: coefficients of every data set, their variances, and which fits converged."""
    if start is None:
        # Least squares on a log that 0 has too is near enough to begin from.
        mean = totals.sum() / weights.sum()
        logs = np.log(np.maximum(totals / np.maximum(weights, 1e-300), 0) + 0.5 * mean + 1e-300)
        start = fit_linear(x, weights.sum(axis=0)[None], (weights * logs).sum(axis=0)[None])[0][0]
    beta, point, converged = maximise(
        partial(_poisson, x, weights, totals), np.repeat(start[None], len(weights), axis=0)
    )
    return beta, np.diagonal(np.linalg.pinv(point.information), axis1=1, axis2=2), converged


def _poisson(x: Floats, weights: Floats, totals: Floats, which: NDArray[np.intp], beta: Floats) -> Point:
    scores = np.minimum(beta @ x.T, 700.0)
    mean = weights[which] * np.exp(scores)
    value = (totals[which] * scores - mean).sum(axis=1)
    return Point(value, (totals[which] - mean) @ x, gram(x, mean))
