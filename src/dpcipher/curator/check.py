"""Private rows against a schema: every mismatch of every column at once. Curator only: it counts rows without noise, and writes no schema.

`measure` stops at the first cell that the schema refuses, and tells nothing about it. This is for the person who holds the rows and wants to know
all of it beforehand. A schema that is edited after looking at it was drawn from data, and needs a signature like a draft.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from dpcipher.curator.draft import persons
from dpcipher.curator.look import Look
from dpcipher.curator.mismatch import ColumnCheck, Finding, SchemaCheck, said_format
from dpcipher.io.detect import detect
from dpcipher.io.header import said_extra, spelling_hint
from dpcipher.io.numbers import number_columns
from dpcipher.io.read import Source, open_table
from dpcipher.schema.column import Column
from dpcipher.schema.format import FileFormat
from dpcipher.schema.rows import Zero
from dpcipher.schema.rules.atoms import Coded
from dpcipher.schema.rules.rule import BoundRule
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Bools, Codes


def check(schema: Schema, data: Any) -> SchemaCheck:
    """Compare private rows with a schema, signed or not. Curator only: what it says are exact counts of private rows."""
    format, wrong = _format(data, schema)
    source = open_table(data, format, numbers=number_columns(schema))
    absent = _absent(source, schema)
    present = {name: column for name, column in _judged(schema).items() if source.names.count(name) == 1}
    seen = _Seen(schema.on_grid().judging, {name: ColumnCheck(column) for name, column in present.items()})
    looks = {name: Look(name) for name in _perhaps_persons(source, schema)}
    wanted = list(dict.fromkeys([*present, *looks])) or _some_name(source)
    with closing(source.batches(wanted)) as batches:
        for batch in batches:
            seen.add(batch)
            for name, look in looks.items():
                look.add(batch.column(name))
    return SchemaCheck(
        seen.n_rows,
        len(schema.columns),
        said_extra(source.names, schema.names),
        (*wrong, *absent, *seen.findings()),
        format.to_spec() if wrong else {},
        ready=not schema.needs_signature or schema.signed,
        persons=persons(looks.values(), known=schema.person),
    )


def _perhaps_persons(source: Source, schema: Schema) -> list[str]:
    """The columns that may say whose row each is: the one that the schema names, else all that it leaves out."""
    once = [name for name in source.names if name and source.names.count(name) == 1]
    return [name for name in once if (name == schema.person if schema.person else name not in schema.names)]


def _judged(schema: Schema) -> dict[str, Column]:
    """The columns that a cell can contradict: those with open bins by their range, not those whose levels are to be found."""
    coded = schema.on_grid().judging  # as `measure` codes rows
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
    zeros: dict[int, Finding] = field(default_factory=dict)
    rules: dict[tuple[int, bool], Finding] = field(default_factory=dict)

    def add(self, batch: pa.RecordBatch) -> None:
        """Take in one batch."""
        codes = {name: look.add(batch.column(name), self.n_rows) for name, look in self.columns.items()}
        for place, inside in _inside_zeros(self.schema, codes):
            if inside.any():
                before = self.zeros.get(place) or _blank(self.schema.zeros[place])
                self.zeros[place] = before.more(np.flatnonzero(inside) + self.n_rows)
        for rule, refused, broken in _broken_rules(self.schema, codes):
            before = self.rules.get((rule.number, refused)) or _blank_rule(rule, refused)
            self.rules[rule.number, refused] = before.more(np.flatnonzero(broken) + self.n_rows)
        self.n_rows += batch.num_rows

    def findings(self) -> Iterator[Finding]:
        """All of them, in the order of the columns, then of the zeros and the rules."""
        for look in self.columns.values():
            yield from look.findings()
        yield from (self.zeros[place] for place in sorted(self.zeros))
        yield from (self.rules[place] for place in sorted(self.rules))


def _inside_zeros(schema: Schema, codes: dict[str, Codes]) -> Iterator[tuple[int, Bools]]:
    """The rows in each structural zero whose columns are all there; a row that a column refuses lies in none. Rows move as in `measure`."""
    order = sorted(range(len(schema.zeros)), key=lambda place: not schema.zeros[place].becomes)
    for place in order:
        zero = schema.zeros[place]
        if not {*zero.impossible, *zero.becomes} <= set(codes):
            continue
        whole = np.all([codes[name] >= 0 for name in zero.impossible], axis=0)
        inside = whole & zero.inside(schema, {name: np.maximum(codes[name], 0) for name in zero.impossible})
        yield place, inside
        for name, code in zero.moves(schema).items():
            codes[name] = np.where(inside, code, codes[name]).astype(np.int32)


def _blank(zero: Zero) -> Finding:
    fate = "they are moved as becomes says" if zero.becomes else "refused; say where they go with becomes"
    words = f"in a combination that is declared impossible; {fate}"
    return Finding(" and ".join(zero.impossible), "structural zero", words, refused=not zero.becomes)


def _broken_rules(schema: Schema, codes: dict[str, Codes]) -> Iterator[tuple[BoundRule, bool, Bools]]:
    """The rows that break each rule whose columns are all there: moved first, where it says where to; then those that are refused."""
    rules = [rule for rule in schema.compiled.rules if {*rule.columns, *rule.moves} <= set(codes)]
    for last in (False, True):
        for rule in rules:
            if not last and not (rule.moves or rule.map):
                continue
            whole = np.all([codes[name] >= 0 for name in rule.columns], axis=0)
            known = {name: np.maximum(code, 0) for name, code in codes.items()}
            broken = whole & rule.formula.truth(Coded(schema.compiled.columns, known)).broken
            if broken.any():
                yield rule, last, broken
            if broken.any() and not last:
                rule.move(codes, broken)


def _blank_rule(rule: BoundRule, refused: bool) -> Finding:
    fate = (
        "refused; say where they go with becomes or breaking: follow"
        if refused
        else "they are moved as it says"
    )
    return Finding(
        " and ".join(rule.columns),
        "rule",
        f"break rule {rule.number} ({rule.name:.60}); {fate}",
        refused=refused,
    )


def _format(data: object, schema: Schema) -> tuple[FileFormat, list[Finding]]:
    """How to read on, and what is wrong with the declared format: where it cannot be right, the file is read as what it seems to be."""
    declared, detected = schema.format, detect(data, schema.format)
    seems = detected.format
    better = replace(declared, separator=seems.separator)
    if seems.encoding != declared.encoding and _told_apart(declared, seems, detected.ascii):
        better = replace(better, encoding=seems.encoding)
    if detected.numbers & number_columns(schema):
        better = replace(better, decimal=seems.decimal, thousands=seems.thousands)
    if better == declared:
        return declared, []
    words = f"seems to be written otherwise than the schema says; try {said_format(better.to_spec())}. The rest of this list takes it so"
    return better, [Finding("", "format", words)]


def _told_apart(declared: FileFormat, seems: FileFormat, ascii: bool) -> bool:
    """Encodings of one byte cannot be told apart from another; UTF-8 and UTF-16 can be, if there is anything beyond ASCII."""
    return "utf-16" in (declared.encoding, seems.encoding) or (
        not ascii and "utf-8" in (declared.encoding, seems.encoding)
    )
