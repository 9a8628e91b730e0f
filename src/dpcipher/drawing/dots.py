"""Dot plots: a line of words and a line with dots for each thing compared, so that they are read on a phone too."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from dpcipher.drawing.bars import short, ticks
from dpcipher.drawing.svg import clip, element, hover, image, text

WIDTH, SIDE, LINE, WORDS, TOP, BOTTOM, GRID = 350, 8, 36, 15, 4, 40, 8
# Shapes that are told apart without colour.
MARKS = ("M-4 -4h8v8h-8z", "M0 -5.5l5.5 5.5-5.5 5.5-5.5-5.5z", "M0 -5l5.5 9.5h-11z", "M0 5l5.5 -9.5h-11z")
# Where a name may be broken: after a space, a colon or a hyphen, and before a level in brackets.
_BREAKS = re.compile(r"(?<=[\s:])(?=\S)|(?<=\w-)(?=\w)|(?<=[\w)])(?=\[)")


@dataclass(frozen=True)
class Dot:
    """A value on the axis, in a colour of the palette; `low` and `high` are its interval, `says` what the pointer is told."""

    value: float
    says: str = ""
    colour: str = "bar"
    low: float | None = None
    high: float | None = None
    shape: str = ""  # a path around 0 0; a circle where it is empty


@dataclass(frozen=True)
class Line:
    """A thing with its dots; `numbers` stands at the end of its line of words, `band` is a pale bar behind the dots."""

    name: str
    dots: tuple[Dot, ...]
    numbers: str = ""
    band: tuple[float, float] | None = None
    strong: bool = False


@dataclass(frozen=True)
class Scale:
    """An axis between two positions on the screen, linear or logarithmic; what lies outside is cut at its ends."""

    low: float
    high: float
    start: float = SIDE
    stop: float = WIDTH - SIDE
    log: bool = False

    def at(self, value: float) -> float:
        """The position of a value."""
        if self.log:
            part = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        else:
            part = (value - self.low) / (self.high - self.low)
        return self.start + min(max(part, 0.0), 1.0) * (self.stop - self.start)

    def ticks(self, many: int = 4) -> list[float]:
        """Round numbers on the axis; on a logarithmic one powers of ten, with 2 and 5 between them where there are few."""
        if not self.log:
            step = ticks(self.high - self.low, many)[1]
            first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
            return [number * step for number in range(first, last + 1)]
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        steps = (1, 2, 5) if len(powers) <= 3 else (1,)
        marks = [step * 10.0**power for power in powers for step in steps]
        return [mark for mark in marks if self.low * 0.999 <= mark <= self.high * 1.001]


def dot_plot(
    lines: Sequence[Line],
    *,
    title: str,
    description: str,
    axis: str,
    scale: Scale,
    limit: float | None = None,
) -> str:
    """The lines from top to bottom on one axis; `limit` is a value to stay below."""
    heights = [LINE + WORDS * (len(_words(line)) - 1) for line in lines]
    floor = TOP + sum(heights)
    parts = [_axis(scale, floor, axis)]
    parts += [
        _line(line, scale, top + TOP, limit)
        for line, top in zip(lines, accumulate([0, *heights]), strict=False)
    ]
    return image(WIDTH, floor + BOTTOM, "".join(parts), title=title, description=description)


def _words(line: Line) -> list[str]:
    """The name on one line beside the numbers, or on two; words stay whole."""
    room = max(int((WIDTH - 2 * SIDE - 7.8 * len(line.numbers)) / 7.8), 8)
    if len(line.name) <= room:
        return [line.name]
    places = [match.start() for match in _BREAKS.finditer(line.name)]
    cut = max((place for place in places if len(line.name[:place].rstrip()) <= room), default=0)
    rest = line.name[cut:].lstrip()
    return [line.name[:cut].rstrip(), clip(rest, int((WIDTH - 2 * SIDE) / 7.8))]


def fit_scale(values: Sequence[float], *, log: bool = False) -> Scale:
    """An axis from 0 to the largest value, or, if it is logarithmic, from the least to the largest."""
    known = [value for value in values if math.isfinite(value) and (value > 0 or not log)] or [1.0]
    if log:
        low, high = min(known), max(known)
        return Scale(low / 1.25, max(high * 1.25, low * 2), log=True)
    low, high = min(0.0, *known) if len(known) > 1 else min(0.0, known[0]), max(known)
    return Scale(low, high * 1.04 if high > low else low + 1.0)


def _axis(scale: Scale, floor: float, axis: str) -> str:
    """The numbers below the lines, and what they are."""
    out = []
    for tick in scale.ticks():
        x = scale.at(tick)
        anchor = "start" if x < 22 else "end" if x > WIDTH - 22 else "middle"
        words = short(round(tick, 12)).replace("-", "−")
        out.append(text(x, floor + 16, words, anchor=anchor, class_="n big"))
    return "".join(out) + text(WIDTH / 2, floor + 34, axis, anchor="middle", class_="m big")


def _grid(scale: Scale, y: float, limit: float | None) -> list[str]:
    """The grid beside one line of dots; it does not go on through the words between them."""
    out = []
    for tick in scale.ticks():
        colour = "hatch" if tick == 0 and scale.low < 0 else "line"
        out.append(_upright(scale.at(tick), y, class_=f"l-{colour}"))
    return out if limit is None else [*out, _upright(scale.at(limit), y, class_="l-bad", stroke_width=2)]


def _upright(x: float, y: float, **style: str | float) -> str:
    return element("path", d=f"M{x:.1f} {y - GRID:.1f}V{y + GRID:.1f}", **style)


def _line(line: Line, scale: Scale, top: float, limit: float | None) -> str:
    words, weight = _words(line), "b big" if line.strong else "big"
    y = top + 25 + WORDS * (len(words) - 1)
    parts = [
        *(text(SIDE, top + 13 + WORDS * row, part, class_=weight) for row, part in enumerate(words)),
        text(WIDTH - SIDE, top + 13, line.numbers, anchor="end", class_="n big"),
        element("path", d=f"M{scale.start:.1f} {y:.1f}H{scale.stop:.1f}", class_="l-line"),
        *_grid(scale, y, limit),
    ]
    if line.band is not None:
        low, high = (scale.at(end) for end in line.band)
        parts.append(element("path", d=f"M{low:.1f} {y:.1f}H{high:.1f}", class_="l-pale", stroke_width=9))
    parts += [_dot(dot, scale, y) for dot in line.dots]
    return "".join(parts)


def _dot(dot: Dot, scale: Scale, y: float) -> str:
    x, out = scale.at(dot.value), hover(dot.says)
    if dot.low is not None and dot.high is not None:
        low, high = scale.at(dot.low), scale.at(dot.high)
        out += element("path", d=f"M{low:.1f} {y:.1f}H{high:.1f}", class_=f"l-{dot.colour}", stroke_width=3)
    if dot.shape:
        out += element("path", d=dot.shape, class_=f"f-{dot.colour}", transform=f"translate({x:.1f} {y:.1f})")
    else:
        out += element("circle", cx=x, cy=y, r=5, class_=f"f-{dot.colour}")
    return element("g", out)
