"""The columns of a release file, read from a Parquet file that anybody may have written.

Arrow trusts what a Parquet file says of itself: a footer of 3 MB takes it 700 MB to read, a page of 100 kB may say that it
unpacks to 2 GB, and then does. So the footer and the header of every page are read here first, and judged by the number of cells that
the tables have. Only then does Arrow unpack the pages, out of a file made here, with a footer of our own that names one column.
What the writer never writes is refused: another reader may act on it, such as a decimal point for the counts, or a smallest count by
which rows are skipped.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import DTypeLike, NDArray

from dpcipher.release.thrift import BINARY, I32, I64, LIST, STRUCT, Reader, Struct, listed, struct

MAGIC = b"PAR1"
MAX_FOOTER = 2**26 + 2**25  # the metadata, and what describes the columns
# A column takes about 40 in each row group of a million cells: 36 columns of 2**28 cells, 341,000.
MAX_NODES = 2**19
_INT32, _INT64, _DOUBLE, TEXT = 1, 2, 5, 6  # physical types
_TYPES = {_INT32: np.int32, _INT64: np.int64, _DOUBLE: np.float64}
# The fields that the writer uses to describe the file, a row group, a column in it and its pages: no statistics, no other file.
_FILE, _GROUP, _PLACE, _ABOUT = (
    {1, 2, 3, 4, 5, 6, 7},
    {1, 2, 3, 5, 6, 7},
    {2, 3},
    {*range(1, 8), 9, 11, 13, 16},
)
_UTF8: Struct = {6: 0, 10: {1: {}}}  # how a column of texts is told from one of bytes
_PACKINGS = (0, 1, 2, 4, 6, 7)  # none, snappy, gzip, brotli, zstd, lz4
_PLAIN, _ENCODED = {0, 2}, {0, 2, 8}  # plain values, or places in a dictionary of plain values
_DICTIONARY = 2
# By the kind of a page: the field that describes it, the field in there that says the encoding, and the encodings that are read.
_PAGES = {0: (5, 2, _ENCODED), _DICTIONARY: (7, 2, _PLAIN), 3: (8, 4, _ENCODED)}
_STATISTICS = {0: 5, 3: 8}  # of a page of data


@dataclass(frozen=True)
class Chunk:
    """A column in one row group: where its pages are, how they are packed, and how many values they hold."""

    start: int
    size: int
    packing: int
    rows: int


@dataclass(frozen=True)
class Column:
    """A column of the file: its name, its physical type, whether values may be absent, and its row groups."""

    name: str
    kind: int
    optional: bool
    chunks: tuple[Chunk, ...]

    @property
    def type(self) -> DTypeLike | None:
        """What its numbers are; None of a column of texts."""
        return _TYPES.get(self.kind)


@dataclass(frozen=True)
class Layout:
    """What a Parquet file says of itself: our metadata (None in a foreign file), how many rows it has, and its columns."""

    metadata: bytes | None
    rows: int
    columns: Mapping[str, Column]


@dataclass(frozen=True)
class Texts:
    """A column of texts: for each row the number of its text, -1 where there is none."""

    codes: NDArray[np.int32]
    values: Sequence[str]

    def rows(self, start: int, stop: int) -> "Texts":
        """Some of its rows, with their own texts alone where all are more."""
        codes = self.codes[start:stop]
        if len(self.values) <= len(codes):
            return Texts(codes, self.values)
        used, places = np.unique(codes, return_inverse=True)
        absent = int(len(used) > 0 and used[0] < 0)
        return Texts(
            places.astype(np.int32) - np.int32(absent), [self.values[code] for code in used[absent:]]
        )

    @property
    def dictionary(self) -> pa.DictionaryArray:
        """The same for Arrow."""
        return pa.DictionaryArray.from_arrays(pa.array(self.codes, mask=self.codes < 0), self._strings)

    @property
    def _strings(self) -> pa.StringArray:
        return pa.array(self.values, pa.string())

    @property
    def n_bytes(self) -> int:
        """What all its texts take in a dictionary page."""
        return int(self._strings.nbytes) + 4

    def numbers(self, column: pa.DictionaryArray) -> NDArray[np.int32]:
        """The numbers of these texts in a column that was read; -2 for any other text."""
        known = pc.fill_null(pc.index_in(column.dictionary, self._strings), -2).to_numpy(zero_copy_only=False)
        extremes = pc.min_max(column.indices)
        if (extremes["min"].as_py() or 0) < 0 or (extremes["max"].as_py() or 0) >= max(1, len(known)):
            raise ValueError("a text is not in the dictionary")
        places: NDArray[np.int32] = np.append(known, -1).astype(np.int32)
        codes: NDArray[np.int32] = places[
            pc.fill_null(column.indices, len(known)).to_numpy(zero_copy_only=False)
        ]
        return codes


def read_layout(file: BinaryIO, size: int, key: bytes) -> Layout:
    """The layout of a Parquet file of `size` bytes; a ValueError where it is none. No value is read."""
    footer, end = _footer(file, size)
    pairs = _take({5: []} | footer, 5, list)
    metadata = [pair.get(2) for pair in pairs if isinstance(pair, dict) and pair.get(1) == key]
    if len(metadata) != 1 or not isinstance(metadata[0], bytes):
        return Layout(None, 0, {})
    if len(pairs) != 1:
        raise ValueError("another program wrote it anew, with facts of its own")
    _only(footer, _FILE)
    rows, groups = _take(footer, 3, int), [_group(group) for group in _take(footer, 4, list)]
    if sum(many for many, _ in groups) != rows:
        raise ValueError("its row groups do not add up to its rows")
    columns = {}
    for place, described in enumerate(_described(footer)):
        chunks = tuple(_chunk(many, within, place, described, end) for many, within in groups)
        name = described[4].decode("ascii", "replace")
        columns[name] = Column(name, described[1], described[3] == 1, chunks)
    if len(columns) != len(_described(footer)):
        raise ValueError("two columns have one name")
    return Layout(metadata[0], rows, columns)


def read_numbers(file: BinaryIO, column: Column) -> NDArray[Any]:
    """A column of numbers, one row group after another; a ValueError where one holds anything but so many numbers."""
    numbers = np.empty(sum(chunk.rows for chunk in column.chunks), dtype=column.type)
    filled = 0
    for chunk in column.chunks:
        if chunk.rows:
            values = _unpacked(file, column, chunk, 2 * numbers.itemsize * chunk.rows)
            if values.null_count:
                raise ValueError("a row group does not hold one number for each row")
            numbers[filled : filled + chunk.rows] = values.to_numpy()
            filled += chunk.rows
    return numbers


def holds(file: BinaryIO, column: Column, expected: Texts | NDArray[Any]) -> bool:
    """Whether a column of the file holds exactly this."""
    if not isinstance(expected, Texts):
        return column.type == expected.dtype and np.array_equal(read_numbers(file, column), expected)
    start = 0
    for chunk in column.chunks if column.kind == TEXT else ():
        part = expected.rows(start, start + chunk.rows)
        if chunk.rows:
            read = _unpacked(file, column, chunk, part.n_bytes + 8 * chunk.rows)
            numbers = [part.numbers(piece) for piece in read.chunks]
            if not np.array_equal(np.concatenate(numbers), part.codes):
                return False
        start += chunk.rows
    return start == len(expected.codes)


def _footer(file: BinaryIO, size: int) -> tuple[Struct, int]:
    """The footer as plain values, and where it starts."""
    if size < 12 or _bytes(file, 0, 4) != MAGIC:
        raise ValueError("it does not begin as one")
    tail = _bytes(file, size - 8, 8)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != MAGIC or not 0 < length <= min(size - 12, MAX_FOOTER):
        raise ValueError("it does not end as one")
    start = size - 8 - length
    return Reader(_bytes(file, start, length), nodes=MAX_NODES).struct(), start


def _described(footer: Struct) -> list[Struct]:
    """What the file says of each column; only plain numbers and texts are known, and columns inside columns are refused."""
    columns: list[Struct]
    root, *columns = _take(footer, 2, list)
    if _take(_only(root, {3, 4, 5}), 5, int) != len(columns):
        raise ValueError("its columns are not plain")
    for column in columns:
        extra = {} if _take(column, 1, int) != TEXT else _UTF8
        if {key: value for key, value in column.items() if key not in (1, 3, 4)} != extra:
            raise ValueError("its columns are not plain")
        if column[1] not in (*_TYPES, TEXT) or column.get(3) not in (0, 1):
            raise ValueError(
                "its columns must be of whole numbers of 32 or 64 bits, reals of 64 bits, and texts"
            )
        _take(column, 4, bytes)
    return columns


def _group(group: Struct) -> tuple[int, list[Struct]]:
    """How many rows a row group has, and its columns."""
    rows, columns = _take(_only(group, _GROUP), 3, int), _take(group, 1, list)
    if rows < 0:
        raise ValueError("a row group has fewer than no rows")
    return rows, columns


def _chunk(rows: int, columns: list[Struct], place: int, described: Struct, end: int) -> Chunk:
    """Where a column of a row group is; it must lie inside the file and have as many values as the group has rows."""
    about = _only(_take(_only(columns[place], _PLACE), 3, dict), _ABOUT) if place < len(columns) else {}
    first, offset, size = about.get(11), _take(about, 9, int), _take(about, 7, int)
    start = first if isinstance(first, int) and 0 < first < offset else offset
    if (about.get(1), about.get(3), about.get(5)) != (described[1], [described[4]], rows):
        raise ValueError("a row group does not hold one value of each column for each row")
    if start < len(MAGIC) or size < 0 or start + size > end or about.get(4) not in _PACKINGS:
        raise ValueError("a row group lies outside the file")
    return Chunk(start, size, about[4], rows)


def _unpacked(file: BinaryIO, column: Column, chunk: Chunk, room: int) -> pa.ChunkedArray:
    """A column of one row group, through a file that holds nothing else; its pages unpack to `room` bytes at most, and a mebibyte."""
    pages = _bytes(file, chunk.start, chunk.size)
    dictionary = _check_pages(pages, column.kind, chunk.rows, room + 2**20)
    footer = _one_column(column, chunk, dictionary)
    whole = b"".join((MAGIC, pages, footer, len(footer).to_bytes(4, "little"), MAGIC))
    texts = [column.name] if column.kind == TEXT else None
    values = pq.ParquetFile(pa.BufferReader(whole), read_dictionary=texts).read(use_threads=False).column(0)
    if len(values) != chunk.rows:
        raise ValueError("a row group does not hold one value for each row")
    return values


def _check_pages(pages: bytes, kind: int, rows: int, room: int) -> int:
    """Refuse pages that would unpack to more than their values need; the length of the dictionary page, 0 where there is none.

    A number may be in the dictionary too. A text is nowhere else, so that its column never unpacks to more than its dictionary.
    """
    left, first = rows, 0
    least = np.dtype(_TYPES.get(kind, np.int32)).itemsize  # a text begins with its length
    for number, (head, stop) in enumerate(_headers(pages)):
        values, encoding, is_dictionary = _values(head)
        room -= _take(head, 2, int)
        if is_dictionary and number == 0 and least * values <= head[2]:
            first = stop
        elif is_dictionary or not 0 < values <= left:
            raise ValueError("a page holds more than its values")
        elif kind == TEXT and encoding == 0:
            raise ValueError("a text is not in the dictionary")
        else:
            left -= values
        if head[2] < 0 or room < 0 or number > 64 + rows // 64:
            raise ValueError("its pages unpack to more than its values")
    if left:
        raise ValueError("its pages hold too few values")
    return first


def _headers(pages: bytes) -> Iterator[tuple[Struct, int]]:
    """The header of each page and where the page ends; pages fill their chunk exactly."""
    at = 0
    while at < len(pages):
        reader = Reader(pages, at=at, nodes=256)
        head = reader.struct()
        packed = _take(head, 3, int)
        at = reader.at + packed
        if packed < 0 or at > len(pages):
            raise ValueError("a page is longer than its row group")
        yield head, at


def _values(head: Struct) -> tuple[int, int, bool]:
    """How many values a page holds, their encoding, and whether it is the dictionary; other encodings than the writer's are refused."""
    kind = head.get(1)
    if kind not in _PAGES:
        raise ValueError("a page is of an unknown kind")
    where, encoding, known = _PAGES[kind]
    about = _take(head, where, dict)
    if about.get(encoding) not in known or (kind in _STATISTICS and about.get(_STATISTICS[kind])):
        raise ValueError("a page is encoded in an unknown way")
    values = _take(about, 1, int)
    if values < 0:
        raise ValueError("a page holds fewer than no values")
    return values, about[encoding], kind == _DICTIONARY


