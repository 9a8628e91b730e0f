"""Zip files that hold one text file; sizes are judged before anything is unpacked."""

import zipfile
from pathlib import Path
from typing import BinaryIO, cast

from dpcipher.errors import TableFileError

MAX_BYTES = 2**36  # unpacked
# A table of equal rows packs 200-fold at most; beyond that a large file was made to fill somebody's time.
LARGE_BYTES, MAX_GROWTH = 2**26, 250
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENDINGS = (".csv", ".tsv", ".txt")


def member_name(path: Path) -> str:
    """The name of the one file that a zip file holds."""
    with _opened(path) as archive:
        return _member(archive, path).filename


def open_member(path: Path) -> BinaryIO:
    """The bytes of the one file, unpacked as they are read; what is longer than it says, or has another checksum, breaks off."""
    archive = _opened(path)
    member = _member(archive, path)
    try:
        return cast(BinaryIO, archive.open(member))
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError):
        raise _damaged(path) from None


def check_growth(sizes: list[tuple[int, int]], path: Path) -> None:
    """Refuse what grows beyond reason; pairs of packed and unpacked sizes."""
    packed, unpacked = (sum(pair[i] for pair in sizes) for i in (0, 1))
    if unpacked > MAX_BYTES or (unpacked > LARGE_BYTES and unpacked > MAX_GROWTH * max(packed, 1)):
        raise TableFileError(
            f"{path}: unpacks to more than {MAX_BYTES >> 30} GiB, or to more than {MAX_GROWTH} times its size; unpack it yourself"
        )


def _opened(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, NotImplementedError, UnicodeDecodeError):
        raise _damaged(path) from None


def _member(archive: zipfile.ZipFile, path: Path) -> zipfile.ZipInfo:
    """The one file, folders and the notes of a Mac aside."""
    members = [
        entry
        for entry in archive.infolist()
        if not entry.is_dir() and not entry.filename.startswith("__MACOSX/")
    ]
    if len(members) != 1 or not members[0].filename.lower().endswith(_ENDINGS):
        raise TableFileError(
            f"{path}: must hold exactly one file, whose name ends in .csv, .tsv or .txt; unpack it and name the file"
        )
    member = members[0]
    if member.flag_bits & 1 or member.compress_type not in _METHODS:
        raise TableFileError(f"{path}: must be packed with deflate and without a password; pack it again")
    check_growth([(member.compress_size, member.file_size)], path)
    return member


def _damaged(path: Path) -> TableFileError:
    return TableFileError(
        f"{path}: cannot be read as zip; check that the file is complete and not another format"
    )
