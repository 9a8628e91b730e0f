"""Reading files and frames as people have them; no error quotes a cell."""

import gzip
import os
import traceback

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_every_source import SCHEMA

from dpcipher.errors import DataError, DpcipherError, TableFileError
from dpcipher.io.source import open_table
from dpcipher.io.write import mirror, write_table
from dpcipher.schema import Schema, column

CANARY = "Zebra4711"


def codes_of(data, schema=SCHEMA):
    """All codes of a table, batch after batch."""
    parts = [schema.encode(batch) for batch in open_table(data).batches(schema.names)]
    return [row for part in parts for row in part.tolist()]


@pytest.mark.parametrize("kind", ["pandas", "polars", "duckdb", "pyarrow"])
def test_rows_come_back_as_they_went_in(kind):
    """Decoded rows, as the library's own table, have the codes they were decoded from."""
    if kind in ("polars", "duckdb"):
        pytest.importorskip(kind)
    rng = np.random.default_rng(5)
    codes = np.stack([rng.integers(0, size, 200) for size in SCHEMA.shape], axis=1).astype(np.int32)
    mirrored = mirror(kind, SCHEMA.decode(codes, rng))
    source = open_table(mirrored)
    assert source.kind == kind
    assert source.names == SCHEMA.names
    assert codes_of(mirrored) == codes.tolist()


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet"])
def test_written_rows_are_read_again(ending, tmp_path):
    """A file of decoded rows has the codes they were decoded from."""
    rng = np.random.default_rng(6)
    codes = np.stack([rng.integers(0, size, 200) for size in SCHEMA.shape], axis=1).astype(np.int32)
    table = SCHEMA.decode(codes, rng)
    write_table(tmp_path / f"t{ending}", iter(table.to_batches(max_chunksize=33)))
    assert codes_of(tmp_path / f"t{ending}") == codes.tolist()


def test_several_files_are_one_table(tmp_path):
    """A glob reads its files in the order of their names, whatever the order of their columns."""
    (tmp_path / "2.csv").write_text("b,a\n1,0\n")
    (tmp_path / "1.csv").write_text("a,extra,b\n1,zzz,0\n0,zzz,0\n")
    schema = Schema.from_domain({"a": 2, "b": 2})
    assert codes_of(str(tmp_path / "*.csv"), schema) == [[1, 0], [0, 0], [0, 1]]
    (tmp_path / "3.csv").write_text("a\n1\n")
    with pytest.raises(TableFileError, match=r"3\.csv has no column 'b'"):
        codes_of(tmp_path, schema)


def test_integer_column_names_are_text(tmp_path):
    """A frame whose columns are numbered is read by the text of the numbers."""
    schema = Schema.from_domain({"0": 2, "1": 3})
    assert codes_of(pd.DataFrame(np.array([[1, 2], [0, 0]])), schema) == [[1, 2], [0, 0]]


ONE = Schema(
    (
        column("a", "categorical", levels=["x", "é", 'q"', "l\nm"], missing="level"),
        column("b", "integer", min=0, max=9),
    )
)


@pytest.mark.parametrize(
    "raw",
    [
        '\ufeffa,b\nx,1\n"é",2\n',
        "a,b\r\nx,1\r\né,2\r\n",
        "a,b\nx,1\né,2",
        '"a","b"\n"x","1"\n"é"," 2"\n\n',
        'b,a,unused\n1,x,"1,2"\n2,é,\n',
    ],
)
def test_csv_dialects(raw, tmp_path):
    """A byte-order mark, line ends, quotes and column order change nothing."""
    path = tmp_path / "t.csv"
    path.write_bytes(raw.encode())
    assert codes_of(path, ONE) == [[0, 1], [1, 2]]


def test_csv_cells_of_all_sorts(tmp_path):
    """Quotes and line ends inside cells, and a cell of a million characters that nobody asked for."""
    path = tmp_path / "t.csv"
    path.write_text('a,b,long\n"q""",1,' + "z" * 10**6 + '\n"l\nm",2,\n,3,=cmd()\n')
    assert codes_of(path, ONE) == [[2, 1], [3, 2], [4, 3]]


def test_a_header_may_hold_line_ends(tmp_path):
    """A quoted name goes on over the end of the line."""
    path = tmp_path / "t.csv"
    path.write_text('"long\nname",b\n1,0\n')
    assert codes_of(path, Schema.from_domain({"long\nname": 2, "b": 2})) == [[1, 0]]


def test_headers_alone_are_a_table_without_rows(tmp_path):
    """With or without a line end after them."""
    path = tmp_path / "t.csv"
    for raw in ("a,b\n", "a,b"):
        path.write_text(raw)
        assert codes_of(path, ONE) == []


