"""Regressions on weighted rows, many weightings at once.

A draw of a joint distribution is a whole population, given by the probability of every cell. Its coefficients
are those that maximise the expected log-likelihood under it: what the regression would give on all of that
population. That is well defined also where the model is wrong. A set of rows is the case of one weighting in
which every row weighs 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from scipy import sparse

from dpcipher.inference.glm import (
    fit_linear,
    fit_logit,
    fit_ordinal,
    fit_poisson,
    identified,
    is_separated,
    unbounded,
)
from dpcipher.tables.domain import Bools, Floats

Family = Literal["logistic", "multinomial", "ordinal", "linear", "poisson"]
FAMILIES: tuple[str, ...] = get_args(Family)

# Numbers that one matrix product over several weightings may hold: about 200 MB.
MOST_NUMBERS = 2**24


@dataclass(frozen=True)
class Fits:
    """The coefficients of every weighting and which fits converged; NaN where a term is not identified.

    `variances` take weights for numbers of rows. `extreme` marks fits in which some row has a probability
    near 0; `separated` says that some coefficient has no finite estimate.
    """

    coefficients: Floats
    variances: Floats
    converged: Bools
    extreme: Bools
    separated: bool = False

    @classmethod
    def joined(cls, parts: Sequence["Fits"]) -> "Fits":
        """The fits of several parts of the weightings."""
        return cls(
            np.concatenate([part.coefficients for part in parts]),
            np.concatenate([part.variances for part in parts]),
            np.concatenate([part.converged for part in parts]),
            np.concatenate([part.extreme for part in parts]),
        )


@dataclass(frozen=True)
class Regression:
    """A design over rows and their outcomes: numbers, or codes of classes (`classes` is 0 for numbers).

    `terms` name the coefficients: the design's columns, by class for a multinomial model, after the cut
    points for an ordinal one. `about` has the columns of the table that each of them is about.
    """

    family: Family
    x: Floats
    outcome: Floats
    classes: int
    terms: tuple[str, ...]
    about: tuple[tuple[str, ...], ...]

    def fit(self, weights: Floats, *, firth: bool = False) -> Fits:
        """Fit every weighting of the rows; `firth` penalises models of classes, which keeps them finite."""
        data = self._group(weights)
        fits = self._fit(data, weights.mean(axis=0)[None], firth, None)
        if len(weights) > 1:
            start = fits.coefficients[0] if fits.converged[0] else None
            chunk = max(1, MOST_NUMBERS // max(1, data.x.size * max(1, self.classes)))
            parts = [
                self._fit(data, weights[first : first + chunk], firth, start)
                for first in range(0, len(weights), chunk)
            ]
            fits = Fits.joined(parts)
        separated = not firth and bool((fits.extreme | ~fits.converged).any()) and self._is_separated(data)
        return Fits(
            self._in_own_units(fits.coefficients, data, 1),
            self._in_own_units(fits.variances, data, 2),
            fits.converged,
            fits.extreme,
            separated,
        )

    def fit_draws(self, weights: Floats) -> Fits:
        """Fit every draw of a population; coefficients that structural zeros send to infinity are NaN."""
        fits = self.fit(weights / weights.sum(axis=1, keepdims=True))
        if not fits.separated:
            return fits
        data = self._group(weights)
        infinite = np.zeros((self.classes - 1, len(data.keep)), dtype=bool)
        infinite[:, data.keep] = unbounded(data.x, self._support(data))
        coefficients = np.where(infinite.ravel(), np.nan, fits.coefficients)
        return replace(fits, coefficients=coefficients, converged=np.ones_like(fits.converged))

    def _fit(self, data: "_Grouped", weights: Floats, firth: bool, start: Floats | None) -> Fits:
        """The fits of some weightings, in the units of the grouped design."""
        sums, x = data.sums(weights), data.x
        if self.family in ("logistic", "multinomial"):
            begin = None if start is None else start.reshape(self.classes - 1, -1)
            fit = fit_logit(x, sums, firth=firth, start=begin)
            beta, variances = (part.reshape(len(sums), -1) for part in (fit.coefficients, fit.variances))
            return Fits(beta, variances, fit.converged, fit.extreme)
        if self.family == "linear":
            beta, variances, converged = fit_linear(x, sums)
        elif self.family == "poisson":
            beta, variances, converged = fit_poisson(x, sums, start=start)
        else:
            beta, variances, converged = fit_ordinal(x, sums, start=start)
        return Fits(beta, variances, converged, np.zeros_like(converged))

    def _group(self, weights: Floats) -> "_Grouped":
        """The rows that have weight, each distinct one once, on the scale of their columns.

        One weighting of numbers is not grouped: to sort its rows would take longer than the fit.
        """
        seen = np.flatnonzero(weights.any(axis=0))
        x, y = self.x[seen], self.outcome[seen]
        where = np.arange(len(seen))
        if self.classes or len(weights) > 1:
            x, where = np.unique(x, axis=0, return_inverse=True)
            where = where.ravel()
        if self.classes:
            columns, index, values = (
                self.classes,
                (seen, where * self.classes + y.astype(np.int64)),
                np.ones(len(seen)),
            )
        else:
            columns = 3
            index = (np.tile(seen, 3), np.concatenate([where * 3 + place for place in range(3)]))
            values = np.concatenate([np.ones(len(seen)), y, y**2])
        into = sparse.csr_matrix((values, index), shape=(len(self.x), len(x) * columns))
        cuts = self.family == "ordinal"  # which are an intercept
        keep = identified(np.c_[np.ones(len(x)), x])[1:] if cuts else identified(x)
        size = np.sqrt((x[:, keep] ** 2).mean(axis=0))
        return _Grouped(x[:, keep] / size, keep, size, into, columns)

    def _support(self, data: "_Grouped") -> Floats:
        """Which classes occur beside each row of a grouped design, as counts."""
        return np.asarray(data.sums(np.ones((1, len(self.x))))[0])

    def _is_separated(self, data: "_Grouped") -> bool:
        support = self._support(data)
        return not support.all() and is_separated(data.x, support)

    def _in_own_units(self, beta: Floats, data: "_Grouped", power: int) -> Floats:
        """Coefficients, or with power 2 variances, in units of the design; NaN where not identified."""
        cuts = self.classes - 1 if self.family == "ordinal" else 0
        blocks = self.classes - 1 if self.family in ("logistic", "multinomial") else 1
        slopes = np.full((len(beta), blocks, len(data.keep)), np.nan)
        slopes[:, :, data.keep] = beta[:, cuts:].reshape(len(beta), blocks, -1) / data.size**power
        return np.concatenate([beta[:, :cuts], slopes.reshape(len(beta), -1)], axis=1)


@dataclass(frozen=True)
class _Grouped:
    """The distinct rows of a design, scaled, its identified columns, and the matrix from weights to sums."""

    x: Floats
    keep: Bools
    size: Floats
    into: sparse.csr_matrix
    columns: int

    def sums(self, weights: Floats) -> Floats:
        """By weighting and row: the weight of every class, or of weight, outcome and squared outcome."""
        return np.asarray(weights @ self.into).reshape(len(weights), len(self.x), self.columns)
