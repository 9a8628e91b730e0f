"""The paper's figures from our runs: storage (1), simulated tables (2 to 6), bankruptcy data (7, with table 2); the readings and the rivals.

Each is a tidy frame (row, column, title, y, method, x, mean; spread, low and high where they are to be shown) drawn as small multiples: an SVG file
whose text stays text. CIPHER is drawn under the literal reading, with a band from the lowest to the highest mean of all readings that were run.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpcipher.errors import MissingExtra
from dpcipher.inference.sss import CATEGORIES, COLOURS
from experiments.paper import bankruptcy
from experiments.paper.blocks import NAMES, ORIGINAL, POWERS
from experiments.paper.quantities import PRINTED, Condition, Results, cost
from experiments.paper.results import BINARY, Scores
from experiments.paper.simulated import CIPHER, FDH, METHODS, MWEM, OURS, RIVAL_NAMES, SIZES
from experiments.paper.stacks import read
from experiments.paper.storage import LARGEST, ORDERS, PANELS, parameters, stored_cells

# One colour, marker and dash for each family of methods, in every picture.
STYLES: Mapping[str, tuple[str, str]] = {
    ORIGINAL: ("#000000", "."),
    "FDH": ("#5f6368", "s"),
    "CIPHER": ("#c62828", "o"),
    "ours": ("#1565c0", "D"),
    "MWEM": ("#2e7d32", "^"),
    # From light to dark.
    "tables of 1": ("#d9b8e8", "v"),
    "tables of 2": ("#b17fce", "v"),
    "tables of 3": ("#8e5bb5", "v"),
    "tables of 4": ("#5b2a86", "v"),
}
_OTHER = ("#8e5bb5", "v")
_LEVELS = {"coverage": 0.95, "bias": 0.0}


def draw_storage(folder: Path) -> None:
    """Figure 1: the stored cells against the number of attributes; parameters below."""
    records = []
    for label, count in (("stored cells", stored_cells), ("parameters", parameters)):
        for title, levels in PANELS.items():
            for p in range(4, LARGEST + 1):
                sizes = {f"tables of {k} attributes": count(levels[:p], k) for k in ORDERS}
                sizes["FDH, full table"] = prod(levels[:p])
                records += [
                    {
                        "row": label,
                        "column": title,
                        "title": title,
                        "y": label,
                        "method": m,
                        "x": str(p),
                        "mean": v,
                    }
                    for m, v in sizes.items()
                ]
    lines(folder / "fig1-storage.svg", pd.DataFrame(records), x="attributes p", log=True)


def draw_simulated(folder: Path, scores: Scores) -> None:
    """Figures 2 to 6 and the supplement's, each un-normalised and normalised where that has a meaning."""
    plain = _with_bands(scores)
    costs = plain["method"].map(lambda name: cost(name) if name in METHODS else 1.0)
    shown = ["mean", "spread", "low", "high"]
    normal = plain.assign(**{name: plain[name] * costs for name in shown})
    for frame, times, suffix in ((plain, "", ""), (normal, " × cost", "-normalised")):
        tvd = {f"{k}-way tables": k - 1 for k in (3, 2, 1)}
        linf = {f"all {k}-way tables": k - 2 for k in (2, 3)}
        orders = (2, 3) if times else (1, 2, 3)
        lines(
            folder / f"fig2-tvd{suffix}.svg", _distances(frame, "tvd", f"TVD{times}", tvd, orders), log=True
        )
        lines(
            folder / f"fig3-linf{suffix}.svg", _distances(frame, "linf", f"l∞{times}", linf, (2, 3)), log=True
        )
        # Coverage is never normalised.
        frame = frame.where(frame["metric"].ne("coverage"), plain)
        lines(folder / f"fig4-inference-n200{suffix}.svg", _inference(frame, 200, 2, times), x="parameter")
    lines(folder / "fig4-inference-n500.svg", _inference(plain, 500, 2), x="parameter")
    lines(folder / "fig4-inference-3way-n200.svg", _inference(plain, 200, 3), x="parameter")
    lines(folder / "fig4-binary-n200.svg", _inference(plain, 200, 2, suffix=BINARY), x="parameter")
    compared = (FDH, CIPHER[2], CIPHER[3], OURS[2], OURS[3], MWEM["cells"][2], MWEM["tables"][2])
    bars(folder / "fig5-sss.svg", _shares(scores, compared, "n"))
    lines(folder / "fig6-log-odds.svg", _odds(scores))
    lines(folder / "readings.svg", _readings(normal, scores), log=True)
    lines(folder / "random.svg", _random(scores), level=1.0)
    lines(folder / "rivals-tvd.svg", _rivals(plain), log=True)


