"""The release file: one Parquet table that any tool can open, its facts in the file's metadata.

Rows are cells: `set`, `table` (a number), `attrs` (its name), `level_1` … `level_k` (labels) and `count`; of centred tables also `rows`, for other tools. The metadata key `dpcipher`
holds JSON: format version, schema, tables, statement, coarse counts, totals, and a SHA-256 over all of it and the counts. Every other column follows
from these: `load` computes it anew, and refuses a file that says anything else.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dpcipher.drawing.curator_only import RELEASE_KEY
from dpcipher.errors import ReleaseError, SizeError
from dpcipher.files import replacing
from dpcipher.release.columns import Texts
from dpcipher.release.statement import Statement
from dpcipher.schema.schema import Schema
from dpcipher.schema.workload import MAX_CELLS, MAX_TABLE_CELLS, Workload
from dpcipher.tables.centred import in_rows
from dpcipher.tables.domain import Attrs, Shape
from dpcipher.tables.measurement import Noise

KEY = RELEASE_KEY
VERSION = 4  # earlier files were never published
# All pairs of a thousand columns need 60 MiB. Parquet's own reader stops at 100 MB.
MAX_METADATA = 64 * 2**20
_DICTIONARY = 2**20  # bytes of the values of a column that may be in a dictionary; its texts always are
ROW_GROUP = 2**20
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
    mechanism: Noise
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
    mechanism: Noise
    set: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Plain values, all of them: the counts are few."""
        return {
            "attr": self.attr,
            "starts": list(self.starts),
            "counts": self.counts.tolist(),
            "mechanism": self.mechanism.kind,
            "scale": self.mechanism.scale,
            "set": self.set,
        }


@dataclass(frozen=True)
class NoisyTotal:
    """The number of rows with noise, or as it is public, and the set it belongs to."""

    count: int
    mechanism: Noise
    set: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "count": self.count,
            "mechanism": self.mechanism.kind,
            "scale": self.mechanism.scale,
            "set": self.set,
        }


@dataclass(frozen=True)
class Beside:
    """What a release holds beside its tables: coarse counts and totals."""

    coarse: Sequence[CoarseTable] = ()
    totals: Sequence[NoisyTotal] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "coarse": [one.as_dict() for one in self.coarse],
            "totals": [one.as_dict() for one in self.totals],
        }


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
        **_facts(schema, tables, statement, beside),
        "checksum": checksum(schema, tables, statement, beside),
    }
    facts = json.dumps(plain).encode()
    if len(facts) > MAX_METADATA:
        raise ReleaseError(
            f"release file ({path}) cannot be written: its facts take {len(facts)} bytes, of at most {MAX_METADATA}; "
            "measure fewer tables"
        )
    try:
        with replacing(path) as temporary, temporary.open("wb") as sink:
            rows = sum(table.counts.size for table in tables)
            _write_cells(sink, dict(cells(schema, tables, beside.totals)), rows, facts)
    except OSError as error:
        raise ReleaseError(
            f"release file ({path}) cannot be written: {error.strerror}; choose a folder you may write to"
        ) from None
    return path


def _write_cells(
    sink: BinaryIO, columns: Mapping[str, Texts | NDArray[Any]], rows: int, facts: bytes
) -> None:
    """The columns and the metadata as Parquet, without what another reader may act on: statistics, or types of Arrow."""
    first = _row_group(columns, 0)
    texts = [column.n_bytes for column in columns.values() if isinstance(column, Texts)]
    with pq.ParquetWriter(
        sink,
        first.schema,
        compression="zstd",
        store_schema=False,
        write_statistics=False,
        dictionary_pagesize_limit=max(_DICTIONARY, *(2 * n_bytes for n_bytes in texts)),
    ) as writer:
        writer.write_table(first)
        for start in range(ROW_GROUP, rows, ROW_GROUP):
            writer.write_table(_row_group(columns, start))
        writer.add_key_value_metadata({KEY: facts})


