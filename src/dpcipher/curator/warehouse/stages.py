"""From an engine's table to coded rows, as named steps of one query.

    cells (what was read) ─▶ found (in long lists of levels) ─▶ codes ─▶ moved … ─▶ coded (attributes, refusals, owners) ─▶ counted (at most max_rows of a person)

Every step takes a row by itself, except the last, which compares the rows of one person with one another and with nobody else's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcipher.curator.persons import HASH_PRIME, hash_weights
from dpcipher.curator.request import Person
from dpcipher.curator.warehouse.cell_types import cells_of
from dpcipher.curator.warehouse.cells import Cells, Needs
from dpcipher.curator.warehouse.expressions import Expr, ibis
from dpcipher.curator.warehouse.look_ups import LookUp, found_query, is_long
from dpcipher.curator.warehouse.marks import UNLISTED, check_size, mark, refusals
from dpcipher.curator.warehouse.moves import Refusal, moves, refused_rows
from dpcipher.curator.warehouse.readings import Reader
from dpcipher.marginals.arrays import Codes
from dpcipher.schema.column import Column
from dpcipher.schema.narrow import ABSENT
from dpcipher.schema.schema import Schema

PROBE = "number of the probe"


@dataclass(frozen=True)
class Written:
    """A step in SQL of ours, with the columns that it has."""

    sql: str
    columns: Any = None

    def schema(self) -> Any:
        """The columns and their types."""
        return self.columns


Step = tuple[str, Expr | Written]  # a name, and an ibis table or SQL that reads the steps before


@dataclass(frozen=True)
class Coding:
    """The steps, the name of the last, and what a refusal says, by its number."""

    steps: tuple[Step, ...]
    last: str
    messages: tuple[str, ...]


def coding(table: Expr, schema: Schema, person: Person | None, reader: Reader) -> Coding:
    """All steps for a table; whatever cannot be said in SQL is refused here, by name."""
    steps = code_steps(table, schema.judging, person, reader)
    places = {name: f"m{place}" for place, name in enumerate(schema.names)}
    for number, move in enumerate(moves(schema.judging), start=1):
        last = _named(steps)
        changed = move(_row(schema, last))
        steps.append(
            (f"moved{number}", last.mutate(**{places[name]: code for name, code in changed.items()}))
        )
    coded, messages = _coded(_named(steps), schema, person)
    steps.append(("coded", coded))
    if person is not None:
        limited = _limited(len(schema.attrs), person.max_rows, bool(messages))
        steps.append(("counted", Written(limited)))
    return Coding(tuple(steps), steps[-1][0], messages)


def column_cells(table: Expr, column: Column, reader: Reader) -> Cells:
    """How the cells of a column are read, by the type that its engine gives it."""
    cells = cells_of(column.name, table[column.name].type(), Needs.of(column), reader)
    check_size(column, cells)
    return cells


def code_steps(table: Expr, schema: Schema, person: Person | None, reader: Reader) -> list[Step]:
    """The steps from cells to codes."""
    steps: list[Step] = [("cells", _cells(table, schema, person, reader))]
    cells = [column_cells(table, column, reader) for column in schema.columns]
    looks = [
        LookUp(place, column, each.needs.kind)
        for place, (column, each) in enumerate(zip(schema.columns, cells, strict=True))
        if is_long(column)
    ]
    if looks:
        steps.append(("valued", _valued(_named(steps), cells, looks)))
        last = _named(steps)
        steps += [(name, Written(text)) for look in looks for name, text in look.lists()]
        found = {name: "int32" for look in looks for name in look.found}
        columns = ibis.schema({**dict(last.schema().items()), **found})
        steps.append(("found", Written(found_query("valued", looks), columns)))
    return [*steps, ("codes", _codes(_named(steps), schema, cells))]


def _valued(read: Expr, cells: Sequence[Cells], looks: Sequence[LookUp]) -> Expr:
    """With the text and the number by which each long column is looked up; null where a cell has none."""
    more: dict[str, Expr] = {}
    for look in looks:
        own = _own(read, look.place)
        each = cells[look.place]
        number = each.number(own) if look.kind == "text" else getattr(each, look.kind)(own)
        text = each.text(own)
        more[f"s{look.place}"] = ibis.null("string") if text is None else text
        more[f"v{look.place}"] = ibis.null("float64") if number is None else number.cast("float64")
    return read.mutate(**more)


def _own(read: Expr, place: int) -> dict[str, Expr]:
    """What was read from one column."""
    return {key: read[f"{key}{place}"] for key in "xnrtsvkjb" if f"{key}{place}" in read.columns}


def _named(steps: Sequence[Step]) -> Expr:
    """The last step as a table to read from."""
    name, step = steps[-1]
    return ibis.table(step.schema(), name=name)


def _cells(table: Expr, schema: Schema, person: Person | None, reader: Reader) -> Expr:
    read: dict[str, Any] = {}
    for place, column in enumerate(schema.columns):
        cells = column_cells(table, column, reader)
        read |= {f"{key}{place}": value for key, value in cells.read(table[column.name]).items()}
    if person is not None:
        nothing = Needs((), False, False, "text")
        cell = table[person.column]
        read["owner"] = cells_of(person.column, cell.type(), nothing, reader).owner(cell)
    return table.select(**read, **_carried(table, schema))


def _carried(table: Expr, schema: Schema) -> dict[str, Expr]:
    """A number that says which cell is which, where cells are tried out."""
    return {"probe": table[PROBE]} if PROBE in table.columns else {}


def _codes(read: Expr, schema: Schema, cells: Sequence[Cells]) -> Expr:
    codes = {
        f"m{place}": mark(column, cells[place], _own(read, place))
        for place, column in enumerate(schema.columns)
    }
    kept = {name: read[name] for name in ("owner", "probe") if name in read.columns}
    return read.select(**codes, **kept)


def _row(schema: Schema, codes: Expr) -> dict[str, Expr]:
    return {column.name: codes[f"m{place}"] for place, column in enumerate(schema.columns)}


def _coded(codes: Expr, schema: Schema, person: Person | None) -> tuple[Expr, tuple[str, ...]]:
    """Attributes, each the code of a column or of a compound; whose row it is; and the first reason to refuse it."""
    row = _row(schema, codes)
    if person is not None and person.missing == "drop":
        codes = codes.filter(codes["owner"].notnull())
        row = _row(schema, codes)
    judging = schema.judging
    refused = [*_person_refusals(codes, person), *_cell_refusals(judging, row), *refused_rows(judging, row)]
    read: dict[str, Expr] = {
        f"a{axis}": _in_bins(_crossed(judging, attr, row), schema.bins_of_cells.get(axis))
        for axis, attr in enumerate(schema.attrs)
    }
    if refused:
        tests = ((refusal.rows, number) for number, refusal in enumerate(refused))
        read["refusal"] = ibis.cases(*tests, else_=None)
    if person is not None:
        read["owner"] = codes["owner"]
    return codes.select(**read), tuple(refusal.message for refusal in refused)


def _crossed(schema: Schema, attr: str, row: dict[str, Expr]) -> Expr:
    code = None
    for part in schema.parts(attr):
        code = row[part.name] if code is None else code * part.size + row[part.name]
    assert code is not None
    return code.cast("int32")


def _in_bins(code: Expr, bins: Codes | None) -> Expr:
    """The bin of a cell of the grid by which rows were judged; levels behind the bins follow them, as they did."""
    if bins is None:
        return code
    stops = np.flatnonzero(np.diff(bins)) + 1  # bins follow one another, and so do the levels behind them
    runs = ((code < int(stop), int(bins[stop - 1])) for stop in stops)
    return ibis.cases(*runs, else_=int(bins[-1])).cast("int32")


def _person_refusals(codes: Expr, person: Person | None) -> list[Refusal]:
    if person is None or person.missing == "drop":
        return []
    return [
        Refusal(
            codes["owner"].isnull(),
            f"person column ({person.column}) has rows without a person; every row must say whose it is. Curator only: "
            "fill the column, or leave such rows out with missing_person='drop'",
        )
    ]


def _cell_refusals(schema: Schema, row: dict[str, Expr]) -> list[Refusal]:
    refused = []
    for column in schema.columns:
        absent, unlisted = refusals(column)
        if absent < 0:
            refused.append(
                Refusal(
                    row[column.name] == ABSENT,
                    f"column {column.name!r}: missing values are refused (missing: refuse); "
                    "declare missing: level in the schema, or leave out such rows",
                )
            )
        if unlisted < 0:
            refused.append(
                Refusal(
                    row[column.name] == UNLISTED,
                    f"column {column.name!r}: values that the schema does not declare are refused (other: {column.other}); "
                    "declare them, or say where they go with other",
                )
            )
    return refused


def _limited(n_attrs: int, max_rows: int, refuses: bool) -> str:
    """At most `max_rows` of each person: those with the smallest hash of their codes, as files have it (`curator.persons`).

    Stability `max_rows`: rows are ranked within their person. Rows of equal hash are ranked by their codes, and equal rows count alike: how the
    table is stored decides nothing. A row to be refused comes first, so that it is seen.
    """
    names = [f"a{axis}" for axis in range(n_attrs)]
    sums = [
        f"({' + '.join([str(start), *(f'CAST({name} AS BIGINT) * {weight} % {HASH_PRIME}' for name, weight in zip(names, weights, strict=True))])}) % {HASH_PRIME}"
        for start, weights in hash_weights(n_attrs)
    ]
    kept = ", ".join([*names, *(["refusal"] if refuses else [])])
    first = ["CASE WHEN refusal IS NULL THEN 1 ELSE 0 END"] if refuses else []
    order = ", ".join([*first, *(_fifth_power(f"h{number}") for number in range(len(sums))), *names])
    hashes = ", ".join(f"{total} AS h{number}" for number, total in enumerate(sums))
    return (
        f"SELECT {kept} FROM (SELECT {kept}, ROW_NUMBER() OVER (PARTITION BY owner ORDER BY {order}) AS place "
        f"FROM (SELECT {kept}, owner, {hashes} FROM coded) AS hashed) AS ranked WHERE place <= {max_rows}"
    )


def _fifth_power(name: str) -> str:
    """A permutation of the numbers below the prime: 5 does not divide it less one."""
    square = f"({name} * {name} % {HASH_PRIME})"
    return f"{square} * {square} % {HASH_PRIME} * {name} % {HASH_PRIME}"
