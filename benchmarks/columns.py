"""Many columns: from a release of all pairs of binary columns to rows, by the number of columns.

usage: python benchmarks/columns.py [COLUMNS …]     (100 200; 1000 takes long)

What is in results/columns.jsonl is not measured again: delete the file to begin anew. Each number of columns is a process of its own.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from common import Codes, markdown, measured, peak_megabytes, tvd_rows, write_page

import dpcipher as dc

ROWS = 10_000
EPSILON, DELTA = 10.0, 1e-9
PARENTS, NEAR = 2, 20


def network(n_columns: int) -> Codes:
    """Rows of binary columns, each a logistic function of two of the twenty columns before it."""
    rng = np.random.default_rng(0)
    rows = np.zeros((ROWS, n_columns), np.int64)
    rows[:, 0] = rng.random(ROWS) < 0.5
    for column in range(1, n_columns):
        near = np.arange(max(0, column - NEAR), column)
        parents = rng.choice(near, size=min(column, PARENTS), replace=False)
        height = rng.normal(-0.5, 0.8) + (2 * rows[:, parents] - 1) @ rng.normal(0, 1.5, len(parents))
        rows[:, column] = rng.random(ROWS) < 1 / (1 + np.exp(-height))
    return rows


def release_to_rows(n_columns: int) -> None:
    """Seconds of measuring, of reading the release, solving and drawing; peak memory; and the error of the rows."""
    rows, names = network(n_columns), [f"c{column}" for column in range(n_columns)]
    schema = dc.Schema.from_domain(dict.fromkeys(names, 2))
    table = pa.table(dict(zip(names, rows.T, strict=True)))
    dc.measure(table.slice(0, 10), schema, epsilon=1.0, unit="add-remove", workload=1)  # loads the libraries
    spent: list[float] = []

    def timed(job: Callable[[], Any]) -> Any:
        started = time.process_time()
        found = job()
        spent.append(time.process_time() - started)
        return found

    terms: dict[str, Any] = {
        "epsilon": EPSILON,
        "delta": DELTA,
        "mechanism": "gaussian",
        "unit": "add-remove",
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "release.parquet"
        timed(lambda: dc.measure(table, schema, workload=2, **terms).save(path, force=True))
        release = timed(lambda: dc.Release.load(path))
    joint = timed(lambda: dc.solve(release, set=0, engine="rows"))
    drawn = timed(lambda: joint.sample(ROWS, seed=1))
    print(*spent, peak_megabytes(), *tvd_rows(rows, drawn.to_numpy(), (2,) * n_columns))


def main(columns: list[int]) -> None:
    lines = []
    for number in columns:
        measure, load, solve, sample, memory, *errors = measured(__file__, "columns", number)
        figures = [f"{value:.1f}" for value in (measure, load, solve, sample, load + solve + sample)]
        error = "/".join(f"{value:.4f}"[1:] for value in errors)
        lines.append((number, f"{number * (number - 1) // 2:,}", *figures, f"{memory:.0f}", error))
    head = [
        "columns",
        "pairs",
        "measuring and writing",
        "reading",
        "solving",
        "drawing",
        "release to rows",
        "peak MB",
    ]
    about = (
        f"All pairs of binary columns, {ROWS:,} rows of a network, ε = {EPSILON:g}, Gaussian noise, add-remove; the rows engine, as many rows drawn. Processor seconds, on a "
        "machine that others shared. The error is the mean TVD of 1/2/3-way tables (100 fixed triples) between the rows and the data."
    )
    write_page(
        "columns",
        "Many columns",
        f"python benchmarks/columns.py {' '.join(map(str, columns))}",
        [about, markdown([*head, "error"], lines)],
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["columns"]:
        release_to_rows(int(sys.argv[2]))
    else:
        main([int(number) for number in sys.argv[1:]] or [100, 200])
