"""Processor time and peak memory of measuring, choosing and reconciling: an earlier commit and now, run in turns.

usage: python benchmarks/interleaved.py COMMIT [repeats=9]
"""

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from common import markdown, write_page
from size import ROOT, unpack

# Each job is a child of its own, so that any commit's source can run it; it prints seconds and megabytes.
JOB = """
import resource, sys, time
import numpy as np, pandas as pd, dpcipher as dc
job = sys.argv[1]
rng = np.random.default_rng(0)
if job in ("measure", "auto"):
    sizes = {f"c{i}": int(k) for i, k in enumerate(rng.integers(2, 12, 14))}
    base = rng.random(300_000)
    rows = pd.DataFrame({c: ((base + rng.random(300_000)) / 2 * k).astype(int) for c, k in sizes.items()})
    call = lambda: dc.measure(rows, schema, workload=2 if job == "measure" else "auto", epsilon=1.0, unit="add-remove")
    schema = dc.Schema.from_domain(sizes)
else:
    columns, levels = {"reconcile": (300, 4), "reconcile wide": (14, 40)}[job]
    schema = dc.Schema.from_domain({f"c{i}": levels for i in range(columns)})
    names = schema.names
    tables = {(a, b): rng.integers(0, 90, (levels, levels)) for i, a in enumerate(names) for b in names[i + 1 :]}
    def call():
        release = dc.Release.from_tables(tables, schema, scale=5.0)
        return [(release.project(pair), release.std_error(pair)) for pair in list(tables)[:200]]
call()  # loads what is loaded at its first use
started = time.process_time()
for _ in range(3):
    call()
print(time.process_time() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
JOBS = ("measure", "auto", "reconcile", "reconcile wide")


def run(source: Path, job: str) -> tuple[float, float]:
    """Seconds of processor time and peak memory in megabytes of one job, in a fresh process with one thread."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(source),
        "OMP_NUM_THREADS": "1",
        "PYTHONWARNINGS": "ignore",
    }
    ran = subprocess.run(
        [sys.executable, "-c", JOB, job], env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    seconds, megabytes = map(float, ran.stdout.split())
    return seconds, megabytes


def main() -> None:
    commit, repeats = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 9
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        unpack(commit, Path(folder))
        sources = (Path(folder) / "src", ROOT / "src")
        for job in JOBS:
            found = [[run(source, job) for source in sources] for _ in range(repeats)]
            then, now = (
                [statistics.median(pair[place][part] for pair in found) for part in range(2)]
                for place in range(2)
            )
            ratio = statistics.median(pair[1][0] / pair[0][0] for pair in found)
            rows.append(
                [
                    job,
                    *(f"{number:.2f}" for number in (then[0], now[0], ratio)),
                    f"{then[1]:.0f}",
                    f"{now[1]:.0f}",
                ]
            )
    head = ["job", f"s at {commit[:7]}", "s now", "ratio", f"MB at {commit[:7]}", "MB now"]
    text = (
        f"Medians of {repeats} runs in turns, each in a fresh process with one thread; the ratio is the median of the ratios of neighbouring runs. Three calls, after one that loads the libraries. Measuring: 300,000 rows of "
        "14 columns, all pairs or chosen tables, reading included. Reconciling: all pairs of 300 columns of 4 levels and of 14 columns of 40 levels, then estimates and standard errors of 200 of them."
    )
    write_page(
        "interleaved",
        "Before and after",
        f"python benchmarks/interleaved.py {commit}",
        [text, markdown(head, rows)],
    )


if __name__ == "__main__":
    main()
