"""The methods that the experiments compare, each from a stack of true tables to a stack of synthetic ones.

A stack holds many tables of one shape along its first axis, and every step works on all of them: one table at a time, the hundred thousand fits
of the first experiment would take hours. Rows are added or removed (sensitivity 1) and n is public, for every method: the paper needs n and leaves
the neighbour relation open. Noise is seeded, so that an experiment can be repeated: NOT PRIVATE.
"""

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import combinations
from typing import Any
from zlib import crc32

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from dpcipher.engines.denoise.denoise import denoise
from dpcipher.engines.paper import READINGS, Paper, solve_paper
from dpcipher.engines.table import solve_table
from dpcipher.errors import DpcipherWarning, ParameterError, did_you_mean
from dpcipher.methods import Synthesizer
from dpcipher.privacy.draws import Draws, SeededNoise
from dpcipher.release.reconcile import reconcile
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Axes, Counts, Domain, Floats
from dpcipher.tables.measurement import Measurement, Noise
from dpcipher.tables.query import Query

Stack = NDArray[Any]
Seeds = tuple[SeedSequence, SeedSequence]
# Synthetic distributions, and other scores of each fit by name.
Fitted = tuple[Floats, Mapping[str, Stack]]
# From counts, the tables to measure, the budget, seeds (of the noise; of everything else) and MWEM's number of rounds.
Fit = Callable[[Counts, Sequence[Axes], float, Seeds, int], Fitted]

# The readings of Algorithm 1; the first is the literal one, which the headline is about. Guard, target and clipping by
# their published names; one more target; and the ridge, of which the paper says "small".
LITERAL = "literal"
SWEPT: dict[str, Paper] = {
    **READINGS,
    "literal, largest target": Paper(target="largest"),
    "literal, λ = 0.0001": Paper(lam=1e-4),
    "literal, λ = 0.001": Paper(lam=1e-3),
    "literal, λ = 0.1": Paper(lam=1e-1),
}
# They differ in λ alone, from small to large.
RIDGES = ("literal, λ = 0.0001", "literal, λ = 0.001", LITERAL, "literal, λ = 0.1")
# The numbers of rounds that MWEM is tuned over, and its passes over all answers in a round.
ROUNDS = (1, 2, 4, 8, 16, 32)
PASSES = 20


def chosen(reading: str | Sequence[str]) -> tuple[str, ...]:
    """The readings of a run: the literal one always, and others by name, or all.

    >>> chosen("clipped")
    ('literal', 'clipped')
    """
    names = (reading,) if isinstance(reading, str) else tuple(reading)
    if "all" in names:
        return tuple(SWEPT)
    for name in names:
        if name not in SWEPT:
            hint = did_you_mean(name, ("all", *SWEPT))
            raise ParameterError(f"reading ({name!r}) must be one of all, {'; '.join(SWEPT)}{hint}")
    return tuple(name for name in SWEPT if name == LITERAL or name in names)


def read(name: str, reading: str) -> str:
    """The name of CIPHER under a reading; the literal one is not part of it.

    >>> read("CIPHER 2-way", "clipped")
    'CIPHER 2-way [clipped]'
    """
    return name if reading == LITERAL else f"{name} [{reading}]"


@dataclass(frozen=True)
class Drawn:
    """Synthetic distributions, rows drawn from them as tables of counts, and other scores of each fit."""

    chances: Floats
    rows: Counts
    scores: Mapping[str, Stack]


