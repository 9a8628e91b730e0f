"""The release file: one Parquet table that any tool can open, its facts in the file's metadata.

Rows are cells: `set`, `table` (a number), `attrs` (its name), `level_1` … `level_k` (labels) and `count`. The metadata key `dpcipher`
holds JSON: format version, schema, tables, statement and a SHA-256 over all of it. Nothing is ever unpickled.

Anybody may have written a file that is read here, checksum and all. So everything in it is checked, and sizes come first: the
metadata's length, then what the metadata says, then how many cells its tables have, then how many counts the file has, and only
then the counts.
"""

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dpcipher.errors import ReleaseError
from dpcipher.files import replacing
from dpcipher.privacy.noise import Mechanism
from dpcipher.release.counts import Layout, read_counts, read_layout
from dpcipher.release.facts import (
    MAX_METADATA,
    VERSION,
    Described,
    Facts,
    check_sizes,
    read_facts,
    read_metadata,
)
from dpcipher.release.statement import Statement
from dpcipher.schema.schema import Schema

KEY = b"dpcipher"
# How much a file may grow when it is read: eight bytes for each cell. Noise does not pack (to a sixth, at scale 100), but an exact table
# may be all zeros, and then cells of the same levels repeat too: such files grow to 190 times their size, and to 3,300 times
# where an older Arrow wrote them. What is small anyway is let through.
MOST_GROWTH, SMALL = 4096, 64 * 2**20
LONGEST_REASON = 300
LARGEST_COUNT = 2**62  # so that no difference of two counts leaves int64

Counts = NDArray[np.float64] | NDArray[np.int64]
Part = tuple[tuple[str, ...], Counts, Mechanism, int]


def write(path: Path, schema: Schema, parts: Iterable[Part], statement: Statement) -> Path:
    """Write the file so that it is either absent or complete."""
    parts = list(parts)
    check_sizes([counts.shape for _, counts, _, _ in parts])
    facts = json.dumps(_facts(schema, parts, statement)).encode()
    if len(facts) > MAX_METADATA:
        raise ReleaseError(
            f"release file ({path}) cannot be written: its facts take {len(facts)} bytes, of at most {MAX_METADATA}; "
            "measure fewer tables"
        )
    table = _cells(schema, parts).replace_schema_metadata({KEY: facts})
    try:
        with replacing(path) as temporary, temporary.open("wb") as sink:
            pq.write_table(table, sink, compression="zstd")
    except OSError as error:
        raise ReleaseError(
            f"release file ({path}) cannot be written: {error.strerror}; choose a folder you may write to"
        ) from None
    return path


def read(path: Path) -> tuple[Schema, list[Part], Statement]:
    """Read the file, refusing whatever is not exactly what was written."""
    if not path.is_file():
        raise ReleaseError(f"release file ({path}) must be an existing file; check the path")
    try:
        with path.open("rb") as file:
            facts, counts = _read(path, file)
        parts = _parts(path, facts.tables, counts)
    except OSError as error:
        raise ReleaseError(
            f"release file ({path}) cannot be read: {error.strerror}; check its permissions"
        ) from None
    if facts.checksum != checksum(facts.schema, parts, facts.statement):
        raise _damaged(path, "its checksum does not match")
    return facts.schema, parts, facts.statement


def checksum(schema: Schema, parts: Iterable[Part], statement: Statement) -> str:
    """SHA-256 over schema, statement, tables and every count."""
    parts = list(parts)
    digest = hashlib.sha256()
    for value in (VERSION, schema.to_dict(), statement.to_dict(), [_describe(part) for part in parts]):
        digest.update(json.dumps(value, sort_keys=True).encode() + b"\n")
    for _, counts, _, _ in parts:
        flat = np.ascontiguousarray(counts, dtype="<f8" if counts.dtype.kind == "f" else "<i8")
        digest.update(flat.data)
    return digest.hexdigest()


def _facts(schema: Schema, parts: list[Part], statement: Statement) -> dict[str, Any]:
    return {
        "version": VERSION,
        "schema": schema.to_dict(),
        "statement": statement.to_dict(),
        "tables": [_describe(part) for part in parts],
        "checksum": checksum(schema, parts, statement),
    }


def _describe(part: Part) -> dict[str, Any]:
    attrs, counts, mechanism, number = part
    kind = "integer" if counts.dtype.kind == "i" else "real"
    return {
        "attrs": list(attrs),
        "counts": kind,
        "mechanism": mechanism.name,
        "scale": mechanism.scale,
        "set": number,
    }


