"""What Spark costs beside one process: all pairs of Adult's columns counted from Parquet, more partitions, and rows drawn by executors.

usage: DPCIPHER_DATA=FOLDER python benchmarks/spark.py [ROWS_PER_PARTITION=1000000]

What is in results/spark.jsonl is not measured again: delete the file to begin anew.
"""

import contextlib
import itertools
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from common import markdown, measured, real, write_page

import dpcipher as dc
from dpcipher.curator.counts import Tally, receive

PARTITIONS = 200
MANY = (8, 200, 2_000)
FEW_ROWS = 2_000
DRAWN = 5_000_000
OPEN_COST = 4 * 2**20  # that Spark adds to the size of each file


def processor_seconds() -> float:
    """Of this process and all below it: Spark's Java, its Python workers, and those that have ended."""
    ticks = os.sysconf("SC_CLK_TCK")
    parents, spent = {}, {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                parents[int(folder.name)] = int(fields[1])
                spent[int(folder.name)] = sum(map(int, fields[11:15])) / ticks
    family = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(spent[pid] for pid in family if pid in spent)


def seconds(work: Callable[[], object]) -> float:
    """Processor time of one call, with all that it lets others do."""
    started = processor_seconds()
    work()
    return processor_seconds() - started


def schema_and_pairs() -> tuple[dc.Schema, list[tuple[int, ...]]]:
    """Adult's columns as integers, and all pairs of them."""
    _, shape = real("adult")
    schema = dc.Schema.from_domain({f"c{axis}": size for axis, size in enumerate(shape)})
    return schema, list(itertools.combinations(range(len(shape)), 2))


def write_files(folder: str, partitions: int, n_rows: int) -> list[str]:
    """A file of Adult's rows, drawn with replacement, for each partition; all are the same."""
    codes, _ = real("adult")
    rows = np.random.default_rng(0).integers(0, len(codes), n_rows)
    first = Path(folder) / "part-00000.parquet"
    pq.write_table(pa.table({f"c{axis}": codes[rows, axis] for axis in range(codes.shape[1])}), first)
    names = [Path(folder) / f"part-{number:05}.parquet" for number in range(partitions)]
    for name in names[1:]:
        os.link(first, name)
    return list(map(str, names))


def session(file_bytes: int) -> Any:
    """Spark on two threads, with a partition for each file."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.files.maxPartitionBytes", str(file_bytes + OPEN_COST))
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.driver.memory", "2g")
    address = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    for key, value in address.items():
        builder = builder.config(key, value)
    running = builder.getOrCreate()
    running.sparkContext.setLogLevel("ERROR")
    return running


def nothing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read and forget."""
    for _ in batches:
        pass
    yield from ()


def counted(partitions: int, n_rows: int, *, also_idle: bool) -> None:
    """Seconds of one process, of Spark, and perhaps of Spark when its workers do nothing with the rows."""
    schema, pairs = schema_and_pairs()
    with tempfile.TemporaryDirectory() as folder:
        files = write_files(folder, partitions, n_rows)
        found: list[Tally] = []
        alone = seconds(lambda: found.append(receive(f"{folder}/*.parquet", schema).tally(pairs)))
        spark = session(os.path.getsize(files[0]))
        frame = spark.read.parquet(*files)
        receive(spark.read.parquet(*files[: max(8, partitions // 10)]), schema).tally(pairs)  # Java warms up
        spent = seconds(lambda: found.append(receive(frame, schema).tally(pairs)))
        idle = seconds(frame.select("c0").mapInArrow(nothing, "x long").count) if also_idle else 0.0
        if not all(np.array_equal(a, b) for a, b in zip(found[0].tables, found[1].tables, strict=True)):
            raise SystemExit("the counts of Spark are not those of one process")
        print(alone, spent, idle, frame.rdd.getNumPartitions())
        spark.stop()


def drawn(n_rows: int) -> None:
    """Seconds of one process that writes rows to Parquet, and of Spark's executors."""
    codes, shape = real("adult")
    schema = dc.Schema.from_domain({f"c{axis}": size for axis, size in enumerate(shape[:7])})
    tables = {
        pair: np.histogram2d(
            *(codes[:, axis] for axis in pair), bins=[range(shape[axis] + 1) for axis in pair]
        )[0]
        for pair in itertools.combinations(range(7), 2)
    }
    named = {tuple(schema.attrs[axis] for axis in pair): counts for pair, counts in tables.items()}
    joint = dc.solve(dc.Release.from_tables(named, schema, scale=0))
    with tempfile.TemporaryDirectory() as folder:
        spark = session(0)
        alone = seconds(lambda: joint.stream(n_rows, seed=1).write(f"{folder}/rows.parquet"))
        joint.stream(n_rows // 10, seed=1).to_spark(spark, partitions=2).write.parquet(f"{folder}/warm")
        spent = seconds(lambda: joint.stream(n_rows, seed=1).to_spark(spark).write.parquet(f"{folder}/rows"))
        print(alone, spent)
        spark.stop()


def run(*what: object) -> list[float]:
    """One measurement, or the record of it."""
    return measured(__file__, *what)


def main(n_rows: int) -> None:
    alone, spent, _, _ = run("counted", PARTITIONS, n_rows, "alone")
    large = [["one process", f"{alone:.1f}", "1"], ["Spark", f"{spent:.1f}", f"{spent / alone:.1f}"]]
    growth = []
    for partitions in MANY:
        idle_too = partitions <= PARTITIONS
        _, spent, idle, _ = run("counted", partitions, FEW_ROWS, "idle" if idle_too else "alone")
        each = [f"{1000 * value / partitions:.0f}" if value else "" for value in (spent, idle)]
        growth.append([f"{partitions:,}", f"{spent:.1f}", *each])
    written, by_spark = run("drawn", DRAWN)
    rows = [["one process", f"{written:.1f}", "1"], ["Spark", f"{by_spark:.1f}", f"{by_spark / written:.1f}"]]
    from pyspark import __version__ as spark_version

    sections = [
        f"Processor time of all processes together, Spark {spark_version} on two threads of this machine, after it has warmed up on a tenth of the data.",
        f"## All 91 pairs of {PARTITIONS} × {n_rows:,} rows × 14 columns of Parquet",
        "A file is a partition; the same files are counted by one process. The counts are equal.",
        markdown(["", "seconds", "ratio"], large),
        "## More partitions",
        f"The same pairs of partitions of {FEW_ROWS:,} rows: what is left is starting tasks. Beside it, workers that receive one column and do nothing.",
        markdown(
            ["partitions", "counted, s", "counted, ms a partition", "nothing done, ms a partition"], growth
        ),
        f"## {DRAWN:,} synthetic rows of 7 columns to Parquet",
        markdown(["", "seconds", "ratio"], rows),
    ]
    write_page("spark", "What Spark costs", f"python benchmarks/spark.py {n_rows}", sections)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    task = sys.argv[1:]
    if task[:1] == ["counted"]:
        counted(int(task[1]), int(task[2]), also_idle=task[3] == "idle")
    elif task[:1] == ["drawn"]:
        drawn(int(task[1]))
    else:
        main(int(task[0]) if task else 10**6)
