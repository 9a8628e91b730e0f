"""Release files as anybody could make them: any facts, any counts, and the checksum that goes with them."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dpcipher.release.thrift import BINARY, I32, I64, LIST, STRUCT, listed, struct

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
SOFTWARE = {"dpcipher": "0.1.0", "opendp": "0.16.0"}


def statement(**changes: Any) -> dict[str, Any]:
    """What the writer of version 0.1.0 stated, with changes."""
    empty: dict[str, Any] = {"unit": {}, "budget": {}, "certificate": {}, "ledger": {}, "software": {}}
    return {"status": "declared", "n_rows": None, **empty, "created": ""} | changes


def table(*attrs: str, **changes: Any) -> dict[str, Any]:
    """One entry of `tables`, as the writer of version 0.1.0 made it, with changes."""
    entry = {"attrs": list(attrs), "counts": "integer", "mechanism": "laplace", "scale": 3.0, "set": 0}
    return entry | changes


def given() -> tuple[dict[str, Any], list[Any]]:
    """Facts and counts of given tables with a certificate by table: `measure` with a workload and a ledger."""
    stated = statement(
        status="certified",
        unit={"relation": "add-remove", "max_rows": 1},
        budget={"epsilon": "1"},
        certificate={
            "measure": "epsilon",
            "per_table": [0.33333333333333337, 0.33333333333333337],
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
            "per_table": [0.0013531094644187423] * 3,
            "total": 0.008118656786512454,
            "by": "privacy map of opendp",
        },
        software=SOFTWARE,
        created="2026-01-31",
    )
    noise = {"mechanism": "gaussian", "scale": 27.18526270221923}
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
    none = {"mechanism": "none", "scale": 0.0}
    tables = [table("age", **none), table("who", **none), table("pay", counts="real", scale=2.5)]
    return facts(statement(n_rows=8), tables), [0, 0, 3, 5, 8.0, 0, 0, 0, 0, 0, 1.5, 6.25]


KINDS = {"given": given, "sets": sets, "chosen": chosen, "exact": exact}


def facts(stated: Mapping[str, Any], tables: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The metadata without its checksum."""
    return {"version": 1, "schema": SCHEMA, "statement": dict(stated), "tables": list(tables), "checksum": ""}


def sealed(known: Mapping[str, Any], counts: Sequence[Any]) -> dict[str, Any]:
    """The metadata with the checksum as version 0.1.0 computed it."""
    digest = hashlib.sha256()
    for value in (1, known["schema"], known["statement"], known["tables"]):
        digest.update(json.dumps(value, sort_keys=True).encode() + b"\n")
    start, sizes = 0, {"age": 4, "who": 6, "pay": 2}
    for entry in known["tables"]:
        stop = start + int(np.prod([sizes[attr] for attr in entry["attrs"]], dtype=int))
        digest.update(
            np.array(counts[start:stop], "<i8" if entry["counts"] == "integer" else "<f8").tobytes()
        )
        start = stop
    return {**known, "checksum": digest.hexdigest()}


def arrow(counts: Sequence[Any]) -> pa.Table:
    """The counts, with a column beside them as any tool would see."""
    return pa.table({"table": np.zeros(len(counts), np.int32), "count": np.array(counts)})


def save(path: Path, metadata: Mapping[str, Any] | str, counts: Sequence[Any], **options: Any) -> Path:
    """A file with this metadata, plain values or the JSON itself, and these counts."""
    text = metadata if isinstance(metadata, str) else json.dumps(metadata)
    pq.write_table(arrow(counts).replace_schema_metadata({"dpcipher": text}), path, **options)
    return path


# Files written by hand: pages, then a footer, each field as the caller says.


def with_change(path: Path, part: str, change: Mapping[str, Any], counts: Sequence[Any]) -> Path:
    """A release file again, with a change to the first entry of a part of its facts; its checksum is that of before."""
    known = facts_of(path)
    known[part][0] |= change
    return save(path, known, counts)


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
    group = struct(
        (1, LIST, listed(STRUCT, [struct((2, I64, 4), (3, STRUCT, about))])), (2, I64, 0), (3, I64, rows)
    )
    leaf = struct((1, I32, 2), (3, I32, 0), (4, BINARY, b"count"))
    schema = said.get("schema", [struct((4, BINARY, b"schema"), (5, I32, 1)), leaf])
    metadata = said.get("metadata", [struct((1, BINARY, KEY), (2, BINARY, b"{}"))])
    footer = struct(
        (1, I32, 2),
        (2, LIST, listed(STRUCT, schema)),
        (3, I64, said["total"]),
        (4, LIST, listed(STRUCT, said.get("groups", [group]))),
        (5, LIST, listed(STRUCT, metadata)),
    )
    return b"PAR1" + pages + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def plain(text: str, counts: Sequence[Any]) -> bytes:
    """A file of one page, with this metadata; quicker to make than by Arrow."""
    numbers = np.array(counts)
    kind = 5 if numbers.dtype.kind == "f" else 2
    leaf = struct((1, I32, kind), (3, I32, 0), (4, BINARY, b"count"))
    schema = [struct((4, BINARY, b"schema"), (5, I32, 1)), leaf]
    metadata = [struct((1, BINARY, KEY), (2, BINARY, text.encode()))]
    return written(page(numbers.tobytes()), len(numbers), kind=kind, schema=schema, metadata=metadata)


def facts_of(path: Path) -> dict[str, Any]:
    """The metadata of a release file."""
    return dict(json.loads(pq.read_metadata(path).metadata[KEY]))
