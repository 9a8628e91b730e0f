"""Rows by the million: what writing them costs, on how many cores, and how even they are; independent rows of a chain; noise in one call.

usage: python benchmarks/rowsout.py [ROWS] [FOLDER]     (100,000,000 rows; the file goes to FOLDER, a temporary one by default, and is deleted)
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from common import (
    agreed,
    data_folder,
    laplace,
    least_seconds,
    markdown,
    noisy,
    peak_megabytes,
    real,
    subsets,
    write_page,
)

from dpcipher.engines.denoise.denoise import denoise
from dpcipher.engines.rows import solve_rows
from dpcipher.joint.chain import Chain
from dpcipher.joint.dense import DenseTable
from dpcipher.joint.joint import Joint
from dpcipher.joint.report import SolveReport
from dpcipher.privacy.draws import OpenDPNoise
from dpcipher.schema import Schema, column
from dpcipher.tables.measurement import Noise
from dpcipher.tables.table import count_rows, margin, pair_margins

SIZES = (8, 12, 5, 2, 7, 20, 15)
MANY = 100_000_000
BINARY = (2,) * 20


def wide_joint(*, bins: bool = False) -> Joint:
    """Seven columns, two million cells of which most are rare; with `bins` two of the columns are numbers inside bins."""
    cells = np.random.default_rng(0).dirichlet(np.full(int(np.prod(SIZES)), 0.05)).reshape(SIZES)
    columns = [
        column(f"c{place}", "number", min=0, max=10 * size, bins=size)
        if bins and place in (5, 6)
        else column(f"c{place}", "categorical", levels=[f"level {level}" for level in range(size)])
        for place, size in enumerate(SIZES)
    ]
    return Joint(Schema(tuple(columns)), DenseTable(cells), 1, SolveReport("table", why="made up"))


def write(n_rows: int, path: str, workers: int, bins: bool) -> None:
    """One file, in a process of its own: processor seconds, seconds by the clock, and peak memory."""
    joint = wide_joint(bins=bins)
    before, clock = time.process_time(), time.perf_counter()
    joint.stream(n_rows, seed=1).write(path, workers=workers)
    print(time.process_time() - before, time.perf_counter() - clock, peak_megabytes())


def files(n_rows: int, folder: Path) -> str:
    """Rates, memory and size of files."""
    lines = []
    jobs = [
        (n_rows, "parquet", 1, False),
        (n_rows // 10, "parquet", 1, False),
        (n_rows // 10, "parquet", 2, False),
        (n_rows // 10, "parquet", 1, True),
        (n_rows // 100, "csv", 1, False),
    ]
    for rows, ending, workers, bins in jobs:
        path = folder / f"rows.{ending}"
        command = [sys.executable, __file__, "write", str(rows), str(path), str(workers), str(int(bins))]
        found = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        processor, clock, memory = map(float, found)
        size = path.stat().st_size
        if ending == "parquet":
            assert pq.ParquetFile(path).metadata.num_rows == rows
        path.unlink()
        what = "five of texts, two of numbers in bins" if bins else "seven of texts"
        line = (f"{rows:,}", what, ending, workers, f"{processor:.1f}", f"{clock:.1f}")
        lines.append((*line, f"{rows / processor / 1e6:.2f}", f"{memory:.0f}", f"{size / rows:.1f}"))
        print(*lines[-1], flush=True)
    head = ["rows", "columns", "file", "workers", "processor s", "clock s", "million rows a processor second"]
    return (
        "## Seven columns to a file\n\nFrom a full table of 2,016,000 cells, by `joint.stream(n).write(path)`. Memory is that of the whole process.\n\n"
        + markdown([*head, "peak MB", "bytes a row"], lines)
    )


def evenness() -> str:
    """How far a stream's cells are from what is expected, over all batches and in each."""
    joint, n_rows = wide_joint(), 2_000_000
    table = joint.core.project(tuple(range(len(SIZES))))
    lines = []
    for independent in (False, True):
        stream = joint.stream(n_rows, seed=1, independent=independent)
        counts = np.zeros(table.shape)
        for number in range(len(stream)):
            counts += count_rows(stream.coded_batch(number)[0], tuple(range(len(SIZES))), table.shape)
        pairs, wanted = pair_margins(counts), pair_margins(n_rows * table)
        far = np.mean([np.abs(pairs[pair] - wanted[pair]).sum() / 2 / n_rows for pair in pairs])
        worst = np.abs(counts - n_rows * table).max()
        lines.append(("independent" if independent else "even", len(stream), f"{worst:.2f}", f"{far:.2g}"))
    head = ["rows", "batches", "worst cell, in rows", "mean TVD of pairs"]
    return f"## Even over all batches\n\n{n_rows:,} rows of the same table.\n\n" + markdown(head, lines)


