"""What the order of levels is worth: values drawn inside bins, on columns that are generated here.

usage: python benchmarks/order.py [repeats=40]
"""

import sys
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
from common import Floats, laplace, markdown, write_page
from scipy.stats import wasserstein_distance

import dpcipher as dc
from dpcipher.privacy.noise import SeededNoise
from dpcipher.schema.column import Column

N_ROWS = 20_000
EPSILONS = {"e^-2": np.exp(-2), "1": 1.0, "e^2": np.exp(2)}
BINS = (5, 10, 20, 40)
N_TABLES = 20  # as if the column were one of so many tables that share the budget


def jagged(rng: np.random.Generator, steps: int) -> Floats:
    """Values 0..999 whose probabilities change `steps` times, independently: neighbours say nothing about one another."""
    weights = np.repeat(rng.gamma(0.5, size=steps), 1000 // steps)
    return rng.choice(1000, N_ROWS, p=weights / weights.sum()).astype(float)


def mixture(rng: np.random.Generator) -> Floats:
    """Two normal humps."""
    left = rng.random(N_ROWS) < 0.4
    return np.where(left, rng.normal(200, 50, N_ROWS), rng.normal(700, 80, N_ROWS))


COLUMNS: dict[str, Callable[[np.random.Generator], Floats]] = {
    "normal": lambda rng: rng.normal(500, 120, N_ROWS),
    "exponential": lambda rng: rng.exponential(150, N_ROWS),
    "gamma": lambda rng: rng.gamma(2.0, 100, N_ROWS),
    "two humps": mixture,
    "flat": lambda rng: rng.integers(0, 1000, N_ROWS).astype(float),
    "heaped at hundreds": lambda rng: np.where(
        rng.random(N_ROWS) < 0.5, np.round(rng.gamma(2.0, 100, N_ROWS), -2), rng.gamma(2.0, 100, N_ROWS)
    ),
    "jagged (1000)": lambda rng: jagged(rng, 1000),
    "jagged (40)": lambda rng: jagged(rng, 40),
}


def drawn_distances(name: str, bins: int, epsilon: float, seed: int) -> tuple[float, float]:
    """Wasserstein distance to the rows of uniform values inside bins, and of values along the density; one noisy table, the same codes."""
    values = np.clip(np.floor(COLUMNS[name](np.random.default_rng([1, seed]))), 0, 999)
    column = Column("x", "integer", min=0, max=999, bins=bins)
    counts = np.bincount(column.encode(pa.array(values)), minlength=bins)
    mechanism = laplace(N_TABLES, epsilon)
    noisy = SeededNoise(seed).add(counts.astype(np.int64), mechanism).astype(float)
    release = dc.Release.from_tables({("x",): noisy}, dc.Schema((column,)), scale=mechanism.scale)
    joint = dc.solve(release)
    codes = np.concatenate(list(joint.core.sample(N_ROWS, np.random.default_rng(seed))))[:, 0]
    masses = joint.core.project((0,))
    even = column.decode(codes, np.random.default_rng(seed)).to_numpy()
    along = column.decode(codes, np.random.default_rng(seed), masses=masses).to_numpy()
    return wasserstein_distance(values, even), wasserstein_distance(values, along)


def inside_bins(repeats: int) -> str:
    """Distances per column and number of bins, uniform → along the density, at every epsilon."""
    rows = []
    for name in COLUMNS:
        for bins in BINS:
            cells: list[object] = [name, bins]
            for epsilon in EPSILONS.values():
                pairs = np.array([drawn_distances(name, bins, epsilon, seed) for seed in range(repeats)])
                even, along = pairs.mean(axis=0)
                cells.append(f"{even:.1f} → {along:.1f} ({along / even:.2f})")
            rows.append(cells)
    return (
        "## Values inside bins\n\n"
        f"Columns of {N_ROWS:,} whole values from 0 to 999 in equal bins, one table of {N_TABLES} that share ε (Laplace noise). Wasserstein distance between the "
        f"column and {N_ROWS:,} drawn values: uniform inside bins → along the density of the neighbouring bins (ratio). Means of {repeats} repetitions; both draws start from "
        "the same noisy table and the same bins.\n\n" + markdown(["column", "bins", *EPSILONS], rows)
    )


def main(arguments: Sequence[str]) -> None:
    """Run the studies and write the page."""
    repeats = int(arguments[0]) if arguments else 40
    sections = [inside_bins(repeats)]
    write_page("order", "What the order of levels is worth", "python benchmarks/order.py", sections)


if __name__ == "__main__":
    main(sys.argv[1:])
