"""Synthetic rows that Spark's executors draw: those of the stream, whoever draws them, and as the joint says."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from ruled import NAMES, SMALL, broken
from scipy.stats import chisquare

from dpcipher.cli import main
from dpcipher.errors import ParameterError, TableFileError
from dpcipher.joint import spark as spark_module
from dpcipher.joint.dense import DenseTable
from dpcipher.joint.joint import Joint
from dpcipher.joint.report import SolveReport
from dpcipher.schema import Schema, column

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]

COLUMNS = (
    column("colour", "categorical", levels=["red", "green", "blue"]),
    column("size", "integer", min=0, max=19, bins=4, special=[-9]),
    column("day", "date", min="2001-01-01", max="2001-12-31", bins=2, missing="level"),
    column("at", "time", min="08:00", max="20:00", bins=2),
)


def joint(schema: Schema = Schema(COLUMNS), seed: int = 0) -> Joint:  # noqa: B008 - a frozen value
    """A joint over some columns, of uneven cells."""
    cells = np.random.default_rng(seed).dirichlet(np.full(int(np.prod(schema.shape)), 0.4))
    return Joint(schema, DenseTable(cells.reshape(schema.shape)), 1000, SolveReport("table", why="as asked"))


def test_a_spark_frame_has_the_rows_of_the_stream(spark: Any) -> None:
    """Drawn by two workers in three partitions, with special values, dates and missing cells; times are texts there."""
    drawn = joint().stream(150_000, seed=5).to_spark(spark, partitions=3)
    expected = pa.concat_tables(joint().stream(150_000, seed=5)).to_pandas()
    expected["at"] = [str(time) for time in expected["at"]]
    assert drawn.rdd.getNumPartitions() == 3
    assert drawn.dtypes == [("colour", "string"), ("size", "bigint"), ("day", "date"), ("at", "string")]
    rows = drawn.toPandas()
    assert (rows["size"] == -9).any()
    assert rows["day"].isna().any()
    pd.testing.assert_frame_equal(rows, expected, check_dtype=False)


def test_rows_over_all_partitions_follow_the_joint(spark: Any) -> None:
    """A chi-squared test of independent rows against the cells; rows of one stream twice would fail it, and so does another joint."""
    source = joint(Schema.from_domain({"a": 3, "b": 4, "c": 2}))
    frame = source.stream(300_000, seed=8, independent=True).to_spark(spark, partitions=5)
    counted = frame.groupBy("a", "b", "c").count().toPandas()
    counts = np.zeros(source.core.shape)
    counts[counted["a"], counted["b"], counted["c"]] = counted["count"]
    wanted = 300_000 * source.core.project((0, 1, 2))
    other = 300_000 * joint(source.schema, seed=1).core.project((0, 1, 2))
    assert chisquare(counts.ravel(), wanted.ravel()).pvalue > 1e-4
    assert chisquare(counts.ravel(), other.ravel()).pvalue < 1e-20


def test_rules_and_conditions_hold_in_every_partition(spark: Any) -> None:
    """A judge that knows nothing of the package finds no row that breaks one."""
    frame = joint(SMALL).stream(70_000, seed=2, given={"married": "yes"}).to_spark(spark, partitions=2)
    rows = frame.toPandas()
    assert list(rows.columns) == list(NAMES)
    assert set(rows["married"]) == {"yes"}
    assert not any(broken(rows).values())


def test_the_command_writes_a_folder_of_parquet(spark: Any, tmp_path: Path) -> None:
    """The same rows as the file of the same seed; a folder that is there is not written over."""
    saved = joint(Schema.from_domain({"a": 3, "b": 4})).save(tmp_path / "joint.npz")
    asked = ["synth", str(saved), "-n", "70000", "--seed", "3", "-o"]
    folder, file = tmp_path / "rows.parquet", tmp_path / "file.parquet"
    assert CliRunner().invoke(main, [*asked, str(folder), "--spark"]).exit_code == 0
    assert CliRunner().invoke(main, [*asked, str(file)]).exit_code == 0
    assert (folder / "_SUCCESS").exists()
    assert pq.read_table(folder).equals(pq.read_table(file))
    with pytest.raises(TableFileError, match="is there already"):
        spark_module.write_spark(spark.range(3), folder)


@pytest.mark.parametrize("partitions", [0, True, 2.5])
def test_a_wrong_number_of_partitions_is_refused(partitions: Any) -> None:
    """Before Spark is asked for anything."""
    with pytest.raises(ParameterError, match="partitions"):
        joint().stream(10).to_spark(object(), partitions=partitions)


def test_addresses_of_stores_keep_their_slashes() -> None:
    """A path has one of the two slashes of an address; a path of this machine stays as it is."""

    class Frame:
        """Notes where it is written."""

        def __init__(self) -> None:
            self.written: list[str] = []
            self.write = self

        def parquet(self, target: str) -> None:
            """Note it."""
            self.written.append(target)

    frame = Frame()
    for place in ("s3a://bucket/rows", "hdfs://name:9000/rows", "/data/rows", "dbfs:/rows"):
        spark_module.write_spark(frame, Path(place))
    assert frame.written == ["s3a://bucket/rows", "hdfs://name:9000/rows", "/data/rows", "dbfs:/rows"]
