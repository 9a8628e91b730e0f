"""Parquet files that anybody may have written, read within bounds.

Arrow trusts what a Parquet file says of itself: 3 MB of footer may take it 700 MB to read, a page of a few bytes may say that it unpacks to 2 GB, and some
wrong numbers end the process. So the footer and the header of every page are read here first: they must be what the writer writes, and pages unpack to no
more than the values of their column need. What another reader may act on, such as the smallest count, by which rows are skipped, is refused.
"""

from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

MAGIC = b"PAR1"
MAX_LAYOUT = 2**20  # bytes of the footer beside our metadata; about 100 for each column in each row group
MAX_GROUP = 2**20  # rows of a row group
_MAX_NODES = 2**19  # values in a footer; about 40 for each column in each row group
_SLACK = 2**16  # what pages take beside their values
# By the type of a column: Parquet's number for it, the encoding of its pages, and its number.
_KINDS = {
    pa.int32(): (1, "DELTA_BINARY_PACKED", 5),
    pa.int64(): (2, "DELTA_BINARY_PACKED", 5),
    pa.float64(): (5, "PLAIN", 0),
    pa.string(): (6, "RLE_DICTIONARY", 8),
}
ENCODING = {kind: encoding for kind, (_, encoding, _) in _KINDS.items()}
# At least 5 bytes for 256 whole numbers, or 8 for a real: no column of numbers that is not packed grows to more than 410 times its size.
_FEWEST = {pa.int64(): (5, 256), pa.float64(): (8, 1)}
# The fields that the writer uses to describe the file, a row group, and a column in it: no statistics, index, filter, order or other file.
_FILE, _GROUP, _ABOUT = set(range(1, 8)), {1, 2, 3, 5, 6, 7}, {*range(1, 8), 9, 11, 13, 16}

Struct = dict[int, Any]


@dataclass(frozen=True)
class Chunk:
    """A column in one row group: where its pages are, and how many values they hold."""

    start: int
    size: int
    packing: int
    rows: int


@dataclass(frozen=True)
class Layout:
    """A Parquet file that was not looked into: the bytes of its footer, what they say, where they begin, and our metadata."""

    stream: BinaryIO
    raw: bytes
    footer: Struct
    end: int
    metadata: bytes

    @property
    def n_rows(self) -> object:
        """How many rows it says it has."""
        return self.footer.get(3)

    def columns(self, schema: pa.Schema, plain: str) -> "Columns":
        """Its columns, if they are these; a column `plain` of numbers must not be packed, and be long enough for its rows."""
        try:
            groups = self._groups(schema)
        except (LookupError, TypeError, AttributeError):
            raise ValueError("it does not describe its columns") from None
        least, numbers = _FEWEST[schema.field(plain).type]
        for chunk in (group[schema.get_field_index(plain)] for group in groups):
            if chunk.packing or chunk.size * numbers < chunk.rows * least:
                raise ValueError(
                    f"its {plain}s, {chunk.size} bytes, would grow to {8 * chunk.rows}, as in no release"
                )
        return Columns(self.stream, self.raw, schema, groups)

    def _groups(self, schema: pa.Schema) -> list[list[Chunk]]:
        """The columns of each row group; they follow one another from the first byte to the footer."""
        root, columns = self.footer[2][0], self.footer[2][1:]
        texts = {True: {6: 0, 10: {1: {}}}, False: Struct()}
        expected = [
            {1: _KINDS[one.type][0], 3: 1, 4: one.name.encode(), **texts[one.type == pa.string()]}
            for one in schema
        ]
        if root.get(5) != len(columns) or not set(root) <= {3, 4, 5} or columns != expected:
            raise ValueError(f"its columns must be {', '.join(schema.names)}, of their types")
        groups, place = [], len(MAGIC)
        for group in self.footer[4]:
            if not 0 < group[3] <= MAX_GROUP or len(group[1]) != len(columns) or not set(group) <= _GROUP:
                raise ValueError("a row group has too many rows, or other columns than the file")
            groups.append(list[Chunk]())
            for column, where in zip(columns, group[1], strict=True):
                about = where[3]
                known = (set(where), about[1], about[3], about[5], about.get(11, about[9]))
                if (
                    known != ({2, 3}, column[1], [column[4]], group[3], place)
                    or about[7] < 0
                    or not set(about) <= _ABOUT
                ):
                    raise ValueError(
                        "its columns are not as dpcipher writes them; another program wrote it anew"
                    )
                groups[-1].append(Chunk(place, about[7], about[4], group[3]))
                place += about[7]
        if (
            place != self.end
            or sum(group[0].rows for group in groups) != self.n_rows
            or not set(self.footer) <= _FILE
        ):
            raise ValueError("its row groups do not add up to its rows and bytes")
        return groups


@dataclass(frozen=True)
class Columns:
    """The columns of a file whose footer was judged."""

    stream: BinaryIO
    raw: bytes
    schema: pa.Schema
    groups: list[list[Chunk]]

    @cached_property
    def rows(self) -> list[int]:
        """How many rows each row group has."""
        return [group[0].rows for group in self.groups]

    @cached_property
    def _footer(self) -> pq.FileMetaData:
        whole = b"".join((MAGIC, self.raw, len(self.raw).to_bytes(4, "little"), MAGIC))
        limits = {"thrift_string_size_limit": len(whole), "thrift_container_size_limit": 2**12}
        return pq.ParquetFile(pa.BufferReader(whole), **limits).metadata

    def read(self, group: int, name: str, room: int) -> pa.Array:
        """A column of one row group, whose values take at most `room` bytes."""
        place, kind = self.schema.get_field_index(name), self.schema.field(name).type
        chunk = self.groups[group][place]
        if chunk.size > room + _SLACK:
            raise ValueError(f"its column {name} has more bytes than its values take")
        pages = _bytes(self.stream, chunk.start, chunk.size)
        _check_pages(pages, _KINDS[kind][2], chunk.rows, room + _SLACK)
        texts = [name] if kind == pa.string() else None
        file = pq.ParquetFile(_Pages(pages, chunk.start), metadata=self._footer, read_dictionary=texts)
        values = file.read_row_group(group, columns=[name], use_threads=False).column(0).combine_chunks()
        values.validate(full=True)  # a place outside the dictionary, a text that is none
        if len(values) != chunk.rows:
            raise ValueError(f"its column {name} does not hold one value for each row")
        return values