def draw_bankruptcy(folder: Path, scores: Scores) -> None:
    """Figure 7 as bars, table 2 as lines beside the printed values."""
    methods = (FDH, bankruptcy.CIPHER, bankruptcy.OURS, *bankruptcy.MWEM.values())
    bars(folder / "fig7-sss.svg", _shares(scores, (*methods, *RIVAL_NAMES), "m"))
    title = "as printed (m not said)"
    printed = [
        {"column": title, "method": method, "x": NAMES[power], "mean": value}
        for method, values in PRINTED.items()
        for power, value in zip(POWERS, values, strict=True)
    ]
    frame = _with_bands(scores)
    ours = _ordered(frame[frame["metric"] == "accuracy"], methods)
    percent = {name: 100 * ours[name] for name in ("mean", "spread", "low", "high")}
    ours = ours.assign(**percent, column="ours, m = " + ours["scenario"].astype(str))
    drawn = pd.concat([pd.DataFrame(printed), ours]).assign(row="", y="accuracy, %")
    majority = float(scores.means[ORIGINAL, "majority"][0].mean())
    lines(folder / "table2-svm.svg", drawn.assign(title=drawn["column"]), level=100 * majority)


def _with_bands(scores: Scores) -> pd.DataFrame:
    """Every score, with the range of its means over the readings; CIPHER under the literal reading alone."""
    frame = scores.frame()
    frame = frame.assign(base=frame["method"].str.replace(r" \[.*\]$", "", regex=True))
    keys = ["base", "metric", "scenario", "power", "place"]
    bounds = frame.groupby(keys)["mean"].agg(low="min", high="max").reset_index()
    literal = frame[frame["method"] == frame["base"]].merge(bounds, on=keys)
    return literal.assign(x=literal["power"].map(NAMES))


def _ordered(frame: pd.DataFrame, names: Iterable[str]) -> pd.DataFrame:
    """Some methods, in this order."""
    return pd.concat([frame[frame["method"] == name] for name in names])


def _beside(frame: pd.DataFrame, order: int, *more: str) -> pd.DataFrame:
    """What stands beside one another in a panel: FDH, and CIPHER, ours and both forms of MWEM of one order, named without it."""
    forms = (MWEM[form][order] for form in MWEM)
    part = _ordered(frame, (*more, FDH, CIPHER[order], OURS[order], *forms))
    return part.assign(method=part["method"].str.replace(f" {order}-way", ""))


def _distances(
    frame: pd.DataFrame, metric: str, label: str, tables: Mapping[str, int], orders: Sequence[int]
) -> pd.DataFrame:
    """A distance in rows of n and measured tables, and columns of tables that are compared."""
    parts = []
    for n in SIZES:
        for order in orders:
            if order > 1 or n == SIZES[0]:
                row = f"{order}-way measured, n = {n}"
                here = _beside(frame[(frame["metric"] == metric) & (frame["scenario"] == n)], order)
                for title, place in tables.items():
                    cell = here[here["place"] == place]
                    parts.append(cell.assign(row=row, column=title, title=f"{title}; {row}", y=label))
    drawn = pd.concat(parts)
    # On a logarithmic axis a spread must not reach zero.
    return drawn.assign(spread=np.minimum(drawn["spread"], 0.9 * drawn["mean"]))


def _inference(frame: pd.DataFrame, n: int, order: int, times: str = "", *, suffix: str = "") -> pd.DataFrame:
    """Metrics of every parameter of a regression, in rows of metrics and columns of epsilon."""
    parts = []
    for metric in ("bias", "rmse", "coverage", "width"):
        here = frame[(frame["metric"] == metric + suffix) & (frame["scenario"] == n)]
        label = metric if metric == "coverage" else metric + times
        parts.append(_beside(here, order, ORIGINAL).assign(row=metric, y=label))
    drawn = pd.concat(parts).assign(low=np.nan, spread=np.nan)
    title = "ε = " + drawn["x"]
    # Numbers under the axis: the names of ten parameters would overlap.
    return drawn.assign(column=title, title=title, x=(drawn["place"] + 1).astype(str))


def _shares(scores: Scores, methods: Sequence[str], scenario: str) -> pd.DataFrame:
    """The SSS categories in rows of scenarios and columns of methods."""
    frame = scores.frame()
    drawn = _ordered(frame[frame["metric"].isin(CATEGORIES)], methods)
    row = f"{scenario} = " + drawn["scenario"].astype(str)
    title = drawn["method"].where(drawn["method"] != FDH, drawn["method"] + ", " + row)
    return drawn.assign(row=row, column=drawn["method"], title=title, y="ε", x=drawn["power"].map(NAMES))


