"""Release files as anybody could make them: any facts, any counts, and the checksum that goes with them."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dpcipher.errors import DpcipherError
from dpcipher.schema.schema import Schema

KEY = b"dpcipher"
SCHEMA: dict[str, Any] = {
    "version": 1,
    "columns": [
        {"name": "age", "kind": "integer", "min": 0, "max": 3},
        {"name": "who", "kind": "categorical", "levels": ["a", "b", "c", "d", "e"], "missing": "level"},
        {"name": "pay", "kind": "number", "min": 0, "max": 10, "bins": 2, "other": "nearest"},
    ],
    "zeros": [{"impossible": {"age": {"max": 1}, "pay": ["[5, 10]"]}, "becomes": {"age": 2}}],
    "notes": ["said by nobody"],
}
MOST_ATTRS = 32  # of a table that the forger writes columns for
SOFTWARE = {"dpcipher": "0.1.0", "opendp": "0.16.0"}


def statement(**changes: Any) -> dict[str, Any]:
    """What the writer stated, with changes."""
    empty: dict[str, Any] = {"unit": {}, "budget": {}, "certificate": {}, "ledger": {}, "software": {}}
    return {"status": "declared", "n_rows": None, **empty, "created": ""} | changes


def batch(*tables: tuple[str, ...], **changes: Any) -> dict[str, Any]:
    """Measured tables that differ in their columns alone, as the writer describes them, with changes."""
    entry = {"counts": "integer", "noise": "laplace", "scale": 3.0, "set": 0}
    return {"tables": [list(attrs) for attrs in tables]} | entry | changes


def given() -> tuple[dict[str, Any], list[Any]]:
    """Facts and counts of given tables: `measure` with a workload and a ledger."""
    stated = statement(
        status="certified",
        unit={"relation": "add-remove", "max_rows": 1},
        budget={"epsilon": "1"},
        certificate={
            "measure": "epsilon",
            "events": [
                {"what": "age × who", "share": "1/3", "cost": 0.33333333333333337},
                {"what": "age × pay", "share": "1/3", "cost": 0.33333333333333337},
            ],
            "total": 0.66666666666666674,
            "by": "privacy map of opendp",
        },
        ledger={"charge": "e7bb61638bfefeccfd3fd7bad963e85c", "head": "4c15" * 16},
        software=SOFTWARE,
        created="2026-01-31",
    )
    return facts(stated, [batch(("age", "who"), ("age", "pay"))]), list(range(-3, 29))


def sets() -> tuple[dict[str, Any], list[Any]]:
    """Facts and counts of two sets with Gaussian noise, and a public number of rows."""
    stated = statement(
        status="unrecorded",
        n_rows=200,
        unit={"relation": "replace", "max_rows": 2},
        budget={"epsilon": "1", "delta": "1/1000000"},
        certificate={
            "measure": "rho",
            "events": [{"what": "tables", "share": "1", "cost": 0.008118656786512454, "sets": 2}],
            "total": 0.008118656786512454,
            "by": "privacy map of opendp",
        },
        software=SOFTWARE,
        created="2026-01-31",
    )
    noise = {"noise": "gaussian", "scale": 27.18526270221923}
    tables = [batch(("age",), ("who", "pay"), ("age", "pay"), **noise, set=number) for number in (0, 1)]
    return facts(stated, tables), list(range(48))


def chosen() -> tuple[dict[str, Any], list[Any]]:
    """Facts and counts of tables that were chosen with part of the budget: `measure` with workload="auto"."""
    events = [
        {"what": "age", "share": "1/80", "cost": 0.0125},
        {"what": "distances of 3 tables", "share": "1/20", "cost": 0.05000000000000001},
        {"what": "age × who", "share": "15/16", "cost": 0.9375},
    ]
    stated = statement(
        status="unrecorded",
        unit={"relation": "add-remove", "max_rows": 1},
        budget={"rho": "3/10"},
        certificate={
            "measure": "rho",
            "events": events,
            "share": "1",
            "total": 0.3,
            "by": "privacy map of opendp",
            "selection": {"rounds": 1, "candidates": 3, "shortlist": 3, "share": "1/20", "tables": 3},
        },
        software=SOFTWARE,
        created="2026-01-31",
    )
    tables = [batch(("age",), ("pay",), ("age",)), batch(("age", "who"), scale=1.5)]
    return facts(stated, tables), list(range(34))


def exact() -> tuple[dict[str, Any], list[Any]]:
    """Facts and counts of published tables, some exact and one of reals: `Release.from_tables`."""
    none = {"noise": "none", "scale": 0.0}
    tables = [batch(("age",), ("who",), **none), batch(("pay",), counts="real", scale=2.5)]
    return facts(statement(n_rows=8), tables), [0, 0, 3, 5, 8.0, 0, 0, 0, 0, 0, 1.5, 6.25]


KINDS = {"given": given, "sets": sets, "chosen": chosen, "exact": exact}


VERSION = 1


def facts(stated: Mapping[str, Any], tables: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The metadata without its checksum."""
    return {
        "version": VERSION,
        "schema": SCHEMA,
        "statement": dict(stated),
        "measurements": list(tables),
        "checksum": "",
    }


