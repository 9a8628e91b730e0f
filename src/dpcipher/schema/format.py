"""How a table's text files are written: separator, encoding, decimal mark. Facts of the schema, never guessed while private rows are measured.

One row could change a guess, and with it the code of every other row. So `draft` and `check` may look and propose, and a person declares.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from dpcipher.errors import SchemaError, did_you_mean

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


@dataclass(frozen=True)
class FileFormat:
    """How CSV and TSV files of a table are written; what is not declared is as in a plain CSV file.

    `separator` stands between cells: by default a comma, in a file whose name ends in .tsv a tab. `decimal` and `thousands` are the marks
    inside numbers, of columns that hold numbers. `quote` goes around cells that hold separators; "none" takes quotes as they are.

    >>> FileFormat.from_spec({"separator": "semicolon", "decimal": ","}).to_spec()
    {'separator': ';', 'decimal': ','}
    """

    separator: str | None = None
    encoding: str = "utf-8"
    decimal: str = "."
    thousands: str | None = None
    quote: str = '"'

    def __post_init__(self) -> None:
        object.__setattr__(self, "separator", SEPARATORS.get(str(self.separator), self.separator))
        if isinstance(self.encoding, str):
            object.__setattr__(self, "encoding", _spelt(self.encoding))
        _check("separator", self.separator, (None, *MARKS), "comma, semicolon, tab, pipe, or one of : ~ ^")
        _check("encoding", self.encoding, ENCODINGS, f"one of {', '.join(ENCODINGS)}")
        _check("decimal", self.decimal, DECIMALS, "'.' or ','")
        _check("thousands", self.thousands, (None, *THOUSANDS), "left out, or one of , . ' _ and a space")
        _check("quote", self.quote, QUOTES, "\", ' or none")
        if self.thousands == self.decimal:
            raise SchemaError("format: thousands and decimal must be different marks; leave thousands out")
        if self.thousands == self.quote:
            raise SchemaError("format: thousands and quote must be different marks; change quote")

    @classmethod
    def from_spec(cls, spec: object) -> "FileFormat":
        """The format that a schema file declares."""
        known = [field.name for field in fields(cls)]
        if not isinstance(spec, Mapping):
            raise SchemaError('format must be a mapping; try format: {separator: ";", decimal: ","}')
        for key in spec:
            if key not in known:
                raise SchemaError(f"format: unknown key {key!r:.60}{did_you_mean(str(key), known)}")
        return cls(**{str(key): value for key, value in spec.items()})

    def to_spec(self) -> dict[str, Any]:
        """The declaration as plain values, what is default left out."""
        declared = {field.name: (getattr(self, field.name), field.default) for field in fields(self)}
        return {name: value for name, (value, default) in declared.items() if value != default}

    @property
    def has_plain_numbers(self) -> bool:
        """Whether numbers are written as Python writes them."""
        return self.decimal == "." and self.thousands is None


def _check(name: str, value: object, allowed: tuple[str | None, ...], rule: str) -> None:
    if value not in allowed:
        hint = did_you_mean(str(value), [word for word in allowed if word and len(word) > 1])
        raise SchemaError(f"format: {name} ({value!r:.40}) must be {rule}{hint}")


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
