"""Every mismatch of rows and a schema at once."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dpcipher.curator.draft import persons
from dpcipher.curator.profile import ColumnProfile
from dpcipher.drawing.card import Card, CuratorOnly
from dpcipher.errors import DataError
from dpcipher.io.header import describe_ignored, spelling_hint
from dpcipher.io.sniff import guess_format
from dpcipher.io.source import Source, number_columns, open_table
from dpcipher.schema.cells import as_text, by_type
from dpcipher.schema.columns import Column
from dpcipher.schema.cut import Cut
from dpcipher.schema.format import FileFormat
from dpcipher.schema.rules.compiled import Rules
from dpcipher.schema.rules.logic import PrivateCodes
from dpcipher.schema.rules.rule import BoundRule
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Bools, Codes, Counts

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
        codes[absent], codes[unlisted] = _allowed(self.column, "missing"), _allowed(self.column, "other")
        return codes

    def _kinds(
        self, cells: pa.Array, codes: Codes, absent: Bools, unlisted: Bools
    ) -> Iterator[tuple[str, Bools]]:
        """In what ways cells are not declared; with `other: nearest` those outside the range count too."""
        spaced = self._spaced(cells, unlisted)
        yield "spaces", spaced
        unlisted = unlisted & ~spaced
        if not isinstance(self.column, Cut):
            yield "undeclared", unlisted
            return
        domain, scale = self.column.domain, self.column.scale
        read = by_type(cells, lambda part: pa.array(scale.read(part))).to_numpy(zero_copy_only=False)
        numbers = np.asarray(read, dtype=np.float64)
        declared = (codes >= 0) & (codes < domain.n_bins)  # special values may lie outside the edges
        judged = (unlisted | declared) & ~absent
        low, high = domain.edges[0], domain.edges[-1]
        below = judged & (numbers < low)
        above = judged & ((numbers >= high) if scale.whole else (numbers > high))
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
        outside = problem in ("below the range", "above the range")
        refused = _allowed(column, about) < 0 and not (outside and column.other == "nearest")
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


def describe_format(spec: dict[str, Any]) -> str:
    """A format as a schema file holds it.

    >>> describe_format({"separator": ";", "decimal": ","})
    'format: {separator: ";", decimal: ","}'
    """
    inside = ", ".join(
        f'{key}: "{value}"' if len(value) == 1 else f"{key}: {value}" for key, value in spec.items()
    )
    return f"format: {{{inside}}}".replace("\t", "\\t")


def check(schema: Schema, data: Any) -> SchemaCheck:
    """Compare private rows with a schema, signed or not. Curator only: what it says are exact counts of private rows."""
    format, wrong = _format(data, schema)
    source = open_table(data, format, numbers=number_columns(schema))
    absent = _absent(source, schema)
    present = {name: column for name, column in _judged(schema).items() if source.names.count(name) == 1}
    seen = _Seen(schema.on_grid(), {name: ColumnCheck(column) for name, column in present.items()})
    profiles = {name: ColumnProfile(name) for name in _perhaps_persons(source, schema)}
    wanted = list(dict.fromkeys([*present, *profiles])) or _some_name(source)
    with closing(source.batches(wanted)) as batches:
        for batch in batches:
            seen.add(batch)
            for name, profile in profiles.items():
                profile.add(batch.column(name))
    return SchemaCheck(
        seen.n_rows,
        len(schema.columns),
        describe_ignored(source.names, schema.names),
        (*wrong, *absent, *seen.findings()),
        format.to_spec() if wrong else {},
        ready=not schema.needs_signature or schema.signed,
        persons=persons(profiles.values(), known=schema.person),
    )


def _perhaps_persons(source: Source, schema: Schema) -> list[str]:
    """The columns that may say whose row each is: the one that the schema names, else all that it leaves out."""
    once = [name for name in source.names if name and source.names.count(name) == 1]
    return [name for name in once if (name == schema.person if schema.person else name not in schema.names)]


def _judged(schema: Schema) -> dict[str, Column]:
    """The columns that a cell can contradict: those with open bins by their range, not those whose levels are to be found."""
    coded = schema.on_grid()  # as `measure` codes rows
    return {column.name: coded.column(column.name) for column in schema.columns if not column.discovers}


def _some_name(source: Source) -> list[str]:
    """A column to count the rows by, where none is wanted."""
    return [name for name in source.names if source.names.count(name) == 1][:1]


def _absent(source: Source, schema: Schema) -> list[Finding]:
    """The columns that are not there, or more than once; where none is there, also what that may mean."""
    names = source.names
    findings = [_named(name, names, schema.names) for name in schema.names if names.count(name) != 1]
    if schema.person and schema.person not in names:
        findings.append(_named(schema.person, names, [*schema.names, schema.person]))
    near = any(name in names or spelling_hint(names, schema.names, name) for name in schema.names)
    if source.is_text and not near:
        words = "none of the columns is there; a text file needs a header line with their names"
        return [Finding("", "name", words), *findings]
    return findings


def _named(name: str, names: Sequence[str], columns: Sequence[str]) -> Finding:
    times = names.count(name)
    if times > 1:
        return Finding(name, "name", f"{times} columns of the table are called so; rename or drop the others")
    return Finding(name, "name", f"the table has no such column{spelling_hint(names, columns, name)}")


@dataclass
class _Seen:
    """What was seen so far, batch by batch."""

    schema: Schema
    columns: Mapping[str, ColumnCheck]
    n_rows: int = 0
    rules: dict[tuple[bool, int, bool], Finding] = field(default_factory=dict)

    def add(self, batch: pa.RecordBatch) -> None:
        """Take in one batch."""
        codes = {name: check.add(batch.column(name), self.n_rows) for name, check in self.columns.items()}
        for rule, refused, broken in _broken(self.schema.compiled, codes):
            key = rule.zero is None, rule.number, refused
            before = self.rules.get(key) or _blank_rule(rule, refused)
            self.rules[key] = before.more(np.flatnonzero(broken) + self.n_rows)
        self.n_rows += batch.num_rows

    def findings(self) -> Iterator[Finding]:
        """All of them, in the order of the columns, then of the zeros and the rules."""
        for check in self.columns.values():
            yield from check.findings()
        yield from (self.rules[key] for key in sorted(self.rules))


def _broken(rules: Rules, codes: dict[str, Codes]) -> Iterator[tuple[BoundRule, bool, Bools]]:
    """The rows that break each zero and rule whose columns are all there, as in `measure`: first those that it moves, then those that it refuses.

    A row that a column refuses breaks none.
    """
    present = [rule for rule in (*rules.zeros, *rules.rules) if {*rule.columns, *rule.moves} <= set(codes)]
    for last in (False, True):
        for rule in present:
            if not last and not (rule.moves or rule.map):
                continue
            known = {name: np.maximum(codes[name], 0) for name in rule.columns}
            whole = np.all([codes[name] >= 0 for name in rule.columns], axis=0)
            broken = whole & rule.broken(PrivateCodes(rules.columns, known))
            if broken.any():
                yield rule, last, broken
                if not last:
                    rule.move(codes, broken)


def _blank_rule(rule: BoundRule, refused: bool) -> Finding:
    names = " and ".join(rule.columns)
    if rule.zero is not None:
        fate = "refused; say where they go with becomes" if refused else "they are moved as becomes says"
        words = f"in a combination that is declared impossible; {fate}"
        return Finding(names, "structural zero", words, refused=refused)
    fate = (
        "refused; say where they go with becomes or breaking: follow"
        if refused
        else "they are moved as it says"
    )
    return Finding(names, "rule", f"break rule {rule.number} ({rule.name:.60}); {fate}", refused=refused)


def _format(data: object, schema: Schema) -> tuple[FileFormat, list[Finding]]:
    """How to read on, and what is wrong with the declared format: where it cannot be right, the file is read as what it seems to be."""
    declared, detected = schema.format, guess_format(data, schema.format)
    seems = detected.format
    better = replace(declared, separator=seems.separator)
    if seems.encoding != declared.encoding and _told_apart(declared, seems, detected.ascii):
        better = replace(better, encoding=seems.encoding)
    if detected.numbers & number_columns(schema):
        better = replace(better, decimal=seems.decimal, thousands=seems.thousands)
    if better == declared:
        return declared, []
    words = f"seems to be written otherwise than the schema says; try {describe_format(better.to_spec())}. The rest of this list takes it so"
    return better, [Finding("", "format", words)]


def _told_apart(declared: FileFormat, seems: FileFormat, ascii: bool) -> bool:
    """Encodings of one byte cannot be told apart from another; UTF-8 and UTF-16 can be, if there is anything beyond ASCII."""
    return "utf-16" in (declared.encoding, seems.encoding) or (
        not ascii and "utf-8" in (declared.encoding, seems.encoding)
    )
