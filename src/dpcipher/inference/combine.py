"""Combine: one estimate and one variance from m synthetic data sets.

With W the mean of the m variances and B the variance between the m estimates, the rule depends on where the
sets come from.

`"sanitizations"`: m independent sanitizations of the private table, `measure(sets=m)`. Reiter's (2003) rule
for partially synthetic data, which Liu (2016) shows to hold here:

    T = B/m + W,    nu = (m - 1)(1 + mW/B)².

`"imputations"`: m draws of the private table itself given one release, `solve(release, draws=m)`, rows evenly
spread. Each set is a guess at the whole table, so its own variance W is the sampling error and B is what the
noise leaves open: Rubin's (1987) rule for multiple imputation,

    T = W + (1 + 1/m)B,    nu = (m - 1)(1 + W/((1 + 1/m)B))².

`"population"`: rows drawn independently from m draws of the population, `posterior(release, columns).draws`.
The estimate of a set scatters around its own population by W, and that population scatters by the whole
posterior variance V: B estimates V + W, the mean over sets adds B/m, and what is left is Raghunathan, Reiter
& Rubin's (2003) rule for fully synthetic data,

    T = (1 + 1/m)B - W,    nu = (m - 1)(1 - W/((1 + 1/m)B))²,

with W in place of a T that is not above 0 (Reiter 2002, for sets of as many rows as the private table). It
subtracts, so it is the least stable for few sets.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri, stdtrit

from dpcipher.drawing.card import Card, Shown, counted
from dpcipher.drawing.curator_only import UNKNOWN
from dpcipher.errors import ParameterError, did_you_mean
from dpcipher.tables.domain import Floats

ONE_SET = (
    "m = 1: the spread between sets is unknown, so the variance is that of one set alone and leaves out "
    "the privacy noise; measure with sets=5 for intervals that include it"
)
Rule = Literal["sanitizations", "imputations", "population"]
RULES: tuple[str, ...] = get_args(Rule)
ASSUMED = "the intervals hold as far as no interaction matters beyond those that the release's tables show"
FITS: dict[str, str] = {
    "sanitizations": "combined by rule='sanitizations', T = B/m + W, which is for m independent sanitizations, measure(sets=m). Sets that were drawn from "
    "one release, by solve(release, draws=m) or dpcipher synth --draws, need rule='imputations': this one "
    "makes their intervals too short",
    "imputations": "combined by rule='imputations', Rubin's T = W + (1 + 1/m)B, which is for draws of the private table given one release: "
    "solve(release, draws=m) or dpcipher synth --draws",
    "population": "combined by rule='population', T = (1 + 1/m)B - W, which is for independent rows of draws of the population, posterior(release, columns).draws",
}
BIAS = "bias from shrinkage and clipping is not in the variance; see docs/evaluate.md for measured coverage"


@dataclass(frozen=True, repr=False)
class Combined(Shown):
    """Combined inference: arrays over parameters (0-dimensional for one parameter), and what to keep in mind.

    `within` is W, `between` is B and `variance` is T; `dof` is infinite where the sets agree exactly.
    """

    estimate: Floats
    variance: Floats
    dof: Floats
    within: Floats
    between: Floats
    sets: int
    notes: tuple[str, ...] = ()
    rule: Rule = "sanitizations"
    stamp: str = UNKNOWN

    @property
    def std_error(self) -> Floats:
        """The square root of the variance."""
        return np.sqrt(self.variance)

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Bounds `(low, high)` from Student's t."""
        half = t_quantile(level, self.dof) * self.std_error
        return self.estimate - half, self.estimate + half

    def significant(self, level: float = 0.95) -> NDArray[np.bool_]:
        """Whether the interval excludes 0."""
        low, high = self.interval(level)
        return np.asarray((low > 0) | (high < 0))

    def _text(self) -> str:
        source = f"{counted(self.sets, 'set')}, rule {self.rule!r}"
        if np.ndim(self.estimate):
            numbers = f"{np.size(self.estimate)} estimates from {source}"
            return f"{numbers}; .estimate, .std_error and .interval() have them"
        low, high = self.interval()
        return (
            f"{float(self.estimate):.6g} ± {float(self.std_error):.3g} (95 %: {float(low):.6g} to "
            f"{float(high):.6g}; "
            f"{float(self.dof):.3g} degrees of freedom) from {source}"
        )

    def _card(self) -> Card:
        from dpcipher.inference.shown import combined_card

        return combined_card(self)