@dataclass(frozen=True)
class Method:
    """A method under its name among the scores, on all tables of one order (0: the full table).

    Of each original it makes `sets` sets, each with a `share` of epsilon, on every `every`-th repeat. Methods with one `base` see the same
    noise, whatever else is run: all readings of CIPHER do. `rounds` is MWEM's T, None where it is tuned. `regressions` says whether its rows are
    analysed, `random` whether it is run on the random populations, too.
    """

    name: str
    fit: Fit
    order: int
    base: str = ""
    sets: int = 5
    share: int = 5
    every: int = 1
    rounds: int | None = 1
    entropy: tuple[int, ...] = ()
    regressions: bool = True
    random: bool = False
    reading: str = LITERAL

    def seed(self, *entropy: int) -> SeedSequence:
        """A seed that depends on the base alone."""
        return SeedSequence([*entropy, *self.entropy, crc32((self.base or self.name).encode())])

    def draw(self, counts: Counts, *, epsilon: float, seed: SeedSequence, rounds: int = 1) -> Drawn:
        """One distribution for each table of counts, each with budget `epsilon`, and as many rows as the table has."""
        axes, seeds = range(counts.ndim - 1), seed.spawn(2)
        tables = list(combinations(axes, self.order or len(axes)))
        chances, scores = self.fit(counts, tables, epsilon, (seeds[0], seeds[1]), rounds)
        rows = draw_rows(chances, int(counts[0].sum()), np.random.default_rng(seeds[1]))
        return Drawn(chances, rows, scores)


def in_run(methods: Mapping[str, Method], readings: Sequence[str]) -> list[str]:
    """The methods of a run: all but CIPHER under readings that are not asked for."""
    return [name for name, method in methods.items() if method.reading in readings]


def tune_rounds(
    method: Method, table: Counts, draws: int, *, epsilon: float, seeds: Sequence[SeedSequence]
) -> int:
    """MWEM's number of rounds with the least TVD of its own tables, over several draws for one table of counts."""
    stack = np.repeat(table[None], draws, axis=0)
    errors = [
        tvd(stack, method.draw(stack, epsilon=epsilon, seed=seed, rounds=rounds).chances, [method.order])
        for rounds, seed in zip(ROUNDS, seeds, strict=True)
    ]
    return ROUNDS[int(np.argmin([error.mean() for error in errors]))]


@dataclass(frozen=True)
class Sanitized:
    """Noisy tables of many data sets: each table with the data sets along its first axis."""

    shape: tuple[int, ...]
    axes: tuple[Axes, ...]
    tables: tuple[Floats, ...]
    noise: Noise

    @classmethod
    def of(cls, counts: Counts, axes: Sequence[Axes], epsilon: float, seed: SeedSequence) -> "Sanitized":
        """Equal shares of the budget for every table: scale |Q| / epsilon (the paper prints its inverse)."""
        noise, source = Noise("laplace", len(axes) / epsilon), _source(seed)
        tables = tuple(source.add(margins(counts, attrs), noise).astype(float) for attrs in axes)
        return cls(counts.shape[1:], tuple(axes), tables, noise)

    def of_set(self, number: int) -> list[tuple[Axes, Floats, float]]:
        """The tables of one data set, each with its axes and the variance of its noise."""
        pairs = zip(self.axes, self.tables, strict=True)
        return [(attrs, table[number], self.noise.variance) for attrs, table in pairs]

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
            result = _half_l1(margins(chances, (attr,)) - average)
            gaps.append([result, np.mean([_half_l1(version - average) for version in versions], axis=0)])
        return np.asarray(np.mean(gaps, axis=0).T)


def fit_histogram(
    counts: Counts, tables: Sequence[Axes], epsilon: float, seeds: Seeds, rounds: int
) -> Fitted:
    """FDH: the noisy full table."""
    return normalised(Sanitized.of(counts, tables, epsilon, seeds[0]).tables[0]), {}


def fit_paper(
    counts: Counts, tables: Sequence[Axes], epsilon: float, seeds: Seeds, rounds: int, *, reading: str
) -> Fitted:
    """CIPHER as printed, under a reading; the targets of every set are drawn anew."""
    noisy, seed = Sanitized.of(counts, tables, epsilon, seeds[0]), int(seeds[1].generate_state(1)[0])
    chances = np.stack(
        [
            solve_paper(noisy.shape, noisy.of_set(k), SWEPT[reading], rng=np.random.default_rng([seed, k]))[0]
            for k in range(len(counts))
        ]
    )
    return chances, {"averaging": noisy.averaging(chances)}


