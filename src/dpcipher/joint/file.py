"""The file of a saved joint: a NumPy archive of plain arrays with a JSON header. Nothing is ever unpickled.

Anybody may have written the file. `numpy.load` makes whatever array a member declares, and a kilobyte can declare and unpack to a gigabyte. Here the reader says which
type and shape it expects, and a member that declares another is refused. Arrays are read in an order that lets each be judged: small ones come first, and say how
large the others are; none is larger than the schema and those before it allow for.
"""

import json
import math
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from dpcipher.errors import JointError
from dpcipher.files import check_output, replacing
from dpcipher.files.json import product_within, read_json
from dpcipher.joint.link import groups_by_link
from dpcipher.joint.report import SolveReport
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Shape

# What a damaged archive raises when it is opened or read: by zipfile, by its unpacker, or here.
DAMAGE = (
    ValueError,
    KeyError,
    OSError,
    EOFError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
    NotImplementedError,
)
HEADER = "dpcipher"  # the member with the facts, in JSON
MAX_MEMBERS = 2**18
_MOST_GROWTH = 1100  # deflate packs at most 1032 to one
_LONGEST_HEADER = 4096
_CHUNK = 2**20
_HEADER = re.compile(
    r"\{'descr': '([<>|][a-z][1-8])', 'fortran_order': (True|False), 'shape': \(((?:[0-9]{1,18}, ?)*(?:[0-9]{1,18})?)\), \} *\n"
)
# The types that each kind of array may be stored as, and the type that it is read as.
_STORED = {"real": ("f8", "f4"), "whole": ("i8", "i4"), "truth": ("b1",), "bytes": ("u1",)}
_READ = {"real": np.float64, "whole": np.int64, "truth": np.bool_, "bytes": np.uint8}


class Archive:
    """The members of an archive, each to be read as what the caller expects it to be."""

    def __init__(self, file: BinaryIO) -> None:
        self._zip = zipfile.ZipFile(file)
        members = self._zip.infolist()
        self._members = {member.filename.removesuffix(".npy"): member for member in members}
        if len(members) > MAX_MEMBERS or len(self._members) < len(members):
            raise ValueError("an array is there twice, or there are too many")

    @property
    def names(self) -> set[str]:
        """The members of the archive."""
        return set(self._members)

    def length(self, name: str) -> int:
        """How long a flat array says it is."""
        shape = self._opened(name)[1]
        if len(shape) != 1:
            raise ValueError(f"{name} must be flat")
        return shape[0]

    def read(self, name: str, kind: str, shape: Shape) -> NDArray[np.generic]:
        """An array of a kind (real, whole, truth, bytes), which must say that it has this shape and then have it."""
        stored, declared, columns, start = self._opened(name)
        if declared != shape or stored[1:] not in _STORED[kind]:
            raise ValueError(f"{name} must hold {kind} numbers of shape {shape}")
        size = math.prod(shape) * int(stored[2])
        if self._members[name].file_size != start + size:
            raise ValueError(f"{name} must have as many bytes as its shape needs")
        flat = np.frombuffer(self._bytes(name, start, size), dtype=stored)
        if kind == "truth" and flat.view(np.uint8).max(initial=0) > 1:
            raise ValueError(f"{name} must hold truth values")
        return flat.reshape(shape, order="F" if columns else "C").astype(_READ[kind], copy=False)

    def integers(self, name: str, length: int) -> NDArray[Any]:
        """A flat array of whole numbers from 0 up."""
        values: NDArray[Any] = self.read(name, "whole", (length,))
        if values.min(initial=0) < 0:
            raise ValueError(f"{name} must hold whole numbers from 0 up")
        return values

    def _opened(self, name: str) -> tuple[str, Shape, bool, int]:
        """What a member declares: its type, its shape, whether columns come first, and where its data start."""
        info = self._members[name]
        if info.flag_bits & 1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{name} must be packed by deflate, or not at all")
        if info.file_size > _MOST_GROWTH * info.compress_size + _CHUNK:
            raise ValueError(f"{name} cannot unpack to {info.file_size} bytes")
        with self._zip.open(info) as stream:
            lead = stream.read(10)
            length = int.from_bytes(lead[8:], "little")
            header = _HEADER.fullmatch(stream.read(min(length, _LONGEST_HEADER)).decode("latin-1"))
        if lead[:8] != b"\x93NUMPY\x01\x00" or header is None:
            raise ValueError(f"{name} is no plain array")
        stored, columns, shape = header.groups()
        sizes = tuple(int(size) for size in shape.split(",") if size.strip())
        return stored, sizes, columns == "True", 10 + length

    def _bytes(self, name: str, start: int, size: int) -> bytearray:
        """The data of a member, which must end where they should; read to the end, so that its check sum is checked too."""
        data = bytearray(size)
        with self._zip.open(self._members[name]) as stream:
            stream.read(start)
            for at in range(0, size, _CHUNK):
                part = stream.read(min(_CHUNK, size - at))
                data[at : at + len(part)] = part
                if len(part) < min(_CHUNK, size - at):
                    raise ValueError(f"{name} ends too early")
            if stream.read(1):
                raise ValueError(f"{name} does not end")
        return data


