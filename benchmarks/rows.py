"""The rows engine: Adult with noise and without, and Bayesian networks against a bootstrap of the data itself.

usage: DPCIPHER_DATA=FOLDER DPCIPHER_NETWORKS=FOLDER python benchmarks/rows.py [repeats=25]
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from common import (
    Codes,
    agreed,
    laplace,
    load_coded,
    markdown,
    noisy,
    peak_megabytes,
    real,
    show,
    subsets,
    tvd_rows,
    write_page,
)

from dpcipher.engines.denoise.denoise import denoise
from dpcipher.engines.rows import solve_rows
from dpcipher.tables.measurement import Measurement

EPSILONS = {"1": 1.0, "e^2": float(np.exp(2)), "no noise": None}


def synthesize(measured: list[Measurement], shape: tuple[int, ...], n_rows: int, seed: int) -> Codes:
    """From noisy tables to low-variance rows, all steps of `solve` and `sample`."""
    chain, _ = solve_rows(denoise(agreed(shape, measured)), seed=seed)
    return np.concatenate(list(chain.sample(n_rows, np.random.default_rng(seed))))


def network(name: str) -> tuple[Codes, tuple[int, ...]]:
    folder = Path(os.environ["DPCIPHER_NETWORKS"])
    return load_coded(folder / f"{name}.csv", folder / f"{name}-domain.json")


def adult(repeats: int) -> str:
    codes, shape = real("adult")
    tables = subsets(len(shape), 2)
    rows = []
    for label, epsilon in EPSILONS.items():
        errors = [
            tvd_rows(
                codes,
                synthesize(
                    noisy(codes, shape, tables, laplace(len(tables), epsilon), seed), shape, len(codes), seed
                ),
                shape,
            )
            for seed in range(repeats)
        ]
        seconds, megabytes = map(
            float,
            subprocess.run(
                [sys.executable, __file__, "once", label], check=True, capture_output=True, text=True
            ).stdout.split(),
        )
        spread = np.std(errors, axis=0, ddof=1) / np.sqrt(repeats)
        rows.append(
            [label, show(np.mean(errors, axis=0)), show(spread, 5), f"{seconds:.1f}", f"{megabytes:.0f}"]
        )
        print(rows[-1], flush=True)
    return markdown(["ε", "TVD", "standard error", "seconds, release to rows", "peak MB"], rows)


def once(label: str) -> None:
    """One Adult release to rows in a fresh process: seconds and peak memory."""
    codes, shape = real("adult")
    tables = subsets(len(shape), 2)
    measured = noisy(codes, shape, tables, laplace(len(tables), EPSILONS[label]), 0)
    started = time.perf_counter()
    synthesize(measured, shape, len(codes), 0)
    print(time.perf_counter() - started, peak_megabytes())


def networks(repeats: int) -> str:
    rows = []
    for name in ("child", "insurance", "alarm"):
        codes, shape = network(name)
        measured = noisy(codes, shape, subsets(len(shape), 2), laplace(1, None), 0)
        ours = np.mean(
            [
                tvd_rows(codes, synthesize(measured, shape, len(codes), seed), shape)
                for seed in range(repeats)
            ],
            axis=0,
        )
        draws = [np.random.default_rng(seed).integers(0, len(codes), len(codes)) for seed in range(repeats)]
        bootstrap = np.mean([tvd_rows(codes, codes[draw], shape) for draw in draws], axis=0)
        rows.append([f"{name}, {len(shape)} columns", show(ours), show(bootstrap), show(ours / bootstrap, 2)])
        print(rows[-1], flush=True)
    return markdown(["network", "ours, no noise, all pairs", "bootstrap of the data", "ratio"], rows)


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 25
    note = f"Mean TVD of 1/2/3-way tables (100 fixed triples) between rows and data; {repeats} repetitions; all pairs; discrete Laplace, add-remove."
    sections = [
        note,
        "## Adult, 48,842 × 14",
        adult(repeats),
        "## Networks, n = 10,000, no noise",
        networks(repeats),
    ]
    write_page("rows", "The rows engine", f"python benchmarks/rows.py {repeats}", sections)


if __name__ == "__main__":
    once(sys.argv[2]) if sys.argv[1:2] == ["once"] else main()
