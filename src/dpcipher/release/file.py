"""The release file: one Parquet table that any tool can open, its facts in the file's metadata.

Rows are cells: `set`, `table` (a number), `attrs` (its name), `level_1` … `level_k` (labels of levels or of groups) and `count`; where tables are centred
also `rows`, for other tools. The metadata key `dpcipher` holds JSON: format version, schema, statement, what was measured, and a SHA-256 over all of it and
the counts. Every other column follows from these.

Anybody may have written a file that is read here, checksum and all. Nothing is ever unpickled; everything is checked, and sizes come first: the
metadata's length, what it says, how many cells its tables have, how many counts the file has, and only then the counts. Every other column is computed
anew, and a file that says anything else is refused.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dpcipher.drawing.curator_only import RELEASE_KEY
from dpcipher.errors import ReleaseError, SizeError
from dpcipher.files import check_output, replacing
from dpcipher.files.codec import Rule, decode
from dpcipher.files.foreign import foreign
from dpcipher.files.json import read_json
from dpcipher.release import parquet
from dpcipher.release.statement import Statement
from dpcipher.schema.schema import Schema
from dpcipher.schema.workload import MAX_CELLS, MAX_TABLE_CELLS, MAX_TABLES, Workload
from dpcipher.tables.domain import Axes, Domain, Shape
from dpcipher.tables.measurement import LARGEST_SCALE, LARGEST_VALUE, Measurement, Noise, NoiseKind
from dpcipher.tables.query import Groups, Query

KEY = RELEASE_KEY
VERSION = 1
MAX_METADATA = 64 * 2**20
MAX_GROUPED = (
    2**23
)  # levels that groups put together, each grouping counted once: twice the bins of the largest schema
MOST_CELLS = (
    MAX_CELLS + 2**22
)  # beside the largest workload there is room for coarse counts and numbers of rows
ROW_GROUP = parquet.MAX_GROUP
MAX_ATTRS = 32  # no array of numpy 1 has more dimensions
_LONGEST_REASON = 300  # a file may quote itself at any length
_TABLE_BYTES = 120  # that the facts of a table take at most, beside its names
_EVENT_BYTES = (
    400  # that the event of a table measured by itself takes at most in a certificate, beside its names
)

Form = tuple[Groups | None, tuple[str, ...]]  # of a column in a query: its groups, and what they are called
Asked = tuple[
    Query, Noise, int, bool
]  # all of a measurement but its values: query, noise, set, whether they are whole

_Number = Annotated[
    int,
    Rule(f"must be a whole number, 0 or above, below {MAX_TABLES}", lambda number: 0 <= number < MAX_TABLES),
]
_Scale = Annotated[
    float, Rule(f"must be a number from 0 to {LARGEST_SCALE:.6g}", lambda scale: 0 <= scale <= LARGEST_SCALE)
]


@dataclass(frozen=True)
class _Groups:
    """Levels put together: the first level of each run, or the group of each level; and names, where there are any."""

    starts: list[int] = field(default_factory=list)
    of: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Batch:
    """Measurements that follow one another and differ in their columns alone."""

    tables: list[Any]
    noise: NoiseKind
    scale: _Scale
    set: _Number
    counts: Literal["integer", "real"]
    groups: dict[str, _Groups] = field(default_factory=dict)
    contrasts: list[str] = field(default_factory=list)
    centred: bool = False


@dataclass(frozen=True)
class _Facts:
    """All that a release file says beside its counts."""

    version: int
    schema: Any
    statement: Any
    measurements: list[_Batch]
    checksum: str


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
    plain = _facts(schema, measurements, statement)
    grouped = {(axis, form) for one in measurements for axis, form in _forms(_query(one)).items()}
    check_grouped(sum(len(groups.of) for _, (groups, _) in grouped if groups is not None))
    facts = json.dumps({**plain, "checksum": checksum(schema, measurements, statement)}).encode()
    if len(facts) > MAX_METADATA:
        raise ReleaseError(
            f"release file ({path}) cannot be written: its facts take {len(facts)} bytes, of at most {MAX_METADATA}; "
            "measure fewer tables"
        )
    try:
        with replacing(path, force=force) as temporary, temporary.open("wb") as sink:
            _write_cells(sink, dict(cells(schema, measurements)), facts)
    except OSError as error:
        raise ReleaseError(
            f"release file ({path}) cannot be written: {error.strerror}; choose a folder you may write to"
        ) from None
    return path


def _write_cells(sink: BinaryIO, columns: Mapping[str, "Column"], facts: bytes) -> None:
    """The columns and the metadata, without what another reader may act on: statistics, or types of Arrow. Counts are not packed, so that none unpacks."""
    first = pa.table({name: column.part(0, ROW_GROUP).array for name, column in columns.items()})
    texts = [name for name, column in columns.items() if column.texts is not None]
    with pq.ParquetWriter(
        sink,
        first.schema,
        compression={name: "none" if name == "count" else "zstd" for name in columns},
        use_dictionary=texts,
        column_encoding={
            name: parquet.ENCODING[first.schema.field(name).type] for name in columns if name not in texts
        },
        dictionary_pagesize_limit=2**31 - 1,
        store_schema=False,
        write_statistics=False,
    ) as writer:
        writer.write_table(first)
        for start in range(ROW_GROUP, len(columns["count"].numbers), ROW_GROUP):
            writer.write_table(
                pa.table(
                    {name: column.part(start, start + ROW_GROUP).array for name, column in columns.items()}
                )
            )
        writer.add_key_value_metadata({KEY: facts})


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
        "measurements": list(_batches(schema, measurements)),
    }


def _batches(schema: Schema, measurements: Sequence[Measurement]) -> Iterator[dict[str, Any]]:
    """What was measured as plain values; a batch goes on as long as only the columns differ, and a column is asked in one form."""
    batch, alike, forms = dict[str, Any](), tuple[object, ...](), dict[int, Form]()
    for one in measurements:
        query = _query(one)
        now = (one.noise, one.set, one.whole, query.centred, query.contrasts)
        asked = _forms(query)
        if now != alike or any(forms.get(axis, form) != form for axis, form in asked.items()):
            yield from [batch] if batch else []
            batch = {"tables": [], "noise": one.noise.kind, "scale": one.noise.scale, "set": one.set, "counts": "integer" if one.whole else "real"}  # fmt: skip
            batch |= {"contrasts": list(schema.attrs_on(sorted(query.contrasts)))} if query.contrasts else {}
            batch |= {"centred": True} if query.centred else {}
            alike, forms = now, {}
        forms |= asked
        batch["tables"].append(list(schema.attrs_on(query.axes)))
        for axis, (groups, names) in asked.items() if query.groups else ():
            if groups is not None:
                batch.setdefault("groups", {})[schema.attrs[axis]] = _plain(groups, names)
    yield batch


def _plain(groups: Groups, names: Sequence[str]) -> dict[str, Any]:
    """The first level of each run, or the group of each level; and names, where there are any."""
    levels = {"starts": list(groups.starts)} if groups.are_runs else {"of": list(groups.of)}
    return levels | ({"names": list(names)} if names else {})


def _query(one: Measurement) -> Query:
    """What a release measured is no sum of tables."""
    if not isinstance(one.query, Query):
        raise ReleaseError("measurements must be tables of columns, in levels, groups or contrasts")
    return one.query


def _forms(query: Query) -> dict[int, Form]:
    """In what form each column is asked."""
    return {axis: (groups, groups.names if groups else ()) for axis, groups in query.columns}


def read(path: Path) -> tuple[Schema, tuple[Measurement, ...], Statement]:
    """Read the file, refusing whatever is not exactly what was written."""
    if not path.is_file():
        raise ReleaseError(f"release file ({path}) must be an existing file; check the path")
    try:
        with path.open("rb") as stream:
            return _read(path, stream)
    except OSError as error:
        raise ReleaseError(
            f"release file ({path}) cannot be read: {error.strerror}; check its permissions"
        ) from None


def _read(path: Path, stream: BinaryIO) -> tuple[Schema, tuple[Measurement, ...], Statement]:
    """What the file is, then its version, then the rest."""
    other = foreign(path) if stream.read(4) != parquet.MAGIC else ""
    if other:
        raise ReleaseError(
            f"release file ({path}) is no release: it is {other}. A release is the Parquet file that `dpcipher measure` writes"
        )
    with _refusing(path, "it is not a readable Parquet file"):
        layout = parquet.read_layout(stream, os.fstat(stream.fileno()).st_size, KEY, MAX_METADATA)
    if layout is None:
        raise ReleaseError(
            f"release file ({path}) is no release, but a table: a Parquet file that was not written by dpcipher, or has lost what it says "
            "about itself. A release is the Parquet file that `dpcipher measure` writes"
        )
    with _refusing(path, "its metadata cannot be read"):
        plain = read_json(layout.metadata)
        version = plain.get("version") if isinstance(plain, dict) else None
        if type(version) is not int:
            raise ReleaseError("it states no version")
    if version != VERSION:
        raise ReleaseError(
            f"release file ({path}) has format version {version!r:.20}; "
            f"this dpcipher reads version {VERSION}. Use the dpcipher that wrote it"
        )
    with _refusing(path):
        return _read_release(layout, decode(_Facts, plain, "its metadata"))


@contextmanager
def _refusing(path: Path, what: str = "") -> Iterator[None]:
    """Whatever is wrong inside is damage, told in few words."""
    try:
        yield
    except (ValueError, OSError, pa.ArrowException) as wrong:
        if isinstance(wrong, OSError) and wrong.errno is not None:
            raise  # the disk's, not the file's
        why = f"{what} ({wrong})" if what else str(wrong)
        why = why if len(why) <= _LONGEST_REASON else why[:_LONGEST_REASON] + "…"
        raise ReleaseError(
            f"release file ({path}) is damaged: {why}. Get a fresh copy from its publisher"
        ) from None


def _read_release(layout: parquet.Layout, facts: _Facts) -> tuple[Schema, tuple[Measurement, ...], Statement]:
    """The counts, once the facts allow for so many; then what follows from both."""
    schema, statement = Schema.from_dict(facts.schema), Statement.from_dict(facts.statement)
    asked = list(_asked(schema, facts.measurements))
    shapes = [query.shape(schema.shape) for query, *_ in asked]
    check_sizes(shapes)
    totals = {number for query, _, number, _ in asked if not query.axes}
    if any(query.centred and number not in totals for query, _, number, _ in asked):
        raise ReleaseError("its centred tables must have the number of rows beside them, in every set")
    n_cells = sum(map(prod, shapes))
    if layout.n_rows != n_cells:
        raise ReleaseError(f"it has {layout.n_rows!s:.30} counts for the {n_cells} cells of its tables")
    columns = layout.columns(pa.schema(_kinds(asked)), "count")
    measurements = tuple(_with_counts(asked, shapes, _read_counts(columns, n_cells)))
    for name, column in cells(schema, measurements):
        if name != "count":
            column.check(columns, name)
    if facts.checksum != checksum(schema, measurements, statement):
        raise ReleaseError("its checksum does not match")
    return schema, measurements, statement


def _asked(schema: Schema, batches: Sequence[_Batch]) -> Iterator[Asked]:
    """All of the measurements but their values. The same groups are built once, and their levels counted before."""
    numbers, known, levels = (
        {attr: axis for axis, attr in enumerate(schema.attrs)},
        dict[tuple[int, str], Groups](),
        0,
    )
    if not 0 < sum(len(batch.tables) for batch in batches) <= MAX_TABLES:
        raise ReleaseError(f"its measurements must be 1 to {MAX_TABLES} tables")
    for batch in batches:
        noise, grouped = Noise(batch.noise, batch.scale), dict[int, Groups]()
        for attr, plain in batch.groups.items():
            (axis,) = _axes(numbers, [attr])
            key = (axis, str(plain))
            if key not in known:
                levels += schema.shape[axis]
                check_grouped(levels)
                known[key] = _groups(plain, schema.shape[axis])
            grouped[axis] = known[key]
        contrasts = _axes(numbers, batch.contrasts)
        for table in batch.tables:
            axes = _axes(numbers, table)
            groups = tuple(grouped.get(axis) for axis in axes) if grouped else ()
            yield Query(axes, groups, contrasts, batch.centred), noise, batch.set, batch.counts == "integer"


def _axes(numbers: Mapping[str, int], attrs: object) -> Axes:
    """Columns of the schema, in its order, each once."""
    if not isinstance(attrs, list) or not all(isinstance(attr, str) and attr in numbers for attr in attrs):
        raise ReleaseError(f"attrs ({attrs!r:.60}) must be a list of the schema's attributes")
    axes = tuple([numbers[attr] for attr in attrs])
    if len(axes) > MAX_ATTRS or any(low >= high for low, high in pairwise(axes)):
        raise ReleaseError(
            f"attrs ({attrs!r:.60}) must name at most {MAX_ATTRS} attributes, each once, in the schema's order"
        )
    return axes


def _groups(plain: _Groups, levels: int) -> Groups:
    """Groups of the levels of one column."""
    of = Groups.runs(plain.starts, levels).of if plain.starts else tuple(plain.of)
    if len(of) != levels or (plain.starts and plain.of):
        raise ReleaseError(
            f"groups must have starts, the first level of each run, or of, the group of each of the {levels} levels"
        )
    return Groups(of, tuple(plain.names))


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
    grouped = [
        [_plain(groups, groups.names) for groups in query.groups if groups] for query in workload.queries
    ]
    known = {form for query in workload.queries if query.groups for form in query.columns}
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


def _read_counts(columns: parquet.Columns, cells: int) -> NDArray[Any]:
    """The counts, one row group after another."""
    counts, filled = np.empty(cells, columns.schema.field("count").type.to_pandas_dtype()), 0
    for group, rows in enumerate(columns.rows):
        counts[filled : filled + rows] = columns.read(group, "count", 9 * rows).to_numpy()
        filled += rows
    if not (counts.min() >= -LARGEST_VALUE and counts.max() <= LARGEST_VALUE):  # a NaN is neither
        raise ReleaseError("its counts must be numbers within ±2**62")
    return counts


def _with_counts(
    asked: Sequence[Asked], shapes: Sequence[Shape], cells: NDArray[Any]
) -> Iterator[Measurement]:
    """Each measurement with its counts; whole numbers that were stored beside reals become whole again."""
    start = 0
    for number, ((query, noise, set_, whole), shape) in enumerate(zip(asked, shapes, strict=True)):
        counts = cells[start : start + prod(shape)].reshape(shape)
        if whole and counts.dtype.kind == "f":
            if (counts != np.floor(counts)).any():
                raise ReleaseError(f"its table {number} must hold whole numbers")
            counts = counts.astype(np.int64)
        yield Measurement(query, counts, noise, set_)
        start += counts.size


@dataclass(frozen=True)
class Column:
    """A column of the file: numbers, or for each row the number of its text, -1 where there is none."""

    numbers: NDArray[Any]
    texts: pa.StringArray | None = None

    def part(self, start: int, stop: int) -> "Column":
        """Some of its rows, with their own texts alone."""
        numbers = self.numbers[start:stop]
        if self.texts is None:
            return Column(numbers)
        used = np.flatnonzero(np.bincount(numbers + 1, minlength=1)[1:])
        places = np.full(len(self.texts) + 1, -1, np.int32)  # the last is that of no text
        places[used] = np.arange(len(used))
        return Column(places[numbers], self.texts.take(pa.array(used)))

    @property
    def array(self) -> pa.Array:
        """The same for Arrow."""
        if self.texts is None:
            return pa.array(self.numbers)
        return pa.DictionaryArray.from_arrays(pa.array(self.numbers, mask=self.numbers < 0), self.texts)

    def check(self, columns: parquet.Columns, name: str) -> None:
        """Refuse a file whose column of this name says anything else."""
        start = 0
        for group, rows in enumerate(columns.rows):
            part = self.part(start, start + rows)
            texts = 0 if part.texts is None else part.texts.nbytes
            if not part.equals(columns.read(group, name, texts + 9 * rows)):
                raise ReleaseError(f"its column {name} does not say what its schema, tables and counts say")
            start += rows

    def equals(self, read: pa.Array) -> bool:
        """Whether rows of a file are these."""
        if self.texts is None:
            return np.array_equal(self.numbers, read.to_numpy())
        known = pc.fill_null(pc.index_in(read.dictionary, self.texts), -2).to_numpy(zero_copy_only=False)
        places = pc.fill_null(read.indices, len(known)).to_numpy(zero_copy_only=False)
        return np.array_equal(self.numbers, np.append(known, -1)[places])


def _kinds(asked: Sequence[Asked]) -> dict[str, pa.DataType]:
    """The columns of the file and their types; levels of texts alone may be absent."""
    levels = max(len(query.axes) for query, *_ in asked)
    count = pa.int64() if all(whole for *_, whole in asked) else pa.float64()
    rows = {"rows": pa.float64()} if any(query.centred for query, *_ in asked) else {}
    texts = dict.fromkeys(["attrs", *(f"level_{place + 1}" for place in range(levels))], pa.string())
    return {"set": pa.int32(), "table": pa.int32(), **texts, "count": count, **rows}


def cells(schema: Schema, measurements: Sequence[Measurement]) -> Iterator[tuple[str, Column]]:
    """The columns, a row for each cell of every table, in the order of the schema's levels; where tables are centred also what each cell says in rows."""
    sizes = [one.values.size for one in measurements]
    yield "set", Column(np.repeat(np.array([one.set for one in measurements], dtype=np.int32), sizes))
    yield "table", Column(np.repeat(np.arange(len(measurements), dtype=np.int32), sizes))
    named = Domain(
        schema.attrs, schema.shape
    ).named  # the schema's own knows impossible cells, which may be many
    names = dict[str, int]()
    numbers = [names.setdefault(named(one.query.axes), len(names)) for one in measurements]
    yield "attrs", Column(np.repeat(np.array(numbers, dtype=np.int32), sizes), pa.array(names, pa.string()))
    for place in range(max(len(one.query.axes) for one in measurements)):
        yield f"level_{place + 1}", _level_column(schema, measurements, place)
    kind = np.int64 if all(one.whole for one in measurements) else np.float64
    yield (
        "count",
        Column(np.concatenate([one.values.ravel() for one in measurements]).astype(kind, copy=False)),
    )
    if any(one.query.centred for one in measurements):
        totals = {one.set: float(one.values) for one in measurements if not one.query.axes}
        parts = [
            one.in_rows()[0] + (totals[one.set] / one.values.size if one.query.centred else 0)
            for one in measurements
        ]
        yield "rows", Column(np.concatenate([part.ravel() for part in parts]).astype(np.float64, copy=False))


def _level_column(schema: Schema, measurements: Sequence[Measurement], place: int) -> Column:
    """The labels of the levels, or groups, of the `place`-th column of each table; none where a table has fewer."""
    labels, known, codes = dict[str, int](), dict[object, NDArray[np.int32]](), list[NDArray[np.int32]]()
    for one in measurements:
        axis, form = next(iter(list(_forms(_query(one)).items())[place : place + 1]), (-1, (None, ())))
        shape = one.values.shape
        if (axis, form) not in known:
            levels = schema.labels(schema.attrs[axis]) if axis >= 0 else ()
            texts = form[0].labels(levels) if form[0] else levels
            known[axis, form] = np.array([labels.setdefault(text, len(labels)) for text in texts], np.int32)
        if (axis, form, shape) not in known:
            numbers = (
                known[axis, form].reshape(-1, *[1] * (len(shape) - place - 1)) if axis >= 0 else np.int32(-1)
            )
            known[axis, form, shape] = np.broadcast_to(numbers, shape).ravel()
        codes.append(known[axis, form, shape])
    return Column(np.concatenate(codes), pa.array(labels, pa.string()))
