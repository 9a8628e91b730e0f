"""Synthetic rows say which release they were drawn from, and a publishable page is refused about any others."""

import json
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dpcipher as dc
from dpcipher.errors import DpcipherError, NotPrivate, ParameterError, ReleaseError

SCHEMA = dc.Schema.from_dict(
    {
        "columns": {
            "sex": {"kind": "categorical", "levels": ["F", "M", "=other"]},
            "age": {"kind": "integer", "min": 0, "max": 99, "bins": 4, "missing": "level"},
            "income": {"kind": "number", "min": 0, "max": 200, "bins": 5, "special": [-1]},
            "since": {"kind": "date", "min": "2000-01-01", "max": "2020-12-31", "bins": 3},
            "hour": {"kind": "time", "min": "00:00", "max": "23:59", "bins": 3},
            "smoker": {"kind": "boolean", "missing": "level"},
        }
    }
)
RNG = np.random.default_rng(4)
TABLES = {
    SCHEMA.attrs[k : k + 2]: RNG.integers(0, 90, SCHEMA.shape[k : k + 2])
    for k in range(len(SCHEMA.attrs) - 1)
}
RELEASE = dc.Release.from_tables(TABLES, SCHEMA, scale=3.0)
OTHER = dc.Release.from_tables(TABLES, SCHEMA, scale=4.0)
JOINT = dc.solve(RELEASE)


def shown(rows: object, folder: Path, *, rows_from: str | None = None) -> str:
    """The text of the page about the release and these rows."""
    page = dc.report(RELEASE, rows, folder / "page.html", rows_from=rows_from, force=True)
    return page.read_text(encoding="utf-8")


@pytest.mark.parametrize("values", ["drawn", "middle"])
@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz", "rows.parquet"])
def test_rows_of_a_file_are_known_whatever_it_is_called(tmp_path: Path, name: str, values: str) -> None:
    """In every format, of every kind of column, over several batches, and after the file was renamed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # texts that begin a formula are quoted
        JOINT.stream(700, seed=1, values=values, size=300).write(tmp_path / name)
    assert "marked as made from this release" in shown(tmp_path / name, tmp_path)
    renamed = tmp_path / f"renamed-{name}"
    (tmp_path / name).rename(renamed)
    assert "marked as made from this release" in shown(renamed, tmp_path)
    assert "certified to be made" not in shown(renamed, tmp_path)


def test_frames_carry_the_mark_and_so_do_files_written_from_them(tmp_path: Path) -> None:
    """What `sample` gives, the same after pandas wrote and read it, an Arrow table, and rows of a joint that was saved."""
    rows = JOINT.sample(300, seed=2)
    rows.to_parquet(tmp_path / "by-pandas.parquet")
    again = dc.Joint.load(JOINT.save(tmp_path / "joint.npz"))
    assert again.release == RELEASE.checksum
    for made in (rows, tmp_path / "by-pandas.parquet", JOINT.stream(300, seed=2).table(), again.sample(50)):
        assert "marked as made from this release" in shown(made, tmp_path)


def test_draws_for_imputation_carry_it_beside_their_own(tmp_path: Path) -> None:
    """One set of several is of the release like any other rows."""
    schema = dc.Schema.from_domain({"a": 2, "b": 2})
    release = dc.Release.from_tables({("a", "b"): [[30, 20], [9, 41]]}, schema, scale=2.0)
    drawn = dc.solve(release, draws=2)[0].sample(seed=1)
    page = dc.report(release, drawn, tmp_path / "draw.html").read_text(encoding="utf-8")
    assert "marked as made from this release" in page


def test_private_rows_are_refused(tmp_path: Path) -> None:
    """As a frame, and as files, also beside synthetic rows that have their mark; nothing is written."""
    private = JOINT.sample(300, seed=3)
    private.attrs.clear()  # as good as private: nothing says where they are from
    private.to_csv(tmp_path / "people.csv", index=False)
    private.to_parquet(tmp_path / "people.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        JOINT.stream(100, seed=1).write(tmp_path / "synthetic.csv")
    for rows in (private, tmp_path / "people.csv", tmp_path / "people.parquet"):
        with pytest.raises(NotPrivate, match=r"may be private.*on whose word with rows_from="):
            shown(rows, tmp_path)
    assert not (tmp_path / "page.html").exists()


def test_the_words_of_whoever_answers_for_them_are_on_the_page(tmp_path: Path) -> None:
    """Escaped, and only where they say something."""
    rows = JOINT.sample(100, seed=3).sample(frac=1, random_state=1)
    with pytest.raises(NotPrivate, match="or were changed since"):
        shown(rows, tmp_path)
    told = shown(rows, tmp_path, rows_from="rows.csv in another order, <Ada>")
    assert "is on this word alone: rows.csv in another order, &lt;Ada&gt;" in told
    with pytest.raises(ParameterError, match="must say in words where the rows came from"):
        shown(rows, tmp_path, rows_from=" ")


def test_rows_that_were_changed_have_lost_their_mark(tmp_path: Path) -> None:
    """pandas keeps attrs through every step: a cell changed, rows left out, private rows put in their place."""
    rows = JOINT.sample(100, seed=3)
    changed = rows.copy()
    changed.loc[0, "sex"] = "F" if changed.loc[0, "sex"] != "F" else "M"
    for made in (changed, rows.iloc[:50], rows.assign(smoker=rows["smoker"].sample(frac=1, random_state=1).array)):  # fmt: skip
        assert made.attrs == rows.attrs
        with pytest.raises(NotPrivate, match="or were changed since"):
            shown(made, tmp_path)


def test_rows_of_another_release_are_refused_on_any_word(tmp_path: Path) -> None:
    """As a frame and as a file: they do not show what this release does."""
    joint = dc.solve(OTHER)
    joint.stream(100, seed=1).write(tmp_path / "other.parquet")
    for rows in (joint.sample(100, seed=1), tmp_path / "other.parquet"):
        for word in (None, "I drew them myself"):
            with pytest.raises(ReleaseError, match="marked as made from another release"):
                shown(rows, tmp_path, rows_from=word)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"release": 1, "rows": 2}', "\xff", '{"release": "x"}', "9" * 70_000]
)
def test_companions_that_are_none_are_passed_over(tmp_path: Path, text: str) -> None:
    """Anybody may have put them there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        JOINT.stream(50, seed=1).write(tmp_path / "rows.csv")
    (tmp_path / "a.mark").write_text(text, encoding="latin-1")
    assert "marked as made from this release" in shown(tmp_path / "rows.csv", tmp_path)
    for file in tmp_path.glob("rows*.mark"):
        assert set(json.loads(file.read_text())) == {"about", "release", "rows"}
        file.unlink()
    with pytest.raises(DpcipherError, match="no mark of this release"):
        shown(tmp_path / "rows.csv", tmp_path)


def test_rows_of_seeded_noise_carry_no_mark() -> None:
    """Nothing that is made of noise that can be repeated may be taken for public."""
    seeded = replace(RELEASE, statement=replace(RELEASE.statement, status="NOT PRIVATE"))
    assert "dpcipher" in JOINT.sample(10, seed=1).attrs
    assert "dpcipher" not in dc.solve(seeded).sample(10, seed=1).attrs
