"""One-way tables as bar charts: lying bars with numbers for a few levels, a skyline for many."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcipher.drawing.numbers import rows, short, ticks
from dpcipher.drawing.svg import clip, element, image, text

Floats = NDArray[np.float64]

BAR, MARK, WHISKER, GRID = "#3b75af", "#b34700", "#1a1a1a", "#d5d9de"
WIDTH = 360
FEW = 24
NUMBERS, ROW = 86, 22
SKY_LEFT, SKY_TOP, SKY_HEIGHT = 40, 8, 130


@dataclass(frozen=True)
class Series:
    """What a chart shows of one column: counts by level, their bounds where they have some, and counts to compare with."""

    name: str
    labels: tuple[str, ...]
    counts: Floats
    bounds: tuple[Floats, Floats] | None
    compared: Floats
    says: str

    @property
    def most(self) -> float:
        """The largest number that has to fit."""
        high = self.counts if self.bounds is None else self.bounds[1]
        return float(max(high.max(), self.compared.max(), self.counts.max(), 1e-9))


def bar_chart(series: Series) -> str:
    """The chart that suits the number of levels."""
    return _lying(series) if len(series.labels) <= FEW else _skyline(series)


def _lying(series: Series) -> str:
    # Text is measured in a wide font, so that no reader's font cuts a name.
    left = min(158.0, 16 + 7.0 * max(len(label) for label in series.labels))
    scale = (WIDTH - left - NUMBERS) / series.most
    parts = [_lying_row(series, place, left, scale) for place in range(len(series.labels))]
    height = ROW * len(parts) + 4
    return image(WIDTH, height, "".join(parts), title=series.name, description=series.says)


def _lying_row(series: Series, place: int, left: float, scale: float) -> str:
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


def _skyline(series: Series) -> str:
    marks = ticks(series.most, 3)
    scale, step = SKY_HEIGHT / marks[-1], (WIDTH - SKY_LEFT - 4) / len(series.labels)
    floor = SKY_TOP + SKY_HEIGHT
    parts = [_level_line(mark, floor - mark * scale) for mark in marks]
    parts += [
        _tower(series, place, SKY_LEFT + step * place, step, scale, floor)
        for place in range(len(series.labels))
    ]
    names, height = level_names(series.labels, SKY_LEFT, step, floor + 10)
    return image(
        WIDTH, floor + 10 + height, "".join(parts) + names, title=series.name, description=series.says
    )


def _level_line(mark: float, y: float) -> str:
    line = element("path", d=f"M{SKY_LEFT} {y:.1f}H{WIDTH}", stroke=GRID)
    return line + text(SKY_LEFT - 5, y + 4, short(mark), anchor="end", class_="n")


def _tower(series: Series, place: int, x: float, step: float, scale: float, floor: float) -> str:
    height = max(float(series.counts[place]), 0.0) * scale
    wide, middle = max(step - 0.6, 0.5), x + step / 2
    out = element("rect", x=x, y=floor - height, width=wide, height=height, fill=BAR)
    if series.bounds is not None:
        low, high = (floor - float(bound[place]) * scale for bound in series.bounds)
        out += element("path", d=f"M{middle:.1f} {low:.1f}V{high:.1f}", stroke="#666", stroke_width=0.8)
    y = floor - float(series.compared[place]) * scale
    return out + element("path", d=f"M{x:.1f} {y:.1f}h{wide:.1f}", stroke=MARK, stroke_width=2)


def level_names(labels: Sequence[str], left: float, step: float, top: float) -> tuple[str, float]:
    """Names under an axis and the height they take: level where they fit, else turned, as many as there is room for."""
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
