"""Writing: complete files or none."""

import csv
import datetime as dt
import os
import warnings

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpcipher.errors import DpcipherWarning, ParameterError, TableFileError
from dpcipher.io.source import coded_rows
from dpcipher.io.write import check_writable, csv_text, mirror, to_pandas, write_table
from dpcipher.schema.declared import column
from dpcipher.schema.schema import Schema

TABLE = pa.table(
    {
        "n": pa.array([1, None], pa.int64()),
        "b": pa.array([True, None]),
        "d": pa.array([dt.date(2024, 2, 29), None]),
        "t": pa.array(["a,b", None]),
        "k": pa.array([1, 2]),
    }
)


def test_integers_and_truth_values_survive_missing_cells_in_pandas():
    """pandas' own conversion would make floats and objects of them."""
    frame = to_pandas(TABLE)
    assert str(frame["n"].dtype) == "Int64"
    assert str(frame["b"].dtype) == "boolean"
    assert str(frame["k"].dtype) == "int64"
    assert frame["d"].dtype.kind == "M"
    assert frame["d"][0] == pd.Timestamp("2024-02-29")
    assert frame["n"].isna().tolist() == [False, True]


def test_pandas_where_there_is_nothing_to_mirror():
    """A path or a loaded release gives a DataFrame."""
    assert isinstance(mirror("path", TABLE), pd.DataFrame)
    assert mirror("arrow", TABLE) is TABLE


def test_csv_is_readable_by_others(tmp_path):
    """pandas reads what we write."""
    write_table(tmp_path / "t.csv", TABLE)
    frame = pd.read_csv(tmp_path / "t.csv")
    assert frame["t"][0] == "a,b"
    assert frame["d"][0] == "2024-02-29"
    assert frame.isna().to_numpy().tolist() == [[False] * 5, [True, True, True, True, False]]


def test_a_file_appears_when_it_is_complete(tmp_path):
    """Rows that fail midway leave the old file, and nothing beside it."""
    path = tmp_path / "t.parquet"
    write_table(path, TABLE)

    def failing():
        yield TABLE
        raise RuntimeError("the sampler stopped")

    with pytest.raises(RuntimeError, match="sampler"):
        write_table(path, failing(), force=True)
    assert os.listdir(tmp_path) == ["t.parquet"]
    assert pq.read_table(path).equals(TABLE)


@pytest.mark.parametrize(
    ("name", "hint"),
    [("t.xlsx", "must end in"), ("absent/t.csv", "does not exist"), ("folder.csv", "no regular file")],
)
def test_unwritable_paths_are_refused_beforehand(name, hint, tmp_path):
    """check_writable and write_table agree, before anything is spent."""
    (tmp_path / "folder.csv").mkdir()
    for attempt in (lambda path: check_writable(path), lambda path: write_table(path, TABLE)):
        with pytest.raises(TableFileError, match=hint):
            attempt(tmp_path / name)
    assert os.listdir(tmp_path) == ["folder.csv"]


def test_a_folder_that_takes_no_files_is_refused():
    """The check makes a file and removes it, so that it also fails where permissions do not tell."""
    if not os.path.isdir("/proc"):
        pytest.skip("no /proc here")
    with pytest.raises(TableFileError, match="cannot be written"):
        check_writable("/proc/t.csv")


def test_checking_leaves_nothing_behind(tmp_path):
    """A path that can be written is left as it was."""
    check_writable(tmp_path / "t.csv.gz")
    assert os.listdir(tmp_path) == []


def test_nothing_to_write_is_refused(tmp_path):
    """Without a batch there are not even column names."""
    with pytest.raises(TableFileError, match="nothing to write"):
        write_table(tmp_path / "t.csv", iter(()))


RISKY = ("=1+1", "+a", "-a", "-", "@home", "\tx", "\rx", "\nx", "'=1+1", "''@x", "-1-1", "+1+1", "－1", "=")
HARMLESS = ("a", "-1", "+2.5", "-.5", "-1e3", "'tis", "a=b", "", " =1", "1-2", "'-1")
LEVELS = (*RISKY, *HARMLESS)
STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def is_number(cell: str) -> bool:
    """What a spreadsheet reads as a number."""
    try:
        return cell == cell.strip() and float(cell) == float(cell)
    except ValueError:
        return False


