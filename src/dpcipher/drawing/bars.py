"""Bar charts: a one-way table, with horizontal bars for a few levels and vertical ones for many; and stacked bars of shares."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcipher.drawing.html import rows, share
from dpcipher.drawing.svg import clip, element, hover, image, text

WIDTH = 360
FEW = 24
ROW = 27
AXIS_LEFT, AXIS_TOP, AXIS_HEIGHT = 44, 8, 150
STACK_WIDTH, STACK_ROW, STACK_BAR = 400, 34, 20


@dataclass(frozen=True)
class Series:
    """What a chart shows of one column: counts by level, a description, and, where there are any, counts to compare with and intervals.

    `kinds` says in words what the counts are and what they are compared with; `shares` that they are parts of one, `merged` that some are sums
    over several levels, `others` that the last one is all that is not drawn one by one.
    """

    name: str
    labels: tuple[str, ...]
    counts: NDArray[np.float64]
    compared: NDArray[np.float64] | None
    says: str
    bounds: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
    kinds: tuple[str, str] = ("estimate", "synthetic rows")
    shares: bool = False
    merged: bool = False
    others: bool = False

    @property
    def most(self) -> float:
        """The largest number that has to fit; the sum of all others need not."""
        drawn = [self.counts]
        drawn += [] if self.compared is None else [self.compared]
        drawn += [] if self.bounds is None else [self.bounds[1]]
        last = len(self.counts) - self.others
        return float(max(*(values[:last].max() for values in drawn), 1e-9))

    def number(self, value: float) -> str:
        """A count, or a share, as people read it."""
        return share(value) if self.shares else rows(value)

    def told(self, place: int) -> str:
        """All numbers of one level in words."""
        words = f"{self.labels[place]}: {self.number(float(self.counts[place]))}"
        if self.bounds is not None:
            low, high = (self.number(float(bound[place])) for bound in self.bounds)
            words += f" (95 %: {low} to {high})"
        if self.compared is not None:
            words += f"; {self.kinds[1]} {self.number(float(self.compared[place]))}"
        return words


def bar_chart(series: Series) -> str:
    """The chart that suits the number of levels."""
    return _horizontal(series) if len(series.labels) <= FEW else _vertical(series)


def _horizontal(series: Series) -> str:
    # Text is measured in a wide font, so that no reader's font cuts a name.
    left = min(164.0, 12 + 7.2 * max(len(label) for label in series.labels))
    numbers = [_number(series, place) for place in range(len(series.labels))]
    right = 10 + 7.2 * max(map(len, numbers))
    scale = max(WIDTH - left - right, 40) / series.most
    parts = [_horizontal_bar(series, place, left, scale, number) for place, number in enumerate(numbers)]
    height = ROW * len(parts) + 4
    axis = element("path", d=f"M{left:.1f} 2V{height - 2}", class_="l-hatch")
    return image(WIDTH, height, "".join(parts) + axis, title=series.name, description=series.says)


def _number(series: Series, place: int) -> str:
    count = float(series.counts[place])
    if series.bounds is None:
        return series.number(count)
    return f"{series.number(count)} ±{series.number(float(series.bounds[1][place]) - count)}"


def _horizontal_bar(series: Series, place: int, left: float, scale: float, number: str) -> str:
    top, count = 2 + ROW * place, float(series.counts[place])
    middle = top + 10.0
    out = [
        hover(series.told(place)),
        _reach(0, top, WIDTH, ROW),
        text(left - 7, middle + 5, clip(series.labels[place], 21), anchor="end"),
        element("rect", x=left, y=top + 3, width=max(count, 0.0) * scale, height=14, class_="f-bar"),
        text(WIDTH - 1, middle + 5, number, anchor="end", class_="n"),
    ]
    if series.bounds is not None:
        low, high = (left + float(bound[place]) * scale for bound in series.bounds)
        out.append(whisker(low, high, middle))
    if series.compared is not None:
        out.append(_pointer(left + float(series.compared[place]) * scale, top + 18))
    return element("g", "".join(out))


def _reach(x: float, y: float, width: float, height: float) -> str:
    """Where the pointer may rest to be told the numbers."""
    return element("rect", x=x, y=y, width=width, height=height, fill="none", pointer_events="all")


def whisker(low: float, high: float, y: float) -> str:
    """An interval with its ends, on a rim of paper that keeps it visible on a bar."""
    path = f"M{low:.1f} {y - 5:.1f}v10M{low:.1f} {y:.1f}H{high:.1f}M{high:.1f} {y - 5:.1f}v10"
    rim = element("path", d=path, class_="l-paper", stroke_width=4, fill="none")
    return rim + element("path", d=path, class_="l-ink", stroke_width=1.6, fill="none")


def _pointer(x: float, y: float) -> str:
    """A mark below a bar that points at its value, so that it hides no whisker."""
    return element("path", d=f"M{x:.1f} {y:.1f}l4.5 7h-9z", class_="f-mark")


def _vertical(series: Series) -> str:
    marks = ticks(series.most, 3)
    scale, step = AXIS_HEIGHT / marks[-1], (WIDTH - AXIS_LEFT - 4) / (len(series.labels) - series.others)
    floor = AXIS_TOP + AXIS_HEIGHT
    parts = [_grid_line(series, mark, floor - mark * scale) for mark in marks]
    parts += [
        _vertical_bar(series, place, AXIS_LEFT + step * place, step, scale, floor)
        for place in range(len(series.labels) - series.others)
    ]
    if series.others:
        parts.append(_others(series))
    # Of levels that were added up, the axis names the first: there is room for no more.
    firsts = [label.split(" – ")[0] for label in series.labels[: len(series.labels) - series.others]]
    names, height = level_names(firsts, AXIS_LEFT, step, floor + 10)
    return image(
        WIDTH, floor + 10 + height, "".join(parts) + names, title=series.name, description=series.says
    )


def _others(series: Series) -> str:
    """The sum of all levels that are not drawn, in figures: as a bar it would dwarf those that are."""
    last = len(series.labels) - 1
    words = f"{series.labels[last]}: {_number(series, last)}"
    wide = 7.4 * len(words)
    paper = element("rect", x=WIDTH - wide, y=0, width=wide, height=AXIS_TOP + 10, class_="f-paper")
    figures = text(WIDTH, AXIS_TOP + 4, words, anchor="end", class_="b")
    return element("g", hover(series.told(last)) + paper + figures)


def _grid_line(series: Series, mark: float, y: float) -> str:
    line = element("path", d=f"M{AXIS_LEFT} {y:.1f}H{WIDTH}", class_="l-line")
    words = f"{100 * mark:.3g}\u00a0%" if series.shares else short(mark)
    return line + text(AXIS_LEFT - 5, y + 4, words, anchor="end", class_="n")


def _vertical_bar(series: Series, place: int, x: float, step: float, scale: float, floor: float) -> str:
    height = max(float(series.counts[place]), 0.0) * scale
    wide, middle = max(step - 0.6, 0.5), x + step / 2
    out = hover(series.told(place)) + _reach(x, AXIS_TOP, step, AXIS_HEIGHT)
    out += element("rect", x=x, y=floor - height, width=wide, height=height, class_="f-bar")
    if series.compared is not None:
        y = floor - float(series.compared[place]) * scale
        out += element("path", d=f"M{x:.1f} {y:.1f}h{wide:.1f}", class_="l-mark", stroke_width=2.2)
    if series.bounds is not None:
        low, high = (floor - float(bound[place]) * scale for bound in series.bounds)
        out += element("path", d=f"M{middle:.1f} {low:.1f}V{high:.1f}", class_="l-ink", stroke_width=1.2)
    return element("g", out)


def ticks(most: float, many: int = 4) -> list[float]:
    """Round numbers from 0 up to at least `most`.

    >>> ticks(870)
    [0.0, 250.0, 500.0, 750.0, 1000.0]
    """
    if not most > 0:
        return [0.0, 1.0]
    raw = most / many
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * 0.999)
    return [step * i for i in range(math.ceil(most / step - 1e-9) + 1)]


def short(value: float) -> str:
    """A number for an axis.

    >>> short(12000), short(2500000), short(0.5), short(999_600)
    ('12k', '2.5M', '0.5', '1M')
    """
    value = float(f"{value:.3g}")  # rounding may reach the next unit
    for size, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{name}"
    return f"{value:.3g}"


def level_names(labels: Sequence[str], left: float, step: float, top: float) -> tuple[str, float]:
    """Level names under an axis, and the height they take: horizontal where they fit, else rotated, as many as there is room for."""
    longest = max(len(label) for label in labels)
    middles = [left + step * (place + 0.5) for place in range(len(labels))]
    if 7.2 * longest <= step:
        drawn = [text(x, top + 5, label, anchor="middle") for x, label in zip(middles, labels, strict=True)]
        return "".join(drawn), 14.0
    every = max(1, int(np.ceil(15 / step)))
    most = 18 if len(labels) <= 8 else 13
    drawn = [
        text(x + 3, top, clip(label, most), anchor="end", transform=f"rotate(-60 {x + 3:.1f} {top:.1f})")
        for x, label in list(zip(middles, labels, strict=True))[::every]
    ]
    return "".join(drawn), 12.0 + 6.2 * min(longest, most)


def stacked_bars(bars: Mapping[str, Mapping[str, float]], colours: Mapping[str, str], *, title: str) -> str:
    """One bar per label, its segments the shares in the order of `colours`, with a legend."""
    left = 8 + 7 * max((len(label) for label in bars), default=0)
    parts = [
        _stacked_bar(label, shares, colours, left, 8 + STACK_ROW * row)
        for row, (label, shares) in enumerate(bars.items())
    ]
    top = 8 + STACK_ROW * len(bars)
    legend, height = _legend(colours, top + 8)
    says = "; ".join(
        f"{label or 'shares'}: "
        + ", ".join(f"{name} {part:.0%}" for name, part in shares.items() if part > 0)
        for label, shares in bars.items()
    )
    return image(STACK_WIDTH, height, "".join(parts) + legend, title=title, description=says)


def _stacked_bar(
    label: str, shares: Mapping[str, float], colours: Mapping[str, str], left: int, top: int
) -> str:
    x, wide, out = float(left), STACK_WIDTH - left - 8, [text(left - 6, top + 14, label, anchor="end")]
    for name, colour in colours.items():
        width = shares.get(name, 0.0) * wide
        if width > 0:
            told = hover(f"{name}: {shares[name]:.1%}")
            out.append(
                element(
                    "rect", told, x=x, y=top, width=width, height=STACK_BAR, fill=colour, class_="l-paper"
                )
            )
        x += width
    return "".join(out)


def _legend(colours: Mapping[str, str], top: int) -> tuple[str, int]:
    out, x, y = [], 8, top
    for name, colour in colours.items():
        need = 26 + 8 * len(name)
        if x + need > STACK_WIDTH:
            x, y = 8, y + 22
        out.append(element("rect", x=x, y=y, width=12, height=12, fill=colour) + text(x + 17, y + 11, name))
        x += need
    return "".join(out), y + 22
