"""CSV and TSV files in batches, read exactly as their format is declared; no error quotes a row.

Every cell is read as text, so that `01`, `N` and `NA` survive. In a file of one column an empty line is a row, whose cell is missing; where there
are several, a row of missing cells has its separators, and an empty line is none.
"""

import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from dpcipher.errors import TableFileError
from dpcipher.schema.cells import by_type, quoted
from dpcipher.schema.format import FileFormat

BLOCK_BYTES = 2**24
_MAX_HEADER = 2**24
UNREADABLE = (OSError, EOFError, zlib.error, csv.Error)  # what opening and unpacking a damaged file raises
_TEXTS = pa.dictionary(pa.int32(), pa.string())  # each distinct text of a block is kept, and coded, once
_RAGGED = re.compile(r"CSV parse error: (?:Row #\d+: )?Expected \d+ columns, got \d+")
_PLAIN = r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$"
_SPACES = "[ \u00a0\u202f]"  # also the spaces that do not break, which some programs write


def text_names(path: Path, format: FileFormat) -> tuple[str, ...]:
    """The column names; a quote that `write_table` put before a name, so that it begins no formula, is not part of it."""
    return tuple(_names(_header(path, format)[0]))


def text_batches(
    path: Path,
    columns: tuple[str, ...],
    format: FileFormat,
    numbers: frozenset[str],
    reached: Callable[[int], None] = lambda _: None,
) -> Iterator[pa.RecordBatch]:
    """The rows in batches of texts, numbers of the named columns rewritten as Python writes them; `reached` gets the number of bytes that were read."""
    cells, has_rows = _header(path, format)
    if not has_rows:  # Arrow takes a header without a line end for damage
        return
    cell_of = dict(zip(_names(cells), cells, strict=True))
    wanted = [cell_of[column] for column in columns]
    changed = frozenset() if format.has_plain_numbers else numbers
    try:
        with pa.OSFile(str(path)) as file:
            stream = pa.CompressedInputStream(file, "gzip") if _is_packed(path) else file
            for batch in pacsv.open_csv(stream, **_arrow_options(path, wanted, format, len(cells))):
                arrays = [
                    by_type(array, lambda texts: plain_numbers(texts, format)) if name in changed else array
                    for name, array in zip(columns, batch.columns, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(arrays, list(columns))
                reached(file.tell())
    except (pa.ArrowException, *UNREADABLE, UnicodeDecodeError) as wrong:
        raise _text_error(path, wrong, format) from None  # Arrow's message quotes the row


def separator(path: Path, format: FileFormat) -> str:
    """What stands between cells: as declared, and else by the ending of the name."""
    by_name = "\t" if path.name.lower().endswith((".tsv", ".tsv.gz")) else ","
    return by_name if format.separator is None else format.separator


def open_bytes(path: Path) -> BinaryIO:
    """The bytes of the text, unpacked."""
    return cast(BinaryIO, gzip.open(path, "rb")) if _is_packed(path) else open(path, "rb")


def damaged(path: Path, form: str) -> TableFileError:
    """The error for a file that is cut, broken, or something else than its name says."""
    return TableFileError(
        f"{path}: cannot be read as {form}; check that the file is complete and not another format"
    )


def plain_numbers(cells: pa.Array, format: FileFormat) -> pa.Array:
    """Texts with every number of the declared format rewritten as Python writes it; other texts as they are.

    Stability 1: what becomes of a cell depends on its own text and the declared format alone. Under a decimal comma, `1.500` is no number: it may
    be one and a half or fifteen hundred, so that it becomes unreadable rather than guessed.

    >>> plain_numbers(pa.array(["1.234,5", "-7", "1.5", "N"]), FileFormat(decimal=",", thousands=".")).to_pylist()
    ['1234.5', '-7', '1,5', 'N']
    """
    mark, between = (
        re.escape(format.decimal),
        _SPACES if format.thousands == " " else re.escape(format.thousands or ""),
    )
    whole = f"(?:[0-9]{{1,3}}(?:{between}[0-9]{{3}})+|[0-9]+)" if between else "[0-9]+"
    number = f"^[-+]?(?:{whole}(?:{mark}[0-9]*)?|{mark}[0-9]+)(?:[eE][-+]?[0-9]+)?$"
    trimmed = pc.utf8_trim_whitespace(cells)
    declared = pc.match_substring_regex(trimmed, number)
    foreign = pc.and_not(pc.match_substring_regex(trimmed, _PLAIN), declared)
    digits = pc.replace_substring_regex(trimmed, between, "") if between else trimmed
    rewritten = pc.replace_substring(digits, format.decimal, ".")
    return pc.if_else(
        declared, rewritten, pc.if_else(foreign, pc.replace_substring(trimmed, ".", ","), cells)
    )


def _is_packed(path: Path) -> bool:
    return path.name.lower().endswith(".gz")


def _arrow_options(path: Path, header: list[str], format: FileFormat, n_columns: int) -> dict[str, Any]:
    quote = False if format.quote == "none" else format.quote
    encoding = "utf8" if format.encoding == "utf-8" else format.encoding
    return {
        "read_options": pacsv.ReadOptions(block_size=BLOCK_BYTES, use_threads=False, encoding=encoding),
        "parse_options": pacsv.ParseOptions(
            delimiter=separator(path, format),
            quote_char=quote,
            double_quote=bool(quote),
            newlines_in_values=bool(quote),
            ignore_empty_lines=n_columns > 1,
        ),
        "convert_options": pacsv.ConvertOptions(
            column_types=dict.fromkeys(header, _TEXTS),
            include_columns=header,
            strings_can_be_null=False,
        ),
    }


def _header(path: Path, format: FileFormat) -> tuple[list[str], bool]:
    """The cells of the header line, and whether anything follows it."""
    encoding = "utf-8-sig" if format.encoding == "utf-8" else format.encoding
    quotes: dict[str, Any] = (
        {"quoting": csv.QUOTE_NONE} if format.quote == "none" else {"quotechar": format.quote}
    )
    try:
        with io.TextIOWrapper(open_bytes(path), encoding=encoding, newline="") as lines:
            long_lines = iter(lambda: lines.readline(_MAX_HEADER), "")
            cells = next(csv.reader(long_lines, delimiter=separator(path, format), **quotes), [])
            has_rows = bool(lines.read(1))
    except UnicodeDecodeError:
        raise _not_encoded(path, format) from None
    except UNREADABLE:
        raise damaged(path, "CSV") from None
    if not cells:
        raise TableFileError(f"{path}: is empty; a CSV file needs a header line with the column names")
    return cells, has_rows


def _names(cells: list[str]) -> list[str]:
    """The names in the cells of a header line."""
    written = quoted(pa.array([cell[1:] for cell in cells], pa.string())).to_pylist()
    return [cell[1:] if text == cell else cell for cell, text in zip(cells, written, strict=True)]


def _text_error(path: Path, wrong: Exception, format: FileFormat) -> TableFileError:
    """Our words for Arrow's message, which quotes the row and its number: that of a torn last row is the number of rows."""
    message = str(wrong)
    if _RAGGED.match(message):
        return TableFileError(
            f"{path}: a row has more or fewer cells than the header line; correct it, or quote cells that hold commas"
        )
    if isinstance(wrong, UnicodeDecodeError) or "UTF8" in message:
        return _not_encoded(path, format)
    return TableFileError(
        f"{path}: cannot be read as CSV; check that the file is complete and its quotes are closed"
    )


def _not_encoded(path: Path, format: FileFormat) -> TableFileError:
    if format.encoding != "utf-8":
        return TableFileError(
            f"{path}: must be {format.encoding} text, as the schema's format says; correct the encoding there"
        )
    with suppress(*UNREADABLE), open_bytes(path) as file:
        if file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):  # written before any name or row
            return TableFileError(
                f"{path}: must be UTF-8 text and begins as UTF-16 does; say it in the schema, format: {{encoding: utf-16}}, or convert "
                "it with iconv -f utf-16 -t utf-8"
            )
    return TableFileError(
        f"{path}: must be UTF-8 text; say what it is in the schema, such as format: {{encoding: latin-1}} (`dpcipher schema check "
        "--data` proposes one), or convert it with iconv -f latin1 -t utf8"
    )