@pytest.fixture
def risky():
    """A table whose texts, and one of whose names, begin like formulas; numbers are numbers."""
    return pa.table({"=name": LEVELS, "n": pa.array(range(-5, len(LEVELS) - 5)), "x": [-1.5] * len(LEVELS)})


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_no_cell_of_a_csv_file_begins_a_formula(risky, name, kind, tmp_path):
    """As pandas reads it: only numbers begin with a sign. The warning counts texts and names."""
    risky = risky.set_column(0, "=name", risky["=name"].cast(kind))
    with pytest.warns(DpcipherWarning, match=rf"{len(RISKY) + 1} texts .* --raw-text"):
        write_table(tmp_path / name, risky.to_batches(max_chunksize=5))
    raw = pd.read_csv(tmp_path / name, dtype=str, keep_default_na=False)
    cells = [*raw.columns, *raw.to_numpy().ravel()]
    assert [cell for cell in cells if cell.startswith(STARTS) and not is_number(cell)] == []
    assert list(raw["n"]) == [str(n) for n in risky["n"].to_pylist()]
    assert set(raw["x"]) == {"-1.5"}
    assert list(raw.iloc[:, 0])[: len(RISKY)] == [f"'{text}" for text in RISKY]
    assert list(raw.iloc[:, 0])[len(RISKY) :] == list(HARMLESS)


def test_a_quoted_file_is_read_back_as_it_was(tmp_path):
    """Every level comes back as its own code, from our reader and from a frame that pandas read."""
    schema = Schema(
        (column("=name", "categorical", levels=[x for x in LEVELS if x not in ("'=1+1", "''@x")]),)
    )
    table = schema.decode([[code] for code in range(schema.shape[0])], None)
    with pytest.warns(DpcipherWarning):
        write_table(tmp_path / "t.csv", table)
    expected = [[code] for code in range(schema.shape[0])]
    assert coded_rows(tmp_path / "t.csv", schema, "rows").tolist() == expected
    frame = pd.read_csv(tmp_path / "t.csv", dtype=str, keep_default_na=False)
    assert coded_rows(frame.rename(columns={"'=name": "=name"}), schema, "rows").tolist() == expected


def test_a_level_with_a_quote_of_its_own_comes_first(tmp_path):
    """Where =x and '=x are both levels, a cell '=x is the second: Parquet, or formulas="keep", tells them apart."""
    schema = Schema((column("c", "categorical", levels=["=x", "'=x"]),))
    table = pa.table({"c": ["=x", "'=x"]})
    with pytest.warns(DpcipherWarning):
        write_table(tmp_path / "t.csv", table)
    assert coded_rows(tmp_path / "t.csv", schema, "rows").tolist() == [[1], [1]]
    write_table(tmp_path / "kept.csv", table, formulas="keep")
    write_table(tmp_path / "t.parquet", table, force=True)
    for name in ("kept.csv", "t.parquet"):
        assert coded_rows(tmp_path / name, schema, "rows").tolist() == [[0], [1]]


def test_texts_are_kept_where_that_is_asked_for(risky, tmp_path):
    """Without a word, as in Parquet, where nothing is ever changed."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_table(tmp_path / "t.csv", risky, formulas="keep", force=True)
        write_table(tmp_path / "t.parquet", risky)
    with (tmp_path / "t.csv").open(newline="") as file:
        assert next(csv.reader(file))[0] == "=name"
    assert pq.read_table(tmp_path / "t.parquet").equals(risky)
    with pytest.raises(ParameterError, match="must be quote or keep"):
        write_table(tmp_path / "t.csv", risky, formulas="drop", force=True)


def test_the_text_of_a_small_frame_begins_no_formula():
    """Names and texts get a quote, numbers stay."""
    frame = pd.DataFrame({"@m": ["=x", "-1", "a"], "n": [-1.5, 2.0, float("nan")]})
    assert csv_text(frame).splitlines() == ["'@m,n", "'=x,-1.5", "-1,2.0", "a,"]
