"""What a check of private rows against a schema finds: curator only, exact counts and places, never a value."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dpcipher.drawing.card import Card, CuratorOnly
from dpcipher.errors import DataError
from dpcipher.schema.binned import Binned
from dpcipher.schema.cells import as_text, by_type
from dpcipher.schema.column import Column
from dpcipher.tables.domain import Bools, Codes, Counts, Floats

FIRST_ROWS = 5
AFTERWARDS = (
    "A schema that is changed after looking at this was drawn from data: put `drawn_from_data: true` into it, and have a person check "
    "that it is public knowledge and sign it (dpcipher schema sign)."
)


@dataclass(frozen=True, repr=False)
class Finding(CuratorOnly):
    """One way in which rows and schema differ: of which column, how many rows, the first of them, and whether `measure` refuses them."""

    column: str
    problem: str
    meaning: str
    rows: int = 0
    first: tuple[int, ...] = ()
    refused: bool = True

    def more(self, places: Counts) -> "Finding":
        """With further rows, by their places from 0."""
        first = (*self.first, *(int(place) + 1 for place in places[:FIRST_ROWS]))[:FIRST_ROWS]
        return replace(self, rows=self.rows + len(places), first=first)

    @property
    def sentence(self) -> str:
        """The same in words."""
        name = self.column or "the file"
        if not self.rows:
            return f"{name}: {self.meaning}"
        more = ", …" if self.rows > len(self.first) else ""
        where = f"{', '.join(map(str, self.first))}{more}"
        return f"{name}: {self.rows:,} {'row' if self.rows == 1 else 'rows'}: {self.meaning} (row {where})"

    def _text(self) -> str:
        return self.sentence


@dataclass(frozen=True, repr=False)
class SchemaCheck(CuratorOnly):
    """All mismatches between private rows and a schema. `fits`: measuring would refuse no row. `ready`: the schema itself may be used.

    `format` is what the file seems to be, where that is not what the schema declares. `persons` says about how many there are.
    """

    n_rows: int
    n_columns: int
    extra: str
    findings: tuple[Finding, ...]
    format: dict[str, Any] = field(default_factory=dict)
    ready: bool = True
    persons: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether no row and no column would be refused."""
        return not any(finding.refused for finding in self.findings)

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each finding."""
        names = ["column", "problem", "rows", "first", "refused", "meaning"]
        return self._stamped_frame(
            pd.DataFrame([asdict(finding) for finding in self.findings], columns=names)
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, the warning first."""
        return self._stamped(
            {
                "n_rows": self.n_rows,
                "fits": self.fits,
                "ready": self.ready,
                "format": self.format,
                "findings": [asdict(finding) for finding in self.findings],
                "extra": self.extra,
                "persons": list(self.persons),
                "afterwards": AFTERWARDS,
            }
        )

    def _card(self) -> Card:
        return Card(
            "Check of rows against a schema",
            {
                "Rows": f"{self.n_rows:,}",
                "Columns": f"{self.n_columns:,}",
                "Fits": "yes" if self.fits else "no: measure would refuse rows",
                "Schema": "ready" if self.ready else "needs a signature",
            },
            ("column", "rows", "what"),
            [(item.column or "the file", f"{item.rows:,}", item.meaning) for item in self.findings],
            notes=[*self.persons, AFTERWARDS],
        )

    def _text(self) -> str:
        refused = [f"  {finding.sentence}" for finding in self.findings if finding.refused]
        moved = [f"  {finding.sentence}" for finding in self.findings if not finding.refused]
        lines = [f"{self.n_rows:,} rows against {self.n_columns} columns of the schema."]
        lines += [f"{self.extra}."] if self.extra else []
        lines += self.persons
        lines += ["Refused by measure:", *refused] if refused else ["Measure would refuse no row."]
        lines += ["Handled as the schema says:", *moved] if moved else []
        lines += (
            [] if self.ready else ["The schema needs a signature, and measure refuses it until it is signed."]
        )
        return "\n".join([*lines, AFTERWARDS])


