"""The paper's figures from our runs: storage (1), simulated tables (2 to 6) and bankruptcy data (7, with table 2)."""

from collections.abc import Sequence
from math import log
from pathlib import Path

import numpy as np

from dpcipher.paper import bankruptcy
from dpcipher.paper.contenders import CONTENDERS, Contender
from dpcipher.paper.panels import Line, Panel, draw_bars, draw_panels
from dpcipher.paper.simulated import NAMES, POWERS, SIZES
from dpcipher.paper.storage import LARGEST, ORDERS, PANELS, full_cells, parameters, stored_cells
from dpcipher.paper.summary import ORIGINAL, PRINTED, BankruptcySummary, Inference, SimulatedSummary, cost

PLACES = tuple(NAMES[power] for power in POWERS)
TERMS = (
    tuple(f"{level}:{term}" for level in (1, 2) for term in ("1", "V1", "V2", "V3=1", "V3=2")),
    ("1", "V2", "V3=1", "V3=2", "V4=1", "V4=2"),
)
METRICS = ("bias", "rmse", "coverage", "width")


def draw_storage(path: Path) -> None:
    """Figure 1: log10 of the stored cells against the number of attributes; parameters below."""
    places = [str(p) for p in range(4, LARGEST + 1)]
    rows = []
    for name, count in (("stored cells", stored_cells), ("parameters", parameters)):
        row = []
        for title, levels in PANELS.items():
            lines = [Line(f"{k}-way", [count(levels[:p], k) for p in range(4, LARGEST + 1)]) for k in ORDERS]
            whole = Line("full table", [full_cells(levels[:p]) for p in range(4, LARGEST + 1)])
            row.append(Panel(title, places, [*lines, whole], label=name, log=True))
        rows.append(row)
    draw_panels(path, rows)


def draw_simulated(folder: Path, summary: SimulatedSummary) -> None:
    """Figures 2 to 6 and the supplement's, each un-normalised and normalised where that has a meaning."""
    for suffix, normal in (("", False), ("-normalised", True)):
        draw_panels(folder / f"fig2-tvd{suffix}.svg", _tvd(summary, normal))
        draw_panels(folder / f"fig3-linf{suffix}.svg", _linf(summary, normal))
        for n in SIZES:
            draw_panels(folder / f"fig4-inference-n{n}{suffix}.svg", _inference(summary, n, 0, normal))
        draw_panels(folder / f"fig6-log-odds{suffix}.svg", _odds(summary, normal))
    draw_panels(folder / f"fig4-binary-n{SIZES[0]}.svg", _inference(summary, SIZES[0], 1, False))
    draw_bars(folder / "fig5-sss.svg", _bars(summary))


def _scale(contender: Contender, normal: bool) -> float:
    return cost(contender) if normal else 1.0


def _word(normal: bool) -> str:
    return " × cost" if normal else ""


def _tvd(summary: SimulatedSummary, normal: bool) -> list[list[Panel]]:
    return [
        [
            Panel(f"{k}-way tables, n = {n}", PLACES, [_line(summary, n, one, "tvd", k - 1, normal) for one in CONTENDERS], label=f"TVD{_word(normal)}", log=True)
            for k in (3, 2, 1)
        ]
        for n in SIZES
    ]  # fmt: skip


def _linf(summary: SimulatedSummary, normal: bool) -> list[list[Panel]]:
    return [
        [
            Panel(f"all {k}-way tables, n = {n}", PLACES, [_line(summary, n, one, "linf", k - 2, normal) for one in CONTENDERS], label=f"l∞{_word(normal)}", log=True)
            for k in (2, 3)
        ]
        for n in SIZES
    ]  # fmt: skip


def _line(
    summary: SimulatedSummary, n: int, contender: Contender, metric: str, place: int, normal: bool
) -> Line:
    cards = [summary.cards[n, power, contender.name] for power in POWERS]
    scale = _scale(contender, normal)
    values = [scale * getattr(card, metric)[place] for card in cards]
    return Line(contender.name, values, [scale * getattr(card, f"{metric}_sd")[place] for card in cards])


def _inference(summary: SimulatedSummary, n: int, regression: int, normal: bool) -> list[list[Panel]]:
    return [
        [_parameters(summary, n, power, regression, metric, normal) for power in POWERS] for metric in METRICS
    ]


def _parameters(
    summary: SimulatedSummary, n: int, power: int, regression: int, metric: str, normal: bool
) -> Panel:
    """One metric of every parameter; coverage is never normalised."""
    normal = normal and metric != "coverage"
    lines = [Line(ORIGINAL, getattr(summary.originals[n][regression], metric))]
    for contender in CONTENDERS:
        one: Inference = summary.cards[n, power, contender.name].inference[regression]
        lines.append(Line(contender.name, _scale(contender, normal) * getattr(one, metric)))
    title = f"ε = {NAMES[power]}, n = {n}"
    level = {"coverage": 0.95, "bias": 0.0}.get(metric)
    return Panel(title, _short(TERMS[regression]), lines, label=f"{metric}{_word(normal)}", level=level)


def _short(terms: Sequence[str]) -> list[str]:
    """Numbers under the axis: ten names would overlap."""
    return [str(number + 1) for number in range(len(terms))]


def _odds(summary: SimulatedSummary, normal: bool) -> list[list[Panel]]:
    row = []
    for n in SIZES:
        lines = []
        for contender in CONTENDERS:
            odds = [summary.cards[n, power, contender.name].inference[0].log_odds for power in POWERS]
            # More is better here, so that the cost divides the odds.
            lines.append(Line(contender.name, np.array(odds) - log(_scale(contender, normal))))
        label = "log(odds of Best" + (" / cost)" if normal else ")")
        row.append(Panel(f"n = {n}", PLACES, lines, label=label))
    return [row]


def _bars(summary: SimulatedSummary) -> dict[str, dict[str, dict[str, float]]]:
    return {
        f"n = {n}": {
            f"{contender.name}, ε = {NAMES[power]}": dict(
                summary.cards[n, power, contender.name].inference[0].shares
            )
            for power in POWERS
            for contender in CONTENDERS
        }
        for n in SIZES
    }


def draw_bankruptcy(folder: Path, summary: BankruptcySummary) -> None:
    """Figure 7 as bars, table 2 as lines beside the printed values."""
    bars = {
        f"m = {sets}": {
            f"{contender.name}, ε = {NAMES[power]}": dict(summary.cards[sets, power, contender.name].shares)
            for power in POWERS
            for contender in bankruptcy.CONTENDERS
        }
        for sets in bankruptcy.SETS
    }
    draw_bars(folder / "fig7-sss.svg", bars)
    draw_panels(
        folder / "table2-svm.svg", [[_printed(), *(_accuracy(summary, sets) for sets in bankruptcy.SETS)]]
    )


def _printed() -> Panel:
    lines = [
        Line(contender.name, PRINTED.get(contender.name, np.full(len(POWERS), np.nan)))
        for contender in bankruptcy.CONTENDERS
    ]
    return Panel("as printed (m not said)", PLACES, lines, label="accuracy, %", level=50.0)


def _accuracy(summary: BankruptcySummary, sets: int) -> Panel:
    lines = []
    for contender in bankruptcy.CONTENDERS:
        cards = [summary.cards[sets, power, contender.name] for power in POWERS]
        lines.append(
            Line(
                contender.name,
                [100 * one.accuracy for one in cards],
                [100 * one.accuracy_sd for one in cards],
            )
        )
    places = PLACES
    return Panel(f"ours, m = {sets}", places, lines, label="accuracy, %", level=100 * summary.majority)
