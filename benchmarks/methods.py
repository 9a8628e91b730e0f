"""How long every synthesizer takes: at the size of the paper's first experiment, at a million cells, on Adult and on NLTCS.

    DPCIPHER_DATA=<folder> python benchmarks/methods.py [nltcs]

Times are of one process and of the processor (a busy machine changes them less than wall time); the noise is seeded except where it says exact.
"""

import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
from common import data_folder, markdown, real, tvd_rows, write_page

from dpcipher.methods import METHODS, MWEM, JunctionTree, PrivBayes, Synthesizer
from dpcipher.methods.mwem import Measurement
from dpcipher.privacy.draws import Draws
from dpcipher.schema.schema import Schema

SMALL = Schema.from_domain({"a": 2, "b": 2, "c": 3, "d": 3})
LARGE_SHAPE = (10,) * 6
GOALS = {"cipher": 5, "full-histogram": 5, "mwem": 5}
ADULT = ("cipher", "priv-bayes", "junction-tree", "independent", "uniform")


def cpu(work: Callable[[], object]) -> float:
    """Processor seconds."""
    started = time.process_time()
    work()
    return time.process_time() - started


def small_counts() -> np.ndarray:
    """500 rows over 36 cells whose columns depend on one another."""
    rng = np.random.default_rng(0)
    return rng.multinomial(500, rng.dirichlet(np.full(36, 0.5))).reshape(SMALL.shape)


def one_fit(method: Synthesizer, counts: np.ndarray, seed: int) -> float:
    """Processor seconds of a seeded fit of the small table."""
    return cpu(lambda: method.fit_counts(counts, SMALL, draws=Draws.seeded(seed)))


def small(repeats: int = 60) -> str:
    """Milliseconds for a fit when many are made in one process."""
    counts, lines = small_counts(), []
    for name, method in METHODS.items():
        template = method(1.0, unit="add-remove")
        template.fit_counts(counts, SMALL, draws=Draws.seeded(0))
        times = [1000 * one_fit(template, counts, seed) for seed in range(repeats)]
        goal = GOALS.get(name, 50)
        median = float(np.median(times))
        lines.append((name, f"{median:.2f}", f"{max(times):.2f}", goal, "yes" if median < goal else "no"))
    return "## 36 cells, 500 rows, ε = 1\n\n" + markdown(
        ["method", "median ms a fit", "slowest ms", "goal ms", "met"], lines
    )


def large() -> str:
    """Seconds for MWEM at a million cells."""
    schema = Schema.from_domain({f"c{number}": 10 for number in range(6)})
    rng = np.random.default_rng(1)
    counts = rng.multinomial(100_000, rng.dirichlet(np.full(10**6, 0.01))).reshape(LARGE_SHAPE)
    table = np.full(LARGE_SHAPE, 0.1)
    pairs = [(i, j) for i in range(6) for j in range(i + 1, 6)]
    updates = [
        Measurement(axes, counts.sum(axis=_others(axes)).astype(float)).update(LARGE_SHAPE, 1e5)
        for axes in pairs
    ]
    one_pass = cpu(lambda: [update.apply(table, 1e5) for update in updates])
    whole = cpu(lambda: MWEM(1.0, unit="add-remove").fit_counts(counts, schema, draws=Draws.seeded(1)))
    lines = [
        ("one pass over all 15 pair tables", f"{one_pass:.2f}"),
        ("a whole fit: 6 rounds, 20 passes each", f"{whole:.1f}"),
    ]
    return "## MWEM at 1,000,000 cells\n\n" + markdown(["what", "seconds"], lines)


def _others(axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(axis for axis in range(6) if axis not in axes)


def adult() -> str:
    """Seconds and errors on Adult (48,842 × 14) with exact noise."""
    codes, shape = real("adult")
    names = [f"c{number}" for number in range(len(shape))]
    schema = Schema.from_domain(dict(zip(names, shape, strict=True)))
    frame, lines = pd.DataFrame(codes, columns=names), []
    for name in ADULT:
        method = METHODS[name](1.0, unit="add-remove")
        started = time.process_time()
        fitted = method.fit(frame, schema)
        fitting = time.process_time()
        rows = fitted.sample(len(codes), seed=1).to_numpy()
        seconds, drawing = fitting - started, time.process_time() - fitting
        errors = " / ".join(f"{value:.3f}" for value in tvd_rows(codes, rows, shape))
        lines.append((name, f"{seconds:.2f}", f"{drawing:.2f}", errors))
    head = ["method", "fit s (exact noise)", "48,842 rows s", "TVD 1/2/3-way"]
    return "## Adult, 14 columns, ε = 1, add-remove\n\n" + markdown(head, lines)


CHOSEN = {
    "PrivBayes, score F": PrivBayes,
    "PrivBayes, score R": partial(PrivBayes, score="R"),
    "junction tree": JunctionTree,
    "junction tree, pairs measured": partial(JunctionTree, selection="laplace"),
}


def nltcs(repeats: int = 3) -> str:
    """Seconds and errors of the methods that choose their tables, on NLTCS (21,574 × 16, binary)."""
    codes, shape = real("nltcs")
    schema = Schema.from_domain({f"c{number}": size for number, size in enumerate(shape)})
    lines = []
    for epsilon in (0.1, 0.4, 1.6):
        for name, make in CHOSEN.items():
            method, seconds, errors = make(epsilon, unit="add-remove"), [], []
            for seed in range(repeats):
                started = time.process_time()
                fitted = method.fit_counts(codes, schema, draws=Draws.seeded(seed), codes=True)
                seconds.append(time.process_time() - started)
                errors.append(tvd_rows(codes, fitted.sample(len(codes), seed=seed).to_numpy(), shape))
            told = " / ".join(f"{value:.3f}" for value in np.mean(errors, axis=0))
            lines.append((name, epsilon, f"{np.mean(seconds):.1f}", told))
    head = ["method", "ε", "fit s", "TVD 1/2/3-way of rows"]
    return f"## NLTCS, 16 columns, add-remove, mean of {repeats} fits\n\n" + markdown(head, lines)


def main(part: str = "") -> None:
    """Run everything and write results/methods.md, or with "nltcs" that table alone and results/methods_nltcs.md."""
    data_folder()
    if part == "nltcs":
        command = "python benchmarks/methods.py nltcs"
        write_page("methods_nltcs", "Synthesizers that choose their tables", command, [nltcs()])
    else:
        write_page(
            "methods", "Synthesizers: time", "python benchmarks/methods.py", [small(), large(), adult()]
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
