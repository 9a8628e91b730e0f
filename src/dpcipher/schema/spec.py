"""The parts of a schema as plain values, as files and releases hold them; where it came from, and who vouches that it holds nothing private."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import cast

import numpy as np
import pyarrow as pa

from dpcipher.errors import SchemaError, SizeError, did_you_mean
from dpcipher.files.codec import as_plain, is_whole
from dpcipher.schema.bins import MAX_BINS
from dpcipher.schema.columns import Column
from dpcipher.schema.cut import Integer
from dpcipher.schema.declared import column_of
from dpcipher.schema.levels import Levels, Missing
from dpcipher.schema.rules.compiled import read_rules
from dpcipher.schema.rules.rule import Rule, Zero

VERSION = 1
# A few bytes of a schema can ask for a million edges or a mask of millions of levels: what all columns and zeros ask for together.
MAX_TOTAL_BINS = 4 * MAX_BINS
MAX_ZEROS, MAX_ZERO_LEVELS = 2**16, 2**18
_KEYS = (
    "version",
    "columns",
    "zeros",
    "rules",
    "drawn_from_data",
    "sign_off",
    "notes",
    "imported_from",
    "missing_values",
    "title",
    "description",
    "format",
    "person",
    "drafted_as",
)
CURATORS_KEYS = ("sign_off", "notes", "drafted_as")  # no part of what is signed


@dataclass(frozen=True)
class SignOff:
    """A person's word that a draft may be used; `hash` ties it to one state of the schema."""

    name: str
    date: str
    hash: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise SchemaError(
                f"sign_off name ({self.name!r}) must be the name of the person who checked the schema"
            )
        try:
            date.fromisoformat(str(self.date))
        except ValueError:
            raise SchemaError(f"sign_off date ({self.date!r}) must be a date such as 2024-01-31") from None

    @classmethod
    def from_spec(cls, spec: object) -> "SignOff":
        """The sign-off that a schema file holds."""
        if not isinstance(spec, Mapping) or set(spec) != {"name", "date", "hash"}:
            raise SchemaError("sign_off must hold name, date and hash; `dpcipher schema sign` writes it")
        return cls(name=spec["name"], date=str(spec["date"]), hash=str(spec["hash"]))


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


Parts = tuple[tuple[Column, ...], tuple[Zero, ...], Provenance]


def is_domain(plain: object) -> bool:
    """Whether this is the {column: size} mapping of private-pgm rather than a schema."""
    return isinstance(plain, Mapping) and bool(plain) and all(type(size) is int for size in plain.values())


def sized_column(name: str, size: int) -> Column:
    """A column of integer codes 0..size-1."""
    whole = as_plain(size)
    if not is_whole(whole) or whole < 1:
        raise SchemaError(f"size of column {name!r:.60} ({size!r:.60}) must be a whole number from 1 up")
    return Integer(name, min=0, max=whole - 1)


def read_parts(plain: object) -> Parts:
    """The parts of a schema, checked."""
    if not isinstance(plain, Mapping) or "columns" not in plain:
        raise SchemaError(
            "a schema must be a mapping with the key columns; try columns: {age: {kind: integer, min: 0, max: 99}}"
        )
    if "compounds" in plain:
        raise SchemaError(
            "compounds are no columns; leave the key out and list the tables to measure, such as workload=[('A', 'B', 'C')], "
            "or let dpcipher.schema.crossed list them from groups of columns"
        )
    for key in plain:
        if key not in _KEYS:
            raise SchemaError(f"unknown key {key!r:.60}{did_you_mean(str(key), _KEYS)}")
    if plain.get("version", VERSION) != VERSION:
        raise SchemaError(
            f"version ({plain['version']!r:.60}) must be {VERSION}; a newer dpcipher may be needed"
        )
    return (
        _read_columns(_with_default(plain["columns"], plain.get("missing_values"))),
        _read_zeros(_listed(plain.get("zeros"), "zeros")),
        _read_provenance(plain),
    )


def listed_rules(plain: Mapping[str, object]) -> tuple[Rule, ...]:
    """The rules of a schema, not yet compared with its columns."""
    return read_rules(_listed(plain.get("rules"), "rules"))


def write_parts(
    columns: Sequence[Column],
    zeros: Sequence[Zero],
    provenance: Provenance,
    rules: Sequence[Rule] = (),
) -> dict[str, object]:
    """The parts of a schema as plain values; what is empty is left out."""
    parts = {
        "version": VERSION,
        "columns": [column.to_spec() for column in columns],
        "zeros": [_plain(zero.to_spec()) for zero in zeros],
        "rules": [_plain(rule.to_spec()) for rule in rules],
        "drawn_from_data": provenance.drawn_from_data,
        "imported_from": provenance.imported_from,
        "notes": list(provenance.notes),
        "drafted_as": provenance.drafted_as,
        "sign_off": asdict(provenance.sign_off) if provenance.sign_off else None,
    }
    return _filled(parts)


def _with_default(columns: object, values: object) -> object:
    """The columns of a schema file, each that lists no `missing_values` with those of the schema, except what it declares as a level."""
    if values is None or not isinstance(columns, Mapping | list | tuple):
        return columns
    if not isinstance(values, list | tuple):
        raise SchemaError(f"missing_values ({values!r:.60}) must be a list; try missing_values: [N, -9]")
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
    listed = _listed(plain, "columns")
    _check_bins(listed)
    return tuple(_read_named(item) for item in listed)


def _check_bins(specs: Iterable[object]) -> None:
    """Judge the bins of all columns together, before any are built."""
    bins = (spec.get("bins") for spec in specs if isinstance(spec, Mapping))
    total = sum(number for number in bins if isinstance(number, int))
    if total > MAX_TOTAL_BINS:
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
    zeros = tuple(Zero.from_spec(zero) for zero in plain)
    conditions = (zero.impossible.values() for zero in zeros if isinstance(zero.impossible, Mapping))
    levels = (wanted for columns in conditions for wanted in columns if isinstance(wanted, list | tuple))
    if sum(map(len, levels)) > MAX_ZERO_LEVELS:
        raise SizeError(f"zeros must list at most {MAX_ZERO_LEVELS} levels together; use {{min, max}}")
    return zeros


def _read_provenance(plain: Mapping[str, object]) -> Provenance:
    drawn, sign_off = plain.get("drawn_from_data", False), plain.get("sign_off")
    if not isinstance(drawn, bool):
        raise SchemaError(f"drawn_from_data ({drawn!r:.60}) must be true or false")
    notes = tuple(str(note) for note in _listed(plain.get("notes"), "notes"))
    imported = plain.get("imported_from")
    if imported is not None and (not isinstance(imported, str) or not imported.strip()):
        raise SchemaError(f"imported_from ({imported!r:.60}) must be the name of a dictionary")
    drafted_as = plain.get("drafted_as")
    if drafted_as is not None and not isinstance(drafted_as, str):
        raise SchemaError(
            f"drafted_as ({drafted_as!r:.60}) must be the hash that `dpcipher schema draft` wrote"
        )
    return Provenance(drawn, SignOff.from_spec(sign_off) if sign_off else None, notes, imported, drafted_as)


def _listed(plain: object, key: str) -> Sequence[object]:
    if plain is None:
        return ()
    if not isinstance(plain, list | tuple):
        raise SchemaError(f"{key} must be a list")
    return cast(Sequence[object], plain)


def _filled(values: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in values.items() if value}


def _plain(value: object) -> object:
    """Values as JSON would give them back, so that a saved schema keeps its fingerprint."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value
