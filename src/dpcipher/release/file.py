"""The release file: one Parquet table that any tool can open, its facts in the file's metadata.

Rows are cells: `set`, `table` (a number), `attrs` (its name), `level_1` … `level_k` (labels) and `count`; of centred tables also `rows`, for other tools. The metadata key `dpcipher`
holds JSON: format version, schema, tables, statement, coarse counts and totals where there are any, and a SHA-256 over all of it. `load` reads it back.
A file with totals, whose tables are centred, is of version 3; one with coarse counts alone of version 2; others of version 1.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dpcipher.errors import ReleaseError, SizeError
from dpcipher.files import replacing
from dpcipher.marginals.arrays import Attrs, Shape
from dpcipher.marginals.centred import in_rows
from dpcipher.privacy.noise import Mechanism
from dpcipher.release.statement import Statement
from dpcipher.schema.schema import Schema
from dpcipher.schema.workload import MAX_CELLS, MAX_TABLE_CELLS, Workload

KEY = b"dpcipher"
VERSION, WITH_COARSE, WITH_TOTALS = 1, 2, 3
# All pairs of a thousand columns need 60 MiB. Parquet's own reader takes no more: Arrow keeps a second copy, a third longer, and
# stops at 100 MB.
MAX_METADATA = 64 * 2**20
LARGEST_COUNT = 2**62  # so that no difference of two counts leaves int64
_TABLE_BYTES = 108  # that the facts of a table take at most, beside its names
_EVENT_BYTES = (
    400  # that the event of a table measured by itself takes at most in a certificate, beside its names
)


@dataclass(frozen=True)
class NoisyTable:
    """One measured table: counts with noise, the mechanism that drew it, and the set it belongs to."""

    attrs: Attrs
    counts: NDArray[np.float64] | NDArray[np.int64]
    mechanism: Mechanism
    set: int = 0

    @property
    def whole(self) -> bool:
        """Whether the counts are stored as whole numbers."""
        return self.counts.dtype.kind == "i"


@dataclass(frozen=True)
class CoarseTable:
    """Counts with noise of runs of levels of one attribute, from its first level to its last; `starts` are the first levels of the runs."""

    attr: str
    starts: tuple[int, ...]
    counts: NDArray[np.int64]
    mechanism: Mechanism
    set: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Plain values, all of them: the counts are few."""
        return {
            "attr": self.attr,
            "starts": list(self.starts),
            "counts": self.counts.tolist(),
            "mechanism": self.mechanism.name,
            "scale": self.mechanism.scale,
            "set": self.set,
        }


@dataclass(frozen=True)
class NoisyTotal:
    """The number of rows with noise, or as it is public, and the set it belongs to."""

    count: int
    mechanism: Mechanism
    set: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "count": self.count,
            "mechanism": self.mechanism.name,
            "scale": self.mechanism.scale,
            "set": self.set,
        }


@dataclass(frozen=True)
class Beside:
    """What a release holds beside its tables: coarse counts and totals."""

    coarse: Sequence[CoarseTable] = ()
    totals: Sequence[NoisyTotal] = ()

    @property
    def version(self) -> int:
        """The format that can hold it."""
        return WITH_TOTALS if self.totals else WITH_COARSE if self.coarse else VERSION

    def as_dict(self) -> dict[str, Any]:
        """Plain values, of what there is."""
        coarse, totals = ([one.as_dict() for one in part] for part in (self.coarse, self.totals))
        return {**({"coarse": coarse} if coarse else {}), **({"totals": totals} if totals else {})}


def write(
    path: Path,
    schema: Schema,
    tables: Sequence[NoisyTable],
    statement: Statement,
    beside: Beside = Beside(),  # noqa: B008 - a frozen value
) -> Path:
    """Write the file so that it is either absent or complete."""
    check_sizes([table.counts.shape for table in tables])
    plain = {
        "version": beside.version,
        "schema": schema.to_dict(),
        "statement": statement.to_dict(),
        "tables": [_describe(table) for table in tables],
        **beside.as_dict(),
        "checksum": checksum(schema, tables, statement, beside),
    }
    facts = json.dumps(plain).encode()
    if len(facts) > MAX_METADATA:
        raise ReleaseError(
            f"release file ({path}) cannot be written: its facts take {len(facts)} bytes, of at most {MAX_METADATA}; "
            "measure fewer tables"
        )
    cells = _cells(schema, tables, beside.totals).replace_schema_metadata({KEY: facts})
    try:
        with replacing(path) as temporary, temporary.open("wb") as sink:
            pq.write_table(cells, sink, compression="zstd")
    except OSError as error:
        raise ReleaseError(
            f"release file ({path}) cannot be written: {error.strerror}; choose a folder you may write to"
        ) from None
    return path


