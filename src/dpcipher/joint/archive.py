"""A NumPy archive that anybody may have written: what a member says it holds is judged before any of it is unpacked.

`numpy.load` makes whatever array a member declares, and a kilobyte can declare and unpack to a gigabyte. Here the reader says which
type and shape it expects, and a member that declares another is refused. Nothing is ever unpickled: only plain numbers have a
form to be read in.
"""

import math
import re
import zipfile
import zlib
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

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
