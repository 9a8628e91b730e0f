"""Do intervals cover what they claim? Cells and linear queries of reconciled tables, and regression coefficients over m sets.

usage: python benchmarks/coverage.py [repeats=1000] [model repeats=200]

Noise is seeded, so nothing here is private; the data are simulated, so nothing here is anybody's.
"""

import itertools
import sys
from collections.abc import Sequence

import numpy as np
import pandas as pd
from common import RESULTS, Axes, Codes, Floats, agreed, laplace, markdown, noisy, subsets, table, write_page

from dpcipher.curator.answers import release_of
from dpcipher.curator.counts import count_codes
from dpcipher.drawing.svg import element, image, standalone, text
from dpcipher.engines.solve import solve_set
from dpcipher.errors import SolveError
from dpcipher.inference.models import fit_models
from dpcipher.privacy.draws import Draws
from dpcipher.privacy.terms import Privacy
from dpcipher.release.query import answer, interval
from dpcipher.release.reconcile import Reconciled
from dpcipher.request.request import Request
from dpcipher.schema.schema import Schema
from dpcipher.tables.measurement import Noise

EPSILONS = (0.5, 1.0, 3.0)
SMALL, WIDE = (2, 2, 3, 3), (2, 2, 3, 3, 4, 5, 6, 8, 10, 12)
SETS, SIZES, MODEL_EPSILONS = 5, (200, 500, 2000, 10_000), (0.5, 1.0, 3.0, 10.0)


def skewed(shape: Sequence[int], n_rows: int, rng: np.random.Generator) -> Codes:
    """Rows with unequal levels, each column leaning on the one before it."""
    columns: list[np.ndarray] = []
    for size in shape:
        start = rng.geometric(0.4, n_rows) - 1
        start = start + columns[-1] if columns else start
        columns.append(start % size)
    return np.stack(columns, axis=1)


# Part one: cells and linear queries


def cells_inside(found: Reconciled, codes: Codes, axes: Axes) -> Floats:
    """Which cells of a table lie inside their 95 % interval."""
    truth = table(codes, found.domain.sizes, axes)
    low, high = interval(found.table(axes), found.variance(axes), 0.95)
    return ((low <= truth + 1e-9) & (truth <= high + 1e-9)).astype(float).ravel()


def query_inside(
    found: Reconciled, codes: Codes, axes: Axes, weights: Floats, *, share: bool = False
) -> float:
    """Whether the truth of a linear query lies inside its 95 % interval."""
    truth = float((weights * table(codes, found.domain.sizes, axes)).sum()) / (len(codes) if share else 1)
    low, high = answer(found, axes, weights, share=share).interval(0.95)
    return float(low <= truth <= high)


