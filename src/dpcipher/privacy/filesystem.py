"""Which file systems a ledger may live on: those where flock is known to exclude every other writer."""

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from dpcipher.errors import LedgerError

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
    "darwin": frozenset({"apfs", "hfs"}),
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
    return [(_unescape(row[1]), row[2]) for row in rows if len(row) >= 3]


def parse_mount_command(text: str) -> list[Mount]:
    """Mounts from macOS's `mount`.

    >>> parse_mount_command("/dev/disk3s1 on /System/Volumes/Data (apfs, local, journaled)")
    [('/System/Volumes/Data', 'apfs')]
    """
    return re.findall(r"^.*? on (/.*) \(([^,)]+)[^()]*\)$", text, flags=re.MULTILINE)


def _unescape(point: str) -> str:
    """Octal escapes back to characters."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), point)
