"""Files that are locked, appended to and synced, so that what was written stays written, and the file systems where that holds."""

import contextlib
import errno
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

from dpcipher.errors import LedgerError
from dpcipher.files import beside, clear_leftovers, sync

OWNER_ONLY = 0o600


def locks() -> ModuleType:
    """The module with flock, which only POSIX systems have."""
    try:
        import fcntl
    except ImportError:
        raise LedgerError("a ledger needs the file locks of Linux or macOS; this system has none") from None
    return fcntl


@contextlib.contextmanager
def locked(path: Path, *, write: bool) -> Iterator[int]:
    """The open file, locked against every other opening of it: alone for writing, shared for reading."""
    fcntl = locks()
    fd = _opened(path, write=write)
    try:
        try:  # waits; a system that cannot give the lock is refused
            fcntl.flock(fd, fcntl.LOCK_EX if write else fcntl.LOCK_SH)
        except OSError as error:
            raise _failure(path, "locked", error) from error
        _check_still_there(fd, path)
        yield fd
    finally:
        # A child forked meanwhile shares this lock: closing our end alone would not free it.
        with contextlib.suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_UN)
        os.close(fd)


def read_all(fd: int, path: Path) -> bytes:
    """Every byte of an open file."""
    parts, offset = [], 0
    try:
        while part := os.pread(fd, max(1 << 16, os.fstat(fd).st_size - offset), offset):
            parts.append(part)
            offset += len(part)
    except OSError as error:
        raise _failure(path, "read", error) from error
    return parts[0] if len(parts) == 1 else b"".join(parts)


def append(fd: int, path: Path, data: bytes, *, keep: int) -> None:
    """Put data after the first `keep` bytes, and return only when it is on the disk."""
    try:
        status = os.fstat(fd)
        if status.st_nlink > 1:  # perhaps a second name, left by a creator that was killed
            clear_leftovers(path)
        if status.st_size != keep:
            os.ftruncate(fd, keep)
        _write_all(fd, data, at=keep)
    except OSError as error:
        # Nothing was granted for these bytes; if they cannot be taken back either, they are a torn line.
        with contextlib.suppress(OSError):
            os.ftruncate(fd, keep)
        raise _failure(path, "written", error) from error
    try:
        _sync_bytes(fd)
        sync(path.parent)
    except OSError as error:
        raise _failure(path, "synced", error, "what was added to it counts as spent") from error


