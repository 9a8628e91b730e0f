"""Public cells to try an engine with: they follow from the declaration of a column and from what engines are known to read each in their own way."""

import math
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

from dpcipher.schema.binned import Binned
from dpcipher.schema.column import Column
from dpcipher.schema.listed import Listed

MOST_CELLS = 400  # of a column
NEAR = 16  # levels or edges at each end
_TEXTS = (
    *(
        "",
        " ",
        "nan",
        "NaN",
        "NAN",
        "Nan",
        "NA",
        "null",
        "inf",
        "-inf",
        "Infinity",
        "+INF",
        "x",
        "'x",
        "=x",
        "'=x",
    ),
    *(
        "1",
        "01",
        " 1 ",
        "1.0",
        "1.",
        ".5",
        "+1",
        "-1",
        "1e0",
        "1E+00",
        "1e5",
        "1_0",
        "0x1",
        "1,5",
        "١",
        "--1",
        "1 1",
        "-0",
    ),
    *(
        "\t1\n",
        "\u00a01\u3000",
        "\u200b1",
        "1e999",
        "-1e999",
        "1e-999",
        "1e99999",
        "0e99999",
        "-1e99999",
        "1e-99999",
        "9" * 60,
    ),
    *("true", "TRUE", " True", "t", "yes", "Y", "no", "N", "false", "F", "on", "2"),
    *(
        "2024-01-31",
        "2024-02-29",
        "2023-02-29",
        "1900-02-29",
        "2000-02-29",
        "2024-02-30",
        "2024-13-01",
        "2024-00-10",
    ),
    *(
        "2024-1-1",
        "0000-01-01",
        "9999-12-31",
        "2024-01-31T10:00",
        "2024-01-31 x",
        "2024-01-31\n",
        " 2024-01-31",
        "20240131",
    ),
    *(
        "08:30",
        "8:30",
        "08:30:15",
        "08:30:15.999",
        "24:00",
        "23:59:59",
        " 08:30 ",
        "2024-01-31 08:30:00",
        "08:60",
        "8",
    ),
)
_WHOLE = (-(2**62), -1, 0, 1, 2, 2**31, 2**53 + 1, 2**62)
_FLOATS = (0.0, 0.1, 0.5, 1.0, 1.5, -1.0, 2.0**53, -1e300, 1e300, 5e-324, math.inf, -math.inf, math.nan)
_DAYS = (date(1, 1, 1), date(1899, 12, 31), date(1970, 1, 1), date(2000, 2, 29), date(9999, 12, 31))


def public_cells(column: Column, kind: Any) -> list[Any]:
    """Public cells of the type of a column: what its declaration names, what lies beside that, and what is often read differently."""
    numbers = list(_numbers(column))
    if kind.is_string():
        found: list[Any] = [*_texts(column, numbers), *_TEXTS]
    elif kind.is_boolean():
        found = [True, False]
    elif kind.is_integer():
        bounds = kind.bounds
        whole = (
            int(number) for number in (*numbers, *_WHOLE) if abs(number) < 2**63 and number == int(number)
        )
        found = [number for number in whole if bounds.lower <= number <= bounds.upper]
    elif kind.is_float32():
        with np.errstate(over="ignore"):
            exact = (
                number == float(np.float32(number)) or math.isnan(number) for number in (*numbers, *_FLOATS)
            )
            found = [number for number, holds in zip((*numbers, *_FLOATS), exact, strict=True) if holds]
    elif kind.is_floating():
        found = [*numbers, *_FLOATS]
    elif kind.is_decimal():
        found = list(_decimals((*numbers, *_FLOATS), kind))
    elif kind.is_uuid():
        found = []
    else:
        found = list(_moments(column, kind))
    return [*list(dict.fromkeys(found))[: MOST_CELLS - 1], None]


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
        yield from (
            text,
            f" {text}",
            f"{text} ",
            f"0{text}",
            text.upper(),
            text.lower(),
            f"'{text}",
            f"{text}.0",
        )
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
    near = [
        int(edge)
        for edge in (*edges[:NEAR], *edges[-NEAR:], *(getattr(domain, "special", ()) if edges else ()))
    ]
    is_time = isinstance(domain, Binned) and domain.kind == "time"
    days = [
        *_DAYS,
        *(
            ()
            if is_time
            else (date(1970, 1, 1) + timedelta(days=day + step) for day in near for step in (-1, 0))
        ),
    ]
    seconds = [
        0,
        1,
        3600 * 24 - 1,
        *((second + step) % (3600 * 24) for second in near if is_time for step in (-1, 0)),
    ]
    times = [(datetime(2024, 1, 31) + timedelta(seconds=second)).time() for second in seconds]
    if kind is None:
        yield from (times if is_time else days)
    elif kind.is_date():
        yield from days
    elif kind.is_time():
        yield from (*times, time(12, 30, 15, 250_000))
    else:
        zone = None if kind.timezone is None else UTC
        moments = [
            *(datetime.combine(day, time()) for day in days),
            datetime(2024, 1, 31, 12, 30, 15, 250_000),
        ]
        moments += [datetime.combine(date(2024, 1, 31), clock) for clock in times]
        yield from (moment.replace(tzinfo=zone) for moment in moments if 2 < moment.year < 9998)
