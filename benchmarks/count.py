"""What encoding and counting cost: codes, the pair kernel against DuckDB, whole releases from Parquet, and a column of many levels.

usage: DPCIPHER_DATA=FOLDER python benchmarks/count.py [ROWS=10000000]
"""

import itertools
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from common import markdown, peak_megabytes, real, write_page

import dpcipher as dc
from dpcipher.curator.kernel import TableCounter
from dpcipher.schema.columns import Column
from dpcipher.schema.declared import column
from dpcipher.tables.covering import few_joint_tables

BLOCK = 2**17
MANY_LEVELS = (1_250, 2_500, 5_000)
Columns = list[np.ndarray]


def seconds(work: Callable[[], object]) -> float:
    """Processor time of one call."""
    started = time.process_time()
    work()
    return time.process_time() - started


def adult_rows(n_rows: int) -> tuple[Columns, tuple[int, ...]]:
    """Adult's rows drawn with replacement, a byte for each code."""
    codes, shape = real("adult")
    rows = np.random.default_rng(0).integers(0, len(codes), n_rows)
    return [codes[:, axis].astype(np.uint8)[rows] for axis in range(len(shape))], shape


def blocks(columns: Columns) -> list[Columns]:
    """The rows as a file is read, block by block."""
    return [
        [column[start : start + BLOCK] for column in columns] for start in range(0, len(columns[0]), BLOCK)
    ]


def kernels(n_rows: int) -> None:
    """All pairs: our kernel, one count after another with numpy, and DuckDB's GROUP BYs, in one process on one core."""
    import duckdb

    columns, shape = adult_rows(n_rows)
    pairs = list(itertools.combinations(range(len(shape)), 2))
    counter = TableCounter(shape, pairs)

    def ours() -> None:
        for block in blocks(columns):
            counter.add(block)
        counter.tables()

    def one_by_one() -> None:
        for block in blocks(columns):
            for axes in pairs:
                TableCounter(shape, [axes]).add(block)

    base = duckdb.connect()
    base.execute("SET threads = 1")
    base.register("arrow", pa.table({f"c{axis}": column for axis, column in enumerate(columns)}))
    base.execute("CREATE TABLE coded AS SELECT * FROM arrow")

    def group_bys() -> None:
        for first, second in pairs:
            base.execute(
                f"SELECT c{first}, c{second}, count(*) FROM coded GROUP BY c{first}, c{second}"
            ).fetchnumpy()

    print(
        seconds(ours),
        seconds(one_by_one),
        seconds(group_bys),
        len(set(few_joint_tables(shape, pairs).values())),
    )


