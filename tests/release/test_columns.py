"""The columns of a release file: any honest Parquet writer is read, and no file unpacks to more than its cells."""

import io
import tracemalloc
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import forge
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from dpcipher.errors import ReleaseError
from dpcipher.release.columns import MAX_NODES, Texts, holds, read_layout, read_numbers
from dpcipher.release.release import Release
from dpcipher.release.thrift import BINARY, I32, I64, LIST, STRUCT, Reader, listed, struct
from dpcipher.schema.schema import Schema
from effort import at_most

KEY = forge.KEY
ENDLESS = 2**28  # bytes that a made-up page unpacks to


def read(data: bytes) -> np.ndarray[Any, Any]:
    """The counts in the bytes of a file."""
    layout = read_layout(io.BytesIO(data), len(data), KEY)
    return read_numbers(io.BytesIO(data), layout.columns["count"])


def parquet(column: Any, *, name: str = "count", **options: Any) -> bytes:
    """A file with one column beside another, and our metadata, with neither statistics nor types of Arrow unless asked for."""
    kind = column.type if isinstance(column, pa.Array) else pa.array(column).type
    fields = [pa.field("table", pa.int32()), pa.field(name, kind, nullable=options.pop("nullable", True))]
    table = pa.table([np.zeros(len(column), np.int32), column], schema=pa.schema(fields))
    sink, rows = io.BytesIO(), options.pop("row_group_size", None)
    options = {"store_schema": False, "write_statistics": False} | options
    with pq.ParquetWriter(sink, table.schema, **options) as writer:
        writer.write_table(table, row_group_size=rows)
        writer.add_key_value_metadata({KEY: b"{}"})
    return sink.getvalue()


WHOLE = np.random.default_rng(0).integers(-(2**40), 2**40, 5_000)
COLUMNS = {
    "whole": WHOLE,
    "few": WHOLE % 7,
    "zeros": np.zeros(5_000, np.int64),
    "real": WHOLE / 3,
    "one": np.array([5]),
}


@pytest.mark.parametrize(
    ("column", "packing", "page", "dictionary"),
    list(
        product(COLUMNS, ["none", "snappy", "gzip", "brotli", "zstd", "lz4"], ["1.0", "2.0"], [True, False])
    ),
)
def test_what_arrow_writes_is_read_as_arrow_reads_it(
    column: str, packing: str, page: str, dictionary: bool
) -> None:
    """Every way to pack and encode the counts, in several row groups of many pages, nullable or not."""
    values = COLUMNS[column]
    for options in ({}, {"row_group_size": 999, "data_page_size": 512}, {"nullable": False}):
        data = parquet(
            values, compression=packing, data_page_version=page, use_dictionary=dictionary, **options
        )
        found = read(data)
        assert found.dtype == values.dtype
        assert np.array_equal(found, pq.read_table(io.BytesIO(data))["count"].to_numpy())


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "begin"),
        (b"PAR1" * 3, "end"),
        (b"PAR1" + (99).to_bytes(4, "little") + b"PAR1", "end"),
        (parquet(np.arange(3, dtype=np.float32)), "64 bits"),
        (parquet(pa.array([[1], [2]])), "not plain"),
        (parquet(pa.array([{"x": 1}])), "not plain"),
        (parquet(pa.array([1, 2], pa.decimal128(10, 1))), "not plain"),
        (parquet(pa.array([1, 2], pa.uint64())), "not plain"),
        (parquet(pa.array([1, 2], pa.timestamp("us"))), "not plain"),
        (parquet(pa.array([b"1"])), "not plain"),
        (parquet(np.arange(3), write_statistics=True), "wrote it anew"),
        (parquet(np.arange(3), write_page_index=True, write_statistics=True), "wrote it anew"),
        (parquet(np.arange(3), store_schema=True), "wrote it anew"),
        (parquet(pa.array([1, None, 2])), "one number for each row"),
        (parquet(pa.array([1.0, None])), "one number for each row"),
        (
            parquet(WHOLE, column_encoding={"count": "DELTA_BINARY_PACKED"}, use_dictionary=False),
            "unknown way",
        ),
        (
            parquet(WHOLE / 3, column_encoding={"count": "BYTE_STREAM_SPLIT"}, use_dictionary=False),
            "unknown way",
        ),
    ],
)
def test_other_columns_are_refused(data: bytes, why: str) -> None:
    """Numbers of 64 bits in a plain column, none of them absent, in the writer's encodings, without a word by which other readers show or skip them."""
    with pytest.raises(ValueError, match=why):
        read(data)


