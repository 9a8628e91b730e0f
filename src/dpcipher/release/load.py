"""Release files read back. Nothing is ever unpickled.

Anybody may have written a file that is read here, checksum and all. So everything in it is checked, and sizes come first: the
metadata's length, then what the metadata says, then how many cells its tables have, then how many counts the file has, and only
then the counts. Every other column follows from these, and must.
"""

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
from dpcipher.release.file import LARGEST_COUNT, Beside, CoarseTable, NoisyTable, NoisyTotal
from dpcipher.release.statement import Statement
from dpcipher.schema.plain import read_json
from dpcipher.schema.schema import Schema
from dpcipher.schema.workload import MAX_TABLES
from dpcipher.tables.domain import Attrs, Shape
from dpcipher.tables.measurement import LARGEST_SCALE, Noise

# How much a file may grow when it is read: eight bytes for each cell. Noise does not pack (to a sixth, at scale 100), but an exact table
# may be all zeros, and then cells of the same levels repeat too: such files grow to 190 times their size, and to 3,300 times
# where an older Arrow wrote them. What is small anyway is let through.
MOST_GROWTH, SMALL = 4096, 64 * 2**20
LONGEST_REASON = 300  # a file may quote itself at any length
MAX_ATTRS = 32  # no array of numpy 1 has more dimensions
_KEYS = ("version", "schema", "statement", "tables", "coarse", "totals", "checksum")
_TABLE_KEYS = {"attrs", "counts", "mechanism", "scale", "set"}
_COARSE_KEYS = {"attr", "starts", "counts", "mechanism", "scale", "set"}
_TOTAL_KEYS = {"count", "mechanism", "scale", "set"}


@dataclass(frozen=True)
class Described:
    """What the metadata says of one table."""

    attrs: Attrs
    shape: Shape
    whole: bool
    mechanism: Noise
    set: int

    @property
    def cells(self) -> int:
        """How many counts it has."""
        return prod(self.shape)


@dataclass(frozen=True)
class Facts:
    """All that a release file says beside its counts."""

    schema: Schema
    statement: Statement
    tables: tuple[Described, ...]
    beside: Beside
    checksum: str


def read(path: Path) -> tuple[Schema, tuple[NoisyTable, ...], Statement, Beside]:
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


def _read(path: Path, stream: BinaryIO) -> tuple[Schema, tuple[NoisyTable, ...], Statement, Beside]:
    """The facts, then the counts once the facts allow for so many, then what follows from both."""
    size = os.fstat(stream.fileno()).st_size
    layout, facts = _layout(path, stream, size)
    _check_number(path, facts, layout, size)
    try:
        counts = read_numbers(stream, layout.columns["count"])
    except (ValueError, OSError, pa.ArrowException):
        raise _damaged(path, "its counts cannot be read") from None
    tables = _with_counts(path, facts.tables, counts)
    _check_columns(path, stream, layout, file.cells(facts.schema, tables, facts.beside.totals))
    if facts.checksum != file.checksum(facts.schema, tables, facts.statement, facts.beside):
        raise _damaged(path, "its checksum does not match")
    return facts.schema, tables, facts.statement, facts.beside


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
    tables = _read_tables(schema, plain["tables"])
    if not isinstance(plain["checksum"], str):
        raise ReleaseError("its checksum must be a text")
    beside = Beside(_read_coarse_tables(schema, plain["coarse"]), _read_totals(plain["totals"]))
    sets = {table.set for table in tables}
    if beside.totals and sorted(total.set for total in beside.totals) != sorted(sets):
        raise ReleaseError(f"its totals must be one for each of the {len(sets)} sets")
    return Facts(schema, statement, tables, beside, plain["checksum"])


def _read_tables(schema: Schema, plain: object) -> tuple[Described, ...]:
    if not isinstance(plain, list) or not 0 < len(plain) <= MAX_TABLES:
        raise ReleaseError(f"its tables must be a list of 1 to {MAX_TABLES}")
    axes = {attr: axis for axis, attr in enumerate(schema.attrs)}
    tables = []
    for number, table in enumerate(plain):
        try:
            tables.append(_read_table(schema, axes, table))
        except DpcipherError as wrong:
            raise ReleaseError(f"its table {number} is wrong: {wrong}") from None
    file.check_sizes([table.shape for table in tables])
    return tuple(tables)


def _read_table(schema: Schema, axes: Mapping[str, int], plain: object) -> Described:
    if not isinstance(plain, dict) or set(plain) != _TABLE_KEYS:
        raise ReleaseError("it must hold attrs, counts, mechanism, scale and set, and nothing else")
    attrs = _read_attrs(axes, plain["attrs"])
    if plain["counts"] not in ("integer", "real"):
        raise ReleaseError(f"counts ({plain['counts']!r:.60}) must be integer or real")
    shape = tuple(schema.shape[axes[attr]] for attr in attrs)
    return Described(attrs, shape, plain["counts"] == "integer", _read_mechanism(plain), _read_set(plain))


def _read_coarse_tables(schema: Schema, plain: object) -> tuple[CoarseTable, ...]:
    if not isinstance(plain, list) or len(plain) > MAX_TABLES:
        raise ReleaseError(f"its coarse counts must be a list of at most {MAX_TABLES}")
    coarse = []
    for number, one in enumerate(plain):
        try:
            coarse.append(_read_coarse(schema, one))
        except DpcipherError as wrong:
            raise ReleaseError(f"its coarse counts {number} are wrong: {wrong}") from None
    return tuple(coarse)


