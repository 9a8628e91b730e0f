"""Files that are complete or absent: written beside their target, synced to disk, then named. Nothing is overwritten unasked.

A process that is killed cannot clean up. What it left is removed by the next one that writes the same target: a temporary file is locked
as long as its writer lives.

Nothing here turns an OSError into another error: the caller knows what the file is and what to advise.
"""

import errno
import glob
import os
import re
import secrets
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from dpcipher.errors import DpcipherError, FileExists, TableFileError

try:
    import fcntl
except ImportError:  # a system without flock: nothing tells a leftover from a file that is being written
    fcntl = None  # type: ignore[assignment]

_LONGEST_STEM = 40
_LAST_RESORT = "dpcipher-"  # folders for what was paid for and has no other place


def check_output(
    path: str | os.PathLike[str],
    *,
    endings: tuple[str, ...] = (),
    force: bool = False,
    inputs: Iterable[object] = (),
) -> Path:
    """Refuse a path whose ending says another format, that is there already unless `force`, and always one of the files that are read."""
    target = Path(path)
    if endings and not target.name.lower().endswith(endings):
        raise TableFileError(f"{target}: must end in {', '.join(endings)}; rename it")
    if any(_is_read(target, given) for given in inputs if isinstance(given, str | os.PathLike)):
        raise TableFileError(f"{target}: is read here, and would be destroyed; name another file")
    if not force and os.path.lexists(target):
        raise _exists(target)
    return target


def _exists(path: Path) -> FileExists:
    return FileExists(
        f"{path}: is there already, and nothing is overwritten unasked; name another file, or replace it with force=True"
    )


def _is_read(target: Path, given: str | os.PathLike[str]) -> bool:
    """Whether a file is what a path, a folder, a pattern or FILE::TABLE stands for, by whatever name or link."""
    text = os.fspath(given).partition("::")[0]
    with suppress(OSError, ValueError):
        named = [Path(text)] if os.path.exists(text) else map(Path, glob.glob(text, recursive=True))
        files = (file for path in named for file in (path.rglob("*") if path.is_dir() else [path]))
        return target.is_file() and any(file.is_file() and file.samefile(target) for file in files)
    return False


class PaidFor(os.PathLike[str]):
    """A place for a file that was paid for: where another file has appeared there meanwhile, it goes beside it; `path` is where it went."""

    def __init__(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        self.path, self.force = Path(path), force

    def __fspath__(self) -> str:
        return str(self.path)

    def write(self, save: Callable[[Path], object], *, anywhere: bool = False) -> str:
        """Write it by `save`; why it is not where it was asked for, or nothing. `anywhere` means, if need be, a folder for temporary files."""
        asked, why = self.path, ""
        for number in count(2):
            try:
                save(self.path)
            except FileExists:
                why = why or "another file appeared there"
                self.path = self.path.with_name(f"{asked.stem}-{number}{asked.suffix}")
            except (OSError, DpcipherError) as error:
                if not anywhere or self.path.parent.name.startswith(_LAST_RESORT):
                    raise
                why = str(error)
                self.path = Path(tempfile.mkdtemp(prefix=_LAST_RESORT)) / asked.name
            else:
                break
        return why


@contextmanager
def replacing(path: Path, *, mode: int = 0o666, force: bool = False) -> Iterator[Path]:
    """A temporary file that gets the name `path` when the block ends well; else `path` stays as it was.

    What is there already is refused, or replaced with `force`: a symbolic link itself, not what it leads to. A device or a pipe is refused
    always: a rename would put a file in its place.
    """
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is there already and is no regular file", str(path))
    check_output(path, force=force)
    with beside(path, mode=mode) as temporary:
        yield temporary
        sync(temporary)
        if force:
            temporary.replace(path)
        else:
            _name(temporary, path)
        sync(path.parent)


def _name(temporary: Path, path: Path) -> None:
    """Give a file its name, which nothing else may have got meanwhile."""
    try:
        os.link(temporary, path)  # unlike a rename, never replaces
    except FileExistsError:
        raise _exists(path) from None
    except OSError:  # a file system without hard links
        if os.path.lexists(path):
            raise _exists(path) from None
        temporary.rename(path)


@contextmanager
def beside(path: Path, *, mode: int = 0o666) -> Iterator[Path]:
    """A new, empty file in the folder of `path`, of this mode from the start; whatever is left under its name goes when the block ends."""
    clear_leftovers(path)
    temporary, lock = _locked_file(path, mode)
    try:
        yield temporary
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        if lock is not None:
            os.close(lock)


def clear_leftovers(path: Path) -> None:
    """Remove the temporary files that writers of `path` left when they were killed; those of living writers are locked."""
    named = re.compile(re.escape(_stem(path)) + r"\.[0-9a-f]{16}")
    with suppress(OSError), os.scandir(path.parent) as entries:
        for entry in entries:
            if named.fullmatch(entry.name) and _is_left(Path(entry.path), path):
                with suppress(OSError):
                    os.unlink(entry.path)


def _stem(path: Path) -> str:
    """How the names of temporary files begin; short, so that they are not too long where the target's is the longest."""
    return f".{path.name[:_LONGEST_STEM]}"


def _locked_file(path: Path, mode: int) -> tuple[Path, int | None]:
    """A new, empty file beside `path`, and the descriptor that holds its lock."""
    while True:
        temporary = path.with_name(f"{_stem(path)}.{secrets.token_hex(8)}")
        lock = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        if fcntl is None:
            os.close(lock)
            return temporary, None
        with suppress(OSError):  # a file system without locks has no leftovers removed either
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(lock).st_nlink:  # else somebody took it for a leftover before it was locked
            return temporary, lock
        os.close(lock)


def _is_left(temporary: Path, path: Path) -> bool:
    """Whether nobody is writing a temporary file: its lock is free, or it is a second name of `path` itself."""
    if fcntl is None:
        return False
    try:
        handle = os.open(temporary, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        if path.exists() and os.path.samestat(os.fstat(handle), os.stat(path)):
            return True
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def write_text(path: Path, text: str, *, mode: int = 0o666, force: bool = False) -> Path:
    """Write a text as UTF-8, complete or not at all."""
    with replacing(path, mode=mode, force=force) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return path


def write_new(path: Path, data: bytes, *, mode: int = 0o666) -> Path:
    """Write a file that must not exist yet, complete or not at all; one that does is a `FileExistsError`."""
    with beside(path, mode=mode) as temporary:
        temporary.write_bytes(data)
        sync(temporary)
        os.link(temporary, path)  # unlike a rename, never replaces
        sync(path.parent)
    return path


def sync(path: Path) -> None:
    """Wait until the bytes of a file, or the names in a folder, are on disk."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