def fit_ours(counts: Counts, tables: Sequence[Axes], epsilon: float, seeds: Seeds, rounds: int) -> Fitted:
    """Our default on the noise that CIPHER would see: reconcile, denoise, table engine."""
    noisy, n_rows = Sanitized.of(counts, tables, epsilon, seeds[0]), int(counts[0].sum())
    domain = Domain(tuple(map(str, range(len(noisy.shape)))), noisy.shape)
    chances = []
    for k in range(len(counts)):
        measured = [Measurement(Query(axes), table, noisy.noise) for axes, table, _ in noisy.of_set(k)]
        chances.append(solve_table(denoise(reconcile(domain, measured, total=n_rows)))[0])
    return np.stack(chances), {}


def fit_library(
    counts: Counts,
    tables: Sequence[Axes],
    epsilon: float,
    seeds: Seeds,
    rounds: int,
    *,
    method: type[Synthesizer],
    **options: object,
) -> Fitted:
    """A method of this package, one table at a time by the seam for experiments; and the processor seconds of every fit."""
    schema, chances, seconds = _schema(counts.shape[1:]), [], []
    for table, seed in zip(counts, seeds[0].generate_state(len(counts)), strict=True):
        sized = method(epsilon, unit="add-remove", **options).sized(int(table.sum()))  # type: ignore[arg-type]
        started = time.process_time()
        with warnings.catch_warnings():
            # Little budget makes poor fits; how poor is what is measured here.
            warnings.simplefilter("ignore", DpcipherWarning)
            fitted = sized.fit_counts(table, schema, draws=Draws.seeded(int(seed)))
        seconds.append([time.process_time() - started])
        chances.append(np.maximum(fitted.joints[0].core.project(tuple(range(table.ndim))), 0.0))
    return np.stack(chances), {"seconds": np.array(seconds)}


@cache
def _schema(shape: tuple[int, ...]) -> Schema:
    return Schema.from_domain({f"V{place + 1}": size for place, size in enumerate(shape)})


@dataclass(frozen=True)
class Answer:
    """Noisy answers to one table: which members of the stack asked for it, the axes it sums over, and the answers."""

    members: NDArray[np.intp]
    drop: Axes
    noisy: Floats

    def apply(self, stack: Floats, n_rows: int) -> None:
        """A(x) ← A(x)·exp(q(x)·(answer − q(A))/2n), normalised, in place."""
        part = stack[self.members]
        margin = part.sum(axis=self.drop, keepdims=True)
        factor = np.exp((self.noisy - margin) / (2 * n_rows))
        # The new total follows from the margin, so that the tables are passed over once, not twice.
        total = (margin * factor).sum(axis=tuple(range(1, factor.ndim)), keepdims=True)
        factor *= n_rows / total
        part *= factor
        stack[self.members] = part


def fit_mwem_tables(
    counts: Counts, tables: Sequence[Axes], epsilon: float, seeds: Seeds, rounds: int
) -> Fitted:
    """The last table of MWEM where a query is a whole table and all answers are replayed in every round.

    The steps are those of `dpcipher.methods.MWEM`, its authors' advice in practice.
    """
    n_rows, (rng, source) = int(counts[0].sum()), _mwem_randomness(seeds[0])
    noise = Noise("laplace", 2 * rounds / epsilon)
    drops = [tuple(1 + axis for axis in range(counts.ndim - 1) if axis not in axes) for axes in tables]
    truths = [counts.sum(axis=drop, keepdims=True) for drop in drops]
    stack = np.full(counts.shape, n_rows / np.prod(counts.shape[1:]))
    seen: list[Answer] = []
    for _ in range(rounds):
        # The score: the L1 error of a table less its number of cells.
        gaps = [
            np.abs(t - stack.sum(axis=drop, keepdims=True)) for t, drop in zip(truths, drops, strict=True)
        ]
        scores = np.stack([gap.reshape(len(gap), -1).sum(axis=1) - gap[0].size for gap in gaps], axis=1)
        picks = _choose(scores, epsilon / (2 * rounds), rng)
        for q in np.unique(picks):
            members = np.flatnonzero(picks == q)
            noisy = source.add(truths[q][members], noise).astype(float)
            # As in the method: what is far outside [0, n] is noise and must not overflow the table.
            seen.append(Answer(members, drops[q], np.clip(noisy, -n_rows, 2 * n_rows)))
        replay(stack, seen, n_rows)
    return stack / n_rows, {}


