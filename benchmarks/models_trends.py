"""Do slopes over ordered columns cover, from one release, where noise is as large as the cells?

usage: python benchmarks/models_trends.py [repeats=24] [page]

Generated populations of 10×5×2×4×2 levels, exact log-linear models of pairs with a rare outcome: linear trends, steps, interactions without any order, and none.
All pairs are measured once; the logistic model has one slope for each column. The prior of ordered levels (`posteriors/prior.py`) was settled on these populations, and
stands beside the one that ignores their order. Finished repeats are kept in a journal. Noise is seeded: nothing here is private.
"""

import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import combinations, product
from math import exp
from typing import Any

import numpy as np
from common import RESULTS, Floats, asked_repeats, markdown, write_page

from dpcipher.errors import DpcipherError
from dpcipher.evaluation.runs import Journal
from dpcipher.inference.design import make_task
from dpcipher.inference.estimate import DrawSummary
from dpcipher.inference.release_models import draw_coefficients
from dpcipher.posteriors import prior
from dpcipher.privacy.draws import SeededNoise
from dpcipher.release.release import Release
from dpcipher.release.statement import Statement
from dpcipher.schema.schema import Schema
from dpcipher.tables.measurement import Measurement, Noise
from dpcipher.tables.query import Query

SHAPE, N_ROWS, RARE, POPULATIONS, DRAWS = (10, 5, 2, 4, 2), 5_000, 0.07, 6, 200
KINDS, POWERS = ("trends", "steps", "no order", "none"), (-1, 0, 2)
ORDERED, UNRELATED = "walk", "unrelated levels"
SCHEMA = Schema.from_domain({f"x{number}": size for number, size in enumerate(SHAPE[:-1])} | {"y": 2})
PAIRS = tuple(combinations(range(len(SHAPE)), 2))
TASK = make_task(SCHEMA, "y ~ x0 + x1 + x2 + x3", "logistic")


@cache
def population(kind: str, number: int) -> Floats:
    """The probability of every cell."""
    rng, scores = np.random.default_rng([77, KINDS.index(kind), number]), np.zeros(SHAPE)
    for axis, size in enumerate(SHAPE):
        scores += spread(0.3 * rng.normal(size=size), (axis,))
    for pair in PAIRS:
        scores += spread(interaction(kind, pair, rng), pair)
    chances = np.exp(scores - scores.max())
    chances *= np.array([1 - RARE, RARE]) / chances.sum(axis=(0, 1, 2, 3))
    return np.asarray(chances)


def spread(table: Floats, axes: tuple[int, ...]) -> Floats:
    """A table over some axes, shaped to broadcast over all."""
    return table.reshape([size if axis in axes else 1 for axis, size in enumerate(SHAPE)])


def interaction(kind: str, pair: tuple[int, int], rng: np.random.Generator) -> Floats:
    """The interaction of two columns."""
    sizes = [SHAPE[axis] for axis in pair]
    if kind == "none":
        return np.zeros(sizes)
    if kind == "no order":
        return np.asarray(0.5 * rng.normal(size=sizes))
    sign = rng.choice([-1, 1])
    if kind == "steps":
        sides = [(np.arange(size) >= rng.integers(1, size)).astype(float) for size in sizes]
        return np.asarray(1.5 * sign * np.outer(*(side - side.mean() for side in sides)))
    slope = rng.uniform(0.4, 0.8) * (1.0 if pair[1] == len(SHAPE) - 1 else 0.4)
    levels = [np.arange(size) - (size - 1) / 2 for size in sizes]
    return np.asarray(sign * slope * np.outer(*(one / one.std() for one in levels)))


def released(kind: str, power: int, repeat: int) -> tuple[Release, Floats]:
    """All pairs of rows drawn from a population, and the population."""
    chances = population(kind, repeat % POPULATIONS)
    seeds = [16, KINDS.index(kind), repeat]
    counts = np.random.default_rng(seeds).multinomial(N_ROWS, chances.ravel()).reshape(SHAPE)
    noise = int(np.random.SeedSequence([*seeds, power + 10]).generate_state(1)[0])
    mechanism, source = Noise("laplace", len(PAIRS) / exp(power)), SeededNoise(noise)
    tables = []
    for pair in PAIRS:
        own = counts.sum(axis=tuple(axis for axis in range(len(SHAPE)) if axis not in pair))
        tables.append(Measurement(Query(pair), source.add(own, mechanism), mechanism))
    return Release(SCHEMA, tuple(tables), Statement(status="NOT PRIVATE")), chances


@contextmanager
def without_order() -> Iterator[None]:
    """The prior that takes all levels for unrelated."""
    least = prior.LEAST_ORDERED
    prior.LEAST_ORDERED = 1_000_000
    try:
        yield
    finally:
        prior.LEAST_ORDERED = least


