"""Files that anybody may have written: schemas, releases, joints, ledgers and their witnesses, with their values or bytes changed."""

import json
import random
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import yaml
from mutations import as_json, bend, twisted

sys.path.append(str(Path(__file__).parents[1] / "release"))
sys.path.append(str(Path(__file__).parents[1] / "joint"))

import forge
import saved

from dpcipher.joint.joint import Joint
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.ledger import Ledger
from dpcipher.privacy.records import EMPTY, HashChain
from dpcipher.privacy.terms import Unit
from dpcipher.release.release import Release
from dpcipher.schema.schema import Schema

Case = Callable[[], object]
COST, UNIT = Budget.parse(epsilon=0.01), Unit("add-remove")
CHARGE: dict[str, Any] = {
    "type": "charge",
    "id": "a",
    "cost": {"epsilon": "1/10"},
    "what": {"tables": 3},
    "time": "2026-01-31T00:00:00+00:00",
}
RECORDS: list[dict[str, Any]] = [
    {
        "type": "ledger",
        "version": 1,
        "name": "x",
        "limit": {"epsilon": "1"},
        "unit": {"relation": "add-remove", "max_rows": 1},
        "time": "now",
    },
    CHARGE,
    {"type": "released", "id": "a", "checksum": "c0ffee", "time": "now"},
    {**CHARGE, "id": "b", "cost": {"epsilon": "1/20"}},
]


def schema(rng: random.Random, folder: Path) -> Case:
    """A schema in YAML or JSON; one that is read says the same again."""
    plain, nasty = twisted(forge.SCHEMA, rng)
    text = as_json(plain, nasty) if rng.random() < 0.6 else yaml.safe_dump(forge.SCHEMA)
    data = text.encode("utf-8", "surrogatepass")
    path = folder / rng.choice(("s.yaml", "s.json"))
    path.write_bytes(bend(data, rng) if rng.random() < 0.5 else data)

    def load() -> None:
        read = Schema.load(path)
        again = Schema.from_dict(read.to_dict())
        assert again.fingerprint() == read.fingerprint()

    return load


@cache
def _sealed(kind: str) -> tuple[dict[str, Any], list[Any]]:
    facts, counts = forge.KINDS[kind]()
    return forge.sealed(facts, counts), counts


def release(rng: random.Random, folder: Path) -> Case:
    """A release file; what is loaded has the checksum that it had, unless its maker wrote another that fits."""
    facts, counts = _sealed(rng.choice(list(forge.KINDS)))
    path = folder / "r.parquet"
    if rng.random() < 0.5:
        path.write_bytes(bend(_release_bytes(facts["checksum"]), rng))
    else:
        plain, nasty = twisted(facts, rng)
        try:
            sealed = json.loads(as_json(plain, nasty))
            text = json.dumps(forge.sealed(sealed, counts)) if rng.random() < 0.5 else as_json(plain, nasty)
        except Exception:
            text = as_json(plain, nasty)
        forge.save(path, text, counts)

    def load() -> None:
        loaded = Release.load(path)
        assert json.dumps(loaded.statement.to_dict(), allow_nan=False)

    return load


@cache
def _release_bytes(checksum: str) -> bytes:
    for kind in forge.KINDS:
        facts, counts = _sealed(kind)
        if facts["checksum"] == checksum:
            with TemporaryDirectory() as folder:
                return forge.save(Path(folder) / "r.parquet", facts, counts).read_bytes()
    raise KeyError(checksum)


@cache
def _arrays(kind: str) -> dict[str, Any]:
    return dict(saved.CORES[kind]().to_arrays())


def joint(rng: random.Random, folder: Path) -> Case:
    """A saved joint; one that is read can be drawn from."""
    kind, path = rng.choice(list(saved.CORES)), folder / "j.npz"
    facts, arrays = saved.facts(kind), dict(_arrays(kind))
    way = rng.randrange(3)
    if way == 0:
        path.write_bytes(bend(saved.save(path, facts, arrays).read_bytes(), rng))
    elif way == 1:
        saved.save(path, as_json(*twisted(facts, rng)), arrays)
    else:
        name = rng.choice(list(arrays))
        arrays[name] = _bent_array(arrays[name], rng)
        saved.save(path, facts, arrays)

    def load() -> None:
        assert len(Joint.load(path).sample(3, seed=1)) == 3

    return load


def _bent_array(array: Any, rng: random.Random) -> Any:
    """Of another type, shape or length, or with one other number."""
    changed = array.copy()
    if changed.size and changed.dtype.kind in "if":
        numbers = (-1, 7, 2**62) if changed.dtype.kind == "i" else (-1.0, 7.0, np.nan, np.inf, 1e308)
        changed.reshape(-1)[rng.randrange(changed.size)] = rng.choice(numbers)
    others = (
        changed,
        changed,
        array[:0],
        np.append(array, array.ravel()[:1]),
        array.astype("f2"),
        array.reshape(1, -1),
        np.zeros(0),
    )
    return rng.choice(others)


def ledger(rng: random.Random, folder: Path) -> Case:
    """A ledger whose bytes are bent, or whose records are changed and hashed anew; one that opens can be charged."""
    path = folder / "l"
    path.with_name("l.witness").unlink(missing_ok=True)
    data = chained(RECORDS)
    if rng.random() < 0.5:
        data = bend(data, rng)
    else:
        plain, nasty = twisted(RECORDS, rng)
        try:
            data = chained(json.loads(as_json(plain, nasty)))
        except Exception:
            data = as_json(plain, nasty).encode("utf-8", "surrogatepass")
    path.write_bytes(data)

    def load() -> None:
        opened = Ledger.open(path)
        before = len(opened.entries)
        assert opened.spent.describe()
        opened.charge(COST, unit=UNIT, what={})
        assert len(Ledger.open(path).entries) == before + 1

    return load


def chained(records: Any) -> bytes:
    """Records as a ledger writes them, each with the hash of the one before."""
    chain, data = EMPTY, b""
    for record in records:
        line, head = chain.appended(record)
        data += line
        chain = HashChain(({"hash": head},), len(data))
    return data


def witness(rng: random.Random, folder: Path) -> Case:
    """A witness of which some bytes or values are others: the ledger is refused, or says all that it said."""
    path = folder / "l"
    path.write_bytes(chained(RECORDS))
    head = json.loads(path.read_bytes().splitlines()[-1])["hash"]
    plain = {"version": 1, "length": path.stat().st_size, "head": head}
    data = json.dumps(plain).encode() + b"\n"
    changed = as_json(*twisted(plain, rng)).encode("utf-8", "surrogatepass")
    path.with_name("l.witness").write_bytes(bend(data, rng) if rng.random() < 0.5 else changed)

    def load() -> None:
        assert len(Ledger.open(path).entries) == 2

    return load


PUBLIC = {"schema": schema, "release": release, "joint": joint, "ledger": ledger, "witness": witness}
