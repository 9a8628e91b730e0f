"""Rows of persons: whose each is, and at most `max_rows` of each.

Rows are compared within a person only. Where all rows with their persons are too many for memory, they go to files without a name
(`curator.held`), partition by partition: which partition a person is in depends on the name alone.
"""

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpcipher.curator import held
from dpcipher.curator.held import UnnamedFile, says_what_is_full
from dpcipher.curator.kernel import Columns, in_threads, joined_columns
from dpcipher.curator.texts import NO_TEXTS, Dictionaries, numbered
from dpcipher.errors import DataError
from dpcipher.io.source import Source
from dpcipher.privacy.terms import Cap
from dpcipher.schema.cells import as_id, by_type
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Codes

Owned = tuple[pa.Array, Columns]  # whose each row is, and its codes

Hashes = Mapping[int, NDArray[np.uint64]]  # for some axes, a number for each code
NO_HASHES: Hashes = MappingProxyType({})

PARTITIONS = 64


def limited_rows(
    batches: Iterable[pa.RecordBatch], schema: Schema, cap: Cap, max_rows: int, texts: Dictionaries = NO_TEXTS
) -> Iterator[Columns]:
    """Coded rows, at most `max_rows` of each person."""
    owned = in_threads(lambda batch: owned_rows(batch, schema, cap, texts), batches)

    def hashes() -> Hashes:
        return {schema.attrs.index(name): dictionary.hashes() for name, dictionary in texts.items()}

    return limited_owned(owned, max_rows, hashes)


def kept_codes(
    source: Source, schema: Schema, person: str, max_rows: int, texts: Dictionaries = NO_TEXTS
) -> Codes:
    """The codes of at most `max_rows` rows of each person, in one array: for scores, which see rows as the measured tables do."""
    wanted = list(dict.fromkeys((*schema.names, person)))
    with closing(source.batches(tuple(wanted))) as batches:
        parts = list(limited_rows(batches, schema, Cap(person, "drop"), max_rows, texts))
    none: Codes = np.empty((0, len(schema.attrs)), dtype=np.int32)
    return np.concatenate([none, *(np.column_stack(columns).astype(np.int32) for columns in parts)])


def limited_owned(
    owned: Iterable[Owned], max_rows: int, hashes: Callable[[], Hashes] = lambda: NO_HASHES
) -> Iterator[Columns]:
    """At most `max_rows` rows of each person: of all persons at once or, where they are too many for memory, of some at a time.

    All rows of a person are in one partition, so that it does not matter in which. `hashes` are asked for when all rows are there.
    """
    waiting: list[Owned] = []
    n_bytes, partitions = 0, None
    for names, columns in owned:
        n_bytes += names.nbytes + sum(column.nbytes for column in columns)
        waiting.append((names, columns))
        if partitions is None and n_bytes > held.MEMORY_BYTES:
            partitions = [_Partition() for _ in range(PARTITIONS)]
        if partitions is not None:
            while waiting:
                _distribute(*waiting.pop(), partitions)
    numbers = hashes()
    if waiting:
        yield limit_person(waiting, max_rows, numbers)
    for partition in partitions or ():
        if partition.is_used:
            yield limit_person(partition.read(), max_rows, numbers)


def owned_rows(batch: pa.RecordBatch, schema: Schema, cap: Cap, texts: Dictionaries = NO_TEXTS) -> Owned:
    """Whose row each is, and its codes. A row that names nobody is refused, or left out as if it had never been there."""
    owner = by_type(batch.column(cap.column), as_id).cast(pa.large_string())
    if owner.null_count and cap.blank == "refuse":
        raise DataError(
            f"person column ({cap.column}) has rows without a person; every row must say whose it is. Curator only: "
            "fill the column, or leave such rows out with missing_person='drop'"
        )
    named = pc.is_valid(owner)
    batch = batch.select(list(schema.names))
    batch = numbered(batch.filter(named) if owner.null_count else batch, texts)
    return (owner.filter(named), schema.encode_columns(batch))


