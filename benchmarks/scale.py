"""How far it goes: counting against DuckDB, polars and a C loop, growth in rows, columns and levels, whole releases, and where others stop.

usage: python benchmarks/scale.py [ROWS=10000000 [MORE_ROWS …]]

Releases are made for every number of rows, all else for the first. What is in results/scale.jsonl is not measured again: delete the file to begin
anew. Each figure is made in a process of its own. With gcc the C loop is compiled on the spot; without, it is left out, and the page says so.
"""

import ctypes
import itertools
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from common import RESULTS, markdown, measured, peak_megabytes, write_page
from count import Columns, blocks, seconds

import dpcipher as dc
from dpcipher.curator.counts import receive
from dpcipher.curator.kernel import SORTED_ROWS, TableCounter
from dpcipher.selection.target import SelectionTarget, foreseen_tables

C_LOOP = r"""
#include <stdint.h>
#define BLOCK 32768
void count_pairs(const uint8_t **columns, int n_columns, const int32_t *sizes, int64_t n_rows, int64_t **tables) {
    for (int64_t start = 0; start < n_rows; start += BLOCK) {
        int64_t stop = start + BLOCK < n_rows ? start + BLOCK : n_rows;
        int table = 0;
        for (int a = 0; a < n_columns; a++)
            for (int b = a + 1; b < n_columns; b++) {
                int64_t *counts = tables[table++];
                const uint8_t *first = columns[a], *second = columns[b];
                int32_t size = sizes[b];
                for (int64_t row = start; row < stop; row++) counts[first[row] * size + second[row]]++;
            }
    }
}
"""
GROUP = 2**20
SHAPE = (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2)  # that of Adult
POOL = 50_000
REPEATS_ROWS = 2**23
COMPILED = 1.5  # times the C loop: the most that a compiled part would be allowed to take
Pairs = list[tuple[int, ...]]


@cache
def pool() -> np.ndarray:
    """Invented rows of Adult's shape: uneven levels that depend on one another through a hidden class."""
    rng = np.random.default_rng(0)
    hidden = rng.integers(0, 20, POOL)
    columns = [(hidden * (axis + 1) + rng.geometric(0.2, POOL)) % size for axis, size in enumerate(SHAPE)]
    return np.stack(columns, axis=1)


def coded_rows(n_rows: int, seed: int = 0) -> np.ndarray:
    """Rows of the pool, drawn with replacement."""
    return pool()[np.random.default_rng(seed).integers(0, POOL, n_rows)]


def schema() -> dc.Schema:
    """The columns as integers."""
    return dc.Schema.from_domain({f"c{axis}": size for axis, size in enumerate(SHAPE)})


def pairs_of(shape: Sequence[int]) -> Pairs:
    """All pairs of columns."""
    return list(itertools.combinations(range(len(shape)), 2))


def count_ours(columns: Columns, shape: Sequence[int]) -> list[np.ndarray]:
    """All pairs with our kernel, block by block, on one core."""
    counter = TableCounter(shape, pairs_of(shape))
    for block in blocks(columns):
        counter.add(block)
    return list(counter.tables())


@cache
def c_library() -> ctypes.CDLL | None:
    """The C loop, compiled; None where there is no compiler."""
    if shutil.which("gcc") is None:
        return None
    folder = Path(tempfile.mkdtemp())
    (folder / "pairs.c").write_text(C_LOOP)
    command = ["gcc", "-O3", "-march=native", "-shared", "-fPIC", "-o", str(folder / "pairs.so")]
    subprocess.run([*command, str(folder / "pairs.c")], check=True)
    return ctypes.CDLL(str(folder / "pairs.so"))


