"""Files that are complete or absent: written beside their target, synced to disk, then renamed into place.

Nothing here turns an OSError into another error: the caller knows what the file is and what to advise.
"""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


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
    temporary = path.with_name(f".{path.name[:40]}.{secrets.token_hex(8)}")
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode))
    try:
        yield temporary
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str, *, mode: int = 0o666) -> Path:
    """Write a text as UTF-8, complete or not at all."""
    with replacing(path, mode=mode) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return path


def sync(path: Path) -> None:
    """Wait until the bytes of a file, or the names in a folder, are on disk."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
