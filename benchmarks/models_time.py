"""How long do models from one release take, by the number of cells of their columns?

usage: python benchmarks/models_time.py [repeats=3]

All pairs, or the full table, of four columns that depend on one another, 10,000 generated rows or, with much noise for them, 1,600; ε = 1 under add-remove; a linear model of the last column on the
others as categories, as `fit_models` gives it by default. Noise is seeded: nothing here is private.
"""

import sys
import time

import numpy as np
from common import markdown, write_page

from dpcipher.inference.models import fit_models
from dpcipher.methods.cipher import Cipher
from dpcipher.privacy.draws import Draws
from dpcipher.release.release import Release
from dpcipher.schema.schema import Schema

PAIRS, FULL = 2, 4
CASES = (
    ((2, 2, 3, 3), PAIRS, 10_000),
    ((4, 4, 5, 5), PAIRS, 10_000),
    ((6, 6, 6, 6), PAIRS, 10_000),
    ((10, 10, 10, 10), PAIRS, 10_000),
    ((20, 6, 3, 17), PAIRS, 1_600),
    ((2, 2, 3, 3), FULL, 10_000),
    ((4, 4, 5, 5), FULL, 10_000),
    ((5, 5, 6, 6), FULL, 10_000),
)


def released(shape: tuple[int, ...], order: int, n_rows: int, seed: int) -> Release:
    """All tables of an order, of rows whose columns share a cause."""
    rng = np.random.default_rng([15, seed])
    cause = rng.normal(size=(n_rows, 1))
    ranks = np.argsort(np.argsort(cause + rng.normal(size=(n_rows, len(shape))), axis=0), axis=0)
    codes = (ranks * np.array(shape) // n_rows).astype(np.int64)
    schema = Schema.from_domain({f"V{number}": size for number, size in enumerate(shape, 1)})
    method = Cipher(1.0, unit="add-remove", workload=order)
    return method.fit_counts(codes, schema, draws=Draws.seeded(seed), codes=True).release


def seconds(shape: tuple[int, ...], order: int, n_rows: int, seed: int) -> float:
    """Processor time from a release to the table of coefficients."""
    release = released(shape, order, n_rows, seed)
    started = time.process_time()
    models = fit_models(release, "V4 ~ C(V1) + C(V2) + C(V3)", "linear", seed=1)
    assert len(models.frame) == 1 + sum(size - 1 for size in shape[:3])
    return time.process_time() - started


def main() -> None:
    repeats = int(sys.argv[1]) if sys.argv[1:] else 3
    seconds(*CASES[0], repeats)  # what is loaded at first use is not counted
    lines = []
    for shape, order, n_rows in CASES:
        times = [seconds(shape, order, n_rows, seed) for seed in range(repeats)]
        cells = int(np.prod(shape))
        lines.append(
            [
                "×".join(map(str, shape)),
                "all pairs" if order == PAIRS else "the full table",
                f"{n_rows:,}",
                f"{cells:,}",
                f"{np.median(times):.2f}",
                f"{max(times):.2f}",
            ]
        )
    text = (
        f"From a release of four columns (generated rows, ε = 1, add-remove) to the coefficients of `V4 ~ C(V1) + C(V2) + C(V3)` with their intervals, by the defaults of "
        f"`fit_models`: 1,000 draws, 400 beyond 4,000 cells. Processor seconds, median and largest of {repeats}."
    )
    head = ["columns", "tables", "rows", "cells", "median", "largest"]
    write_page(
        "models_time",
        "Time of models from one release",
        f"python benchmarks/models_time.py {repeats}",
        [text, markdown(head, lines)],
    )


if __name__ == "__main__":
    main()
