"""The release file: one Parquet table that any tool can open, its facts in the file's metadata.

Rows are cells: `set`, `table` (a number), `attrs` (its name), `level_1` … `level_k` (labels) and `count`. The metadata key `dpcipher`
holds JSON: format version, schema, tables, statement and a SHA-256 over all of it. Nothing is ever unpickled.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dpcipher.errors import DpcipherError, ReleaseError
from dpcipher.privacy.mechanism import Mechanism
from dpcipher.release.statement import Statement
from dpcipher.schema.schema import Schema

VERSION = 1
KEY = b"dpcipher"
MAX_METADATA = 64 * 2**20

Counts = NDArray[np.float64] | NDArray[np.int64]
Part = tuple[tuple[str, ...], Counts, Mechanism, int]


def write(path: Path, schema: Schema, parts: Iterable[Part], statement: Statement) -> Path:
    """Write the file so that it is either absent or complete."""
    parts = list(parts)
    facts = _facts(schema, parts, statement)
    table = _cells(schema, parts).replace_schema_metadata({KEY: json.dumps(facts).encode()})
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as sink:
            pq.write_table(table, sink, compression="zstd")
            sink.flush()
            os.fsync(sink.fileno())
        partial.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise ReleaseError(
            f"release file ({path}) cannot be written: {error.strerror}; choose a folder you may write to"
        ) from None
    return path


def read(path: Path) -> tuple[Schema, list[Part], Statement]:
    """Read the file, refusing whatever is not exactly what was written."""
    facts, cells = _open(path)
    try:
        schema = Schema.from_dict(facts["schema"])
        statement = Statement.from_dict(facts["statement"])
        parts = _parts(schema, facts["tables"], cells)
    except (KeyError, TypeError, ValueError, DpcipherError) as error:
        raise _damaged(path, "its facts do not fit together") from error
    if facts.get("checksum") != checksum(schema, parts, statement):
        raise _damaged(path, "its checksum does not match")
    return schema, parts, statement


def checksum(schema: Schema, parts: Iterable[Part], statement: Statement) -> str:
    """SHA-256 over schema, statement, tables and every count."""
    parts = list(parts)
    digest = hashlib.sha256()
    for value in (VERSION, schema.to_dict(), statement.to_dict(), [_describe(part) for part in parts]):
        digest.update(json.dumps(value, sort_keys=True).encode() + b"\n")
    for _, counts, _, _ in parts:
        digest.update(
            np.ascontiguousarray(counts).astype("<f8" if counts.dtype.kind == "f" else "<i8").tobytes()
        )
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


def _open(path: Path) -> tuple[Mapping[str, Any], NDArray[Any]]:
    if not path.is_file():
        raise ReleaseError(f"release file ({path}) must be an existing file; check the path")
    try:
        file = pq.ParquetFile(path)
        raw = (file.schema_arrow.metadata or {}).get(KEY)
    except (pa.ArrowException, OSError):
        raise _damaged(path, "it is not a readable Parquet file") from None
    if raw is None or len(raw) > MAX_METADATA:
        raise ReleaseError(
            f"release file ({path}) was not written by dpcipher; its metadata has no usable 'dpcipher' entry"
        )
    try:
        facts = json.loads(raw)
        version = facts["version"]
    except (ValueError, KeyError, TypeError):
        raise _damaged(path, "its metadata cannot be read") from None
    if version != VERSION:
        raise ReleaseError(
            f"release file ({path}) has format version {version!r}; this dpcipher reads version {VERSION}. Upgrade dpcipher"
        )
    try:
        return facts, file.read(columns=["count"])["count"].to_numpy()
    except (pa.ArrowException, OSError, KeyError):
        raise _damaged(path, "its counts cannot be read") from None


def _parts(schema: Schema, described: list[Mapping[str, Any]], cells: NDArray[Any]) -> list[Part]:
    parts: list[Part] = []
    start = 0
    for entry in described:
        attrs = tuple(entry["attrs"])
        shape = tuple(schema.shape[axis] for axis in schema.axes(attrs))
        stop = start + int(np.prod(shape, dtype=np.int64))
        flat = cells[start:stop].reshape(shape)
        counts: Counts = flat.astype(np.int64) if entry["counts"] == "integer" else flat.astype(np.float64)
        parts.append((attrs, counts, Mechanism(entry["mechanism"], float(entry["scale"])), int(entry["set"])))
        start = stop
    if start != len(cells):
        raise ValueError("cells are left over")
    return parts


def _damaged(path: Path, why: str) -> ReleaseError:
    return ReleaseError(f"release file ({path}) is damaged: {why}. Get a fresh copy from its publisher")


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
