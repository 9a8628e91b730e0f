"""Does an engine read cells as files are read? Asked with public cells, before any private row is touched.

For every column a list of cells follows from the schema alone: its levels and edges, what lies beside them, and what engines are known to read each in
their own way. The engine encodes them with the very expressions that will encode the table, and every code must be the one that files give. So an
engine, a version or a setting that differs is refused by name, and nothing is spent.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpcipher.curator.request import Person
from dpcipher.curator.warehouse.engines import Engine, saying_nothing
from dpcipher.curator.warehouse.expressions import Expr, ibis
from dpcipher.curator.warehouse.marks import refusals
from dpcipher.curator.warehouse.public_cells import public_cells
from dpcipher.curator.warehouse.queries import Query
from dpcipher.curator.warehouse.stages import PROBE, code_steps, column_cells
from dpcipher.errors import ParameterError
from dpcipher.schema.column import Column
from dpcipher.schema.schema import Schema

NO_CODE = -9
_ALIKE = (("a", "A"), ("e", "\u00e9"), ("a", "a "), ("a", "-a"), ("\uff41", "a"))


def check_reading(table: Expr, schema: Schema, person: Person | None, engine: Engine) -> None:
    """Refuse an engine that gives a public cell another code than files do, or takes different texts for one."""
    kinds = {column.name: table[column.name].type() for column in schema.columns}
    for column in schema.columns:  # a type that cannot be read at all is named first
        column_cells(table, column, engine.reader)
    cells = {column.name: public_cells(column, kinds[column.name]) for column in schema.columns}
    length = max(map(len, cells.values()))
    cells = {name: [*some, *[None] * (length - len(some))] for name, some in cells.items()}
    with saying_nothing(engine.name):
        codes = _codes_there(schema, kinds, cells, engine)
    for place, column in enumerate(schema.columns):
        here = _codes_here(column, kinds[column.name], cells[column.name])
        if not np.array_equal(here, codes[:, place]):
            raise ParameterError(
                f"data (ibis table on {engine.name}): column {column.name!r} of type {kinds[column.name]} would not be read there as files are; "
                "cast it to text, or write the table to Parquet and measure that"
            )
    names = [*schema.names, *([] if person is None else [person.column])]
    _check_collations(table, [name for name in names if table[name].type().is_string()], engine)


def _codes_there(
    schema: Schema, kinds: dict[str, Any], cells: dict[str, list[Any]], engine: Engine
) -> NDArray[np.int64]:
    """The codes that the engine gives, row by row."""
    length = len(next(iter(cells.values())))
    numbers = ibis.table({PROBE: "int32"}, name="numbers")
    lists = {
        name: ibis.literal(some, type=f"array<{_plain(kinds[name])}>")[numbers[PROBE]].cast(
            _plain(kinds[name])
        )
        for name, some in cells.items()
    }
    probes = ibis.table({PROBE: "int32", **{name: _plain(kinds[name]) for name in cells}}, name="probes")
    steps = [
        ("numbers", ibis.literal(list(range(length)), type="array<int32>").unnest().name(PROBE).as_table()),
        ("probes", numbers.select(numbers[PROBE], **lists)),
        *code_steps(probes, schema, None, engine.reader),
    ]
    texts = tuple((name, engine.sql(step)) for name, step in steps)
    # As the answers to all questions come: which column, which cell, which code.
    parts = tuple(f"SELECT {place}, probe, m{place} FROM codes" for place in range(len(schema.columns)))
    column, row, code = engine.ask(Query(texts, parts))
    codes = np.full((length, len(schema.columns)), NO_CODE)
    codes[row, column] = code
    return codes


def _codes_here(column: Column, kind: Any, cells: list[Any]) -> NDArray[np.int64]:
    """The codes that files give."""
    absent, unlisted, codes = column.judged(pa.array(cells, _arrow_type(kind)))
    marks = refusals(column)
    return np.where(absent, marks[0], np.where(unlisted, marks[1], codes)).astype(np.int64)


def _check_collations(table: Expr, names: Sequence[str], engine: Engine) -> None:
    """Ask how the engine compares texts of these columns, with texts of ours and not one row."""
    if not names:
        return
    empty = table.filter(ibis.literal(False)).aggregate(
        **{f"c{place}": (table[name] + "").max() for place, name in enumerate(names)}
    )
    with saying_nothing(engine.name):
        parts = []
        for place in range(len(names)):
            cell = ibis.table(empty.schema(), name="empty")[f"c{place}"]
            tests = (ibis.coalesce(cell, ibis.literal(one)) == other for one, other in _ALIKE)
            alike = ibis.or_(*tests).cast("int32").name("alike")
            text = engine.backend.compile(ibis.table(empty.schema(), name="empty").select(alike))
            parts.append(f"SELECT {place}, alike, 0 FROM ({text}) AS t{place}")
        numbers, alike, _ = engine.ask(Query((("empty", engine.backend.compile(empty)),), tuple(parts)))
    for number in numbers[alike != 0]:
        raise ParameterError(
            f"data (ibis table on {engine.name}): column {names[number]!r} has a collation that takes different texts for one; "
            "give it one that compares bytes, or write the table to Parquet and measure that"
        )


def _plain(kind: Any) -> str:
    """A type without the length of its texts."""
    return "string" if kind.is_string() else str(kind)


def _arrow_type(kind: Any) -> pa.DataType:
    if kind.is_decimal() and kind.precision is None:
        return pa.decimal128(38, 9)
    if kind.is_uuid() or kind.is_string():
        return pa.string()
    if kind.is_time():
        return pa.time64("us")
    if kind.is_timestamp():
        return pa.timestamp("us", kind.timezone)
    return kind.to_pyarrow()
