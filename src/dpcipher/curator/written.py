"""How the values of a column are written, for a draft to propose: decimals, steps, values that pile up, and dates that are no dates yet."""

import re
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from dpcipher.schema.grid import WRITTEN_DECIMALS
from dpcipher.schema.points import second_text

# A value in so large a part of the rows, and so much more often than the others are on average, is a level of its own.
PILED, CROWDED = 0.02, 10
_HOUR, _MINUTE = 3600, 60
_CLOCK_STEPS = (3600, 1800, 900, 600, 300, 60)
_BRIEF = 2 * _HOUR  # times that all lie so near have bins of five minutes
# Texts that a person would read as something else, and what to do about them.
_OTHERWISE = (
    (
        r"\d{1,2}([./-])\d{1,2}\1(\d{4}|\d{2})|\d{4}([./])\d{1,2}\3\d{1,2}",
        "dates that are written otherwise; convert them to 2024-01-31 first, and declare kind: date",
    ),
    (
        r"\d{1,2}[./-]\d{1,2}[./-]\d{2,4}[ T]\d{1,2}:\d{2}.*",
        "dates and times that are written otherwise; convert them to 2024-01-31 and 08:30 first",
    ),
    (
        r"[-+]?[$€£¥]\s?[-+]?[\d.,' ]*\d|[-+]?[\d.,' ]*\d\s?[%$€£¥]",
        "numbers with a sign beside them; remove it first, and say it with unit",
    ),
    (
        r"[-+]?\d+,(\d{1,2}|\d{4,})|[-+]?\d+",
        "numbers with a decimal comma; write a point first, or declare it in format, where the table is a text file",
    ),
    (
        r"[-+]?\d{1,3}(([,.' \u00a0\u202f])\d{3}(\2\d{3})*)?([.,]\d{1,2})?",
        "numbers with marks between thousands; remove the marks first, or declare them in format, where the table is a text file",
    ),
    (
        r"(?i)\d{1,2}(:\d{2}){0,2}\s?[ap]\.?m\.?",
        "times that are written otherwise; convert them to 08:30 first, and declare kind: time",
    ),
)  # fmt: skip


def more_decimals(decimals: int | None, numbers: NDArray[np.float64]) -> int | None:
    """The decimals that these numbers need, and at least `decimals`; None where they were computed and have no end.

    >>> more_decimals(0, np.array([52.0, 51.3])), more_decimals(0, np.array([1 / 3]))
    (1, None)
    """
    if decimals is None:
        return None
    places = range(decimals, WRITTEN_DECIMALS + 1)
    return next((place for place in places if (np.round(numbers, place) == numbers).all()), None)


def common_step(step: int, numbers: NDArray[np.float64]) -> int:
    """The largest number of which `step` and all these whole numbers are multiples."""
    return int(np.gcd.reduce(np.abs(numbers).astype(np.int64), initial=step))


def has_minus_one(values: NDArray[np.float64], low: float) -> bool:
    """Whether -1 is the only whole number below zero, and in so many rows that it is a code (never, none) and no amount.

    >>> has_minus_one(np.array([-1.0] * 50 + list(range(60))), -1.0), has_minus_one(np.array([-2.0, -1.0, 3.0]), -2.0)
    (True, False)
    """
    return low == -1 and bool(np.mean(values == -1) >= PILED)


def piled_up(values: NDArray[np.float64], low: float, high: float) -> list[float]:
    """Zero and the largest value, where far more rows have them than have others: no amount at all, and a top code.

    >>> piled_up(np.array([0.0] * 50 + [100.0] * 20 + list(range(1, 99))), 0.0, 100.0)
    [0.0, 100.0]
    """
    inside = values[(values >= low) & (values <= high)]
    if not len(inside):
        return []
    often = max(PILED, CROWDED / len(np.unique(inside)))
    return [value for value in sorted({0.0, high}) if np.mean(inside == value) >= often]


def clock_facts(first: int, last: int, apart: int) -> dict[str, object]:
    """Whole hours around two times of day as bins, or five minutes where they lie near, and the step that all times keep."""
    width = _HOUR if last - first > _BRIEF else 5 * _MINUTE
    low, high = first // width, last // width + 1
    step = next((step for step in _CLOCK_STEPS if apart % step == 0 and step <= width), None)
    facts: dict[str, object] = {"min": second_text(low * width), "max": second_text(high * width - 1)}
    return facts | {"bins": high - low} | ({"step": second_text(step)} if step else {})


def read_otherwise(texts: Collection[str]) -> str:
    """What all these texts are to a person, and how to make it so for a schema; nothing where they are just texts.

    >>> read_otherwise(["1,200", "980"])[:37], read_otherwise(["010", "021"]), read_otherwise(["12,5", "7"])[:28]
    ('numbers with marks between thousands;', '', 'numbers with a decimal comma')
    """
    if all(text.strip().isdigit() for text in texts):  # codes, of digits alone
        return ""
    for pattern, what in _OTHERWISE:
        if all(re.fullmatch(pattern, text.strip()) for text in texts):
            return what
    return ""