def sealed(known: Mapping[str, Any], counts: Sequence[Any]) -> dict[str, Any]:
    """The metadata with the checksum as the writer computes it."""
    plain = {key: value for key, value in known.items() if key != "checksum"}
    digest = hashlib.sha256(json.dumps(plain, sort_keys=True).encode() + b"\n")
    start, sizes = 0, {"age": 4, "who": 6, "pay": 2}
    for entry in known["measurements"]:
        stop = start + sum(math.prod(sizes[attr] for attr in attrs) for attrs in entry["tables"])
        digest.update(
            np.array(counts[start:stop], "<i8" if entry["counts"] == "integer" else "<f8").tobytes()
        )
        start = stop
    return {**known, "checksum": digest.hexdigest()}


def columns(known: Mapping[str, Any], counts: Sequence[Any]) -> pa.Table:
    """The cells as any tool sees them, one for each count; only the counts where the facts describe no tables."""
    numbers = pa.array(np.array(counts))
    try:
        labels = _labels(json.dumps(known["schema"]))
        tables = [(entry["set"], attrs) for entry in known["measurements"] for attrs in entry["tables"]]
        rows = [
            (number, place, " × ".join(attrs), *cell)
            for place, (number, attrs) in enumerate(tables)
            for cell in product(*(labels.get(attr, ("?",)) for attr in attrs))
        ]
        rows = [*rows, *[rows[-1]] * (len(counts) - len(rows))][: len(counts)]
        most = max(len(attrs) for _, attrs in tables)
        if most > MOST_ATTRS:
            raise ValueError("no table has so many columns, and a file of as many would take all memory")
        parts = list(zip(*(row + (None,) * (3 + most - len(row)) for row in rows), strict=True))
        names = ["set", "table", "attrs", *(f"level_{place + 1}" for place in range(most)), "count"]
        kinds = [pa.int32(), pa.int32(), *[pa.string()] * (1 + most)]
        arrays = [pa.array(part, kind) for part, kind in zip(parts, kinds, strict=True)]
        return pa.table([*arrays, numbers], names=names)
    except (
        DpcipherError,
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        OverflowError,
        pa.ArrowException,
    ):
        return pa.table({"count": numbers})


@cache
def _labels(schema: str) -> dict[str, tuple[str, ...]]:
    read = Schema.from_dict(json.loads(schema))
    small = [attr for attr, size in zip(read.attrs, read.shape, strict=True) if size < 100]
    return {attr: read.labels(attr) for attr in small}


def save(path: Path, metadata: Mapping[str, Any] | str, counts: Sequence[Any], **options: Any) -> Path:
    """A file with this metadata, plain values or the JSON itself, and these counts."""
    text, known = (metadata, metadata) if isinstance(metadata, str) else (json.dumps(metadata), metadata)
    if isinstance(known, str):
        with suppress(ValueError, RecursionError):
            known = json.loads(known)
    return rewritten(path, columns(known, counts), text, **options)  # type: ignore[arg-type]


def rewritten(path: Path, cells: pa.Table, text: str, **options: Any) -> Path:
    """A file of these cells with this metadata, in the manner of the writer: counts not packed, and texts in dictionaries."""
    with pq.ParquetWriter(path, cells.schema, **manner(cells.schema) | options) as writer:
        writer.write_table(cells, row_group_size=2**20)
        writer.add_key_value_metadata({KEY: text.encode()})
    return path


def manner(schema: pa.Schema) -> dict[str, Any]:
    """How the writer writes columns; other types than its own as Arrow likes."""
    encodings = {pa.int32(): "DELTA_BINARY_PACKED", pa.int64(): "DELTA_BINARY_PACKED", pa.float64(): "PLAIN"}
    numbers = {column.name: encodings[column.type] for column in schema if column.type in encodings}
    return {
        "compression": {column.name: "none" if column.name == "count" else "zstd" for column in schema},
        "use_dictionary": [column.name for column in schema if column.name not in numbers],
        "column_encoding": numbers or None,
        "store_schema": False,
        "write_statistics": False,
    }


def with_facts(path: Path, change: Mapping[str, Any]) -> Path:
    """A release file again with other facts and its own cells; its checksum is that of before."""
    return rewritten(path, pq.read_table(path), json.dumps(facts_of(path) | change))


def with_change(path: Path, change: Mapping[str, Any]) -> Path:
    """A release file again, with a change to its last measurement; its checksum is that of before."""
    *others, last = facts_of(path)["measurements"]
    return with_facts(path, {"measurements": [*others, last | change]})


# Files written by hand: pages, then a footer, each field as the caller says, in Thrift's compact form.

I32, I64, BINARY, LIST, STRUCT = 5, 6, 8, 9, 12