def test_a_file_without_our_metadata_has_no_layout() -> None:
    """It is no release; nothing else about it is looked at."""
    sink = io.BytesIO()
    pq.write_table(pa.table({"other": ["x"]}), sink)
    assert read_layout(io.BytesIO(sink.getvalue()), len(sink.getvalue()), KEY).metadata is None


NUMBERS = np.arange(100, dtype="<i8").tobytes()
LEAF = struct((1, I32, 2), (3, I32, 0), (4, BINARY, b"count"))


class Watch:
    """The most memory that Python (numpy included) and Arrow take while it watches."""

    def __enter__(self) -> "Watch":
        self._before = pa.default_memory_pool()
        self._pool = pa.proxy_memory_pool(self._before)
        pa.set_memory_pool(self._pool)
        tracemalloc.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.python, self.arrow = tracemalloc.get_traced_memory()[1], self._pool.max_memory() or 0
        tracemalloc.stop()
        pa.set_memory_pool(self._before)


def test_a_file_written_by_hand_is_read() -> None:
    """The forger's tools make good files too, which Arrow reads the same."""
    data = forge.written(forge.page(NUMBERS), 100)
    assert read(data).tolist() == list(range(100))
    assert pq.read_table(io.BytesIO(data))["count"].to_pylist() == list(range(100))
    two = forge.page(NUMBERS) + forge.page(NUMBERS)
    assert read(forge.written(two, 200)).tolist() == [*range(100), *range(100)]


