"""The paper's figures from our runs: storage (1), simulated tables (2 to 6), bankruptcy data (7, with table 2); the readings and the rivals.

CIPHER is drawn under the literal reading, with a band from the lowest to the highest mean of all readings that were run.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from dpcipher.tables.domain import Floats
from experiments.paper import bankruptcy, models
from experiments.paper.claims import Condition
from experiments.paper.contenders import CIPHER, FDH, MWEM, OURS, Contender
from experiments.paper.plotting import Bars, Line, Panel, draw_bars, draw_panels
from experiments.paper.rivals import RIVALS, TIMED
from experiments.paper.simulated import NAMES, POWERS, SIZES
from experiments.paper.storage import LARGEST, ORDERS, PANELS, full_cells, parameters, stored_cells
from experiments.paper.summary import ORIGINAL, PRINTED, BankruptcySummary, SimulatedSummary
from experiments.paper.view import View, cost

PLACES = tuple(NAMES.values())
# The forms of MWEM, by order.
_FORMS = ("cells", "tables")
# From light to dark: tables of one to four columns.
_TINTS = ("#d9b8e8", "#b17fce", "#8e5bb5", "#5b2a86")
RIVAL_NAMES = tuple(name for name in RIVALS if name != TIMED.name)


def draw_storage(path: Path) -> None:
    """Figure 1: the stored cells against the number of attributes; parameters below."""
    numbers = range(4, LARGEST + 1)
    rows = []
    for name, count in (("stored cells", stored_cells), ("parameters", parameters)):
        row = []
        for title, levels in PANELS.items():
            lines = [
                Line(f"tables of {k} attributes", [count(levels[:p], k) for p in numbers], tint=tint)
                for k, tint in zip(ORDERS, _TINTS, strict=True)
            ]
            whole = Line("FDH, full table", [full_cells(levels[:p]) for p in numbers])
            places = [str(p) for p in numbers]
            row.append(Panel(title, places, [*lines, whole], y=name, x="attributes p", log=True))
        rows.append(row)
    draw_panels(path, rows)


def _methods(order: int) -> list[Contender]:
    """What stands beside one another in a panel: FDH, and CIPHER, ours and both forms of MWEM of one order."""
    return [FDH, CIPHER[order], OURS[order], *(MWEM[form][order] for form in _FORMS)]


def _short(method: Contender) -> str:
    """The name of a method where its order stands in the title."""
    return method.base.replace(f" {method.order}-way", "")


def draw_simulated(folder: Path, summary: SimulatedSummary) -> None:
    """Figures 2 to 6 and the supplement's, each un-normalised and normalised where that has a meaning."""
    for suffix, normal in (("", False), ("-normalised", True)):
        tvd = _distances(summary, "tvd", "TVD", {f"{k}-way tables": k - 1 for k in (3, 2, 1)}, normal)
        linf = _distances(summary, "linf", "l∞", {f"all {k}-way tables": k - 2 for k in (2, 3)}, normal)
        draw_panels(folder / f"fig2-tvd{suffix}.svg", tvd)
        draw_panels(folder / f"fig3-linf{suffix}.svg", linf)
        draw_panels(folder / f"fig4-inference-n200{suffix}.svg", _inference(summary, 200, 2, normal))
    draw_panels(folder / "fig4-inference-n500.svg", _inference(summary, 500, 2, False))
    draw_panels(folder / "fig4-inference-3way-n200.svg", _inference(summary, 200, 3, False))
    draw_panels(folder / "fig4-binary-n200.svg", _inference(summary, 200, 2, False, regression=1))
    draw_bars(folder / "fig5-sss.svg", _sss(summary))
    draw_panels(folder / "fig6-log-odds.svg", _odds(summary))
    draw_panels(folder / "readings.svg", _readings(summary))
    draw_panels(folder / "random.svg", _random(summary))
    draw_panels(folder / "rivals-tvd.svg", _rivals(summary))


def _read(method: Contender, summary: SimulatedSummary | BankruptcySummary) -> list[Contender]:
    """A method under every reading that was run; one-way tables have the literal one alone."""
    read = method.kind == "paper" and method.order > 1
    return [method.read(reading) for reading in summary.readings] if read else [method]


