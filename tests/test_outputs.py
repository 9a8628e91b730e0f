"""No file is overwritten unasked, none that is read is ever overwritten, and nothing that was paid for is lost."""

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpcipher as dc
from dpcipher.errors import DpcipherError, DpcipherWarning, LedgerError

SCHEMA = dc.Schema.from_domain({"smokes": 2, "ill": 2})
PEOPLE = pd.DataFrame({"smokes": [0, 0, 1, 1] * 250, "ill": [0, 0, 0, 1] * 250})
RELEASE = dc.Release.from_tables({("smokes", "ill"): [[480, 20], [260, 240]]}, SCHEMA, scale=5.0)
JOINT = dc.solve(RELEASE)

WRITERS: dict[str, Callable[..., Any]] = {
    "s.yaml": SCHEMA.save,
    "s.json": SCHEMA.save,
    "r.parquet": RELEASE.save,
    "j.npz": JOINT.save,
    "p.svg": dc.plot(RELEASE, "ill").save,
    "rows.csv": JOINT.stream(20, seed=1).write,
    "rows.csv.gz": JOINT.stream(20, seed=1).write,
    "rows.parquet": JOINT.stream(20, seed=1).write,
    "rows.dta": JOINT.stream(20, seed=1).write,
    "page.html": lambda path, **force: dc.report(RELEASE, JOINT.sample(20, seed=1), path, **force),
    "m.parquet": lambda path, **force: dc.measure(
        PEOPLE, SCHEMA, epsilon=1, unit="add-remove", save=path, **force
    ),
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_writer_refuses_what_is_there_already(tmp_path: Path, name: str) -> None:
    """A file, and a link that leads anywhere or nowhere; with force=True the file is replaced, and of a link not what it leads to."""
    write, path, kept = WRITERS[name], tmp_path / name, tmp_path / "kept"
    kept.write_text("precious")
    for make in (lambda: path.write_text("precious"), lambda: path.symlink_to(kept), lambda: path.symlink_to(tmp_path / "absent")):  # fmt: skip
        make()
        before = path.lstat()
        with pytest.raises(DpcipherError, match="is there already, and nothing is overwritten unasked"):
            write(path)
        assert path.lstat() == before
        assert [file.name for file in tmp_path.iterdir() if file not in (path, kept)] == []
        path.unlink()
    path.symlink_to(kept)
    write(path, force=True)
    assert not path.is_symlink()
    assert path.stat().st_size > 0
    assert kept.read_text() == "precious"


ENDINGS = [
    ("s.csv", SCHEMA.save),
    ("r.csv", RELEASE.save),
    ("j.parquet", JOINT.save),
    ("p.png", dc.plot(RELEASE, "ill").save),
    ("rows.html", JOINT.stream(20, seed=1).write),
    ("page.parquet", WRITERS["page.html"]),
    ("m.csv", WRITERS["m.parquet"]),
    ("l.csv", lambda path: dc.Ledger.create(path, epsilon=1, unit="add-remove")),
]


@pytest.mark.parametrize(("name", "write"), ENDINGS)
def test_an_ending_that_says_another_format_is_refused(
    tmp_path: Path, name: str, write: Callable[[Path], Any]
) -> None:
    """The message says which are right, and nothing is written."""
    with pytest.raises(DpcipherError, match=r"must (not )?end in \."):
        write(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("link", [None, os.symlink, os.link])
def test_a_release_never_takes_the_place_of_its_rows(
    tmp_path: Path, link: Callable[[Path, Path], None] | None
) -> None:
    """Not even with force=True, by no link, and where the rows are one of several files; nothing is charged."""
    ledger = dc.Ledger.create(tmp_path / "people.ledger", epsilon=2, unit="add-remove")
    folder = tmp_path / "years"
    folder.mkdir()
    people, target = folder / "people.parquet", folder / "people.parquet"
    PEOPLE.to_parquet(people)
    if link is not None:
        target = tmp_path / "linked.parquet"
        link(people, target)
    before = people.read_bytes()
    for data in (people, folder, folder / "*.parquet"):
        with pytest.raises(DpcipherError, match="is read here, and would be destroyed"):
            dc.measure(
                str(data), SCHEMA, epsilon=1, unit="add-remove", ledger=ledger, save=target, force=True
            )
    assert people.read_bytes() == before
    assert ledger.entries == ()


def test_a_page_never_takes_the_place_of_what_it_is_about(tmp_path: Path) -> None:
    """Of a release or rows that have the ending of a page, which nothing forbids a link to have."""
    release = RELEASE.save(tmp_path / "r.parquet")
    JOINT.stream(20, seed=1).write(tmp_path / "rows.parquet")
    for name in ("r.parquet", "rows.parquet"):
        page = tmp_path / f"{name}.html"
        page.symlink_to(tmp_path / name)
        with pytest.raises(DpcipherError, match="is read here, and would be destroyed"):
            dc.report(release, tmp_path / "rows.parquet", page, force=True)
    assert dc.Release.load(release).checksum == RELEASE.checksum


def test_a_file_that_appears_after_the_charge_costs_no_release(tmp_path: Path) -> None:
    """The release is written beside it under a free name, and the ledger knows it by that name."""
    ledger = dc.Ledger.create(tmp_path / "people.ledger", epsilon=2, unit="add-remove")
    asked = tmp_path / "r.parquet"

    def appear(_: str) -> None:
        """Somebody else's file, while rows are counted and noise is drawn."""
        asked.write_text("somebody else's")

    for _ in range(2):
        asked.unlink(missing_ok=True)
        with pytest.warns(DpcipherWarning, match="another file appeared there"):
            release = dc.measure(
                PEOPLE, SCHEMA, epsilon=1, unit="add-remove", ledger=ledger, save=asked, progress=appear
            )
    assert dc.Release.load(tmp_path / "r-3.parquet").checksum == release.checksum
    assert asked.read_text() == "somebody else's"
    assert [entry.file for entry in ledger.entries] == ["r-2.parquet", "r-3.parquet"]


def test_a_folder_that_goes_after_the_charge_costs_no_release(tmp_path: Path) -> None:
    """The release is written to a folder for temporary files, and the warning says which."""
    folder = tmp_path / "out"
    folder.mkdir()

    def go(_: str) -> None:
        """The disk of that folder is gone, while rows are counted and noise is drawn."""
        folder.rename(tmp_path / "gone") if folder.exists() else None

    with pytest.warns(DpcipherWarning, match="paid for, and was written to") as caught:
        release = dc.measure(
            PEOPLE, SCHEMA, epsilon=1, unit="add-remove", save=folder / "r.parquet", progress=go
        )
    (said,) = (str(one.message) for one in caught if "paid for" in str(one.message))
    written = Path(said.rsplit("written to ", 1)[1])
    assert dc.Release.load(written).checksum == release.checksum
    written.unlink()
    written.parent.rmdir()


def test_a_ledger_that_cannot_be_marked_costs_no_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was charged: the release is returned with a warning or, where it was saved, the error says where; the entry stays without a checksum."""
    ledger = dc.Ledger.create(tmp_path / "people.ledger", epsilon=2, unit="add-remove")

    def full(*_: object, **__: object) -> None:
        raise LedgerError("ledger (people.ledger) cannot be written: No space left on device")

    monkeypatch.setattr(dc.Ledger, "mark_released", full)
    options = {"epsilon": 1, "unit": "add-remove", "ledger": ledger}
    with pytest.warns(DpcipherWarning, match="is paid for, and can be used"):
        release = dc.measure(PEOPLE, SCHEMA, **options)
    assert abs(release.n_rows - 1_000) < 200
    with pytest.raises(LedgerError, match=r"paid for and written to .*r\.parquet, and can be used"):
        dc.measure(PEOPLE, SCHEMA, **options, save=tmp_path / "r.parquet")
    assert dc.Release.load(tmp_path / "r.parquet").statement.status == "certified"
    assert [entry.checksum for entry in ledger.entries] == [None, None]


def test_a_file_system_without_hard_links_is_no_reason_to_overwrite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are named by a rename there, which looks first."""

    def unsupported(*_: object, **__: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", unsupported)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert RELEASE.save(tmp_path / "r.parquet").exists()
        with pytest.raises(DpcipherError, match="is there already"):
            RELEASE.save(tmp_path / "r.parquet")
    assert [file.name for file in tmp_path.iterdir()] == ["r.parquet"]
