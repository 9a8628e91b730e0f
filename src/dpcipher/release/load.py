"""Release files read back. Nothing is ever unpickled.

Anybody may have written a file that is read here, checksum and all. So everything in it is checked, and sizes come first: the
metadata's length, then what the metadata says, then how many cells its tables have, then how many counts the file has, and only
then the counts. Every other column follows from these, and must.
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpcipher.errors import DpcipherError, ReleaseError
from dpcipher.io.foreign import foreign
from dpcipher.release import file
from dpcipher.release.columns import Layout, Texts, holds, read_layout, read_numbers
from dpcipher.release.file import Described
from dpcipher.release.statement import Statement
from dpcipher.schema.plain import read_json
from dpcipher.schema.schema import Schema
from dpcipher.schema.workload import MAX_TABLES
from dpcipher.tables.domain import Axes, Shape
from dpcipher.tables.measurement import LARGEST_SCALE, LARGEST_VALUE, Measurement, Noise
from dpcipher.tables.query import Groups, Query

# How much a file may grow when it is read: eight bytes for each cell. Noise does not pack (to a sixth, at scale 100), but an exact table
# may be all zeros, and then cells of the same levels repeat too: such files grow to 190 times their size, and to 3,300 times
# where an older Arrow wrote them. What is small anyway is let through.
MOST_GROWTH, SMALL = 4096, 64 * 2**20
LONGEST_REASON = 300  # a file may quote itself at any length
MAX_ATTRS = 32  # no array of numpy 1 has more dimensions
_HOLDS = "it must hold attrs, counts, noise, scale and set, with groups, contrasts and centred where these say more, and nothing else"
_KEYS = ("version", "schema", "statement", "measurements", "checksum")


@dataclass(frozen=True)
class Facts:
    """All that a release file says beside its counts."""

    schema: Schema
    statement: Statement
    measurements: tuple[Described, ...]
    checksum: str


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
    """The facts, then the counts once the facts allow for so many, then what follows from both."""
    size = os.fstat(stream.fileno()).st_size
    layout, facts = _layout(path, stream, size)
    shapes = [one.query.shape(facts.schema.shape) for one in facts.measurements]
    _check_number(path, facts, shapes, layout, size)
    try:
        counts = read_numbers(stream, layout.columns["count"])
    except (ValueError, OSError, pa.ArrowException):
        raise _damaged(path, "its counts cannot be read") from None
    measurements = _with_counts(path, facts, shapes, counts)
    _check_columns(path, stream, layout, file.cells(facts.schema, measurements))
    if facts.checksum != file.checksum(facts.schema, measurements, facts.statement):
        raise _damaged(path, "its checksum does not match")
    return facts.schema, measurements, facts.statement


def _layout(path: Path, stream: BinaryIO, size: int) -> tuple[Layout, Facts]:
    """Where the columns of the file are, and what its metadata says."""
    try:
        layout = read_layout(stream, size, file.KEY)
    except ValueError as wrong:
        other = foreign(path)
        if other:
            raise ReleaseError(
                f"release file ({path}) is no release: it is {other}. A release is the Parquet file that `dpcipher measure` writes"
            ) from None
        raise _damaged(path, f"it is not a readable Parquet file ({wrong})") from None
    if layout.metadata is None:
        raise ReleaseError(
            f"release file ({path}) is no release, but a table: a Parquet file that was not written by dpcipher, or has lost what it says about "
            "itself. A release is the Parquet file that `dpcipher measure` writes"
        )
    return layout, _facts(path, layout.metadata)


def _check_columns(
    path: Path, stream: BinaryIO, layout: Layout, expected: Iterable[tuple[str, Texts | NDArray[Any]]]
) -> None:
    """Every column but the counts says what the metadata and the counts say."""
    for name, column in expected:
        try:
            same = name == "count" or holds(stream, layout.columns[name], column)
        except (ValueError, OSError, pa.ArrowException):
            same = False
        if not same:
            raise _damaged(path, f"its column {name} does not say what its schema, tables and counts say")


def _facts(path: Path, raw: bytes) -> Facts:
    """The facts in the metadata of a file of a known version."""
    try:
        plain = _read_metadata(raw)
        if plain["version"] == file.VERSION:
            return _read_facts(plain)
    except ReleaseError as wrong:
        raise _damaged(path, str(wrong)) from None
    raise ReleaseError(
        f"release file ({path}) has format version {plain['version']!r:.20}; "
        f"this dpcipher reads version {file.VERSION}. Use the dpcipher that wrote it"
    )


def _read_metadata(raw: bytes) -> dict[str, Any]:
    """The plain values of a metadata text, which must state their version."""
    if len(raw) > file.MAX_METADATA:
        raise ReleaseError(f"its metadata ({len(raw)} bytes) must have at most {file.MAX_METADATA} bytes")
    try:
        plain = read_json(raw)
    except ValueError as wrong:
        raise ReleaseError(f"its metadata cannot be read ({wrong})") from None
    if not isinstance(plain, dict) or not _is_whole(plain.get("version")):
        raise ReleaseError("its metadata cannot be read (it states no version)")
    return plain


def _read_facts(plain: Mapping[str, Any]) -> Facts:
    if set(plain) != set(_KEYS):
        raise ReleaseError(f"its metadata must hold {', '.join(_KEYS)}, and nothing else")
    try:
        schema = Schema.from_dict(plain["schema"])
        statement = Statement.from_dict(plain["statement"])
    except DpcipherError as wrong:
        raise ReleaseError(f"its facts are wrong: {wrong}") from None
    measurements = _read_measurements(schema, plain["measurements"])
    if not isinstance(plain["checksum"], str):
        raise ReleaseError("its checksum must be a text")
    return Facts(schema, statement, measurements, plain["checksum"])


def _read_measurements(schema: Schema, plain: object) -> tuple[Described, ...]:
    if not isinstance(plain, list) or not 0 < len(plain) <= MAX_TABLES:
        raise ReleaseError(f"its measurements must be a list of 1 to {MAX_TABLES}")
    read, queries = [], _Queries(schema)
    for number, one in enumerate(plain):
        try:
            read.append(_read_measurement(schema, queries, one))
        except DpcipherError as wrong:
            raise ReleaseError(f"its table {number} is wrong: {wrong}") from None
    file.check_sizes([one.query.shape(schema.shape) for one in read])
    totals = {one.set for one in read if not one.query.axes}
    if any(one.query.centred and one.set not in totals for one in read):
        raise ReleaseError("its centred tables must have the number of rows beside them, in every set")
    return tuple(read)


def _read_measurement(schema: Schema, queries: "_Queries", plain: object) -> Described:
    if not isinstance(plain, dict):
        raise ReleaseError(_HOLDS)
    if plain.get("counts") not in ("integer", "real"):
        raise ReleaseError(f"counts ({plain.get('counts')!r:.60}) must be integer or real")
    whole = plain["counts"] == "integer"
    read = Described(queries.read(plain), _read_noise(plain), _read_set(plain.get("set")), whole)
    if read.as_dict(schema) != plain:
        raise ReleaseError(_HOLDS)
    return read


class _Queries:
    """Reads what was asked. Levels that groups put together are counted before the groups are built, and the same groups are built once."""

    def __init__(self, schema: Schema) -> None:
        self._axes = {attr: axis for axis, attr in enumerate(schema.attrs)}
        self._shape, self._known, self._levels = schema.shape, dict[tuple[int, str], Groups](), 0

    def read(self, plain: Mapping[str, Any]) -> Query:
        """The query of one measurement."""
        axes, groups = self._read_attrs(plain.get("attrs")), plain.get("groups", [])
        if not isinstance(groups, list) or len(groups) not in (0, len(axes)):
            raise ReleaseError("groups must be a list, with an entry for each of attrs")
        forms = zip(axes, groups, strict=False)
        return Query(
            axes,
            tuple(None if one is None else self._read_groups(axis, one) for axis, one in forms),
            self._read_attrs(plain.get("contrasts", [])),
            plain.get("centred") is True,
        )

    def _read_attrs(self, plain: object) -> Axes:
        """Attributes of the schema, in its order, each once."""
        if not isinstance(plain, list) or any(
            not isinstance(attr, str) or attr not in self._axes for attr in plain
        ):
            raise ReleaseError(f"attrs ({plain!r:.60}) must be a list of the schema's attributes")
        axes = tuple(self._axes[attr] for attr in plain)
        if len(axes) > MAX_ATTRS or any(low >= high for low, high in pairwise(axes)):
            raise ReleaseError(
                f"attrs ({plain!r:.60}) must name at most {MAX_ATTRS} attributes, each once, in the schema's order"
            )
        return axes

    def _read_groups(self, axis: int, plain: object) -> Groups:
        key = (axis, json.dumps(plain))
        if key not in self._known:
            self._levels += self._shape[axis]
            file.check_grouped(self._levels)
            self._known[key] = _read_groups(plain, self._shape[axis])
        return self._known[key]


def _read_groups(plain: object, levels: int) -> Groups:
    """Groups of the levels of one attribute."""
    known = plain if isinstance(plain, dict) else {}
    numbers, names = known.get("starts", known.get("of")), known.get("names", [])
    if not isinstance(numbers, list) or not all(map(_is_whole, numbers)):
        raise ReleaseError("groups must have starts, the first level of each run, or the group of each level")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ReleaseError("groups must have a list of names, or none")
    of = Groups.runs(numbers, levels).of if "starts" in known else tuple(numbers)
    if len(of) != levels:
        raise ReleaseError(f"groups must hold each of the {levels} levels once")
    return Groups(of, tuple(names))


def _read_set(number: Any) -> int:
    if not _is_whole(number) or not 0 <= number < MAX_TABLES:
        raise ReleaseError(f"set ({number!r:.60}) must be a whole number, 0 or above")
    return int(number)


def _read_noise(plain: Mapping[str, Any]) -> Noise:
    scale = plain.get("scale")
    if isinstance(scale, bool) or not isinstance(scale, int | float) or not 0 <= scale <= LARGEST_SCALE:
        raise ReleaseError(f"scale ({scale!r:.60}) must be a number from 0 to {LARGEST_SCALE:.6g}")
    return Noise(plain.get("noise"), float(scale))  # type: ignore[arg-type]  # it judges what it is given


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_number(path: Path, facts: Facts, shapes: Sequence[Shape], layout: Layout, size: int) -> None:
    """The writer's columns, with as many rows as cells, and no more of them than a file of this size can honestly hold."""
    names = file.column_names(one.query for one in facts.measurements)
    if list(layout.columns) != names:
        raise _damaged(path, f"its columns must be {', '.join(names)}")
    cells = sum(map(prod, shapes))
    if layout.rows != cells:
        raise _damaged(path, f"it has {layout.rows} counts for the {cells} cells of its tables")
    if layout.columns["count"].type != (
        np.int64 if all(one.whole for one in facts.measurements) else np.float64
    ):
        raise _damaged(path, "its counts are of another type than its tables")
    if 8 * cells > SMALL + MOST_GROWTH * size:
        raise _damaged(path, f"its {size} bytes would grow to {8 * cells}, as no release does")


def _with_counts(
    path: Path, facts: Facts, shapes: Sequence[Shape], cells: NDArray[Any]
) -> tuple[Measurement, ...]:
    """Each measurement with its counts; whole numbers that were stored beside reals become whole again."""
    if not (cells.min() >= -LARGEST_VALUE and cells.max() <= LARGEST_VALUE):  # a NaN is neither
        raise _damaged(path, "its counts must be numbers within ±2**62")
    measurements, start = [], 0
    for number, (one, shape) in enumerate(zip(facts.measurements, shapes, strict=True)):
        counts = cells[start : start + prod(shape)].reshape(shape)
        if one.whole and counts.dtype.kind == "f":
            if (counts != np.floor(counts)).any():
                raise _damaged(path, f"its table {number} must hold whole numbers")
            counts = counts.astype(np.int64)
        measurements.append(Measurement(one.query, counts, one.noise, one.set))
        start += counts.size
    return tuple(measurements)


def _damaged(path: Path, why: str) -> ReleaseError:
    reason = why if len(why) <= LONGEST_REASON else why[:LONGEST_REASON] + "…"
    return ReleaseError(f"release file ({path}) is damaged: {reason}. Get a fresh copy from its publisher")