def _one_column(column: Column, chunk: Chunk, dictionary: int) -> bytes:
    """A footer for a file of one column and one row group, whose pages follow the magic word."""
    kind, name, start = column.kind, column.name.encode(), len(MAGIC)
    places = [(9, I64, start + dictionary), *([(11, I64, start)] if dictionary else [])]
    about = struct(
        (1, I32, kind),
        (2, LIST, listed(I32, [0, 3, 8])),
        (3, LIST, listed(BINARY, [name])),
        (4, I32, chunk.packing),
        (5, I64, chunk.rows),
        (6, I64, chunk.size),
        (7, I64, chunk.size),
        *places,
    )
    place = struct((2, I64, start), (3, STRUCT, about))
    group = struct((1, LIST, listed(STRUCT, [place])), (2, I64, chunk.size), (3, I64, chunk.rows))
    root = struct((4, BINARY, b"schema"), (5, I32, 1))
    text = [(6, I32, 0)] if kind == TEXT else []
    leaf = struct((1, I32, kind), (3, I32, int(column.optional)), (4, BINARY, name), *text)
    return struct(
        (1, I32, 2),
        (2, LIST, listed(STRUCT, [root, leaf])),
        (3, I64, chunk.rows),
        (4, LIST, listed(STRUCT, [group])),
    )


def _only(fields: Struct, known: set[int]) -> Struct:
    """A struct that says nothing which the writer never says."""
    if not isinstance(fields, dict) or set(fields) - known:
        raise ValueError("another program wrote it anew")
    return fields


def _take(fields: Any, number: int, kind: type) -> Any:
    """A field that must be there, of a type."""
    value = fields.get(number) if isinstance(fields, dict) else None
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError("it does not describe its columns")
    return value


def _bytes(file: BinaryIO, start: int, size: int) -> bytes:
    file.seek(start)
    content = file.read(size)
    if len(content) != size:
        raise ValueError("it ends too early")
    return content