def create(path: Path, data: bytes) -> None:
    """A new file with this content, or no file: it appears under its name only when it is complete and on the disk."""
    try:
        with beside(path, mode=OWNER_ONLY) as temporary:
            fd = os.open(temporary, os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.fchmod(fd, OWNER_ONLY)  # whatever the umask
                _write_all(fd, data, at=0)
                _sync_bytes(fd)
            finally:
                os.close(fd)
            os.link(temporary, path)  # unlike a rename, never replaces
        sync(path.parent)
    except FileExistsError:
        raise LedgerError(f"ledger ({path}) exists already; open it, or choose another path") from None
    except OSError as error:
        raise _failure(path, "created", error, "nothing was charged") from error


def read_small(path: Path, longest: int) -> bytes | None:
    """A regular file's bytes, one more than `longest` at most; None if there is no such file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        return os.pread(fd, longest + 1, 0)
    finally:
        os.close(fd)


def replace(path: Path, data: bytes, *, like: Path) -> None:
    """Put data in the place of a file in one step, readable by whoever may read `like`, and return only when it is on the disk.

    One writer at a time: the temporary file has one name, so that what a crash leaves behind does not pile up.
    """
    temporary = _aside(path)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary)
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, OWNER_ONLY)
    try:
        model = os.stat(like)
        with contextlib.suppress(OSError):  # only members of the group may give a file to it
            os.fchown(fd, -1, model.st_gid)
        os.fchmod(fd, stat.S_IMODE(model.st_mode))
        _write_all(fd, data, at=0)
        _sync_bytes(fd)
        os.replace(temporary, path)
    except BaseException:  # an interrupt too leaves nothing behind
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    finally:
        os.close(fd)
    sync(path.parent)


def clear_replacement(path: Path) -> None:
    """Remove what a writer of `replace` left when it was killed; the caller makes sure that there is no other."""
    with contextlib.suppress(OSError):
        os.unlink(_aside(path))


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.tmp")


def _opened(path: Path, *, write: bool) -> int:
    """A descriptor of a regular file that allows what is asked."""
    # Without O_NONBLOCK the opening of a named pipe would wait forever.
    mode = (os.O_RDWR if write else os.O_RDONLY) | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        fd = os.open(path, mode)
    except FileNotFoundError:
        raise LedgerError(missing(path)) from None
    except OSError as error:
        raise _failure(path, "opened for writing" if write else "read", error) from error
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        os.close(fd)
        raise LedgerError(f"ledger ({path}) must be a regular file")
    if write and not status.st_mode & stat.S_IWUSR:  # an administrator could write it all the same
        os.close(fd)
        raise LedgerError(f"ledger ({path}) is marked read-only; nothing can be charged to it")
    return fd


def _check_still_there(fd: int, path: Path) -> None:
    """Refuse a file that was moved away or replaced while we waited for its lock."""
    try:
        same = os.path.samestat(os.fstat(fd), os.stat(path))
    except OSError:
        same = False
    if not same:
        raise LedgerError(f"ledger ({path}) was replaced while it was being opened; try again")


def _write_all(fd: int, data: bytes, *, at: int) -> None:
    """Write every byte, in as many calls as the system wants."""
    os.lseek(fd, at, os.SEEK_SET)
    while data:
        data = data[os.write(fd, data) :]


def _sync_bytes(fd: int) -> None:
    """Wait until the device has the bytes; macOS needs a stronger call than fsync for that."""
    fcntl = locks()
    if hasattr(fcntl, "F_FULLFSYNC"):
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    os.fsync(fd)


def missing(path: Path) -> str:
    """What to say of a ledger that is not there."""
    where = "" if path.is_absolute() else f" in {Path.cwd()}"
    return f"ledger ({path}) does not exist{where}; check the path, or create the ledger with `dpcipher ledger create` or Ledger.create"


def _failure(path: Path, what: str, error: OSError, then: str = "nothing was added to it") -> LedgerError:
    return LedgerError(f"ledger ({path}) could not be {what}: {error.strerror}; {then}")


# Local file systems whose flock holds between all processes of the machine and whose fsync reaches the device. tmpfs
# locks as well, but forgets everything at the next boot; it is here because temporary folders live there.
LOCAL = {
    "linux": frozenset(
        [
            "ext2",
            "ext3",
            "ext4",
            "xfs",
            "btrfs",
            "zfs",
            "f2fs",
            "bcachefs",
            "jfs",
            "nilfs2",
            "overlay",
            "tmpfs",
        ]
    ),
    "darwin": frozenset(["apfs", "hfs"]),
}
Mount = tuple[str, str]  # mount point, type


def check_supported(path: Path, *, platform: str = sys.platform) -> None:
    """Refuse a path where two writers might not exclude each other: other systems, network and unknown file systems."""
    local = LOCAL.get(platform)
    if local is None:
        raise LedgerError(
            f"ledger ({path}) must be on Linux or macOS: file locks of {platform} are not supported"
        )
    kind = kind_at(os.path.realpath(path), mounts(platform))
    if kind not in local:
        raise LedgerError(
            f"ledger ({path}) is on a file system of type {kind or 'unknown'}, where locks between processes are not certain; "
            f"move it to a local disk ({', '.join(sorted(local))})"
        )


def kind_at(real_path: str, table: Iterable[Mount]) -> str | None:
    """The type of the file system that holds a path: the deepest mount point wins, the later one among equals.

    >>> kind_at("/data/ann/x", [("/", "ext4"), ("/data", "nfs4"), ("/data/an", "xfs")])
    'nfs4'
    """
    kind, depth = None, -1
    for point, candidate in table:
        inside = real_path == point or real_path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= depth:
            kind, depth = candidate, len(point)
    return kind


def mounts(platform: str) -> list[Mount]:
    """What is mounted where, as the system tells it; nothing if it does not tell, and then nothing is supported."""
    try:
        if platform == "linux":
            return parse_proc_mounts(Path("/proc/self/mounts").read_text(errors="surrogateescape"))
        return parse_mount_command(
            subprocess.run(["/sbin/mount"], capture_output=True, text=True, check=True).stdout
        )
    except (OSError, subprocess.SubprocessError):
        return []


def parse_proc_mounts(text: str) -> list[Mount]:
    r"""Mounts from /proc/self/mounts, where spaces are written as \040.

    >>> parse_proc_mounts("server:/x /mnt/my\\040files nfs4 rw 0 0")
    [('/mnt/my files', 'nfs4')]
    """
    rows = (line.split(" ") for line in text.splitlines())
    return [
        (re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), row[1]), row[2])
        for row in rows
        if len(row) >= 3
    ]


def parse_mount_command(text: str) -> list[Mount]:
    """Mounts from macOS's `mount`.

    >>> parse_mount_command("/dev/disk3s1 on /System/Volumes/Data (apfs, local, journaled)")
    [('/System/Volumes/Data', 'apfs')]
    """
    return re.findall(r"^.*? on (/.*) \(([^,)]+)[^()]*\)$", text, flags=re.MULTILINE)
