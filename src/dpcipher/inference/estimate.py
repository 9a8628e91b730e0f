"""Any function of the joint distribution of a few columns, from one release, with its error."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from dpcipher.drawing.card import Card, Shown
from dpcipher.drawing.curator_only import Released
from dpcipher.errors import ParameterError
from dpcipher.inference.combine import checked_level
from dpcipher.inference.unmeasured import (
    Unmeasured,
    check_unmeasured,
    leave_open,
    measured_axes,
    smallest_unmeasured,
)
from dpcipher.posteriors.posterior import Posterior, posterior, unseen_notes
from dpcipher.posteriors.requests import check_release
from dpcipher.posteriors.sampler import SamplerReport
from dpcipher.release.release import Release
from dpcipher.tables.domain import Floats

DRAWS = 400
# Below this size, beside the design's own scale, a coefficient is 0 by the model and not by the data.
EXACT_ZERO = 1e-7


def middle(draws: Floats, level: float) -> tuple[Floats, Floats]:
    """Bounds that hold another draw of the same law with probability `level`, with equal tails.

    Of n draws the k-th smallest has k/(n + 1) of the law below it on average (Weibull 1939); quantiles that
    forget the 1 are too narrow for few draws.
    """
    half = checked_level(level) / 2
    low, high = np.quantile(draws, [0.5 - half, 0.5 + half], axis=0, method="weibull")
    return np.asarray(low), np.asarray(high)


@dataclass(frozen=True)
class DrawSummary:
    """Draws of every parameter, given one release; it answers what `Combined` answers for m sets.

    The estimate is the median of the draws: it does not depend on how a parameter is written, and a long tail
    on one side does not move it. The standard error is their standard deviation. An interval holds the middle
    `level` of the draws.
    """

    draws: Floats
    notes: tuple[str, ...] = ()
    sets: int = 1

    @cached_property
    def estimate(self) -> Floats:
        """The median of the draws."""
        return np.asarray(np.median(self.draws, axis=0))

    @cached_property
    def variance(self) -> Floats:
        """The variance of the draws."""
        return np.asarray(self.draws.var(axis=0, ddof=1))

    @property
    def std_error(self) -> Floats:
        """The standard deviation of the draws."""
        return np.asarray(np.sqrt(self.variance))

    @property
    def dof(self) -> Floats:
        """Infinite: quantiles of draws need no degrees of freedom."""
        return np.full(self.draws.shape[1:], np.inf)

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Bounds `(low, high)`: the quantiles that leave the same share of the draws out on both sides."""
        return middle(self.draws, level)

    def significant(self, level: float = 0.95) -> NDArray[np.bool_]:
        """Whether the interval excludes 0."""
        low, high = self.interval(level)
        return np.asarray((low > 0) | (high < 0)) & ~self.zero

    @property
    def zero(self) -> NDArray[np.bool_]:
        """The parameters that every draw has at 0, up to rounding: the model leaves them no room."""
        with np.errstate(invalid="ignore"):
            return np.asarray(np.abs(self.draws).max(axis=0) < EXACT_ZERO)

    @property
    def p(self) -> Floats:
        """Twice the share of draws on the rarer side of 0: below 1 − level where the interval excludes 0.

        It is never below 2 / (draws + 1), which is as small as so many draws can tell.
        """
        above, below = (self.draws > 0).sum(axis=0), (self.draws < 0).sum(axis=0)
        tail = 2 * (np.minimum(above, below) + 1) / (len(self.draws) + 1)
        p = np.where(self.zero, 1.0, np.minimum(tail, 1.0))
        return np.where(np.isnan(self.draws).any(axis=0), np.nan, p)

    def monte_carlo_error(self, level: float = 0.95) -> float:
        """The error of an end of an interval, in standard errors (of a normal posterior)."""
        tail = 0.5 - level / 2
        height = np.exp(-0.5 * ndtri(tail) ** 2) / np.sqrt(2 * np.pi)
        return float(np.sqrt(tail * (1 - tail) / len(self.draws)) / height)


