"""Encoding and counting a Spark data frame where its rows are: the same kernel inside each partition, and sums in Spark.

    rows ─▶ one set of counts for each partition ─▶ some sums ─▶ one sum ─▶ here

Each partition gives its counts once, however many rows it has, and they are added up in two steps, so that two thousand partitions cost no more
than eight but for being started. What a task gives is taken once: where Spark runs one again, because a worker died or was slow, it
drops the other answer. Where later questions need the rows, their codes are made once in Spark, in the narrowest integers, and then brought here.
"""

import json
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, final

from dpcipher.curator.counts import Tally, wanted_columns
from dpcipher.curator.held import HeldRows
from dpcipher.curator.kernel import Columns
from dpcipher.curator.spark_workers import (
    BLOCK,
    OWNED,
    PARTIAL,
    Adding,
    Blocks,
    Counting,
    Owning,
    add_packed,
    assembled,
    columns_of_block,
)
from dpcipher.curator.texts import NO_TEXTS
from dpcipher.errors import DataError, DpcipherError, MissingExtra, TableFileError
from dpcipher.io.header import check_names
from dpcipher.privacy.terms import Privacy
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Axes

FETCHED_BYTES = 2**26  # of codes that come here in one job


@final
class SparkRows:
    """Rows of a Spark data frame, encoded where they are; as `curator.counts.LocalRows`, they are read once."""

    kind, extra, drops_blank_rows, texts = "spark", "", False, NO_TEXTS

    def __init__(self, frame: Any, schema: Schema, privacy: Privacy | None = None) -> None:
        self._frame, self._schema, self._privacy = frame, schema, privacy

    def tally(self, tables: Sequence[Axes]) -> Tally:
        """Count in every partition, sum the counts in Spark, collect the sum."""
        _functions()
        rows, max_rows = self._coded()
        partial = rows.mapInArrow(Counting(_facts(self._schema), tuple(tables), max_rows), PARTIAL)
        lanes = partial.repartition("lane", "piece").mapInArrow(Adding(), PARTIAL)
        rows = _run(lanes.repartition(1).mapInArrow(Adding(), PARTIAL).collect)
        _refuse(row["refusal"] for row in rows)
        sums = {row["piece"]: add_packed(None, row["counts"]) for row in rows}
        return Tally(*assembled(sums, self._schema.shape, tables))

    def rows(self) -> list[Columns]:
        """The codes of all rows, brought here into a file that has no name and no other reader: Spark would read its source again for every question.

        They are made in Spark by one job, all partitions side by side, and held there while they are fetched some megabytes at a time: the number of
        jobs follows the size of the codes, not the number of partitions.
        """
        functions = _functions()
        rows, max_rows = self._coded()
        blocks = rows.mapInArrow(Blocks(_facts(self._schema), max_rows), BLOCK).persist()
        held = HeldRows(in_file=True)

        def fetch() -> None:
            size = functions.sum(functions.length("codes")).alias("bytes")
            [made] = blocks.agg(size, functions.min("refusal").alias("refusal")).collect()
            _refuse([made["refusal"]])
            jobs = max(1, math.ceil((made["bytes"] or 0) / FETCHED_BYTES))
            for row in blocks.coalesce(jobs).toLocalIterator():
                held.add(columns_of_block(row["codes"], self._schema.shape))

        try:
            _run(fetch)
        finally:
            blocks.unpersist()
        return held.blocks

    def _coded(self) -> tuple[Any, int | None]:
        """What workers read: the columns that are needed. With persons, coded rows and the limit; a person is in one partition."""
        privacy, wanted = self._privacy, wanted_columns(self._schema, self._privacy)
        check_names(self._frame.columns, wanted)
        rows = self._frame.select(*("`" + name.replace("`", "``") + "`" for name in wanted))
        if privacy is None or privacy.cap is None:
            return rows, None
        owning = Owning(_facts(self._schema), privacy.cap, privacy.unit.max_rows)
        return rows.mapInArrow(owning, OWNED).repartition("owner"), privacy.unit.max_rows


def _functions() -> Any:
    try:
        from pyspark.sql import functions
    except ImportError:
        raise MissingExtra("spark", "PySpark") from None
    return functions


def _facts(schema: Schema) -> str:
    """The schema as text, which Spark ships to its workers."""
    return json.dumps(schema.to_dict())


def _run(job: Callable[[], Any]) -> Any:
    """Spark's answer; whatever it raises may quote cells, and is said in our words."""
    try:
        return job()
    except DpcipherError:
        raise
    except Exception as wrong:
        if "No module named 'dpcipher" in str(wrong):
            raise TableFileError(
                "data (Spark data frame) must be read by workers that have dpcipher; install it on the executors too, or let PYSPARK_PYTHON "
                "name a Python that has it"
            ) from None
        raise TableFileError(
            "data (Spark data frame) could not be read to its end; run frame.count() to see Spark's own reason"
        ) from None


def _refuse(refusals: Iterable[str | None]) -> None:
    for refusal in refusals:
        if refusal is not None:
            raise DataError(refusal)