def _row_group(columns: Mapping[str, Texts | NDArray[Any]], start: int) -> pa.Table:
    stop = start + ROW_GROUP
    return pa.table(
        {
            name: column.rows(start, stop).dictionary if isinstance(column, Texts) else column[start:stop]
            for name, column in columns.items()
        }
    )


def checksum(
    schema: Schema,
    tables: Sequence[NoisyTable],
    statement: Statement,
    beside: Beside = Beside(),  # noqa: B008 - a frozen value
) -> str:
    """SHA-256 over schema, statement, tables, what is beside them, and every count: over all from which the file follows."""
    digest = hashlib.sha256()
    facts = _facts(schema, tables, statement, beside)
    digest.update(json.dumps(facts, sort_keys=True).encode() + b"\n")
    for table in tables:
        flat = np.ascontiguousarray(table.counts, dtype="<f8" if table.counts.dtype.kind == "f" else "<i8")
        digest.update(flat.data)
    return digest.hexdigest()


def _facts(
    schema: Schema, tables: Sequence[NoisyTable], statement: Statement, beside: Beside
) -> dict[str, Any]:
    return {
        "version": VERSION,
        "schema": schema.to_dict(),
        "statement": statement.to_dict(),
        "tables": [_describe(table) for table in tables],
        **beside.as_dict(),
    }


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
        "mechanism": table.mechanism.kind,
        "scale": table.mechanism.scale,
        "set": table.set,
    }


def column_names(tables: Sequence[Attrs], *, centred: bool) -> list[str]:
    """The columns of the file, in their order."""
    levels = [f"level_{place + 1}" for place in range(max(map(len, tables)))]
    return ["set", "table", "attrs", *levels, "count", *(["rows"] if centred else [])]


def cells(
    schema: Schema, tables: Sequence[NoisyTable], totals: Sequence[NoisyTotal]
) -> Iterator[tuple[str, Texts | NDArray[Any]]]:
    """The columns, a row for each cell of every table, in the order of the schema's levels; of centred tables with what they say in rows."""
    sizes = [table.counts.size for table in tables]
    yield "set", np.repeat(np.array([table.set for table in tables], dtype=np.int32), sizes)
    yield "table", np.repeat(np.arange(len(tables), dtype=np.int32), sizes)
    names: dict[str, int] = {}
    numbers = [names.setdefault(" × ".join(table.attrs), len(names)) for table in tables]
    yield "attrs", Texts(np.repeat(np.array(numbers, dtype=np.int32), sizes), list(names))
    for place in range(max(len(table.attrs) for table in tables)):
        yield f"level_{place + 1}", _level_column(schema, tables, place)
    whole = all(table.whole for table in tables)
    yield (
        "count",
        np.concatenate([table.counts.ravel() for table in tables]).astype(
            np.int64 if whole else np.float64, copy=False
        ),
    )
    if totals:
        rows = {total.set: total.count for total in totals}
        parts = [in_rows(table.counts) + rows[table.set] / table.counts.size for table in tables]
        yield "rows", np.concatenate([part.ravel() for part in parts])


def _level_column(schema: Schema, tables: Sequence[NoisyTable], place: int) -> Texts:
    """The labels of the `place`-th attribute of each table; none where a table has fewer."""
    labels: dict[str, int] = {}
    known: dict[str, NDArray[np.int32]] = {}
    codes = []
    for table in tables:
        numbers = np.array(-1, dtype=np.int32)
        if place < len(table.attrs):
            attr = table.attrs[place]
            if attr not in known:
                numbered = [labels.setdefault(label, len(labels)) for label in schema.labels(attr)]
                known[attr] = np.array(numbered, dtype=np.int32)
            after = table.counts.ndim - place - 1
            numbers = known[attr].reshape(-1, *[1] * after)
        codes.append(np.broadcast_to(numbers, table.counts.shape).ravel())
    return Texts(np.concatenate(codes), list(labels))
