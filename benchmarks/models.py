"""Do regressions from one release cover what they claim, how wide are their intervals, and what do they cost?

usage: python benchmarks/models.py [repeats=300] [page]

Ten coefficients of V4 on V1, V2, V3 on the paper's 2×2×3×3 geometry, all six pairs, pure ε, add-remove. Beside the posterior of one release stand the
naive analysis of its synthetic rows, the paper's rule over m = 5 sets with the paper's engine, and the original rows. Finished chunks are kept in a
journal, so that a run that was stopped goes on; "page" writes the page of what is there. Noise is seeded: nothing here is private.
"""

import sys
from collections import defaultdict
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from common import markdown, write_page
from models_study import (
    CHUNK,
    DRAWS,
    METHODS,
    POPULATIONS,
    POWERS,
    REGRESSION,
    SIZES,
    Cell,
    cells,
    journal,
    run_chunk,
)
from scipy.stats import binom


def run(repeats: int) -> None:
    """Every chunk that is not there yet, cell after cell, so that all cells grow together."""
    book = journal()
    done = {(*item["cell"], item["chunk"]) for item in book.finished()}
    for chunk in range(-(-repeats // CHUNK)):
        for cell in cells():
            if (cell.population, cell.n_rows, cell.power, chunk) not in done:
                book.append(run_chunk(cell, chunk))


@dataclass(frozen=True)
class Summary:
    """Of one method at one n and ε, over the coefficient sets: coverage with its Monte Carlo error, worst coefficient, mean width, refusals."""

    coverage: float
    error: float
    worst: float
    width: float
    refused: float

    @classmethod
    def of(cls, sets: list[list[dict[str, Any]]], method: int) -> "Summary":
        """From the finished chunks of every coefficient set. Coefficients of one table go together, so the error is that of means by repeat."""
        known, covered, width = (
            np.array([np.sum([item[name][method] for item in items], axis=0) for items in sets], dtype=float)
            for name in ("known", "covered", "width")
        )
        each = np.concatenate([item["by_repeat"][method] for items in sets for item in items])
        return cls(
            float(covered.sum() / max(known.sum(), 1)),
            float(each.std(ddof=1) / REGRESSION.size / len(each) ** 0.5),
            float((covered / np.maximum(known, 1)).min()),
            float(width.sum() / max(known.sum(), 1)),
            float(1 - known.sum() / (len(each) * REGRESSION.size)),
        )

    def __str__(self) -> str:
        return f"{self.coverage:.3f} / {self.worst:.2f}"


def gathered() -> dict[tuple[int, int], list[list[dict[str, Any]]]]:
    """The finished chunks by n and power, one list for each coefficient set that has some."""
    by_cell: dict[Cell, list[dict[str, Any]]] = defaultdict(list)
    for item in journal().finished():
        by_cell[Cell(*item["cell"])].append(item)
    found = {}
    for n, power in product(SIZES, POWERS):
        sets = [chunks for population in POPULATIONS if (chunks := by_cell[Cell(population, n, power)])]
        if sets:
            found[n, power] = sets
    return found


HEAD = [
    "n", "ε", "sets × repeats", "coverage", "worst", "width", "/ original's", "/ paper's", "original's / paper's", "closed: coverage / worst", "closed: width / open",
    "paper's coverage / worst", "naive coverage / worst", "original's coverage", "refused", "seconds",
]  # fmt: skip


def _line(n: int, power: int, sets: list[list[dict[str, Any]]]) -> list[str]:
    ours, closed, naive, paper, original = (Summary.of(sets, method) for method in range(len(METHODS)))
    seconds = [second for items in sets for item in items for second in item["seconds"]]
    return [
        f"{n:,}",
        f"e^{power}",
        f"{len(sets)} × {CHUNK * min(map(len, sets))}",
        f"{ours.coverage:.3f} ± {ours.error:.3f}",
        f"{ours.worst:.2f}",
        f"{ours.width:.2f}",
        f"{ours.width / original.width:.2f}",
        f"{ours.width / paper.width:.2f}",
        f"{original.width / paper.width:.2f}",
        str(closed),
        f"{closed.width / ours.width:.2f}",
        str(paper),
        str(naive),
        f"{original.coverage:.3f}",
        f"{ours.refused:.1%}",
        f"{np.mean(seconds):.2f}",
    ]


def page(command: str) -> None:
    """The page of results."""
    every = gathered()
    repeats = [CHUNK * len(items) for sets in every.values() for items in sets]
    text = (
        "Nominal 95 % intervals of the ten coefficients of V4 on V1, V2, V3 as `fit_models` gives them from **one** release of all six pairs, interactions of three columns left open (its default), "
        "against the coefficients that made the rows. The coefficient sets are the published one, then random sets 1 and 2. `coverage` has its Monte Carlo standard error; "
        '`worst` is the worst of the ten coefficients of every set. `closed` takes the open interactions for none (`unmeasured="none"`). The rows\' number is not told. '
        f"{DRAWS} draws; seconds are processor time of the draws and fits. Seeds: 14, set, n, repeat."
    )
    table = markdown(HEAD, [_line(*key, sets) for key, sets in every.items()])
    write_page(
        "models", "Models from one release", command, [text, table, reading(min(repeats), max(repeats))]
    )


def reading(least: int, most: int) -> str:
    """What so many repeats can tell, and what the widths cannot be."""
    few = (
        ""
        if least == most == 300
        else f"The study asks for 300 repeats of three sets in every cell, and is not finished: this page has {least} to {most} repeats of the sets that it counts, and "
        "`python benchmarks/models.py 300` goes on from its journal. "
    )
    missed = binom.ppf(0.5 ** (1 / 30), least, 0.05)
    return (
        "## Reading it\n\n"
        f"- {few}With {least} repeats the standard error of one coefficient's coverage is {(0.95 * 0.05 / least) ** 0.5:.3f}, and the lowest of thirty coefficients that are all "
        f"covered with probability .95 is typically {1 - missed / least:.2f}: `worst` has to be read against that.\n"
        "- Above 97 % the noise drowns the data and the weak prior, whose log odds ratios reach ±4, is wider than the coefficients; `fit_models` says so in a note.\n"
        "- The repeats of the journal took intervals between quantiles that leave the 1 of k/(draws + 1) out, and chains with shorter trajectories. With 400 draws such an interval covers .005 less than those "
        "that `fit_models` gives; the model and its prior are the same for columns of up to three levels.\n"
        "- `/ paper's` cannot be below `original's / paper's` while intervals keep their coverage: the original rows have no noise at all. Where that is .7 or more, no method "
        "has intervals of .7 of the paper's width that are as honest as the original rows'."
    )


if __name__ == "__main__":
    wanted = [int(argument) for argument in sys.argv[1:] if argument.isdigit()]
    if "page" not in sys.argv:
        run(wanted[0] if wanted else 300)
    page(f"python benchmarks/models.py {wanted[0] if wanted else 300}")
