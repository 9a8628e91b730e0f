"""Parquet files of strangers: what the writer writes is read as Arrow reads it, and no file unpacks to more than its cells."""

import io
import json
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import forge
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from forge import Chunk, page, steps, written
from lies import GOOD, LIES, PLACES, WORD, counts, read, texts

from dpcipher.errors import ReleaseError
from dpcipher.release import parquet
from dpcipher.release.file import Column
from dpcipher.release.release import Release
from dpcipher.schema.schema import Schema

MOST_MEGABYTES = 16  # beside what Python and Arrow take to read anything at all
READ = ("page of endless steps",)  # Arrow takes as many of them as there are rows
SMALL = ("nothing", "text")


def written_by_arrow(column: Any, *, name: str = "count", **options: Any) -> bytes:
    """A file with one column and our metadata, in the manner of the writer unless asked for otherwise."""
    table = pa.table({name: column})
    sink, rows = io.BytesIO(), options.pop("row_group_size", None)
    with pq.ParquetWriter(sink, table.schema, **forge.manner(table.schema) | options) as writer:
        writer.write_table(table, row_group_size=rows)
        writer.add_key_value_metadata({forge.KEY: b"{}"})
    return sink.getvalue()


def columns_of(data: bytes, schema: pa.Schema, plain: str = "count") -> parquet.Columns:
    """The columns of a file."""
    layout = parquet.read_layout(io.BytesIO(data), len(data), forge.KEY, 1000)
    assert layout is not None
    return layout.columns(schema, plain)


def numbers_in(data: bytes, kind: pa.DataType) -> np.ndarray[Any, Any]:
    """The counts in the bytes of a file."""
    columns = columns_of(data, pa.schema({"count": kind}))
    return np.concatenate(
        [columns.read(group, "count", 9 * rows).to_numpy() for group, rows in enumerate(columns.rows)]
    )


WHOLE = np.random.default_rng(0).integers(-(2**40), 2**40, 5_000)
NUMBERS = {
    "whole": WHOLE,
    "few": WHOLE % 7,
    "zeros": np.zeros(5_000, np.int64),
    "real": WHOLE / 3,
    "one": np.array([5]),
    "extreme": np.array([2**62, -(2**62)] * 2_500),
}


@pytest.mark.parametrize("column", NUMBERS)
def test_what_arrow_writes_is_read_as_arrow_reads_it(column: str) -> None:
    """Counts of either type, in several row groups of many pages."""
    values = NUMBERS[column]
    for options in ({}, {"row_group_size": 999, "data_page_size": 512}):
        data = written_by_arrow(values, **options)
        found = numbers_in(data, pa.array(values).type)
        assert found.dtype == values.dtype
        assert np.array_equal(found, pq.read_table(io.BytesIO(data))["count"].to_numpy())


OTHER = {
    "statistics": (WHOLE, {"write_statistics": True}),
    "index": (WHOLE, {"write_page_index": True, "write_statistics": True}),
    "types of Arrow": (WHOLE, {"store_schema": True}),
    "order": (WHOLE, {"sorting_columns": [pq.SortingColumn(0)]}),
    "dictionary": (WHOLE, {"use_dictionary": True, "column_encoding": None}),
    "plain": (WHOLE, {"column_encoding": {"count": "PLAIN"}}),
    "packed": (WHOLE, {"compression": "zstd"}),
    "newer pages": (WHOLE, {"data_page_version": "2.0"}),
    "check sums": (WHOLE, {"write_page_checksum": True}),
    "absent": (pa.array([1, None, 2]), {}),
    "reals": (WHOLE / 3, {}),
    "small": (np.arange(3, dtype=np.int32), {}),
    "lists": (pa.array([[1], [2]]), {}),
    "structs": (pa.array([{"x": 1}]), {}),
    "decimals": (pa.array([1, 2], pa.decimal128(10, 1)), {}),
    "unsigned": (pa.array([1, 2], pa.uint64()), {}),
    "times": (pa.array([1, 2], pa.timestamp("us")), {}),
    "bytes": (pa.array([b"1"]), {}),
}


@pytest.mark.parametrize("other", OTHER)
def test_other_columns_are_refused(other: str) -> None:
    """Whole numbers of 64 bits in the writer's form, none absent, without a word by which other readers show or skip them."""
    column, options = OTHER[other]
    data = written_by_arrow(column, **options)
    pq.read_table(io.BytesIO(data))  # Arrow reads it
    with pytest.raises((ValueError, pa.ArrowException)):
        numbers_in(data, pa.int64())


def test_a_file_without_our_metadata_has_no_layout() -> None:
    """It is no release; nothing else about it is looked at."""
    sink = io.BytesIO()
    pq.write_table(pa.table({"other": ["x"]}), sink)
    assert parquet.read_layout(io.BytesIO(sink.getvalue()), len(sink.getvalue()), forge.KEY, 1000) is None


def test_files_written_by_hand_are_read() -> None:
    """The forger's tools make good files too, which Arrow reads the same."""
    assert [column.to_pylist() for column in read(counts())] == [list(range(100))]
    two = GOOD + page(steps(100, 5), 100)
    assert read(counts(two, rows=200))[0].to_pylist() == [*range(100), *[5] * 100]
    data = texts(WORD, PLACES)
    assert read(data)[1].to_pylist() == ["a"] * 100 == pq.read_table(io.BytesIO(data))["text"].to_pylist()


