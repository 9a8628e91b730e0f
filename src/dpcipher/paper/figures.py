"""The paper's figures from our runs: storage (1), simulated tables (2 to 6) and bankruptcy data (7, with table 2).

Each is an SVG file, its text kept as text so that files stay small.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import product
from math import log
from pathlib import Path
from typing import Any

import numpy as np

from dpcipher.errors import MissingExtra
from dpcipher.inference.sss import COLOURS
from dpcipher.marginals.arrays import Floats
from dpcipher.paper import bankruptcy
from dpcipher.paper.blocks import STAMP
from dpcipher.paper.contenders import CONTENDERS
from dpcipher.paper.simulated import NAMES, POWERS, SIZES
from dpcipher.paper.storage import LARGEST, ORDERS, PANELS, full_cells, parameters, stored_cells
from dpcipher.paper.summary import ORIGINAL, PRINTED, BankruptcySummary, SimulatedSummary, cost

PLACES = tuple(NAMES.values())


@dataclass(frozen=True)
class Look:
    """How a method is drawn."""

    colour: str
    dash: str = "-"
    marker: str = "o"


# By name of the method, without "2-way".
LOOKS: Mapping[str, Look] = {
    "original": Look("#000000", ":", "."),
    "FDH": Look("#444444", "-", "s"),
    "CIPHER": Look("#c62828"),
    "CIPHER 3-way": Look("#ef8a17", "-", "^"),
    "ours": Look("#1565c0"),
    "ours 3-way": Look("#26a6d1", "-", "^"),
    "MWEM": Look("#2e7d32", "--"),
    "MWEM 3-way": Look("#8bc34a", "--", "^"),
    "MWEM, cells": Look("#6a1b9a", ":"),
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


def draw_storage(path: Path) -> None:
    """Figure 1: log10 of the stored cells against the number of attributes; parameters below."""
    numbers = range(4, LARGEST + 1)
    rows = []
    for name, count in (("stored cells", stored_cells), ("parameters", parameters)):
        row = []
        for title, levels in PANELS.items():
            lines = [Line(f"{k}-way", [count(levels[:p], k) for p in numbers]) for k in ORDERS]
            whole = Line("full table", [full_cells(levels[:p]) for p in numbers])
            row.append(Panel(title, [str(p) for p in numbers], [*lines, whole], label=name, log=True))
        rows.append(row)
    draw_panels(path, rows)


def draw_simulated(folder: Path, summary: SimulatedSummary) -> None:
    """Figures 2 to 6 and the supplement's, each un-normalised and normalised where that has a meaning."""
    for suffix, normal in (("", False), ("-normalised", True)):
        tvd = _distances(summary, "tvd", "TVD", {f"{k}-way tables": k - 1 for k in (3, 2, 1)}, normal)
        linf = _distances(summary, "linf", "l∞", {f"all {k}-way tables": k - 2 for k in (2, 3)}, normal)
        draw_panels(folder / f"fig2-tvd{suffix}.svg", tvd)
        draw_panels(folder / f"fig3-linf{suffix}.svg", linf)
        for n in SIZES:
            draw_panels(folder / f"fig4-inference-n{n}{suffix}.svg", _inference(summary, n, 0, normal))
        draw_panels(folder / f"fig6-log-odds{suffix}.svg", [[_odds(summary, n, normal) for n in SIZES]])
    draw_panels(folder / f"fig4-binary-n{SIZES[0]}.svg", _inference(summary, SIZES[0], 1, False))
    shares = {
        (n, power, method.name): summary.cards[n, power, method.name].inference[0].shares
        for n, power, method in product(SIZES, POWERS, CONTENDERS)
    }
    draw_bars(folder / "fig5-sss.svg", "n", shares)


def _distances(
    summary: SimulatedSummary, metric: str, label: str, orders: Mapping[str, int], normal: bool
) -> list[list[Panel]]:
    """A distance in rows of n and columns of orders, each a title and its place in the scores."""

    def line(n: int, name: str, order: int, scale: float) -> Line:
        cards = [summary.cards[n, power, name] for power in POWERS]
        mean, spread = (
            [scale * getattr(card, score)[order] for card in cards] for score in (metric, f"{metric}_sd")
        )
        return Line(name, mean, spread)

    return [
        [
            Panel(
                f"{title}, n = {n}",
                PLACES,
                [line(n, method.name, order, cost(method, normal=normal)) for method in CONTENDERS],
                label=_times_cost(label, normal),
                log=True,
            )
            for title, order in orders.items()
        ]
        for n in SIZES
    ]


def _times_cost(label: str, normal: bool) -> str:
    return f"{label} × cost" if normal else label