def replay(stack: Floats, seen: Sequence[Answer], n_rows: int) -> None:
    """Several passes over all answers so far, in place."""
    for _ in range(PASSES):
        for answer in seen:
            answer.apply(stack, n_rows)


def fit_mwem_cells(
    counts: Counts, tables: Sequence[Axes], epsilon: float, seeds: Seeds, rounds: int
) -> Fitted:
    """The mean of MWEM's tables over all rounds, where a query is one cell of one table and is used once.

    That is the algorithm as first published (Hardt, Ligett and McSherry 2012, figure 1).
    """
    n_rows, (rng, source) = int(counts[0].sum()), _mwem_randomness(seeds[0])
    noise, queries = Noise("laplace", 2 * rounds / epsilon), _cells(counts.shape[1:], tables)
    truth = np.rint(counts.reshape(len(counts), -1) @ queries).astype(np.int64)
    stack = np.full((len(counts), len(queries)), n_rows / len(queries))
    mean, members = np.zeros_like(stack), np.arange(len(counts))
    for _ in range(rounds):
        mean += stack / rounds
        answers = stack @ queries
        picks = _choose(np.abs(truth - answers), epsilon / (2 * rounds), rng)
        noisy = np.clip(source.add(truth[members, picks], noise), -n_rows, 2 * n_rows)
        stack *= np.exp(queries[:, picks].T * ((noisy - answers[members, picks]) / (2 * n_rows))[:, None])
        stack *= n_rows / stack.sum(axis=1, keepdims=True)
    return mean.reshape(counts.shape) / n_rows, {}


def _source(seed: SeedSequence) -> SeededNoise:
    return SeededNoise(int(seed.generate_state(1, np.uint64)[0]))


def _mwem_randomness(seed: SeedSequence) -> tuple[np.random.Generator, SeededNoise]:
    choices, noise = seed.spawn(2)
    return np.random.default_rng(choices), _source(noise)


def _choose(scores: Floats, epsilon: float, rng: np.random.Generator) -> NDArray[np.intp]:
    """The exponential mechanism by Gumbel noise: Pr ∝ exp(epsilon · score / 2), since one person moves a score by one."""
    return np.asarray(np.argmax(scores * epsilon / 2 + rng.gumbel(size=scores.shape), axis=1))


def _cells(shape: tuple[int, ...], tables: Sequence[Axes]) -> Floats:
    """Every cell of every table as a column: one where a cell of the full table belongs to it."""
    places = np.indices(shape).reshape(len(shape), -1)
    columns = []
    for axes in tables:
        sizes = [shape[axis] for axis in axes]
        number = np.ravel_multi_index([places[axis] for axis in axes], sizes)
        columns.append(np.eye(int(np.prod(sizes)))[number])
    return np.concatenate(columns, axis=1)


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


def over_sets(values: Floats, sets: int) -> Floats:
    """The mean over the sets of each original."""
    return np.asarray(values.reshape(len(values) // sets, sets, -1).mean(axis=1))


MWEM_FITS: Mapping[str, Fit] = {"cells": fit_mwem_cells, "tables": fit_mwem_tables}


def paper(reading: str) -> Fit:
    """CIPHER under a reading."""
    return partial(fit_paper, reading=reading)