def _distances(
    summary: SimulatedSummary, metric: str, label: str, orders: Mapping[str, int], normal: bool
) -> list[list[Panel]]:
    """A distance in rows of n and measured tables, and columns of tables that are compared."""

    def values(method: Contender, n: int, place: int, score: str) -> Floats:
        cards = [summary.cards[n, power, method.name] for power in POWERS]
        scores = [card.means[metric][0] if score == "mean" else card.spread[metric] for card in cards]
        return cost(method, normal=normal) * np.array([score[place] for score in scores])

    def line(method: Contender, n: int, place: int) -> Line:
        every = [values(other, n, place, "mean") for other in _read(method, summary)]
        band = (np.min(every, axis=0), np.max(every, axis=0)) if len(every) > 1 else None
        mean, spread = values(method, n, place, "mean"), values(method, n, place, "spread")
        # On a logarithmic axis a spread must not reach zero.
        return Line(_short(method), mean, np.minimum(spread, 0.9 * mean), band)

    return [
        [
            Panel(
                f"{title}; {order}-way measured, n = {n}",
                PLACES,
                [line(method, n, place) for method in _methods(order)],
                y=f"{label} × cost" if normal else label,
                log=True,
            )
            for title, place in orders.items()
        ]
        for n in SIZES
        for order in ((2, 3) if normal or metric == "linf" else (1, 2, 3))
        if order > 1 or n == SIZES[0]
    ]


def _inference(
    summary: SimulatedSummary, n: int, order: int, normal: bool, regression: int = 0
) -> list[list[Panel]]:
    """Metrics of every parameter of a regression, in rows of metrics and columns of epsilon; coverage is never normalised.

    Beside the methods of m sets stand the models of one release of all pairs.
    """

    def panel(metric: str, power: int, times_cost: bool) -> Panel:
        lines = [Line(ORIGINAL, getattr(summary.originals[n][regression], metric)[0])]
        for method in _methods(order):
            inference = summary.cards[n, power, method.name].inference[regression]
            lines.append(
                Line(_short(method), cost(method, normal=times_cost) * getattr(inference, metric)[0])
            )
        if order == 2:
            values = getattr(summary.models[n, power][regression], metric)[0]
            lines.append(Line(models.NAME, cost(CIPHER[2], normal=times_cost) * values))
        # Numbers under the axis: the names of ten parameters would overlap.
        places = [str(number + 1) for number in range(len(lines[0].values))]
        level = {"coverage": 0.95, "bias": 0.0}.get(metric)
        label = f"{metric} × cost" if times_cost else metric
        return Panel(f"ε = {NAMES[power]}", places, lines, y=label, x="parameter", level=level)

    return [
        [panel(metric, power, normal and metric != "coverage") for power in POWERS]
        for metric in ("bias", "rmse", "coverage", "width")
    ]


def _sss(summary: SimulatedSummary) -> list[list[Bars]]:
    """Rows of n, columns of methods, a bar for each epsilon."""
    methods = [FDH, CIPHER[2], CIPHER[3], OURS[2], OURS[3], MWEM["cells"][2], MWEM["tables"][2]]
    return [
        [
            Bars(
                f"{method.base}, n = {n}" if method == FDH else method.base,
                PLACES,
                [_plain(summary.cards[n, power, method.name].inference[0].shares) for power in POWERS],
            )
            for method in methods
        ]
        for n in SIZES
    ]


def _plain(shares: Mapping[str, Floats]) -> dict[str, float]:
    return {name: float(values[0]) for name, values in shares.items()}


def _odds(summary: SimulatedSummary) -> list[list[Panel]]:
    """Log-odds of Best in rows of n and columns of costs. More is better here, so that the cost divides the odds."""
    methods = [FDH, CIPHER[2], CIPHER[3], OURS[2], MWEM["cells"][2], MWEM["tables"][2]]
    rows = []
    for place, n in enumerate(SIZES):
        row = []
        for title, costs in (
            ("un-normalised", None),
            ("costs as meant", "as meant"),
            ("costs as printed (swapped)", "as printed"),
        ):
            view = View(Condition(choices=(("costs", costs or "as meant"),)), summary)
            lines = [
                Line(method.base, view.log_odds(method, normal=costs is not None)[0, place])
                for method in methods
            ]
            row.append(Panel(f"{title}, n = {n}", PLACES, lines, y="log-odds of Best (/ cost)"))
        rows.append(row)
    return rows


