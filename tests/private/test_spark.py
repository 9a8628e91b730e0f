"""Counting inside a real local Spark: the same counts, and only counts reach the driver."""

import itertools
import os
import shutil
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

from conftest import missing
from dpcipher.errors import MissingExtra
from dpcipher.private import spark as spark_module
from dpcipher.private.count import Person, count_codes
from dpcipher.private.sanitize import measure
from dpcipher.private.spark import count_spark, is_spark
from dpcipher.schema.schema import Schema

SCHEMA = Schema.from_domain({"a": 2, "b": 3, "c": 4})
TABLES = list(itertools.combinations(range(3), 2))


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    """A Spark session of two local threads."""
    if shutil.which("java") is None:
        missing("spark", "no Java on the path")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from pyspark.sql import SparkSession
    except ImportError:
        missing("spark", "PySpark is not installed")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "2").config(
        "spark.driver.bindAddress", "127.0.0.1"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        running = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
    running.sparkContext.setLogLevel("ERROR")
    yield running
    running.stop()


def frame() -> pd.DataFrame:
    """Integer-coded rows with a column that says whose they are."""
    rng = np.random.default_rng(4)
    coded = {name: rng.integers(0, size, 5_000) for name, size in zip("abc", SCHEMA.shape, strict=True)}
    return pd.DataFrame(coded | {"who": rng.integers(0, 900, 5_000).astype(str)})


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore")
def test_spark_counts_are_bit_equal_to_the_kernel(session: Any) -> None:
    """However many partitions hold the rows."""
    rows = frame()
    expected = count_codes(rows[list("abc")].to_numpy(dtype=np.int32), SCHEMA.shape, TABLES)
    for partitions in (1, 7):
        found = count_spark(session.createDataFrame(rows).repartition(partitions), SCHEMA, TABLES)
        assert found.n_rows == expected.n_rows
        assert all(np.array_equal(a, b) for a, b in zip(found.tables, expected.tables, strict=True))


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore")
def test_spark_bounds_the_rows_of_a_person_across_partitions(session: Any) -> None:
    """The rows of a person meet in one partition, so the limit holds whatever the layout."""
    rows = frame()
    found = count_spark(session.createDataFrame(rows).repartition(5), SCHEMA, TABLES, Person("who", 2))
    assert found.n_rows == rows.groupby("who").size().clip(upper=2).sum()


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore")
def test_a_spark_frame_is_measured_like_any_other(session: Any) -> None:
    """At a huge epsilon the release of a Spark frame is its counts."""
    rows = frame()
    release = measure(session.createDataFrame(rows), SCHEMA, epsilon=90, unit="replace")
    truth = pd.crosstab(rows["a"], rows["b"]).to_numpy()
    assert release.n_rows == len(rows)
    assert np.abs(np.asarray(release.project(("a", "b"))) - truth).max() < 3


def test_other_frames_are_not_taken_for_spark() -> None:
    """The check needs no Spark."""
    assert not is_spark(frame())


def test_without_pyspark_the_error_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing extra says how to install it."""
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(MissingExtra, match=r"pip install 'dpcipher\[spark\]'"):
        spark_module.count_spark(object(), SCHEMA, TABLES)
