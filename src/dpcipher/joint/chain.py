"""A joint distribution as a chain: each attribute given the ones before it. Small, and it samples any number of rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import ceil, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcipher.errors import ConditionError, JointError, SizeError, shown_count
from dpcipher.joint.core import CodeBatches, InBatches, batch_size
from dpcipher.joint.even import MANY_GROUPS, systematic
from dpcipher.joint.link import ROOM, FastLink, Link, draw_column, pack_links, scaled, unpack_links
from dpcipher.tables.domain import Axes, Bools, Codes, Floats, Shape
from dpcipher.tables.table import count_rows

CHUNK = 65_536
POPULATION = 65_536
FAST_ROWS = 16_384  # from here on even rows are worth the tables of the fast links
OVERSAMPLE = 4  # rows tried for each row kept while a condition is still to come
MAX_CELLS = 2**27
_WORKSPACE = 2**24  # numbers in the largest array that sampling makes, whatever the number of rows

Masks = Mapping[int, Bools]


@dataclass(frozen=True)
class Chain(InBatches):
    """P(row) = Π P(attribute | earlier attributes), one `Link` per attribute, in order.

    `shape` holds the levels per attribute. Codes are integer arrays (rows, attributes), columns in schema order. Where several
    structural zeros together leave a row without any level to go on with, sampling replaces it by a copy of another row, and
    `log_prob` counts the mass of such rows as lost.
    """

    shape: Shape
    links: tuple[Link, ...]

    def __post_init__(self) -> None:
        if sorted(self.order) != list(range(len(self.shape))):
            raise JointError(f"order ({self.order}) must name every attribute once; save the joint again")

    @property
    def order(self) -> tuple[int, ...]:
        """The attributes in the order in which they are drawn."""
        return tuple(link.attribute for link in self.links)

    def in_batches(
        self,
        n_rows: int,
        rng: np.random.Generator,
        *,
        independent: bool = False,
        allowed: Masks | None = None,
        chunk: int | None = None,
    ) -> CodeBatches:
        """Rows of low variance, each batch by itself; they match the tables that the chain was fitted to nearly to rounding.

        `independent=True` draws plain independent rows. See `sample_given` for what `allowed` does.
        """
        largest = min(chunk or CHUNK, self._rows_at_once(OVERSAMPLE if allowed else 1))
        pieces = ceil(n_rows / largest)

        def draw(number: int, rng: np.random.Generator) -> Codes:
            size = batch_size(n_rows, pieces, number)
            many_even = size >= FAST_ROWS and self._is_narrow
            if self._is_free and not allowed and (independent or many_even):
                return self._free_rows(size, rng, independent)
            return self.sample_given(size, rng, allowed or {}, independent=independent)[0]

        return CodeBatches(pieces, draw)

    def sample_given(
        self, n_rows: int, rng: np.random.Generator, allowed: Masks, *, independent: bool = False
    ) -> tuple[Codes, float]:
        """Rows from the conditional distribution, and their effective number (at most `n_rows`).

        Conditions on the first attributes of the order that fix their levels are met exactly. Others are met by importance
        weighting: rows are drawn in excess, weighted by the probability that each gives to the allowed levels, and resampled
        (sequential importance resampling); the effective number is (Σw)²/Σw², relative to the rows drawn, over all resamplings.
        """
        last = max((self.order.index(axis) for axis in allowed), default=-1)
        pool = n_rows * OVERSAMPLE if allowed else n_rows
        codes = np.zeros((pool, len(self.shape)), np.int32, order="F")
        weights, kept = np.ones(pool), 1.0
        for position, link in enumerate(self.links):
            cells = link.blocks.cells(codes, self.shape)
            chances = link.chances(codes, cells, self.shape)
            chances *= allowed.get(link.attribute, True)
            weights *= chances.sum(axis=1, dtype=np.float64)
            _require(weights, allowed)
            if position == last or _uneven(weights):
                kept *= _effective(weights) / len(weights)
                chosen = _resample(weights, n_rows if position >= last else pool, rng, independent)
                codes, chances = np.asfortranarray(codes[chosen]), chances[chosen]
                cells = cells[:, chosen]
                weights = np.ones(len(chosen))
            scaled(chances)
            codes[:, link.attribute] = draw_column(
                link,
                chances,
                codes,
                cells,
                rng,
                independent=independent,
                to_goals=not allowed,
                first=self.order[:position],
            )
        return codes, min(float(n_rows), kept * pool)

    @property
    def _is_free(self) -> bool:
        """Whether no structural zero bars a level."""
        return not any(link.barred for link in self.links)

    @property
    def _is_narrow(self) -> bool:
        """Whether chances are quickly made anew, column by column, for every level that even rows are offered."""
        return all(len(link.groups) <= MANY_GROUPS for link in self.links)

    def _free_rows(self, n_rows: int, rng: np.random.Generator, independent: bool) -> Codes:
        """Rows where nothing is barred and nothing is given."""
        codes = np.zeros((n_rows, len(self.shape)), np.int32, order="F")
        for position, link in enumerate(self._fast_links):
            codes[:, link.link.attribute] = (
                link.draw(codes, rng)
                if independent
                else link.draw_even(codes, rng, first=self.order[:position])
            )
        return codes

    @cached_property
    def _fast_links(self) -> tuple[FastLink, ...]:
        return tuple(FastLink(link, self.shape, ROOM // len(self.links)) for link in self.links)

    def log_prob(self, codes: Codes) -> Floats:
        """The exact log-probability of each coded row: the sum over the chain's links."""
        codes = np.asarray(codes, dtype=np.int32)
        step = self._rows_at_once(2)
        parts = [self._log_prob(codes[start : start + step]) for start in range(0, len(codes), step)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def project(self, axes: Axes) -> Floats:
        """The probabilities of the table over `axes`, counted in a fixed population of low-variance rows.

        A table the chain was fitted to is reproduced to about one row of the population (1/65,536) per cell; any other also
        carries the randomness of a finite population.
        """
        shape = tuple(self.shape[axis] for axis in axes)
        if prod(shape) > MAX_CELLS:
            raise SizeError(
                f"axes ({axes}) span {shown_count(prod(shape))} cells; at most {MAX_CELLS:,} fit. Project fewer attributes"
            )
        return count_rows(self.population, axes, self.shape) / len(self.population)

    @cached_property
    def population(self) -> Codes:
        """The rows that `project` counts: drawn once, always the same."""
        return np.concatenate(list(self.sample(POPULATION, np.random.default_rng(0))))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Plain arrays that hold the whole chain."""
        return {"shape": np.array(self.shape, dtype=np.int64), **pack_links(self.links)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> "Chain":
        """The chain that `to_arrays` wrote."""
        try:
            shape = tuple(int(size) for size in arrays["shape"])
            return cls(shape, unpack_links(arrays, shape))
        except (KeyError, IndexError, ValueError, StopIteration) as error:
            raise JointError(
                f"the arrays of the chain do not fit together ({error}); save the joint again"
            ) from None

    def _rows_at_once(self, copies: int) -> int:
        """How many rows fit the workspace, `copies` times over."""
        return max(1, _WORKSPACE // (copies * max(*self.shape, len(self.shape))))

    def _log_prob(self, codes: Codes) -> Floats:
        total = np.zeros(len(codes))
        every = np.arange(len(codes))
        for link in self.links:
            chosen = link.probabilities(codes, self.shape, dtype=np.float64)[every, codes[:, link.attribute]]
            with np.errstate(divide="ignore"):
                total += np.log(chosen)
        return total


def _require(weights: Floats, allowed: Masks) -> None:
    if not weights.any():
        names = ", ".join(str(axis) for axis in sorted(allowed)) or "none"
        raise ConditionError(
            f"given (conditions on attributes {names}) must have some probability; allow more levels"
        )


def _uneven(weights: Floats) -> bool:
    """Whether some row cannot go on, or half of the rows would do as well as all."""
    return bool(not weights.all() or _effective(weights) < len(weights) / 2)


def _effective(weights: Floats) -> float:
    """Kish's effective number of equally weighted rows."""
    return float(weights.sum() ** 2 / (weights @ weights))


def _resample(weights: Floats, n_rows: int, rng: np.random.Generator, independent: bool) -> NDArray[np.intp]:
    if independent:
        return np.asarray(rng.choice(len(weights), n_rows, p=weights / weights.sum()))
    return systematic(weights, n_rows, rng)