def count_c(columns: Columns, shape: Sequence[int]) -> list[np.ndarray]:
    """All pairs with the C loop, on one core."""
    library = c_library()
    assert library is not None
    tables = [np.zeros((shape[a], shape[b]), dtype=np.int64) for a, b in pairs_of(shape)]

    def pointers(arrays: Sequence[np.ndarray]) -> ctypes.Array[ctypes.c_void_p]:
        return (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))

    sizes = np.asarray(shape, dtype=np.int32)
    library.count_pairs(
        pointers(columns),
        len(shape),
        ctypes.c_void_p(sizes.ctypes.data),
        ctypes.c_int64(len(columns[0])),
        pointers(tables),
    )
    return tables


def least_seconds(work: Callable[[], object]) -> float:
    """The least of three runs: what else runs on the machine lengthens a short one."""
    return min(seconds(work) for _ in range(3))


def kernels(n_rows: int) -> None:
    """Seconds of ours, the C loop, DuckDB and polars on the same codes in memory; the counts are compared."""
    import duckdb
    import polars

    shape = SHAPE
    rows = coded_rows(n_rows)
    columns = [rows[:, axis].astype(np.uint8) for axis in range(len(shape))]
    found: dict[str, list[np.ndarray]] = {}
    spent = [least_seconds(lambda: found.update(ours=count_ours(columns, shape)))]
    if c_library() is None:
        spent.append(float("nan"))
    else:
        spent.append(least_seconds(lambda: found.update(c=count_c(columns, shape))))
        if not all(map(np.array_equal, found["ours"], found["c"])):
            raise SystemExit("the counts of the C loop are not ours")
    coded = pa.table({f"c{axis}": column for axis, column in enumerate(columns)})
    base = duckdb.connect()
    base.execute("SET threads = 1")
    base.register("arrow", coded)
    base.execute("CREATE TABLE coded AS SELECT * FROM arrow")

    def by_duckdb() -> None:
        for a, b in pairs_of(shape):
            base.execute(f"SELECT c{a}, c{b}, count(*) FROM coded GROUP BY c{a}, c{b}").fetchnumpy()

    spent.append(seconds(by_duckdb))
    frame = polars.from_arrow(coded)

    def by_polars() -> None:
        for a, b in pairs_of(shape):
            frame.group_by(f"c{a}", f"c{b}").len()

    spent.append(seconds(by_polars))
    print(*spent)


def repeats(n_rows: int) -> None:
    """Seconds in which the kernel counts all tables that `auto` may ask for: of rows that repeat, and of rows that do not."""
    tables = foreseen_tables(SelectionTarget.of(dc.Auto(), schema()))
    assert tables is not None
    rng = np.random.default_rng(0)
    for rows in (coded_rows(n_rows), rng.integers(0, SHAPE, (n_rows, len(SHAPE)))):
        columns = [rows[:, axis].astype(np.uint8) for axis in range(len(SHAPE))]
        print(seconds(partial(count_pieces, columns, tables)))


def count_pieces(columns: Columns, tables: Pairs) -> None:
    """Pieces as large as the kernel sorts them."""
    counter = TableCounter(SHAPE, tables)
    for start in range(0, len(columns[0]), SORTED_ROWS):
        counter.add([column[start : start + SORTED_ROWS] for column in columns])
    counter.tables()


def growth(n_rows: int, n_columns: int, levels: int) -> None:
    """Nanoseconds of our kernel for each row and pair, and the peak of memory beyond the codes."""
    rng = np.random.default_rng(0)
    kind = np.uint8 if levels <= 256 else np.uint16
    columns = [rng.integers(0, levels, n_rows).astype(kind) for _ in range(n_columns)]
    before = peak_megabytes()
    spent = seconds(lambda: count_ours(columns, [levels] * n_columns))
    print(spent, 1e9 * spent / n_rows / (n_columns * (n_columns - 1) / 2), peak_megabytes() - before)


