"""Files that are complete or absent: written beside their target, synced to disk, then renamed into place.

A process that is killed cannot clean up. What it left is removed by the next one that writes the same target: a temporary file is locked
as long as its writer lives.

Nothing here turns an OSError into another error: the caller knows what the file is and what to advise.
"""

import errno
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # a system without flock: nothing tells a leftover from a file that is being written
    fcntl = None  # type: ignore[assignment]

_LONGEST_STEM = 40


@contextmanager
def replacing(path: Path, *, mode: int = 0o666) -> Iterator[Path]:
    """A temporary file that takes the place of `path` when the block ends well; else `path` stays as it was.

    A symbolic link at `path` is replaced, not followed. A device or a pipe is refused: a rename would put a file in its place.
    """
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is there already and is no regular file", str(path))
    with beside(path, mode=mode) as temporary:
        yield temporary
        sync(temporary)
        temporary.replace(path)
        sync(path.parent)


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


def write_text(path: Path, text: str, *, mode: int = 0o666) -> Path:
    """Write a text as UTF-8, complete or not at all."""
    with replacing(path, mode=mode) as temporary:
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
