"""Figure 7 and table 2: the second experiment."""

from pathlib import Path

import numpy as np

from dpcipher.paper.experiment1 import POWERS
from dpcipher.paper.experiment2 import CONTENDERS, SETS
from dpcipher.paper.figures import NAMES, Line, Panel, draw_bars, draw_panels
from dpcipher.paper.summary2 import PRINTED, Summary


def draw_all(folder: Path, summary: Summary) -> None:
    """Figure 7 as bars, table 2 as lines beside the printed values."""
    bars = {
        f"m = {sets}": {
            f"{contender.name}, ε = {NAMES[power]}": dict(summary.cards[sets, power, contender.name].shares)
            for power in POWERS
            for contender in CONTENDERS
        }
        for sets in SETS
    }
    draw_bars(folder / "fig7-sss.svg", bars)
    draw_panels(folder / "table2-svm.svg", [[_printed(), *(_accuracy(summary, sets) for sets in SETS)]])


def _printed() -> Panel:
    lines = [
        Line(contender.name, PRINTED.get(contender.name, np.full(len(POWERS), np.nan)))
        for contender in CONTENDERS
    ]
    return Panel(
        "as printed (m not said)", [NAMES[power] for power in POWERS], lines, label="accuracy, %", level=50.0
    )


def _accuracy(summary: Summary, sets: int) -> Panel:
    lines = []
    for contender in CONTENDERS:
        cards = [summary.cards[sets, power, contender.name] for power in POWERS]
        lines.append(
            Line(
                contender.name,
                [100 * one.accuracy for one in cards],
                [100 * one.accuracy_sd for one in cards],
            )
        )
    places = [NAMES[power] for power in POWERS]
    return Panel(f"ours, m = {sets}", places, lines, label="accuracy, %", level=100 * summary.majority)
