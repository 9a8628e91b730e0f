"""What compares with private rows is for the curator alone: in type, in text, and in file mode."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Final, final

import pyarrow as pa
import pyarrow.parquet as pq

from dpcipher.drawing.card import Shown
from dpcipher.drawing.plot import Drawable
from dpcipher.errors import NotPrivate, TableFileError
from dpcipher.files import write_text
from dpcipher.release.file import KEY

PUBLISHABLE: Final = "publishable report"  # what a page says of itself to programs
MARKED_CURATOR: Final = "CURATOR-ONLY.txt"
WATERMARK: Final = (
    "CURATOR ONLY: computed from private rows, not protected by differential privacy, must not be published"
)


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
        return write(private_folder(folder) / name, str(self) + "\n")


class CuratorShown(CuratorOnly, Shown, Drawable):
    """The same for what shows itself in a notebook and as a plot, under the watermark."""


def save_plot(path: Path, text: str) -> Path:
    """Write a plot of private rows into a folder that only its owner can open."""
    return write(private_folder(path.parent) / path.name, text)


def private_folder(folder: str | Path) -> Path:
    """A folder of mode 0700 for the curator's files and no others: a new one, an empty one, or one made here before."""
    path = Path(folder)
    check_folder(path)
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.chmod(0o700)
    except OSError as error:
        raise TableFileError(
            f"folder ({path}) cannot be made private: {error.strerror}; choose a folder of your own"
        ) from None
    write(path / MARKED_CURATOR, WATERMARK + "\n")
    return path


def check_folder(path: Path) -> None:
    """Refuse a folder where publishable files lie, or that belongs to something else."""
    files = sorted(path.iterdir()) if path.is_dir() else []
    published = [file.name for file in files if _is_publishable(file)]
    if published:
        raise NotPrivate(
            f"folder ({path}) holds {published[0]}, which is publishable; what is computed from private rows must not lie beside it. "
            "Name another folder"
        )
    if files and not (path / MARKED_CURATOR).exists():
        raise NotPrivate(
            f"folder ({path}) is in use for something else and would be closed to everybody but you; name a new folder"
        )


def write(path: Path, text: str) -> Path:
    """Write a file that only its owner can read, from its first byte on."""
    try:
        return write_text(path, text, mode=0o600)
    except OSError as error:
        raise TableFileError(f"{path}: cannot be written ({error.strerror}); choose another place") from None


def _is_publishable(path: Path) -> bool:
    """Whether a file is a release or a publishable report, whatever it is called."""
    if path.suffix == ".html" and path.is_file():
        return PUBLISHABLE.encode() in path.read_bytes()[:500]
    if path.suffix == ".parquet" and path.is_file():
        try:
            return KEY in (pq.read_schema(path).metadata or {})
        except (pa.ArrowException, OSError, UnicodeDecodeError):
            return False
    return False
