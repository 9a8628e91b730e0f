"""Synthetic rows as a Spark data frame, made by its executors: nothing is drawn here and nothing is sent but the joint and the numbers of batches.

Batch k of a stream is a function of the joint, the seed and k alone (`joint.stream`), so that executors need not know of one another, a task that is
run again makes the same rows, and the frame has the rows that the stream has here. The joint goes out once, as the bytes of its file; Spark
broadcasts it where it is large.
"""

import math
import re
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dpcipher.errors import DpcipherError, MissingExtra, ParameterError, TableFileError
from dpcipher.joint.stream import Draw, RowStream

if TYPE_CHECKING:
    from dpcipher.joint.joint import Joint

PARTITION_ROWS = (
    2**21
)  # of a partition, and so of a file that Spark writes of it, where nobody says how many there should be
_STORE = re.compile(
    r"^(s3[an]?|gs|abfss?|wasbs?|hdfs|oss|cosn):/(?=[^/])"
)  # addresses of stores, of which a path has lost a slash


def spark_rows(stream: RowStream, session: Any, *, partitions: int | None = None) -> Any:
    """The rows of a stream as a Spark data frame of `session`; times of day, for which Spark has no type of old, are texts."""
    count = _checked_partitions(partitions, stream)
    drawing = _Drawing(_joint_bytes(stream.joint), replace(stream.draw, given=dict(stream.draw.given)))
    numbers = session.range(0, len(stream), 1, count)
    return numbers.mapInArrow(drawing, session.createDataFrame(_plain(stream.empty())).schema)


def spark_session() -> Any:
    """The session of this process: the one that spark-submit or a notebook made, or a new one on this machine."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingExtra("spark", "PySpark") from None
    return SparkSession.builder.appName("dpcipher").getOrCreate()


def write_spark(frame: Any, folder: Path) -> None:
    """Write a Spark data frame as a new folder of Parquet files, one for each partition; Spark adds a file _SUCCESS when all are complete."""
    target = _STORE.sub(r"\1://", str(folder))
    try:
        frame.write.parquet(target)
    except DpcipherError:
        raise
    except Exception as wrong:
        there = "PATH_ALREADY_EXISTS" in str(wrong)
        reason = "is there already" if there else "could not be written by Spark, whose log says why"
        raise TableFileError(f"{target}: {reason}; choose another place") from None


@dataclass(frozen=True)
class _Drawing:
    """Numbers of batches in, their rows out. Spark ships it to its workers."""

    joint: bytes
    draw: Draw

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        stream = _stream(self)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from _plain(stream.batch(number)).to_batches()


@lru_cache(maxsize=1)
def _stream(drawing: _Drawing) -> RowStream:
    """The stream, made once in each worker."""
    from dpcipher.joint.joint import Joint

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "joint.npz"
        path.write_bytes(drawing.joint)
        joint = Joint.load(path)
    return RowStream(joint, drawing.draw)


def _joint_bytes(joint: "Joint") -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        return joint.save(Path(folder) / "joint.npz").read_bytes()


def _plain(rows: pa.Table) -> pa.Table:
    """Rows in types that every Spark has."""
    for place, column in enumerate(rows.schema):
        if pa.types.is_time(column.type):
            rows = rows.set_column(place, column.name, rows.column(place).cast(pa.string()))
    return rows.combine_chunks()


def _checked_partitions(partitions: int | None, stream: RowStream) -> int:
    if partitions is None:
        return max(1, math.ceil(stream.n_rows / PARTITION_ROWS))
    if isinstance(partitions, bool) or not isinstance(partitions, int) or partitions < 1:
        raise ParameterError(
            f"partitions ({partitions!r}) must be a whole number above 0; leave it out for one in {PARTITION_ROWS:,} rows"
        )
    return partitions
