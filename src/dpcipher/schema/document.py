"""What a schema file, or a release, holds of a schema: plain values, read by the annotations below; where it came from, and who vouches for it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from typing import Annotated, Any

import numpy as np
import pyarrow as pa

from dpcipher.errors import SchemaError, SizeError
from dpcipher.files.codec import Rule as Must
from dpcipher.files.codec import as_plain, check_fields, decode, is_whole
from dpcipher.schema.bins import MAX_BINS
from dpcipher.schema.columns import Column
from dpcipher.schema.cut import Integer
from dpcipher.schema.declared import column_of
from dpcipher.schema.format import PLAIN, FileFormat
from dpcipher.schema.levels import Levels, Missing
from dpcipher.schema.rules.rule import Rule, Zero
from dpcipher.schema.words import line_rule

VERSION = 1
# A few bytes of a schema can ask for a million edges or a mask of millions of levels: what all columns and zeros ask for together.
MAX_TOTAL_BINS = 4 * MAX_BINS
MAX_ZEROS, MAX_ZERO_LEVELS = 2**16, 2**18
CURATORS_KEYS = ("sign_off", "notes", "drafted_as")  # no part of what is signed


def _is_date(text: str) -> bool:
    try:
        return bool(date.fromisoformat(text))
    except ValueError:
        return False


@dataclass(frozen=True)
class SignOff:
    """A person's word that a draft may be used; `hash` ties it to one state of the schema."""

    name: Annotated[
        str, Must("must be the name of the person who checked the schema", lambda name: bool(name.strip()))
    ]
    date: Annotated[str, Must("must be a date such as 2024-01-31", _is_date)]
    hash: str

    def __post_init__(self) -> None:
        try:
            check_fields(self)
        except ValueError as wrong:
            raise SchemaError(f"sign_off {wrong}") from None


@dataclass(frozen=True)
class Provenance:
    """Declared by a person (the default), drawn from data, or imported from a dictionary; `notes` tell the person what to check.

    `drafted_as` is the hash of the columns as a draft had them: who signs them unchanged is asked twice.
    """

    drawn_from_data: bool = False
    sign_off: SignOff | None = None
    notes: tuple[str, ...] = ()
    imported_from: str | None = None
    drafted_as: str | None = None


@dataclass(frozen=True)
class SchemaDocument:
    """The keys of a schema file."""

    columns: Any
    version: Annotated[
        int, Must(f"must be {VERSION}; a newer dpcipher may be needed", lambda number: number == VERSION)
    ] = VERSION
    zeros: tuple[Any, ...] | None = None
    rules: tuple[Any, ...] | None = None
    missing_values: tuple[Any, ...] | None = None
    format: Any = None
    title: Annotated[str, line_rule("title")] | None = None
    description: Annotated[str, line_rule("description")] | None = None
    person: Annotated[str, line_rule("person")] | None = None
    drawn_from_data: bool = False
    notes: tuple[Any, ...] | None = None
    imported_from: Annotated[
        str | None, Must("must be the name of a dictionary", lambda name: name is None or bool(name.strip()))
    ] = None
    drafted_as: Annotated[str | None, Must("must be the hash that `dpcipher schema draft` wrote")] = None
    sign_off: Annotated[
        SignOff | None, Must("must hold name, date and hash; `dpcipher schema sign` writes it")
    ] = None

    @property
    def provenance(self) -> Provenance:
        """Where the schema came from."""
        notes = tuple(map(str, self.notes or ()))
        return Provenance(self.drawn_from_data, self.sign_off, notes, self.imported_from, self.drafted_as)


def read_document(plain: object) -> SchemaDocument:
    """The document of plain values, with columns and zeros that are typed; rules are read as the schema is made."""
    if not isinstance(plain, Mapping) or "columns" not in plain:
        raise SchemaError(
            "a schema must be a mapping with the key columns; try columns: {age: {kind: integer, min: 0, max: 99}}"
        )
    if "compounds" in plain:
        raise SchemaError(
            "compounds are no columns; leave the key out and list the tables to measure, such as workload=[('A', 'B', 'C')], "
            "or let dpcipher.schema.crossed list them from groups of columns"
        )
    try:
        document: SchemaDocument = decode(SchemaDocument, plain, "")
    except ValueError as wrong:
        raise SchemaError(str(wrong).removeprefix(": ")) from None
    columns = _read_columns(_with_default(document.columns, document.missing_values))
    zeros = _read_zeros(document.zeros or ())
    return replace(
        document,
        columns=columns,
        zeros=zeros,
        format=PLAIN if document.format is None else FileFormat.from_spec(document.format),
    )