def _inference(summary: SimulatedSummary, n: int, regression: int, normal: bool) -> list[list[Panel]]:
    """Metrics of every parameter of a regression, in rows of metrics and columns of epsilon; coverage is never normalised."""

    def panel(metric: str, power: int, times_cost: bool) -> Panel:
        lines = [Line(ORIGINAL, getattr(summary.originals[n][regression], metric))]
        for method in CONTENDERS:
            inference = summary.cards[n, power, method.name].inference[regression]
            lines.append(Line(method.name, cost(method, normal=times_cost) * getattr(inference, metric)))
        # Numbers under the axis: the names of ten parameters would overlap.
        places = [str(number + 1) for number in range(len(lines[0].values))]
        level = {"coverage": 0.95, "bias": 0.0}.get(metric)
        label = _times_cost(metric, times_cost)
        return Panel(f"ε = {NAMES[power]}, n = {n}", places, lines, label=label, level=level)

    return [
        [panel(metric, power, normal and metric != "coverage") for power in POWERS]
        for metric in ("bias", "rmse", "coverage", "width")
    ]


def _odds(summary: SimulatedSummary, n: int, normal: bool) -> Panel:
    """Log-odds of Best. More is better here, so that the cost divides the odds."""
    lines = []
    for method in CONTENDERS:
        odds = [summary.cards[n, power, method.name].inference[0].log_odds for power in POWERS]
        lines.append(Line(method.name, np.array(odds) - log(cost(method, normal=normal))))
    return Panel(f"n = {n}", PLACES, lines, label="log(odds of Best" + (" / cost)" if normal else ")"))


def draw_bankruptcy(folder: Path, summary: BankruptcySummary) -> None:
    """Figure 7 as bars, table 2 as lines beside the printed values."""
    shares = {key: card.shares for key, card in summary.cards.items()}
    draw_bars(folder / "fig7-sss.svg", "m", shares)
    unknown = np.full(len(POWERS), np.nan)
    lines = [Line(method.name, PRINTED.get(method.name, unknown)) for method in bankruptcy.CONTENDERS]
    printed = Panel("as printed (m not said)", PLACES, lines, label="accuracy, %", level=50.0)
    draw_panels(
        folder / "table2-svm.svg", [[printed, *(_accuracy(summary, sets) for sets in bankruptcy.SETS)]]
    )


def _accuracy(summary: BankruptcySummary, sets: int) -> Panel:
    lines = []
    for method in bankruptcy.CONTENDERS:
        cards = [summary.cards[sets, power, method.name] for power in POWERS]
        mean, spread = [100 * card.accuracy for card in cards], [100 * card.accuracy_sd for card in cards]
        lines.append(Line(method.name, mean, spread))
    return Panel(f"ours, m = {sets}", PLACES, lines, label="accuracy, %", level=100 * summary.majority)


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
        for place, panel in zip(row, line, strict=True):
            _draw(place, panel)
    _legend(drawing, axes[0][0], columns=5)
    save(drawing, path)


def _draw(axes: Any, panel: Panel) -> None:
    x = np.arange(len(panel.places))
    for number, line in enumerate(panel.lines):
        look = LOOKS.get(line.name.replace(" 2-way", ""), Look(f"C{number}"))
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


def _legend(drawing: Any, axes: Any, columns: int) -> None:
    handles, labels = axes.get_legend_handles_labels()
    columns = min(columns, len(labels))
    drawing.legend(handles, labels, loc="lower left", ncols=columns, fontsize=8, frameon=False)


def draw_bars(path: Path, letter: str, shares: Mapping[tuple[int, int, str], Mapping[str, float]]) -> None:
    """Stacked bars of the SSS categories in the paper's colours: a panel for each n or m, a bar for each epsilon and method."""
    sizes = sorted({size for size, _, _ in shares})
    drawing, axes = figure(1, len(sizes), width=6.0, height=0.2 * (len(shares) // len(sizes)) + 0.6, left=2.0)
    for place, size in zip(axes[0], sizes, strict=True):
        bars = {
            f"{name}, ε = {NAMES[power]}": share for (n, power, name), share in shares.items() if n == size
        }
        start = np.zeros(len(bars))
        for category, colour in COLOURS.items():
            widths = np.array([bar[category] for bar in bars.values()])
            place.barh(np.arange(len(bars)), widths, left=start, color=colour, label=category, height=0.8)
            start += widths
        place.set_yticks(np.arange(len(bars)), list(bars), fontsize=7)
        place.margins(y=0.01)
        place.invert_yaxis()
        place.set_xlim(0, 1)
        place.set_title(f"{letter} = {size}", fontsize=10)
    _legend(drawing, axes[0][0], columns=7)
    save(drawing, path)