def _odds(scores: Scores) -> pd.DataFrame:
    """Log-odds of Best in rows of n and columns of costs."""
    methods = (FDH, CIPHER[2], CIPHER[3], OURS[2], MWEM["cells"][2], MWEM["tables"][2])
    titles = {
        "un-normalised": None,
        "costs as meant": "as meant",
        "costs as printed (swapped)": "as printed",
    }
    records = []
    for title, costs in titles.items():
        results = Results(Condition(choices=(("costs", costs or "as meant"),)), scores)
        for method in methods:
            odds = results.odds(method, normal=costs is not None)[0]
            for (place, power), value in np.ndenumerate(odds):
                where = {"row": str(SIZES[place]), "column": title, "title": f"{title}, n = {SIZES[place]}"}
                records.append({**where, "method": method, "x": NAMES[POWERS[power]], "mean": value})
    return pd.DataFrame(sorted(records, key=lambda record: record["row"])).assign(
        y="log-odds of Best (/ cost)"
    )


def _readings(normal: pd.DataFrame, scores: Scores) -> pd.DataFrame:
    """A panel for each reading: TVD × cost of pairs, n = 200, CIPHER 2-way beside FDH and ours."""
    pairs = normal[(normal["metric"] == "tvd") & (normal["scenario"] == SIZES[0]) & (normal["place"] == 1)]
    parts = []
    for number, reading in enumerate(scores.readings):
        values = scores.means[read(CIPHER[2], reading), "tvd"][0, 0, :, 1] * cost(CIPHER[2])
        cipher = pairs[pairs["method"] == CIPHER[2]].assign(mean=values)
        panel = pd.concat([pairs[pairs["method"] == FDH], cipher, pairs[pairs["method"] == OURS[2]]])
        parts.append(panel.assign(row=str(number // 4), column=str(number % 4), title=reading))
    return pd.concat(parts).assign(y="TVD of pairs × cost", low=np.nan, spread=np.nan)


def _random(scores: Scores) -> pd.DataFrame:
    """Over the random coefficients: TVD × cost of pairs over FDH's, median with the range of the populations."""
    records = []
    for method in (CIPHER[2], CIPHER[3], OURS[2], OURS[3]):
        ratios = cost(method) * scores.random[method][..., 1] / scores.random[FDH][..., 1]
        for power, ratio in zip(POWERS, ratios.T, strict=True):
            ends = {"mean": np.median(ratio), "low": ratio.min(), "high": ratio.max()}
            records.append({"column": method, "title": method, "method": method, "x": NAMES[power], **ends})
    return pd.DataFrame(records).assign(row="", y="TVD × cost, over FDH's")


def _rivals(frame: pd.DataFrame) -> pd.DataFrame:
    """A panel for each method of another paper: un-normalised TVD of pairs beside FDH, CIPHER and ours."""
    pairs = frame[(frame["metric"] == "tvd") & (frame["place"] == 1)]
    parts = []
    for rival in RIVAL_NAMES:
        here = _ordered(pairs, (FDH, CIPHER[2], OURS[2], rival))
        here = here.assign(
            method=here["method"].replace(rival, "the method of the title"), row=here["scenario"]
        )
        parts.append(here.assign(column=rival, title=rival + ", n = " + here["scenario"].astype(str)))
    return pd.concat(parts).assign(y="TVD of pairs", low=np.nan, spread=np.nan)


def lines(
    path: Path, frame: pd.DataFrame, *, x: str = "ε", log: bool = False, level: float | None = None
) -> None:
    """Lines in rows and columns of panels, with one legend for all; a row shares its vertical axis."""
    drawing, panels = _panels(frame, x, 2.6, 2.1)
    for cell, here in panels:
        groups = list(here.groupby("method", sort=False))
        for number, (name, group) in enumerate(groups):
            # Methods stand beside one another, so that their spreads can be told apart.
            _line(cell, str(name), group, 0.07 * (number - (len(groups) - 1) / 2))
        height = level if level is not None else _LEVELS.get(str(here["row"].iloc[0]))
        if height is not None:
            cell.axhline(height, color="#999999", linewidth=0.8, linestyle=(0, (2, 2)))
        places = here["x"].unique()
        cell.set_xticks(np.arange(len(places)), places)
        if log:
            _log_scale(cell)
        cell.grid(axis="y", alpha=0.25)
    _save(drawing, path)


def _line(axes: Any, name: str, group: pd.DataFrame, shift: float) -> None:
    colour, marker = next((style for family, style in STYLES.items() if name.startswith(family)), _OTHER)
    style = {"label": name, "color": colour, "linestyle": _dash(name), "linewidth": 1.1}
    places = np.arange(len(group))
    values = group.reindex(columns=["mean", "spread", "low", "high"]).to_numpy(dtype=float).T
    mean, spread, low, high = values
    if np.any(low < high):
        axes.fill_between(places, low, high, color=colour, alpha=0.15, linewidth=0)
    if np.isnan(spread).any():
        axes.plot(places, mean, **style, marker=marker, markersize=3)
    else:
        axes.errorbar(places + shift, mean, yerr=spread, elinewidth=0.6, **style, marker=marker, markersize=3)


def _dash(name: str) -> str:
    """MWEM by cells is dotted, by tables dashed; 3-way tables are dash-dotted; what the original says is dotted too."""
    if name == ORIGINAL or name.endswith(", cells"):
        return ":"
    if "3-way" in name:
        return "-."
    return "--" if name.endswith(", tables") else "-"


def bars(path: Path, frame: pd.DataFrame) -> None:
    """Stacked bars of the SSS categories in the paper's colours, in rows and columns of panels."""
    drawing, panels = _panels(frame, "share of the estimates", 1.7, 1.5)
    for cell, here in panels:
        places, start = np.arange(len(POWERS)), np.zeros(len(POWERS))
        for category, colour in COLOURS.items():
            widths = here[here["metric"] == category]["mean"].to_numpy()
            cell.barh(places, widths, left=start, color=colour, label=category, height=0.8)
            start += widths
        cell.set_yticks(places, list(NAMES.values()), fontsize=7)
        cell.set_ylim(len(POWERS) - 0.5, -0.5)
        cell.set_xlim(0, 1)
        cell.set_xticks([0.0, 0.5, 1.0], ["0", "½", "1"])
    _save(drawing, path)


def blank(rows: int, columns: int, width: float = 2.6, height: float = 2.1) -> tuple[Any, Any]:
    """A figure and its axes; panel sizes in inches, with room for labels and for a legend below."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("experiments", "matplotlib") from None
    wide, high = width * columns + 0.5, height * rows + 0.9
    drawing = Figure(figsize=(wide, high))
    axes = drawing.subplots(rows, columns, squeeze=False, sharey="row")
    # Margins by hand: matplotlib's own layouts take minutes for twenty panels.
    edges = {"left": 0.75 / wide, "right": 1 - 0.1 / wide, "top": 1 - 0.3 / high, "bottom": 0.95 / high}
    drawing.subplots_adjust(**edges, wspace=0.12, hspace=0.42)
    return drawing, axes


def _panels(
    frame: pd.DataFrame, x: str, width: float, height: float
) -> tuple[Any, list[tuple[Any, pd.DataFrame]]]:
    """A figure, and each of its panels with what belongs there: rows and columns in the order of the frame, titles and labels written."""
    rows, columns = list(frame["row"].unique()), list(frame["column"].unique())
    drawing, axes = blank(len(rows), len(columns), width, height)
    panels = []
    for place, cell in np.ndenumerate(axes):
        here = frame[(frame["row"] == rows[place[0]]) & (frame["column"] == columns[place[1]])]
        if here.empty:
            cell.set_axis_off()
            continue
        panels.append((cell, here))
        cell.set_title(here["title"].iloc[0], fontsize=8.5)
        cell.tick_params(labelsize=7)
        cell.set_ylabel(here["y"].iloc[0] if place[1] == 0 else "", fontsize=8)
        cell.set_xlabel(x if place[0] == len(rows) - 1 else "", fontsize=8)
        for side in ("top", "right"):
            cell.spines[side].set_visible(False)
    return drawing, panels


def _log_scale(axes: Any) -> None:
    """A logarithmic axis with few, plain numbers."""
    from matplotlib.ticker import FormatStrFormatter, LogLocator, NullLocator

    axes.set_yscale("log")
    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 1e3 * low else (1,)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FormatStrFormatter("%g"))


def _save(drawing: Any, path: Path) -> None:
    """Write the figure with one legend, the same bytes for the same numbers; a tenth of a point is finer than any screen."""
    from matplotlib import rc_context

    handles: dict[str, Any] = {}
    for cell in drawing.axes:
        for handle, label in zip(*cell.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    columns = min(max(2, int(drawing.get_figwidth() / 1.7)), len(handles))
    drawing.legend(
        list(handles.values()), list(handles), loc="lower left", ncols=columns, fontsize=7.5, frameon=False
    )
    text = StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "dpcipher"}):
        drawing.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    stripped = (line.strip() for line in re.sub(r"<!--[^>]*-->", "", text.getvalue()).splitlines())
    # Inside tags only: the labels of ticks are numbers too.
    short = re.sub(
        r"<[^>]*>", lambda tag: re.sub(r"(\d+\.\d)\d+", r"\1", tag[0]), "\n".join(filter(None, stripped))
    )
    path.write_text(short + "\n", encoding="utf-8")
