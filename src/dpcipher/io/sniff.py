"""How a text file seems to be written, for a person to declare. Curator only: it looks at rows, and one row can change what it says.

Nothing that measures private rows may call this: a test lists who does.
"""

import codecs
import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice, zip_longest
from os import PathLike
from pathlib import Path

from dpcipher.io.files import find_files
from dpcipher.io.text import UNREADABLE, open_bytes, separator
from dpcipher.schema.format import PLAIN, FileFormat

SAMPLE_ROWS = 20_000
_CHUNK = 2**20
_LONGEST = 2**20  # characters of a line
_NUMERIC = re.compile(r"[-+]?[0-9.,' \u00a0\u202f]*[0-9][0-9.,' \u00a0\u202f]*")
_POINT = re.compile(r"[-+]?[0-9]*\.?[0-9]+")
_COMMA = re.compile(r"[-+]?(?:[0-9]+|[0-9]{1,3}(?:\.[0-9]{3})+)(?:,[0-9]+)?")
_APART = re.compile(r"['\u0020\u00a0\u202f]")
_SPACED = re.compile(r"[-+]?[0-9]{1,3}(['\u0020\u00a0\u202f])[0-9]{3}(?:\1[0-9]{3})*(?:[.,][0-9]+)?")
_GROUPS = {
    ".": re.compile(r"[-+]?[0-9]{1,3}(?:\.[0-9]{3})+(?:,[0-9]+)?"),
    ",": re.compile(r"[-+]?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?"),
}


@dataclass(frozen=True)
class Guess:
    """A proposal: the format, and the columns whose numbers it is about."""

    format: FileFormat = PLAIN
    numbers: frozenset[str] = frozenset()
    ascii: bool = False  # then all encodings but UTF-16 read it alike


def guess_format(data: object, declared: FileFormat = PLAIN) -> Guess:
    """What the first file of a path seems to be; as declared where it is no text file. A declared separator that makes a table is kept."""
    if not isinstance(data, str | PathLike):
        return Guess(declared)
    file = find_files(str(data))[0]
    if not file.is_text:
        return Guess(declared)
    try:
        encoding, ascii = _encoding(file.path)
        lines = _lines(file.path, encoding)
    except UNREADABLE:
        return Guess(declared)  # whoever reads the file says what is wrong
    usual = separator(file.path, declared)
    mark = _separator(lines, usual)
    format = FileFormat(
        separator=declared.separator if mark == usual else mark, encoding=encoding, quote=declared.quote
    )
    return _with_marks(Guess(format, ascii=ascii), _table(lines, mark))


def _encoding(path: Path) -> tuple[str, bool]:
    """UTF-8 where every byte allows it, UTF-16 where it says so, else what Windows writes in the West; and whether all is ASCII."""
    decoder, head = codecs.getincrementaldecoder("utf-8")(), b""
    utf8, western, ascii = True, True, True
    with open_bytes(path) as file:
        while chunk := file.read(_CHUNK):
            head = head or chunk[:2]
            ascii = ascii and chunk.isascii()
            western = western and not any(byte in chunk for byte in b"\x81\x8d\x8f\x90\x9d")
            utf8 = utf8 and _decodes(decoder, chunk)
    if head in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "utf-16", False
    return ("utf-8" if utf8 else "cp1252" if western else "latin-1"), ascii


def _decodes(decoder: codecs.IncrementalDecoder, chunk: bytes) -> bool:
    try:
        decoder.decode(chunk)
    except UnicodeDecodeError:
        return False
    return True


def _lines(path: Path, encoding: str) -> list[str]:
    codec = "utf-8-sig" if encoding == "utf-8" else encoding
    with io.TextIOWrapper(open_bytes(path), encoding=codec, errors="replace", newline="") as text:
        return [text.readline(_LONGEST) for _ in range(SAMPLE_ROWS)]


def _separator(lines: Sequence[str], usual: str) -> str:
    """The usual one where it makes a table; else the one that makes the widest."""
    widths = {mark: _width(lines, mark) for mark in (usual, ";", "\t", "|", ",")}
    best = max(widths, key=lambda mark: (widths[mark], mark == usual))
    return usual if widths[best] < 2 else best