def one_repeat(kind: str, power: int, repeat: int) -> dict[str, Any]:
    """Errors toward 0 in standard errors, coverage and width by method, with the processor time of each."""
    release, chances = released(kind, power, repeat)
    order = [SCHEMA.attrs.index(name) for name in TASK.formula.columns]
    truth = TASK.fit(chances.transpose(order)[None])[0][0]
    item: dict[str, Any] = {"kind": kind, "power": power, "repeat": repeat}
    item[ORDERED] = judged(release, truth, repeat)
    if kind == "trends":
        with without_order():
            item[UNRELATED] = judged(release, truth, repeat)
    return item


def judged(release: Release, truth: Floats, seed: int) -> dict[str, Any] | None:
    """How the intervals of the coefficients are; None for a refusal."""
    started = time.process_time()
    try:
        fit = draw_coefficients(release, TASK, draws=DRAWS, seed=seed, unmeasured="none")
    except DpcipherError:
        return None
    drawn, seconds = DrawSummary(fit.beta), time.process_time() - started
    low, high = drawn.interval()
    return {
        "covered": ((low <= truth) & (truth <= high)).tolist(),
        "short": (np.sign(truth) * (truth - drawn.estimate) / drawn.std_error).round(3).tolist(),
        "width": (high - low).round(4).tolist(),
        "seconds": round(seconds, 2),
    }


def journal() -> Journal:
    """The journal of the study."""
    settings = {"shape": SHAPE, "n_rows": N_ROWS, "draws": DRAWS, "populations": POPULATIONS}
    path = RESULTS / "models_trends.jsonl"
    return Journal(path, settings, refusal="results/models_trends.jsonl is of another study; remove it")


def run(repeats: int) -> None:
    """Every repeat that is not there yet."""
    book = journal()
    done = {(item["kind"], item["power"], item["repeat"]) for item in book.finished()}
    for repeat, power, kind in product(range(repeats), POWERS, KINDS):
        if (kind, power, repeat) not in done:
            book.append(one_repeat(kind, power, repeat))


def page(command: str) -> None:
    """The page of results."""
    gathered: dict[tuple[str, int, str], list[Any]] = defaultdict(list)
    for item in journal().finished():
        for method in (ORDERED, UNRELATED):
            if method in item:
                gathered[item["kind"], item["power"], method].append(item[method])
    head = ["interactions", "prior", "ε", "repeats", "coverage", "worst", "slopes short by", "width", "refused", "seconds"]  # fmt: skip
    lines = [
        _line(kind, power, method, gathered[kind, power, method])
        for kind, method, power in product(KINDS, (ORDERED, UNRELATED), POWERS)
        if gathered[kind, power, method]
    ]
    text = (
        f"Nominal 95 % intervals of the five coefficients of `y ~ x0 + x1 + x2 + x3` (logistic; {'×'.join(map(str, SHAPE))} levels, {RARE:.0%} of the rows have the outcome) from one release of all pairs, n = {N_ROWS:,}, pure ε, against the "
        f"population's own. {POPULATIONS} generated populations of every kind, exact models of pairs. `{ORDERED}` is the prior of `fit_models`: the levels of a column that has an order are a random walk. `{UNRELATED}` ignores the order. `worst` is the worst "
        f"coefficient, `slopes short by` the mean error toward 0 of the four slopes in standard errors, `width` the median width of x0's interval. {DRAWS} draws; processor seconds. Seeds: 16, kind, repeat."
    )
    reading = (
        "## Reading it\n\nLevels that are drawn towards 0 one by one lose each half of their effect where noise is as large as a cell, and a slope over ten of them is short by as much, while its own error is far "
        "smaller: that is no matter of chance, and no variance holds it. The steps of a walk are as small, but many in one direction make a trend. With so few repeats the other kinds of interactions show no more than that nothing is far off, and `worst` says next to nothing. "
        "These populations are those that the prior was settled on; [real ones](models_real.md) are the verdict."
    )
    write_page(
        "models_trends", "Slopes over ordered columns", command, [text, markdown(head, lines), reading]
    )


def _line(kind: str, power: int, method: str, found: list[Any]) -> list[str]:
    kept = [item for item in found if item is not None]
    covered, short, width = (np.array([item[key] for item in kept]) for key in ("covered", "short", "width"))
    error = (covered.mean(axis=1).var() / max(1, len(kept) - 1)) ** 0.5
    return [
        kind,
        method,
        f"e^{power}",
        str(len(found)),
        f"{covered.mean():.3f} ± {error:.3f}",
        f"{covered.mean(axis=0).min():.2f}",
        f"{short[:, 1:].mean():+.2f}",
        f"{np.median(width[:, 1]):.2f}",
        f"{1 - len(kept) / len(found):.1%}",
        f"{np.mean([item['seconds'] for item in kept]):.2f}",
    ]


if __name__ == "__main__":
    repeats = asked_repeats(24)
    if "page" not in sys.argv:
        run(repeats)
    page(f"python benchmarks/models_trends.py {repeats}")