def inside(
    codes: Codes, shape: Sequence[int], tables: list[Axes], mechanism: Noise, seed: int
) -> list[float]:
    """Mean coverage of one draw: one-way cells, cells of measured tables, subset sums, random contrasts, shares."""
    rng = np.random.default_rng([2, seed])
    found = agreed(shape, noisy(codes, shape, tables, mechanism, seed))
    one = np.concatenate([cells_inside(found, codes, (axis,)) for axis in range(len(shape))])
    wide = np.concatenate([cells_inside(found, codes, axes) for axes in tables])
    sums, contrasts, shares = [], [], []
    for axes in tables[:: max(1, len(tables) // 6)]:
        sizes = [shape[axis] for axis in axes]
        sums.append(query_inside(found, codes, axes, rng.integers(0, 2, sizes).astype(float)))
        contrasts.append(query_inside(found, codes, axes, rng.normal(size=sizes)))
        shares.append(query_inside(found, codes, axes, rng.integers(0, 2, sizes).astype(float), share=True))
    return [float(np.mean(part)) for part in (one, wide, sums, contrasts, shares)]


def part_one(repeats: int) -> str:
    """The table of cells and queries."""
    cases = {
        "2×2×3×3, n = 500, all 6 pairs": (SMALL, 500, subsets(4, 2), repeats),
        "10 columns of 2 to 12 levels, n = 20,000, all 45 pairs": (
            WIDE,
            20_000,
            subsets(10, 2),
            max(50, repeats // 10),
        ),
        "one 3×4 table alone, n = 500 (nothing to average)": ((3, 4), 500, [(0, 1)], repeats),
    }
    rows = []
    for name, (shape, n_rows, tables, times) in cases.items():
        codes = skewed(shape, n_rows, np.random.default_rng(0))
        for epsilon in EPSILONS:
            mechanism = laplace(len(tables), epsilon)
            found = np.mean([inside(codes, shape, tables, mechanism, seed) for seed in range(times)], axis=0)
            rows.append([name, epsilon, times, *(f"{value:.3f}" for value in found)])
    head = [
        "tables",
        "ε",
        "draws",
        "one-way cells",
        "cells of measured tables",
        "0/1 sums",
        "random weights",
        "shares",
    ]
    return markdown(head, rows)


# Part two: regression coefficients over m sets

TRUTH = np.array([-0.3, 0.8, 0.6, -0.5, -0.7, 0.4])
TERMS = ("Intercept", "a", "b = 1", "b = 2", "c = 1", "c = 2")
SCHEMA = Schema.from_domain({"y": 2, "a": 2, "b": 3, "c": 3})


def people(n_rows: int, rng: np.random.Generator) -> Codes:
    """Rows of y, a, b, c: main-effects logits, one column after the other."""

    def draw(scores: Floats) -> np.ndarray:
        return np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)

    a = (rng.random(n_rows) < 0.45).astype(int)
    b = draw(np.stack([0 * a, 0.2 + 0.5 * a, -0.4 - 0.3 * a], axis=1))
    c = draw(np.stack([0 * a, -0.2 + 0.6 * a + 0.5 * (b == 1), 0.1 - 0.5 * a + 0.7 * (b == 2)], axis=1))
    design = np.stack([np.ones(n_rows), a, b == 1, b == 2, c == 1, c == 2], axis=1)
    y = (rng.random(n_rows) < 1 / (1 + np.exp(-design @ TRUTH))).astype(int)
    return np.stack([y, a, b, c], axis=1)


def fitted(sets: list[Codes]) -> tuple[Floats, Floats, Floats]:
    """Which coefficients are covered, how long their intervals are, and their errors."""
    frames = [pd.DataFrame(one, columns=list(SCHEMA.attrs)) for one in sets]
    levels = {"b": [0, 1, 2], "c": [0, 1, 2]}
    found = fit_models(frames, "y ~ a + C(b) + C(c)", levels=levels).table()
    low, high = found["low"].to_numpy(), found["high"].to_numpy()
    return ((low <= TRUTH) & (high >= TRUTH)).astype(float), high - low, found["estimate"].to_numpy() - TRUTH


def synthetic(codes: Codes, epsilon: float, order: int, seed: int, *, independent: bool) -> list[Codes]:
    """m = 5 sets, each from its own sanitization at epsilon/5, each with as many rows as its noisy total."""
    promised = Privacy.parse(epsilon=epsilon, unit="add-remove")
    wanted = Request.parse(SCHEMA, promised, sets=SETS)
    counted = count_codes(codes.astype(np.int32), SCHEMA.shape, wanted.axes)
    release = release_of(counted, wanted, Draws.seeded(seed), workload=order)
    rng, made = np.random.default_rng([3, seed]), []
    for number in range(SETS):
        joint = solve_set(release, number)
        made.append(np.concatenate(list(joint.core.sample(joint.n_rows, rng, independent=independent))))
    return made


def study(
    n_rows: int, epsilon: float | None, order: int, repeats: int, *, independent: bool = True
) -> Floats:
    """Mean and lowest coverage over the coefficients, mean length of intervals, mean absolute bias, share of refusals."""
    found = []
    for seed in range(repeats):
        codes = people(n_rows, np.random.default_rng([4, n_rows, seed]))
        try:
            sets = (
                [codes]
                if epsilon is None
                else synthetic(codes, epsilon, order, seed, independent=independent)
            )
        except SolveError:  # a noisy total below zero
            continue
        found.append(fitted(sets))
    covered, length, error = (np.array(part) for part in zip(*found, strict=True))
    by_term = np.nanmean(covered, axis=0)
    bias = np.abs(np.nanmean(error, axis=0)).mean()
    return np.array([by_term.mean(), by_term.min(), np.nanmean(length), bias, 1 - len(found) / repeats])


def part_two(repeats: int) -> tuple[str, dict[int, list[float]], str]:
    """The table of coefficients, the lines of the plot, and a second table of variations."""
    rows, lines = [], {}
    for n_rows in SIZES:
        base = study(n_rows, None, 2, repeats)
        rows.append([f"{n_rows:,}", "original rows", *_row(base, base)])
        results = [study(n_rows, epsilon, 2, repeats) for epsilon in MODEL_EPSILONS]
        lines[n_rows] = [float(one[0]) for one in results]
        rows += [
            ["", f"{epsilon:g}", *_row(one, base)]
            for epsilon, one in zip(MODEL_EPSILONS, results, strict=True)
        ]
    head = [
        "n",
        "ε",
        "mean coverage",
        "lowest of 6",
        "length (original = 1)",
        "mean absolute bias",
        "refused",
    ]
    base = study(500, None, 2, repeats)
    others = [
        ["all triples", *_row(study(500, 3.0, 3, repeats), base)],
        [
            "all pairs, evenly spread rows (the default of sample)",
            *_row(study(500, 3.0, 2, repeats, independent=False), base),
        ],
    ]
    return markdown(head, rows), lines, markdown(["n = 500, ε = 3", *head[2:]], others)


def _row(found: Floats, base: Floats) -> list[str]:
    return [
        f"{found[0]:.3f}",
        f"{found[1]:.3f}",
        f"{found[2] / base[2]:.2f}",
        f"{found[3]:.3f}",
        f"{found[4]:.0%}",
    ]


def plot(lines: dict[int, list[float]]) -> str:
    """Coverage against epsilon, one line per n."""
    left, top, wide, tall, colours = 60, 20, 420, 220, ("#8c1d18", "#b34700", "#3b75af", "#1a1a1a")
    lowest = min(0.7, *itertools.chain.from_iterable(lines.values()))

    def place(step: int, value: float) -> tuple[float, float]:
        return left + wide * step / (len(MODEL_EPSILONS) - 1), top + tall * (1 - value) / (1 - lowest)

    parts, drawn = [], []
    for mark in [*np.arange(np.ceil(lowest * 10) / 10, 1.001, 0.1).tolist(), 0.95]:
        y = place(0, mark)[1]
        dash = "4 3" if mark == 0.95 else None
        parts.append(element("path", d=f"M{left} {y:.1f}h{wide}", stroke="#aaa", stroke_dasharray=dash))
        parts.append(text(left - 6, y + 4, f"{mark:.2f}", anchor="end"))
    for (n_rows, values), colour in zip(lines.items(), colours, strict=True):
        points = [place(step, value) for step, value in enumerate(values)]
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        parts.append(element("path", d=path, stroke=colour, fill="none", stroke_width=2))
        parts.append(text(left + wide + 8, top + 14 + 18 * len(drawn), f"n = {n_rows:,}", fill=colour))
        drawn.append(n_rows)
    parts += [
        text(place(step, 1)[0], top + tall + 20, f"ε = {epsilon:g}", anchor="middle")
        for step, epsilon in enumerate(MODEL_EPSILONS)
    ]
    says = "; ".join(f"n = {n}: " + ", ".join(f"{v:.2f}" for v in values) for n, values in lines.items())
    chart = image(
        left + wide + 90,
        top + tall + 34,
        "".join(parts),
        title="Coverage of 95 % intervals of coefficients",
        description=says,
    )
    return standalone(chart)


def main(repeats: int = 1000, model_repeats: int = 200) -> None:
    """Run both parts and write the page and the plot."""
    first = part_one(repeats)
    second, lines, others = part_two(model_repeats)
    (RESULTS / "coverage.svg").write_text(plot(lines), encoding="utf-8")
    error = 1.96 * np.sqrt(0.95 * 0.05 / (6 * model_repeats))
    sections = [
        "## Cells and linear queries of a release\n\nNominal 95 % intervals around the reconciled estimates, discrete Laplace noise, add-remove. "
        "The truth is the private table's own count: sampling error is not part of it. Draws of noise on fixed rows.",
        first,
        "## Logistic coefficients over m = 5 sets\n\nNominal 95 % intervals of `combine` for six coefficients of y on a, b and c (2×2×3×3, all pairs, table "
        f"engine), against the coefficients that made the rows. {model_repeats} data sets each, Firth's penalty where separated. ε is the whole budget; each of the five "
        f"sets gets a fifth of it. Had every coefficient the nominal coverage, the mean over six would scatter by about ±{error:.3f}.",
        second,
        "![coverage against epsilon](coverage.svg)",
        others,
        READING,
    ]
    write_page(
        "coverage",
        "Coverage of intervals",
        f"python benchmarks/coverage.py {repeats} {model_repeats}",
        sections,
    )


READING = """\
## Reading it

- Where tables overlap, the error of a reconciled cell is a sum of many noises and close to normal, and the intervals of cells, sums and shares cover
  what they promise.
- A table that overlaps with no other keeps its plain discrete Laplace noise. Once that is of the size of one count, its cells are covered less often: the
  count is whole and the normal interval is not.
- For coefficients, coverage falls short where the budget is small for the number of rows: shrinkage then biases the sets toward independence, and T
  contains no bias. Wide intervals can hide that. One coefficient may fare worse than the mean: see the lowest of six.
- Rows spread evenly, the default of `sample`, and independent rows cover alike, as far as 100 data sets tell."""

if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:3]))
