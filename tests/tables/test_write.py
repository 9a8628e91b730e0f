"""Writing: complete files or none."""

import datetime as dt
import os

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpcipher.errors import TableFileError
from dpcipher.tables.write import check_writable, mirror, to_pandas, write_table

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
        write_table(path, failing())
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