Arrays = dict[str, NDArray[Any]]

VERSION = 1
MAX_HEADER = 64 * 2**20
MOST_ROWS = 2**53
MAX_TABLE_CELLS = 2**27
MAX_NUMBERS = 2**28
MAX_LISTED = 2**23  # groups of attributes: all pairs of a thousand columns have half a million
_MOST_DIMENSIONS = 32
_FACTS = {"version", "kind", "n_rows", "schema", "health", "release"}
_CHECKSUM = re.compile(r"([0-9a-f]{64})?")  # of a release, or none
_REALS = ("base", "factors", "goals")
_SMALL = ("shape", "order", "groups", "group_sizes", "group_axes", "bars", "bar_sizes", "bar_axes")


def write(
    path: Path,
    kind: str,
    arrays: Mapping[str, NDArray[Any]],
    schema: Schema,
    n_rows: int,
    health: SolveReport,
    release: str,
    *,
    force: bool = False,
) -> Path:
    """Write the archive so that it is either absent or complete."""
    facts = {
        "version": VERSION,
        "kind": kind,
        "n_rows": n_rows,
        "schema": schema.to_dict(),
        "health": health.to_dict(),
        "release": release,
    }
    check_output(path, endings=(".npz",), force=force)
    header = np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8)
    try:
        with replacing(path, force=force) as temporary, temporary.open("wb") as sink:
            np.savez_compressed(sink, allow_pickle=False, **{HEADER: header}, **arrays)
    except OSError as error:
        raise JointError(
            f"joint file ({path}) cannot be written: {error.strerror}; choose a folder you may write to"
        ) from None
    return path


def read(path: Path) -> tuple[str, Arrays, Schema, int, SolveReport, str]:
    """Read the archive, refusing whatever is not exactly what was written."""
    if not path.is_file():
        raise JointError(f"joint file ({path}) must be an existing file; check the path")
    try:
        with path.open("rb") as file:
            archive = Archive(file)
            facts = _facts(archive)
            _check_version(path, facts)
            schema, n_rows, health, release = _known(facts)
            arrays = _READERS[facts["kind"]](archive, schema.shape)
            return facts["kind"], arrays, schema, n_rows, health, release
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
    if not isinstance(facts, dict) or set(facts) | {"release"} != _FACTS:
        raise ValueError("its header must hold version, kind, n_rows, schema, health and release")
    return facts


def _check_version(path: Path, facts: Mapping[str, Any]) -> None:
    if facts["version"] != VERSION or facts["kind"] not in tuple(_READERS):  # a list has no hash
        raise JointError(
            f"joint file ({path}) has format version {facts['version']!r:.20}; this dpcipher reads version {VERSION}. Upgrade dpcipher"
        )


def _known(facts: Mapping[str, Any]) -> tuple[Schema, int, SolveReport, str]:
    release = facts.get("release", "")
    if not isinstance(release, str) or not _CHECKSUM.fullmatch(release):
        raise ValueError("release must be the checksum of a release")
    n_rows = facts["n_rows"]
    if isinstance(n_rows, bool) or not isinstance(n_rows, int) or not 0 <= n_rows < MOST_ROWS:
        raise ValueError(f"n_rows ({n_rows!r:.60}) must be a whole number from 0 to 2**53")
    return Schema.from_dict(facts["schema"]), n_rows, SolveReport.from_dict(facts["health"]), release


def _dense(archive: Archive, shape: Shape) -> Arrays:
    _check_names(archive, {"probabilities"})
    _check_cells(shape)
    return {"probabilities": archive.read("probabilities", "real", shape)}