def small_draws() -> str:
    """Few rows of a large table: the first draw, and those that follow."""
    joint, lines = wide_joint(), []
    first = least_seconds(lambda: joint.sample(10, seed=0))
    for n_rows in (10, 100, 1_000, 10_000):
        lines.append((f"{n_rows:,}", f"{least_seconds(lambda n=n_rows: joint.sample(n, seed=1), 3):.3f}"))
    return f"## Small draws\n\nFrom the same table. The first draw takes {first:.2f} s.\n\n" + markdown(
        ["rows", "processor s"], lines
    )


def adult_chain() -> Chain:
    """The rows engine's chain for Adult, all pairs at ε = 1."""
    codes, shape = real("adult")
    tables = subsets(len(shape), 2)
    measured = noisy(codes, shape, tables, laplace(len(tables), 1.0), 0)
    return solve_rows(denoise(agreed(shape, measured)))[0]


def chain_rows() -> str:
    """Rates of the chain's rows on Adult."""
    chain, lines = adult_chain(), []
    for independent, n_rows in ((True, 400_000), (False, 65_536)):
        rng = np.random.default_rng(1)

        def draw(
            independent: bool = independent, n_rows: int = n_rows, rng: np.random.Generator = rng
        ) -> int:
            return sum(map(len, chain.sample(n_rows, rng, independent=independent)))

        taken = least_seconds(draw, 2)
        lines.append(("independent" if independent else "even", f"{n_rows:,}", f"{n_rows / taken:,.0f}"))
    return "## The rows engine on Adult, 14 columns\n\n" + markdown(
        ["rows", "drawn", "rows a processor second"], lines
    )


def noise() -> str:
    """One call of the sampler for all tables against one for each, and a large release."""
    sampler, lines = OpenDPNoise(), []
    small, large = [np.zeros(4, np.int64)] * 4_950, [np.zeros(1_000, np.int64)] * 1_000
    for mechanism in (Noise("laplace", 100.0), Noise("gaussian", 100.0)):
        sampler.add(small[0], mechanism)
        each = least_seconds(lambda m=mechanism: [sampler.add(table, m) for table in small])
        together = least_seconds(lambda m=mechanism: sampler.add_many(small, [m] * len(small)))
        million = least_seconds(lambda m=mechanism: sampler.add_many(large, [m] * len(large)))
        lines.append((mechanism.kind, f"{each:.2f}", f"{together:.2f}", f"{million:.1f}"))
    head = ["noise", "4,950 tables of 4 cells, a call each", "the same, one call", "a million cells"]
    return "## Noise\n\nProcessor seconds; OpenDP draws.\n\n" + markdown(head, lines)


def margins() -> str:
    """All pair margins by matrix products, against a sum for each pair."""
    lines = []
    for shape in (BINARY, (5,) * 9, SIZES):
        table = np.random.default_rng(0).dirichlet(np.ones(int(np.prod(shape)))).reshape(shape)
        axes, pairs = tuple(range(len(shape))), subsets(len(shape), 2)
        plain = least_seconds(lambda t=table, a=axes, p=pairs: [margin(t, a, pair) for pair in p])
        products = least_seconds(lambda t=table: pair_margins(t), 3)
        apart = max(np.abs(pair_margins(table)[pair] - margin(table, axes, pair)).max() for pair in pairs)
        lines.append((" × ".join(map(str, shape)), f"{plain:.3f}", f"{products:.4f}", f"{apart:.0e}"))
    return "## All pair margins of a dense table\n\n" + markdown(
        ["table", "a sum for each pair, s", "products, s", "largest difference"], lines
    )


def main() -> None:
    if sys.argv[1:2] == ["write"]:
        write(int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), bool(int(sys.argv[5])))
        return
    n_rows = int(sys.argv[1]) if len(sys.argv) > 1 else MANY
    data_folder()
    with tempfile.TemporaryDirectory(dir=sys.argv[2] if len(sys.argv) > 2 else None) as folder:
        sections = [files(n_rows, Path(folder))]
    sections += [evenness(), small_draws(), chain_rows(), noise(), margins()]
    about = "Processor time, on a machine that others shared; ratios are within one run."
    write_page("rowsout", "Rows by the million", f"python benchmarks/rowsout.py {n_rows}", [about, *sections])


if __name__ == "__main__":
    main()
