"""Two small pictures as inline SVG: a one-way table with error bars, and a pair table as heat maps.

Drawn by hand because they must be readable on a phone, where text that shrinks with a wide picture is lost: each picture is
360 units wide, about the width of a phone, and the page puts as many side by side as fit.
"""

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

WIDTH = 360
_ROW = 22
_LETTER = 7.2  # the width of a letter, on the safe side
_INK, _SOFT, _BAR, _MARK = "#1b1f24", "#68707a", "#9cc3e6", "#b3261e"


def bars(
    labels: Sequence[str], rows: Floats, estimate: Floats, low: Floats, high: Floats, *, about: str
) -> str:
    """Synthetic rows as bars; released counts as points, with the interval that their noise leaves."""
    most = max(float(high.max(initial=0)), float(rows.max(initial=0)), 1.0)
    left = _margin(labels)
    room = WIDTH - left - 52

    def x(value: float) -> float:
        return round(left + room * value / most, 1)

    parts = []
    for place, label in enumerate(labels):
        y = place * _ROW + 4
        middle = y + 7
        parts += [
            _text(left - 6, middle + 4, _short(label), anchor="end"),
            f'<rect x="{left}" y="{y}" width="{x(rows[place]) - left:.1f}" height="14" rx="2" fill="{_BAR}"/>',
            f'<path d="M{x(low[place])} {middle}H{x(high[place])}" stroke="{_MARK}" stroke-width="2"/>',
            f'<circle cx="{x(max(0.0, estimate[place]))}" cy="{middle}" r="3" fill="{_MARK}"/>',
            _text(x(max(rows[place], high[place])) + 6, middle + 4, f"{rows[place]:,.0f}", fill=_SOFT),
        ]
    return _svg(len(labels) * _ROW + 4, about, parts)


def heat(
    rows: Sequence[str], columns: Sequence[str], panels: Sequence[tuple[str, Floats]], *, about: str
) -> str:
    """Tables of shares side by side, on one scale of colour: white is none, dark is the largest cell of all."""
    most = max(float(table.max()) for _, table in panels) or 1.0
    gap, top, margin = 14, 20, _margin(rows)
    panel = (WIDTH - margin - gap * (len(panels) - 1)) / len(panels)
    width, height = panel / len(columns), _ROW * len(rows)
    parts = [
        _text(margin - 6, top + _ROW * i + 15, _short(label), anchor="end") for i, label in enumerate(rows)
    ]
    for number, (name, table) in enumerate(panels):
        left = margin + number * (panel + gap)
        parts.append(_text(left + panel / 2, 13, name, anchor="middle", weight="600"))
        parts += [
            _cell(left + j * width, top + i * _ROW, width, float(table[i, j]), most, f"{row}, {column}")
            for i, row in enumerate(rows)
            for j, column in enumerate(columns)
        ]
        parts += [
            _text(left + (j + 0.5) * width + 4, top + height + 6, _short(column), anchor="end", turn=True)
            for j, column in enumerate(columns)
        ]
    longest = max(len(_short(column)) for column in columns)
    return _svg(round(top + height + 12 + _LETTER * longest), about, parts)


def _cell(x: float, y: float, width: float, value: float, most: float, name: str) -> str:
    """One cell; pointing at it shows its share."""
    depth = min(1.0, max(0.0, value / most)) ** 0.5  # the square root keeps small cells apart from none
    red, green, blue = (round(255 + (end - 255) * depth) for end in (8, 69, 148))
    return (
        f'<rect x="{x:.1f}" y="{y}" width="{width - 1:.1f}" height="{_ROW - 1}" fill="rgb({red},{green},{blue})" stroke="#e3e6ea" '
        f'stroke-width=".5"><title>{escape(name)}: {value:.1%}</title></rect>'
    )


def _text(
    x: float,
    y: float,
    text: str,
    *,
    anchor: str = "start",
    fill: str = _INK,
    weight: str = "400",
    turn: bool = False,
) -> str:
    turned = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turn else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}" font-weight="{weight}"{turned}>{escape(text)}</text>'


def _short(label: str, most: int = 18) -> str:
    """A label that fits; a range of whole years is shown by its years."""
    ends = label.split("..")
    if len(ends) == 2 and ends[0].endswith("-01-01") and ends[1].endswith("-12-31"):
        return f"{ends[0][:4]}–{ends[1][:4]}"
    text = label.replace("..", "–")
    return text if len(text) <= most else text[: most - 1] + "…"


def _margin(labels: Sequence[str]) -> int:
    """Room for the longest label on the left."""
    return round(10 + _LETTER * max(len(_short(label)) for label in labels))


def _svg(height: int, about: str, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(about)}" font-family="system-ui, sans-serif" '
        f'font-size="12">{"".join(parts)}</svg>'
    )