def test_a_lie_is_refused_before_it_costs_anything() -> None:
    """Each in a process that may ask for 256 MiB more than it has, so that what Arrow only reserves counts too; none takes 16 more than a good file."""
    script = Path(__file__).with_name("lies.py")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, timeout=300)
    found = json.loads(done.stdout)
    assert set(found) == {*SMALL, *LIES, "unguarded"}
    outcome, megabytes = found.pop(
        "unguarded"
    )  # what unpacks does so where Arrow reads it alone, and that is seen
    assert megabytes > 100 or outcome == "out of memory"
    for lie, (outcome, megabytes) in found.items():
        assert outcome.startswith("read" if lie in (*SMALL, *READ) else "refused: "), (lie, outcome)
        assert megabytes < MOST_MEGABYTES, (lie, megabytes)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "too early"),
        (b"\x15", "too early"),
        (b"\x15\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01\x00", "does not end"),
        (b"\x15\x02\x05\x02\x02\x00", "twice"),
        (b"\x1b\x00\x00", "unknown type"),
        (b"\x19\xfc\xff\xff\xff\xff\x0f", "longer than the file"),
        (b"\x18\xff\xff\xff\xff\x0f", "too early"),
        (b"\x1c" * 1000, "too much"),
        (b"\x19\xf5\xe8\x07" + b"\x02" * 1000 + b"\x00", "too much"),
    ],
)
def test_footers_that_no_writer_writes_are_refused(data: bytes, why: str) -> None:
    """Numbers and lists without end, fields that come twice, maps, and depth."""
    with pytest.raises(ValueError, match=why):
        parquet.Thrift(data, 0, 500).struct()


WORDS = ["", "a", "ü" * 300, "× b"]


def test_texts_are_compared_as_arrow_reads_them() -> None:
    """Equal in one row group and in many; one other text, or one absent, at any place, is noticed."""
    codes = np.random.default_rng(1).integers(-1, 4, 3_000).astype(np.int32)
    column = pa.array([None if code < 0 else WORDS[code] for code in codes], pa.string())
    for options in ({}, {"row_group_size": 700, "data_page_size": 256}):
        table = pa.table({"count": np.zeros(3_000, np.int64), "text": column})
        sink, rows = io.BytesIO(), options.pop("row_group_size", None)
        with pq.ParquetWriter(sink, table.schema, **forge.manner(table.schema) | options) as writer:
            writer.write_table(table, row_group_size=rows)
            writer.add_key_value_metadata({forge.KEY: b"{}"})
        columns = columns_of(sink.getvalue(), table.schema)
        Column(codes, pa.array(WORDS)).check(columns, "text")
        for place in (0, 1_500, 2_999):
            other = codes.copy()
            other[place] = codes[place] - 1 if codes[place] >= 0 else 2
            with pytest.raises(ReleaseError, match="its column text"):
                Column(other, pa.array(WORDS)).check(columns, "text")
        with pytest.raises(ReleaseError, match="its column text"):
            Column(codes, pa.array(["", "a", "ü" * 300, "other"])).check(columns, "text")


def test_counts_are_not_read_before_their_number_is_known_to_be_right(tmp_path: Path) -> None:
    """Three million zeros in a file whose tables have 32 cells: refused without unpacking one."""
    facts, _ = forge.given()
    many = pa.table({"count": np.zeros(2_880_000, np.int64)})
    path = forge.rewritten(tmp_path / "r.parquet", many, json.dumps(facts))
    tracemalloc.start()
    with pytest.raises(ReleaseError, match="it has 2880000 counts for the 32 cells of its tables"):
        Release.load(path)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 5e6


def test_a_small_file_of_many_cells_is_refused(tmp_path: Path) -> None:
    """A file that says it is a million zeros, in a few bytes, is no release."""
    rows = 2**20
    facts, _ = forge.given()
    facts["schema"] = {"columns": {"a": {"kind": "integer", "min": 0, "max": rows - 1}}}
    facts["measurements"] = [forge.batch(("a",), noise="none", scale=0)]
    facts["statement"] = forge.statement()
    number = page(steps(rows, block=2**20), rows)
    numbers = [Chunk(name, number, kind) for name, kind in (("set", 1), ("table", 1))]
    words = [Chunk(name, WORD + PLACES, 6, 6, len(WORD)) for name in ("attrs", "level_1")]
    whole = written([*numbers, *words, Chunk("count", number)], rows, json.dumps(facts).encode())
    path = tmp_path / "r.parquet"
    path.write_bytes(whole)
    assert len(whole) < 3_000
    with pytest.raises(ReleaseError, match="as in no release"):
        Release.load(path)


@pytest.mark.parametrize("shape", [(4096, 256), (2,) * 20, (16,) * 5])
def test_exact_tables_of_zeros_are_within_that_limit(shape: tuple[int, ...], tmp_path: Path) -> None:
    """What is shortest of all that is written."""
    schema = Schema.from_domain({f"c{i}": size for i, size in enumerate(shape)})
    release = Release.from_tables({schema.attrs: np.zeros(shape, int)}, schema, scale=0)
    path = release.save(tmp_path / "r.parquet")
    assert path.stat().st_size < 8 * np.prod(shape)
    assert Release.load(path).checksum == release.checksum
