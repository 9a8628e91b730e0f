"""Coded rows that later questions need: in memory while they are few, else in files of this process that have no name and no other reader.

A file is made without a name, or unlinked at once, with mode 0600, and is gone when the process is. It is written before the charge, so that a full
disk costs no budget.
"""

import os
import tempfile
import weakref
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO, overload

import numpy as np

from dpcipher.curator.kernel import Columns
from dpcipher.errors import TableFileError
from dpcipher.request.limits import MEMORY_BYTES as MEMORY_BYTES
from dpcipher.tables.domain import CodeColumn


class UnnamedFile:
    """A file that only this process can open, that no name leads to, and that is closed when nobody needs it any more."""

    def __init__(self) -> None:
        with says_what_is_full():
            self.file = tempfile.TemporaryFile()  # noqa: SIM115 - closed with this object
        weakref.finalize(self, _close, self.file)

    def add(self, columns: Columns) -> int:
        """Write columns at the end; where that was."""
        with says_what_is_full():
            start = self.file.seek(0, os.SEEK_END)
            for column in columns:
                self.file.write(np.ascontiguousarray(column).data)
            self.file.flush()
        return start

    def read(self, start: int, n_bytes: int) -> bytes:
        """Some bytes; several threads may read at once."""
        return os.pread(self.file.fileno(), n_bytes, start)


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
            self.blocks = [FileColumns(self._file, block) for block in self.blocks]
        self.blocks.append(columns if self._file is None else FileColumns(self._file, columns))


class LazyColumns(Sequence[CodeColumn]):
    """Columns of which each is made when it is asked for."""

    @overload
    def __getitem__(self, axis: int) -> CodeColumn: ...
    @overload
    def __getitem__(self, axis: slice) -> Columns: ...
    def __getitem__(self, axis: int | slice) -> CodeColumn | Columns:
        if isinstance(axis, slice):
            return [self[place] for place in range(len(self))[axis]]
        return self._column(axis)

    @abstractmethod
    def _column(self, axis: int) -> CodeColumn:
        """One column."""


class FileColumns(LazyColumns):
    """Columns that are written to a file, each read when it is asked for."""

    def __init__(self, file: UnnamedFile, columns: Columns) -> None:
        self._file, self._types = file, [column.dtype for column in columns]
        self._stops = np.cumsum([file.add(columns), *(column.nbytes for column in columns)]).tolist()

    def __len__(self) -> int:
        return len(self._types)

    def _column(self, axis: int) -> CodeColumn:
        start, stop = self._stops[axis], self._stops[axis + 1]
        return np.frombuffer(self._file.read(start, stop - start), self._types[axis])


def recoded_columns(columns: Columns, codes: Mapping[int, CodeColumn]) -> Columns:
    """Columns with the new code of each old one on some axes: at once in memory, and whenever they are read from a file."""
    recoded = RecodedColumns(columns, codes)
    return recoded if isinstance(columns, FileColumns) else list(recoded)


class RecodedColumns(LazyColumns):
    """Columns whose codes are looked up when they are asked for."""

    def __init__(self, columns: Columns, codes: Mapping[int, CodeColumn]) -> None:
        self._columns, self._codes = columns, codes

    def __len__(self) -> int:
        return len(self._columns)

    def _column(self, axis: int) -> CodeColumn:
        return self._codes[axis][self._columns[axis]] if axis in self._codes else self._columns[axis]