LIES: dict[str, Callable[[], bytes]] = {
    "page that unpacks": lambda: forge.written(forge.page(bytes(ENDLESS), values=100), 100),
    "page that says it unpacks": lambda: forge.written(forge.page(NUMBERS, size=2**31 - 1), 100),
    "page of fewer than no bytes": lambda: forge.written(forge.page(NUMBERS, size=-1), 100),
    "page longer than its group": lambda: forge.written(forge.page(NUMBERS, packed=2**30), 100),
    "page of a negative length": lambda: forge.written(forge.page(NUMBERS, packed=-5), 100),
    "page of too many values": lambda: forge.written(forge.page(NUMBERS, values=101), 100),
    "page of too few values": lambda: forge.written(forge.page(NUMBERS, values=99), 100),
    "page of no values": lambda: forge.written(forge.page(b"", values=0) + forge.page(NUMBERS), 100),
    "page of negative values": lambda: forge.written(forge.page(NUMBERS, values=-100), 100),
    "many small pages": lambda: forge.written(forge.page(NUMBERS[:8]) * 10_000, 10_000),
    "dictionary that unpacks": lambda: forge.written(forge.page(bytes(ENDLESS), kind=2) + forge.page(NUMBERS), 100),
    "dictionary of endless values": lambda: forge.written(forge.page(bytes(8), kind=2, values=2**31 - 1) + forge.page(NUMBERS), 100),
    "dictionary of negative values": lambda: forge.written(forge.page(bytes(8), kind=2, values=-1) + forge.page(NUMBERS), 100),
    "dictionary in the middle": lambda: forge.written(forge.page(NUMBERS) + forge.page(bytes(8), kind=2), 100),
    "index page": lambda: forge.written(forge.page(NUMBERS, kind=1), 100),
    "unknown encoding": lambda: forge.written(forge.page(NUMBERS, encoding=5), 100),
    "group outside the file": lambda: forge.written(forge.page(NUMBERS), 100, start=2**40),
    "group longer than the file": lambda: forge.written(forge.page(NUMBERS), 100, size=2**40),
    "group of a negative length": lambda: forge.written(forge.page(NUMBERS), 100, size=-1),
    "group over the footer": lambda: forge.written(forge.page(NUMBERS), 100, size=len(forge.page(NUMBERS)) + 8),
    "group before the file": lambda: forge.written(forge.page(NUMBERS), 100, start=0),
    "group of no pages": lambda: forge.written(b"", 100, size=0),
    "group cut short": lambda: forge.written(forge.page(NUMBERS), 100, size=20),
    "unknown packing": lambda: forge.written(forge.page(NUMBERS), 100, packing=3),
    "other rows than the file": lambda: forge.written(forge.page(NUMBERS), 100, total=2**60),
    "other values than rows": lambda: forge.written(forge.page(NUMBERS), 100, values=5),
    "negative rows": lambda: forge.written(forge.page(NUMBERS), -100),
    "other column": lambda: forge.written(forge.page(NUMBERS), 100, path=b"other"),
    "other type": lambda: forge.written(forge.page(NUMBERS), 100, kind=5),
    "counts in another file": lambda: forge.written(forge.page(NUMBERS), 100, elsewhere=True),
    "damaged pages": lambda: forge.written(forge.page(NUMBERS)[:-8] + bytes(8), 100),
    "deep columns": lambda: forge.written(
        b"", 0, schema=[struct((4, BINARY, b"g"), (5, I32, 1))] * 50_000 + [LEAF], groups=[]
    ),
    "many columns": lambda: forge.written(
        b"", 0, schema=[struct((4, BINARY, b"s"), (5, I32, 400_000))] + [LEAF] * 400_000, groups=[]
    ),
    "many chunks": lambda: forge.written(
        b"", 0, groups=[struct((1, LIST, listed(STRUCT, [struct((2, I64, 0))] * MAX_NODES)), (3, I64, 0))]
    ),
    "two columns of counts": lambda: forge.written(b"", 0, schema=[struct((4, BINARY, b"s"), (5, I32, 2)), LEAF, LEAF]),
    "no columns": lambda: forge.written(b"", 0, schema=[]),
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_refused_before_it_costs_anything(lie: str) -> None:
    """In little time and memory, Arrow's included, however much the file says that it holds."""
    data = LIES[lie]()
    with at_most(seconds=20), Watch() as watch, pytest.raises((ValueError, OSError)) as caught:
        read(data)
    assert not isinstance(caught.value, MemoryError)
    assert watch.python < 80e6
    assert watch.arrow < 20e6


def test_the_watch_sees_what_arrow_takes() -> None:
    """A page of two million counts shows in Arrow's memory, and the counts in ours."""
    data = forge.written(forge.page(bytes(2**24)), 2**21)
    with Watch() as watch:
        assert not read(data).any()
    assert watch.arrow >= 2**24
    assert watch.python >= 2**24


def test_metadata_that_comes_twice_is_none() -> None:
    """Two readers could take either."""
    twice = [struct((1, BINARY, KEY), (2, BINARY, text)) for text in (b"{}", b"[]")]
    data = forge.written(forge.page(NUMBERS), 100, metadata=twice)
    assert read_layout(io.BytesIO(data), len(data), KEY).metadata is None


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "too early"),
        (b"\x15", "too early"),
        (b"\x15\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01\x00", "does not end"),
        (b"\x15\xff\xff\xff\xff\xff\x01\x00", "beyond its type"),
        (b"\x15\x02\x05\x02\x02\x00", "twice"),
        (b"\x1b\x00\x00", "unknown"),
        (b"\x19\xfc\xff\xff\xff\xff\x0f", "longer than the file"),
        (b"\x18\xff\xff\xff\xff\x0f", "too early"),
        (b"\x1c" * 1000, "too much"),
        (b"\x19\xf5\xe8\x07" + b"\x02" * 1000 + b"\x00", "too much"),
    ],
)
def test_thrift_that_no_writer_writes_is_refused(data: bytes, why: str) -> None:
    """Numbers beyond their type, fields that come twice, maps, depth and length without end."""
    with pytest.raises(ValueError, match=why):
        Reader(data, nodes=500).struct()


def test_thrift_is_read_as_it_is_written() -> None:
    """Numbers of either sign, bytes, lists of either length, and structs."""
    inner = struct((1, I64, -(2**63)))
    data = struct(
        (1, I32, -5),
        (2, BINARY, b"abc"),
        (3, LIST, listed(I32, range(20))),
        (9, STRUCT, inner),
        (15, I64, 2**63 - 1),
    )
    assert Reader(data, nodes=100).struct() == {
        1: -5, 2: b"abc", 3: list(range(20)), 9: {1: -(2**63)}, 15: 2**63 - 1
    }  # fmt: skip


WORDS = ["", "a", "ü" * 300, "× b"]


def words(codes: NDArray[np.int32], values: list[str], **options: Any) -> tuple[bytes, Texts]:
    """A file with a column of texts, some absent, and what it should hold."""
    column = pa.array([None if code < 0 else values[code] for code in codes], pa.string())
    return parquet(column, name="text", **options), Texts(codes, values)