BAD_CSV = {
    "ragged": (f"a,b\nx,1\n{CANARY}\n".encode(), "a row has more or fewer cells"),
    "too long": (f"a,b\nx,1,{CANARY}\n".encode(), "a row has more or fewer cells"),
    "ragged and latin-1": (f"a,b\nx,1\n{CANARY}é\n".encode("latin-1"), "a row has more or fewer cells|UTF-8"),
    "latin-1": (f"a,b\n{CANARY}é,1\n".encode("latin-1"), "UTF-8"),
    "latin-1 header": ("a,b,é\nx,1,1\n".encode("latin-1"), "UTF-8"),
    "utf-16": (f"a,b\n{CANARY},1\n".encode("utf-16"), "UTF-8"),
    "empty": (b"", "is empty"),
    "no header": (f"{CANARY},1\n{CANARY},2\n".encode(), "no column 'a'"),
    "twice": (f"a,a,b\n{CANARY},x,1\n".encode(), "more than one column 'a'"),
    "unlisted": (f"a,b\n{CANARY},1\n".encode(), "does not declare"),
    "no integer": (f"a,b\nx,{CANARY}\n".encode(), "does not declare"),
    "nul": (f"a,b\n{CANARY}\0,1\n".encode(), "does not declare"),
    "huge integer": (b"a,b\nx,471147114711471147114711\n", "does not declare"),
    "unclosed quote": (f'a,b\n"{CANARY},1\n'.encode(), "more or fewer cells|cannot be read"),
}


def quiet(caught):
    """Whether neither the message nor the traceback holds the canary."""
    told = "".join(traceback.format_exception(caught.value, limit=0)) + str(caught.value)
    return not any(secret in told for secret in (CANARY, "4711"))


@pytest.mark.parametrize("name", BAD_CSV)
@pytest.mark.parametrize("zipped", [False, True])
def test_bad_csv_is_refused_without_quoting_it(name, zipped, tmp_path):
    """Each way a file can be wrong has its own sentence, and none holds a cell."""
    raw, hint = BAD_CSV[name]
    path = tmp_path / ("t.csv.gz" if zipped else "t.csv")
    path.write_bytes(gzip.compress(raw) if zipped else raw)
    with pytest.raises((TableFileError, DataError), match=hint) as caught:
        codes_of(path, ONE)
    assert quiet(caught)


FRAMES = {
    "mixed": pd.DataFrame({"a": pd.Series(["x", 4711, CANARY], dtype=object), "b": [1, 2, 3]}),
    "huge": pd.DataFrame({"a": ["x"], "b": pd.Series([4711 * 10**30], dtype=object)}),
    "nested": pd.DataFrame({"a": pd.Series([{"k": CANARY}], dtype=object), "b": [1]}),
    "bytes": pd.DataFrame({"a": pd.Series([CANARY.encode() + b"\xff"], dtype=object), "b": [1]}),
    "infinite": pd.DataFrame({"a": ["x"], "b": [np.inf]}),
    "fraction": pd.DataFrame({"a": ["x"], "b": [0.4711]}),
    "missing": pd.DataFrame({"a": ["x"], "b": [None]}),
}


@pytest.mark.parametrize("name", FRAMES)
def test_bad_frames_are_refused_without_quoting_them(name):
    """What Arrow cannot convert, or the schema does not allow, is refused by rule."""
    with pytest.raises(DataError, match="refuse") as caught:
        codes_of(FRAMES[name], ONE)
    assert quiet(caught)


def test_mixed_cells_that_are_declared_are_fine():
    """A column of numbers and texts is read as text, cell by cell."""
    frame = pd.DataFrame({"a": pd.Series([1, "N", None], dtype=object)})
    schema = Schema((column("a", "categorical", levels=["1", "N"], missing="level"),))
    assert codes_of(frame, schema) == [[0], [1], [2]]


@pytest.mark.parametrize("data", [[1, 2], None, {"a": [1]}, 3, np.zeros((2, 2)), pd.Series([1])])
def test_what_is_no_table_is_refused(data):
    """The error lists what a table may be."""
    with pytest.raises(TableFileError, match="pandas or polars"):
        open_table(data)