def checksum(
    schema: Schema,
    tables: Sequence[NoisyTable],
    statement: Statement,
    beside: Beside = Beside(),  # noqa: B008 - a frozen value
) -> str:
    """SHA-256 over schema, statement, tables, what is beside them, and every count."""
    digest = hashlib.sha256()
    facts = [schema.to_dict(), statement.to_dict(), [_describe(table) for table in tables]]
    for value in (beside.version, *beside.as_dict().values(), *facts):
        digest.update(json.dumps(value, sort_keys=True).encode() + b"\n")
    for table in tables:
        flat = np.ascontiguousarray(table.counts, dtype="<f8" if table.counts.dtype.kind == "f" else "<i8")
        digest.update(flat.data)
    return digest.hexdigest()


def check_sizes(shapes: Sequence[Shape]) -> None:
    """Refuse tables that are too large, one by one or together; judged on the schema, in whole numbers that cannot overflow."""
    sizes = [prod(shape) for shape in shapes]
    if max(sizes) > MAX_TABLE_CELLS or sum(sizes) > MAX_CELLS:
        raise ReleaseError(
            f"its tables must have at most {MAX_TABLE_CELLS} cells each and {MAX_CELLS} together, over all sets"
        )


def check_fits_file(schema: Schema, workload: Workload, sets: int) -> None:
    """Refuse now what could not be written once it is measured; judged on the schema."""
    if workload.n_cells * sets > MAX_CELLS:
        raise SizeError(
            f"workload: {workload.n_cells:,} cells in each of {sets} sets; a release holds at most {MAX_CELLS:,}: measure fewer sets or tables"
        )
    described = sum(_TABLE_BYTES + len(json.dumps(attrs)) for attrs in workload.tables) * sets
    if described + len(json.dumps(schema.to_dict())) > MAX_METADATA:
        raise SizeError(
            f"workload: {len(workload.tables):,} tables in each of {sets} sets are more than one release file can list; measure fewer"
        )


def most_tables(schema: Schema, sets: int) -> int:
    """How many tables of two columns, measured one by one, a release of so many sets can surely list; judged on the schema."""
    names = 2 * 2 * max(len(json.dumps(attr)) + 2 for attr in schema.attrs)
    room = MAX_METADATA - len(json.dumps(schema.to_dict()))
    return max(0, room // (sets * (_TABLE_BYTES + _EVENT_BYTES + names)))


def _describe(table: NoisyTable) -> dict[str, Any]:
    return {
        "attrs": list(table.attrs),
        "counts": "integer" if table.whole else "real",
        "mechanism": table.mechanism.name,
        "scale": table.mechanism.scale,
        "set": table.set,
    }


def _cells(schema: Schema, tables: Sequence[NoisyTable], totals: Sequence[NoisyTotal]) -> pa.Table:
    """One row per cell of every table, in the order of the schema's levels; of centred tables with what they say in rows, for other tools."""
    sizes = [table.counts.size for table in tables]
    number = np.repeat(np.arange(len(tables), dtype=np.int32), sizes)
    columns: dict[str, Any] = {
        "set": np.repeat(np.array([table.set for table in tables], dtype=np.int32), sizes),
        "table": number,
        "attrs": _dictionary(number, [" × ".join(table.attrs) for table in tables]),
    }
    for place in range(max(len(table.attrs) for table in tables)):
        columns[f"level_{place + 1}"] = _level_column(schema, tables, place)
    counts = np.concatenate([table.counts.ravel() for table in tables])
    columns["count"] = counts.astype(np.int64 if all(table.whole for table in tables) else np.float64)
    if totals:
        rows = {total.set: total.count for total in totals}
        parts = [in_rows(table.counts) + rows[table.set] / table.counts.size for table in tables]
        columns["rows"] = np.concatenate([part.ravel() for part in parts])
    return pa.table(columns)


def _level_column(schema: Schema, tables: Sequence[NoisyTable], place: int) -> pa.DictionaryArray:
    """The labels of the `place`-th attribute of each table; null where a table has fewer."""
    labels: dict[str, int] = {}
    codes = []
    for table in tables:
        known = np.array(-1)
        if place < len(table.attrs):
            names = schema.labels(table.attrs[place])
            known = np.array([labels.setdefault(label, len(labels)) for label in names])
            known = known.reshape([-1 if axis == place else 1 for axis in range(table.counts.ndim)])
        codes.append(np.broadcast_to(known, table.counts.shape).ravel())
    return _dictionary(np.concatenate(codes), list(labels))


def _dictionary(codes: NDArray[np.integer], values: list[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(
        pa.array(codes.astype(np.int32), mask=codes < 0), pa.array(values, pa.string())
    )
