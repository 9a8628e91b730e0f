"""Bar charts: a one-way table, with horizontal bars for a few levels and vertical ones for many; and stacked bars of shares."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcipher.drawing.html import rows
from dpcipher.drawing.svg import clip, element, image, text

BAR, MARK, WHISKER, GRID = "#3b75af", "#b34700", "#1a1a1a", "#d5d9de"
WIDTH = 360
FEW = 24
NUMBERS, ROW = 86, 22
AXIS_LEFT, AXIS_TOP, AXIS_HEIGHT = 40, 8, 130
STACK_WIDTH, STACK_ROW, STACK_BAR = 640, 34, 20


@dataclass(frozen=True)
class Series:
    """What a chart shows of one column: counts by level, counts to compare with, a description, and intervals of the counts if there are any."""

    name: str
    labels: tuple[str, ...]
    counts: NDArray[np.float64]
    compared: NDArray[np.float64]
    says: str
    bounds: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None

    @property
    def most(self) -> float:
        """The largest number that has to fit."""
        high = self.counts if self.bounds is None else self.bounds[1]
        return float(max(high.max(), self.compared.max(), self.counts.max(), 1e-9))

    def largest(self, most: int) -> "Series":
        """The levels with the largest counts, in their order, and a name that says how many there are."""
        if len(self.labels) <= most:
            return self
        kept = np.sort(np.argsort(self.counts)[::-1][:most])
        return Series(
            f"{self.name} (the {most} largest of {len(self.labels):,} levels)",
            tuple(self.labels[k] for k in kept),
            self.counts[kept],
            self.compared[kept],
            self.says,
            self.bounds and (self.bounds[0][kept], self.bounds[1][kept]),
        )


def bar_chart(series: Series) -> str:
    """The chart that suits the number of levels."""
    return _horizontal(series) if len(series.labels) <= FEW else _vertical(series)


def _horizontal(series: Series) -> str:
    # Text is measured in a wide font, so that no reader's font cuts a name.
    left = min(158.0, 16 + 7.0 * max(len(label) for label in series.labels))
    scale = (WIDTH - left - NUMBERS) / series.most
    parts = [_horizontal_bar(series, place, left, scale) for place in range(len(series.labels))]
    height = ROW * len(parts) + 4
    return image(WIDTH, height, "".join(parts), title=series.name, description=series.says)


def _horizontal_bar(series: Series, place: int, left: float, scale: float) -> str:
    top, count = 2 + ROW * place, float(series.counts[place])
    out = [
        text(left - 6, top + 15, clip(series.labels[place], 22), anchor="end", class_="s"),
        element("rect", x=left, y=top + 3, width=max(count, 0.0) * scale, height=ROW - 6, fill=BAR),
        _diamond(left + float(series.compared[place]) * scale, top + ROW / 2),
    ]
    number = rows(count)
    if series.bounds is not None:
        low, high = (left + float(bound[place]) * scale for bound in series.bounds)
        out.insert(2, _whisker(low, high, top + ROW / 2))
        number += f" ±{rows(float(series.bounds[1][place]) - count)}"
    out.append(text(WIDTH - 2, top + 15, number, anchor="end", class_="n"))
    return "".join(out)


def _whisker(low: float, high: float, y: float) -> str:
    path = f"M{low:.1f} {y - 4:.1f}v8M{low:.1f} {y:.1f}H{high:.1f}M{high:.1f} {y - 4:.1f}v8"
    return element("path", d=path, stroke=WHISKER, fill="none")


def _diamond(x: float, y: float) -> str:
    return element("path", d=f"M{x:.1f} {y - 5:.1f}l4 5-4 5-4-5z", fill=MARK, stroke="#fff", stroke_width=0.6)


def _vertical(series: Series) -> str:
    marks = ticks(series.most, 3)
    scale, step = AXIS_HEIGHT / marks[-1], (WIDTH - AXIS_LEFT - 4) / len(series.labels)
    floor = AXIS_TOP + AXIS_HEIGHT
    parts = [_grid_line(mark, floor - mark * scale) for mark in marks]
    parts += [
        _vertical_bar(series, place, AXIS_LEFT + step * place, step, scale, floor)
        for place in range(len(series.labels))
    ]
    names, height = level_names(series.labels, AXIS_LEFT, step, floor + 10)
    return image(
        WIDTH, floor + 10 + height, "".join(parts) + names, title=series.name, description=series.says
    )


def _grid_line(mark: float, y: float) -> str:
    line = element("path", d=f"M{AXIS_LEFT} {y:.1f}H{WIDTH}", stroke=GRID)
    return line + text(AXIS_LEFT - 5, y + 4, _short(mark), anchor="end", class_="n")


def _vertical_bar(series: Series, place: int, x: float, step: float, scale: float, floor: float) -> str:
    height = max(float(series.counts[place]), 0.0) * scale
    wide, middle = max(step - 0.6, 0.5), x + step / 2
    out = element("rect", x=x, y=floor - height, width=wide, height=height, fill=BAR)
    if series.bounds is not None:
        low, high = (floor - float(bound[place]) * scale for bound in series.bounds)
        out += element("path", d=f"M{middle:.1f} {low:.1f}V{high:.1f}", stroke="#666", stroke_width=0.8)
    y = floor - float(series.compared[place]) * scale
    return out + element("path", d=f"M{x:.1f} {y:.1f}h{wide:.1f}", stroke=MARK, stroke_width=2)


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


def _short(value: float) -> str:
    """A number for an axis.

    >>> _short(12000), _short(2500000), _short(0.5)
    ('12k', '2.5M', '0.5')
    """
    for size, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{name}"
    return f"{value:g}"


def level_names(labels: Sequence[str], left: float, step: float, top: float) -> tuple[str, float]:
    """Level names under an axis, and the height they take: horizontal where they fit, else rotated, as many as there is room for."""
    longest = max(len(label) for label in labels)
    middles = [left + step * (place + 0.5) for place in range(len(labels))]
    if 7 * longest <= step:
        drawn = [
            text(x, top + 4, label, anchor="middle", class_="s")
            for x, label in zip(middles, labels, strict=True)
        ]
        return "".join(drawn), 12.0
    every = max(1, int(np.ceil(14 / step)))
    drawn = [
        text(
            x + 3,
            top,
            clip(label, 12),
            anchor="end",
            transform=f"rotate(-60 {x + 3:.1f} {top:.1f})",
            class_="s",
        )
        for x, label in list(zip(middles, labels, strict=True))[::every]
    ]
    return "".join(drawn), 10.0 + 5.6 * min(longest, 12)


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
        + ", ".join(f"{name} {share:.0%}" for name, share in shares.items() if share > 0)
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
            out.append(element("rect", x=x, y=top, width=width, height=STACK_BAR, fill=colour, stroke="#fff"))
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