def _read_coarse(schema: Schema, plain: object) -> CoarseTable:
    """Coarse counts as they were written; that they fit the schema is judged by the release."""
    if not isinstance(plain, dict) or set(plain) != _COARSE_KEYS:
        raise ReleaseError("they must hold attr, starts, counts, mechanism, scale and set, and nothing else")
    if plain["attr"] not in schema.attrs:
        raise ReleaseError(f"attr ({plain['attr']!r:.60}) must be an attribute of the schema")
    for name in ("starts", "counts"):
        numbers = plain[name]
        if not isinstance(numbers, list) or not all(map(_is_count, numbers)):
            raise ReleaseError(f"{name} must be a list of whole numbers within ±2**62")
    counts = np.array(plain["counts"], dtype=np.int64)
    return CoarseTable(
        plain["attr"], tuple(plain["starts"]), counts, _read_mechanism(plain), _read_set(plain)
    )


def _read_totals(plain: object) -> tuple[NoisyTotal, ...]:
    """Totals as they were written."""
    if not isinstance(plain, list) or len(plain) > MAX_TABLES:
        raise ReleaseError(f"its totals must be a list of at most {MAX_TABLES}")
    totals = []
    for one in plain:
        if not isinstance(one, dict) or set(one) != _TOTAL_KEYS or not _is_count(one["count"]):
            raise ReleaseError(
                "each of its totals must hold count, a whole number within ±2**62, mechanism, scale and set"
            )
        try:
            totals.append(NoisyTotal(one["count"], _read_mechanism(one), _read_set(one)))
        except DpcipherError as wrong:
            raise ReleaseError(f"its totals are wrong: {wrong}") from None
    return tuple(totals)


def _read_set(plain: Mapping[str, Any]) -> int:
    number = plain["set"]
    if not _is_whole(number) or not 0 <= number < MAX_TABLES:
        raise ReleaseError(f"set ({number!r:.60}) must be a whole number, 0 or above")
    return int(number)


def _read_mechanism(plain: Mapping[str, Any]) -> Noise:
    scale = plain["scale"]
    if isinstance(scale, bool) or not isinstance(scale, int | float) or not 0 <= scale <= LARGEST_SCALE:
        raise ReleaseError(f"scale ({scale!r:.60}) must be a number from 0 to {LARGEST_SCALE:.6g}")
    return Noise(plain["mechanism"], float(scale))


def _read_attrs(axes: Mapping[str, int], plain: object) -> Attrs:
    """Attributes of the schema, in its order, each once."""
    if not isinstance(plain, list) or any(not isinstance(attr, str) or attr not in axes for attr in plain):
        raise ReleaseError(f"attrs ({plain!r:.60}) must be a list of the schema's attributes")
    places = [axes[attr] for attr in plain]
    if len(places) > MAX_ATTRS or any(low >= high for low, high in pairwise(places)):
        raise ReleaseError(
            f"attrs ({plain!r:.60}) must name at most {MAX_ATTRS} attributes, each once, in the schema's order"
        )
    return tuple(plain)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and _is_whole(value) and abs(value) <= LARGEST_COUNT


def _check_number(path: Path, facts: Facts, layout: Layout, size: int) -> None:
    """The writer's columns, with as many rows as cells, and no more of them than a file of this size can honestly hold."""
    names = file.column_names([table.attrs for table in facts.tables], centred=bool(facts.beside.totals))
    if list(layout.columns) != names:
        raise _damaged(path, f"its columns must be {', '.join(names)}")
    cells = sum(table.cells for table in facts.tables)
    if layout.rows != cells:
        raise _damaged(path, f"it has {layout.rows} counts for the {cells} cells of its tables")
    if layout.columns["count"].type != (
        np.int64 if all(table.whole for table in facts.tables) else np.float64
    ):
        raise _damaged(path, "its counts are of another type than its tables")
    if 8 * cells > SMALL + MOST_GROWTH * size:
        raise _damaged(path, f"its {size} bytes would grow to {8 * cells}, as no release does")


def _with_counts(path: Path, tables: Sequence[Described], cells: NDArray[Any]) -> tuple[NoisyTable, ...]:
    """Each table with its counts; whole numbers that were stored beside reals become whole again."""
    if not (cells.min() >= -LARGEST_COUNT and cells.max() <= LARGEST_COUNT):  # a NaN is neither
        raise _damaged(path, "its counts must be numbers within ±2**62")
    noisy = []
    start = 0
    for table in tables:
        counts = cells[start : start + table.cells].reshape(table.shape)
        if table.whole and counts.dtype.kind == "f":
            if (counts != np.floor(counts)).any():
                raise _damaged(path, f"its table {' × '.join(table.attrs)} must hold whole numbers")
            counts = counts.astype(np.int64)
        noisy.append(NoisyTable(table.attrs, counts, table.mechanism, table.set))
        start += table.cells
    return tuple(noisy)


def _damaged(path: Path, why: str) -> ReleaseError:
    reason = why if len(why) <= LONGEST_REASON else why[:LONGEST_REASON] + "…"
    return ReleaseError(f"release file ({path}) is damaged: {reason}. Get a fresh copy from its publisher")
