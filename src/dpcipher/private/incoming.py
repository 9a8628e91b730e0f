"""What came in: private rows that are opened once and read once, before anything is charged.

Nothing here goes back to the source after a charge: what a later question may need is held as counts or as coded rows.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, final

import numpy as np
import pyarrow as pa

from dpcipher.private.count import Axes, Codes, Person, Tally, coded_rows, count_batches
from dpcipher.private.spark import is_spark, spark_rows, spark_tally
from dpcipher.schema.schema import Schema
from dpcipher.tables.read import Source, open_table

CHUNK_ROWS = 2**17  # coded rows are kept in pieces of about so many


class Incoming(ABC):
    """Private rows that have not been read yet; `kind` is the library that holds them. Either method reads them, once."""

    kind: str

    @abstractmethod
    def tally(self, tables: Sequence[Axes]) -> Tally:
        """The true counts of these tables."""

    @abstractmethod
    def rows(self) -> list[Codes]:
        """The codes of all rows that count, in pieces."""


@final
class LocalRows(Incoming):
    """Rows of a file, a frame or a stream."""

    def __init__(self, source: Source, schema: Schema, person: Person | None) -> None:
        self.kind, self._source, self._schema, self._person = source.kind, source, schema, person

    def tally(self, tables: Sequence[Axes]) -> Tally:
        """Counted batch by batch, in one pass."""
        return count_batches(self._batches(), self._schema, tables, self._person)

    def rows(self) -> list[Codes]:
        """Kept in memory."""
        return list(_joined(coded_rows(self._batches(), self._schema, self._person)))

    def _batches(self) -> Iterator[pa.RecordBatch]:
        return self._source.batches(wanted_columns(self._schema, self._person))


@final
class SparkRows(Incoming):
    """Rows of a Spark data frame, encoded where they are."""

    kind = "spark"

    def __init__(self, frame: Any, schema: Schema, person: Person | None) -> None:
        self._frame, self._schema, self._person = frame, schema, person

    def tally(self, tables: Sequence[Axes]) -> Tally:
        """Counted by Spark; only counts reach this process."""
        return spark_tally(self._frame, self._schema, tables, self._person)

    def rows(self) -> list[Codes]:
        """Codes on a file of this process that has no name, since Spark would read its source again for every question."""
        return spark_rows(self._frame, self._schema, self._person)


def receive(data: Any, schema: Schema, person: Person | None = None) -> Incoming:
    """Open private rows, of whatever kind, without reading them."""
    if is_spark(data):
        return SparkRows(data, schema, person)
    return LocalRows(open_table(data), schema, person)


def wanted_columns(schema: Schema, person: Person | None) -> list[str]:
    """The columns to read, each once."""
    return list(dict.fromkeys([*schema.names, *([] if person is None else [person.column])]))


def _joined(pieces: Iterable[Codes]) -> Iterator[Codes]:
    """Pieces put together until they are worth a round of their own."""
    waiting: list[Codes] = []
    for piece in pieces:
        waiting.append(piece)
        if sum(map(len, waiting)) >= CHUNK_ROWS:
            yield np.concatenate(waiting)
            waiting = []
    if waiting:
        yield np.concatenate(waiting)
