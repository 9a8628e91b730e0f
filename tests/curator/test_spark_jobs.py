"""Spark as a cluster behaves: workers die, partitions are uneven, rows are refused, questions are many."""

import os
import signal
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dpcipher.curator.counts import open_counts, receive
from dpcipher.curator.measure import measure, open_session
from dpcipher.errors import DataError, ParameterError, TableFileError
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.terms import Privacy, Unit
from dpcipher.schema import Schema, column
from dpcipher.tables.query import Query

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]

SCHEMA = Schema.from_domain({"a": 2, "b": 3, "d": 500, "e": 500})
TABLES = [(0, 1), (1, 2), (3,)]


def people(n_rows: int = 4_000) -> pd.DataFrame:
    """Rows of persons, one of whom has half of them."""
    rng = np.random.default_rng(6)
    coded = {name: rng.integers(0, size, n_rows) for name, size in zip("abde", SCHEMA.shape, strict=True)}
    who = np.where(rng.random(n_rows) < 0.5, 0, rng.integers(1, 700, n_rows))
    return pd.DataFrame(coded | {"who": who.astype(str)})


def job_ids(spark: Any) -> set[int]:
    """All jobs of the session so far."""
    return set(spark.sparkContext.statusTracker().getJobIdsForGroup(None))


def dies_once(mark: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Hands batches on; the first worker that gets a second batch kills itself, and no other one does. Not a class, which workers could not import."""

    def hand_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(batches):
            if number == 1:
                try:
                    os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
                    os.kill(os.getpid(), signal.SIGKILL)
                except FileExistsError:
                    pass
            yield batch

    return hand_on


def test_the_rows_of_a_killed_worker_count_once(spark: Any, tmp_path: Path) -> None:
    """It dies when it has handed on a part of its partition; Spark runs the task again."""
    rows = people()
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "300")
    frame = spark.createDataFrame(rows).repartition(3)
    mortal = frame.mapInArrow(dies_once(str(tmp_path / "died")), frame.schema)
    found = receive(mortal, SCHEMA).tally(TABLES)
    spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    expected = receive(rows, SCHEMA).tally(TABLES)
    assert (tmp_path / "died").exists()
    assert found.n_rows == expected.n_rows
    assert all(np.array_equal(a, b) for a, b in zip(found.tables, expected.tables, strict=True))


@pytest.mark.parametrize(
    "person",
    [None, Privacy.parse(epsilon=1, unit="add-remove", max_rows=2, person="who")],
    ids=["rows", "persons"],
)
def test_uneven_partitions_and_persons_are_counted_alike(spark: Any, person: Privacy | None) -> None:
    """Nearly all rows in one partition, others empty; half of the rows of one person."""
    rows = people()
    frame = spark.createDataFrame(rows).repartition(9, "a")  # of two values
    found = receive(frame, SCHEMA, person).tally(TABLES)
    expected = receive(rows, SCHEMA, person).tally(TABLES)
    assert found.n_rows == expected.n_rows
    assert all(np.array_equal(a, b) for a, b in zip(found.tables, expected.tables, strict=True))


def test_a_refusal_is_ours_and_no_job_fails(spark: Any) -> None:
    """Nothing of Spark's in the message, nothing behind it, and no failed task whose trace would stand in a log."""
    rows = people(500)
    rows.loc[7, "d"] = 4711
    before = job_ids(spark)
    with pytest.raises(DataError) as refused:
        measure(spark.createDataFrame(rows).repartition(4), SCHEMA, epsilon=1, unit="replace")
    tracker = spark.sparkContext.statusTracker()
    statuses = {tracker.getJobInfo(job).status for job in job_ids(spark) - before}
    assert statuses == {"SUCCEEDED"}
    assert "column 'd'" in str(refused.value)
    assert "4711" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_a_frame_that_cannot_be_read_is_said_in_a_sentence(spark: Any) -> None:
    """What Spark says may quote a cell, over two hundred lines of Java."""
    broken = spark.sql("SELECT raise_error('cell 4711') AS a, 1 AS b, 1 AS d, 1 AS e")
    with pytest.raises(TableFileError, match="could not be read to its end") as refused:
        receive(broken.withColumn("a", broken["a"].cast("int")), SCHEMA).tally(TABLES)
    assert "4711" not in str(refused.value)
    assert refused.value.__suppress_context__


def test_tables_are_chosen_in_a_number_of_jobs_that_partitions_do_not_change(spark: Any) -> None:
    """Codes are made once, whatever is asked then; no job runs after the charge."""
    rows, terms = people(), Privacy(Budget.parse(epsilon=50), Unit("add-remove"))
    numbers = []
    for partitions in (2, 12):
        before = len(job_ids(spark))
        session = open_session(spark.createDataFrame(rows).repartition(partitions), SCHEMA, terms, purpose={})
        opened = len(job_ids(spark))
        for axes in ((0, 1), (2,), (1, 3)):
            session.measure(Query(axes), Fraction(1, 4))
        assert len(job_ids(spark)) == opened
        numbers.append(opened - before)
    assert numbers[0] == numbers[1] <= 5
    before = len(job_ids(spark))
    release = measure(
        spark.createDataFrame(rows), SCHEMA, workload="auto", epsilon=5, delta=1e-9, unit="add-remove"
    )
    assert len(release.measurements) > 3
    assert len(job_ids(spark)) - before <= 5


def test_bins_are_found_in_a_spark_frame(spark: Any) -> None:
    """Rows on the grid are those of a pandas frame; levels that only the rows know are refused, with the way out."""
    age = column("age", "integer", min=0, max=99, bins="auto")
    other = column("kind", "categorical", levels=["x", "y"])
    rng = np.random.default_rng(1)
    rows = pd.DataFrame({"age": rng.integers(0, 99, 2_000), "kind": rng.choice(["x", "y"], 2_000)})
    schema, frame = Schema((age, other)), spark.createDataFrame(rows).repartition(3)
    found, expected = (open_counts(receive(data, schema), schema) for data in (frame, rows))
    assert np.array_equal(found.counts((0, 1)), expected.counts((0, 1)))
    assert not measure(frame, schema, epsilon=3, unit="add-remove").schema.is_open
    named = Schema((column("kind", "categorical", levels="discover", max_length=10, pattern="[xy]"),))
    with pytest.raises(ParameterError, match="write the frame to Parquet"):
        measure(frame, named, workload=1, epsilon=1, delta=1e-9, unit="add-remove")
