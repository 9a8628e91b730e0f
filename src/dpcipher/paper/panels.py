"""The paper's figures, drawn from our runs: each one an SVG file, text kept as text so that files stay small."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from dpcipher.errors import MissingExtra
from dpcipher.inference.sss import COLOURS
from dpcipher.marginals.arrays import Floats
from dpcipher.paper.blocks import STAMP


@dataclass(frozen=True)
class Look:
    """How a method is drawn."""

    colour: str
    dash: str = "-"
    marker: str = "o"


LOOKS: Mapping[str, Look] = {
    "original": Look("#000000", ":", "."),
    "FDH": Look("#444444", "-", "s"),
    "CIPHER": Look("#c62828"),
    "CIPHER 2-way": Look("#c62828"),
    "CIPHER 3-way": Look("#ef8a17", "-", "^"),
    "ours": Look("#1565c0"),
    "ours 2-way": Look("#1565c0"),
    "ours 3-way": Look("#26a6d1", "-", "^"),
    "MWEM": Look("#2e7d32", "--"),
    "MWEM 2-way": Look("#2e7d32", "--"),
    "MWEM 3-way": Look("#8bc34a", "--", "^"),
    "MWEM, cells": Look("#6a1b9a", ":"),
    "MWEM 2-way, cells": Look("#6a1b9a", ":"),
    "MWEM 3-way, cells": Look("#ba68c8", ":", "^"),
}


@dataclass(frozen=True)
class Line:
    """A method's values, with their spread where it is to be shown."""

    name: str
    values: Sequence[float] | Floats
    spread: Sequence[float] | Floats | None = None


@dataclass(frozen=True)
class Panel:
    """One pair of axes: lines over shared places."""

    title: str
    places: Sequence[str]
    lines: Sequence[Line]
    label: str = ""
    level: float | None = None
    log: bool = False


def figure(
    rows: int, columns: int, *, width: float = 4.0, height: float = 3.0, left: float = 0.7
) -> tuple[Any, Any]:
    """A blank figure and its axes, rows by columns; sizes in inches, room for labels on the left and a legend below."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("experiments", "matplotlib") from None
    wide, high = width * columns, height * rows + 0.8
    drawing = Figure(figsize=(wide, high))
    axes = drawing.subplots(rows, columns, squeeze=False)
    # Margins by hand: matplotlib's own layouts take minutes for twenty panels of ten lines.
    drawing.subplots_adjust(
        left=left / wide,
        right=1 - 0.15 / wide,
        top=1 - 0.35 / high,
        bottom=1.0 / high,
        wspace=1.15 * left / (width - left),
        hspace=0.25 if height > 2 else 0.35,
    )
    return drawing, axes


def save(drawing: Any, path: Path) -> None:
    """Write the figure, the same bytes for the same numbers; a tenth of a point is finer than any screen."""
    from matplotlib import rc_context

    drawing.text(0.995, 0.004, STAMP, ha="right", va="bottom", fontsize=7, color="#888888")
    drawn = StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "dpcipher"}):
        drawing.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None})
    text = re.sub(r"<!--[^>]*-->", "", drawn.getvalue())
    lines = (line.strip() for line in text.splitlines())
    # Inside tags only: the labels of ticks are numbers too.
    short = re.sub(
        r"<[^>]*>", lambda tag: re.sub(r"(\d+\.\d)\d+", r"\1", tag[0]), "\n".join(filter(None, lines))
    )
    path.write_text(short + "\n", encoding="utf-8")


def draw_panels(path: Path, panels: Sequence[Sequence[Panel]]) -> None:
    """Lines in rows and columns of panels, with one legend for all."""
    drawing, axes = figure(len(panels), len(panels[0]))
    for row, line in zip(axes, panels, strict=True):
        for one, panel in zip(row, line, strict=True):
            _draw(one, panel)
    _legend(drawing, axes[0][0])
    save(drawing, path)


def _draw(axes: Any, panel: Panel) -> None:
    x = np.arange(len(panel.places))
    for number, line in enumerate(panel.lines):
        look = LOOKS.get(line.name, Look(f"C{number}"))
        # Methods stand beside one another, so that their spreads can be told apart.
        shift = 0.04 * (number - (len(panel.lines) - 1) / 2)
        style = {"label": line.name, "color": look.colour, "linestyle": look.dash, "linewidth": 1.2}
        if line.spread is None:
            axes.plot(x, line.values, **style)
        else:
            marks = {"marker": look.marker, "markersize": 4, "elinewidth": 0.6}
            axes.errorbar(x + shift, line.values, yerr=line.spread, **style, **marks)
    if panel.level is not None:
        axes.axhline(panel.level, color="#999999", linewidth=0.8, linestyle=":")
    axes.set_xticks(x, panel.places)
    axes.set_title(f"{panel.label}: {panel.title}" if panel.label else panel.title, fontsize=9)
    axes.tick_params(labelsize=8)
    if panel.log:
        _log_scale(axes)
    else:
        axes.locator_params(axis="y", nbins=5)
    axes.grid(axis="y", alpha=0.25)


def _log_scale(axes: Any) -> None:
    """A logarithmic axis with few, plain numbers."""
    from matplotlib.ticker import FormatStrFormatter, LogLocator, NullLocator

    axes.set_yscale("log")
    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 1e3 * low else (1,)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FormatStrFormatter("%g"))


def _legend(drawing: Any, axes: Any) -> None:
    handles, labels = axes.get_legend_handles_labels()
    drawing.legend(handles, labels, loc="lower left", ncols=min(5, len(labels)), fontsize=8, frameon=False)


def draw_bars(path: Path, columns: Mapping[str, Mapping[str, Mapping[str, float]]]) -> None:
    """Stacked bars of the SSS categories: panels, in each a bar for every label, in the paper's colours."""
    labels = max(len(bars) for bars in columns.values())
    drawing, axes = figure(1, len(columns), width=6.0, height=0.2 * labels + 0.6, left=2.0)
    for one, (title, bars) in zip(axes[0], columns.items(), strict=True):
        start = np.zeros(len(bars))
        for category, colour in COLOURS.items():
            shares = np.array([bar[category] for bar in bars.values()])
            one.barh(np.arange(len(bars)), shares, left=start, color=colour, label=category, height=0.8)
            start += shares
        one.set_yticks(np.arange(len(bars)), list(bars), fontsize=7)
        one.margins(y=0.01)
        one.invert_yaxis()
        one.set_xlim(0, 1)
        one.set_title(title, fontsize=10)
    drawing.legend(
        *axes[0][0].get_legend_handles_labels(), loc="lower left", ncols=7, fontsize=8, frameon=False
    )
    save(drawing, path)
