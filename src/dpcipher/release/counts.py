"""The counts of a release file, read from a Parquet file that anybody may have written.

Arrow trusts what a Parquet file says of itself: a footer of 3 MB takes it 700 MB to read, a page of 100 kB may say that it
unpacks to 2 GB, and then does. So the footer and the header of every page are read here first, and judged by the number of cells that
the tables have. Only then does Arrow unpack the pages, out of a file made here, with a footer of our own that names one column.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dpcipher.release.thrift import BINARY, I32, I64, LIST, STRUCT, Reader, Struct, listed, struct

MAGIC = b"PAR1"
COLUMN = b"count"
# Two copies of the metadata, one of them in base64 inside Arrow's own schema; and what describes the columns.
MAX_FOOTER = 3 * 2**26
# A column takes about 40 in each row group of a million cells: 36 columns of 2**28 cells, 341,000.
MAX_NODES = 2**19
_INT64, _DOUBLE = 2, 5
_PACKINGS = (0, 1, 2, 4, 6, 7)  # none, snappy, gzip, brotli, zstd, lz4
_PLAIN, _ENCODED = {0, 2}, {0, 2, 8}  # plain values, or places in a dictionary of plain values
_DICTIONARY = 2
# By the kind of a page: the field that describes it, the field in there that says the encoding, and the encodings that are read.
_PAGES = {0: (5, 2, _ENCODED), _DICTIONARY: (7, 2, _PLAIN), 3: (8, 4, _ENCODED)}


@dataclass(frozen=True)
class Chunk:
    """The counts of one row group: where their pages are, how they are packed, and how many there are."""

    start: int
    size: int
    packing: int
    rows: int


@dataclass(frozen=True)
class Layout:
    """What a Parquet file says of itself: our metadata (None in a foreign file), the type of the counts, and where they are."""

    metadata: bytes | None
    real: bool
    optional: bool
    chunks: tuple[Chunk, ...]

    @property
    def rows(self) -> int:
        """How many counts there are."""
        return sum(chunk.rows for chunk in self.chunks)


def read_layout(file: BinaryIO, size: int, key: bytes) -> Layout:
    """The layout of a Parquet file of `size` bytes; a ValueError where it is none. No count is read."""
    footer, end = _footer(file, size)
    pairs = _take({5: []} | footer, 5, list)
    metadata = [pair.get(2) for pair in pairs if isinstance(pair, dict) and pair.get(1) == key]
    if len(metadata) != 1 or not isinstance(metadata[0], bytes):
        return Layout(None, False, False, ())
    place, column = _column(footer)
    chunks = tuple(_chunk(group, place, column[1], end) for group in _take(footer, 4, list))
    if sum(chunk.rows for chunk in chunks) != _take(footer, 3, int):
        raise ValueError("its row groups do not add up to its rows")
    return Layout(metadata[0], column[1] == _DOUBLE, column[3] == 1, chunks)


def read_counts(file: BinaryIO, layout: Layout) -> NDArray[Any]:
    """All counts, one row group after another; a ValueError where one holds anything but so many numbers."""
    counts = np.empty(layout.rows, dtype=np.float64 if layout.real else np.int64)
    filled = 0
    for chunk in layout.chunks:
        if chunk.rows:
            counts[filled : filled + chunk.rows] = _unpacked(file, chunk, layout)
            filled += chunk.rows
    return counts


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


def _column(footer: Struct) -> tuple[int, Struct]:
    """Which of the columns holds the counts; columns inside columns are refused."""
    root, *columns = _take(footer, 2, list)
    nested = any(not isinstance(column, dict) or 5 in column for column in columns)
    if nested or _take(root, 5, int) != len(columns):
        raise ValueError("its columns are not plain")
    places = [place for place, column in enumerate(columns) if column.get(4) == COLUMN]
    counts = columns[places[0]] if len(places) == 1 else {}
    if counts.get(1) not in (_INT64, _DOUBLE) or counts.get(3) not in (0, 1):
        raise ValueError("it must have one column 'count', of whole numbers or reals of 64 bits")
    return places[0], counts


def _chunk(group: Struct, place: int, kind: int, end: int) -> Chunk:
    """Where the counts of a row group are; they must lie inside the file and be as many as the group's rows."""
    rows, columns = _take(group, 3, int), _take(group, 1, list)
    about = _take(columns[place], 3, dict) if place < len(columns) else {}
    first, offset, size = about.get(11), _take(about, 9, int), _take(about, 7, int)
    start = first if isinstance(first, int) and 0 < first < offset else offset
    if rows < 0 or (about.get(1), about.get(3), about.get(5)) != (kind, [COLUMN], rows):
        raise ValueError("a row group does not hold one count for each row")
    if start < len(MAGIC) or size < 0 or start + size > end or about.get(4) not in _PACKINGS:
        raise ValueError("a row group lies outside the file")
    return Chunk(start, size, about[4], rows)