class _Pages(BytesIO):
    """Some pages, at their place in a file."""

    def __init__(self, data: bytes, start: int) -> None:
        super().__init__(data)
        self._start = start

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return super().seek(offset if whence else max(0, offset - self._start), whence) + self._start

    def tell(self) -> int:
        return super().tell() + self._start


def read_layout(stream: BinaryIO, size: int, key: bytes, most: int) -> Layout | None:
    """The layout of a Parquet file of `size` bytes with at most `most` bytes of metadata under `key`; None of one without, a ValueError where it is none."""
    if size < 12 or _bytes(stream, 0, 4) != MAGIC:
        raise ValueError("it does not begin as one")
    tail = _bytes(stream, size - 8, 8)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != MAGIC or not 0 < length <= min(size - 12, most + MAX_LAYOUT):
        raise ValueError("it does not end as one")
    raw = _bytes(stream, size - 8 - length, length)
    if key not in raw:
        return None
    footer = Thrift(raw, 0, _MAX_NODES).struct()
    facts = footer.get(5)
    pairs = [one for one in facts if isinstance(one, dict)] if isinstance(facts, list) else []
    if all(one.get(1) != key for one in pairs):
        return None
    metadata = pairs[0].get(2) if len(pairs) == 1 else None
    if not isinstance(metadata, bytes):
        raise ValueError("another program wrote it anew, with facts of its own")
    if len(metadata) > most or length - len(metadata) > MAX_LAYOUT:
        raise ValueError(
            f"its metadata must have at most {most} bytes, and what describes its columns {MAX_LAYOUT}"
        )
    return Layout(stream, raw, footer, size - 8 - length, metadata)


def _check_pages(pages: bytes, encoding: int, rows: int, room: int) -> None:
    """Refuse pages of another form than the writer's, and such as say that they unpack to more than `room` bytes in all."""
    at, left = 0, rows
    while at < len(pages):
        reader = Thrift(pages, at, 64)
        head = reader.struct()
        size, packed, data = head.get(2, -1), head.get(3, -1), head.get(5)
        about = head.get(7) if head.get(1) == 2 else data
        values = about.get(1, -1) if isinstance(about, dict) else -1
        if not all(type(number) is int and number >= 0 for number in (size, packed, values)):
            raise ValueError("a page has no size, or fewer than no values")
        if isinstance(data, dict) and data.get(5) == {}:
            del data[5]  # statistics that say nothing
        if head == {1: 2, 2: size, 3: packed, 7: {1: values, 2: 0, 3: False}} and encoding == 8:
            sound = at == 0 and 4 * values <= size  # a text takes at least the four bytes of its length
        elif head == {1: 0, 2: size, 3: packed, 5: {1: values, 2: encoding, 3: 3, 4: 3}}:
            sound, left = 0 < values <= left and (at > 0 or encoding != 8), left - values
        else:
            raise ValueError("a page is not in the form that dpcipher writes")
        at, room = reader.at + packed, room - size
        if not sound or room < 0 or at > len(pages):
            raise ValueError("a page holds more than its values")
    if left:
        raise ValueError("its pages hold too few values")


@dataclass
class Thrift:
    """Reads what a Parquet file says of itself, in Thrift's compact form: structs as `{field number: value}`, at most `nodes` values in all."""

    data: bytes
    at: int
    nodes: int

    def struct(self, depth: int = 0) -> Struct:
        """The next struct. A field that comes twice, or of a type that no writer needs, is refused: two readers could take it in two ways."""
        fields, number = Struct(), 0
        while head := self._take(1)[0]:
            number = number + (head >> 4) if head >> 4 else self._signed()
            if number in fields:
                raise ValueError("a field comes twice")
            fields[number] = head & 15 == 1 if head & 15 in (1, 2) else self._value(head & 15, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        self.nodes -= 1
        if self.nodes < 0 or depth > 8:
            raise ValueError("it describes too much")
        if kind in (4, 5, 6):  # whole numbers of 16, 32 and 64 bits
            return self._signed()
        if kind == 8:
            return self._take(self._varint())
        if kind == 9:
            head = self._take(1)[0]
            size = self._varint() if head >> 4 == 15 else head >> 4
            if size > len(self.data) - self.at:
                raise ValueError("a list is longer than the file")
            return [self._value(head & 15, depth + 1) for _ in range(size)]
        if kind == 12:
            return self.struct(depth + 1)
        raise ValueError(f"it describes something of an unknown type ({kind})")

    def _signed(self) -> int:
        number = self._varint()
        return (number >> 1) ^ -(number & 1)

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._take(1)[0]
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError("a number does not end")

    def _take(self, size: int) -> bytes:
        start, self.at = self.at, self.at + size
        if self.at > len(self.data):
            raise ValueError("it ends too early")
        return self.data[start : self.at]


def _bytes(stream: BinaryIO, start: int, size: int) -> bytes:
    stream.seek(start)
    data = stream.read(size)
    if len(data) != size:
        raise ValueError("it ends too early")
    return data
