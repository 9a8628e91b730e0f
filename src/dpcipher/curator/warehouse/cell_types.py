"""Dates, moments and times of an engine; and which cells are of which type."""

from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from typing import Any

import pyarrow as pa

from dpcipher.curator.warehouse.cells import (
    Cells,
    DecimalCells,
    FloatCells,
    NamedCells,
    Needs,
    Read,
    TextCells,
    TruthCells,
    WholeCells,
)
from dpcipher.curator.warehouse.expressions import Expr, ibis, looked_up
from dpcipher.curator.warehouse.readings import Reader
from dpcipher.errors import ParameterError
from dpcipher.schema.cells import as_text

_EPOCH = date(1970, 1, 1)
_BEYOND = 10**7  # days, past the years 1 to 9999 that a schema can name


class DayCells(Cells):
    """Dates."""

    def read(self, cell: Expr) -> dict[str, Expr]:
        """As days; those before the year 1, after 9999, or infinite are days that no schema can name."""
        return {"x": _day_number(cell)}

    def text_code(self, read: Read, codes: Mapping[str, int]) -> Expr | None:
        """Levels that are dates."""
        days = {text: _parsed(date, text) for text in codes}
        return looked_up(
            read["x"], {(day - _EPOCH).days: codes[text] for text, day in days.items() if day is not None}
        )

    def day(self, read: Read) -> Expr | None:
        """The day itself."""
        return read["x"]


class MomentCells(Cells):
    """Timestamps: what a clock on the wall shows."""

    def __init__(self, needs: Needs, reader: Reader, zone: str | None) -> None:
        super().__init__(needs, reader)
        self.zone = zone

    def read(self, cell: Expr) -> dict[str, Expr]:
        """The moment, its day, and the second of that day."""
        cell = cell if self.zone is None else _wall_clock(cell, self.zone)
        read = {"x": cell}
        if self.needs.kind == "day":
            read["r"] = _day_number(cell.date())
        elif self.needs.kind == "second":
            read["r"] = cell.hour() * 3600 + cell.minute() * 60 + cell.second()
        return read

    def text_code(self, read: Read, codes: Mapping[str, int]) -> Expr | None:
        """Levels that are moments, or days for midnight."""
        moments = {text: _parsed(datetime, text) for text in codes}
        known = {ibis.literal(m, type="timestamp"): codes[t] for t, m in moments.items() if m is not None}
        return looked_up(read["x"], known)

    def day(self, read: Read) -> Expr | None:
        """The day on which it is."""
        return read["r"]

    def second(self, read: Read) -> Expr | None:
        """The time of that day."""
        return read["r"]


class ClockCells(Cells):
    """Times of day."""

    def text_code(self, read: Read, codes: Mapping[str, int]) -> Expr | None:
        """Levels that are times."""
        times = {text: _parsed(time, text) for text in codes}
        known = {ibis.literal(t, type="time"): codes[text] for text, t in times.items() if t is not None}
        return looked_up(read["x"], known)

    def second(self, read: Read) -> Expr | None:
        """Seconds since midnight; PostgreSQL's 24:00 is no time of day."""
        clock = read["x"]
        seconds = clock.hour() * 3600 + clock.minute() * 60 + clock.second()
        return ibis.cases((seconds < 24 * 3600, seconds), else_=None)


def cells_of(name: str, kind: Any, needs: Needs, reader: Reader) -> Cells:
    """The cells of an ibis type; a type that files do not have is refused by name."""
    if kind.is_timestamp():
        return MomentCells(needs, reader, kind.timezone)
    known: dict[str, Callable[[Needs, Reader], Cells]] = {
        "string": TextCells,
        "uuid": NamedCells,
        "integer": WholeCells,
        "floating": FloatCells,
        "decimal": DecimalCells,
        "boolean": TruthCells,
        "date": DayCells,
        "time": ClockCells,
    }
    for word, cells in known.items():
        if getattr(kind, f"is_{word}")():
            return cells(needs, reader)
    raise ParameterError(
        f"column {name!r} is of type {kind}, which cannot be read where the data live; "
        f"cast it, as in table.mutate({name}=table[{name!r}].cast('string'))"
    )


def _day_number(day: Expr) -> Expr:
    """Days since 1970-01-01, counted only where an engine can subtract."""
    return ibis.cases(
        (day < ibis.date("0001-01-01"), -_BEYOND),
        (day > ibis.date("9999-12-31"), _BEYOND),
        (day.isnull(), None),
        else_=day.delta(ibis.date("1970-01-01"), unit="day"),
    )


def _wall_clock(cell: Expr, zone: str) -> Expr:
    """The moment as a clock shows it in the zone that the column states."""

    @ibis.udf.scalar.builtin(name="timezone", signature=(("string", cell.type()), "timestamp"))
    def timezone(zone, moment): ...  # type: ignore[no-untyped-def]

    return timezone(zone, cell)


def _parsed(kind: Any, text: str) -> Any:
    """The date, moment or time whose shortest text this is."""
    try:
        value = kind.fromisoformat(text)
        return value if as_text(pa.array([value]))[0].as_py() == text else None
    except (ValueError, pa.ArrowException):
        return None