@dataclass(frozen=True, eq=False, repr=False)
class Estimate(Released, Shown):
    """A posterior mean with its uncertainty; arrays of the function's shape (0-dimensional for one number).

    The variance is the sum of two parts: `noise_variance`, what the privacy noise leaves open about the
    private table itself, and `sampling_variance`, what the table leaves open about the population it is a
    sample of (0 with `population=False`). `values` are the function's values, one for each draw.
    """

    estimate: Floats
    noise_variance: Floats
    sampling_variance: Floats
    values: Floats
    report: SamplerReport
    notes: tuple[str, ...] = ()

    @property
    def std_error(self) -> Floats:
        """The posterior standard deviation."""
        return np.sqrt(self.noise_variance + self.sampling_variance)

    @property
    def noise_share(self) -> Floats:
        """How much of the variance is the privacy noise's: 0 to 1, and 0 where nothing is unknown."""
        total = self.noise_variance + self.sampling_variance
        return np.asarray(np.divide(self.noise_variance, total, out=np.zeros_like(total), where=total > 0))

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Bounds `(low, high)` with equal tails: quantiles of the draws."""
        return middle(self.values, level)

    def _text(self) -> str:
        if self.estimate.ndim:
            return f"{self.estimate.size} estimates; .estimate, .std_error and .interval() have them"
        low, high = self.interval()
        return (
            f"{float(self.estimate):.6g} ± {float(self.std_error):.3g} (95 %: {float(low):.6g} to "
            f"{float(high):.6g}; "
            f"{float(self.noise_share):.0%} of the variance is privacy noise)"
        )

    def _card(self) -> Card:
        from dpcipher.inference.shown import estimate_card

        return estimate_card(self)


def estimate(
    release: Release,
    function: Callable[[Floats], ArrayLike],
    columns: str | Sequence[str],
    *,
    draws: int = DRAWS,
    seed: int | None = None,
    population: bool = True,
    interactions: int | Sequence[Sequence[str]] | None = None,
    unmeasured: Unmeasured = "open",
) -> Estimate:
    """Any function of the joint distribution of a few columns, with its standard error and interval.

    `function` takes the probabilities as an array with one dimension for each of `columns`, in their order,
    and gives a number or an array of numbers. `population`, `interactions` and `seed` are those of
    `posterior`, which has the model. The smallest interactions that no table shows are left open, so that an
    interval holds what they might be; `unmeasured="none"` takes them for none, as `posterior` does.

    >>> import dpcipher as dc
    >>> schema = dc.Schema.from_domain({"smokes": 2, "ill": 2})
    >>> release = dc.Release.from_tables({("smokes", "ill"): [[480, 20], [260, 240]]}, schema, scale=5.0)
    >>> risk = dc.estimate(release, lambda joint: joint[1, 1] / joint[1].sum(), ("smokes", "ill"), draws=100, seed=1)
    >>> round(float(risk.estimate), 1)
    0.5
    """
    check_unmeasured(unmeasured)
    check_release(release)
    _check_function(function)
    drawn = posterior(release, columns, draws, seed, population=population, interactions=interactions)
    if unmeasured == "open" and interactions is None:
        drawn = _opened(release, drawn, seed)
    values = _values(function, drawn.draws)
    own = _values(function, drawn.table_draws) if population else values
    total = values.var(axis=0, ddof=1)
    noise = explained_share(own, values) * total
    return Estimate(values.mean(axis=0), noise, total - noise, values, drawn.report, drawn.notes)


def _opened(release: Release, drawn: Posterior, seed: int | None) -> Posterior:
    """The draws with unmeasured interactions left open, the same ones in a table and its population."""
    measured = measured_axes(release, drawn.columns)
    sets = smallest_unmeasured(len(drawn.columns), measured)
    opening = int(np.random.default_rng(seed).integers(2**32))
    draws, own = (
        leave_open(part, drawn.levels, measured, sets, opening) for part in (drawn.draws, drawn.table_draws)
    )
    others = [note for note in drawn.notes if note not in unseen_notes(release, drawn.assumed)]
    notes = (*unseen_notes(release, drawn.assumed, opened=True), *others)
    return replace(drawn, draws=draws, table_draws=own, notes=notes)


def explained_share(table: Floats, population: Floats) -> Floats:
    """The share of a variance over draws that noise and unmeasured tables cause; the rest is sampling.

    By the law of total variance the first part is the variance of E(value for the population | table). Each
    draw of the population was drawn given its own draw of the table, so the share is the squared correlation
    of their values, where that mean is linear.
    """
    one, other = (part - part.mean(axis=0) for part in (table, population))
    both, alone, whole = (one * other).mean(axis=0), (one**2).mean(axis=0), (other**2).mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(alone > 1e-12 * whole, both**2 / (alone * whole), 0.0)


def _check_function(function: object) -> None:
    if not callable(function):
        raise ParameterError(
            f"function ({function if isinstance(function, str) else type(function).__name__:.60}) must be "
            "callable and stand before the columns; try lambda joint: joint[0, 1] / joint[0].sum()"
        )


def _values(function: Callable[[Floats], ArrayLike], draws: Floats) -> Floats:
    """The value of the function for every draw, checked."""
    each = [_numbers(function(draw.copy())) for draw in draws]
    if any(value.shape != each[0].shape for value in each):
        raise ParameterError(
            "function must give as many numbers for every draw; it gave arrays of different shapes"
        )
    values = np.stack(each)
    if not np.isfinite(values).all():
        raise ParameterError(
            "function must give finite numbers; it divided by a cell without probability, or took its "
            "logarithm. Structural zeros are exactly 0"
        )
    return values


def _numbers(value: ArrayLike | None) -> Floats:
    """The value of a function as an array."""
    try:
        numbers = None if value is None else np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        numbers = None
    if numbers is None:
        raise ParameterError(
            f"function must give a number or an array of numbers; it gave {type(value).__name__} without any"
        )
    return numbers
