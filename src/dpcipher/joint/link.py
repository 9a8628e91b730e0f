"""One link of a chain: the probabilities of one attribute given the attributes before it."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dpcipher.joint.even_rows import PASSES, Ladder, match_goals, row_sums, spread
from dpcipher.marginals.arrays import Axes, Codes, Floats
from dpcipher.marginals.tables import cell_numbers

KEYS = 3  # attributes that rows are sorted by before a spread draw
FLOOR = 1e-6  # share of its base rate that a level keeps where the additive part is negative


@dataclass(frozen=True)
class Link:
    """The conditional distribution of `attribute`, from earlier attributes taken in `groups` (strongest first).

    With g the level of group k, P(level | row) ∝ max(base + Σ_k weights[k, g], FLOOR·base) · exp Σ_k factors[k, g], and 0 where
    `barred`. The rows of weights, factors and goals are the levels of all groups, one group after another; `goals` are the
    conditional probabilities that rows drawn with low variance settle to.
    """

    attribute: int
    groups: tuple[Axes, ...]
    sizes: tuple[int, ...]
    base: Floats
    weights: Floats
    factors: Floats
    goals: Floats
    barred: tuple[tuple[Axes, NDArray[np.bool_]], ...] = ()

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """The first row of each group in weights, factors and goals."""
        return (
            np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.int64)
            if self.sizes
            else np.zeros(0, np.int64)
        )

    def places(self, codes: Codes, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """Which rows of the weights each coded row uses, one column per group."""
        columns = [
            cell_numbers(codes, group, shape) + start
            for group, start in zip(self.groups, self.starts, strict=True)
        ]
        return np.stack(columns, axis=1) if columns else np.zeros((len(codes), 0), np.int64)

    def probabilities(
        self, codes: Codes, shape: tuple[int, ...], *, dtype: Any = np.float32
    ) -> NDArray[np.floating]:
        """The probability of every level for every coded row; all zero for a row that no level may follow."""
        values = raw_probabilities(self, incidence(self.places(codes, shape), len(self.weights), dtype))
        self.bar(values, codes, shape)
        return scaled(values)

    def bar(self, values: NDArray[np.floating], codes: Codes, shape: tuple[int, ...]) -> None:
        """Set to zero, in place, the levels that structural zeros forbid."""
        for group, mask in self.barred:
            values[mask[cell_numbers(codes, group, shape)]] = 0.0


def raw_probabilities(link: Link, rows: Any) -> NDArray[np.floating]:
    """The probabilities of a link before structural zeros and scaling; `rows` is the incidence matrix of the coded rows."""
    dtype = rows.dtype
    base = link.base.astype(dtype)
    values: NDArray[np.floating] = np.asarray(rows @ link.weights.astype(dtype))
    values += base
    np.maximum(values, dtype.type(FLOOR) * base, out=values)
    exponent = np.asarray(rows @ link.factors.astype(dtype))
    exponent -= exponent.max(axis=1, keepdims=True)
    values *= np.exp(exponent, out=exponent)
    return values


def scaled(values: NDArray[np.floating]) -> NDArray[np.floating]:
    """Divide each row by its sum, in place; a row of zeros stays."""
    total = row_sums(values)
    values *= np.divide(1, total, out=np.zeros_like(total), where=total > 0)[:, None]
    return values


def incidence(places: NDArray[np.int64], width: int, dtype: Any = np.float32) -> Any:
    """The sparse matrix with a one wherever a row uses a place."""
    n_rows, per_row = places.shape
    starts = (
        np.arange(0, n_rows * per_row + 1, per_row or 1)[: n_rows + 1]
        if per_row
        else np.zeros(n_rows + 1, np.int64)
    )
    return sp.csr_matrix((np.ones(places.size, dtype), places.ravel(), starts), shape=(n_rows, width))


def draw_column(
    link: Link,
    chances: NDArray[np.floating],
    codes: Codes,
    shape: tuple[int, ...],
    rng: np.random.Generator,
    *,
    independent: bool,
    to_goals: bool,
    first: Axes,
    passes: int = PASSES,
) -> Codes:
    """One level per row, drawn from `chances`: plainly, or evenly spread and settled.

    Settling goes to the link's goals, or (`to_goals=False`, when a condition has changed what to expect) to what the chances
    themselves add up to. `first` are the attributes to spread over when the link has no group of its own.
    """
    ladder, every = Ladder(chances), np.arange(len(codes))
    if independent:
        return ladder.draw(every, rng.random(len(codes)))
    leading = (tuple(axis for group in link.groups for axis in group) or first)[:KEYS]
    drawn = ladder.draw(every, spread([codes[:, axis] for axis in leading], len(codes), rng))
    if not link.groups:
        return drawn
    places = link.places(codes, shape)
    if to_goals:
        wanted = link.goals * np.bincount(places.ravel(), minlength=len(link.goals))[:, None]
    else:
        wanted = np.asarray(incidence(places, len(link.goals)).T @ chances, dtype=np.float64)
    return match_goals(drawn, places * len(link.base), wanted.ravel(), ladder, rng, passes=passes)
