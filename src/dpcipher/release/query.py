"""Linear queries of a release: a weighted sum of the counts of one table, with a standard error that includes the noise.

The estimate is the weighted sum of the reconciled counts, which are unbiased; its variance is in closed form (`Reconciled`). A
share divides by the total: with r = Σwt / N the delta method gives Var(r) = Var(Σ(w − r)t) / N², again one linear query. Intervals are
normal: the noise is public, so no simulation is needed.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtri, ndtri_exp

from dpcipher.errors import ParameterError, ReleaseError, WorkloadError
from dpcipher.release.reconcile import Reconciled
from dpcipher.schema.conditions import Cover
from dpcipher.schema.grouped import labels_of
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Axes, Bools, Floats
from dpcipher.tables.query import Groups, Query
from dpcipher.tables.table import broadcast_over


def interval(estimate: Floats, variance: Floats, level: float) -> tuple[Floats, Floats]:
    """Normal bounds around reconciled counts, of which none is negative.

    A reconciled cell averages many independent noises, so its error is close to normal (benchmarks/results/coverage.md). Counts cannot be
    negative: a lower bound below 0 is 0, which loses no coverage. Where the estimate itself is negative the bounds are 0 and the upper end u of
    the normal law that is cut off at 0: 1 - Φ((u - x)/s) = (1 - level) Φ(x/s). There Φ(x/s) is at most a half, so that u is never below
    x + z s and the interval holds whatever the plain normal one holds (the CLs limit: Read, J. Phys. G 28, 2002). At x = 0 both are z s.
    """
    half, spread = quantile(level) * np.sqrt(variance), np.sqrt(variance)
    with np.errstate(divide="ignore", invalid="ignore"):
        above = -ndtri_exp(math.log1p(-level) + log_ndtr(np.minimum(estimate, 0.0) / spread))
        cut = np.where(spread > 0, estimate + spread * above, 0.0)
    high = np.where(estimate < 0, np.maximum(cut, 0.0), estimate + half)
    return np.maximum(estimate - half, 0.0), high


def quantile(level: float) -> float:
    """The normal quantile that a two-sided interval of this level uses.

    >>> round(quantile(0.95), 4)
    1.96
    """
    real = isinstance(level, (int, float)) and not isinstance(level, bool)
    if not real or not math.isfinite(level) or not 0 < level < 1:
        raise ParameterError(f"level ({level!r}) must be a number between 0 and 1; try level=0.95")
    return float(ndtri(0.5 + level / 2))


@dataclass(frozen=True, repr=False)
class Answer:
    """The answer to a linear query: an estimate and the standard error that the privacy noise gives it.

    The error is about the private table itself: sampling error, if its rows are a sample of something larger, comes on top.
    """

    estimate: float
    std_error: float
    label: str = field(default="", compare=False)  # what was asked

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Normal bounds `(low, high)`; the private table's own answer lies inside with a chance of about `level`."""
        half = quantile(level) * self.std_error
        return self.estimate - half, self.estimate + half

    def __str__(self) -> str:
        low, high = self.interval()
        asked = f"{self.label}: " if self.label else ""
        return f"{asked}{self.estimate:.6g} ± {self.std_error:.3g} (95 %: {low:.6g} to {high:.6g})"

    def __repr__(self) -> str:
        return f"<Answer: {self}>"


