"""Linear queries of a release: a weighted sum of the counts of one table, with a standard error that includes the noise.

The estimate is the weighted sum of the reconciled counts, which are unbiased; its variance is in closed form (`Reconciled`). A
share divides by the total: with r = Σwt / N the delta method gives Var(r) = Var(Σ(w − r)t) / N², again one linear query.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcipher.errors import ParameterError, ReleaseError, WorkloadError
from dpcipher.release.interval import quantile
from dpcipher.release.reconcile import Reconciled
from dpcipher.schema.schema import Schema

Axes = tuple[int, ...]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Answer:
    """The answer to a linear query: an estimate and the standard error that the privacy noise gives it.

    The error is about the private table itself: sampling error, if its rows are a sample of something larger, comes on top.
    """

    estimate: float
    std_error: float

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Normal bounds `(low, high)`; the chance that the private table's own answer lies inside is `level`."""
        half = quantile(level) * self.std_error
        return self.estimate - half, self.estimate + half

    def __str__(self) -> str:
        low, high = self.interval()
        return f"{self.estimate:.6g} ± {self.std_error:.3g} (95 %: {low:.6g} to {high:.6g})"


def ask(
    schema: Schema,
    reconciled: Reconciled,
    attrs: Sequence[str],
    weights: ArrayLike | None = None,
    *,
    where: Mapping[str, object] | None = None,
    share: bool = False,
) -> Answer:
    """The weighted sum of the counts of a table.

    `weights` has one dimension per attribute, in the order of `attrs` (all ones if left out); `where={"sex": "F"}` counts only
    the cells that meet its conditions; `share=True` divides by the total.
    """
    axes = schema.axes(attrs)
    given = np.ones([schema.shape[axis] for axis in axes])
    if weights is not None:
        given = given * _in_schema_order([schema.axes((attr,))[0] for attr in attrs], weights, given.shape)
    allowed = schema.allowed(where) if where else {}
    outside = [schema.attrs[axis] for axis in allowed if axis not in axes]
    if outside:
        raise WorkloadError(
            f"where names {', '.join(outside)}, which must be among attrs ({', '.join(attrs)}); add it there"
        )
    return answer(reconciled, axes, given * _indicator(allowed, axes, schema.shape), share=share)


def answer(reconciled: Reconciled, axes: Axes, weights: Floats, *, share: bool = False) -> Answer:
    """The weighted sum of the counts on `axes`, or that sum divided by the total."""
    table = reconciled.table(axes)
    if weights.shape != table.shape:
        raise ParameterError(
            f"weights of shape {weights.shape} must have the table's shape {table.shape}; give one per cell"
        )
    if not np.isfinite(weights).all():
        raise ParameterError("weights must be finite numbers; 0 leaves a cell out")
    estimate = float((weights * table).sum())
    if not share:
        return Answer(estimate, math.sqrt(reconciled.linear_variance(axes, weights)))
    if reconciled.total <= 2 * math.sqrt(reconciled.total_variance):
        raise ReleaseError(
            f"share (True): the total ({reconciled.total:.0f} rows) is drowned in its noise, so nothing can be divided by it; "
            "ask for counts, with share=False"
        )
    ratio = estimate / reconciled.total
    return Answer(ratio, math.sqrt(reconciled.linear_variance(axes, weights - ratio)) / abs(reconciled.total))


def _in_schema_order(order: Sequence[int], weights: ArrayLike, shape: tuple[int, ...]) -> Floats:
    """Weights given in the caller's order of attributes, as an array in ascending axes."""
    try:
        array = np.asarray(weights, dtype=float)
    except (TypeError, ValueError):
        raise ParameterError("weights must be numbers, one per cell of the table") from None
    turned = array.transpose(np.argsort(order)) if array.ndim == len(order) else array
    if turned.shape != shape:
        expected = tuple(shape[rank] for rank in np.argsort(np.argsort(order)))
        raise ParameterError(
            f"weights of shape {array.shape} must have the table's shape {expected}; give one per cell"
        )
    return turned


def _indicator(allowed: Mapping[int, NDArray[np.bool_]], axes: Axes, shape: tuple[int, ...]) -> Floats:
    """Weight 1 where every condition holds and 0 elsewhere; conditions are masks by axis."""
    weights = np.ones([shape[axis] for axis in axes])
    for place, axis in enumerate(axes):
        if axis in allowed:
            level = [1] * len(axes)
            level[place] = shape[axis]
            weights = weights * allowed[axis].reshape(level)
    return weights
