"""Files appear whole or not at all, of their mode from the start, and leave nothing beside them."""

import os
import stat
from pathlib import Path

import pytest

from dpcipher.drawing.curator_only import private_folder, write
from dpcipher.errors import TableFileError
from dpcipher.files import clear_leftovers, replacing, write_new, write_text
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.ledger import Ledger
from dpcipher.privacy.terms import Unit


class Interrupted(Exception):
    """Raised in the middle of writing."""


def interrupt(path: Path) -> None:
    """Begin to write, and stop."""
    path.write_text("half of it")
    raise Interrupted


def mode(path: Path) -> int:
    """The permissions of a file."""
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_is_replaced_when_it_is_complete(tmp_path: Path) -> None:
    """The old content is there until the block ends, then the new one; nothing lies beside it."""
    path = tmp_path / "file.txt"
    path.write_text("old")
    with replacing(path, force=True) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("before", [None, "old"])
def test_an_interrupted_write_changes_nothing(tmp_path: Path, before: str | None) -> None:
    """An absent file stays absent, an old one stays as it was."""
    path = tmp_path / "file.txt"
    if before is not None:
        path.write_text(before)
    with pytest.raises(Interrupted), replacing(path, force=True) as temporary:
        interrupt(temporary)
    assert [file.read_text() for file in tmp_path.iterdir()] == ([] if before is None else [before])


def test_a_disk_that_cannot_sync_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What may not survive a power cut does not take the place of what does."""

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "file.txt"
    path.write_text("old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_text(path, "new", force=True)
    assert [file.read_text() for file in tmp_path.iterdir()] == ["old"]


def test_the_mode_holds_before_the_first_byte(tmp_path: Path) -> None:
    """Nobody else can open the temporary file either; without a mode, the umask decides."""
    with replacing(tmp_path / "secret", mode=0o600) as temporary:
        assert mode(temporary) == 0o600
    assert mode(tmp_path / "secret") == 0o600
    (tmp_path / "plain").touch()
    assert mode(write_text(tmp_path / "open", "text")) == mode(tmp_path / "plain")


def test_a_link_is_replaced_and_its_target_kept(tmp_path: Path) -> None:
    """Somebody's link does not lead a private text into a file of theirs."""
    (tmp_path / "theirs").write_text("theirs")
    (tmp_path / "link").symlink_to(tmp_path / "theirs")
    write_text(tmp_path / "link", "private", mode=0o600, force=True)
    assert not (tmp_path / "link").is_symlink()
    assert (tmp_path / "theirs").read_text() == "theirs"


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    """A pipe is not renamed away, and a folder is left alone."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(OSError, match="no regular file"):
            write_text(path, "text")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_the_longest_name_can_be_written(tmp_path: Path) -> None:
    """The temporary name is no longer than the target's may be, in any alphabet."""
    for name in ("n" * 255, "名" * 85):
        assert write_text(tmp_path / name, "text").read_text() == "text"


def test_a_curators_file_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    """With the place in the message, and no traceback of the system's own error."""
    folder = private_folder(tmp_path / "curator")
    (folder / "scores.json").mkdir()
    with pytest.raises(TableFileError, match=r"scores\.json: cannot be written"):
        write(folder / "scores.json", "{}")


def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path: Path) -> None:
    """Its temporary file, and no file of another name, no link, and none that somebody is still writing."""
    path = tmp_path / "rows.csv"
    left = tmp_path / ".rows.csv.0123456789abcdef"
    kept = [
        tmp_path / name for name in (".rows.csv.bak", ".rows.csv.0123456789abcdeg", ".other.0123456789abcdef")
    ]
    for file in (left, *kept):
        file.write_text("half of it")
    (tmp_path / ".rows.csv.fedcba9876543210").symlink_to(kept[0])
    with replacing(path) as living:
        assert not left.exists()
        clear_leftovers(path)
        assert living.exists()
        living.write_text("all of it")
    assert path.read_text() == "all of it"
    assert all(file.exists() for file in kept)
    assert (tmp_path / ".rows.csv.fedcba9876543210").is_symlink()


def test_a_second_name_of_a_ledger_goes_with_the_next_charge(tmp_path: Path) -> None:
    """A creator was killed between giving the ledger its name and taking the temporary one away."""
    ledger = Ledger.create(tmp_path / "l", epsilon=1, unit="add-remove")
    os.link(ledger.path, tmp_path / ".l.0123456789abcdef")
    ledger.charge(Budget.parse(epsilon=0.5), unit=Unit("add-remove"), what={})
    assert sorted(file.name for file in tmp_path.iterdir()) == ["l", "l.witness"]
    assert len(ledger.entries) == 1


def test_a_new_file_replaces_nothing(tmp_path: Path) -> None:
    """Of its mode; neither a file nor a link that leads nowhere is touched, and nothing lies beside them."""
    path = write_new(tmp_path / "new", b"first", mode=0o600)
    (tmp_path / "link").symlink_to(tmp_path / "absent")
    for name in ("new", "link"):
        with pytest.raises(FileExistsError):
            write_new(tmp_path / name, b"second")
    assert (path.read_bytes(), mode(path)) == (b"first", 0o600)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["link", "new"]
