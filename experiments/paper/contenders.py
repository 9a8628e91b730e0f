"""The methods that the paper compares, each from a stack of true tables to a stack of synthetic distributions.

Rows are added or removed (sensitivity 1) and n is public, for every method: the paper needs n and leaves the neighbour relation open.
Noise is seeded, so that an experiment can be repeated. NOT PRIVATE.

A stack holds many tables of one shape along its first axis, and every step works on all of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from dpcipher.engines.denoise.denoise import denoise
from dpcipher.engines.paper import Paper, solve_paper
from dpcipher.engines.table import solve_table
from dpcipher.errors import ParameterError
from dpcipher.privacy.draws import SeededNoise
from dpcipher.release.reconcile import reconcile
from dpcipher.tables.domain import Axes, Counts, Domain, Floats
from dpcipher.tables.measurement import Measurement, Noise
from dpcipher.tables.query import Query
from experiments.paper.many_mwem import mwem_cells, mwem_many
from experiments.paper.readings import LITERAL, SWEPT

Stack = NDArray[Any]

KINDS = ("FDH", "paper", "ours", "MWEM", "MWEM cells")
# The numbers of rounds that MWEM is tuned over.
ROUNDS = (1, 2, 4, 8, 16, 32)


@dataclass(frozen=True)
class Drawn:
    """What a method made of a stack of tables: distributions, rows drawn from them, and the noisy tables it saw, if it saw some."""

    chances: Floats
    rows: Counts
    noisy: "Sanitized | None" = None


@dataclass(frozen=True)
class Contender:
    """A method with its tables: all of one order, or the full table for FDH. `reading` is how the paper's algorithm is read."""

    base: str
    kind: str
    order: int
    reading: str = LITERAL

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ParameterError(f"kind ({self.kind!r}) must be one of {', '.join(KINDS)}")

    @property
    def name(self) -> str:
        """Its name among the scores; a reading other than the literal one is part of it."""
        return self.base if self.reading == LITERAL else f"{self.base} [{self.reading}]"

    @property
    def uses_rounds(self) -> bool:
        """Whether it is a form of MWEM."""
        return self.kind.startswith("MWEM")

    def read(self, reading: str) -> "Contender":
        """The same under another reading, where it is the paper's algorithm."""
        return replace(self, reading=reading) if self.kind == "paper" else self

    def label(self, scores: Mapping[str, Stack]) -> dict[str, Stack]:
        """Scores under the name of the method."""
        return {f"{self.name}/{key}": value for key, value in scores.items()}

    def seed(self, *entropy: int) -> np.random.SeedSequence:
        """A seed that depends on the method alone: all readings of CIPHER see the same noise, whatever else is run."""
        return np.random.SeedSequence([*entropy, crc32(self.base.encode())])

    def tables(self, n_attrs: int) -> list[Axes]:
        """The tables it measures, or chooses from."""
        return list(combinations(range(n_attrs), n_attrs if self.kind == "FDH" else self.order))

    def draw(self, counts: Counts, *, epsilon: float, seed: np.random.SeedSequence, rounds: int = 1) -> Drawn:
        """One distribution for each table of counts (first axis), each with budget `epsilon`, and as many rows as the table has; `rounds` is MWEM's T."""
        synthesis, rows_seed = seed.spawn(2)
        tables, n_rows, noisy = self.tables(counts.ndim - 1), int(counts[0].sum()), None
        if self.uses_rounds:
            method = mwem_many if self.kind == "MWEM" else mwem_cells
            chances = method(counts, tables, epsilon=epsilon, rounds=rounds, seed=synthesis) / n_rows
        else:
            noisy = Sanitized.of(counts, tables, epsilon, synthesis)
            chances = self._solve(noisy, rows_seed)
        return Drawn(chances, draw_rows(chances, n_rows, np.random.default_rng(rows_seed)), noisy)

    def _solve(self, noisy: "Sanitized", seed: np.random.SeedSequence) -> Floats:
        if self.kind == "FDH":
            return normalised(noisy.tables[0])
        if self.kind == "ours":
            return noisy.solve_ours()
        return noisy.solve_paper(SWEPT[self.reading], int(seed.generate_state(1)[0]))


def tune_rounds(
    contender: Contender,
    table: Counts,
    draws: int,
    *,
    epsilon: float,
    seeds: Sequence[np.random.SeedSequence],
) -> int:
    """The number of rounds of MWEM with the least TVD of its own tables, over several draws for one table of counts."""
    stack = np.repeat(table[None], draws, axis=0)
    errors = [
        tvd(
            stack, contender.draw(stack, epsilon=epsilon, seed=seed, rounds=rounds).chances, [contender.order]
        ).mean()
        for rounds, seed in zip(ROUNDS, seeds, strict=True)
    ]
    return ROUNDS[int(np.argmin(errors))]


