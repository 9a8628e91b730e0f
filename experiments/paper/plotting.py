"""Small multiples, drawn with matplotlib: lines over shared places, and stacked bars. Each picture is an SVG file whose text stays text."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from dpcipher.errors import MissingExtra
from dpcipher.inference.sss import COLOURS
from dpcipher.tables.domain import Floats

# One colour for each family of methods, in every picture.
FAMILIES: Mapping[str, str] = {
    "original": "#000000",
    "FDH": "#5f6368",
    "CIPHER": "#c62828",
    "ours": "#1565c0",
    "MWEM": "#2e7d32",
    "models": "#ef6c00",
    "other": "#8e5bb5",
}


@dataclass(frozen=True)
class Line:
    """A method's values, with their spread where it is to be shown; `band` shades from its lowest to its highest values."""

    name: str
    values: Sequence[float] | Floats
    spread: Sequence[float] | Floats | None = None
    band: tuple[Sequence[float] | Floats, Sequence[float] | Floats] | None = None
    tint: str = ""

    @property
    def colour(self) -> str:
        """Its own colour, or that of its family."""
        if self.tint:
            return self.tint
        return next((c for family, c in FAMILIES.items() if self.name.startswith(family)), FAMILIES["other"])

    @property
    def dash(self) -> str:
        """MWEM by cells is dotted, by tables dashed; 3-way tables are dash-dotted; what the original says is dotted too."""
        if self.name.startswith("original") or self.name.endswith(", cells"):
            return ":"
        if "3-way" in self.name:
            return "-."
        return "--" if self.name.endswith(", tables") else "-"

    @property
    def marker(self) -> str:
        """A shape for each family, for those who do not see colours."""
        shapes = {"FDH": "s", "CIPHER": "o", "ours": "D", "MWEM": "^", "models": "P", "original": "."}
        return next((shape for family, shape in shapes.items() if self.name.startswith(family)), "v")


@dataclass(frozen=True)
class Panel:
    """One pair of axes: lines over shared places, and what the axes are called."""

    title: str
    places: Sequence[str]
    lines: Sequence[Line]
    y: str = ""
    x: str = "ε"
    level: float | None = None
    log: bool = False


@dataclass(frozen=True)
class Bars:
    """Stacked bars of the SSS categories, one for each place."""

    title: str
    places: Sequence[str]
    shares: Sequence[Mapping[str, float]]
    y: str = "ε"


def figure(
    rows: int, columns: int, *, width: float = 2.6, height: float = 2.1, shared: bool = True
) -> tuple[Any, Any]:
    """A blank figure and its axes, rows by columns; sizes in inches, with room for labels and for a legend below."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("experiments", "matplotlib") from None
    wide, high = width * columns + 0.5, height * rows + 0.9
    drawing = Figure(figsize=(wide, high))
    axes = drawing.subplots(rows, columns, squeeze=False, sharey="row" if shared else False)
    # Margins by hand: matplotlib's own layouts take minutes for twenty panels.
    drawing.subplots_adjust(
        left=0.75 / wide,
        right=1 - 0.1 / wide,
        top=1 - 0.3 / high,
        bottom=0.95 / high,
        wspace=0.12 if shared else 0.32,
        hspace=0.42,
    )
    return drawing, axes


def save(drawing: Any, path: Path) -> None:
    """Write the figure, the same bytes for the same numbers; a tenth of a point is finer than any screen."""
    from matplotlib import rc_context

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


def draw_panels(path: Path, panels: Sequence[Sequence[Panel]], *, shared: bool = True) -> None:
    """Lines in rows and columns of panels, with one legend for all; a row shares its vertical axis."""
    drawing, axes = figure(len(panels), len(panels[0]), shared=shared)
    for row, line in zip(axes, panels, strict=True):
        for place, (cell, panel) in enumerate(zip(row, line, strict=True)):
            _draw(cell, panel)
            if place == 0 or not shared:
                cell.set_ylabel(panel.y, fontsize=8)
    for cell, panel in zip(axes[-1], panels[-1], strict=True):
        cell.set_xlabel(panel.x, fontsize=8)
    _legend(drawing, [cell for row in axes for cell in row])
    save(drawing, path)


def _draw(axes: Any, panel: Panel) -> None:
    if not panel.lines:
        axes.set_axis_off()
        return
    x = np.arange(len(panel.places))
    for number, line in enumerate(panel.lines):
        # Methods stand beside one another, so that their spreads can be told apart.
        shift = 0.07 * (number - (len(panel.lines) - 1) / 2)
        style = {"label": line.name, "color": line.colour, "linestyle": line.dash, "linewidth": 1.1}
        marks = {"marker": line.marker, "markersize": 3}
        if line.band is not None:
            axes.fill_between(x, *line.band, color=line.colour, alpha=0.15, linewidth=0)
        if line.spread is None:
            axes.plot(x, line.values, **style, **marks)
        else:
            axes.errorbar(x + shift, line.values, yerr=line.spread, elinewidth=0.6, **style, **marks)
    if panel.level is not None:
        axes.axhline(panel.level, color="#999999", linewidth=0.8, linestyle=(0, (2, 2)))
    axes.set_xticks(x, panel.places)
    axes.set_title(panel.title, fontsize=8.5)
    axes.tick_params(labelsize=7)
    if panel.log:
        _log_scale(axes)
    axes.grid(axis="y", alpha=0.25)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _log_scale(axes: Any) -> None:
    """A logarithmic axis with few, plain numbers."""
    from matplotlib.ticker import FormatStrFormatter, LogLocator, NullLocator

    axes.set_yscale("log")
    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 1e3 * low else (1,)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FormatStrFormatter("%g"))


def _legend(drawing: Any, cells: Sequence[Any]) -> None:
    handles: dict[str, Any] = {}
    for cell in cells:
        for handle, label in zip(*cell.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    columns = min(max(2, int(drawing.get_figwidth() / 1.7)), len(handles))
    drawing.legend(
        list(handles.values()), list(handles), loc="lower left", ncols=columns, fontsize=7.5, frameon=False
    )


def draw_bars(path: Path, bars: Sequence[Sequence[Bars]]) -> None:
    """Stacked bars of the SSS categories in the paper's colours, in rows and columns of panels."""
    drawing, axes = figure(len(bars), len(bars[0]), width=1.7, height=1.5)
    for row, line in zip(axes, bars, strict=True):
        for place, (cell, panel) in enumerate(zip(row, line, strict=True)):
            start = np.zeros(len(panel.places))
            for category, colour in COLOURS.items():
                widths = np.array([float(share[category]) for share in panel.shares])
                cell.barh(np.arange(len(start)), widths, left=start, color=colour, label=category, height=0.8)
                start += widths
            cell.set_yticks(np.arange(len(start)), list(panel.places), fontsize=7)
            cell.tick_params(labelsize=7)
            cell.set_xlim(0, 1)
            cell.set_xticks([0.0, 0.5, 1.0], ["0", "½", "1"])
            cell.set_title(panel.title, fontsize=8.5)
            if place == 0:
                cell.set_ylabel(panel.y, fontsize=8)
                cell.invert_yaxis()
    for cell in axes[-1]:
        cell.set_xlabel("share of the estimates", fontsize=7.5)
    _legend(drawing, [axes[0][0]])
    save(drawing, path)
