"""What compares with private rows is for the curator alone: in type, in text, and in file mode."""

import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Final, final

from dpcipher.errors import NotPrivate, TableFileError

WATERMARK: Final = (
    "CURATOR ONLY: computed from private rows, not protected by differential privacy, must not be published"
)
_MARK_FILE = "CURATOR-ONLY.txt"
# Where one of these lies, people publish from.
_PUBLISHABLE = ("*.release.parquet", "report.html")


class CuratorOnly(ABC):
    """A result that was computed from private rows. Its text begins with the watermark; its file nobody else can read."""

    @final
    def __str__(self) -> str:
        return f"{WATERMARK}\n{self._text()}"

    @abstractmethod
    def _text(self) -> str:
        """The result in words, without the watermark."""

    @final
    def save(self, folder: str | Path, name: str = "scores.txt") -> Path:
        """Write the text into a folder that only its owner can open."""
        return write(private_folder(folder) / name, str(self))


def private_folder(folder: str | Path) -> Path:
    """A folder of mode 0700 that holds nothing publishable, made if need be; refused where publishable files lie."""
    path = Path(folder)
    _refuse_publishable(path)
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.chmod(0o700)
    except OSError as error:
        raise TableFileError(
            f"folder ({path}) cannot be made private: {error.strerror}; choose a folder of your own"
        ) from None
    write(path / _MARK_FILE, WATERMARK + "\n")
    return path


def write(path: Path, text: str) -> Path:
    """Write a file that only its owner can read, from its first byte on."""
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as sink:
        sink.write(text)
    return path


def _refuse_publishable(path: Path) -> None:
    for pattern in _PUBLISHABLE:
        if any(path.glob(pattern)):
            raise NotPrivate(
                f"folder ({path}) holds publishable files ({pattern}); what is computed from private rows must not lie beside them. "
                "Name another folder"
            )