@dataclass(frozen=True)
class Sanitized:
    """Noisy tables of many data sets: each table with the data sets along its first axis."""

    shape: tuple[int, ...]
    axes: tuple[Axes, ...]
    tables: tuple[Floats, ...]
    mechanism: Noise
    n_rows: int

    @classmethod
    def of(
        cls, counts: Counts, axes: Sequence[Axes], epsilon: float, seed: np.random.SeedSequence
    ) -> "Sanitized":
        """Equal shares of the budget for every table: scale |Q| / epsilon (the paper prints its inverse)."""
        mechanism = Noise("laplace", len(axes) / epsilon)
        source = SeededNoise(int(seed.generate_state(1, np.uint64)[0]))
        tables = tuple(source.add(margins(counts, attrs), mechanism).astype(float) for attrs in axes)
        return cls(counts.shape[1:], tuple(axes), tables, mechanism, int(counts[0].sum()))

    @cached_property
    def _sets(self) -> list[list[tuple[Axes, Floats, float]]]:
        variance = self.mechanism.variance
        return [
            [(attrs, table[number], variance) for attrs, table in zip(self.axes, self.tables, strict=True)]
            for number in range(len(self.tables[0]))
        ]

    def solve_paper(self, reading: Paper, seed: int) -> Floats:
        """The distribution behind the noisy tables of each data set, by the paper's algorithm; every one draws targets of its own."""
        return np.stack(
            [
                solve_paper(self.shape, tables, reading, rng=np.random.default_rng([seed, number]))[0]
                for number, tables in enumerate(self._sets)
            ]
        )

    def averaging(self, chances: Floats) -> Floats:
        """How far the one-way margins of distributions are from the average of the noisy tables' own, and how far those are: data sets by 2.

        Mean TVD over the attributes (and over the tables that hold one). Were inconsistent tables averaged, the first would be 0; were one of them
        taken as it is, the two would be alike.
        """
        gaps = []
        for attr in range(len(self.shape)):
            versions = [
                normalised(margins(table, (axes.index(attr),)))
                for axes, table in zip(self.axes, self.tables, strict=True)
                if attr in axes
            ]
            average = np.mean(versions, axis=0)
            own = _half_l1(margins(chances, (attr,)) - average)
            gaps.append([own, np.mean([_half_l1(version - average) for version in versions], axis=0)])
        return np.asarray(np.mean(gaps, axis=0).T)

    def solve_ours(self) -> Floats:
        """The same by our default: reconcile, denoise, table engine."""
        return np.stack([self._ours(tables) for tables in self._sets])

    def _ours(self, tables: list[tuple[Axes, Floats, float]]) -> Floats:
        measured = [Measurement(Query(axes), counts, self.mechanism) for axes, counts, _ in tables]
        domain = Domain(tuple(map(str, range(len(self.shape)))), self.shape)
        reconciled = reconcile(domain, measured, total=self.n_rows)
        return solve_table(denoise(reconciled))[0]


def margins(stack: Stack, axes: Axes) -> Stack:
    """The margin on `axes` of every table."""
    drop = tuple(1 + axis for axis in range(stack.ndim - 1) if axis not in axes)
    return np.ascontiguousarray(stack.sum(axis=drop)) if drop else stack


def normalised(stack: Stack) -> Floats:
    """Negative cells to zero, every table to sum one; uniform where nothing is left."""
    flat = np.maximum(stack.reshape(len(stack), -1), 0.0)
    flat[flat.sum(axis=1) <= 0] = 1.0
    return np.asarray(flat / flat.sum(axis=1, keepdims=True)).reshape(stack.shape)


def draw_rows(distributions: Floats, n_rows: int, rng: np.random.Generator) -> Counts:
    """The counts of `n_rows` independent draws from each distribution."""
    # The engines' sums differ from one by rounding, which the multinomial sampler refuses.
    flat = normalised(distributions).reshape(len(distributions), -1)
    return rng.multinomial(n_rows, flat).reshape(distributions.shape)


def tvd(first: Stack, second: Stack, orders: Sequence[int] = (1, 2, 3)) -> Floats:
    """The total variation distance, averaged over all tables of an order: pairs of tables by orders."""
    gaps = normalised(first) - normalised(second)
    return np.stack(
        [np.mean([0.5 * gap.sum(axis=1) for gap in _tables(gaps, k)], axis=0) for k in orders], axis=1
    )


def linf(first: Stack, second: Stack, orders: Sequence[int] = (2, 3)) -> Floats:
    """The largest difference of any cell of any table of an order: pairs of tables by orders."""
    gaps = normalised(first) - normalised(second)
    return np.stack([np.max([gap.max(axis=1) for gap in _tables(gaps, k)], axis=0) for k in orders], axis=1)


def _tables(gaps: Floats, order: int) -> list[Floats]:
    """The absolute differences in every table of an order, cells flat."""
    return [
        np.abs(margins(gaps, axes)).reshape(len(gaps), -1)
        for axes in combinations(range(gaps.ndim - 1), order)
    ]


def _half_l1(gaps: Floats) -> Floats:
    return np.asarray(0.5 * np.abs(gaps.reshape(len(gaps), -1)).sum(axis=1))


FDH = Contender("FDH", "FDH", 4)
CIPHER = {order: Contender(f"CIPHER {order}-way", "paper", order) for order in (1, 2, 3)}
OURS = {order: Contender(f"ours {order}-way", "ours", order) for order in (1, 2, 3)}
# The two readings of MWEM: a query is one cell, used once (as first published); or a whole table, all of them replayed (its authors' advice).
MWEM = {
    "cells": {order: Contender(f"MWEM {order}-way, cells", "MWEM cells", order) for order in (1, 2, 3)},
    "tables": {order: Contender(f"MWEM {order}-way, tables", "MWEM", order) for order in (1, 2, 3)},
}
MWEMS = tuple(method for orders in MWEM.values() for method in orders.values())
# MWEM's only table is the full one: what the paper calls its limit.
LIMITS = {
    "cells": Contender("MWEM full table, cells", "MWEM cells", 4),
    "tables": Contender("MWEM full table, tables", "MWEM", 4),
}
CONTENDERS = (FDH, *CIPHER.values(), *OURS.values(), *MWEMS)