@dataclass
class ColumnCheck:
    """What is seen of one column, batch by batch."""

    column: Column
    seen: dict[str, Finding] = field(default_factory=dict)

    def add(self, cells: pa.Array, start: int) -> Codes:
        """Take in a batch whose first row has place `start`; gives the codes, negative where the cell is refused."""
        absent, unlisted, codes = self.column.judged(cells)
        self._count("missing", absent, start)
        for problem, rows in self._kinds(cells, codes, absent, unlisted):
            self._count(problem, rows, start)
        for rows, code in (
            (absent, _allowed(self.column, "missing")),
            (unlisted, _allowed(self.column, "other")),
        ):
            codes[rows] = code
        return codes

    def _kinds(
        self, cells: pa.Array, codes: Codes, absent: Bools, unlisted: Bools
    ) -> Iterator[tuple[str, Bools]]:
        """In what ways cells are not declared; with `other: nearest` those outside the range count too."""
        domain = self.column.domain
        spaced = self._spaced(cells, unlisted)
        yield "spaces", spaced
        unlisted = unlisted & ~spaced
        if not isinstance(domain, Binned):
            yield "undeclared", unlisted
            return
        numbers = _numbers(cells, domain.numbers)
        declared = (codes >= 0) & (codes < domain.n_bins)  # special values lie where they like
        judged = (unlisted | declared) & ~absent
        low, high = domain.edges[0], domain.edges[-1]
        below, above = (
            judged & (numbers < low),
            judged & ((numbers >= high) if domain.whole else (numbers > high)),
        )
        yield "below the range", below
        yield "above the range", above
        yield "no number", unlisted & np.isnan(numbers)
        yield "not whole", unlisted & ~np.isnan(numbers) & ~below & ~above

    def _spaced(self, cells: pa.Array, unlisted: Bools) -> Bools:
        """The cells that are not declared, but would be without the spaces around them."""
        spaced = np.zeros(len(unlisted), dtype=bool)
        if unlisted.any():
            texts = by_type(cells.filter(pa.array(unlisted)), as_text)
            spaced[unlisted] = self.column.judged(pc.utf8_trim_whitespace(texts))[2] >= 0
        return spaced

    def _count(self, problem: str, rows: Bools, start: int) -> None:
        if rows.any():
            before = self.seen.get(problem) or self._blank(problem)
            self.seen[problem] = before.more(np.flatnonzero(rows) + start)

    def _blank(self, problem: str) -> Finding:
        column, about = self.column, "missing" if problem == "missing" else "other"
        refused = _allowed(column, about) < 0
        if (
            about == "other"
            and column.other == "nearest"
            and problem in ("below the range", "above the range")
        ):
            refused = False
        thing = column.kind if column.kind in ("date", "time") else "number"
        words = _WORDS[problem].replace("number", thing)
        fate = f"refused ({about}: {getattr(column, about)})" if refused else _fate(column, about)
        return Finding(column.name, problem, f"{words}; {fate}", refused=refused)

    def findings(self) -> Iterator[Finding]:
        """All of them, in a fixed order."""
        return (self.seen[problem] for problem in _WORDS if problem in self.seen)


_WORDS = {
    "missing": "missing values",
    "spaces": "values that are declared, but for the spaces around them, which count; take them away in the table",
    "undeclared": "values that are not among the levels",
    "below the range": "numbers below the declared range",
    "above the range": "numbers above the declared range",
    "no number": "cells that are no number",
    "not whole": "numbers that are not whole",
}


def _fate(column: Column, about: str) -> str:
    if about == "missing":
        return "a level of their own"
    return "they go to the nearest bin" if column.other == "nearest" else f"they become {column.other!r}"


def _allowed(column: Column, about: str) -> int:
    """The code that missing or other cells get, -1 where they are refused."""
    try:
        return column.missing_code if about == "missing" else column.other_code
    except DataError:
        return -1


def _numbers(cells: pa.Array, read: Callable[[pa.Array], Floats]) -> Floats:
    return np.asarray(
        by_type(cells, lambda part: pa.array(read(part))).to_numpy(zero_copy_only=False), dtype=np.float64
    )


def said_format(spec: dict[str, Any]) -> str:
    """A format as a schema file holds it.

    >>> said_format({"separator": ";", "decimal": ","})
    'format: {separator: ";", decimal: ","}'
    """
    inside = ", ".join(
        f'{key}: "{value}"' if len(value) == 1 else f"{key}: {value}" for key, value in spec.items()
    )
    return f"format: {{{inside}}}".replace("\t", "\\t")
