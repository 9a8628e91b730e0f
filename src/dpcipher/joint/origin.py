"""Which release rows were drawn from, and that they are still the rows that were drawn: a mark that travels with them.

pandas frames carry it in `attrs`, Arrow tables and Parquet files in their metadata. Beside files of other formats lies a companion, FILE.mark, which is
found by the digest of the rows, whatever the two are called by then. Anybody can write a mark: it guards against mistakes, not against lies.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dpcipher.files import PaidFor, write_text
from dpcipher.files.json import read_json
from dpcipher.io.write import PANDAS_ATTRS
from dpcipher.joint.imputed import KEY, attrs_of
from dpcipher.tables.domain import Codes

MARK = ".mark"
_LONGEST = 2**16  # bytes of a companion


class RowDigest:
    """SHA-256 over the levels of rows, in their order: the same for the same rows in any format and in any batches."""

    def __init__(self, columns: int) -> None:
        self._columns = [hashlib.sha256() for _ in range(columns)]

    def add(self, codes: Codes) -> Self:
        """The next rows."""
        for place, column in enumerate(self._columns):
            column.update(np.ascontiguousarray(codes[:, place], dtype="<i4").tobytes())
        return self

    @property
    def text(self) -> str:
        """The digest of all rows so far."""
        return hashlib.sha256(b"".join(column.digest() for column in self._columns)).hexdigest()


@dataclass(frozen=True)
class Origin:
    """The checksum of a release, and the digest of rows that were drawn from it."""

    release: str
    rows: str

    def write(self, beside: Path, *, force: bool = False) -> Path:
        """Write the companion of a file of rows; where another has its name already, under a free one, since it is found by its content."""
        place = PaidFor(beside.with_name(beside.name + MARK), force=force)
        facts = {"about": "synthetic rows, by dpcipher", **asdict(self)}
        place.write(lambda path: write_text(path, json.dumps(facts) + "\n", force=force))
        return place.path

    @classmethod
    def of(cls, plain: object) -> Self | None:
        """The origin in plain values that anybody may have written."""
        match plain:
            case {"release": str(release), "rows": str(rows)}:
                return cls(release, rows)
            case _:
                return None


def marks(rows: object) -> list[Origin]:
    """What a frame, a table or a file says of its origin, or the companions in a file's folder say of some rows."""
    if not isinstance(rows, str | PathLike):
        found = [Origin.of(attrs_of(rows).get(KEY))]
    else:
        path = Path(rows)
        found = [_in_parquet(path)] if path.suffix == ".parquet" else _companions(path)
    return [origin for origin in found if origin is not None]


def _in_parquet(path: Path) -> Origin | None:
    try:
        attrs = json.loads((pq.read_schema(path).metadata or {}).get(PANDAS_ATTRS, b"{}"))
    except (pa.ArrowException, OSError, ValueError):
        return None
    return Origin.of(attrs.get(KEY)) if isinstance(attrs, dict) else None


def _companions(path: Path) -> list[Origin | None]:
    found = []
    for file in sorted(path.parent.glob(f"*{MARK}")):
        try:
            with file.open("rb") as opened:
                found.append(Origin.of(read_json(opened.read(_LONGEST))))
        except (OSError, ValueError):
            continue
    return found


def as_metadata(attrs: dict[str, Any]) -> dict[bytes, bytes]:
    """Attrs of a pandas frame as metadata of an Arrow table or a Parquet file."""
    return {PANDAS_ATTRS: json.dumps(attrs).encode()} if attrs else {}
