"""Values that came from private rows are for the curator alone: a stamp travels with them into every text, picture and file.

A value has the stamp unless its type or its own origin says that it rests on released or public facts: what is unknown is taken for private.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dpcipher.errors import NotPrivate, TableFileError
from dpcipher.files import write_text

if TYPE_CHECKING:
    import pandas as pd

RELEASE_KEY: Final = b"dpcipher"  # of a release's metadata in its Parquet file
STAMP_KEY: Final = "curator_only"  # of the stamp in JSON, and in the attrs of a frame
PUBLISHABLE: Final = "publishable report"  # what a page says of itself to programs
MARKED_CURATOR: Final = "CURATOR-ONLY.txt"
WATERMARK: Final = (
    "CURATOR ONLY: computed from private rows, not protected by differential privacy, must not be published"
)

UNKNOWN: Final = "CURATOR ONLY, as far as is known: nothing says that the rows behind this came from a release. If they did, say on whose word: rows_from='WORDS'"
UNSIGNED: Final = (
    "CURATOR ONLY until a person signs it: levels and ranges may have been read off private rows"
)
SEEDED: Final = "CURATOR ONLY: its noise can be repeated and protects nobody, must not be published"


class Stamped:
    """A value that knows who may see it. Everything that shows or writes it asks `stamp`, and nothing else."""

    @property
    def stamp(self) -> str:
        """Who alone may see it and why; empty where everybody may. Unless a type says otherwise, it came from private rows."""
        return WATERMARK

    def _stamped(self, plain: Mapping[str, Any]) -> dict[str, Any]:
        """Plain values, the stamp first."""
        return {STAMP_KEY: self.stamp, **plain} if self.stamp else dict(plain)

    def _stamped_frame(self, frame: "pd.DataFrame") -> "pd.DataFrame":
        """A frame that carries the stamp in its attrs."""
        if self.stamp:
            frame.attrs[STAMP_KEY] = self.stamp
        return frame


class Released(Stamped):
    """A value that rests on released or public facts alone."""

    stamp = ""


def save_plot(path: Path, text: str, stamp: str, *, force: bool = False) -> Path:
    """Write a stamped plot into a folder that only its owner can open."""
    try:
        return write(private_folder(path.parent) / path.name, text, force=force)
    except NotPrivate as refused:
        hint = (
            "; if the rows came from a release, say on whose word with rows_from=" if stamp == UNKNOWN else ""
        )
        raise NotPrivate(f"{refused}{hint}") from None


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
    write(path / MARKED_CURATOR, WATERMARK + "\n", force=True)
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


def write(path: Path, text: str, *, force: bool = False) -> Path:
    """Write a file that only its owner can read, from its first byte on."""
    try:
        return write_text(path, text, mode=0o600, force=force)
    except OSError as error:
        raise TableFileError(f"{path}: cannot be written ({error.strerror}); choose another place") from None


def _is_publishable(path: Path) -> bool:
    """Whether a file is a release or a publishable report, whatever it is called."""
    if path.suffix == ".html" and path.is_file():
        return PUBLISHABLE.encode() in path.read_bytes()[:500]
    if path.suffix == ".parquet" and path.is_file():
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return RELEASE_KEY in (pq.read_schema(path).metadata or {})
        except (pa.ArrowException, OSError, UnicodeDecodeError):
            return False
    return False
