"""The release file: one Parquet table that any tool can open, its facts in the file's metadata.

Rows are cells: `set`, `table` (a number), `attrs` (its name), `level_1` … `level_k` (labels of levels or of groups) and `count`; where tables are centred
also `rows`, for other tools. The metadata key `dpcipher` holds JSON: format version, schema, statement, what was measured, and a SHA-256 over all of it and the counts. Every other column follows
from these: `load` computes it anew, and refuses a file that says anything else.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from dpcipher.files import check_output, replacing
from dpcipher.release.columns import Texts
from dpcipher.release.statement import Statement
from dpcipher.schema.schema import Schema
from dpcipher.schema.workload import MAX_CELLS, MAX_TABLE_CELLS, Workload
from dpcipher.tables.domain import Domain, Shape
from dpcipher.tables.measurement import Measurement, Noise
from dpcipher.tables.query import Groups, Query

KEY = RELEASE_KEY
VERSION = 1
# All pairs of a thousand columns need 60 MiB. Parquet's own reader stops at 100 MB.
MAX_METADATA = 64 * 2**20
_DICTIONARY = 2**20  # bytes of the values of a column that may be in a dictionary; its texts always are
ROW_GROUP = 2**20
MAX_GROUPED = (
    2**23
)  # levels that groups put together, each grouping counted once: twice the bins of the largest schema
MOST_CELLS = (
    MAX_CELLS + 2**22
)  # beside the largest workload there is room for coarse counts and numbers of rows
_TABLE_BYTES = 120  # that the facts of a table take at most, beside its names
_EVENT_BYTES = (
    400  # that the event of a table measured by itself takes at most in a certificate, beside its names
)


@dataclass(frozen=True)
class Described:
    """What the metadata says of one measurement."""

    query: Query
    noise: Noise
    set: int
    whole: bool

    def as_dict(self, schema: Schema) -> dict[str, Any]:
        """Plain values; what is seldom there only where it is."""
        plain: dict[str, Any] = {
            "attrs": list(schema.attrs_on(self.query.axes)),
            "counts": "integer" if self.whole else "real",
            "noise": self.noise.kind,
            "scale": self.noise.scale,
            "set": self.set,
        }
        if self.query.groups:
            plain["groups"] = [None if groups is None else _plain(groups) for groups in self.query.groups]
        if self.query.contrasts:
            plain["contrasts"] = list(schema.attrs_on(sorted(self.query.contrasts)))
        if self.query.centred:
            plain["centred"] = True
        return plain


def _plain(groups: Groups) -> dict[str, Any]:
    """The first level of each run, or the group of each level; and names, where there are any."""
    levels = {"starts": list(groups.starts)} if groups.are_runs else {"of": list(groups.of)}
    return {**levels, "names": list(groups.names)} if groups.names else levels


def write(
    path: Path,
    schema: Schema,
    measurements: Sequence[Measurement],
    statement: Statement,
    *,
    force: bool = False,
) -> Path:
    """Write the file so that it is either absent or complete."""
    check_output(path, endings=(".parquet",), force=force)
    check_sizes([one.values.shape for one in measurements])
    grouped = {
        (axis, groups, groups.names)
        for one in measurements
        for axis, groups in zip(one.query.axes, one.query.groups, strict=False)
        if groups is not None
    }
    check_grouped(sum(len(groups.of) for _, groups, _ in grouped))
    plain = {
        **_facts(schema, measurements, statement),
        "checksum": checksum(schema, measurements, statement),
    }
    facts = json.dumps(plain).encode()
    if len(facts) > MAX_METADATA:
        raise ReleaseError(
            f"release file ({path}) cannot be written: its facts take {len(facts)} bytes, of at most {MAX_METADATA}; "
            "measure fewer tables"
        )
    try:
        with replacing(path, force=force) as temporary, temporary.open("wb") as sink:
            rows = sum(one.values.size for one in measurements)
            _write_cells(sink, dict(cells(schema, measurements)), rows, facts)
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


def checksum(schema: Schema, measurements: Sequence[Measurement], statement: Statement) -> str:
    """SHA-256 over schema, statement, what was measured, and every count: over all from which the file follows."""
    digest = hashlib.sha256()
    digest.update(json.dumps(_facts(schema, measurements, statement), sort_keys=True).encode() + b"\n")
    for one in measurements:
        digest.update(np.ascontiguousarray(one.values, dtype="<i8" if one.whole else "<f8").data)
    return digest.hexdigest()


def _facts(schema: Schema, measurements: Sequence[Measurement], statement: Statement) -> dict[str, Any]:
    return {
        "version": VERSION,
        "schema": schema.to_dict(),
        "statement": statement.to_dict(),
        "measurements": [
            Described(one.query, one.noise, one.set, one.whole).as_dict(schema)
            for one in measurements
            if isinstance(one.query, Query)  # as all of a release are
        ],
    }


def check_sizes(shapes: Sequence[Shape]) -> None:
    """Refuse tables that are too large, one by one or together; judged on the schema, in whole numbers that cannot overflow."""
    sizes = [prod(shape) for shape in shapes]
    if max(sizes) > MAX_TABLE_CELLS or sum(sizes) > MOST_CELLS:
        raise ReleaseError(
            f"its tables must have at most {MAX_TABLE_CELLS} cells each and {MOST_CELLS} together, over all sets"
        )


def check_grouped(levels: int) -> None:
    """Refuse groups of more levels than any schema has reason to put together."""
    if levels > MAX_GROUPED:
        raise ReleaseError(f"groups must be of at most {MAX_GROUPED} levels in all; these are of {levels}")


def check_fits_file(schema: Schema, workload: Workload, sets: int) -> None:
    """Refuse now what could not be written once it is measured; judged on the schema."""
    if workload.n_cells * sets > MAX_CELLS:
        raise SizeError(
            f"workload: {workload.n_cells:,} cells in each of {sets} sets; a release holds at most {MAX_CELLS:,}: measure fewer sets or tables"
        )
    grouped = [[_plain(groups) for groups in query.groups if groups] for query in workload.queries]
    known = {form for query in workload.queries for form in zip(query.axes, query.groups, strict=False)}
    check_grouped(sum(len(groups.of) for _, groups in known if groups))
    tables = zip(workload.tables, grouped, strict=True)
    described = sum(_TABLE_BYTES + len(json.dumps(table)) for table in tables) * sets
    if described + len(json.dumps(schema.to_dict())) > MAX_METADATA:
        raise SizeError(
            f"workload: {len(workload.tables):,} tables in each of {sets} sets are more than one release file can list; measure fewer"
        )


def most_tables(schema: Schema, sets: int) -> int:
    """How many tables of two columns, measured one by one, a release of so many sets can surely list; judged on the schema."""
    names = 2 * 2 * max(len(json.dumps(attr)) + 2 for attr in schema.attrs)
    room = MAX_METADATA - len(json.dumps(schema.to_dict()))
    return max(0, room // (sets * (_TABLE_BYTES + _EVENT_BYTES + names)))


def column_names(queries: Iterable[Query]) -> list[str]:
    """The columns of the file, in their order."""
    asked = list(queries)
    levels = [f"level_{place + 1}" for place in range(max(len(query.axes) for query in asked))]
    rows = ["rows"] if any(query.centred for query in asked) else []
    return ["set", "table", "attrs", *levels, "count", *rows]


def cells(schema: Schema, measurements: Sequence[Measurement]) -> Iterator[tuple[str, Texts | NDArray[Any]]]:
    """The columns, a row for each cell of every table, in the order of the schema's levels; where tables are centred also what each cell says in rows."""
    sizes = [one.values.size for one in measurements]
    yield "set", np.repeat(np.array([one.set for one in measurements], dtype=np.int32), sizes)
    yield "table", np.repeat(np.arange(len(measurements), dtype=np.int32), sizes)
    names: dict[str, int] = {}
    named = Domain(
        schema.attrs, schema.shape
    ).named  # the schema's own knows impossible cells, which may be many
    numbers = [names.setdefault(named(one.query.axes), len(names)) for one in measurements]
    yield "attrs", Texts(np.repeat(np.array(numbers, dtype=np.int32), sizes), list(names))
    for place in range(max(len(one.query.axes) for one in measurements)):
        yield f"level_{place + 1}", _level_column(schema, measurements, place)
    kind = np.int64 if all(one.whole for one in measurements) else np.float64
    yield "count", np.concatenate([one.values.ravel() for one in measurements]).astype(kind, copy=False)
    if any(one.query.centred for one in measurements):
        totals = {one.set: float(one.values) for one in measurements if not one.query.axes}
        parts = [
            one.in_rows()[0] + (totals[one.set] / one.values.size if one.query.centred else 0)
            for one in measurements
        ]
        yield "rows", np.concatenate([part.ravel() for part in parts]).astype(np.float64, copy=False)


def _level_column(schema: Schema, measurements: Sequence[Measurement], place: int) -> Texts:
    """The labels of the levels, or groups, of the `place`-th attribute of each table; none where a table has fewer."""
    labels: dict[str, int] = {}
    known: dict[object, NDArray[np.int32]] = {}
    codes = []
    for one in measurements:
        numbers = np.array(-1, dtype=np.int32)
        if place < len(one.query.axes):
            axis, groups = one.query.axes[place], one.query.groups[place] if one.query.groups else None
            form = (axis, groups, groups.names if groups else ())
            if form not in known:
                levels = schema.labels(schema.attrs[axis])
                numbered = [
                    labels.setdefault(label, len(labels))
                    for label in (groups.labels(levels) if groups else levels)
                ]
                known[form] = np.array(numbered, dtype=np.int32)
            after = one.values.ndim - place - 1
            numbers = known[form].reshape(-1, *[1] * after)
        codes.append(np.broadcast_to(numbers, one.values.shape).ravel())
    return Texts(np.concatenate(codes), list(labels))
