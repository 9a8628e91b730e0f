"""The methods that the paper compares, each from a stack of true tables to a stack of synthetic distributions.

Rows are added or removed (sensitivity 1) and n is public, for every method: the paper needs n and leaves the neighbour relation open.
Noise is seeded, so that an experiment can be repeated. NOT PRIVATE.

A stack holds many tables of one shape along its first axis, and every step works on all of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcipher.engines.denoise.denoise import denoise
from dpcipher.engines.paper import solve_paper
from dpcipher.engines.reading import READINGS, Reading
from dpcipher.engines.table import solve_table
from dpcipher.errors import ParameterError
from dpcipher.marginals.arrays import Axes, Counts, Floats
from dpcipher.paper.many_mwem import mwem_cells, mwem_many
from dpcipher.privacy.noise import Mechanism, SeededNoise
from dpcipher.release.reconcile import Noisy, reconcile

Stack = NDArray[Any]

KINDS = ("FDH", "paper", "ours", "MWEM", "MWEM cells")
# The numbers of rounds that MWEM is tuned over.
ROUNDS = (2, 4, 8, 12, 16)


@dataclass(frozen=True)
class Contender:
    """A method with its tables: all of one order, or the full table for FDH."""

    name: str
    kind: str
    order: int
    reading: Reading = READINGS["guarded"]

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ParameterError(f"kind ({self.kind!r}) must be one of {', '.join(KINDS)}")

    @property
    def uses_rounds(self) -> bool:
        """Whether it is a form of MWEM."""
        return self.kind.startswith("MWEM")

    def label(self, scores: Mapping[str, Stack]) -> dict[str, Stack]:
        """Scores under the name of the method."""
        return {f"{self.name}/{key}": value for key, value in scores.items()}

    def tables(self, n_attrs: int) -> list[Axes]:
        """The tables it measures, or chooses from."""
        return list(combinations(range(n_attrs), n_attrs if self.kind == "FDH" else self.order))

    def synthesize(
        self, counts: Counts, *, epsilon: float, seed: np.random.SeedSequence, rounds: int = 1
    ) -> Floats:
        """One distribution for each table of counts (first axis), each with budget `epsilon`; `rounds` is MWEM's T."""
        tables = self.tables(counts.ndim - 1)
        if self.uses_rounds:
            method = mwem_many if self.kind == "MWEM" else mwem_cells
            return np.asarray(
                method(counts, tables, epsilon=epsilon, rounds=rounds, seed=seed) / counts[0].sum()
            )
        noisy = Sanitized.of(counts, tables, epsilon, seed)
        if self.kind == "FDH":
            return normalised(noisy.tables[0])
        return noisy.solve_paper(self.reading) if self.kind == "paper" else noisy.solve_ours()

    def draw(
        self, counts: Counts, *, epsilon: float, seed: np.random.SeedSequence, rounds: int = 1
    ) -> tuple[Floats, Counts]:
        """The distributions of `synthesize`, and tables of as many rows drawn from each as its table has."""
        synthesis, rows_seed = seed.spawn(2)
        chances = self.synthesize(counts, epsilon=epsilon, seed=synthesis, rounds=rounds)
        return chances, draw_rows(chances, int(counts[0].sum()), np.random.default_rng(rows_seed))


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
            stack, contender.synthesize(stack, epsilon=epsilon, seed=seed, rounds=rounds), [contender.order]
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
    mechanism: Mechanism
    n_rows: int

    @classmethod
    def of(
        cls, counts: Counts, axes: Sequence[Axes], epsilon: float, seed: np.random.SeedSequence
    ) -> "Sanitized":
        """Equal shares of the budget for every table: scale |Q| / epsilon (the paper prints its inverse)."""
        mechanism = Mechanism("laplace", len(axes) / epsilon)
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

    def solve_paper(self, reading: Reading) -> Floats:
        """The distribution behind the noisy tables of each data set, by the paper's algorithm; every one draws targets of its own."""
        return np.stack(
            [
                solve_paper(self.shape, tables, reading, rng=np.random.default_rng(number))[0]
                for number, tables in enumerate(self._sets)
            ]
        )

    def solve_ours(self) -> Floats:
        """The same by our default: reconcile, denoise, table engine."""
        return np.stack([self._ours(tables) for tables in self._sets])

    def _ours(self, tables: list[tuple[Axes, Floats, float]]) -> Floats:
        reconciled = reconcile(self.shape, [Noisy(*table) for table in tables], total=self.n_rows)
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


FDH = Contender("FDH", "FDH", 4)
CIPHER_2 = Contender("CIPHER 2-way", "paper", 2)
CIPHER_3 = Contender("CIPHER 3-way", "paper", 3)
OURS_2 = Contender("ours 2-way", "ours", 2)
OURS_3 = Contender("ours 3-way", "ours", 3)
MWEM_2 = Contender("MWEM 2-way", "MWEM", 2)
MWEM_3 = Contender("MWEM 3-way", "MWEM", 3)
CELLS_2 = Contender("MWEM 2-way, cells", "MWEM cells", 2)
CELLS_3 = Contender("MWEM 3-way, cells", "MWEM cells", 3)
# The methods that the paper itself compares.
PAPERS = (FDH, CIPHER_2, CIPHER_3, MWEM_2, MWEM_3, CELLS_2, CELLS_3)
CONTENDERS = (FDH, CIPHER_2, CIPHER_3, OURS_2, OURS_3, MWEM_2, MWEM_3, CELLS_2, CELLS_3)
MWEMS = tuple(method for method in CONTENDERS if method.uses_rounds)
# How much the paper's ridge matters.
RIDGES = tuple(
    Contender(f"CIPHER 2-way, λ = {lam:g}", "paper", 2, Reading(guard="rows", lam=lam))
    for lam in (1e-4, 1e-3, 1e-1)
)
