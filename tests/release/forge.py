"""Release files as anybody could make them: any facts, any counts, and the checksum that goes with them."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dpcipher.errors import DpcipherError
from dpcipher.release.thrift import BINARY, I32, I64, LIST, STRUCT, listed, struct
from dpcipher.schema.schema import Schema

KEY = b"dpcipher"
SCHEMA: dict[str, Any] = {
    "version": 1,
    "columns": [
        {"name": "age", "kind": "integer", "min": 0, "max": 3},
        {"name": "sex", "kind": "categorical", "levels": ["F", "M"]},
        {"name": "job", "kind": "categorical", "levels": ["a", "b"], "missing": "level"},
        {"name": "pay", "kind": "number", "min": 0, "max": 10, "bins": 2, "other": "nearest"},
    ],
    "compounds": {"who": ["sex", "job"]},
    "zeros": [{"impossible": {"age": {"max": 1}, "pay": ["[5, 10]"]}, "becomes": {"age": 2}}],
    "notes": ["said by nobody"],
}
MOST_ATTRS = 32  # of a table that the forger writes columns for
SOFTWARE = {"dpcipher": "0.1.0", "opendp": "0.16.0"}


def statement(**changes: Any) -> dict[str, Any]:
    """What the writer stated, with changes."""
    empty: dict[str, Any] = {"unit": {}, "budget": {}, "certificate": {}, "ledger": {}, "software": {}}
    return {"status": "declared", "n_rows": None, **empty, "created": ""} | changes


def table(*attrs: str, **changes: Any) -> dict[str, Any]:
    """One measured table, as the writer makes it, with changes."""
    entry = {"attrs": list(attrs), "counts": "integer", "noise": "laplace", "scale": 3.0, "set": 0}
    return entry | changes


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
    return facts(stated, [table("age", "who"), table("age", "pay")]), list(range(-3, 29))


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
    tables = [
        table(*attrs, **noise, set=number)
        for number in (0, 1)
        for attrs in (("age",), ("who", "pay"), ("age", "pay"))
    ]
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
    tables = [table("age"), table("pay"), table("age"), table("age", "who", scale=1.5)]
    return facts(stated, tables), list(range(34))


def exact() -> tuple[dict[str, Any], list[Any]]:
    """Facts and counts of published tables, some exact and one of reals: `Release.from_tables`."""
    none = {"noise": "none", "scale": 0.0}
    tables = [table("age", **none), table("who", **none), table("pay", counts="real", scale=2.5)]
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
        stop = start + int(np.prod([sizes[attr] for attr in entry["attrs"]], dtype=int))
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
        rows = [
            (entry["set"], number, " × ".join(entry["attrs"]), *cell)
            for number, entry in enumerate(known["measurements"])
            for cell in product(*(labels.get(attr, ("?",)) for attr in entry["attrs"]))
        ]
        rows = [*rows, *[rows[-1]] * (len(counts) - len(rows))][: len(counts)]
        most = max(len(entry["attrs"]) for entry in known["measurements"])
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
    """A file of these cells with this metadata, in the manner of the writer."""
    with pq.ParquetWriter(
        path, cells.schema, store_schema=False, write_statistics=False, **options
    ) as writer:
        writer.write_table(cells)
        writer.add_key_value_metadata({KEY: text.encode()})
    return path


def with_facts(path: Path, change: Mapping[str, Any]) -> Path:
    """A release file again with other facts and its own cells; its checksum is that of before."""
    return rewritten(path, pq.read_table(path), json.dumps(facts_of(path) | change))


def with_change(path: Path, change: Mapping[str, Any]) -> Path:
    """A release file again, with a change to its last measurement; its checksum is that of before."""
    *others, last = facts_of(path)["measurements"]
    return with_facts(path, {"measurements": [*others, last | change]})


# Files written by hand: pages, then a footer, each field as the caller says.


def page(data: bytes, **changes: Any) -> bytes:
    """A data page of plain values, packed by zstd."""
    packed = bytes(pa.compress(data, codec="zstd"))
    said = {
        "kind": 0,
        "size": len(data),
        "packed": len(packed),
        "values": len(data) // 8,
        "encoding": 0,
    } | changes
    about = struct((1, I32, said["values"]), (2, I32, said["encoding"]), (3, I32, 3), (4, I32, 3))
    field = {0: 5, 1: 6, 2: 7, 3: 8}[said["kind"]]
    if said["kind"] == 2:
        about = struct((1, I32, said["values"]), (2, I32, said["encoding"]))
    return (
        struct(
            (1, I32, said["kind"]), (2, I32, said["size"]), (3, I32, said["packed"]), (field, STRUCT, about)
        )
        + packed
    )


def written(pages: bytes, rows: int, **changes: Any) -> bytes:
    """A file of one row group with these pages and our metadata."""
    said = {
        "kind": 2,
        "path": b"count",
        "packing": 6,
        "values": rows,
        "size": len(pages),
        "start": 4,
        "total": rows,
    }
    said |= changes
    about = struct(
        (1, I32, said["kind"]),
        (2, LIST, listed(I32, [0])),
        (3, LIST, listed(BINARY, [said["path"]])),
        (4, I32, said["packing"]),
        (5, I64, said["values"]),
        (6, I64, rows * 8),
        (7, I64, said["size"]),
        (9, I64, said["start"]),
        *([(11, I64, said["first"])] if "first" in said else []),
    )
    elsewhere = [(1, BINARY, b"other.parquet")] if "elsewhere" in said else []
    place = struct(*elsewhere, (2, I64, 4), (3, STRUCT, about))
    group = struct((1, LIST, listed(STRUCT, [place])), (2, I64, 0), (3, I64, rows))
    leaf = struct((1, I32, 2), (3, I32, 0), (4, BINARY, b"count"))
    schema = said.get("schema", [struct((4, BINARY, b"schema"), (5, I32, 1)), leaf])
    metadata = said.get("metadata", [struct((1, BINARY, KEY), (2, BINARY, b"{}"))])
    return _closed(pages, schema, said["total"], said.get("groups", [group]), metadata)


def columns_written(
    pages: bytes, rows: int, placed: Sequence[tuple[int, bytes, int, int, int]], text: bytes
) -> bytes:
    """A file of one row group of several columns: of each its type, name, place, and the bytes of its dictionary and of all its pages."""
    chunks, leaves = [], []
    for kind, name, start, dictionary, size in placed:
        about = struct(
            (1, I32, kind),
            (2, LIST, listed(I32, [0, 8])),
            (3, LIST, listed(BINARY, [name])),
            (4, I32, 6),
            (5, I64, rows),
            (6, I64, size),
            (7, I64, size),
            (9, I64, start + dictionary),
            (11, I64, start),
        )
        chunks.append(struct((2, I64, 0), (3, STRUCT, about)))
        texts = [(6, I32, 0), (10, STRUCT, struct((1, STRUCT, struct())))] if kind == 6 else []
        leaves.append(struct((1, I32, kind), (3, I32, 0), (4, BINARY, name), *texts))
    group = struct((1, LIST, listed(STRUCT, chunks)), (2, I64, len(pages)), (3, I64, rows))
    schema = [struct((4, BINARY, b"schema"), (5, I32, len(leaves))), *leaves]
    return _closed(pages, schema, rows, [group], [struct((1, BINARY, KEY), (2, BINARY, text))])


def _closed(
    pages: bytes, schema: Sequence[bytes], rows: int, groups: Sequence[bytes], metadata: Sequence[bytes]
) -> bytes:
    footer = struct(
        (1, I32, 2),
        (2, LIST, listed(STRUCT, schema)),
        (3, I64, rows),
        (4, LIST, listed(STRUCT, groups)),
        (5, LIST, listed(STRUCT, metadata)),
    )
    return b"PAR1" + pages + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def facts_of(path: Path) -> dict[str, Any]:
    """The metadata of a release file."""
    return dict(json.loads(pq.read_metadata(path).metadata[KEY]))
