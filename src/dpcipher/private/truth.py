"""True counts of any table, on demand. Private: only the door asks."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dpcipher.private.count import (
    Axes,
    Counts,
    Person,
    columns_of,
    count_batches,
    count_columns,
    limit_person,
)
from dpcipher.private.spark import count_spark, is_spark
from dpcipher.schema.schema import Schema
from dpcipher.tables.read import open_table

# Up to so many cells the full table answers every question; beyond, the coded rows stay in memory.
FULL_TABLE_CELLS = 2**20
# What one Spark job counts: a job has a fixed price of its own, and all of its counts come to the driver together.
TABLES_PER_JOB = 64
CELLS_PER_JOB = 2**20


class Truth(ABC):
    """What the private rows say: the counts of any table, and the number of rows."""

    n_rows: int

    @final
    def counts(self, axes: Axes) -> Counts:
        """The true counts over `axes`; over none, the number of rows."""
        return self._counts(axes) if axes else np.array(self.n_rows, dtype=np.int64)

    def many(self, tables: Sequence[Axes]) -> Iterator[Counts]:
        """The true counts of many tables, in their order, counted when they are asked for."""
        return (self.counts(axes) for axes in tables)

    @abstractmethod
    def _counts(self, axes: Axes) -> Counts:
        """The true counts over at least one axis."""


@final
class TableTruth(Truth):
    """The full table of counts."""

    def __init__(self, table: Counts) -> None:
        self._table = np.ascontiguousarray(table, dtype=np.int64)
        self.n_rows = int(self._table.sum())

    def _counts(self, axes: Axes) -> Counts:
        drop = tuple(axis for axis in range(self._table.ndim) if axis not in axes)
        return np.asarray(self._table.sum(axis=drop)) if drop else self._table


@final
class RowsTruth(Truth):
    """Coded rows, counted anew for every question."""

    def __init__(self, codes: NDArray[np.int32], shape: tuple[int, ...]) -> None:
        self._columns, self._shape = columns_of(codes), shape
        self.n_rows = len(codes)

    def _counts(self, axes: Axes) -> Counts:
        return count_columns(self._columns, self._shape, axes)


@final
class SparkTruth(Truth):
    """A Spark frame, counted by Spark for every question."""

    def __init__(self, frame: Any, schema: Schema, person: Person | None) -> None:
        self._frame, self._schema, self._person = frame, schema, person
        # Whatever the schema refuses is refused here, before anything is charged.
        self.n_rows = count_spark(
            frame, schema, [(axis,) for axis in range(len(schema.attrs))], person
        ).n_rows

    def _counts(self, axes: Axes) -> Counts:
        return count_spark(self._frame, self._schema, [axes], self._person).tables[0]

    def many(self, tables: Sequence[Axes]) -> Iterator[Counts]:
        """The true counts of many tables, in their order, several to a Spark job."""
        for job in jobs(tables, self._schema.shape):
            wanted = [axes for axes in job if axes]
            counted = iter(count_spark(self._frame, self._schema, wanted, self._person).tables)
            yield from (next(counted) if axes else self.counts(()) for axes in job)


def jobs(tables: Sequence[Axes], shape: tuple[int, ...]) -> Iterator[list[Axes]]:
    """Consecutive tables put together as far as they fit one job; a table that is too large has one to itself."""
    job: list[Axes] = []
    cells = 0
    for axes in tables:
        size = math.prod(shape[axis] for axis in axes)
        if job and (len(job) == TABLES_PER_JOB or cells + size > CELLS_PER_JOB):
            yield job
            job, cells = [], 0
        job.append(axes)
        cells += size
    if job:
        yield job


def open_truth(data: Any, schema: Schema, person: Person | None = None) -> Truth:
    """Read and encode private rows; every refusal of a row happens here."""
    whole = tuple(range(len(schema.attrs)))
    small = math.prod(schema.shape) <= FULL_TABLE_CELLS
    if is_spark(data):
        return (
            TableTruth(count_spark(data, schema, [whole], person).tables[0])
            if small
            else SparkTruth(data, schema, person)
        )
    wanted = dict.fromkeys([*schema.names, *([] if person is None else [person.column])])
    batches = open_table(data).batches(list(wanted))
    if small:
        return TableTruth(count_batches(batches, schema, [whole], person).tables[0])
    if person is not None:
        return RowsTruth(limit_person(batches, schema, person), schema.shape)
    blank = np.empty((0, len(whole)), dtype=np.int32)
    return RowsTruth(np.concatenate([blank, *(schema.encode(batch) for batch in batches)]), schema.shape)