def _width(lines: Sequence[str], mark: str) -> int:
    """How many cells every row has; 0 where they differ."""
    widths = {len(row) for row in _rows(lines, mark)}
    return widths.pop() if len(widths) == 1 else 0


def _rows(lines: Sequence[str], mark: str) -> list[list[str]]:
    """Rows of the sample, but for a last one that the sample may have cut."""
    try:
        rows = [row for row in csv.reader(filter(None, lines), delimiter=mark) if row]
    except csv.Error:
        return []
    return rows[:-1] if len(lines) == SAMPLE_ROWS and lines[-1] else rows


def _table(lines: Sequence[str], mark: str) -> dict[str, list[str]]:
    rows = _rows(lines, mark)
    header = rows[0] if rows else []
    columns = zip_longest(*islice(rows, 1, None), fillvalue="")
    return {name: [cell.strip() for cell in cells] for name, cells in zip(header, columns, strict=False)}


def _with_marks(guess: Guess, table: dict[str, list[str]]) -> Guess:
    """The marks inside numbers: a decimal comma where some column needs one and none speaks against it."""
    numeric = {name: numbers for name, cells in table.items() if (numbers := _numbers(cells))}
    apart = {name: mark for name, numbers in numeric.items() if (mark := _mark_apart(numbers))}
    if len(set(apart.values())) == 1:
        mark = next(iter(apart.values()))
        plain = {name: [number.replace(mark, "") for number in numeric[name]] for name in apart}
        without = _with_marks(guess, numeric | plain)
        format = replace(without.format, thousands="'" if mark == "'" else " ")
        return replace(without, format=format, numbers=without.numbers | set(apart))
    comma = {name for name, numbers in numeric.items() if _has_comma(numbers)}
    point = {name for name, numbers in numeric.items() if _has_point(numbers)}
    if comma and not point:
        groups = any(_GROUPS["."].fullmatch(number) for name in comma for number in numeric[name])
        format = replace(guess.format, decimal=",", thousands="." if groups else None)
        whole = {name for name, numbers in numeric.items() if all(map(_COMMA.fullmatch, numbers))}
        return replace(guess, format=format, numbers=frozenset(comma | whole))
    grouped = {name for name, numbers in numeric.items() if _is_grouped(numbers)}
    if grouped and not comma:
        return replace(guess, format=replace(guess.format, thousands=","), numbers=frozenset(grouped))
    return guess


def _mark_apart(numbers: Sequence[str]) -> str:
    """The mark between the thousands of a column that is neither point nor comma; none where it stands elsewhere too."""
    matches = [_SPACED.fullmatch(number) for number in numbers if _APART.search(number)]
    marks = {match[1] if match else "" for match in matches}
    return marks.pop() if len(marks) == 1 else ""


def _numbers(cells: Iterable[str]) -> list[str]:
    """The cells of a column that is mostly numbers, however they are written."""
    filled = [cell for cell in cells if cell]
    numbers = [cell for cell in filled if _NUMERIC.fullmatch(cell)]
    return numbers if 2 * len(numbers) > len(filled) else []


def _has_comma(numbers: Sequence[str]) -> bool:
    """Whether all are numbers with a decimal comma, and some comma cannot stand between thousands."""
    marked = [number for number in numbers if "," in number]
    return (
        bool(marked) and all(map(_COMMA.fullmatch, numbers)) and not all(map(_GROUPS[","].fullmatch, marked))
    )


def _has_point(numbers: Sequence[str]) -> bool:
    """Whether all are numbers with a decimal point, and some point cannot stand between thousands."""
    marked = [number for number in numbers if "." in number]
    return (
        bool(marked) and all(map(_POINT.fullmatch, numbers)) and not all(map(_GROUPS["."].fullmatch, marked))
    )


def _is_grouped(numbers: Sequence[str]) -> bool:
    """Whether commas stand between thousands."""
    marked = [number for number in numbers if "," in number]
    rest = [number for number in numbers if "," not in number]
    return bool(marked) and all(map(_GROUPS[","].fullmatch, marked)) and all(map(_POINT.fullmatch, rest))
