"""How a table's text files are written: separator, encoding, decimal mark. Facts of the schema, never guessed while private rows are measured.

One row could change a guess, and with it the code of every other row. So `draft` and `check` may look and propose, and a person declares.
"""

from dataclasses import dataclass, fields
from typing import Annotated, Any

from dpcipher.errors import SchemaError, did_you_mean
from dpcipher.files.codec import Rule, check_fields, decode

SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
MARKS = (",", ";", "\t", "|", ":", "~", "^")
QUOTES = ('"', "'", "none")
DECIMALS = (".", ",")
THOUSANDS = (",", ".", " ", "'", "_")
ENCODINGS = (
    "utf-8",
    "utf-16",
    "latin-1",
    "iso-8859-2",
    "iso-8859-15",
    "cp1250",
    "cp1251",
    "cp1252",
    "cp437",
    "cp850",
    "mac-roman",
    "shift-jis",
    "gb18030",
    "big5",
    "euc-kr",
)


def _one_of(words: str, *allowed: str | None) -> Rule:
    return Rule(f"must be {words}", lambda value: value in allowed)


@dataclass(frozen=True)
class FileFormat:
    """How CSV and TSV files of a table are written; what is not declared is as in a plain CSV file.

    `separator` stands between cells: by default a comma, in a file whose name ends in .tsv a tab. `decimal` and `thousands` are the marks
    inside numbers, of columns that hold numbers. `quote` goes around cells that hold separators; "none" takes quotes as they are.

    >>> FileFormat.from_spec({"separator": "semicolon", "decimal": ","}).to_spec()
    {'separator': ';', 'decimal': ','}
    """

    separator: Annotated[
        str | None, _one_of("comma, semicolon, tab, pipe, or one of : ~ ^", None, *MARKS, *SEPARATORS)
    ] = None
    encoding: str = "utf-8"
    decimal: Annotated[str, _one_of("'.' or ','", *DECIMALS)] = "."
    thousands: Annotated[str | None, _one_of("left out, or one of , . ' _ and a space", None, *THOUSANDS)] = (
        None
    )
    quote: Annotated[str, _one_of("\", ' or none", *QUOTES)] = '"'

    def __post_init__(self) -> None:
        try:
            check_fields(self)
        except ValueError as wrong:
            raise SchemaError(f"format: {wrong}") from None
        object.__setattr__(self, "separator", SEPARATORS.get(str(self.separator), self.separator))
        object.__setattr__(self, "encoding", _spelt(self.encoding))
        if self.encoding not in ENCODINGS:
            hint = did_you_mean(self.encoding, ENCODINGS)
            raise SchemaError(
                f"format: encoding ({self.encoding!r:.40}) must be one of {', '.join(ENCODINGS)}{hint}"
            )
        for name, mark in (("decimal", self.decimal), ("quote", self.quote)):
            if self.thousands == mark:
                raise SchemaError(f"format: thousands and {name} must be different marks; change one of them")

    @classmethod
    def from_spec(cls, spec: object) -> "FileFormat":
        """The format that a schema file declares."""
        try:
            read: FileFormat = decode(cls, spec, "format")
        except ValueError as wrong:
            raise SchemaError(str(wrong)) from None
        return read

    def to_spec(self) -> dict[str, Any]:
        """The declaration as plain values, what is default left out."""
        declared = {field.name: (getattr(self, field.name), field.default) for field in fields(self)}
        return {name: value for name, (value, default) in declared.items() if value != default}

    @property
    def has_plain_numbers(self) -> bool:
        """Whether numbers are written as Python writes them."""
        return self.decimal == "." and self.thousands is None


def _spelt(encoding: str) -> str:
    """The one spelling of an encoding: UTF8, utf_8 and utf-8 are the same.

    >>> _spelt("UTF8"), _spelt("ISO-8859-1"), _spelt("windows-1252")
    ('utf-8', 'latin-1', 'cp1252')
    """
    bare = encoding.lower().replace("_", "").replace("-", "").replace("windows", "cp")
    names = {name.replace("-", ""): name for name in ENCODINGS} | {
        "iso88591": "latin-1",
        "macintosh": "mac-roman",
    }
    return names.get(bare, encoding)


PLAIN = FileFormat()
