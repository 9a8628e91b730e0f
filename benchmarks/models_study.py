"""The study of models from one release on the paper's geometry: its cells, the methods side by side, and the journal of finished chunks.

Noise is seeded: nothing here is private.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations
from math import exp
from typing import Any

import numpy as np
from common import RESULTS, Floats

from dpcipher.engines.solve import solve_set
from dpcipher.errors import DpcipherError
from dpcipher.evaluation.runs import Journal
from dpcipher.inference.combine import t_quantile
from dpcipher.inference.design import Task, make_task
from dpcipher.inference.estimate import DrawSummary
from dpcipher.inference.release_models import draw_coefficients
from dpcipher.privacy.draws import SeededNoise
from dpcipher.release.release import Release
from dpcipher.release.statement import Statement
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Counts
from dpcipher.tables.measurement import Measurement, Noise
from dpcipher.tables.query import Query
from experiments.paper import simulated
from experiments.paper.population import POPULATION, REGRESSIONS, SHAPE, Population, random_coefficients
from experiments.paper.simulated import CIPHER, combine_identified, fit_sets
from experiments.paper.stacks import draw_rows, margins, read

SIZES, POWERS, POPULATIONS = (200, 500, 2_000, 10_000), (-2, -1, 0, 1, 2), (0, 1, 2)
CHUNK, DRAWS, SETS = 10, 400, 5
SCHEMA = Schema.from_domain({f"V{number}": size for number, size in enumerate(SHAPE, 1)})
PAIRS = tuple(combinations(range(len(SHAPE)), 2))
REGRESSION = REGRESSIONS[0]
FORMULA, FAMILY = "V4 ~ C(V1) + C(V2) + C(V3)", "multinomial"
METHODS = ("fit_models", "fit_models, closed", "naive", "paper, m = 5", "original rows")


@dataclass(frozen=True)
class Cell:
    """One cell of the study: a population (0 is the published one, others random coefficients), a number of rows, a power of e."""

    population: int
    n_rows: int
    power: int

    @property
    def source(self) -> Population:
        """Where the rows come from."""
        return Population(random_coefficients(self.population)) if self.population else POPULATION

    @property
    def epsilon(self) -> float:
        """The whole budget."""
        return exp(self.power)

    def seed(self, repeat: int, *more: int) -> np.random.SeedSequence:
        """A seed of its own for every repeat; the rows are the same for every epsilon."""
        return np.random.SeedSequence(
            [14, self.population, self.n_rows, *(100 + number for number in (repeat, *more))]
        )


def cells() -> Iterator[Cell]:
    """Every cell of the study."""
    return (Cell(which, n, power) for n in SIZES for which in POPULATIONS for power in POWERS)


def noisy_pairs(counts: Counts, epsilon: float, seed: int) -> Release:
    """All pairs of a table of counts; the number of rows is not told."""
    mechanism, source = Noise("laplace", len(PAIRS) / epsilon), SeededNoise(seed)
    tables = [
        Measurement(Query(axes), source.add(margins(counts[None], axes)[0], mechanism), mechanism)
        for axes in PAIRS
    ]
    return Release(SCHEMA, tuple(tables), Statement(status="NOT PRIVATE"))


# Lower and upper bounds, along the first axis.
Bounds = Floats


@cache
def task() -> Task:
    """The regression, as `fit_models` makes it of the formula; its parameters stand in the order of the paper's regression."""
    return make_task(SCHEMA, FORMULA, FAMILY)


def from_release(release: Release, seed: int) -> tuple[Bounds, Bounds]:
    """The intervals of `fit_models(release, …, draws=DRAWS)`, and those it gives with the interactions that no table shows taken for none."""
    fit = draw_coefficients(release, task(), draws=DRAWS, seed=seed)
    assert fit.closed is not None  # pairs leave the triples open
    return np.stack(DrawSummary(fit.beta).interval()), np.stack(fit.closed.interval())


def from_rows(release: Release, rng: np.random.Generator) -> Bounds:
    """The naive analysis: one set of synthetic rows, analysed as if they were the original ones."""
    joint = solve_set(release, 0)
    table = draw_rows(joint.core.project(tuple(range(4)))[None], max(joint.n_rows, 1), rng)
    return _bounds(table, 1)[:, 0]


