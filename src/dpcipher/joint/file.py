"""The file of a saved joint: a NumPy archive of plain arrays with a JSON header. Nothing is ever unpickled."""

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcipher.errors import JointError
from dpcipher.files import replacing
from dpcipher.joint.archive import DAMAGE, HEADER, Archive
from dpcipher.joint.file import Arrays, read_arrays
from dpcipher.joint.report import SolveReport
from dpcipher.schema.plain import read_json
from dpcipher.schema.schema import Schema

VERSION = 1
MAX_HEADER = 64 * 2**20
MOST_ROWS = 2**53


def write(
    path: Path,
    kind: str,
    arrays: Mapping[str, NDArray[Any]],
    schema: Schema,
    n_rows: int,
    health: SolveReport,
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
    try:
        with replacing(path) as temporary, temporary.open("wb") as sink:
            np.savez_compressed(sink, allow_pickle=False, **{HEADER: header}, **arrays)
    except OSError as error:
        raise JointError(
            f"joint file ({path}) cannot be written: {error.strerror}; choose a folder you may write to"
        ) from None
    return path


def read(path: Path, kinds: tuple[str, ...]) -> tuple[str, Arrays, Schema, int, SolveReport]:
    """Read the archive, refusing whatever is not exactly what was written; anybody may have written it, so sizes come first."""
    if not path.is_file():
        raise JointError(f"joint file ({path}) must be an existing file; check the path")
    try:
        with path.open("rb") as file:
            archive = Archive(file)
            facts = _facts(archive)
            _check_version(path, facts, kinds)
            schema, n_rows, health = _known(facts)
            return facts["kind"], read_arrays(facts["kind"], archive, schema.shape), schema, n_rows, health
    except JointError:
        raise
    except DAMAGE as wrong:
        said = str(wrong)[:200] if isinstance(wrong, ValueError) else "its archive cannot be read"
        raise JointError(
            f"joint file ({path}) is damaged or was not written by dpcipher ({said}); save the joint again"
        ) from None


def _facts(archive: Archive) -> dict[str, Any]:
    """The header as plain values."""
    length = archive.length(HEADER)
    if length > MAX_HEADER:
        raise ValueError(f"its header must have at most {MAX_HEADER} bytes")
    facts = read_json(archive.read(HEADER, "bytes", (length,)).tobytes())
    if not isinstance(facts, dict) or set(facts) != {"version", "kind", "n_rows", "schema", "health"}:
        raise ValueError("its header must hold version, kind, n_rows, schema and health")
    return facts


def _check_version(path: Path, facts: Mapping[str, Any], kinds: tuple[str, ...]) -> None:
    if facts["version"] != VERSION or facts["kind"] not in kinds:
        raise JointError(
            f"joint file ({path}) has format version {facts['version']!r:.20}; this dpcipher reads version {VERSION}. Upgrade dpcipher"
        )


def _known(facts: Mapping[str, Any]) -> tuple[Schema, int, SolveReport]:
    n_rows = facts["n_rows"]
    if isinstance(n_rows, bool) or not isinstance(n_rows, int) or not 0 <= n_rows < MOST_ROWS:
        raise ValueError(f"n_rows ({n_rows!r:.60}) must be a whole number from 0 to 2**53")
    return Schema.from_dict(facts["schema"]), n_rows, _health(facts["health"])


def _plain(health: SolveReport) -> dict[str, Any]:
    return asdict(health) | {"residuals": [[list(attrs), value] for attrs, value in health.residuals.items()]}


def _health(values: object) -> SolveReport:
    """What was said of the solve, each of its own type."""
    if isinstance(values, dict):
        values = {"warnings": [], **values}  # files of the first version have none
    if not isinstance(values, dict) or set(values) != {field.name for field in fields(SolveReport)}:
        raise ValueError("health must hold what a solve reports, and nothing else")
    texts, numbers = ("engine", "why"), ("negative_mass", "sweeps", "seconds")
    if any(not isinstance(values[name], str) for name in texts) or not isinstance(values["converged"], bool):
        raise ValueError("health must say its engine, why, and whether it converged")
    if any(not _is_number(values[name]) for name in numbers):
        raise ValueError("health must hold finite numbers")
    said = {name: _texts(values[name]) for name in ("notes", "warnings")}
    return SolveReport(**{**values, **said, "residuals": _residuals(values["residuals"])})


def _texts(values: object) -> tuple[str, ...]:
    if not isinstance(values, list) or any(not isinstance(text, str) for text in values):
        raise ValueError("notes and warnings must be texts")
    return tuple(values)


def _residuals(values: object) -> dict[tuple[str, ...], float]:
    found: dict[tuple[str, ...], float] = {}
    for one in values if isinstance(values, list) else [values]:
        if (
            not isinstance(one, list)
            or len(one) != 2
            or not isinstance(one[0], list)
            or not _is_number(one[1])
        ):
            raise ValueError("residuals must be a number for each table")
        found[tuple(str(attr) for attr in one[0])] = float(one[1])
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