def varint(value: int) -> bytes:
    """A whole number, 0 or above."""
    data = b""
    while value > 127:
        data, value = data + bytes([value & 127 | 128]), value >> 7
    return data + bytes([value])


def signed(value: int) -> bytes:
    """A whole number of either sign."""
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


def _value(kind: int, value: Any) -> bytes:
    if kind in (I32, I64):
        return signed(value)
    return varint(len(value)) + value if kind == BINARY else bytes(value)


def struct(*fields: tuple[int, int, Any]) -> bytes:
    """A struct of `(field number, type, value)`, numbers ascending; structs inside it are written already."""
    data, last = b"", 0
    for number, kind, value in fields:
        data += bytes([(number - last) << 4 | kind]) + _value(kind, value)
        last = number
    return data + b"\0"


def listed(kind: int, values: Sequence[Any]) -> bytes:
    """A list of values of one type, as the value of a field of type LIST."""
    head = (
        bytes([len(values) << 4 | kind]) if len(values) < 15 else bytes([0xF0 | kind]) + varint(len(values))
    )
    return head + b"".join(_value(kind, value) for value in values)


def present(rows: int) -> bytes:
    """That no value of so many is absent."""
    run = varint(rows << 1) + b"\1"
    return len(run).to_bytes(4, "little") + run


def steps(many: int, first: int = 0, step: int = 0, *, block: int = 128, rows: int | None = None) -> bytes:
    """So many numbers, each `step` above the one before it, in Parquet's DELTA_BINARY_PACKED: a few bytes for each block."""
    blocks = -(-(many - 1) // block)
    return (
        present(many if rows is None else rows)
        + varint(block)
        + varint(4)
        + varint(many)
        + signed(first)
        + (signed(step) + bytes(4)) * blocks
    )


def page(data: bytes, values: int, **changes: Any) -> bytes:
    """A data page that is not packed, of numbers in steps unless it says another encoding."""
    said = {"kind": 0, "size": len(data), "packed": len(data), "encoding": 5} | changes
    about = struct((1, I32, values), (2, I32, said["encoding"]), (3, I32, 3), (4, I32, 3))
    field = {0: 5, 1: 6, 2: 7, 3: 8}[said["kind"]]
    if said["kind"] == 2:
        about = struct((1, I32, values), (2, I32, 0))[:-1] + b"\x12\0"
    return (
        struct(
            (1, I32, said["kind"]), (2, I32, said["size"]), (3, I32, said["packed"]), (field, STRUCT, about)
        )
        + data
    )


@dataclass(frozen=True)
class Chunk:
    """A column of a row group: its name, pages and physical type, and how they are packed."""

    name: str
    pages: bytes
    kind: int = 2
    packing: int = 0
    dictionary: int = 0  # bytes of the dictionary page, which comes first
    said: Mapping[str, Any] = field(default_factory=dict)


def written(chunks: Sequence[Chunk], rows: int, text: bytes = b"{}", **changes: Any) -> bytes:
    """A file of one row group with these columns and our metadata."""
    places, leaves, pages = [], [], b""
    for chunk in chunks:
        start, size, name = 4 + len(pages), len(chunk.pages), chunk.name.encode()
        said = {
            "start": start,
            "size": size,
            "values": rows,
            "path": name,
            "kind": chunk.kind,
            "place": (),
        } | chunk.said
        about = struct(
            (1, I32, said["kind"]),
            (2, LIST, listed(I32, [0, 3, 8])),
            (3, LIST, listed(BINARY, [said["path"]])),
            (4, I32, chunk.packing),
            (5, I64, said["values"]),
            (6, I64, said["size"]),
            (7, I64, said["size"]),
            (9, I64, said["start"] + chunk.dictionary),
            *([(11, I64, said["start"])] if chunk.dictionary else []),
            *said.get("more", ()),
        )
        places.append(struct(*said["place"], (2, I64, 0), (3, STRUCT, about), *said.get("after", ())))
        texts = [(6, I32, 0), (10, STRUCT, struct((1, STRUCT, struct())))] if chunk.kind == 6 else []
        leaves.append(struct((1, I32, chunk.kind), (3, I32, 1), (4, BINARY, name), *texts))
        pages += chunk.pages
    group = struct((1, LIST, listed(STRUCT, places)), (2, I64, len(pages)), (3, I64, rows))
    said = {
        "total": rows,
        "groups": [group],
        "schema": [struct((4, BINARY, b"schema"), (5, I32, len(leaves))), *leaves],
        "metadata": [struct((1, BINARY, KEY), (2, BINARY, text))],
    } | changes
    footer = struct(
        (1, I32, 2),
        (2, LIST, listed(STRUCT, said["schema"])),
        (3, I64, said["total"]),
        (4, LIST, listed(STRUCT, said["groups"])),
        (5, LIST, listed(STRUCT, said["metadata"])),
    )
    return b"PAR1" + pages + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def facts_of(path: Path) -> dict[str, Any]:
    """The metadata of a release file."""
    return dict(json.loads(pq.read_metadata(path).metadata[KEY]))
