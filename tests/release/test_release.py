"""The release: what goes into the file comes out of it, and nothing else is accepted."""

import os
from dataclasses import replace
from pathlib import Path

import forge
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpcipher.errors import NotPrivate, ReleaseError, WorkloadError
from dpcipher.release.release import Release
from dpcipher.release.statement import Statement
from dpcipher.schema.schema import Schema
from dpcipher.tables.measurement import Measurement, Noise
from dpcipher.tables.query import Query

SCHEMA = Schema.from_domain({"age": 4, "sex": 2, "job": 3})
PAIR = np.array([[5, -1], [3, 7], [0, 2], [9, 4]])
JOBS = np.array([11, 6, 12])


def declared(**changes: object) -> Release:
    """Two published tables."""
    options: dict[str, object] = {"scale": 2.0} | changes
    return Release.from_tables({("age", "sex"): PAIR, ("job",): JOBS}, SCHEMA, **options)  # type: ignore[arg-type]


def two_sets() -> Release:
    """A release of two sanitizations with Gaussian noise, certified."""
    tables = tuple(
        Measurement(Query(SCHEMA.axes(attrs)), counts + number, Noise("gaussian", 3.5), number)
        for number in range(2)
        for attrs, counts in ((("age", "sex"), PAIR), (("job",), JOBS))
    )
    statement = Statement(
        status="certified",
        unit={"relation": "add-remove", "max_rows": 1},
        budget={"rho": "1/10"},
        certificate={"measure": "rho", "total": 0.1, "by": "privacy map of opendp"},
    )
    return Release(SCHEMA, tables, statement)


@pytest.mark.parametrize("release", [declared(), two_sets()], ids=["declared", "two sets"])
def test_a_saved_release_loads_as_it_was(release: Release, tmp_path: Path) -> None:
    """Tables, their types, noise, sets, statement and checksum survive."""
    loaded = Release.load(release.save(tmp_path / "r.parquet"))
    assert loaded.statement == release.statement
    assert loaded.checksum == release.checksum
    assert loaded.sets == release.sets
    for before, after in zip(release.measurements, loaded.measurements, strict=True):
        assert (before.query, before.noise, before.set) == (after.query, after.noise, after.set)
        assert before.values.dtype == after.values.dtype
        assert np.array_equal(before.values, after.values)


def test_any_tool_can_open_the_file(tmp_path: Path) -> None:
    """Plain pandas finds the noisy count of a cell by its labels."""
    frame = pd.read_parquet(declared().save(tmp_path / "r.parquet"))
    labels = SCHEMA.labels("age"), SCHEMA.labels("sex")
    row = frame[
        (frame["attrs"] == "age × sex")
        & (frame["level_1"] == labels[0][1])
        & (frame["level_2"] == labels[1][0])
    ]
    assert row["count"].tolist() == [3]
    assert frame[frame["attrs"] == "job"]["level_2"].isna().all()
    assert len(frame) == PAIR.size + JOBS.size