def _unpacked(file: BinaryIO, chunk: Chunk, layout: Layout) -> NDArray[Any]:
    """The counts of one row group, through a file that holds nothing else."""
    pages = _bytes(file, chunk.start, chunk.size)
    dictionary = _check_pages(pages, chunk)
    footer = _one_column(chunk, dictionary, layout)
    whole = b"".join((MAGIC, pages, footer, len(footer).to_bytes(4, "little"), MAGIC))
    column = pq.ParquetFile(pa.BufferReader(whole)).read(use_threads=False).column(0)
    if len(column) != chunk.rows or column.null_count:
        raise ValueError("a row group does not hold one count for each row")
    return np.asarray(column.to_numpy())


def _check_pages(pages: bytes, chunk: Chunk) -> int:
    """Refuse pages that would unpack to more than their counts need; the length of the dictionary page, 0 where there is none.

    A count takes eight bytes, and eight more where it is in the dictionary too; a mebibyte is for what is around them.
    """
    room, left, first = 16 * chunk.rows + 2**20, chunk.rows, 0
    for number, (head, stop) in enumerate(_headers(pages)):
        values, is_dictionary = _values(head)
        room -= _take(head, 2, int)
        if is_dictionary and number == 0 and 8 * values <= head[2]:
            first = stop
        elif is_dictionary or not 0 < values <= left:
            raise ValueError("a page holds more than its counts")
        else:
            left -= values
        if head[2] < 0 or room < 0 or number > 64 + chunk.rows // 64:
            raise ValueError("its pages unpack to more than its counts")
    if left:
        raise ValueError("its pages hold too few counts")
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


def _values(head: Struct) -> tuple[int, bool]:
    """How many values a page holds, and whether it is the dictionary; other encodings than the writer's are refused."""
    kind = head.get(1)
    if kind not in _PAGES:
        raise ValueError("a page is of an unknown kind")
    where, encoding, known = _PAGES[kind]
    about = _take(head, where, dict)
    if about.get(encoding) not in known:
        raise ValueError("a page is encoded in an unknown way")
    values = _take(about, 1, int)
    if values < 0:
        raise ValueError("a page holds fewer than no values")
    return values, kind == _DICTIONARY


def _one_column(chunk: Chunk, dictionary: int, layout: Layout) -> bytes:
    """A footer for a file of one column and one row group, whose pages follow the magic word."""
    kind, start = _DOUBLE if layout.real else _INT64, len(MAGIC)
    places = [(9, I64, start + dictionary), *([(11, I64, start)] if dictionary else [])]
    about = struct(
        (1, I32, kind),
        (2, LIST, listed(I32, [0, 3, 8])),
        (3, LIST, listed(BINARY, [COLUMN])),
        (4, I32, chunk.packing),
        (5, I64, chunk.rows),
        (6, I64, chunk.size),
        (7, I64, chunk.size),
        *places,
    )
    column = struct((2, I64, start), (3, STRUCT, about))
    group = struct((1, LIST, listed(STRUCT, [column])), (2, I64, chunk.size), (3, I64, chunk.rows))
    root = struct((4, BINARY, b"schema"), (5, I32, 1))
    leaf = struct((1, I32, kind), (3, I32, int(layout.optional)), (4, BINARY, COLUMN))
    return struct(
        (1, I32, 2),
        (2, LIST, listed(STRUCT, [root, leaf])),
        (3, I64, chunk.rows),
        (4, LIST, listed(STRUCT, [group])),
    )


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
