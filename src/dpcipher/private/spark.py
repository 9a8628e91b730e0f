"""Counting a Spark data frame where its rows are: the same kernel inside each partition, only counts reach the driver."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from dpcipher.errors import MissingExtra
from dpcipher.private.count import Axes, Person, Tally, count_batches, empty_tally
from dpcipher.schema.schema import Schema

PARTIAL = "cell long, count long"


def is_spark(data: object) -> bool:
    """Whether `data` is a Spark data frame, told without importing Spark."""
    return any(
        base.__module__.startswith("pyspark.sql") and base.__name__ == "DataFrame"
        for base in type(data).__mro__
    )


def count_spark(frame: Any, schema: Schema, tables: Sequence[Axes], person: Person | None = None) -> Tally:
    """Run the kernel in every partition with mapInArrow, sum the partial counts in Spark, collect the sums."""
    try:
        from pyspark.sql import functions
    except ImportError:
        raise MissingExtra("spark", "PySpark") from None
    wanted = [*(column.name for column in schema.columns), *([person.column] if person else [])]
    rows = frame.select(*dict.fromkeys(wanted))
    if person is not None:  # all rows of a person meet in one partition, so the limit holds there
        rows = rows.repartition(person.column)
    partial = rows.mapInArrow(_Kernel(schema, tuple(tables), person), PARTIAL)
    sums = partial.groupBy("cell").agg(functions.sum("count").alias("count")).collect()
    return _assemble(schema, tables, {int(row["cell"]): int(row["count"]) for row in sums})


class _Kernel:
    """The function that Spark ships to its workers: record batches in, sparse partial counts out."""

    def __init__(self, schema: Schema, tables: tuple[Axes, ...], person: Person | None) -> None:
        self.facts, self.tables, self.person = schema.to_dict(), tables, person

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = Schema.from_dict(self.facts)
        tally = count_batches(batches, schema, self.tables, self.person)
        flat = np.concatenate([[tally.n_rows], *(table.ravel() for table in tally.tables)]).astype(np.int64)
        seen = np.flatnonzero(flat)
        yield pa.RecordBatch.from_arrays([pa.array(seen), pa.array(flat[seen])], names=["cell", "count"])


def _assemble(schema: Schema, tables: Sequence[Axes], sums: dict[int, int]) -> Tally:
    """Cell 0 is the number of rows; the tables follow one another."""
    blank = empty_tally(schema, tables)
    flat = np.zeros(1 + sum(table.size for table in blank.tables), dtype=np.int64)
    flat[list(sums)] = list(sums.values())
    ends = np.cumsum([1, *(table.size for table in blank.tables)])
    filled = (
        flat[start:stop].reshape(table.shape)
        for start, stop, table in zip(ends, ends[1:], blank.tables, strict=False)
    )
    return Tally(int(flat[0]), tuple(filled))
