"""Coded rows that later questions need: in memory while they are few, else in files of this process that have no name and no other reader.

A file is made without a name, or unlinked at once, with mode 0600, and is gone when the process is. It is written before the charge, so that a full
disk costs no budget.
"""

import os
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import IO, Any, overload

import numpy as np

from dpcipher.curator.kernel import Columns
from dpcipher.errors import TableFileError
from dpcipher.request.session import Recoding
from dpcipher.tables.covering import MEMORY_BYTES as MEMORY_BYTES
from dpcipher.tables.domain import CodeColumn


class UnnamedFile:
    """A file that only this process can open, that no name leads to, and that is closed when nobody needs it any more."""

    def __init__(self) -> None:
        with says_what_is_full():
            self.file = tempfile.TemporaryFile()  # noqa: SIM115 - closed with this object
        weakref.finalize(self, _close, self.file)

    def keep(self, columns: Columns) -> Columns:
        """Write columns at the end; each is read when it is asked for, several threads may read at once."""
        with says_what_is_full():
            place = self.file.seek(0, os.SEEK_END)
            for column in columns:
                self.file.write(np.ascontiguousarray(column).data)
            self.file.flush()
        makers = []
        for column in columns:
            makers.append(partial(self._read, place, column.nbytes, column.dtype))
            place += column.nbytes
        return LazyColumns(makers)

    def _read(self, start: int, n_bytes: int, kind: np.dtype[Any]) -> CodeColumn:
        return np.frombuffer(os.pread(self.file.fileno(), n_bytes, start), kind)


def _close(file: IO[bytes]) -> None:
    with suppress(OSError):  # of a full disk, which was said when it was met
        file.close()


@contextmanager
def says_what_is_full() -> Iterator[None]:
    """An error of the disk in words of ours."""
    try:
        yield
    except OSError as wrong:
        raise TableFileError(
            f"{tempfile.gettempdir()}: coded rows cannot be kept there for later questions ({wrong.strerror}); nothing was charged. "
            "Let TMPDIR name a folder with more room"
        ) from None


class HeldRows:
    """Coded rows, block after block, to be read as often as is asked."""

    def __init__(self, *, in_file: bool = False) -> None:
        self.blocks: list[Columns] = []
        self._bytes = 0
        self._file = UnnamedFile() if in_file else None

    def add(self, columns: Columns) -> None:
        """Keep some rows. As soon as all would be too many for memory, all go to a file."""
        self._bytes += sum(column.nbytes for column in columns)
        if self._file is None and self._bytes > MEMORY_BYTES:
            self._file = UnnamedFile()
            self.blocks = [self._file.keep(block) for block in self.blocks]
        self.blocks.append(columns if self._file is None else self._file.keep(columns))


class LazyColumns(Sequence[CodeColumn]):
    """Columns of which each is made when it is asked for."""

    def __init__(self, makers: Sequence[Callable[[], CodeColumn]]) -> None:
        self._makers = makers

    def __len__(self) -> int:
        return len(self._makers)

    @overload
    def __getitem__(self, axis: int) -> CodeColumn: ...
    @overload
    def __getitem__(self, axis: slice) -> Columns: ...
    def __getitem__(self, axis: int | slice) -> CodeColumn | Columns:
        return [make() for make in self._makers[axis]] if isinstance(axis, slice) else self._makers[axis]()


def recoded_columns(columns: Columns, codes: Recoding) -> Columns:
    """Columns with the new code of each old one on some axes: at once in memory, and whenever they are read from a file."""

    def recoded(axis: int) -> CodeColumn:
        return codes[axis][columns[axis]] if axis in codes else columns[axis]

    axes = range(len(columns))
    lazy = isinstance(columns, LazyColumns)
    return LazyColumns([partial(recoded, axis) for axis in axes]) if lazy else list(map(recoded, axes))