def is_domain(plain: object) -> bool:
    """Whether this is the {column: size} mapping of private-pgm rather than a schema."""
    return (
        isinstance(plain, Mapping)
        and bool(plain)
        and set(plain) != {"version"}
        and all(type(size) is int for size in plain.values())
    )


def sized_column(name: str, size: int) -> Column:
    """A column of integer codes 0..size-1."""
    whole = as_plain(size)
    if not is_whole(whole) or whole < 1:
        raise SchemaError(f"size of column {name!r:.60} ({size!r:.60}) must be a whole number from 1 up")
    return Integer(name, min=0, max=whole - 1)


def write_document(
    columns: Sequence[Column],
    zeros: Sequence[Zero],
    rules: Sequence[Rule],
    provenance: Provenance,
    format: FileFormat,
    **words: str | None,
) -> dict[str, object]:
    """A schema as plain values, fit for JSON; what is empty is left out."""
    document = {
        "version": VERSION,
        "columns": [column.to_spec() for column in columns],
        "zeros": [_plain(zero.to_spec()) for zero in zeros],
        "rules": [_plain(rule.to_spec()) for rule in rules],
        **{key: _plain(value) for key, value in asdict(provenance).items()},
        **words,
        "format": {} if format == PLAIN else format.to_spec(),
    }
    return {key: value for key, value in document.items() if value}


def _with_default(columns: object, values: Sequence[Any] | None) -> object:
    """The columns of a schema file, each that lists no `missing_values` with those of the schema, except what it declares as a level."""
    if values is None or not isinstance(columns, Mapping | list | tuple):
        return columns
    default = Missing(tuple(values))
    if isinstance(columns, Mapping):
        return {name: _with_codes(spec, default) for name, spec in columns.items()}
    return [_with_codes(spec, default) for spec in columns]


def _with_codes(spec: object, default: Missing) -> object:
    if not isinstance(spec, Mapping) or spec.get("missing_values") is not None:
        return spec
    levels = (False, True) if spec.get("kind") == "boolean" else as_plain(spec.get("levels"))
    kept = default.values
    if isinstance(levels, tuple):
        try:
            declared = Levels(levels).codes(pa.array(default.texts, pa.string())) >= 0
        except SchemaError:  # about its levels, which the column itself refuses
            return spec
        kept = tuple(value for value, is_level in zip(default.values, declared, strict=True) if not is_level)
    return {**spec, "missing_values": list(kept)}


def _read_columns(plain: object) -> tuple[Column, ...]:
    """Columns as a mapping from names, or as a list of mappings with a name in each."""
    if isinstance(plain, Mapping):
        _check_bins(plain.values())
        return tuple(column_of(name, spec) for name, spec in plain.items())
    try:
        listed = decode(list[Any], plain, "columns")
    except ValueError as wrong:
        raise SchemaError(str(wrong)) from None
    _check_bins(listed)
    return tuple(_read_named(spec) for spec in listed)


def _check_bins(specs: Iterable[object]) -> None:
    """Judge the bins of all columns together, before any are built."""
    bins = (spec.get("bins") for spec in specs if isinstance(spec, Mapping))
    if sum(number for number in bins if is_whole(number)) > MAX_TOTAL_BINS:
        raise SizeError(f"the columns have more than {MAX_TOTAL_BINS} bins together; use wider bins")


def _read_named(plain: object) -> Column:
    if not isinstance(plain, Mapping) or "name" not in plain:
        raise SchemaError("each of a list of columns must be a mapping with a name")
    return column_of(plain["name"], {key: value for key, value in plain.items() if key != "name"})


def _read_zeros(plain: Sequence[object]) -> tuple[Zero, ...]:
    if len(plain) > MAX_ZEROS:
        raise SizeError(
            f"zeros ({len(plain)} of them) must be at most {MAX_ZEROS}; list several levels in one"
        )
    zeros = tuple(map(Zero.from_spec, plain))
    conditions = (zero.impossible.values() for zero in zeros if isinstance(zero.impossible, Mapping))
    levels = (wanted for columns in conditions for wanted in columns if isinstance(wanted, list | tuple))
    if sum(map(len, levels)) > MAX_ZERO_LEVELS:
        raise SizeError(f"zeros must list at most {MAX_ZERO_LEVELS} levels together; use {{min, max}}")
    return zeros


def _plain(value: object) -> object:
    """Values as JSON would give them back, so that a saved schema keeps its fingerprint."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value