def test_paths_that_are_no_files(tmp_path):
    """Absent files, pipes, devices, empty folders and globs, and unknown endings."""
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "notes.rtf").write_text(CANARY)
    (tmp_path / "mix").mkdir()
    (tmp_path / "mix" / "a.csv").write_text("a\n")
    (tmp_path / "mix" / "b.parquet").write_text("a\n")
    (tmp_path / "link.csv").symlink_to(tmp_path / "absent")
    for path, hint in [
        (tmp_path / "absent.csv", "no such file"),
        (tmp_path / "pipe.csv", "regular file"),
        ("/dev/null", "regular file"),
        (tmp_path / "*.tsv", "no CSV or Parquet file"),
        (tmp_path / "notes.rtf", "must all end in"),
        (tmp_path / "rows.zip", "is packed; unpack it"),
        (tmp_path / "mix", "must all end in"),
        (tmp_path / "mix" / "b.parquet", "cannot be read as Parquet"),
        (tmp_path / "link.csv", "no such file"),
    ]:
        with pytest.raises(TableFileError, match=hint):
            open_table(path)


def test_damaged_files_are_refused(tmp_path):
    """A truncated gzip or Parquet file is an error, not a shorter table."""
    table = pa.table({"a": ["x"] * 5000, "b": np.arange(5000) % 10})
    for ending in (".parquet", ".csv.gz"):
        path = tmp_path / f"t{ending}"
        write_table(path, table)
        path.write_bytes(path.read_bytes()[:-40])
        with pytest.raises(TableFileError, match="cannot be read"):
            codes_of(path, ONE)


@pytest.mark.parametrize("place", [10, 11, 12, 13, 14])
def test_a_gzip_file_that_cannot_be_unpacked_is_refused(place, tmp_path):
    """The unpacker has an error of its own, which is no OSError."""
    packed = bytearray(gzip.compress(b"sex,age\n" + b"F,5\nM,7\n" * 50))
    packed[place] ^= 0xFF
    (tmp_path / "rows.csv.gz").write_bytes(packed)
    with pytest.raises(TableFileError, match="CSV"):
        list(open_table(tmp_path / "rows.csv.gz").batches(["sex", "age"]))


def test_a_parquet_file_whose_column_names_are_no_text_is_refused(tmp_path):
    """Arrow decodes them when it opens the file, and says so with Python's own error."""
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"secret": ["F", "M"]}), path)
    path.write_bytes(path.read_bytes().replace(b"secret", b"s\xff\xffret"))
    with pytest.raises(TableFileError, match="Parquet"):
        list(open_table(path).batches(["secret"]))


def test_a_stream_is_read_once():
    """A second reading of a used reader is an error, not an empty table."""
    source = open_table(pa.table({"a": [1]}).to_reader())
    assert sum(batch.num_rows for batch in source.batches(("a",))) == 1
    with pytest.raises(TableFileError, match="read once"):
        source.batches(("a",))


def test_a_stream_that_breaks_is_an_error():
    """Half a stream is not a table, and what broke it is not quoted."""

    def broken():
        yield pa.record_batch({"a": ["x"]})
        raise ValueError(CANARY)

    reader = pa.RecordBatchReader.from_batches(pa.schema({"a": pa.string()}), broken())
    with pytest.raises(DpcipherError) as caught:
        list(open_table(reader).batches(("a",)))
    assert quiet(caught)


def test_duckdb_errors_are_not_passed_on():
    """A relation that fails while it runs tells DuckDB's user about the cell; it must not tell ours."""
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.sql(f"select cast(a as integer) as a from (values ('1'), ('{CANARY}')) t(a)")
    with pytest.raises(TableFileError) as caught:
        list(open_table(relation).batches(("a",)))
    assert quiet(caught)


def test_a_second_header_in_a_glob_is_not_quoted(tmp_path):
    """Only names of the schema appear in errors: a file without a header has cells in its first line."""
    (tmp_path / "1.csv").write_text("a,b\nx,1\n")
    (tmp_path / "2.csv").write_text(f"{CANARY},1\n")
    with pytest.raises(TableFileError, match="no column 'a'") as caught:
        codes_of(str(tmp_path / "*.csv"), ONE)
    assert quiet(caught)


def test_cells_that_a_dictionary_does_not_have_are_refused():
    """A damaged Parquet file may refer to values beyond its dictionary; Arrow hands them on, so the reader looks."""
    whole = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 1]), pa.array(["a", "b"]))
    broken = pa.DictionaryArray.from_arrays(pa.array([0, 7, None, 1]), pa.array(["a", "b"]), safe=False)
    for cells in (whole, whole.slice(2, 1), whole.slice(0, 0)):
        read = pa.Table.from_batches(
            open_table(pa.table({"x": cells})).batches(["x"]), pa.schema([("x", cells.type)])
        )
        assert read.column("x").to_pylist() == cells.to_pylist()
    with pytest.raises(TableFileError, match="'x': cells refer to values that its dictionary does not have"):
        list(open_table(pa.table({"x": broken})).batches(["x"]))
