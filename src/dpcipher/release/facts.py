"""The facts in the metadata of a release file: schema, statement and tables, each checked before any count is read."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any

from dpcipher.errors import DpcipherError, ReleaseError, SizeError
from dpcipher.privacy.mechanism import LARGEST_SCALE, Mechanism
from dpcipher.release.statement import Statement
from dpcipher.schema.plain import read_json
from dpcipher.schema.schema import Schema
from dpcipher.schema.workload import MAX_CELLS, MAX_TABLE_CELLS, MAX_TABLES, Workload

VERSION = 1
# All pairs of a thousand columns need 60 MiB. Parquet's own reader takes no more: Arrow keeps a second copy, a third longer, and
# stops at 100 MB.
MAX_METADATA = 64 * 2**20
_ANSWERED = 400  # bytes that the event of a measured table takes at most in a certificate, beside its names
_DESCRIBED = 108  # bytes that the facts of a table take at most, beside its names
MAX_ATTRS = 32  # no array of numpy 1 has more dimensions
_KEYS = ("version", "schema", "statement", "tables", "checksum")
_TABLE_KEYS = {"attrs", "counts", "mechanism", "scale", "set"}


@dataclass(frozen=True)
class Described:
    """What the metadata says of one table."""

    attrs: tuple[str, ...]
    shape: tuple[int, ...]
    whole: bool
    mechanism: Mechanism
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
    checksum: str

    @property
    def cells(self) -> int:
        """How many counts the tables have together."""
        return sum(table.cells for table in self.tables)


def read_metadata(raw: bytes) -> tuple[int, Mapping[str, Any]]:
    """The version that a metadata text states, and its plain values; a `ReleaseError` where it states none."""
    if len(raw) > MAX_METADATA:
        raise ReleaseError(f"its metadata ({len(raw)} bytes) must have at most {MAX_METADATA} bytes")
    try:
        plain = read_json(raw)
    except ValueError as wrong:
        raise ReleaseError(f"its metadata cannot be read ({wrong})") from None
    version = plain.get("version") if isinstance(plain, dict) else None
    if not isinstance(plain, dict) or not isinstance(version, int) or isinstance(version, bool):
        raise ReleaseError("its metadata cannot be read (it states no version)")
    return version, plain


def read_facts(plain: Mapping[str, Any]) -> Facts:
    """The facts in the plain values of this version; a `ReleaseError` says what is wrong with them."""
    if set(plain) != set(_KEYS):
        raise ReleaseError(f"its metadata must hold {', '.join(_KEYS)}, and nothing else")
    try:
        schema = Schema.from_dict(plain["schema"])
        statement = Statement.from_dict(plain["statement"])
    except DpcipherError as wrong:
        raise ReleaseError(f"its facts are wrong: {wrong}") from None
    tables = _tables(schema, plain["tables"])
    _check_certified(statement, tables)
    if not isinstance(plain["checksum"], str):
        raise ReleaseError("its checksum must be a text")
    return Facts(schema, statement, tables, plain["checksum"])


def _tables(schema: Schema, plain: object) -> tuple[Described, ...]:
    if not isinstance(plain, list) or not 0 < len(plain) <= MAX_TABLES:
        raise ReleaseError(f"its tables must be a list of 1 to {MAX_TABLES}")
    axes = {attr: axis for axis, attr in enumerate(schema.attrs)}
    tables = []
    for number, one in enumerate(plain):
        try:
            tables.append(_table(schema, axes, one))
        except DpcipherError as wrong:
            raise ReleaseError(f"its table {number} is wrong: {wrong}") from None
    check_sizes([table.shape for table in tables])
    return tuple(tables)


def _table(schema: Schema, axes: Mapping[str, int], plain: object) -> Described:
    if not isinstance(plain, dict) or set(plain) != _TABLE_KEYS:
        raise ReleaseError("it must hold attrs, counts, mechanism, scale and set, and nothing else")
    attrs = _attrs(axes, plain["attrs"])
    if plain["counts"] not in ("integer", "real"):
        raise ReleaseError(f"counts ({plain['counts']!r:.60}) must be integer or real")
    number = plain["set"]
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < MAX_TABLES:
        raise ReleaseError(f"set ({number!r:.60}) must be a whole number, 0 or above")
    shape = tuple(schema.shape[axes[attr]] for attr in attrs)
    return Described(attrs, shape, plain["counts"] == "integer", _mechanism(plain), number)


def _attrs(axes: Mapping[str, int], plain: object) -> tuple[str, ...]:
    """Attributes of the schema, in its order, each once."""
    if not isinstance(plain, list) or any(not isinstance(attr, str) or attr not in axes for attr in plain):
        raise ReleaseError(f"attrs ({plain!r:.60}) must be a list of the schema's attributes")
    places = [axes[attr] for attr in plain]
    if len(places) > MAX_ATTRS or any(low >= high for low, high in pairwise(places)):
        raise ReleaseError(
            f"attrs ({plain!r:.60}) must name at most {MAX_ATTRS} attributes, each once, in the schema's order"
        )
    return tuple(plain)


def _mechanism(plain: Mapping[str, Any]) -> Mechanism:
    scale = plain["scale"]
    if isinstance(scale, bool) or not isinstance(scale, int | float) or not 0 <= scale <= LARGEST_SCALE:
        raise ReleaseError(f"scale ({scale!r:.60}) must be a number from 0 to {LARGEST_SCALE:.6g}")
    return Mechanism(plain["mechanism"], float(scale))


def check_sizes(shapes: Sequence[tuple[int, ...]]) -> None:
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
    described = sum(_DESCRIBED + len(json.dumps(attrs)) for attrs in workload.tables) * sets
    if described + len(json.dumps(schema.to_dict())) > MAX_METADATA:
        raise SizeError(
            f"workload: {len(workload.tables):,} tables in each of {sets} sets are more than one release file can list; measure fewer"
        )


def most_tables(schema: Schema, sets: int) -> int:
    """How many tables of two columns, measured one by one, a release of so many sets can surely list; judged on the schema."""
    names = 2 * 2 * max(len(json.dumps(attr)) + 2 for attr in schema.attrs)
    room = MAX_METADATA - len(json.dumps(schema.to_dict()))
    return max(0, room // (sets * (_DESCRIBED + _ANSWERED + names)))


def _check_certified(statement: Statement, tables: Sequence[Described]) -> None:
    """Where costs are listed by table, there is one for each table of a set."""
    listed = statement.certificate.get("per_table")
    many = Counter(table.set for table in tables)[0]
    if listed is not None and len(listed) != many:
        raise ReleaseError(f"its certificate lists {len(listed)} costs for the {many} tables of a set")