def combine(
    estimates: ArrayLike,
    variances: ArrayLike,
    *,
    rule: Rule = "sanitizations",
    sanitizations: int | None = None,
    rows_from: str | None = None,
) -> Combined:
    """Combine m estimates and their variances; sets along the first axis, parameters along any others.

    `rule` is the source of the sets: m independent "sanitizations" (`measure(sets=m)`), "imputations" of the
    private table (`solve(release, draws=m)`), or rows of m draws of the "population" (`posterior`); the top
    of this module has the formulas. Sets have as many rows as the private table. Say `sanitizations` if there
    were fewer than sets: several sets from one solution share its noise, so B misses it and the rule for
    sanitizations is refused; the others do not ask how many there were.

    Numbers do not show their source, so the result is stamped CURATOR ONLY. `rows_from` says in words which
    synthetic or other public rows they rest on, and removes the stamp.

    >>> both = combine([1.0, 3.0], [0.5, 0.5], rows_from="rows of people.release.parquet, sampled by Ada")
    >>> float(both.estimate), float(both.variance), float(both.dof)
    (2.0, 1.5, 2.25)
    >>> float(combine([1.0, 3.0], [0.5, 0.5], rule="imputations").variance)
    3.5
    """
    each, spread = _checked(estimates, variances)
    m = len(each)
    stamp, word = ("", word_of(rows_from)) if rows_from is not None else (UNKNOWN, [])
    _check_rule(rule, m)
    if rule == "sanitizations":
        _check_sanitizations(m, sanitizations)
    if m == 1:
        infinite = np.full(each.shape[1:], np.inf)
        none, notes = np.zeros(each.shape[1:]), (ONE_SET, *word)
        return Combined(each[0], spread[0], infinite, spread[0], none, 1, notes, stamp=stamp)
    within, between = spread.mean(axis=0), each.var(axis=0, ddof=1)
    variance, dof = _total(rule, within, between, m)
    note = BIAS if rule == "sanitizations" else ASSUMED
    notes = (FITS[rule], note, *word)
    return Combined(each.mean(axis=0), variance, dof, within, between, m, notes, rule, stamp)


def word_of(rows_from: str) -> list[str]:
    """A note on whose word the rows are public; an empty word is refused."""
    if not isinstance(rows_from, str) or not rows_from.strip():
        raise ParameterError(
            f"rows_from ({rows_from!r:.60}) must say in words where the rows came from; try "
            "rows_from='people.release.parquet, sampled by Ada'"
        )
    return [f"that no private rows are behind it is on this word alone: {rows_from.strip()}"]


def _total(rule: Rule, within: Floats, between: Floats, m: int) -> tuple[Floats, Floats]:
    """T and nu by the formulas at the top."""
    added = between / m if rule == "sanitizations" else (1 + 1 / m) * between
    sign = -1 if rule == "population" else 1
    with np.errstate(divide="ignore", invalid="ignore"):
        dof = np.where(added == 0, np.inf, (m - 1) * (1 + sign * within / added) ** 2)
    if rule != "population":
        return within + added, dof
    positive = added > within
    # nu falls to 0 as T does; below 1 Student's quantiles mean nothing.
    return np.where(positive, added - within, within), np.where(positive, np.maximum(dof, 1.0), m - 1.0)


def t_quantile(level: float, dof: ArrayLike) -> Floats:
    """The two-sided Student quantile; the normal one where `dof` is infinite.

    >>> t_quantile(0.95, [4, float("inf")]).round(3).tolist()
    [2.776, 1.96]
    """
    checked_level(level)
    freedom = np.asarray(dof, dtype=float)
    finite = np.where(np.isfinite(freedom), freedom, 1.0)
    return np.asarray(
        np.where(np.isfinite(freedom), stdtrit(finite, 0.5 + level / 2), ndtri(0.5 + level / 2))
    )


def checked_level(level: float) -> float:
    """The confidence of an interval, between 0 and 1."""
    if not isinstance(level, (int, float)) or isinstance(level, bool) or not 0 < level < 1:
        raise ParameterError(f"level ({level!r}) must be a number between 0 and 1; try level=0.95")
    return float(level)


def _checked(estimates: ArrayLike, variances: ArrayLike) -> tuple[Floats, Floats]:
    each, spread = _numbers(estimates, "estimates"), _numbers(variances, "variances")
    if each.ndim == 0 or not len(each):
        raise ParameterError(
            "estimates must hold one entry per data set on the first axis; give a list of m estimates"
        )
    if each.shape != spread.shape:
        raise ParameterError(
            f"variances {spread.shape} must have the shape of estimates {each.shape}; give one variance each"
        )
    if np.isinf(each).any() or np.isinf(spread).any():
        raise ParameterError(
            "estimates and variances must be finite; an infinite one is a sign of separation: fit with "
            "Firth's penalty"
        )
    if (spread < 0).any():
        raise ParameterError("variances must be 0 or more; give squared standard errors")
    return each, spread


def _numbers(given: ArrayLike, name: str) -> Floats:
    try:
        return np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        raise ParameterError(
            f"{name} must be numbers, as many for every data set; give a list of m numbers, or of m lists of "
            "one length"
        ) from None


def _check_rule(rule: str, m: int) -> None:
    if rule not in RULES:
        raise ParameterError(
            f"rule ({rule!r}) must be one of {', '.join(RULES)}{did_you_mean(str(rule), RULES)}; it is the "
            "source of the sets"
        )
    if rule != "sanitizations" and m < 2:
        raise ParameterError(
            f"rule ({rule!r}) needs two sets or more; draw them with solve(release, draws=5)"
        )


def _check_sanitizations(m: int, sanitizations: int | None) -> None:
    if sanitizations is None or sanitizations == m:
        return
    raise ParameterError(
        f"sanitizations ({sanitizations}) must equal the number of sets ({m}): sets drawn from one "
        "sanitization share its noise, "
        "so their spread leaves it out and the intervals would be too short. Use solve(release, draws=m) "
        "with "
        "rule='imputations', measure(sets=m), or the closed-form release.query(...) for linear queries"
    )