def cells() -> list[tuple[str, Column, pa.Array]]:
    """Batches of every kind of cell, as files and frames have them."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 85, BLOCK)
    levels = [f"level {i}" for i in range(85)]
    texts = pa.array(levels).take(pa.array(codes))
    number, whole = column("x", "number", min=0, max=1, bins=20), column("x", "integer", min=0, max=84)
    missing = column("x", "integer", min=0, max=84, missing="level")
    listed = column("x", "categorical", levels=levels)
    return [
        ("integers, a level each", whole, pa.array(codes)),
        ("integers, some missing", missing, pa.array(codes, mask=codes == 3)),
        ("integers in ten bins", column("x", "integer", min=0, max=99, bins=10), pa.array(codes)),
        ("integers far apart, in bins", column("x", "integer", min=0, max=10**6, bins=20), pa.array(rng.integers(0, 10**6, BLOCK))),
        ("texts", listed, texts),
        ("texts as a dictionary (Parquet, CSV)", listed, texts.dictionary_encode()),
        ("integers as texts", whole, pa.array(codes).cast(pa.string())),
        ("truth values", column("x", "boolean"), pa.array(codes > 40)),
        ("days", column("x", "date", min="2000-01-01", max="2003-01-01", bins=10), pa.array((codes * 12 + 10_957).astype(np.int32)).cast(pa.date32())),
        ("floats in bins", number, pa.array(rng.random(BLOCK))),
    ]  # fmt: skip


def encoding() -> list[list[object]]:
    """Nanoseconds for each cell."""
    rows = []
    for name, declared, batch in cells():
        declared.encode(batch)
        best = min(seconds(lambda: [declared.encode(batch) for _ in range(10)]) for _ in range(5))  # noqa: B023
        rows.append([name, f"{best / 10 / BLOCK * 1e9:.1f}"])
    return rows


def release(kind: str, n_rows: int, path: str) -> None:
    """One release from Parquet: seconds of processor time, and the peak of memory beyond what importing and the schema take."""
    _, shape = real("adult")
    schema = dc.Schema.from_domain({f"c{axis}": size for axis, size in enumerate(shape)})
    before = peak_megabytes()
    options = {
        "pairs": {},
        "auto": {"workload": "auto", "delta": 1e-9},
        "person": {"person": "who", "max_rows": 3},
    }[kind]
    spent = seconds(lambda: dc.measure(path, schema, epsilon=1.0, unit="add-remove", **options))
    print(spent, peak_megabytes() - before)


def write_rows(n_rows: int, folder: str) -> str:
    """Adult's rows with a person for about every five of them, as Parquet."""
    path = str(Path(folder) / f"{n_rows}.parquet")
    columns, _ = adult_rows(n_rows)
    who = np.random.default_rng(1).integers(0, n_rows // 5, n_rows)
    table = pa.table(
        {**{f"c{axis}": column.astype(np.int64) for axis, column in enumerate(columns)}, "who": who}
    )
    pq.write_table(table, path, row_group_size=2**20)
    return path


def many_levels(levels: int, others: str) -> None:
    """Solve all pairs of one column of many levels and five or thirteen ordinary ones, 50,000 rows, ε = 3."""
    rng, n_rows = np.random.default_rng(0), 50_000
    main = rng.choice(levels, n_rows, p=rng.dirichlet(np.full(levels, 0.3)))
    sizes = [10, 2, 8, 6, 20, 16, 7, 15, 6, 5, 2, 42, 2][: int(others)]
    frame = pd.DataFrame({"main": main})
    for place, size in enumerate(sizes):
        frame[f"c{place}"] = (main + rng.integers(0, max(size // 2, 1) + 1, n_rows)) % size
    schema = dc.Schema.from_domain({"main": levels, **{f"c{i}": size for i, size in enumerate(sizes)}})
    measured = dc.measure(frame, schema, epsilon=3.0, unit="add-remove")
    print(seconds(lambda: dc.solve(measured)), peak_megabytes())


def run(*what: object) -> list[float]:
    """One measurement in a fresh process."""
    command = [sys.executable, __file__, *map(str, what)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    print(*what, *said, flush=True)
    return [float(number) for number in said[-4:]]


def main(n_rows: int) -> None:
    ours, one_by_one, duckdb, joints = run("kernels", n_rows)
    kernel = [
        ["our kernel", f"{ours:.2f}", "1"],
        ["numpy, pair after pair", f"{one_by_one:.2f}", f"{one_by_one / ours:.1f}"],
        ["DuckDB, a GROUP BY for each pair", f"{duckdb:.2f}", f"{duckdb / ours:.1f}"],
    ]
    releases = []
    with tempfile.TemporaryDirectory() as folder:
        for size in (n_rows // 10, n_rows):
            path = write_rows(size, folder)
            for kind in ("pairs", "auto", "person"):
                spent, memory = run("release", kind, size, path)
                releases.append([f"{size:,}", kind, f"{spent:.1f}", f"{memory:.0f}"])
    levels = [
        [levels, others, *(f"{number:.1f}" for number in run("levels", levels, others)[-2:])]
        for levels in MANY_LEVELS
        for others in (5, 13)
    ]
    sections = [
        "Processor time, ratios within one run. The rows are Adult's, drawn with replacement.",
        f"## All 91 pairs of {n_rows:,} coded rows × 14 columns, one core",
        f"The pairs are margins of {joints:.0f} joint tables. DuckDB holds the same codes, a byte each, in memory.",
        markdown(["", "seconds", "ratio to ours"], kernel),
        "## Encoding",
        f"A batch of {BLOCK:,} cells.",
        markdown(["cells", "ns a cell"], encoding()),
        "## Releases from Parquet",
        "Integer columns, and a person column for `person` (five rows for each person, at most three count). Peak memory is beyond what Python and its libraries take before.",
        markdown(["rows", "what", "seconds", "peak MB"], releases),
        "## Solving all pairs with one column of many levels",
        markdown(["levels", "other columns", "seconds", "peak MB"], levels),
    ]
    write_page("count", "What encoding and counting cost", f"python benchmarks/count.py {n_rows}", sections)


if __name__ == "__main__":
    task = sys.argv[1:]
    if task[:1] == ["kernels"]:
        kernels(int(task[1]))
    elif task[:1] == ["release"]:
        release(task[1], int(task[2]), task[3])
    elif task[:1] == ["levels"]:
        many_levels(int(task[1]), task[2])
    else:
        main(int(task[0]) if task else 10**7)
