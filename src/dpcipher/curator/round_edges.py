"""Round edges around what a draft saw of a column: equal steps, growing amounts, months and years, hours."""

import math
from collections.abc import Sequence
from datetime import date, timedelta

import numpy as np
from numpy.typing import NDArray

from dpcipher.schema.scale import second_text

BINS = 20
SKEWED = 5.0
_MANTISSAS = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)
_EPOCH = date(1970, 1, 1)
# The longest span, in days, that is cut into periods of so many months; days come first.
_PERIODS = ((2 * 366, 1), (8 * 366, 3), (30 * 366, 12), (150 * 366, 60))
_DAYS = 31
_HOUR, _MINUTE = 3600, 60
_CLOCK_STEPS = (3600, 1800, 900, 600, 300, 60)
_BRIEF = 2 * _HOUR  # times that all lie so near have bins of five minutes


def even_steps(low: float, high: float, *, whole: bool) -> tuple[float, float, int]:
    """A range that holds `low` and `high`, and the number of bins of one round width in it: about 20.

    >>> even_steps(17.3, 93.8, whole=False)
    (15.0, 95.0, 16)
    """
    step = _round_up((high - low or abs(high) or 1.0) / BINS)
    if whole:
        step = max(math.ceil(step), 1.0)
    first, last = math.floor(low / step), math.ceil(high / step)
    if last * step <= high:  # the largest value is somebody's, and stays inside
        last += 1
    return _shown(first * step), _shown(last * step), last - first


def _round_up(width: float) -> float:
    power = 10.0 ** math.floor(math.log10(width))
    return next(power * factor for factor in (1.0, 2.0, 5.0, 10.0) if power * factor >= width * 0.999999)


def is_skewed(values: NDArray[np.float64], low: float, high: float) -> bool:
    """Whether a tail reaches so far beyond the bulk that bins of equal width would leave most rows in one or two of them.

    A tail is measured in distances between the median and its tenth or ninetieth percentile: 2 to 4 for a bell, 3 to 5 for times between events.
    """
    tenth, middle, ninetieth = np.quantile(values, [0.1, 0.5, 0.9])
    upper, lower = ninetieth - middle, middle - tenth
    return bool(high - middle > SKEWED * max(upper, 1e-12) or middle - low > SKEWED * max(lower, 1e-12))


def amount_edges(values: NDArray[np.float64], low: float, high: float, *, whole: bool) -> list[float]:
    """Edges 0, 1000, 1500, 2000, 3000 … of about equal ratio, from where the smallest twentieth of the amounts ends to beyond the largest.

    They are mirrored below 0, and 0 itself has a bin of its own where it is frequent among whole numbers.
    """
    sizes = np.abs(values[values != 0])
    least = float(np.quantile(sizes, 0.05)) if len(sizes) else 1.0
    grown = _growing(max(least, 1.0) if whole else least, max(abs(low), abs(high)), whole=whole)
    below = [-edge for edge in reversed(_up_to(grown, -low))] if low < 0 else []
    above = _up_to(grown, high) if high > 0 else []
    zeros = [1.0] if whole and above and above[0] > 1 and np.mean(values == 0) > 0.05 else []
    return [*below, 0.0, *zeros, *above]


def _growing(least: float, most: float, *, whole: bool) -> list[float]:
    """Round numbers from below `least` to beyond `most`."""
    first = math.floor(math.log10(least))
    powers = range(first, math.floor(math.log10(most)) + 2)
    steps = [_shown(factor * 10.0**power) for power in powers for factor in _MANTISSAS]
    steps = [step for step in steps if not whole or step == int(step)]
    start = max((place for place, step in enumerate(steps) if step <= least), default=0)
    return steps[start:]


def _up_to(edges: Sequence[float], end: float) -> list[float]:
    """The edges up to the first beyond `end`."""
    inside = [edge for edge in edges if edge <= end]
    return [*inside, *edges[len(inside) : len(inside) + 1]]


def calendar_edges(first: int, last: int) -> list[str] | None:
    """Beginnings of months, quarters, years or five years around two days since 1970, and the last day of the last; None for so few that each is a level."""
    low, high = _EPOCH + timedelta(days=first), _EPOCH + timedelta(days=last)
    span = last - first
    if span < _DAYS:
        return None
    months = next((months for longest, months in _PERIODS if span <= longest), 120)
    start = _floor(12 * low.year + low.month - 1, months)
    stop = _floor(12 * high.year + high.month - 1, months) + months
    edges = [_month(number).isoformat() for number in range(start, stop, months)]
    end = date.max if stop >= 12 * (date.max.year + 1) else _month(stop) - timedelta(days=1)
    return [*edges, end.isoformat()]


def _floor(month: int, months: int) -> int:
    return max(month - month % months, 12)


def _month(number: int) -> date:
    return date(number // 12, number % 12 + 1, 1)


def _shown(value: float) -> float:
    """Without the dust of binary fractions: 0.3, not 0.30000000000000004."""
    return float(f"{value:.12g}")


def clock_facts(first: int, last: int, apart: int) -> dict[str, object]:
    """Whole hours around two times of day as bins, or five minutes where they lie near, and the step that all times keep."""
    width = _HOUR if last - first > _BRIEF else 5 * _MINUTE
    low, high = first // width, last // width + 1
    step = next((step for step in _CLOCK_STEPS if apart % step == 0 and step <= width), None)
    facts: dict[str, object] = {"min": second_text(low * width), "max": second_text(high * width - 1)}
    return facts | {"bins": high - low} | ({"step": second_text(step)} if step else {})