def write_rows(path: str, n_rows: int) -> None:
    """Rows as Parquet, without ever holding all."""
    names = [f"c{axis}" for axis in range(len(SHAPE))]
    with pq.ParquetWriter(path, pa.schema([(name, pa.int64()) for name in names])) as writer:
        for start in range(0, n_rows, GROUP):
            rows = coded_rows(min(GROUP, n_rows - start), seed=start)
            writer.write_table(pa.table({name: rows[:, axis] for axis, name in enumerate(names)}))


def release(kind: str, n_rows: int) -> None:
    """Seconds and peak memory of reading a file, of counting it, or of a whole release of it."""
    facts = schema()
    path = str(Path(tempfile.gettempdir()) / f"dpcipher-scale-{n_rows}.parquet")  # stays for the next task
    if not Path(path).exists():
        subprocess.run([sys.executable, __file__, "write", path, str(n_rows)], check=True)
    dc.measure(
        pa.table({name: [0] for name in facts.names}), facts, epsilon=1.0, unit="add-remove", workload=1
    )
    before = peak_megabytes()

    def read() -> None:
        for _ in ds.dataset(path).to_batches():
            pass

    work = {
        "read": read,
        "count": lambda: receive(path, facts).tally(pairs_of(facts.shape)),
        "pairs": lambda: dc.measure(path, facts, epsilon=1.0, unit="add-remove"),
        "auto": lambda: dc.measure(path, facts, workload="auto", epsilon=1.0, delta=1e-9, unit="add-remove"),
    }[kind]
    print(seconds(work), peak_megabytes() - before)


def peers() -> list[list[object]]:
    """For each outside method, the largest table that ended, and what did not end, as recorded."""
    records = [json.loads(line) for line in (RESULTS / "peers.jsonl").read_text().splitlines()]
    rows = []
    for name in dict.fromkeys((record["peer"], record["method"]) for record in records):
        mine = [record for record in records if (record["peer"], record["method"]) == name]
        ended = [record for record in mine if record["status"] == "ok"]
        slowest = max(ended, key=lambda record: record.get("cpu_seconds") or record["seconds"], default=None)
        stopped = "; ".join(
            f"{record['data']} at ε = {record['epsilon']}: {record['status']} ({record['cap']:.0f} s, {record['megabytes']:,} MB)"
            for record in mine
            if record["status"] != "ok"
        )
        last = (
            "none"
            if slowest is None
            else f"{slowest['data']}: {slowest['seconds']:,.0f} s, {slowest['megabytes']:,} MB"
        )
        rows.append([" ".join(name), f"{len(ended)} of {len(mine)}", last, stopped or "none of those tried"])
    return rows


def run(*what: object) -> list[float]:
    """One measurement, or the record of it."""
    return measured(__file__, *what)


def releases(n_rows: int) -> str:
    """The table of releases of one size, each beside reading the file and the C loop."""
    parts = {kind: run("release", kind, n_rows) for kind in ("read", "count", "pairs", "auto")}
    loop = run("kernels", min(n_rows, 10**7))[1] * n_rows / min(n_rows, 10**7)
    least = parts["read"][0] + (0.0 if np.isnan(loop) else loop)
    words = {
        "read": "reading the file",
        "count": "counting all pairs of it",
        "pairs": "`measure`, all pairs",
        "auto": "`measure`, `auto`",
    }
    rows = [
        [words[kind], f"{spent:.1f}", f"{spent / least:.2f}", f"{memory:.0f}"]
        for kind, (spent, memory) in parts.items()
    ]
    rows.insert(1, ["the C loop over its codes", f"{loop:.1f}", f"{loop / least:.2f}", ""])
    return markdown(["", "seconds", "ratio to reading and the C loop", "peak MB"], rows)


def _compiled(ours: float, loop: float) -> list[str]:
    """Whether a compiled part for counting would pay."""
    if np.isnan(loop):
        return []
    says = f"A compiled part was to be within {COMPILED} × of the C loop. Numpy alone takes {ours / loop:.1f} × its time"
    return [f"{says}, so there is none." if ours <= COMPILED * loop else f"{says}."]


