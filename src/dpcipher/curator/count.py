"""Counting: one kernel turns an Arrow record batch into partial counts of every table; whatever holds the rows feeds it.

Partial counts are integers, so their sum is the same whatever the chunks, their order or the threads. Stability: a row counts once in every
table, so that one row more or less changes one cell of each by one.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpcipher.curator.request import Person
from dpcipher.errors import DataError
from dpcipher.marginals.arrays import Axes, Codes, Counts
from dpcipher.schema.cells import as_id, by_type
from dpcipher.schema.schema import Schema

Owned = tuple[pa.Array, Codes]
LARGEST_INT32 = 2**31 - 1


@dataclass(frozen=True)
class Tally:
    """True counts of every table, and the number of rows behind them. Never leaves the private side."""

    n_rows: int
    tables: tuple[Counts, ...]

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(
            self.n_rows + other.n_rows, tuple(a + b for a, b in zip(self.tables, other.tables, strict=True))
        )


def empty_tally(schema: Schema, tables: Sequence[Axes]) -> Tally:
    """Zero rows."""
    return Tally(0, tuple(np.zeros([schema.shape[a] for a in axes], dtype=np.int64) for axes in tables))


def count_codes(codes: Codes, shape: tuple[int, ...], tables: Sequence[Axes]) -> Tally:
    """The kernel: coded rows to counts of every table."""
    columns = columns_of(codes)
    return Tally(len(codes), tuple(count_columns(columns, shape, axes) for axes in tables))


def columns_of(codes: Codes) -> list[Codes]:
    """The columns of coded rows, each in one piece of memory."""
    return [np.ascontiguousarray(codes[:, axis], dtype=np.int32) for axis in range(codes.shape[1])]


def count_columns(columns: Sequence[Codes], shape: tuple[int, ...], axes: Axes) -> Counts:
    """The counts of one table: every row is the number of its cell, and those are counted."""
    sizes = [shape[axis] for axis in axes]
    n_cells = math.prod(sizes)
    # 32 bits are half the memory to go through; only a table that large needs more for the number of a cell.
    width: type[np.signedinteger[Any]] = np.int32 if n_cells <= LARGEST_INT32 else np.int64
    number: NDArray[Any] = columns[axes[0]].astype(width, copy=len(axes) > 1)
    for axis in axes[1:]:
        number *= shape[axis]
        number += columns[axis]
    return np.bincount(number, minlength=n_cells).astype(np.int64, copy=False).reshape(sizes)


def count_batches(
    batches: Iterable[pa.RecordBatch], schema: Schema, tables: Sequence[Axes], person: Person | None = None
) -> Tally:
    """Add up the kernel's counts over a stream of batches."""
    tally = empty_tally(schema, tables)
    for codes in coded_rows(batches, schema, person):
        tally += count_codes(codes, schema.shape, tables)
    return tally


def coded_rows(
    batches: Iterable[pa.RecordBatch], schema: Schema, person: Person | None = None
) -> Iterator[Codes]:
    """The codes of the rows that count: of all, or of at most `max_rows` for each person."""
    if person is None:
        return (schema.encode(batch) for batch in batches)
    owned = [owned_rows(batch, schema, person) for batch in batches]
    return iter([limit_person(owned, person.max_rows)] if owned else [])


def owned_rows(batch: pa.RecordBatch, schema: Schema, person: Person) -> Owned:
    """Whose row each is, and its codes. A row that names nobody is refused, or left out as if it had never been there."""
    owner = by_type(batch.column(person.column), as_id).cast(pa.large_string())
    if owner.null_count and person.missing == "refuse":
        raise DataError(
            f"person column ({person.column}) has rows without a person; every row must say whose it is. Curator only: "
            "fill the column, or leave such rows out with missing_person='drop'"
        )
    named = pc.is_valid(owner)
    batch = batch.select(list(schema.names))
    return (owner.filter(named), schema.encode(batch.filter(named) if owner.null_count else batch))


def limit_person(owned: Sequence[Owned], max_rows: int) -> Codes:
    """Coded rows, at most `max_rows` of them for each person.

    Stability `max_rows`: which rows stay depends on each person's own rows alone (those with the smallest hash), not on the order of the
    table, so one person more or less changes the counts by that person's rows and no others.
    """
    rows = np.concatenate([codes for _, codes in owned])
    owner = pa.concat_arrays([ids for ids, _ in owned]).dictionary_encode().indices.to_numpy()
    order = np.lexsort((_row_hash(rows), owner))
    ranked = owner[order]
    starts = (
        np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1]]) if len(ranked) else np.empty(0, dtype=np.int64)
    )
    rank = np.arange(len(ranked)) - np.repeat(starts, np.diff(np.r_[starts, len(ranked)]))
    return np.asarray(rows[order[rank < max_rows]])


def _row_hash(rows: Codes) -> NDArray[np.uint64]:
    """A fixed mix of a row's codes; equal rows hash alike, and then it does not matter which of them stays."""
    mixed = np.full(len(rows), 0x9E3779B97F4A7C15, dtype=np.uint64)
    for column in rows.T:
        mixed ^= (
            column.astype(np.uint64)
            + np.uint64(0x9E3779B97F4A7C15)
            + (mixed << np.uint64(6))
            + (mixed >> np.uint64(2))
        )
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
    return mixed
