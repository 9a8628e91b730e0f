"""CSV and TSV files in batches, read exactly as their format is declared; no error quotes a row.

Every cell is read as text, so that `01`, `N` and `NA` survive. In a file of one column an empty line is a row, whose cell is missing; where there
are several, a row of missing cells has its separators, and an empty line is none.
"""

import codecs
import csv
import gzip
import io
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

import pyarrow as pa
import pyarrow.csv as pacsv

from dpcipher.errors import TableFileError
from dpcipher.io.numbers import plain_numbers
from dpcipher.io.packed import member_name, open_member
from dpcipher.schema.cells import by_type, quoted
from dpcipher.schema.format import FileFormat

BLOCK_BYTES = 2**24
_MAX_HEADER = 2**24
UNREADABLE = (
    OSError,
    EOFError,
    zlib.error,
    csv.Error,
    zipfile.BadZipFile,
)  # what opening and unpacking a damaged file raises
_TEXTS = pa.dictionary(pa.int32(), pa.string())  # each distinct text of a block is kept, and coded, once
_RAGGED = re.compile(r"CSV parse error: (?:Row #\d+: )?Expected \d+ columns, got \d+")


def text_names(path: Path, format: FileFormat) -> tuple[str, ...]:
    """The column names; a quote that `write_table` put before a name, so that it begins no formula, is not part of it."""
    header = _header(path, format)
    bare = [cell[1:] for cell in header]
    written = quoted(pa.array(bare, pa.string())).to_pylist()
    return tuple(
        name if text == cell else cell for name, text, cell in zip(bare, written, header, strict=True)
    )


def text_batches(
    path: Path,
    columns: tuple[str, ...],
    format: FileFormat,
    numbers: frozenset[str],
    reached: Callable[[int], None] = lambda _: None,
) -> Iterator[pa.RecordBatch]:
    """The rows in batches of texts, numbers of the named columns rewritten as Python writes them; `reached` is told how many bytes of the file were read."""
    if _only_header(path, format):
        return
    names = _header(path, format)
    cells = dict(zip(text_names(path, format), names, strict=True))
    header = [cells[column] for column in columns]
    changed = frozenset() if format.has_plain_numbers else numbers
    try:
        with _open_arrow(path) as (stream, raw):
            for batch in pacsv.open_csv(stream, **_arrow_options(path, header, format, len(names))):
                arrays = [
                    by_type(array, lambda texts: plain_numbers(texts, format)) if name in changed else array
                    for name, array in zip(columns, batch.columns, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(arrays, list(columns))
                if raw is not None:
                    reached(raw.tell())
    except (pa.ArrowException, *UNREADABLE, UnicodeDecodeError) as wrong:
        raise _text_error(path, wrong, format) from None  # Arrow's message quotes the row


def separator(path: Path, format: FileFormat) -> str:
    """What stands between cells: as declared, and else by the ending of the name."""
    if format.separator is not None:
        return format.separator
    name = member_name(path) if path.suffix.lower() == ".zip" else path.name
    return "\t" if name.lower().endswith((".tsv", ".tsv.gz")) else ","


def open_bytes(path: Path) -> BinaryIO:
    """The bytes of the text, unpacked."""
    if path.suffix.lower() == ".zip":
        return open_member(path)
    return cast(BinaryIO, gzip.open(path, "rb")) if _compression(path) else open(path, "rb")


def damaged(path: Path, form: str) -> TableFileError:
    """The error for a file that is cut, broken, or something else than its name says."""
    return TableFileError(
        f"{path}: cannot be read as {form}; check that the file is complete and not another format"
    )


def _arrow_options(path: Path, header: list[str], format: FileFormat, n_columns: int) -> dict[str, Any]:
    quote = False if format.quote == "none" else format.quote
    return {
        "read_options": pacsv.ReadOptions(
            block_size=BLOCK_BYTES, use_threads=False, encoding=_arrow_encoding(format)
        ),
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


def _arrow_encoding(format: FileFormat) -> str:
    return "utf8" if format.encoding == "utf-8" else format.encoding


@contextmanager
def _open_arrow(path: Path) -> Iterator[tuple[Any, Any]]:
    """The text as a stream for Arrow, and the file below it, which knows how far it was read; none of a packed one."""
    if path.suffix.lower() == ".zip":
        with open_member(path) as member:
            yield member, None
        return
    with pa.OSFile(str(path)) as file:
        yield (pa.CompressedInputStream(file, "gzip") if _compression(path) else file), file


def _header(path: Path, format: FileFormat) -> tuple[str, ...]:
    """The cells of the header line."""
    try:
        with _open_text(path, format) as lines:
            long_lines = iter(lambda: lines.readline(_MAX_HEADER), "")
            names = next(csv.reader(long_lines, **_csv_options(path, format)), [])
    except UnicodeDecodeError:
        raise _not_encoded(path, format) from None
    except UNREADABLE:
        raise damaged(path, "CSV") from None
    if not names:
        raise TableFileError(f"{path}: is empty; a CSV file needs a header line with the column names")
    return tuple(names)


def _csv_options(path: Path, format: FileFormat) -> dict[str, Any]:
    if format.quote == "none":
        return {"delimiter": separator(path, format), "quoting": csv.QUOTE_NONE}
    return {"delimiter": separator(path, format), "quotechar": format.quote}


def _only_header(path: Path, format: FileFormat) -> bool:
    """Whether nothing follows the header line; Arrow takes a header without a line end for damage."""
    try:
        with _open_text(path, format) as lines:
            lines.readline(_MAX_HEADER)
            return not lines.read(1)
    except UnicodeDecodeError:
        raise _not_encoded(path, format) from None
    except UNREADABLE:
        raise damaged(path, "CSV") from None


def _open_text(path: Path, format: FileFormat) -> TextIO:
    encoding = "utf-8-sig" if format.encoding == "utf-8" else format.encoding
    return io.TextIOWrapper(open_bytes(path), encoding=encoding, newline="")


def _compression(path: Path) -> str | None:
    return "gzip" if path.name.lower().endswith(".gz") else None


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