def _readings(summary: SimulatedSummary) -> list[list[Panel]]:
    """A panel for each reading: normalised TVD of pairs, n = 200, CIPHER 2-way beside FDH and ours."""
    view = View(Condition(), summary)

    def values(method: Contender) -> Floats:
        return view.tvd(method)[0, 0, :, 1]

    panels = [
        Panel(
            reading,
            PLACES,
            [
                Line("FDH", values(FDH)),
                Line("CIPHER 2-way", values(CIPHER[2].read(reading))),
                Line("ours 2-way", values(OURS[2])),
            ],
            y="TVD of pairs × cost",
            log=True,
        )
        for reading in summary.readings
    ]
    return _grid(panels, 4)


def _grid(panels: Sequence[Panel], columns: int) -> list[list[Panel]]:
    """Panels in rows; what is missing at the end is left empty."""
    columns = min(columns, len(panels))
    empty = Panel("", PLACES, [])
    filled = [*panels, *[empty] * (-len(panels) % columns)]
    return [filled[start : start + columns] for start in range(0, len(filled), columns)]


def _random(summary: SimulatedSummary) -> list[list[Panel]]:
    """Over the random coefficients: normalised TVD of pairs over FDH's, median with the range of the populations."""

    def line(name: str, methods: Sequence[Contender]) -> Line:
        middle, low, high = [], [], []
        for power in POWERS:
            full = summary.random[power, FDH.name][:, 1]
            ratios = np.array(
                [cost(method) * summary.random[power, method.name][:, 1] / full for method in methods]
            )
            middle.append(float(np.median(ratios)))
            low.append(float(ratios.min()))
            high.append(float(ratios.max()))
        return Line(name, middle, band=(low, high))

    titles = {method.base: method for method in (CIPHER[2], CIPHER[3], OURS[2], OURS[3])}
    return [
        [
            Panel(title, PLACES, [line(title, [method])], y="TVD × cost, over FDH's", level=1.0)
            for title, method in titles.items()
        ]
    ]


def _rivals(summary: SimulatedSummary) -> list[list[Panel]]:
    """A panel for each method of another paper: un-normalised TVD of pairs beside FDH, CIPHER and ours."""

    def values(name: str, n: int) -> list[float]:
        return [float(summary.cards[n, power, name].means["tvd"][0][1]) for power in POWERS]

    known = [FDH.name, CIPHER[2].name, OURS[2].name]
    return [
        [
            Panel(
                f"{rival}, n = {n}",
                PLACES,
                [
                    *(Line(name, values(name, n)) for name in known),
                    Line("the method of the title", values(rival, n)),
                ],
                y="TVD of pairs",
                log=True,
            )
            for rival in RIVAL_NAMES
        ]
        for n in SIZES
    ]


def draw_bankruptcy(folder: Path, summary: BankruptcySummary) -> None:
    """Figure 7 as bars, table 2 as lines beside the printed values."""
    methods = [bankruptcy.FDH, bankruptcy.CIPHER, bankruptcy.OURS, *bankruptcy.MWEM.values()]
    names = [*(method.name for method in methods), *RIVAL_NAMES]
    bars = [
        [
            Bars(
                f"{name}, m = {sets}" if name == "FDH" else name,
                PLACES,
                [_plain(summary.cards[sets, power, name].inference[0].shares) for power in POWERS],
            )
            for name in names
        ]
        for sets in bankruptcy.SETS
    ]
    draw_bars(folder / "fig7-sss.svg", bars)
    printed = [Line(name, values) for name, values in PRINTED.items()]
    panels = [Panel("as printed (m not said)", PLACES, printed, y="accuracy, %", level=50.0)]
    for sets in bankruptcy.SETS:
        lines = [_accuracy(summary, sets, method) for method in methods]
        panels.append(
            Panel(f"ours, m = {sets}", PLACES, lines, y="accuracy, %", level=100 * summary.majority)
        )
    draw_panels(folder / "table2-svm.svg", [panels])


def _accuracy(summary: BankruptcySummary, sets: int, method: Contender) -> Line:
    def values(other: Contender, score: str) -> Floats:
        cards = [summary.cards[sets, power, other.name] for power in POWERS]
        return 100 * np.array(
            [card.means["accuracy"][0] if score == "mean" else card.spread["accuracy"][0] for card in cards]
        )

    every = [values(other, "mean") for other in _read(method, summary)]
    band = (np.min(every, axis=0), np.max(every, axis=0)) if len(every) > 1 else None
    return Line(method.name, values(method, "mean"), values(method, "spread"), band)
