"""What the order of levels is worth: values drawn inside bins, and smoothing along ordered levels, on columns that are generated here; then Adult.

usage: python benchmarks/order.py inside|smoothing [repeats=20]
"""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
from common import Axes, Codes, Floats, agreed, laplace, markdown, noisy, real, subsets, table, write_page
from scipy.stats import wasserstein_distance

import dpcipher as dc
from dpcipher.engines.denoise.denoise import denoise
from dpcipher.engines.solve import orders_of
from dpcipher.privacy.draws import SeededNoise
from dpcipher.release.reconcile import Reconciled
from dpcipher.schema.columns import Column
from dpcipher.schema.declared import column

N_ROWS = 20_000
BOUND = 10_000
EPSILONS = {"e^-2": np.exp(-2), "e^-1": np.exp(-1), "1": 1.0, "e": np.e, "e^2": np.exp(2)}
BINS = (5, 10, 20, 40)
N_TABLES = 20  # as if the column were one of so many tables that share the budget
LEVELS = (10, 30, 100)
RANGES = 100
Orders = Mapping[int, np.ndarray]


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
TAILS: dict[str, Callable[[np.random.Generator], Floats]] = {
    "lognormal": lambda rng: rng.lognormal(5, 1, N_ROWS),
    "Pareto": lambda rng: 50 * (1 + rng.pareto(2, N_ROWS)),
}


def drawn_distances(values: Floats, column: Column, epsilon: float, seed: int) -> tuple[float, float]:
    """Wasserstein distance to the rows of uniform values inside bins, and of values along the density; one noisy table, the same codes."""
    counts = np.bincount(column.encode(pa.array(values)), minlength=column.size)
    mechanism = laplace(N_TABLES, epsilon)
    seen = SeededNoise(seed).add(counts.astype(np.int64), mechanism).astype(float)
    release = dc.Release.from_tables({("x",): seen}, dc.Schema((column,)), scale=mechanism.scale)
    joint = dc.solve(release)
    codes = np.concatenate(list(joint.core.sample(N_ROWS, np.random.default_rng(seed))))[:, 0]
    masses = joint.core.project((0,))
    even = column.decode(codes, np.random.default_rng(seed)).to_numpy()
    along = column.decode(codes, np.random.default_rng(seed), masses=masses).to_numpy()
    return wasserstein_distance(values, even), wasserstein_distance(values, along)


def equal_bins(name: str, bins: int, seed: int) -> tuple[Floats, Column]:
    """Whole values from 0 to 999, in equal bins."""
    values = np.clip(np.floor(COLUMNS[name](np.random.default_rng([1, seed]))), 0, 999)
    return values, column("x", "integer", min=0, max=999, bins=bins)


def generous(name: str, tail: float, seed: int) -> tuple[Floats, Column]:
    """Whole values in 20 bins, 19 of equal mass up to the quantile 1 - tail; the last reaches to a public bound far out."""
    values = np.clip(np.floor((COLUMNS | TAILS)[name](np.random.default_rng([1, seed]))), 0, BOUND)
    inner = np.unique(np.ceil(np.quantile(values, np.linspace(0, 1 - tail, 20)[1:])))
    return values, column("x", "integer", edges=[0, *inner[(inner > 0) & (inner < BOUND)].tolist(), BOUND])


def ratios(make: Callable[[int], tuple[Floats, Column]], repeats: int, labels: Sequence[str]) -> list[str]:
    """Mean distances at some budgets, uniform → along the density, and their ratio."""
    cells = []
    for label in labels:
        pairs = [drawn_distances(*make(seed), EPSILONS[label], seed) for seed in range(repeats)]
        even, along = np.mean(pairs, axis=0)
        cells.append(f"{even:.1f} → {along:.1f} ({along / even:.2f})")
    return cells