@pytest.mark.parametrize("packing", ["none", "zstd"])
@pytest.mark.parametrize("page", ["1.0", "2.0"])
def test_texts_are_compared_as_arrow_reads_them(packing: str, page: str) -> None:
    """Equal in one row group and in many; one other text, or one absent, at any place, is noticed."""
    rng = np.random.default_rng(1)
    codes = rng.integers(-1, 4, 3_000).astype(np.int32)
    for options in ({}, {"row_group_size": 700, "data_page_size": 256}):
        data, expected = words(codes, WORDS, compression=packing, data_page_version=page, **options)
        column = read_layout(io.BytesIO(data), len(data), KEY).columns["text"]
        assert holds(io.BytesIO(data), column, expected)
        for place in (0, 1_500, 2_999):
            other = codes.copy()
            other[place] = codes[place] - 1 if codes[place] >= 0 else 2
            assert not holds(io.BytesIO(data), column, Texts(other, WORDS))
        assert not holds(io.BytesIO(data), column, Texts(codes[:-1], WORDS))
        assert not holds(io.BytesIO(data), column, Texts(codes, ["", "a", "ü" * 300, "other"]))
        assert not holds(io.BytesIO(data), column, codes)


def test_a_column_of_texts_never_unpacks_to_more_than_its_dictionary() -> None:
    """Texts that stand in the pages one by one, or in a dictionary that is not the schema's, are refused before they are unpacked."""
    codes = np.zeros(4, np.int32)
    plain, expected = words(codes, ["x" * 5_000], use_dictionary=False, compression="zstd")
    long, _ = words(codes, ["x" * 2**21], compression="zstd")
    for data, why in ((plain, "not in the dictionary"), (long, "unpack to more")):
        column = read_layout(io.BytesIO(data), len(data), KEY).columns["text"]
        with Watch() as watch, pytest.raises(ValueError, match=why):
            holds(io.BytesIO(data), column, expected)
        assert watch.arrow < 2e6


def test_counts_are_not_read_before_their_number_is_known_to_be_right(tmp_path: Path) -> None:
    """Three million zeros in a file whose tables have 32 cells: refused without unpacking one."""
    facts, counts = forge.given()
    cells = forge.columns(facts, counts)
    many = pa.concat_tables([cells] * 1_000).combine_chunks()
    path = forge.rewritten(
        tmp_path / "r.parquet", pa.concat_tables([many] * 90), forge.json.dumps(facts), compression="zstd"
    )
    why = "it has 2880000 counts for the 32 cells of its tables"
    with Watch() as watch, pytest.raises(ReleaseError, match=why):
        Release.load(path)
    assert watch.python < 5e6
    assert watch.arrow < 5e6


def test_a_small_file_of_many_cells_is_refused(tmp_path: Path) -> None:
    """A file that says it is a hundred million zeros, in one run of a few bytes, is no release."""
    many, pages, placed = 2**27, b"", []
    for kind, name, least in (
        (1, b"set", 4),
        (1, b"table", 4),
        (6, b"attrs", 5),
        (6, b"level_1", 5),
        (2, b"count", 8),
    ):
        run = b"\x01" + _varint(many << 1) + b"\x00"  # places of one bit each: a run of the first
        value = bytes([least - 4, 0, 0, 0, 97]) if kind == 6 else bytes(least)
        dictionary = forge.page(value, kind=2, values=1)
        chunk = dictionary + forge.page(run, values=many, encoding=8)
        placed.append((kind, name, 4 + len(pages), len(dictionary), len(chunk)))
        pages += chunk
    facts, _ = forge.given()
    facts["schema"] = {"columns": {"a": {"kind": "integer", "min": 0, "max": many - 1}}}
    facts["measurements"] = [forge.table("a", noise="none", scale=0)]
    facts["statement"] = forge.statement()
    path = tmp_path / "r.parquet"
    path.write_bytes(forge.columns_written(pages, many, placed, forge.json.dumps(facts).encode()))
    assert path.stat().st_size < 2_000
    with pytest.raises(ReleaseError, match="would grow to 1073741824, as no release does"):
        Release.load(path)


def _varint(value: int) -> bytes:
    data = b""
    while value > 127:
        data, value = data + bytes([value & 127 | 128]), value >> 7
    return data + bytes([value])


@pytest.mark.parametrize("shape", [(4096, 256), (2,) * 20, (16,) * 5])
def test_exact_tables_of_zeros_are_far_from_that_limit(shape: tuple[int, ...], tmp_path: Path) -> None:
    """What packs best of all that is written: its growth is a twentieth of what is allowed."""
    schema = Schema.from_domain({f"c{i}": size for i, size in enumerate(shape)})
    release = Release.from_tables({schema.attrs: np.zeros(shape, int)}, schema, scale=0)
    path = release.save(tmp_path / "r.parquet")
    assert 8 * np.prod(shape) < 4096 / 20 * path.stat().st_size or 8 * np.prod(shape) < 64 * 2**20
    assert Release.load(path).checksum == release.checksum