def test_an_interrupted_write_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk gives an error, no partial release and no leftovers."""

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ReleaseError, match="No space left on device; choose a folder"):
        declared().save(tmp_path / "r.parquet")
    assert list(tmp_path.iterdir()) == []


def test_every_damaged_byte_is_noticed_or_harmless(tmp_path: Path) -> None:
    """A flipped byte gives a clear error or exactly the original content, never other counts."""
    release = declared()
    path = release.save(tmp_path / "r.parquet")
    good = path.read_bytes()
    refused = 0
    for place in range(0, len(good), 23):
        path.write_bytes(good[:place] + bytes([good[place] ^ 0x55]) + good[place + 1 :])
        try:
            loaded = Release.load(path)
        except ReleaseError:
            refused += 1
        else:
            assert loaded.checksum == release.checksum
    assert refused > 10


def test_a_file_of_another_version_names_both(tmp_path: Path) -> None:
    """The message names the version of the file, the version read and the fix."""
    path = forge.with_facts(declared().save(tmp_path / "r.parquet"), {"version": 99})
    with pytest.raises(ReleaseError, match=r"format version 99; this dpcipher reads version 1. Use the"):
        Release.load(path)


def test_changed_facts_do_not_pass_the_checksum(tmp_path: Path) -> None:
    """Nobody turns a declared release into a certified one by editing its metadata."""
    statement = replace(declared().statement, status="certified").to_dict()
    path = forge.with_facts(declared().save(tmp_path / "r.parquet"), {"statement": statement})
    with pytest.raises(ReleaseError, match="is damaged: its checksum does not match"):
        Release.load(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"PAR1", "is damaged: it is not a readable Parquet file"),
        (b"", "is no release: it is empty"),
        (b"age,sex\n1,2\n", "is no release: it is a text file, such as CSV rows"),
        (b"version: 1\ncolumns:\n  a: {kind: boolean}\n", "is no release: it is a schema"),
        (b'{"hash": "0", "previous": "0", "type": "ledger"}\n', "is no release: it is a ledger"),
        (b"PK\x03\x04....", "is no release: it is a zip file, such as a saved joint"),
        (b"\xff\xfe\x00secret", "is no release: it is neither Parquet nor text"),
    ],
)
def test_what_is_no_release_is_refused(content: bytes, words: str, tmp_path: Path) -> None:
    """A cut file is damaged; another kind of file is called what it is, and not quoted."""
    path = tmp_path / "r.parquet"
    path.write_bytes(content)
    with pytest.raises(ReleaseError, match=words) as caught:
        Release.load(path)
    assert "secret" not in str(caught.value)


def test_a_foreign_parquet_file_is_refused(tmp_path: Path) -> None:
    """A Parquet file without our metadata is not a release."""
    pq.write_table(pa.table({"count": [1, 2]}), tmp_path / "other.parquet")
    with pytest.raises(ReleaseError, match=r"is no release, but a table: .* not written by dpcipher"):
        Release.load(tmp_path / "other.parquet")


def test_seeded_noise_is_never_saved(tmp_path: Path) -> None:
    """A release stamped NOT PRIVATE refuses to become a file."""
    release = replace(declared(), statement=Statement(status="NOT PRIVATE"))
    with pytest.raises(NotPrivate, match="seeded noise and must not be published"):
        release.save(tmp_path / "r.parquet")
    assert list(tmp_path.iterdir()) == []


def test_published_tables_may_come_as_arrays_frames_or_csv(tmp_path: Path) -> None:
    """The same table in four forms, one of them with its attributes in the other order, is the same release."""
    array = declared()
    frame = array.project(("age", "sex")).to_frame()
    ages, sexes = SCHEMA.labels("age"), SCHEMA.labels("sex")
    cells = [(a, s, PAIR[i, j]) for i, a in enumerate(ages) for j, s in enumerate(sexes)]
    frame = pd.DataFrame(cells, columns=["age", "sex", "count"]).sample(frac=1, random_state=0)
    frame.to_csv(tmp_path / "pair.csv", index=False)
    forms = [{("sex", "age"): PAIR.T}, {("age", "sex"): frame}, {("age", "sex"): tmp_path / "pair.csv"}]
    for form in forms:
        other = Release.from_tables({**form, ("job",): JOBS}, SCHEMA, scale=2.0)
        assert other.checksum == array.checksum


@pytest.mark.parametrize(
    ("tables", "options", "message"),
    [
        ({("age", "sex"): PAIR.T, ("job",): JOBS}, {}, r"of shape \(2, 4\) must have shape \(4, 2\)"),
        ({("age", "sex"): PAIR * np.nan, ("job",): JOBS}, {}, "must hold finite counts"),
        ({("age", "sex"): PAIR, ("sex", "age"): PAIR.T, ("job",): JOBS}, {}, "tables name age × sex twice"),
        (
            {("age", "sex"): PAIR, ("job",): JOBS},
            {"scale": -1.0},
            r"scale \(-1.0\) .* must be a finite number, 0 \(exact\) or above",
        ),
        ({("age", "sex"): PAIR, ("job",): JOBS}, {"scale": float("nan")}, r"scale \(nan\)"),
        ({("age", "sex"): PAIR, ("job",): JOBS}, {"scale": {("job",): 1.0}}, "scale has no entry for"),
        ({("age", "sex"): PAIR, ("job",): JOBS}, {"mechanism": "laplas"}, "did you mean 'laplace'"),
        (
            {("age", "sex"): PAIR, ("job",): JOBS},
            {"n_rows": 0},
            r"n_rows \(0\) must be a whole number above 0",
        ),
        ({("age", "sex"): PAIR}, {}, "tables omit job; every attribute of the schema must be in one"),
        ({}, {}, "must hold at least one table"),
        ({("age", "sex"): [["a", "b"]] * 4, ("job",): JOBS}, {}, "must hold numbers"),
    ],
)
def test_bad_published_tables_get_a_clear_error(
    tables: dict[tuple[str, ...], object], options: dict[str, object], message: str
) -> None:
    """The message says what is wrong with which table."""
    with pytest.raises(ValueError, match=message):
        Release.from_tables(tables, SCHEMA, **({"scale": 2.0} | options))  # type: ignore[arg-type]


def test_many_attributes_without_a_table_are_named_in_short() -> None:
    """The first six in the order of the schema, and how many more."""
    wide = Schema.from_domain({f"v{number}": 2 for number in range(12)})
    with pytest.raises(ReleaseError, match="tables omit v1, v2, v3, v4, v5, v6 and 5 more; every"):
        Release.from_tables({("v0",): [1, 2]}, wide, scale=1.0)


def test_an_unknown_attribute_of_a_published_table_suggests_a_known_one() -> None:
    """Misspelt names are the commonest mistake."""
    with pytest.raises(WorkloadError, match="did you mean 'job'"):
        Release.from_tables({("age", "sex"): PAIR, ("jib",): JOBS}, SCHEMA, scale=1.0)


def test_a_frame_with_a_missing_cell_or_an_unknown_level_is_refused() -> None:
    """A published table must be whole, in the schema's own words."""
    frame = pd.DataFrame({"job": SCHEMA.labels("job"), "count": JOBS})
    with pytest.raises(ReleaseError, match="must hold each of its 3 cells once; it has 2 rows"):
        Release.from_tables({("age", "sex"): PAIR, ("job",): frame[:2]}, SCHEMA, scale=1.0)
    with pytest.raises(ReleaseError, match="must be one of the schema's"):
        Release.from_tables({("age", "sex"): PAIR, ("job",): frame.assign(job="x")}, SCHEMA, scale=1.0)


def test_intervals_are_refused_outside_the_measured_tables() -> None:
    """The refusal explains why and names the alternative."""
    with pytest.raises(WorkloadError, match=r"no measured table holds them together"):
        declared().interval(("age", "job"))


def test_an_interval_is_the_estimate_plus_and_minus_its_noise() -> None:
    """One table alone: the normal quantile times the noise's standard deviation, from zero up."""
    low, high = declared().interval(("job",), level=0.95)
    # the total of age × sex sharpens the total of job, so the interval is narrower than the table's own noise
    own = 1.959964 * np.sqrt(Noise("laplace", 2.0).variance)
    assert ((high - low) < 2 * own).all()
    assert ((high - low) > own).all()
    assert (low >= 0).all()


@pytest.mark.parametrize("level", [0, 1, -1, 1.5, float("nan"), "0.95", True, None])
def test_a_bad_level_is_refused(level: object) -> None:
    """Name, value, rule and fix."""
    with pytest.raises(ValueError, match=r"level \(.*\) must be a number between 0 and 1; try level=0.95"):
        declared().interval(("job",), level=level)  # type: ignore[arg-type]
