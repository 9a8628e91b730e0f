"""Encoding and counting a Spark data frame where its rows are: the same kernel inside each partition.

A refusal travels back as a message among the results, not as an exception of a worker, whose traceback would be Spark's and not ours.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpcipher.curator.count import Tally, columns_of, count_codes, empty_tally
from dpcipher.curator.kernel import Columns
from dpcipher.curator.persons import Owned, limit_person, owned_rows
from dpcipher.curator.request import Person
from dpcipher.curator.spill import HeldRows
from dpcipher.errors import DataError, DpcipherError, MissingExtra, TableFileError
from dpcipher.marginals.arrays import Axes, Codes
from dpcipher.schema.narrow import code_type
from dpcipher.schema.schema import Schema
from dpcipher.tables.header import check_names

PARTIAL = "cell long, count long, refusal string"
CODED = "owner string, codes binary, refusal string"
BLOB = "codes binary, refusal string"
BLOB_ROWS = 2**17

Batches = Iterable[pa.RecordBatch]


def spark_tally(frame: Any, schema: Schema, tables: Sequence[Axes], person: Person | None = None) -> Tally:
    """Count in every partition, sum the partial counts in Spark, collect the sums."""
    functions = _functions()
    counting = _Counting(schema.to_dict(), tuple(tables), None if person is None else person.max_rows)
    partial = _coded(frame, schema, person).mapInArrow(counting, PARTIAL)
    sums = partial.groupBy("cell", "refusal").agg(functions.sum("count").alias("count"))
    rows = _run(sums.collect)
    _refuse(row["refusal"] for row in rows)
    return _assemble(schema, tables, {int(row["cell"]): int(row["count"]) for row in rows})


def spark_rows(frame: Any, schema: Schema, person: Person | None = None) -> list[Columns]:
    """The codes of all rows, brought here partition by partition into a file that has no name and no other reader."""
    _functions()
    width = len(schema.attrs)
    blobs = _coded(frame, schema, person).mapInArrow(
        _Packing(width, None if person is None else person.max_rows), BLOB
    )
    held = HeldRows(in_file=True)

    def fetch() -> None:
        for row in blobs.toLocalIterator():
            _refuse([row["refusal"]])
            codes = np.frombuffer(row["codes"], np.int32).reshape((-1, width), order="F")
            held.add([codes[:, axis].astype(code_type(size)) for axis, size in enumerate(schema.shape)])

    _run(fetch)
    return held.blocks


def _functions() -> Any:
    try:
        from pyspark.sql import functions
    except ImportError:
        raise MissingExtra("spark", "PySpark") from None
    return functions


def _coded(frame: Any, schema: Schema, person: Person | None) -> Any:
    """Coded rows as a Spark frame; with persons, those of one person in one partition, so that a limit holds there."""
    wanted = list(dict.fromkeys([*schema.names, *([person.column] if person else [])]))
    check_names(frame.columns, wanted)
    rows = frame.select(*("`" + name.replace("`", "``") + "`" for name in wanted))
    coded = rows.mapInArrow(_Encoding(schema.to_dict(), person), CODED)
    return coded if person is None else coded.repartition("owner")


@dataclass(frozen=True)
class _Encoding:
    """Record batches in, owners and codes out. Spark ships it to its workers."""

    facts: dict[str, object]
    person: Person | None

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        schema = Schema.from_dict(self.facts)
        for batch in batches:
            try:
                yield self._encoded(batch, schema)
            except DpcipherError as refusal:
                yield _batch(CODED, [None], [None], [str(refusal)])
                return

    def _encoded(self, batch: pa.RecordBatch, schema: Schema) -> pa.RecordBatch:
        if self.person is None:
            codes = schema.encode(batch)
            return _batch(
                CODED, pa.nulls(len(codes), pa.string()), _packed(codes), pa.nulls(len(codes), pa.string())
            )
        owner, columns = owned_rows(batch, schema, self.person)
        codes = _stacked(columns)
        return _batch(CODED, owner.cast(pa.string()), _packed(codes), pa.nulls(len(codes), pa.string()))


@dataclass(frozen=True)
class _Counting:
    """Coded rows in, sparse partial counts of every table out."""

    facts: dict[str, object]
    tables: tuple[Axes, ...]
    max_rows: int | None

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        schema = Schema.from_dict(self.facts)
        tally = empty_tally(schema, self.tables)
        for codes, refusal in _limited(batches, len(schema.attrs), self.max_rows):
            if refusal is not None:
                yield _batch(PARTIAL, [-1], [0], [refusal])
                return
            tally += count_codes(codes, schema.shape, self.tables)
        flat = np.concatenate([[tally.n_rows], *(table.ravel() for table in tally.tables)]).astype(np.int64)
        seen = np.flatnonzero(flat)
        yield _batch(PARTIAL, pa.array(seen), pa.array(flat[seen]), pa.nulls(len(seen), pa.string()))


@dataclass(frozen=True)
class _Packing:
    """Coded rows in, one value for some thousands of them out, each column in one piece."""

    width: int
    max_rows: int | None

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        for codes, refusal in _limited(batches, self.width, self.max_rows):
            if refusal is not None:
                yield _batch(BLOB, [b""], [refusal])
                return
            for start in range(0, len(codes), BLOB_ROWS):
                yield _batch(BLOB, [codes[start : start + BLOB_ROWS].tobytes(order="F")], [None])


def _limited(batches: Batches, width: int, max_rows: int | None) -> Iterator[tuple[Codes, str | None]]:
    """The codes of a partition, at most `max_rows` for each person; or why a row was refused."""
    owned: list[Owned] = []
    for batch in batches:
        refusals = pc.drop_null(batch.column("refusal"))
        if len(refusals):
            yield np.empty((0, width), dtype=np.int32), refusals[0].as_py()
            return
        codes = _unpacked(batch.column("codes"), width)
        if max_rows is None:
            yield codes, None
        else:
            owned.append((batch.column("owner").cast(pa.large_string()), columns_of(codes)))
    if owned and max_rows is not None:
        yield _stacked(limit_person(owned, max_rows)), None


def _stacked(columns: Columns) -> Codes:
    """Columns as rows of equal width, which Spark ships one by one."""
    return np.stack([column.astype(np.int32, copy=False) for column in columns], axis=1)


def _packed(codes: Codes) -> pa.Array:
    """One value of bytes for each row."""
    width = 4 * codes.shape[1]
    data = pa.py_buffer(np.ascontiguousarray(codes).tobytes())
    return pa.Array.from_buffers(pa.binary(width), len(codes), [None, data]).cast(pa.binary())


def _unpacked(cells: pa.Array, width: int) -> Codes:
    fixed = cells.cast(pa.binary(4 * width))
    flat = np.frombuffer(fixed.buffers()[1], np.int32, len(cells) * width, offset=4 * width * fixed.offset)
    return flat.reshape(len(cells), width)


def _batch(fields: str, *columns: Any) -> pa.RecordBatch:
    """A record batch with the fields of a Spark schema such as "cell long, count long"."""
    named = [field.split() for field in fields.split(", ")]
    kinds = {"long": pa.int64(), "string": pa.string(), "binary": pa.binary()}
    arrays = [
        column if isinstance(column, pa.Array) else pa.array(column, kinds[kind])
        for column, (_, kind) in zip(columns, named, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, names=[name for name, _ in named])


def _run(job: Callable[[], Any]) -> Any:
    """Spark's answer; whatever it raises may quote cells, and is said in our words."""
    try:
        return job()
    except DpcipherError:
        raise
    except Exception:
        raise TableFileError(
            "data (Spark data frame) could not be read to its end; run frame.count() to see Spark's own reason"
        ) from None


def _refuse(refusals: Iterable[str | None]) -> None:
    for refusal in refusals:
        if refusal is not None:
            raise DataError(refusal)


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
