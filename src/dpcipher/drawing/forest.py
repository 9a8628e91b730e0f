"""Estimates with their intervals, one line each: a coefficient plot."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dpcipher.drawing.dots import Dot, Line, Scale, dot_plot


@dataclass(frozen=True)
class DotLine:
    """A named estimate with its interval, and another one behind it if there is any."""

    name: str
    value: float
    low: float
    high: float
    other: tuple[float, float] | None = None

    @property
    def known(self) -> bool:
        """Whether there is anything to draw."""
        return math.isfinite(self.value + self.low + self.high)

    @property
    def numbers(self) -> str:
        """The estimate and its interval in figures."""
        if not self.known:
            return "not identified"
        return f"{_number(self.value)} [{_number(self.low)}, {_number(self.high)}]"


def forest_plot(estimates: Sequence[DotLine], *, title: str, axis: str) -> str:
    """The estimates from top to bottom on one axis with a line at 0."""
    says = "; ".join(f"{item.name} {_number(item.value)}" for item in estimates[:12] if item.known)
    return dot_plot(
        [_line(item) for item in estimates],
        title=title,
        description=f"Estimates: {says}.",
        axis=axis,
        scale=_fit(estimates),
    )


def _line(item: DotLine) -> Line:
    if not item.known:
        return Line(item.name, (), item.numbers)
    dot = Dot(item.value, f"{item.name}: {item.numbers}", low=item.low, high=item.high)
    return Line(item.name, (dot,), item.numbers, item.other)


def _fit(estimates: Sequence[DotLine]) -> Scale:
    """An axis that holds every interval and 0; other intervals may be cut at twice that range."""
    ends = [0.0, *(end for item in estimates if item.known for end in (item.low, item.high))]
    low, high = min(ends), max(ends)
    room = max(high - low, 1e-9)
    other = [end for item in estimates if item.known and item.other for end in item.other]
    low = max(min([low, *other]), low - room / 2)
    high = min(max([high, *other]), high + room / 2)
    pad = 0.04 * max(high - low, 1e-9)
    return Scale(low - pad, high + pad)


def _number(value: float) -> str:
    """Three figures, with the minus sign of mathematics."""
    return f"{value:.3g}".replace("-", "−")
