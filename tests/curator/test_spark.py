"""Counting inside a real local Spark: the same counts, and only counts reach the driver."""

import itertools
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpcipher.curator.counts import RowCounts, count_codes, is_spark, open_counts, receive
from dpcipher.curator.measure import measure, open_session
from dpcipher.curator.spark import SparkRows
from dpcipher.errors import DataError, MissingExtra
from dpcipher.methods import PrivBayes
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.draws import Draws
from dpcipher.privacy.ledger import Account, Ledger
from dpcipher.privacy.terms import Privacy, Unit
from dpcipher.schema.schema import Schema
from dpcipher.tables.query import Query

SCHEMA = Schema.from_domain({"a": 2, "b": 3, "c": 4})
TABLES = list(itertools.combinations(range(3), 2))


def frame() -> pd.DataFrame:
    """Integer-coded rows with a column that says whose they are."""
    rng = np.random.default_rng(4)
    coded = {name: rng.integers(0, size, 5_000) for name, size in zip("abc", SCHEMA.shape, strict=True)}
    return pd.DataFrame(coded | {"who": rng.integers(0, 900, 5_000).astype(str)})


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore")
def test_spark_counts_are_bit_equal_to_the_kernel(spark: Any) -> None:
    """However many partitions hold the rows."""
    rows = frame()
    expected = count_codes(rows[list("abc")].to_numpy(dtype=np.int32), SCHEMA.shape, TABLES)
    for partitions in (1, 7):
        found = SparkRows(spark.createDataFrame(rows).repartition(partitions), SCHEMA).tally(TABLES)
        assert found.n_rows == expected.n_rows
        assert all(np.array_equal(a, b) for a, b in zip(found.tables, expected.tables, strict=True))


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore")
def test_spark_bounds_the_rows_of_a_person_across_partitions(spark: Any) -> None:
    """The rows of a person meet in one partition, so the limit holds whatever the layout."""
    rows = frame()
    terms = Privacy.parse(epsilon=1, unit="add-remove", max_rows=2, person="who")
    found = SparkRows(spark.createDataFrame(rows).repartition(5), SCHEMA, terms).tally(TABLES)
    assert found.n_rows == rows.groupby("who").size().clip(upper=2).sum()


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore")
def test_a_spark_frame_is_measured_like_any_other(spark: Any) -> None:
    """At a huge epsilon the release of a Spark frame is its counts."""
    rows = frame()
    release = measure(spark.createDataFrame(rows), SCHEMA, epsilon=90, unit="replace")
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
        SparkRows(object(), SCHEMA).tally(TABLES)


LARGE = Schema.from_domain({"a": 2, "b": 3, "d": 500, "e": 500})
QUESTIONS = [(), (2,), (0, 1), (1, 3)]


def large_frame() -> pd.DataFrame:
    """The same rows with two columns of many levels: a table too large to be held."""
    rng = np.random.default_rng(5)
    return frame().assign(d=rng.integers(0, 500, 5_000), e=rng.integers(0, 500, 5_000))


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "person",
    [None, Privacy.parse(epsilon=1, unit="add-remove", max_rows=2, person="who")],
    ids=["rows", "persons"],
)
def test_spark_answers_every_question_as_rows_in_memory_do(spark: Any, person: Privacy | None) -> None:
    """Beyond a million cells the coded rows are kept, and their counts are those of a pandas frame."""
    rows = large_frame()
    found = open_counts(receive(spark.createDataFrame(rows).repartition(3), LARGE, person), LARGE)
    expected = open_counts(receive(rows, LARGE, person), LARGE)
    assert isinstance(found, RowCounts)
    assert found.n_rows == expected.n_rows
    for axes in QUESTIONS:
        assert np.array_equal(found.counts(axes), expected.counts(axes))


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore")
def test_a_method_learns_the_same_from_spark_and_from_pandas(spark: Any) -> None:
    """With the same draws, the choices and tables of PrivBayes are the same, and so are its rows."""
    rows = large_frame()
    fits = [
        PrivBayes(5.0, unit="add-remove").fit_counts(
            open_counts(receive(data, LARGE), LARGE), LARGE, draws=Draws.seeded(3)
        )
        for data in (spark.createDataFrame(rows), rows)
    ]
    pd.testing.assert_frame_equal(*(fit.sample(400, seed=1) for fit in fits))


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore")
def test_a_session_of_a_large_spark_frame_charges_once_and_counts(spark: Any, tmp_path: Path) -> None:
    """At a huge epsilon its answers are the counts; a row outside the schema is refused before the charge."""
    rows, ledger = large_frame(), Ledger.create(tmp_path / "people.ledger", epsilon=90, unit="add-remove")
    terms, account = Privacy(Budget.parse(epsilon=90), Unit("add-remove")), Account(ledger)
    with pytest.raises(DataError, match="column 'd'"):
        open_session(spark.createDataFrame(rows.assign(d=rows["d"] + 1)), LARGE, terms, account, purpose={})
    assert ledger.entries == ()
    session = open_session(spark.createDataFrame(rows), LARGE, terms, account, purpose={})
    noisy = session.measure(Query((0, 1)), Fraction(1, 2)).values
    assert np.array_equal(noisy, pd.crosstab(rows["a"], rows["b"]).to_numpy())
    assert len(ledger.entries) == 1