def ask(
    schema: Schema,
    reconciled: Reconciled,
    cover: Cover,
    weights: ArrayLike | None = None,
    *,
    query: Query | None = None,
    where: Mapping[str, object] | None = None,
    share: bool = False,
) -> Answer:
    """The weighted sum of the counts of a table, asked for by the names of its columns.

    `query` is the table of these columns where it is not that of every level. `weights` has one dimension per name, in their order (all ones if left out); `where={"sex": "F"}` counts only the cells that
    meet its conditions; `share=True` divides by the total.
    """
    query = Query(cover.axes) if query is None else query
    wanted = np.ones(query.shape(schema.shape))
    if weights is not None:
        wanted = cover.spread(_checked_weights(cover, weights)).reshape(wanted.shape)
    allowed = schema.allowed(where) if where else {}
    outside = [schema.attrs[axis] for axis in allowed if axis not in cover.axes]
    if outside:
        raise WorkloadError(
            f"where names {', '.join(outside)}, which must be among attrs ({', '.join(cover.names)}); add it there"
        )
    for axis, mask in allowed.items():
        groups = query.forms[cover.axes.index(axis)]
        kept = mask if groups is None else _whole_groups(schema, schema.attrs[axis], groups, mask)
        wanted = wanted * broadcast_over(kept, (axis,), cover.axes)
    found = answer(reconciled, query, wanted, share=share)
    return replace(found, label=_label(schema, cover, weights is not None, where or {}, share))


def _whole_groups(schema: Schema, attr: str, groups: Groups, mask: Bools) -> Bools:
    """The groups of levels that meet a condition, which must not cut through one."""
    inside = groups.merge(mask.astype(int), 0)
    cut = np.flatnonzero((inside > 0) & (inside < np.bincount(groups.of)))
    if len(cut):
        label = labels_of(schema, attr, groups, shown=True)[cut[0]]
        raise WorkloadError(
            f"where: the condition on {attr} must keep or leave out the group {label!r} whole; its levels were measured together"
        )
    return inside > 0


def _label(schema: Schema, cover: Cover, weighted: bool, where: Mapping[str, object], share: bool) -> str:
    """What was asked, in the names and labels of the schema."""
    kind = ("weighted " if weighted else "") + ("share" if share else "sum" if weighted else "rows")
    if weighted and share:
        kind = "weighted sum over all rows"
    named = " × ".join(schema.heading(name) for name in cover.names)
    told = " and ".join(f"{name} = {_condition(schema, name, wanted)}" for name, wanted in where.items())
    return (
        f"{kind} with {told}"
        if told and not weighted
        else f"{kind} of {named}" + (f" where {told}" if told else "")
    )


def _condition(schema: Schema, name: str, wanted: object) -> str:
    """A condition as people read it: labels of levels, ends of a range."""
    if isinstance(wanted, Mapping):
        return " ".join(f"{end} {value}" for end, value in wanted.items())
    values = wanted if isinstance(wanted, list | tuple | set | frozenset) else [wanted]
    labels, shown = schema.labels(name), schema.shown_labels(name)
    words = dict(zip(labels, shown, strict=True))
    return " or ".join(words.get(str(value), str(value)) for value in values)


def answer(reconciled: Reconciled, wanted: Query | Axes, weights: Floats, *, share: bool = False) -> Answer:
    """The weighted sum of the counts of a table, or that sum divided by the total."""
    table = reconciled.table(wanted)
    if weights.shape != table.shape:
        raise ParameterError(
            f"weights of shape {weights.shape} must have the table's shape {table.shape}; give one per cell"
        )
    if not np.isfinite(weights).all():
        raise ParameterError("weights must be finite numbers; 0 leaves a cell out")
    estimate = float((weights * table).sum())
    if not share:
        return Answer(estimate, math.sqrt(reconciled.linear_variance(wanted, weights)))
    if reconciled.total <= 2 * math.sqrt(reconciled.total_variance):
        raise ReleaseError(
            f"share (True): the total ({reconciled.total:.0f} rows) is drowned in its noise, so nothing can be divided by it; "
            "ask for counts, with share=False"
        )
    ratio = estimate / reconciled.total
    return Answer(
        ratio, math.sqrt(reconciled.linear_variance(wanted, weights - ratio)) / abs(reconciled.total)
    )


def _checked_weights(cover: Cover, weights: ArrayLike) -> Floats:
    try:
        array = np.asarray(weights, dtype=float)
    except (TypeError, ValueError):
        raise ParameterError("weights must be numbers, one per cell of the table") from None
    expected = tuple(len(labels) for labels in cover.labels)
    if array.shape != expected:
        raise ParameterError(
            f"weights of shape {array.shape} must have the table's shape {expected}; give one per cell"
        )
    return array
