"""Estimates with their intervals, one line each: a coefficient plot."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dpcipher.drawing.bars import ticks
from dpcipher.drawing.svg import clip, element, image, text

LINE, MARK, OTHER, GRID = "#3b75af", "#1a1a1a", "#e0a36b", "#d5d9de"
WIDTH, ROW, TOP, BOTTOM, NUMBERS = 680, 24, 6, 34, 170


@dataclass(frozen=True)
class Estimate:
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


@dataclass(frozen=True)
class _Scale:
    """A linear axis between two positions on the screen; what lies outside is cut at its ends."""

    low: float
    high: float
    start: float
    stop: float

    def at(self, value: float) -> float:
        part = (value - self.low) / (self.high - self.low)
        return self.start + min(max(part, 0.0), 1.0) * (self.stop - self.start)


def forest_plot(estimates: Sequence[Estimate], *, title: str, axis: str) -> str:
    """The estimates from top to bottom on one axis with a line at 0."""
    left = min(250.0, 16 + 6.6 * max(len(clip(item.name, 36)) for item in estimates))
    scale = _fit(estimates, left)
    floor = TOP + ROW * len(estimates)
    parts = [_grid(scale, floor, axis)]
    parts += [_line(item, scale, left, TOP + ROW * (place + 0.5)) for place, item in enumerate(estimates)]
    says = "; ".join(f"{item.name} {_number(item.value)}" for item in estimates[:12] if item.known)
    return image(WIDTH, floor + BOTTOM, "".join(parts), title=title, description=f"Estimates: {says}.")


def _fit(estimates: Sequence[Estimate], left: float) -> _Scale:
    """An axis that holds every interval and 0; other intervals may be cut at twice that range."""
    ends = [0.0, *(end for item in estimates if item.known for end in (item.low, item.high))]
    low, high = min(ends), max(ends)
    room = max(high - low, 1e-9)
    other = [end for item in estimates if item.known and item.other for end in item.other]
    low = max(min([low, *other]), low - room / 2)
    high = min(max([high, *other]), high + room / 2)
    pad = 0.04 * max(high - low, 1e-9)
    return _Scale(low - pad, high + pad, left, WIDTH - NUMBERS)


def _grid(scale: _Scale, floor: float, axis: str) -> str:
    step = ticks(scale.high - scale.low, 5)[1]
    first, last = math.ceil(scale.low / step), math.floor(scale.high / step)
    out = []
    for number in range(first, last + 1):
        x = scale.at(number * step)
        colour, wide = ("#666", 1.2) if number == 0 else (GRID, 1.0)
        out.append(element("path", d=f"M{x:.1f} {TOP}V{floor:.1f}", stroke=colour, stroke_width=wide))
        out.append(text(x, floor + 14, f"{number * step:.6g}", anchor="middle", class_="n"))
    middle = (scale.start + scale.stop) / 2
    return "".join(out) + text(middle, floor + 29, axis, anchor="middle", class_="s")


def _line(item: Estimate, scale: _Scale, left: float, y: float) -> str:
    name = text(left - 8, y + 4, clip(item.name, 36), anchor="end", class_="s")
    if not item.known:
        return name + text(WIDTH - 2, y + 4, "not identified", anchor="end", class_="n")
    parts = [name]
    if item.other is not None:
        low, high = (scale.at(end) for end in item.other)
        parts.append(
            element("path", d=f"M{low:.1f} {y:.1f}H{high:.1f}", stroke=OTHER, stroke_width=7, opacity="0.55")
        )
    low, high = scale.at(item.low), scale.at(item.high)
    parts.append(element("path", d=f"M{low:.1f} {y:.1f}H{high:.1f}", stroke=LINE, stroke_width=2.4))
    parts.append(element("circle", cx=scale.at(item.value), cy=y, r=3.6, fill=MARK))
    words = f"{_number(item.value)} [{_number(item.low)}, {_number(item.high)}]"
    return "".join(parts) + text(WIDTH - 2, y + 4, words, anchor="end", class_="n")


def _number(value: float) -> str:
    """Three figures, with the minus sign of mathematics."""
    return f"{value:.3g}".replace("-", "−")