def from_paper(counts: Counts, epsilon: float, seed: np.random.SeedSequence) -> Bounds:
    """The paper, for every table of counts: m sets of a fifth of the budget each, its engine, its combining rule."""
    noise, rows = seed.spawn(2)
    stack = np.repeat(counts, SETS, axis=0)
    chances = (
        simulated.METHODS[read(CIPHER[2], "guarded")].draw(stack, epsilon=epsilon / SETS, seed=noise).chances
    )
    return _bounds(draw_rows(chances, int(counts[0].sum()), np.random.default_rng(rows)), SETS)


def _bounds(tables: Counts, sets: int) -> Bounds:
    combined = combine_identified(*fit_sets(REGRESSION.x, REGRESSION.grouped(tables), sets))
    half = t_quantile(0.95, combined["dof"]) * np.sqrt(combined["variance"])
    return np.stack([combined["estimate"] - half, combined["estimate"] + half])


@dataclass(frozen=True)
class Originals:
    """The tables of a chunk of repeats and the intervals of their own rows: the same for every epsilon."""

    counts: Counts
    bounds: Bounds


@lru_cache(maxsize=4)
def originals(population: int, n_rows: int, chunk: int) -> Originals:
    """One chunk of original tables."""
    cell = Cell(population, n_rows, 0)
    each = [
        cell.source.draw(n_rows, 1, np.random.default_rng(cell.seed(repeat)))[0] for repeat in of_chunk(chunk)
    ]
    return Originals(np.array(each), _bounds(np.array(each), 1))


def of_chunk(chunk: int) -> range:
    """The repeats of a chunk."""
    return range(chunk * CHUNK, (chunk + 1) * CHUNK)


def run_chunk(cell: Cell, chunk: int) -> dict[str, Any]:
    """Some repeats: for each method, how often each coefficient had an interval and was covered by it, and the sum of the widths."""
    original = originals(cell.population, cell.n_rows, chunk)
    ours, seconds = [], []
    for repeat, counts in zip(of_chunk(chunk), original.counts, strict=True):
        bounds, spent = _by_release(cell, counts, repeat)
        ours.append(bounds)
        seconds.append(round(spent, 3))
    papers = from_paper(original.counts, cell.epsilon, cell.seed(chunk, cell.power, SETS))
    bounds = np.concatenate(
        [np.array(ours), np.stack([papers, original.bounds]).swapaxes(0, 2).swapaxes(1, 2)], axis=1
    )
    low, high = bounds[:, :, 0], bounds[:, :, 1]  # repeats, methods, coefficients
    truth = REGRESSION.truth(cell.source)
    covered = (low <= truth) & (high >= truth)
    return {
        "cell": [cell.population, cell.n_rows, cell.power],
        "chunk": chunk,
        "known": (~np.isnan(low)).sum(axis=0).tolist(),
        "covered": covered.sum(axis=0).tolist(),
        "by_repeat": covered.sum(axis=2).T.tolist(),
        "width": np.nansum(high - low, axis=0).round(3).tolist(),
        "seconds": seconds,
    }


def _by_release(cell: Cell, counts: Counts, repeat: int) -> tuple[Floats, float]:
    """Bounds of the methods that use one release of the whole budget, and the processor time of the first; a refusal is an interval of NaN."""
    noise, draws, rows = cell.seed(repeat, cell.power).spawn(3)
    release = noisy_pairs(counts, cell.epsilon, int(noise.generate_state(1)[0]))
    started = time.process_time()
    try:
        ours = from_release(release, int(draws.generate_state(1)[0]))
    except DpcipherError:
        ours = (np.full((2, REGRESSION.size), np.nan),) * 2
    seconds = time.process_time() - started
    return np.stack([*ours, from_rows(release, np.random.default_rng(rows))]), seconds


def journal() -> Journal:
    """The journal of the study."""
    settings = {"chunk": CHUNK, "draws": DRAWS, "methods": METHODS, "unmeasured": "open"}
    return Journal(
        RESULTS / "models.jsonl", settings, refusal="results/models.jsonl is of another study; remove it"
    )
