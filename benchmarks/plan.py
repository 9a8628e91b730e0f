"""Does a plan say what then happens? Processor time of measuring a CSV file and of solving its release, foreseen and taken.

usage: OPENBLAS_NUM_THREADS=1 python benchmarks/plan.py   (threads of BLAS that wait would count as busy)

Invented rows; the columns of a case follow one another, each going with the one before it.
"""

import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from common import markdown, write_page

from dpcipher.curator.measure import measure
from dpcipher.demo.people import SCHEMA, invent_people
from dpcipher.engines.solve import solve
from dpcipher.io.write import write_table
from dpcipher.planning.plan import plan
from dpcipher.schema.schema import Schema

CASES = [
    ("7 columns, 33,600 cells", (4, 8, 5, 2, 7, 5, 3), 5_000, 2),
    ("12 binary columns", (2,) * 12, 20_000, 2),
    ("5 columns of 10", (10,) * 5, 20_000, 2),
    ("8 columns of 5", (5,) * 8, 20_000, 2),
    ("6 columns of 10", (10,) * 6, 200_000, 2),
    ("8 columns of 4, 3-way", (4,) * 8, 20_000, 3),
    ("40 binary columns", (2,) * 40, 5_000, 2),
    ("10 columns of 10", (10,) * 10, 100_000, 2),
    ("30 columns of 5", (5,) * 30, 20_000, 2),
    ("12 columns of 5, 3-way", (5,) * 12, 20_000, 3),
    ("14 columns, 2 to 99 levels", (74, 7, 16, 7, 14, 6, 5, 2, 99, 85, 42, 2, 9, 28), 50_000, 2),
]


def rows(shape: tuple[int, ...], n_rows: int) -> np.ndarray:
    """Codes of a chain of columns."""
    rng = np.random.default_rng(0)
    hidden, columns = rng.standard_normal(n_rows), []
    for size in shape:
        hidden = 0.7 * hidden + 0.7 * rng.standard_normal(n_rows)
        columns.append((np.argsort(np.argsort(hidden)) / n_rows) ** 1.5 * size)
    return np.stack(columns, axis=1).astype(np.int32)


def case(title: str, table: pa.Table, schema: Schema, workload: int, folder: Path) -> list[str]:
    """Plan, measure, solve."""
    path = folder / "rows.csv"
    write_table(path, table, force=True)
    request = {"workload": workload, "epsilon": 1.0, "unit": "add-remove"}
    started = time.process_time()
    foreseen = plan(schema, n_rows=table.num_rows, **request)
    planned = time.process_time()
    release = measure(str(path), schema, **request)
    measured = time.process_time()
    joint = solve(release)
    solved = time.process_time()
    cost, took = foreseen.cost, (measured - planned, solved - measured)
    return [
        title,
        f"{table.num_rows:,}",
        f"{planned - started:.1f}",
        f"{cost.measure_seconds:.2f}",
        f"{took[0]:.2f}",
        f"{cost.measure_seconds / took[0]:.2f}",
        cost.engine,
        f"{cost.solve_seconds:.2f}",
        f"{took[1]:.2f}",
        f"{cost.solve_seconds / took[1]:.2f}",
        str(joint.health.sweeps),
    ]


def main() -> None:
    """Run every case and write results/plan.md."""
    found = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "people.yaml").write_text(SCHEMA)
        people = pa.Table.from_pandas(invent_people(), preserve_index=False)
        case("warm up", people, Schema.load(folder / "people.yaml"), 2, folder)
        found.append(case("the demo's people", people, Schema.load(folder / "people.yaml"), 2, folder))
        for title, shape, n_rows, workload in CASES:
            schema = Schema.from_domain({f"c{number}": size for number, size in enumerate(shape)})
            table = schema.decode(rows(shape, n_rows), np.random.default_rng(0))
            found.append(case(title, table, schema, workload, folder))
    head = [
        "case",
        "rows",
        "plan, s",
        "measure foreseen",
        "taken",
        "ratio",
        "engine",
        "solve foreseen",
        "taken",
        "ratio",
        "sweeps",
    ]
    note = (
        "Seconds of processor time, which a plan foresees; epsilon 1, all tables of the order. A plan reads no data, so it cannot know how many raking sweeps the table engine "
        "will need: it foresees 3 a step, and the last column says how many the last step took."
        " The constants of the stated work were set on these and other cases on this machine."
    )
    write_page(
        "plan",
        "What a plan foresees",
        "OPENBLAS_NUM_THREADS=1 python benchmarks/plan.py",
        [note, markdown(head, found)],
    )


if __name__ == "__main__":
    main()
