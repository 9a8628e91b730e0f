"""The file of a saved joint: a NumPy archive of plain arrays with a JSON header. Nothing is ever unpickled."""

import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcipher.errors import JointError, SchemaError
from dpcipher.joint.health import Health
from dpcipher.schema.schema import Schema

VERSION = 1
HEADER = "dpcipher"
Arrays = dict[str, NDArray[Any]]


def write(
    path: Path, kind: str, arrays: Mapping[str, NDArray[Any]], schema: Schema, n_rows: int, health: Health
) -> Path:
    """Write the archive so that it is either absent or complete."""
    facts = {
        "version": VERSION,
        "kind": kind,
        "n_rows": n_rows,
        "schema": schema.to_dict(),
        "health": _plain(health),
    }
    header = np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as sink:
            np.savez_compressed(sink, allow_pickle=False, **{HEADER: header}, **arrays)
            sink.flush()
            os.fsync(sink.fileno())
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise JointError(
            f"joint file ({path}) cannot be written: {error.strerror}; choose a folder you may write to"
        ) from None
    return path


def read(path: Path, kinds: tuple[str, ...]) -> tuple[str, Arrays, Schema, int, Health]:
    """Read the archive, refusing whatever is not exactly what was written."""
    if not path.is_file():
        raise JointError(f"joint file ({path}) must be an existing file; check the path")
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        facts = json.loads(arrays.pop(HEADER).tobytes())
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile):
        raise JointError(
            f"joint file ({path}) is damaged or was not written by dpcipher; save the joint again"
        ) from None
    if facts.get("version") != VERSION or facts.get("kind") not in kinds:
        raise JointError(
            f"joint file ({path}) has format version {facts.get('version')!r}; this dpcipher reads version {VERSION}. Upgrade dpcipher"
        )
    try:
        return (
            facts["kind"],
            arrays,
            Schema.from_dict(facts["schema"]),
            int(facts["n_rows"]),
            _health(facts["health"]),
        )
    except (KeyError, TypeError, SchemaError):
        raise JointError(
            f"joint file ({path}) is damaged: its facts do not fit together; save the joint again"
        ) from None


def _plain(health: Health) -> dict[str, Any]:
    return asdict(health) | {"residuals": [[list(attrs), value] for attrs, value in health.residuals.items()]}


def _health(values: Mapping[str, Any]) -> Health:
    residuals = {tuple(attrs): float(value) for attrs, value in values["residuals"]}
    return Health(**{**values, "residuals": residuals, "notes": tuple(values["notes"])})
