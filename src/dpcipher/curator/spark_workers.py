"""What Spark's Python workers run: the same encoding and the same kernel as elsewhere, on the rows of one partition.

Record batches are put together until they are worth a round of the kernel. A refusal goes out as a message among the results, not as an
exception, whose traceback would be Spark's and might quote a cell in its logs. Everything here depends on the rows of the partition and its number
alone, so that a task that Spark runs again gives the same answer, of which Spark takes one.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpcipher.curator.kernel import Columns, TableCounter
from dpcipher.curator.partials import add_packed, packed, pieces
from dpcipher.curator.persons import Owned, limit_owned, limited_owned, owned_rows
from dpcipher.errors import DpcipherError
from dpcipher.privacy.terms import Cap
from dpcipher.schema.narrow import code_type
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Axes, Counts, Shape

PARTIAL = "piece long, lane long, counts binary, refusal string"
OWNED = "owner string, codes binary, refusal string"
BLOCK = "codes binary, refusal string"
ROUND_ROWS = 2**17  # rows that are encoded and counted together
LANES = 64  # at most so many sums are made side by side before the last; Spark makes fewer where the counts are small
UNREADABLE = "data (Spark data frame) has cells of a type that cannot be read; cast its columns to numbers, texts, dates or truth values"

Batches = Iterable[pa.RecordBatch]
Refused = str


@dataclass(frozen=True)
class Counting:
    """Rows in; out come the counts of every table over this partition, in pieces. With a limit, the rows are coded and those of a person are all here."""

    schema: str
    tables: tuple[Axes, ...]
    max_rows: int | None = None

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """The counts of one partition."""
        schema = schema_of(self.schema)
        counter = TableCounter(schema.shape, self.tables)
        for columns in _coded(batches, schema, self.max_rows):
            if isinstance(columns, Refused):
                yield batch_of(PARTIAL, [0], [0], [None], [columns])
                return
            counter.add(columns)
        lane = _partition() % LANES
        for number, counts in pieces(counter.n_rows, counter.tables()):
            yield batch_of(PARTIAL, [number], [lane], [counts], [None])


@dataclass(frozen=True)
class Adding:
    """Counts of the same pieces in; their sums out."""

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """The sums of one partition."""
        sums: dict[int, Counts] = {}
        for batch in batches:
            refusal = first_refusal(batch)
            if refusal is not None:
                yield batch_of(PARTIAL, [0], [0], [None], [refusal])
                return
            for number, counts in zip(batch.column(0).to_pylist(), batch.column(2), strict=True):
                sums[number] = add_packed(sums.get(number), counts.as_buffer())
        for number, total in sums.items():
            yield batch_of(PARTIAL, [number], [0], [packed(total)], [None])


@dataclass(frozen=True)
class Owning:
    """Rows in; out come their persons and codes, of each person no more than could count: rows beyond that need not travel."""

    schema: str
    cap: Cap
    max_rows: int

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """The persons and codes of one partition."""
        schema = schema_of(self.schema)
        for table in rounds(batches):
            try:
                owners, columns = limit_owned(owned_rows(table, schema, self.cap), self.max_rows)
            except Exception as wrong:
                yield batch_of(OWNED, [None], [None], [refusal_of(wrong)])
                return
            codes = row_bytes(columns, schema.shape)
            yield batch_of(OWNED, owners.cast(pa.string()), codes, pa.nulls(len(codes), pa.string()))


@dataclass(frozen=True)
class Blocks:
    """Rows in; out come their codes, column after column, in blocks of some thousands of rows."""

    schema: str
    max_rows: int | None = None

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """The codes of one partition."""
        schema = schema_of(self.schema)
        for columns in _coded(batches, schema, self.max_rows):
            if isinstance(columns, Refused):
                yield batch_of(BLOCK, [None], [columns])
                return
            for start in range(0, len(columns[0]), ROUND_ROWS):
                yield batch_of(
                    BLOCK, [block_bytes([codes[start : start + ROUND_ROWS] for codes in columns])], [None]
                )


def _coded(batches: Batches, schema: Schema, max_rows: int | None) -> Iterator[Columns | Refused]:
    """The codes of the rows that count, round by round; or why a row was refused, and then nothing more."""
    try:
        if max_rows is None:
            for table in rounds(batches):
                yield schema.encode_columns(table)
        else:
            yield from limited_owned(_owned(batches, schema.shape), max_rows)
    except Exception as wrong:
        yield refusal_of(wrong)


class _Refusal(DpcipherError):
    """What an earlier worker refused."""


def _owned(batches: Batches, shape: Shape) -> Iterator[Owned]:
    for batch in batches:
        refusal = first_refusal(batch)
        if refusal is not None:
            raise _Refusal(refusal)
        yield batch.column(0).cast(pa.large_string()), columns_of_rows(batch.column(1), shape)


def rounds(batches: Batches) -> Iterator[pa.Table]:
    """Batches together, until they are worth a round."""
    waiting: list[pa.RecordBatch] = []
    n_rows = 0
    for batch in batches:
        waiting.append(batch)
        n_rows += batch.num_rows
        if n_rows >= ROUND_ROWS:
            yield pa.Table.from_batches(waiting)
            waiting, n_rows = [], 0
    if n_rows:
        yield pa.Table.from_batches(waiting)


def refusal_of(wrong: Exception) -> Refused:
    """What may be said of an error: our own words, and nothing of those of others, which may quote a cell."""
    if isinstance(wrong, MemoryError):  # Spark's to handle: a retry elsewhere may have more
        raise wrong
    return str(wrong) if isinstance(wrong, DpcipherError) else UNREADABLE


def first_refusal(batch: pa.RecordBatch) -> Refused | None:
    """Why a row was refused, where one was."""
    refusals = pc.drop_null(batch.column(batch.num_columns - 1))
    return refusals[0].as_py() if len(refusals) else None


@lru_cache(maxsize=4)
def schema_of(text: str) -> Schema:
    """The schema, made once in each worker."""
    return Schema.from_dict(json.loads(text))


def _partition() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else int(context.partitionId())


def row_bytes(columns: Columns, shape: Shape) -> pa.Array:
    """One value of bytes for each row, each code in the narrowest integer."""
    widths = [np.dtype(code_type(size)).itemsize for size in shape]
    rows = np.empty((len(columns[0]), sum(widths)), dtype=np.uint8)
    stops = np.cumsum(widths)
    for column, size, width, stop in zip(columns, shape, widths, stops, strict=True):
        narrow = np.ascontiguousarray(column, dtype=code_type(size))
        rows[:, stop - width : stop] = narrow.view(np.uint8).reshape(-1, width)
    fixed = pa.Array.from_buffers(pa.binary(rows.shape[1]), len(rows), [None, pa.py_buffer(rows)])
    return fixed.cast(pa.binary())


def columns_of_rows(rows: pa.Array, shape: Shape) -> Columns:
    """The columns of such values."""
    widths = [np.dtype(code_type(size)).itemsize for size in shape]
    fixed = rows.cast(pa.binary(sum(widths)))
    data = np.frombuffer(
        fixed.buffers()[1], np.uint8, len(rows) * sum(widths), offset=sum(widths) * fixed.offset
    )
    table = data.reshape(len(rows), sum(widths))
    stops = np.cumsum(widths)
    return [
        np.ascontiguousarray(table[:, stop - width : stop]).view(code_type(size)).reshape(-1)
        for size, width, stop in zip(shape, widths, stops, strict=True)
    ]


def block_bytes(columns: Columns) -> bytes:
    """Codes column after column, which have their narrowest types already."""
    return b"".join(np.ascontiguousarray(codes).tobytes() for codes in columns)


def columns_of_block(block: bytes, shape: Shape) -> Columns:
    """The columns of a block of rows."""
    types = [np.dtype(code_type(size)) for size in shape]
    n_rows = len(block) // sum(kind.itemsize for kind in types)
    stops = n_rows * np.cumsum([kind.itemsize for kind in types])
    return [
        np.frombuffer(block, kind, n_rows, offset=int(stop) - n_rows * kind.itemsize)
        for kind, stop in zip(types, stops, strict=True)
    ]


def batch_of(fields: str, *columns: Any) -> pa.RecordBatch:
    """A record batch with the fields of a Spark schema such as "piece long, counts binary"."""
    named = [field.split() for field in fields.split(", ")]
    kinds = {"long": pa.int64(), "string": pa.string(), "binary": pa.binary()}
    arrays = [
        column if isinstance(column, pa.Array) else pa.array(column, kinds[kind])
        for column, (_, kind) in zip(columns, named, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, names=[name for name, _ in named])