def limit_person(owned: Sequence[Owned], max_rows: int, hashes: Hashes = NO_HASHES) -> Columns:
    """Coded rows, at most `max_rows` of them for each person.

    Stability `max_rows`: which rows stay depends on each person's own rows alone (those with the smallest hash), not on the order of the
    table, so one person more or less changes the counts by that person's rows and no others. Where the code of a cell depends on more than the cell,
    as the number of a private text does, `hashes` has for each code a number that does not.
    """
    rows = joined_columns([columns for _, columns in owned])
    kept = _kept(pa.concat_arrays([ids for ids, _ in owned]), rows, max_rows, hashes)
    return [column[kept] for column in rows]


def limit_owned(owned: Owned, max_rows: int) -> Owned:
    """Some of the rows with their persons: all that `limit_person` can still keep once the other rows of these persons are there."""
    names, rows = owned
    kept = _kept(names, rows, max_rows)
    return names.take(pa.array(kept)), [column[kept] for column in rows]


def _kept(names: pa.Array, rows: Columns, max_rows: int, hashes: Hashes = NO_HASHES) -> NDArray[np.intp]:
    """Which rows stay, by number."""
    owner = names.dictionary_encode().indices.to_numpy()
    order = np.lexsort((_row_hash(rows, hashes), owner))
    ranked = owner[order]
    starts = (
        np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1]]) if len(ranked) else np.empty(0, dtype=np.int64)
    )
    rank = np.arange(len(ranked)) - np.repeat(starts, np.diff(np.r_[starts, len(ranked)]))
    return np.asarray(order[rank < max_rows])


def _row_hash(rows: Columns, hashes: Hashes = NO_HASHES) -> NDArray[np.uint64]:
    """A fixed mix of a row's codes; equal rows hash alike, and then it does not matter which of them stays.

    Each code is mixed in by a permutation of 64-bit numbers (SplitMix64: Steele, Lea and Flood 2014).
    """
    mixed = np.zeros(len(rows[0]), dtype=np.uint64)
    for axis, column in enumerate(rows):
        mixed += hashes[axis][column] if axis in hashes else column.astype(np.uint64)
        mixed += np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
    return mixed


def _distribute(names: pa.Array, columns: Columns, partitions: "Sequence[_Partition]") -> None:
    """Each row to the partition of its person, which the name alone decides."""
    distinct = names.dictionary_encode()
    places = [zlib.crc32(name.encode()) % len(partitions) for name in distinct.dictionary.to_pylist()]
    place = np.array(places, dtype=np.intp)[distinct.indices.to_numpy()]
    order = np.argsort(place, kind="stable")
    rows = pa.RecordBatch.from_arrays(
        [names, *map(pa.array, columns)], [str(i) for i in range(len(columns) + 1)]
    ).take(pa.array(order))
    stops = np.cumsum(np.bincount(place, minlength=len(partitions)))
    for partition, start, stop in zip(partitions, [0, *stops], stops, strict=False):
        if stop > start:
            partition.add(rows.slice(start, stop - start))


class _Partition:
    """The rows of some persons, in a file."""

    def __init__(self) -> None:
        self._home = UnnamedFile()
        self._writer: pa.RecordBatchStreamWriter | None = None

    @property
    def is_used(self) -> bool:
        """Whether there are rows."""
        return self._writer is not None

    def add(self, rows: pa.RecordBatch) -> None:
        """Add rows."""
        with says_what_is_full():
            if self._writer is None:
                self._writer = pa.ipc.new_stream(self._home.file, rows.schema)
            self._writer.write_batch(rows)

    def read(self) -> list[Owned]:
        """All rows, once."""
        assert self._writer is not None
        with says_what_is_full():
            self._writer.close()
            self._home.file.seek(0)
            with pa.ipc.open_stream(self._home.file) as stream:
                return [
                    (batch.column(0), [codes.to_numpy() for codes in batch.columns[1:]]) for batch in stream
                ]