def inside_bins(repeats: int) -> str:
    """Distances per column and kind of bins, uniform → along the density, at three budgets."""
    chosen = ("e^-2", "1", "e^2")
    rows: list[list[object]] = [
        [name, bins, *ratios(partial(equal_bins, name, bins), repeats, chosen)]
        for name in COLUMNS
        for bins in BINS
    ]
    wide: list[list[object]] = [
        [name, tail, *ratios(partial(generous, name, tail), repeats, chosen)]
        for name in (*COLUMNS, *TAILS)
        for tail in (0.05, 0.005)
    ]
    return (
        f"Columns of {N_ROWS:,} whole values from 0 to 999 in equal bins, one table of {N_TABLES} that share ε (Laplace noise). Wasserstein distance between the "
        f"column and {N_ROWS:,} drawn values: uniform inside bins → along the density of the neighbouring bins (ratio). Means of {repeats} repetitions; both draws start from "
        "the same noisy table and the same bins.\n\n"
        + markdown(["column", "bins", *chosen], rows)
        + "\n\n## A generous bound\n\n"
        f"The same in 20 bins of which the last holds a twentieth or a two-hundredth of the rows and reaches to a public bound of {BOUND:,}.\n\n"
        + markdown(["column", "in the last bin", *chosen], wide)
    )


