"""The cells of an engine's column, by their type: what is read from each in a first step, and what that says.

The first step names what was read (`x` the value, `n` a number, `r` a day, second or truth value), so that no later expression reads it again.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from dpcipher.curator.warehouse import patterns
from dpcipher.curator.warehouse.expressions import Expr, double, ibis, looked_up
from dpcipher.curator.warehouse.readings import Reader, day_of, owner_of, second_of, truth_of
from dpcipher.schema.binned import Binned
from dpcipher.schema.cells import as_text
from dpcipher.schema.column import Column
from dpcipher.schema.listed import Listed
from dpcipher.schema.points import EXACT

Read = Mapping[str, Expr]
_LARGEST = 2**63 - 1
FEW = 64  # texts that are worth a look before they are read as numbers


@dataclass(frozen=True)
class Needs:
    """What a column asks of its cells: the texts that stand for its levels, and which readings."""

    known: tuple[str, ...]  # texts that say what they are, and need not be read as numbers
    texts: bool
    number: bool
    kind: str  # what its levels are found by: text, number, truth, day or second

    @classmethod
    def of(cls, column: Column) -> "Needs":
        """The readings that levels and codes for missing values need."""
        missing, kind = column.missing_codes.listed, _kind(column)
        levels = column.domain.spellings if isinstance(column.domain, Listed) else {}
        # A level may be the same number as a code for missing values, which goes first.
        known = column.missing_codes.spellings if missing else levels
        numbers = bool(missing and missing.numbers) or kind in ("number", "truth")
        if isinstance(column.domain, Listed) and kind == "text":
            numbers |= bool(column.domain.numbers)
        few = tuple(known) if len(known) <= FEW else ()
        return cls(few, bool(known or levels), numbers, kind)


def _kind(column: Column) -> str:
    if isinstance(column.domain, Binned):
        return {"date": "day", "time": "second"}.get(column.domain.kind, "number")
    level = column.domain.levels[0]
    return "truth" if isinstance(level, bool) else "text" if isinstance(level, str) else "number"


class Cells(ABC):
    """Cells of one type. Unless a type says otherwise it has no text, is no number, no day and no time."""

    has_text = False  # whether `text` says what it is

    def __init__(self, needs: Needs, reader: Reader) -> None:
        self.needs, self.reader = needs, reader

    def read(self, cell: Expr) -> dict[str, Expr]:
        """The first step."""
        return {"x": cell}

    def absent(self, read: Read) -> Expr:
        """Whether the cell holds nothing."""
        return read["x"].isnull()

    def blank(self, read: Read) -> Expr | None:
        """Whether it holds nothing unless a level is called so."""
        return None

    @abstractmethod
    def text_code(self, read: Read, codes: Mapping[str, int]) -> Expr | None:
        """The code of the level whose text is the text of the cell."""

    def text(self, read: Read) -> Expr | None:
        """The text of the cell, where its engine can tell."""
        return None

    def number(self, read: Read) -> Expr | None:
        """The cell as a number."""
        return None

    def truth(self, read: Read) -> Expr | None:
        """The cell as 1 or 0, or another number."""
        return self.number(read)

    def day(self, read: Read) -> Expr | None:
        """The cell as days since 1970-01-01."""
        return None

    def second(self, read: Read) -> Expr | None:
        """The cell as seconds since midnight."""
        return None

    def owner(self, cell: Expr) -> Expr:
        """Whose row it is, as text."""
        return owner_of(cell.cast("string"))


class TextCells(Cells):
    """Texts of every kind. Joining an empty text makes plain text of enumerations, padded and caseless texts."""

    has_text = True

    def read(self, cell: Expr) -> dict[str, Expr]:
        """Number, day or time once; a text that is a level itself need not be read as anything else."""
        text = cell + ""
        read = {"x": text}
        if self.needs.number:
            number = self.reader.number(text)
            known = self.needs.known
            read["n"] = ibis.cases((text.isin(known), None), else_=number) if known else number
        if self.needs.kind == "truth":
            read["r"] = truth_of(text, self.reader.number(text))
        elif self.needs.kind in ("day", "second"):
            read["r"] = day_of(text) if self.needs.kind == "day" else second_of(text)
        return read

    def blank(self, read: Read) -> Expr | None:
        """An empty text, or a written-out NaN."""
        return read["x"].isin(patterns.BLANK)

    def text(self, read: Read) -> Expr | None:
        """The text as it is."""
        return read["x"]

    def text_code(self, read: Read, codes: Mapping[str, int]) -> Expr | None:
        """The text as it is."""
        return looked_up(read["x"], codes)

    def number(self, read: Read) -> Expr | None:
        """What the text says as a number."""
        return read.get("n")

    def truth(self, read: Read) -> Expr | None:
        """What the text says as a truth value."""
        return read["r"]

    def day(self, read: Read) -> Expr | None:
        """What the text says as a day."""
        return read["r"]

    def second(self, read: Read) -> Expr | None:
        """What the text says as a time."""
        return read["r"]

    def owner(self, cell: Expr) -> Expr:
        """The text, canonical."""
        return owner_of(cell + "")


class NamedCells(TextCells):
    """Cells that are known by their text: UUIDs."""

    def read(self, cell: Expr) -> dict[str, Expr]:
        """As text."""
        return super().read(cell.cast("string"))

    def owner(self, cell: Expr) -> Expr:
        """As text."""
        return owner_of(cell.cast("string"))


class WholeCells(Cells):
    """Whole numbers of any width."""

    has_text = True

    def read(self, cell: Expr) -> dict[str, Expr]:
        """As signed numbers; what is too large for them is larger than every level."""
        if not cell.type().is_unsigned_integer():
            return {"x": cell}
        return {"x": ibis.cases((cell > _LARGEST, _LARGEST), else_=cell.cast("int64"))}

    def text_code(self, read: Read, codes: Mapping[str, int]) -> Expr | None:
        """Levels that are the digits of a whole number."""
        whole = {text: code for text, code in codes.items() if text.lstrip("-").isdecimal()}
        exact = {int(text): code for text, code in whole.items() if str(int(text)) == text}
        return looked_up(read["x"], {value: code for value, code in exact.items() if abs(value) < 2**63})

    def text(self, read: Read) -> Expr | None:
        """The digits."""
        return read["x"].cast("string")

    def number(self, read: Read) -> Expr | None:
        """The number itself."""
        return read["x"]


class FloatCells(Cells):
    """Floats; NaN is nothing."""

    def read(self, cell: Expr) -> dict[str, Expr]:
        """Null for NaN, which engines hold to be larger than every number."""
        return {"x": ibis.cases((cell.isnan(), None), else_=cell.cast("float64"))}

    def text_code(self, read: Read, codes: Mapping[str, int]) -> Expr | None:
        """Levels that are the shortest text of a float."""
        values = {value: code for text, code in codes.items() if (value := _float_of(text)) is not None}
        return looked_up(read["x"], {double(value): code for value, code in values.items()})

    def number(self, read: Read) -> Expr | None:
        """The number itself."""
        return read["x"]

    def owner(self, cell: Expr) -> Expr:
        """Whole numbers as whole numbers, others by their text."""
        near = ibis.cases((cell.between(double(-EXACT), double(EXACT)), cell.floor()), else_=None)
        whole = ibis.cases((near == cell, near.cast("string")), else_=cell.cast("string"))
        return ibis.cases((cell.isnan(), None), else_=whole)


class DecimalCells(Cells):
    """Decimals of any scale."""

    has_text = True

    def read(self, cell: Expr) -> dict[str, Expr]:
        """The digits without zeros at the end, and the nearest float; null where there is none."""
        number = self.reader.decimal(cell)
        read = {"x": number}
        if self.needs.texts:
            digits = cell.cast("string")
            digits = digits.re_replace("([.][0-9]*[1-9])0+$", r"\1").re_replace("[.]0*$", "")
            read["t"] = digits
        return read

    def text(self, read: Read) -> Expr | None:
        """The digits."""
        return read.get("t")

    def text_code(self, read: Read, codes: Mapping[str, int]) -> Expr | None:
        """The digits."""
        return looked_up(read["t"], codes) if "t" in read else None

    def number(self, read: Read) -> Expr | None:
        """The nearest float."""
        return read["x"]

    def owner(self, cell: Expr) -> Expr:
        """The digits, canonical."""
        return owner_of(cell.cast("string").re_replace("([.][0-9]*[1-9])0+$", r"\1"))


class TruthCells(Cells):
    """True and false."""

    def text_code(self, read: Read, codes: Mapping[str, int]) -> Expr | None:
        """The words true and false."""
        known = {word == "true": codes[word] for word in ("true", "false") if word in codes}
        return looked_up(read["x"], known)

    def number(self, read: Read) -> Expr | None:
        """1 and 0."""
        return read["x"].cases((True, 1), (False, 0), else_=None)


def _float_of(text: str) -> float | None:
    """The float whose shortest text this is."""
    try:
        value = float(text)
    except ValueError:
        return None
    return None if math.isnan(value) or as_text(pa.array([value]))[0].as_py() != text else value
