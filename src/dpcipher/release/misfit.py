"""Misfit: how far measured tables are from all the others, as a χ²."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpcipher.release.least_squares import Fitted, Grid, LeastSquares, merged
from dpcipher.release.structure import NOTHING
from dpcipher.tables.domain import Axes, Floats
from dpcipher.tables.measurement import Measurement
from dpcipher.tables.query import Query

_SINGULAR = 1e-8  # a direction of a covariance below this part of the largest is rounding


@dataclass(frozen=True)
class Misfit:
    """How far one table is from all the others: a χ² (approximate for Laplace noise) and its size in standard deviations."""

    axes: Axes
    chi2: float
    dof: int

    @property
    def sigmas(self) -> float:
        """The χ² as a standard normal quantile (Wilson & Hilferty 1931); 0 when nothing can disagree."""
        if self.dof == 0:
            return 0.0
        spread = 2 / (9 * self.dof)
        return float(((self.chi2 / self.dof) ** (1 / 3) - (1 - spread)) / spread**0.5)


@dataclass(frozen=True)
class Disagreement:
    """The misfit of every measured table, in the order they were given, and of all together."""

    tables: tuple[Misfit, ...]
    overall: Misfit


def disagreement(fit: LeastSquares, measured: Sequence[Measurement]) -> Disagreement:
    """The misfit of every measured table, and of all together."""
    tables = [one for one in measured if isinstance(one.query, Query)]
    gaps = [_gap(fit, one) for one in tables if not one.exact]
    chi2 = sum(float((gap**2).sum()) / own.variance for own, _, gap in gaps)
    overall = Misfit((), chi2, sum(home.freedom for _, home, _ in gaps) - fit.parameters)
    return Disagreement(tuple(Misfit(one.query.axes, *_misfit(fit, one)) for one in tables), overall)


def _gap(fit: LeastSquares, one: Measurement) -> tuple[Grid, Fitted, Floats]:
    """A measured table, what became of it, and how far it is from that in what it says."""
    (own,) = merged(fit.domain, [one])
    home = fit.fitted[own.query]
    gap = own.query.less_means(own.counts - home.counts)
    return own, home, gap if home.structure.possible is None else gap * home.structure.possible


def _misfit(fit: LeastSquares, one: Measurement) -> tuple[float, int]:
    """χ² and degrees of freedom of one measured table against everything else, repeats of itself included.

    Its gap to the estimate has its own covariance less that of the estimate: v P − P C P for what it says of shared components (P is the precision that it
    adds to theirs, for v = 1), and beyond them v less the variance of all repeats together.
    """
    own, home, gap = _gap(fit, one)
    if one.exact:
        return 0.0, 0
    chi2, dof, structure = 0.0, 0, home.structure
    seen = structure.read(gap[None])
    left = float((gap**2).sum() - (structure.times_inverse(seen) * seen).sum())
    for place, variance, _ in fit.untied(home):
        if structure.information[place]:
            alone = own.variance / float(structure.information[place])
            if alone - variance > NOTHING * alone:
                part = seen[0, structure.owner == place]
                chi2, dof = chi2 + float((part**2).sum()) / (alone - variance), dof + len(part)
    tied = fit.tied(home)
    if tied is not None:
        precision, known = tied.precision, fit.covariance(home.components[list(tied.choices)].tolist())
        pull = tied.told(seen[0, tied.slots] @ tied.information)
        values, vectors = np.linalg.eigh(own.variance * precision - precision @ known @ precision)
        real = values > _SINGULAR * max(float(values.max(initial=0.0)), 1e-300)
        chi2 += float(((vectors[:, real].T @ pull) ** 2 / values[real]).sum())
        dof += int(real.sum())
    if own.variance > home.grid.variance * (1 + NOTHING):
        chi2 += max(left, 0.0) / (own.variance - home.grid.variance)
        dof += home.freedom - structure.rank
    return chi2, dof
