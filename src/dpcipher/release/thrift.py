"""The part of Thrift's compact protocol that a Parquet file describes itself in, read within bounds, and written.

A struct is read as `{field number: value}`: whole numbers, bytes, truth values, lists and structs. Three bytes of Thrift can become
seven hundred in Arrow's memory, so what a file says of itself is counted here before Arrow sees any of it. Whatever is
unusual (a field twice, a number beyond its type, a map) is a `ValueError`: no writer needs it, and two readers could take it in two ways.
"""

from collections.abc import Sequence
from typing import Any

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST = range(1, 10)
STRUCT = 12

MAX_DEPTH = 16
_BITS = {I16: 16, I32: 32, I64: 64}

Struct = dict[int, Any]


class Reader:
    """Takes structs off bytes, one after another; `nodes` is how many values it may take in all."""

    def __init__(self, data: bytes, *, at: int = 0, nodes: int) -> None:
        self._data, self.at, self._nodes = data, at, nodes

    def struct(self, depth: int = 0) -> Struct:
        """The next struct."""
        fields: Struct = {}
        number = 0
        while header := self._byte():
            kind, step = header & 15, header >> 4
            number = number + step if step else _signed(self._varint(), 16)
            if number in fields:
                raise ValueError("a field comes twice")
            fields[number] = kind == TRUE if kind in (TRUE, FALSE) else self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        self._nodes -= 1
        if self._nodes < 0 or depth > MAX_DEPTH:
            raise ValueError("it describes too much")
        if kind in _BITS:
            return _signed(self._varint(), _BITS[kind])
        if kind == BINARY:
            return self._bytes(self._varint())
        if kind == LIST:
            return self._list(depth + 1)
        if kind == STRUCT:
            return self.struct(depth + 1)
        if kind in (TRUE, FALSE, BYTE):
            return self._byte()
        if kind == DOUBLE:
            return self._bytes(8)
        raise ValueError(f"type {kind} is unknown")

    def _list(self, depth: int) -> list[Any]:
        header = self._byte()
        size = self._varint() if header >> 4 == 15 else header >> 4
        if size > len(self._data) - self.at:
            raise ValueError("a list is longer than the file")
        return [self._value(header & 15, depth) for _ in range(size)]

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError("a number does not end")

    def _byte(self) -> int:
        return self._bytes(1)[0]

    def _bytes(self, size: int) -> bytes:
        start, self.at = self.at, self.at + size
        if self.at > len(self._data):
            raise ValueError("it ends too early")
        return self._data[start : self.at]


def _signed(value: int, bits: int) -> int:
    """Undo the zigzag that keeps small negative numbers short."""
    if value >> bits:
        raise ValueError("a number is beyond its type")
    return (value >> 1) ^ -(value & 1)


def struct(*fields: tuple[int, int, Any]) -> bytes:
    """A struct of `(field number, type, value)`, numbers ascending; structs inside it are written already."""
    written, last = b"", 0
    for number, kind, value in fields:
        written += bytes([(number - last) << 4 | kind]) + _written(kind, value)
        last = number
    return written + b"\0"


def listed(kind: int, values: Sequence[Any]) -> bytes:
    """A list of values of one type, as the value of a field of type LIST."""
    head = (
        bytes([len(values) << 4 | kind]) if len(values) < 15 else bytes([0xF0 | kind]) + _varint(len(values))
    )
    return head + b"".join(_written(kind, value) for value in values)


def _written(kind: int, value: Any) -> bytes:
    if kind in _BITS:
        return _varint(value << 1 if value >= 0 else (-value << 1) - 1)
    return _varint(len(value)) + value if kind == BINARY else bytes(value)


def _varint(value: int) -> bytes:
    written = b""
    while value > 127:
        written += bytes([value & 127 | 128])
        value >>= 7
    return written + bytes([value])