def main(sizes: Sequence[int]) -> None:
    n_rows = sizes[0]
    ours, loop, duckdb, polars = run("kernels", n_rows)
    named = {
        "our kernel, numpy alone": ours,
        "a C loop, pair after pair": loop,
        "DuckDB, a GROUP BY for each pair": duckdb,
    }
    named["polars, a group_by for each pair"] = polars
    kernel = [
        [
            name,
            "no compiler here" if np.isnan(spent) else f"{spent:.2f}",
            "" if np.isnan(spent) else f"{spent / ours:.1f}",
        ]
        for name, spent in named.items()
    ]
    repeated, distinct = run("repeats", REPEATS_ROWS)
    n_foreseen = len(foreseen_tables(SelectionTarget.of(dc.Auto(), schema())) or ())
    grown = []
    for rows, columns, levels in (
        *((n_rows // part, 14, 16) for part in (100, 10, 1)),
        *((10**6, columns, 4) for columns in (10, 30, 100)),
        *((10**6, 10, levels) for levels in (2, 16, 128, 1024)),
    ):
        spent, each, memory = run("growth", rows, columns, levels)
        grown.append([f"{rows:,}", columns, levels, f"{spent:.2f}", f"{each:.2f}", f"{memory:.0f}"])
    sections = [
        "Processor time; ratios within one run. Invented rows of Adult's shape (2 to 100 levels), unless something else is said.",
        f"## All 91 pairs of {n_rows:,} coded rows × 14 columns, one core",
        "The same codes, a byte each, in memory; the C loop is compiled with -O3 for this processor. Of ours and the C loop, the least of three runs.",
        markdown(["", "seconds", "ratio to ours"], kernel),
        *_compiled(ours, loop),
        "## Growth of the kernel",
        "All pairs of columns of independent uniform levels. Memory is beyond the codes.",
        markdown(["rows", "columns", "levels each", "seconds", "ns a row and pair", "MB"], grown),
        "More partitions: [Spark](spark.md).",
        f"## All {n_foreseen} tables that `auto` may ask for",
        f"{REPEATS_ROWS:,} rows, one core. The rows of this page are drawn from {POOL:,} distinct ones; rows that repeat are sorted and counted once.",
        markdown(
            ["", "seconds", "ns a row"],
            [
                [name, f"{spent:.2f}", f"{1e9 * spent / REPEATS_ROWS:.0f}"]
                for name, spent in (("rows that repeat", repeated), ("rows that do not", distinct))
            ],
        ),
        "## Releases from Parquet",
        "Memory is beyond that of a small release. Beyond ten million rows the time of the C loop is that of ten million, times as much.",
        *(part for size in sizes for part in (f"{size:,} rows × 14 columns:", releases(size))),
        f"Of rows that do not repeat, `auto` would take {(distinct - repeated) / REPEATS_ROWS * sizes[-1]:.0f} s more at {sizes[-1]:,} rows.",
        "## Where others stop",
        "Of the runs that are recorded in [peers.jsonl](peers.jsonl) ([how](../README.md)), for each method of another package: how many ended, the slowest that did, and what did not end within its cap.",
        markdown(["method", "ended", "slowest that ended", "did not end"], peers()),
    ]
    write_page(
        "scale", "How far it goes", f"python benchmarks/scale.py {' '.join(map(str, sizes))}", sections
    )


if __name__ == "__main__":
    task = sys.argv[1:]
    if task[:1] == ["kernels"]:
        kernels(int(task[1]))
    elif task[:1] == ["repeats"]:
        repeats(int(task[1]))
    elif task[:1] == ["growth"]:
        growth(*map(int, task[1:]))
    elif task[:1] == ["release"]:
        release(task[1], int(task[2]))
    elif task[:1] == ["write"]:
        write_rows(task[1], int(task[2]))
    else:
        main([int(size) for size in task] or [10**7])