def _network(archive: Archive, shape: Shape) -> Arrays:
    """The columns and the givens of every node, and then its table, whose shape they tell."""
    nodes = range((len(archive.names) - 2) // 3)
    _check_names(archive, {"shape", *(f"{part}{i}" for part in ("axes", "given", "table") for i in nodes)})
    arrays, left = {"shape": _same_shape(archive, shape)}, MAX_NUMBERS
    for i in nodes:
        axes, given = (_some_axes(archive, f"{part}{i}", shape) for part in ("axes", "given"))
        sizes = tuple(shape[axis] for axis in (*given, *axes))
        left -= _check_cells(sizes)
        if left < 0:
            raise ValueError("its tables are too large together")
        for name, size in ((f"axes{i}", len(axes)), (f"given{i}", len(given))):
            arrays[name] = archive.read(name, "whole", (size,))
        arrays[f"table{i}"] = archive.read(f"table{i}", "real", sizes)
    return arrays


def _chain(archive: Archive, shape: Shape) -> Arrays:
    """The lengths, link by link, and then the numbers that they call for."""
    _check_names(archive, {*_SMALL, *_REALS, "bar_masks"})
    arrays: Arrays = {"shape": _same_shape(archive, shape)}
    for name in ("order", "groups", "bars"):
        arrays[name] = archive.integers(name, len(shape))
    order = arrays["order"].tolist()
    if sorted(order) != list(range(len(shape))):
        raise ValueError("order must name every attribute once")
    levels = [shape[attribute] for attribute in order]
    crossed, masks = (_read_groups(archive, name, arrays, levels, shape) for name in ("group", "bar"))
    if sum(levels) + 2 * crossed + masks > MAX_NUMBERS:
        raise ValueError("it holds too many numbers")
    arrays["base"] = archive.read("base", "real", (sum(levels),))
    arrays |= {name: archive.read(name, "real", (crossed,)) for name in ("factors", "goals")}
    return arrays | {"bar_masks": archive.read("bar_masks", "truth", (masks,))}


def _read_groups(archive: Archive, name: str, arrays: Arrays, levels: Sequence[int], shape: Shape) -> int:
    """Add the arrays that list the groups (or bars) of all links; how many cells they have with the levels of their links."""
    for part, lengths in ((f"{name}_sizes", f"{name}s"), (f"{name}_axes", f"{name}_sizes")):
        arrays[part] = archive.integers(part, _few(sum(arrays[lengths].tolist())))
    by_link = groups_by_link(arrays, name, arrays["order"].tolist(), shape)
    return sum(
        level * _product(shape[axis] for axis in group)
        for groups, level in zip(by_link, levels, strict=True)
        for group in groups
    )


def _some_axes(archive: Archive, name: str, shape: Shape) -> list[int]:
    length = archive.length(name)
    axes: list[int] = archive.integers(name, length).tolist() if length <= len(shape) else [len(shape)]
    if any(axis >= len(shape) for axis in axes):
        raise ValueError(f"{name} must be attributes of the schema")
    return axes


def _same_shape(archive: Archive, shape: Shape) -> NDArray[Any]:
    declared = archive.read("shape", "whole", (len(shape),))
    if tuple(declared.tolist()) != shape:
        raise ValueError("its shape must be the schema's")
    return declared


def _check_names(archive: Archive, wanted: set[str]) -> None:
    if archive.names != wanted | {HEADER}:
        raise ValueError("it must hold the arrays of its kind, and no others")


def _check_cells(shape: Shape) -> int:
    cells = product_within(shape, MAX_TABLE_CELLS)
    if cells is None or len(shape) > _MOST_DIMENSIONS:
        raise ValueError(f"a table of it is too large: at most {MAX_TABLE_CELLS} cells fit")
    return cells


def _product(sizes: Iterable[int]) -> int:
    cells = product_within(sizes, MAX_NUMBERS)
    if cells is None:
        raise ValueError("it holds too many numbers")
    return cells


def _few(many: int) -> int:
    if many > MAX_LISTED:
        raise ValueError("it lists too many groups of attributes")
    return many


_READERS: Mapping[str, Callable[[Archive, Shape], Arrays]] = {
    "dense": _dense,
    "chain": _chain,
    "network": _network,
}