def people(kind: str, levels: int, seed: int, n_rows: int = 10_000) -> tuple[Codes, tuple[int, ...]]:
    """Four columns: two dependent ordered ones, five categories that depend on the first, and an ordered one by itself."""
    rng = np.random.default_rng([3, seed])
    first, other, alone = rng.normal(size=(3, n_rows))
    second = 0.6 * first + 0.8 * other
    category = np.digitize(0.7 * first + 0.7 * rng.normal(size=n_rows), [-1, 0, 0.5, 1.2])
    few = max(levels // 2, 5)
    if kind == "skewed":
        parts = [np.exp(0.7 * first) / 8, np.exp(0.7 * second) / 8, rng.gamma(2, size=n_rows) / 8]
    else:
        parts = [0.5 + first / 6, 0.5 + second / 6, 0.5 + alone / 7]
    sizes = (levels, levels, few)
    cut = [
        np.clip(np.floor(part * size), 0, size - 1).astype(np.int64)
        for part, size in zip(parts, sizes, strict=True)
    ]
    if kind == "heaped":
        for i in (0, 1):
            fives = np.minimum(np.round(cut[i] / 5) * 5, levels - 1).astype(np.int64)
            cut[i] = np.where(rng.random(n_rows) < 0.5, fives, cut[i])
    if kind == "shuffled":
        cut = [rng.permutation(size)[codes] for codes, size in zip(cut, sizes, strict=True)]
    return np.stack([cut[0], cut[1], category, cut[2]], axis=1), (levels, levels, 5, few)


def table_errors(truth: Floats, fitted: Floats, rng: np.random.Generator) -> tuple[float, float]:
    """TVD, and the mean absolute error of random ranges (rectangles of two columns)."""
    gap = fitted - truth
    below = gap
    for axis in range(gap.ndim):
        below = np.cumsum(below, axis=axis)
    below = np.pad(below, [(1, 0)] * gap.ndim)
    answers = []
    for _ in range(RANGES):
        ends = [sorted(rng.choice(size + 1, 2, replace=False)) for size in gap.shape]
        inside = below[np.ix_(*ends)]
        for _axis in ends:
            inside = np.diff(inside, axis=0)[0]
        answers.append(abs(float(inside)))
    return 0.5 * float(np.abs(gap).sum()), float(np.mean(answers))


def release_errors(
    codes: Codes, shape: Sequence[int], reconciled: Reconciled, orders: Orders, tables: Sequence[Axes]
) -> Floats:
    """Mean TVD and range error of 1-way and 2-way tables after denoising, and its processor time."""
    started = time.process_time()
    targets = denoise(reconciled, orders)
    seconds, rng, means = time.process_time() - started, np.random.default_rng(0), []
    for order in (1, 2):
        errors = []
        for axes in (axes for axes in tables if len(axes) == order):
            fitted = targets.table(axes)
            assert fitted is not None
            errors.append(table_errors(table(codes, shape, axes) / len(codes), fitted, rng))
        means += list(np.mean(errors, axis=0))
    return np.array([*means, seconds])


def before_and_after(kind: str, levels: int, epsilon: float, seed: int) -> Floats:
    """Errors of the same noisy tables of all pairs, without and with the order of three columns."""
    codes, shape = people(kind, levels, seed)
    pairs = subsets(4, 2)
    reconciled = agreed(shape, noisy(codes, shape, pairs, laplace(len(pairs), epsilon), seed))
    orders = {axis: np.arange(shape[axis]) for axis in (0, 1, 3)}
    asked = [*subsets(4, 1), *pairs]
    return np.stack([release_errors(codes, shape, reconciled, known, asked) for known in ({}, orders)])


def _ratios(found: Floats) -> str:
    """After over before: means over the repetitions."""
    before, after = found.mean(axis=0)
    return "/".join(f"{ratio:.2f}" for ratio in (after / before)[:4])


def smoothing(repeats: int) -> str:
    """Ratios of errors after and before, per kind of column, number of levels and epsilon."""
    rows, seconds = [], []
    for kind in ("normal", "skewed", "heaped", "shuffled"):
        for levels in LEVELS:
            cells: list[object] = [kind, levels]
            for epsilon in EPSILONS.values():
                found = np.array([before_and_after(kind, levels, epsilon, seed) for seed in range(repeats)])
                cells.append(_ratios(found))
                seconds.append(found[:, :, 4].sum(axis=0))
            rows.append(cells)
    before, after = np.sum(seconds, axis=0)
    return (
        "## Generated columns\n\n"
        "Four columns of 10,000 rows, all pairs measured (Laplace noise): two dependent ordered columns, five categories, an ordered column of half as many levels. Errors of "
        f"the denoised tables with their order over errors without: TVD of 1-way tables / error of random ranges of one column / TVD of 2-way tables / error of random "
        f"rectangles. Means of {repeats} repetitions. *Heaped*: half of the values are rounded to multiples of five. *Shuffled*: called ordered, but the levels "
        f"are in random order. Denoising took {after / before:.2f} times the processor time.\n\n"
        + markdown(["columns", "levels", *EPSILONS], rows)
    )


def adult(repeats: int) -> str:
    """The verdict on a real table: Adult with ages of one year, all pairs."""
    codes, shape = real("adult")
    pairs, rows = subsets(len(shape), 2), []
    orders = orders_of(dc.Schema.from_domain({str(axis): size for axis, size in enumerate(shape)}))
    asked = {
        "age and its pairs": [(0,), *(pair for pair in pairs if 0 in pair)],
        "all": [*subsets(len(shape), 1), *pairs],
    }
    for label, epsilon in EPSILONS.items():
        cells: list[object] = [label]
        fits = [
            agreed(shape, noisy(codes, shape, pairs, laplace(len(pairs), epsilon), s)) for s in range(repeats)
        ]
        for tables in asked.values():
            found = np.array(
                [[release_errors(codes, shape, fit, known, tables) for known in ({}, orders)] for fit in fits]
            )
            before = found.mean(axis=0)[0]
            cells += [f"{before[0]:.4f}/{before[2]:.4f}", _ratios(found)]
        rows.append(cells)
    return (
        "## Adult\n\n"
        "All pairs of its 14 columns, age in years (85 levels), every column taken for ordered as an integer code, also those that are not. TVD of 1-way/2-way tables "
        f"without the order, and the four ratios as above. Means of {repeats} repetitions.\n\n"
        + markdown(["ε", *(head for name in asked for head in (name, "ratios"))], rows)
    )


def main(arguments: Sequence[str]) -> None:
    """Run one study and write its page."""
    study = arguments[0] if arguments else "inside"
    repeats = int(arguments[1]) if len(arguments) > 1 else 20
    if study == "inside":
        write_page("order", "Values inside bins", "python benchmarks/order.py inside", [inside_bins(repeats)])
    else:
        sections = [smoothing(repeats), adult(max(repeats // 4, 1))]
        write_page(
            "smoothing", "Smoothing along ordered levels", "python benchmarks/order.py smoothing", sections
        )


if __name__ == "__main__":
    main(sys.argv[1:])
