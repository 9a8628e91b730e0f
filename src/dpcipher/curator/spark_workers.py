"""What Spark's workers run: rows to codes and counts, and the bytes in which they come back."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpcipher.curator.kernel import Columns, TableCounter
from dpcipher.curator.persons import Owned, limit_owned, limited_owned, owned_rows
from dpcipher.errors import DataError, DpcipherError
from dpcipher.privacy.terms import Cap
from dpcipher.schema.cells import code_type
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Axes, Counts, Shape

PIECE_CELLS = 2**18


def pieces(n_rows: int, tables: Sequence[Counts]) -> Iterator[tuple[int, bytes]]:
    """The number of each piece that is not empty, and its bytes; the first has the number of rows."""
    flat = np.concatenate([[n_rows], *(table.reshape(-1) for table in tables)])
    for number, start in enumerate(range(0, len(flat), PIECE_CELLS)):
        piece = flat[start : start + PIECE_CELLS]
        if number == 0 or piece.any():
            yield number, packed(piece)


def assembled(
    parts: dict[int, Counts], shape: Sequence[int], tables: Sequence[Axes]
) -> tuple[int, tuple[Counts, ...]]:
    """The number of rows and the counts of every table, from the sums of pieces; what is absent is empty."""
    sizes = [[shape[axis] for axis in axes] for axes in tables]
    stops = np.cumsum([1, *(int(np.prod(size)) for size in sizes)])
    flat = np.zeros(int(stops[-1]), dtype=np.int64)
    for number, counts in parts.items():
        place = number * PIECE_CELLS
        flat[place : place + PIECE_CELLS] = counts[: len(flat) - place]
    filled = (
        flat[start:stop].reshape(size) for start, stop, size in zip(stops, stops[1:], sizes, strict=False)
    )
    return int(flat[0]), tuple(filled)


def packed(counts: Counts) -> bytes:
    """Counts of a piece as bytes."""
    whole = np.zeros(PIECE_CELLS, dtype=np.int64)
    whole[: len(counts)] = counts
    return bytes(pa.compress(whole, codec="zstd", asbytes=True))


def add_packed(total: Counts | None, packed_counts: bytes) -> Counts:
    """Counts of a piece added to others of the same piece; the result may be `total` itself."""
    piece = pa.decompress(packed_counts, decompressed_size=8 * PIECE_CELLS, codec="zstd")
    counts = np.frombuffer(piece, dtype=np.int64)
    return counts.copy() if total is None else np.add(total, counts, out=total)


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
                rows = slice(start, start + ROUND_ROWS)
                codes = b"".join(np.ascontiguousarray(column[rows]).tobytes() for column in columns)
                yield batch_of(BLOCK, [codes], [None])


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


def _owned(batches: Batches, shape: Shape) -> Iterator[Owned]:
    for batch in batches:
        refusal = first_refusal(batch)
        if refusal is not None:
            raise DataError(refusal)  # of an earlier worker
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
