"""What a solve costs: the engines against cells and columns, and the paper's own example of size.

usage: python benchmarks/cost.py
"""

import subprocess
import sys
import time

import numpy as np
from common import RESULTS, agreed, laplace, markdown, noisy, peak_megabytes, subsets, write_page

from dpcipher.engines.denoise.denoise import denoise
from dpcipher.engines.paper import solve_paper
from dpcipher.engines.rows import solve_rows
from dpcipher.engines.table import solve_table

LEVELS = 5
PLAN = {
    "paper": [3, 4, 5, 6, 7, 8, 10],
    "table": [3, 4, 5, 6, 7, 8, 9, 10],
    "rows": [3, 5, 10, 30, 100],
}
WIDE = (10, 100, 1000)


def data(n_columns: int, levels: int, n_rows: int = 10_000) -> np.ndarray:
    """Rows from a chain: each column copies the one before it half of the time."""
    rng = np.random.default_rng(n_columns)
    columns = [rng.integers(0, levels, n_rows)]
    for _ in range(n_columns - 1):
        columns.append(np.where(rng.random(n_rows) < 0.5, columns[-1], rng.integers(0, levels, n_rows)))
    return np.stack(columns, axis=1)


def pairs(n_columns: int) -> list[tuple[int, ...]]:
    """All pairs up to 100 columns; beyond, each column with its three predecessors."""
    if n_columns <= 100:
        return subsets(n_columns, 2)
    return [(i, j) for j in range(n_columns) for i in range(max(0, j - 3), j)]


def once(engine: str, n_columns: int, levels: int) -> None:
    """One solve in a fresh process: seconds of processor time, peak memory, worst misfit of a pair table (TVD)."""
    shape = (levels,) * n_columns
    measured = noisy(data(n_columns, levels), shape, pairs(n_columns), laplace(1, None), 0)
    started = time.process_time()
    misfit = np.nan
    if engine == "paper":
        solve_paper(shape, [(one.query.axes, *one.in_rows()) for one in measured])
    elif engine == "table":
        misfit = max(solve_table(denoise(agreed(shape, measured)))[1].residuals.values())
    else:
        chain, _ = solve_rows(denoise(agreed(shape, measured)), seed=0)
        sum(len(chunk) for chunk in chain.sample(10_000, np.random.default_rng(0)))
    print(time.process_time() - started, peak_megabytes(), misfit)


def run(engine: str, n_columns: int, levels: int) -> tuple[float, float, float]:
    command = [sys.executable, __file__, engine, str(n_columns), str(levels)]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    seconds, megabytes, misfit = map(float, found)
    print(engine, n_columns, levels, found, flush=True)
    return seconds, megabytes, misfit


def plot(results: dict[str, list[tuple[int, float]]]) -> str:
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
    for engine, points in results.items():
        columns, seconds = zip(*points, strict=True)
        right.loglog(columns, seconds, "o-", label=engine)
        if engine != "rows":
            left.loglog([float(LEVELS) ** c for c in columns], seconds, "o-", label=engine)
    left.set(xlabel="cells of the full table", ylabel="seconds", title="paper and table engines")
    right.set(xlabel="columns of five levels", ylabel="seconds", title="all engines, all pairs")
    for axes in (left, right):
        axes.legend()
        axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(RESULTS / "cost.svg", metadata={"Date": None})
    return "![Seconds against cells and columns, on logarithmic axes](cost.svg)"


def main() -> None:
    timed: dict[str, list[tuple[int, float]]] = {}
    rows = []
    for engine, columns in PLAN.items():
        for n_columns in columns:
            seconds, megabytes, misfit = run(engine, n_columns, LEVELS)
            timed.setdefault(engine, []).append((n_columns, seconds))
            cells = f"{LEVELS**n_columns:,}" if n_columns <= 10 else f"5^{n_columns}"
            rows.append(
                [
                    engine,
                    n_columns,
                    cells,
                    f"{seconds:.2f}",
                    f"{megabytes:.0f}",
                    "" if np.isnan(misfit) else f"{misfit:.0e}",
                ]
            )
    wide = [[c, len(pairs(c)), *(f"{v:.1f}" for v in run("rows", c, 2)[:2])] for c in WIDE]
    head = [
        "engine",
        "columns of 5 levels",
        "cells",
        "seconds",
        "peak MB",
        "worst pair misfit (rms, probability)",
    ]
    sections = [
        "Noiseless pair tables of 10,000 rows; each solve in a fresh process, denoising and reconciling included, imports and counting not. Seconds are processor time of one thread, since the machine is shared.",
        markdown(head, rows),
        plot(timed),
        "## The rows engine on binary columns, and 10,000 rows drawn",
        markdown(["columns", "pair tables", "seconds", "peak MB"], wide),
    ]
    write_page("cost", "What a solve costs", "python benchmarks/cost.py", sections)


if __name__ == "__main__":
    once(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])) if len(sys.argv) > 2 else main()