def _cells(schema: Schema, parts: list[Part]) -> pa.Table:
    """One row per cell of every table, in the order of the schema's levels."""
    exact = all(counts.dtype.kind == "i" for _, counts, _, _ in parts)
    width = max(len(attrs) for attrs, _, _, _ in parts)
    sizes = [counts.size for _, counts, _, _ in parts]
    columns: dict[str, Any] = {
        "set": np.repeat(np.array([part[3] for part in parts], dtype=np.int32), sizes),
        "table": np.repeat(np.arange(len(parts), dtype=np.int32), sizes),
        "attrs": _dictionary(
            np.repeat(np.arange(len(parts)), sizes), [" × ".join(part[0]) for part in parts]
        ),
    }
    for place in range(width):
        columns[f"level_{place + 1}"] = _level_column(schema, parts, place)
    columns["count"] = np.concatenate([counts.ravel() for _, counts, _, _ in parts]).astype(
        np.int64 if exact else np.float64
    )
    return pa.table(columns)


def _level_column(schema: Schema, parts: list[Part], place: int) -> pa.DictionaryArray:
    """The labels of the `place`-th attribute of each table; null where a table has fewer."""
    labels: dict[str, int] = {}
    codes = []
    for attrs, counts, _, _ in parts:
        if place >= len(attrs):
            codes.append(np.full(counts.size, -1))
            continue
        known = np.array([labels.setdefault(label, len(labels)) for label in schema.labels(attrs[place])])
        codes.append(
            known[
                np.indices(counts.shape, sparse=True)[place] + np.zeros(counts.shape, dtype=np.int64)
            ].ravel()
        )
    return _dictionary(np.concatenate(codes), list(labels))


def _dictionary(codes: NDArray[np.int64], values: list[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(
        pa.array(codes.astype(np.int32), mask=codes < 0), pa.array(values, pa.string())
    )


def _read(path: Path, file: BinaryIO) -> tuple[Facts, NDArray[Any]]:
    """The facts, and the counts once the facts allow for so many."""
    size = os.fstat(file.fileno()).st_size
    try:
        layout = read_layout(file, size, KEY)
    except ValueError as wrong:
        raise _damaged(path, f"it is not a readable Parquet file ({wrong})") from None
    if layout.metadata is None:
        raise ReleaseError(
            f"release file ({path}) was not written by dpcipher; its metadata has no usable 'dpcipher' entry"
        )
    facts = _known(path, layout.metadata)
    _check_number(path, facts, layout, size)
    try:
        return facts, read_counts(file, layout)
    except (ValueError, OSError, pa.ArrowException):
        raise _damaged(path, "its counts cannot be read") from None


def _known(path: Path, raw: bytes) -> Facts:
    """The facts of a file of this version."""
    try:
        version, plain = read_metadata(raw)
        if version == VERSION:
            return read_facts(plain)
    except ReleaseError as wrong:
        raise _damaged(path, str(wrong)) from None
    raise ReleaseError(
        f"release file ({path}) has format version {version!r:.20}; this dpcipher reads version {VERSION}. Upgrade dpcipher"
    )


def _check_number(path: Path, facts: Facts, layout: Layout, size: int) -> None:
    """As many counts as cells, of the type that was written, and no more of them than a file of this size can honestly hold."""
    cells = facts.cells
    if layout.rows != cells:
        raise _damaged(path, f"it has {layout.rows} counts for the {cells} cells of its tables")
    if layout.real == all(table.whole for table in facts.tables):
        raise _damaged(path, "its counts are of another type than its tables")
    if 8 * cells > SMALL + MOST_GROWTH * size:
        raise _damaged(path, f"its {size} bytes would grow to {8 * cells}, as no release does")


def _parts(path: Path, tables: Iterable[Described], cells: NDArray[Any]) -> list[Part]:
    """Each table with its counts; whole numbers that were stored beside reals become whole again."""
    if not (cells.min() >= -LARGEST_COUNT and cells.max() <= LARGEST_COUNT):  # a NaN is neither
        raise _damaged(path, "its counts must be numbers within ±2**62")
    parts: list[Part] = []
    start = 0
    for table in tables:
        stop = start + table.cells
        counts = cells[start:stop].reshape(table.shape)
        if table.whole and counts.dtype.kind == "f":
            if (counts != np.floor(counts)).any():
                raise _damaged(path, f"its table {' × '.join(table.attrs)} must hold whole numbers")
            counts = counts.astype(np.int64)
        parts.append((table.attrs, counts, table.mechanism, table.set))
        start = stop
    return parts


def _damaged(path: Path, why: str) -> ReleaseError:
    said = (
        why if len(why) <= LONGEST_REASON else why[:LONGEST_REASON] + "…"
    )  # a file may quote itself at any length
    return ReleaseError(f"release file ({path}) is damaged: {said}. Get a fresh copy from its publisher")
