"""Stata and SPSS files, read back by other readers: values, labels and kinds of missing are those of the schema."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dpcipher as dc
from conftest import missing
from dpcipher.errors import MissingExtra, TableFileError
from dpcipher.io.statistics import variable_names, write_labelled
from dpcipher.io.write import check_writable, write_table

SCHEMA = dc.Schema.from_dict(
    {
        "title": "A small survey",
        "columns": {
            "sex": {
                "kind": "categorical",
                "title": "Sex",
                "levels": [1, 2],
                "labels": {"1": "Male", "2": "Female"},
                "missing": "level",
            },
            "home town": {"kind": "categorical", "levels": ["Salem", "Gary"]},
            "age": {
                "kind": "integer",
                "min": 0,
                "max": 99,
                "bins": 5,
                "missing_values": [-9],
                "labels": {"-9": "no answer"},
            },
            "income": {
                "kind": "number",
                "edges": [0, 10, 20],
                "missing_values": ["N", "R"],
                "missing": "level",
            },
            "joined": {"kind": "date", "min": "2020-01-01", "max": "2020-12-31", "bins": 3},
            "works": {"kind": "boolean"},
            "starts": {"kind": "time", "min": "08:00", "max": "12:00", "bins": 4},
            "years": {"kind": "ordinal", "levels": [17.5, 22], "labels": {"17.5": "under 20"}},
        },
    }
)


@pytest.fixture
def readers() -> Any:
    """The package that reads both formats, or a visible skip."""
    try:
        import pyreadstat
    except ImportError:
        missing("stats", "pyreadstat is not installed; pip install 'dpcipher[stats]'")
    return pyreadstat


def rows(many: int = 12) -> pa.Table:
    """Rows that go through every level of every column."""
    codes = np.column_stack([np.arange(many) % column.size for column in SCHEMA.columns]).astype(np.int32)
    return SCHEMA.decode(codes, np.random.default_rng(0))


def test_stata_files_hold_values_labels_and_kinds_of_missing(readers: Any, tmp_path: Path) -> None:
    """Codes stay, texts are numbered, kinds of missing are .a and .b; pandas, another reader, sees the labels."""
    given = rows().to_pandas()
    write_labelled(tmp_path / "rows.dta", [rows()], SCHEMA)
    read, about = readers.read_dta(tmp_path / "rows.dta", user_missing=True)
    assert about.file_label == "A small survey"
    assert about.column_names_to_labels["sex"] == "sex: Sex"
    assert about.variable_value_labels["sex"] == {1: "Male", 2: "Female"}
    assert about.variable_value_labels["age"] == {"a": "no answer"}
    assert about.missing_user_values["income"] == ["a", "b"]
    assert [cell if cell == "a" else int(cell) for cell in read["age"]] == [
        "a" if age == -9 else age for age in given["age"]
    ]
    plain = pd.read_stata(tmp_path / "rows.dta")
    assert plain["home_town"].tolist() == given["home town"].tolist()
    assert plain["years"].tolist() == ["under 20", "22.0"] * 6
    assert plain["sex"].isna().sum() == 4
    assert plain["joined"].dt.date.tolist() == given["joined"].tolist()


def test_spss_files_declare_their_kinds_of_missing(readers: Any, tmp_path: Path) -> None:
    """A number that stands for no answer keeps its number; a letter gets one below all values; both are missing to SPSS."""
    given = rows().to_pandas()
    write_labelled(tmp_path / "rows.sav", [rows()], SCHEMA)
    read, about = readers.read_sav(tmp_path / "rows.sav", user_missing=True)
    assert read["age"].tolist() == given["age"].tolist()
    assert about.variable_value_labels["income"] == {-1.0: "(missing: N)", -2.0: "(missing: R)"}
    assert [span["lo"] for span in about.missing_ranges["income"]] == [-1.0, -2.0]
    assert about.variable_value_labels["works"] == {0.0: "False", 1.0: "True"}
    valid = readers.read_sav(tmp_path / "rows.sav")[0]
    expected = pd.to_numeric(given["income"], errors="coerce")
    assert np.allclose(valid["income"], expected, equal_nan=True)


POINTS = dc.Schema.from_dict(
    {
        "columns": {
            "left": {
                "kind": "date",
                "min": "2020-01-01",
                "max": "2020-12-31",
                "missing_values": ["9999-12-31"],
                "labels": {"9999-12-31": "still here"},
                "missing": "level",
            },
            "asked": {"kind": "date", "min": "2020-01-01", "max": "2020-12-31", "missing_values": ["N"]},
            "rang": {"kind": "time", "min": "08:00", "max": "12:00", "bins": 4, "missing_values": ["N", -9]},
        }
    }
)


@pytest.mark.parametrize("ending", ["dta", "sav"])
def test_dates_and_times_have_kinds_of_missing_like_numbers(
    readers: Any, ending: str, tmp_path: Path
) -> None:
    """A code that is a date, such as 9999-12-31, is no day that somebody left; letters among dates and times are missing, too."""
    given = {
        "left": ["2020-02-29", "9999-12-31", None],
        "asked": ["2020-12-31", "N", "2020-01-01"],
        "rang": ["08:00:00", "N", "-9"],
    }
    path, read = tmp_path / f"rows.{ending}", getattr(readers, f"read_{ending}")
    write_labelled(path, [pa.table(given)], POINTS)
    rows, about = read(path)
    text = {name: [None if pd.isna(cell) else str(cell) for cell in rows[name]] for name in given}
    assert text["left"] == ["2020-02-29", None, None]
    assert text["asked"] == ["2020-12-31", None, "2020-01-01"]
    assert text["rang"] == ["08:00:00", None, None]
    told_apart, _ = read(path, user_missing=True, disable_datetime_conversion=True)
    for name, kinds in (("left", 1), ("asked", 1), ("rang", 2)):
        assert len(about.variable_value_labels[name]) == kinds
        codes = [code for code in told_apart[name] if code in about.variable_value_labels[name]]
        assert len(set(codes)) == kinds
    assert about.variable_value_labels["left"] == {("a" if ending == "dta" else 265621593600): "still here"}


def one_column(ending: str, **facts: Any) -> tuple[Any, dc.Schema]:
    """Rows that go through all levels of one column, and its schema."""
    schema = dc.Schema.from_dict({"columns": {"x": facts}})
    codes = np.arange(schema.shape[0], dtype=np.int32)[:, None]
    return schema.decode(codes, np.random.default_rng(0)), schema


@pytest.mark.parametrize(
    ("ending", "codes", "ranges"),
    [
        ("dta", list(range(-26, 0)), None),
        ("sav", [-9, -8, 98, 97], None),
        ("sav", [-9, -8, -7, 98], [(-9, -7), (98, 98)]),
        ("sav", [98, 97, 96, -9], [(96, 98), (-9, -9)]),
        ("sav", ["N", "R", "X", "DK", "-5"], [(-9, -5)]),
        ("dta", list(range(-27, 0)), None),
    ],
)
def test_all_kinds_of_missing_are_told_apart_or_refused(
    readers: Any, ending: str, codes: list[Any], ranges: Any, tmp_path: Path
) -> None:
    """Stata has 26, SPSS three or one range and one more; what does not fit is refused before a row is drawn."""
    rows, schema = one_column(ending, kind="integer", min=0, max=90, missing_values=codes)
    path, drawn = tmp_path / f"rows.{ending}", []

    def batches() -> Any:
        drawn.append(1)
        yield rows

    if len(codes) == 27 or (ending == "sav" and ranges is None):
        with pytest.raises(TableFileError, match=r"column 'x' has \d+ kinds of missing"):
            write_labelled(path, batches(), schema)
        assert not drawn
        assert not path.exists()
        return
    write_labelled(path, batches(), schema)
    read, about = getattr(readers, f"read_{ending}")(path, user_missing=True)
    assert read["x"].nunique() == 91 + len(codes)
    assert getattr(readers, f"read_{ending}")(path)[0]["x"].notna().sum() == 91
    if ranges is not None:
        assert [(span["lo"], span["hi"]) for span in about.missing_ranges["x"]] == ranges


def test_a_missing_code_that_is_the_number_of_a_level_gets_another(readers: Any, tmp_path: Path) -> None:
    """Texts are numbered from 1, so that a code 1 among them would be their first."""
    rows, schema = one_column("sav", kind="categorical", levels=["a", "b"], missing_values=[1, 9])
    write_labelled(tmp_path / "rows.sav", [rows], schema)
    read, about = readers.read_sav(tmp_path / "rows.sav", user_missing=True)
    assert read["x"].tolist() == [1, 2, -1, 9]
    assert about.variable_value_labels["x"] == {1: "a", 2: "b", -1: "(missing: 1)", 9: "(missing: 9)"}


def test_joints_write_them_by_the_ending(readers: Any, tmp_path: Path) -> None:
    """`stream(...).write("rows.sav")` and a CSV file of the same draw hold the same rows."""
    release = dc.Release.from_tables(
        {(name,): np.full(SCHEMA.column(name).size, 600 / SCHEMA.column(name).size) for name in SCHEMA.names},
        SCHEMA,
        scale=0,
    )
    joint = dc.solve(release)
    for ending in ("sav", "csv"):
        joint.stream(300, seed=1).write(tmp_path / f"rows.{ending}")
    labelled, about = readers.read_sav(tmp_path / "rows.sav")
    plain = pd.read_csv(tmp_path / "rows.csv")
    assert (
        labelled["home_town"].map(about.variable_value_labels["home_town"]).tolist()
        == plain["home town"].tolist()
    )
    assert len(labelled) == 300


def test_names_fit_both_programs() -> None:
    """Letters first, no blanks, no word of theirs, none twice, at most 32 characters."""
    names = variable_names(["Straße", "_id", "x" * 40, "x" * 41, "if", "Age", "age"])
    assert names == ["Stra_e", "v_id", "x" * 32, "x" * 27 + "_2", "if_", "Age", "age_2"]


def test_what_has_no_schema_is_not_written_so(tmp_path: Path) -> None:
    """A table of model parameters cannot be a labelled file; synthetic rows can."""
    with pytest.raises(TableFileError, match=r"must end in \.csv"):
        write_table(tmp_path / "rows.sav", rows())
    check_writable(tmp_path / "rows.sav", (".sav",))
    assert not list(tmp_path.iterdir())


def test_the_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without pyreadstat the error has the command that installs it, and nothing is written."""
    monkeypatch.setitem(sys.modules, "pyreadstat", None)
    with pytest.raises(
        MissingExtra, match=r"pyreadstat.* is not installed; run: pip install 'dpcipher\[stats\]'"
    ):
        write_labelled(tmp_path / "rows.dta", [rows()], SCHEMA)
    assert list(tmp_path.iterdir()) == []
