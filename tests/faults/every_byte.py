"""Files of every kind, cut at a byte or with a bit of it flipped: refused, or they say what they said."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from public_cases import forge, saved
from steps import joint, published

import dpcipher as dc
from dpcipher.errors import DpcipherError
from dpcipher.joint.joint import Joint
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.ledger import Ledger
from dpcipher.privacy.terms import Unit

Says = Callable[[Path], object]


@dataclass
class Found:
    """What came of all spoiled copies of one file."""

    size: int
    copies: int = 0
    refused: int = 0
    same: int = 0
    wrong: list[str] = field(default_factory=list)


def write_all(folder: Path) -> dict[str, tuple[Path, Says]]:
    """A file of each kind, and how to ask it what it says."""
    published().save(folder / "people.release.parquet")
    joint().save(folder / "dense.npz")
    (folder / "people.yaml").write_text(yaml.safe_dump(forge.SCHEMA), encoding="utf-8")
    (folder / "people.json").write_text(json.dumps(forge.SCHEMA), encoding="utf-8")
    ledger = Ledger.create(folder / "l", epsilon=1, unit="add-remove", name="x")
    cost, unit = Budget.parse(epsilon=0.25), Unit("add-remove")
    ledger.mark_released(ledger.charge(cost, unit=unit, what={}).id, "c0ffee")
    ledger.charge(cost, unit=unit, what={})
    chain = saved.save(folder / "chain.npz", saved.facts("chain"), saved.chain().to_arrays())
    return {
        "release": (folder / "people.release.parquet", _release),
        "joint, dense": (folder / "dense.npz", _joint),
        "joint, chain": (chain, _joint),
        "ledger": (ledger.path, lambda path: _ledger(ledger.path)),
        "witness": (folder / "l.witness", lambda path: _ledger(ledger.path)),
        "schema, YAML": (folder / "people.yaml", _schema),
        "schema, JSON": (folder / "people.json", _schema),
    }


def spoiled(data: bytes, step: int) -> Iterator[tuple[str, bytes]]:
    """Every `step`-th byte: the file up to there, and with one bit of it flipped."""
    for place in range(0, len(data), step):
        yield f"cut at {place}", data[:place]
        yield (
            f"bit {place % 8} of {place} flipped",
            bytes([*data[:place], data[place] ^ 1 << place % 8, *data[place + 1 :]]),
        )


def spoil(path: Path, says: Says, step: int) -> Found:
    """Ask every spoiled copy of a file in the place of the file."""
    good = path.read_bytes()
    known, found = says(path), Found(len(good))
    for what, data in spoiled(good, step):
        path.write_bytes(data)
        found.copies += 1
        try:
            said = says(path)
        except DpcipherError:
            found.refused += 1
            continue
        except Exception as error:
            found.wrong.append(f"{path.name} {what}: {type(error).__name__}: {error}")
            continue
        found.same += said == known
        if said != known and path.suffix not in (
            ".yaml",
            ".json",
        ):  # a schema is a text: another letter is another schema
            found.wrong.append(f"{path.name} {what}: says something else")
    path.write_bytes(good)
    return found


def _release(path: Path) -> object:
    return dc.Release.load(path).checksum


def _joint(path: Path) -> object:
    loaded: Any = Joint.load(path)
    arrays = loaded.core.to_arrays()
    return loaded.health, {name: (array.shape, array.tobytes()) for name, array in arrays.items()}


def _ledger(path: Path) -> object:
    state = Ledger.open(path).statement()
    return state.entries, state.limit, state.unit


def _schema(path: Path) -> object:
    read = dc.Schema.load(path)
    return dc.Schema.from_dict(read.to_dict()).fingerprint()
