"""Does an engine read cells as files are read? Asked with public cells, before any private row is touched.

For every column a list of cells follows from the schema alone: its levels and edges, what lies beside them, and what engines are known to read each in
their own way. The engine encodes them with the very expressions that will encode the table, and every code must be the one that files give. So an
engine, a version or a setting that differs is refused by name, and nothing is spent.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpcipher.curator.request import Person
from dpcipher.curator.warehouse.engines import Engine, saying_nothing
from dpcipher.curator.warehouse.expressions import Expr, ibis
from dpcipher.curator.warehouse.marks import refusals
from dpcipher.curator.warehouse.stages import PROBE, column_cells, marks_step
from dpcipher.errors import ParameterError
from dpcipher.schema.column import Column
from dpcipher.schema.domain import Binned, Listed
from dpcipher.schema.schema import Schema

MOST_CELLS = 400  # of a column
NEAR = 16  # levels or edges at each end
NO_CODE = -9
_ALIKE = (("a", "A"), ("e", "\u00e9"), ("a", "a "), ("a", "-a"), ("\uff41", "a"))
_TEXTS = (
    *("", " ", "nan", "NaN", "NAN", "Nan", "NA", "null", "inf", "-inf", "Infinity", "+INF", "x", "'x", "=x", "'=x"),
    *("1", "01", " 1 ", "1.0", "1.", ".5", "+1", "-1", "1e0", "1E+00", "1e5", "1_0", "0x1", "1,5", "١", "--1", "1 1", "-0"),
    *("\t1\n", "\u00a01\u3000", "\u200b1", "1e999", "-1e999", "1e-999", "1e99999", "0e99999", "-1e99999", "1e-99999", "9" * 60),
    *("true", "TRUE", " True", "t", "yes", "Y", "no", "N", "false", "F", "on", "2"),
    *("2024-01-31", "2024-02-29", "2023-02-29", "1900-02-29", "2000-02-29", "2024-02-30", "2024-13-01", "2024-00-10"),
    *("2024-1-1", "0000-01-01", "9999-12-31", "2024-01-31T10:00", "2024-01-31 x", "2024-01-31\n", " 2024-01-31", "20240131"),
    *("08:30", "8:30", "08:30:15", "08:30:15.999", "24:00", "23:59:59", " 08:30 ", "2024-01-31 08:30:00", "08:60", "8"),
)
_WHOLE = (-(2**62), -1, 0, 1, 2, 2**31, 2**53 + 1, 2**62)
_FLOATS = (0.0, 0.1, 0.5, 1.0, 1.5, -1.0, 2.0**53, -1e300, 1e300, 5e-324, math.inf, -math.inf, math.nan)
_DAYS = (date(1, 1, 1), date(1899, 12, 31), date(1970, 1, 1), date(2000, 2, 29), date(9999, 12, 31))


def check_reading(table: Expr, schema: Schema, person: Person | None, engine: Engine) -> None:
    """Refuse an engine that gives a public cell another code than files do, or takes different texts for one."""
    kinds = {column.name: table[column.name].type() for column in schema.columns}
    for column in schema.columns:  # a type that cannot be read at all is named first
        column_cells(table, column, engine.reader)
    cells = {column.name: _cells(column, kinds[column.name]) for column in schema.columns}
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
        name: ibis.literal(some, type=f"array<{_plain(kinds[name])}>")[numbers[PROBE]].cast(_plain(kinds[name]))
        for name, some in cells.items()
    }
    probes = ibis.table({PROBE: "int32", **{name: _plain(kinds[name]) for name in cells}}, name="probes")
    steps = [
        ("numbers", ibis.literal(list(range(length)), type="array<int32>").unnest().name(PROBE).as_table()),
        ("probes", numbers.select(numbers[PROBE], **lists)),
        *marks_step(probes, schema, engine.reader),
    ]
    texts = ", ".join(f"{name} AS (\n{engine.sql(step)}\n)" for name, step in steps)
    # One cell a row, as the answers to all questions come: which column, which cell, which code.
    parts = (f"SELECT {place}, probe, m{place} FROM codes" for place in range(len(schema.columns)))
    column, row, code = engine.ask(f"WITH {texts}\n" + "\nUNION ALL ".join(parts))
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
        place, alike, _ = engine.ask(
            f"WITH empty AS (\n{engine.backend.compile(empty)}\n)\n" + "\nUNION ALL ".join(parts)
        )
    for number in place[alike != 0]:
        raise ParameterError(
            f"data (ibis table on {engine.name}): column {names[number]!r} has a collation that takes different texts for one; "
            "give it one that compares bytes, or write the table to Parquet and measure that"
        )


def _cells(column: Column, kind: Any) -> list[Any]:
    """Public cells of the type of a column: what its declaration names, what lies beside that, and what is often read differently."""
    numbers = list(_numbers(column))
    if kind.is_string():
        found: list[Any] = [*_texts(column, numbers), *_TEXTS]
    elif kind.is_boolean():
        found = [True, False]
    elif kind.is_integer():
        bounds = kind.bounds
        whole = (int(number) for number in (*numbers, *_WHOLE) if abs(number) < 2**63 and number == int(number))
        found = [number for number in whole if bounds.lower <= number <= bounds.upper]
    elif kind.is_float32():
        with np.errstate(over="ignore"):
            exact = (number == float(np.float32(number)) or math.isnan(number) for number in (*numbers, *_FLOATS))
            found = [number for number, holds in zip((*numbers, *_FLOATS), exact, strict=True) if holds]
    elif kind.is_floating():
        found = [*numbers, *_FLOATS]
    elif kind.is_decimal():
        found = list(_decimals((*numbers, *_FLOATS), kind))
    elif kind.is_uuid():
        found = []
    else:
        found = list(_moments(column, kind))
    return list(dict.fromkeys(found))[: MOST_CELLS - 1] + [None]


def _numbers(column: Column) -> Iterator[float]:
    """Levels, edges and codes that are numbers, and their neighbours."""
    domain = column.domain
    if isinstance(domain, Listed):
        near = list(domain.numbers)
    else:
        edges = domain.edges
        near = [*edges[:NEAR], *edges[len(edges) // 2 :][:4], *edges[-NEAR:], *domain.special]
    near += list(column.missing_codes.listed.numbers) if column.missing_codes.listed else []
    for number in near:
        yield from (number, number + 0.5, number - 1, number + 1)
        if isinstance(domain, Binned) and not domain.whole:
            yield from (math.nextafter(number, -math.inf), math.nextafter(number, math.inf))


def _texts(column: Column, numbers: Iterable[float]) -> Iterator[str]:
    known = [*column.missing_codes.texts]
    if isinstance(column.domain, Listed):
        known += column.domain.labels[:NEAR]
    elif column.domain.kind in ("date", "time"):
        known += column.domain.labels[:4]
        yield from (str(moment) for moment in _moments(column, None))
    for text in known:
        yield from (text, f" {text}", f"{text} ", f"0{text}", text.upper(), text.lower(), f"'{text}", f"{text}.0")
    yield from map(repr, numbers)


def _decimals(numbers: Iterable[float], kind: Any) -> Iterator[Decimal]:
    """The numbers that a decimal type can hold, to its last digit."""
    scale = 9 if kind.scale is None else kind.scale
    whole = 28 if kind.precision is None else kind.precision - scale
    for number in numbers:
        if abs(number) < 10.0 ** min(whole, 15):
            yield Decimal(repr(number)).quantize(Decimal(1).scaleb(-scale))


def _moments(column: Column, kind: Any) -> Iterator[Any]:
    """Days, moments or times about those that a column declares."""
    domain = column.domain
    edges = domain.edges if isinstance(domain, Binned) and domain.kind in ("date", "time") else ()
    near = [int(edge) for edge in (*edges[:NEAR], *edges[-NEAR:], *(getattr(domain, "special", ()) if edges else ()))]
    is_time = isinstance(domain, Binned) and domain.kind == "time"
    days = [*_DAYS, *(() if is_time else (date(1970, 1, 1) + timedelta(days=day + step) for day in near for step in (-1, 0)))]
    seconds = [0, 1, 3600 * 24 - 1, *((second + step) % (3600 * 24) for second in near if is_time for step in (-1, 0))]
    times = [(datetime(2024, 1, 31) + timedelta(seconds=second)).time() for second in seconds]
    if kind is None:
        yield from (times if is_time else days)
    elif kind.is_date():
        yield from days
    elif kind.is_time():
        yield from (*times, time(12, 30, 15, 250_000))
    else:
        zone = None if kind.timezone is None else UTC
        moments = [*(datetime.combine(day, time()) for day in days), datetime(2024, 1, 31, 12, 30, 15, 250_000)]
        moments += [datetime.combine(date(2024, 1, 31), clock) for clock in times]
        yield from (moment.replace(tzinfo=zone) for moment in moments if 2 < moment.year < 9998)


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
