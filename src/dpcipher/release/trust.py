"""`trust`: how clearly a release shows that two columns go together, for every pair that was measured.

The signal is the departure of a pair's table from independence, G = T − a bᵀ/N with the margins a and b of the reconciled T. Noise D in the table puts, to first order,
A D B into G, with A = I − p1ᵀ, B = I − 1qᵀ and the shares p = a/N, q = b/N. Reconciled noise has independent parts: of the total, of each margin, and of the
interaction (`least_squares.py`), with variances v₀, v₁, v₂, v₁₂ of a unit contrast. Since A keeps what sums to zero, the expected sum of squares is

    E‖A D B‖² = (r−1)(c−1) v₁₂ + (r−1)(c|q|²−1) v₁ + (c−1)(r|p|²−1) v₂ + (r|p|²−1)(c|q|²−1) v₀

for r by c levels. Rows that fall into the cells by chance give another N(1−|p|²)(1−|q|²) if the columns have nothing to do with each other. The signal is what is left of
‖G‖² after both, and signal to noise its root over that of E‖A D B‖²: at 1 the relation is as large as the privacy noise.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.special import gammaincc

from dpcipher.drawing.card import Card, Shown
from dpcipher.drawing.curator_only import Released
from dpcipher.drawing.dots import Dot, Line, Scale, dot_plot
from dpcipher.drawing.plot import Drawable, Plot, no_columns
from dpcipher.release.reconcile import Reconciled
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Axes, Floats
from dpcipher.tables.query import Query

if TYPE_CHECKING:
    from dpcipher.release.release import Release

CLEAR, VISIBLE = 3.0, 1.0  # signal to noise from which single cells, and patterns of cells, can be read
CHANCE = 0.001  # of a relation that is none, below which one is believed
MOST_DRAWN = 24
RANKED = "Pairs are ranked by noisy counts: the first look clearer than they are, the more so the more pairs there are."
GOOD_FOR: Mapping[str, str] = {
    "exact": "everything: these counts have no noise",
    "single cells": "single cells: how they differ from chance stands clear of the noise",
    "the pattern": "the pattern: sums over several cells and models, not single cells",
    "a model": "models with intervals: there is a relation, but its shape is mostly noise",
    "single columns": "each column alone: no relation can be told from chance and noise",
}


@dataclass(frozen=True)
class PairTrust:
    """What a release shows of a pair of columns: the typical departure of a cell from chance and its privacy noise, both in rows, and their ratio.

    `p` is how often noise and chance would show as much if the columns had nothing to do with each other (approximate: as if both were normal).
    """

    attrs: tuple[str, str]
    cells: int
    rows_per_cell: float
    signal: float
    noise: float
    signal_to_noise: float
    p: float

    @property
    def good_for(self) -> str:
        """What the pair is good for, in a word or two; `GOOD_FOR` has the sentence."""
        if self.noise == 0:
            return "exact"
        if self.p >= CHANCE:
            return "single columns"
        if self.signal_to_noise >= CLEAR:
            return "single cells"
        return "the pattern" if self.signal_to_noise >= VISIBLE else "a model"


@dataclass(frozen=True, repr=False)
class Trust(Released, Shown, Drawable):
    """Every pair inside a measured table, the clearest relation first."""

    pairs: tuple[PairTrust, ...]
    headings: Mapping[str, str]

    @property
    def frame(self) -> pd.DataFrame:
        """One row for each pair."""
        names = ("cells", "rows_per_cell", "signal", "noise", "signal_to_noise", "p", "good_for")
        rows = [(*pair.attrs, *(getattr(pair, name) for name in names)) for pair in self.pairs]
        return pd.DataFrame(rows, columns=["first", "second", *names])

    def _text(self) -> str:
        frame = self.frame[["first", "second", "signal_to_noise", "good_for"]]
        table = (
            frame.to_string(index=False, float_format="{:.2f}".format)
            if len(frame)
            else "no pair was measured"
        )
        return f"{table}\n" + "\n".join(self._words())

    def _words(self) -> list[str]:
        used = {pair.good_for for pair in self.pairs}
        return [*(f"good for {sentence}" for word, sentence in GOOD_FOR.items() if word in used), RANKED]

    def _card(self) -> Card:
        tally = {word: sum(pair.good_for == word for pair in self.pairs) for word in GOOD_FOR}
        lines = [
            (
                " × ".join(pair.attrs),
                f"{pair.signal_to_noise:.1f}",
                f"{pair.signal:,.1f}",
                f"{pair.noise:,.1f}",
                pair.good_for,
            )
            for pair in self.pairs
        ]
        return Card(
            "Trust in pairs",
            {
                "Pairs": f"{len(self.pairs):,}",
                **{f"Good for {word}": f"{count:,}" for word, count in tally.items() if count},
            },
            ("pair", "signal to noise", "signal (rows)", "noise (rows)", "good for"),
            lines,
            notes=[f"{text[0].upper()}{text[1:].rstrip('.')}." for text in self._words()],
        )

    def _draw(self, columns: tuple[str, ...] | None) -> Plot:
        no_columns(columns, "trust")
        shown = [pair for pair in self.pairs if np.isfinite(pair.signal_to_noise)][:MOST_DRAWN]
        lines = [
            Line(
                " × ".join(pair.attrs),
                (
                    Dot(
                        pair.signal_to_noise,
                        f"{' × '.join(pair.attrs)}: {pair.signal_to_noise:.2f}",
                        "hatch" if pair.p >= CHANCE else "bar",
                    ),
                ),
                pair.good_for,
            )
            for pair in shown
        ]
        most = max([1.2 * CLEAR, *(1.05 * pair.signal_to_noise for pair in shown)])
        title = "How clearly the release shows that two columns go together"
        told = "; ".join(f"{line.name} {line.dots[0].value:.1f}" for line in lines[:8])
        svg = dot_plot(
            lines,
            title=title,
            description=f"Signal to noise: {told}.",
            axis="signal to noise",
            scale=Scale(0.0, most),
        )
        note = (
            f"From {CLEAR:g} on, single cells can be read; from {VISIBLE:g} on, patterns of cells. {RANKED}"
        )
        hidden = len(self.pairs) - len(shown)
        more = f" {hidden:,} more pairs are not drawn." if hidden else ""
        return Plot(title, {title: svg}, note=note + more)


def trust(release: "Release") -> Trust:
    """How far to trust every pair of columns of a release: signal to noise, the clearest first, with a word on what it is good for.

    It uses the release alone and costs no privacy. `frame` has the numbers.

    >>> import dpcipher as dc
    >>> schema = dc.Schema.from_domain({"sex": 2, "job": 3})
    >>> release = dc.Release.from_tables({("sex", "job"): [[300, 200, 90], [80, 250, 310]]}, schema, scale=2.0)
    >>> dc.trust(release).frame[["first", "second", "good_for"]].values.tolist()
    [['sex', 'job', 'single cells']]
    """
    schema = release.schema
    inside = {pair for attrs in release.workload for pair in combinations(schema.axes(attrs), 2)}
    tables = [release.finest(axes) for axes in sorted(inside)]
    pairs = [pair_trust(schema, release.reconciled, table) for table in tables if table is not None]
    ordered = sorted(
        pairs, key=lambda pair: (pair.good_for == "single columns", -pair.signal_to_noise, pair.p)
    )
    return Trust(tuple(ordered), {attr: schema.heading(attr) for attr in schema.attrs})


def pair_trust(schema: Schema, reconciled: Reconciled, pair: Query | Axes) -> PairTrust:
    """Signal and noise of one pair, with every level or in groups."""
    query = pair if isinstance(pair, Query) else Query(pair)
    counts = reconciled.table(query)
    total = max(float(counts.sum()), 1.0)
    gap = counts - np.outer(counts.sum(axis=1), counts.sum(axis=0)) / total
    squares, drawn = float((gap**2).sum()), chance_squares(counts)
    blurred, unit = noise_squares(reconciled, query, counts), reconciled.interaction_variance(query)
    signal, noise = (
        float(np.sqrt(max(value, 0.0) / counts.size)) for value in (squares - blurred - drawn[0], blurred)
    )
    ratio, p = _ratio(signal, noise), _tail(squares, blurred, drawn, unit)
    if min(counts.shape) == 1:  # a column with one level goes with nothing
        signal, noise, ratio, p = 0.0, float(np.sqrt(reconciled.mean_variance(query))), 0.0, 1.0
    names = (schema.attrs[query.axes[0]], schema.attrs[query.axes[1]])
    return PairTrust(names, counts.size, total / counts.size, signal, noise, ratio, p)


def _ratio(signal: float, noise: float) -> float:
    """Signal to noise; of exact counts infinite, or 0 where what is left is rounding."""
    if noise > 0:
        return signal / noise
    return float("inf") if signal > 1e-9 else 0.0


def noise_squares(reconciled: Reconciled, pair: Query | Axes, counts: Floats) -> float:
    """The sum of squares that noise alone is expected to put into the departure from independence: the formula at the top."""
    query = pair if isinstance(pair, Query) else Query(pair)
    rows, columns = counts.shape
    total = max(float(counts.sum()), 1.0)
    uneven = [
        size * float(((counts.sum(axis=other) / total) ** 2).sum()) - 1
        for size, other in ((rows, 1), (columns, 0))
    ]
    none = reconciled.total_variance / counts.size
    # A count of a margin sums `other` cells: its variance holds the parts of the margin and of the total, each `other` times.
    margins = [Query((axis,), (form,)) for axis, form in query.columns]
    first, second = (
        max(reconciled.mean_variance(margin) * size / other - none, 0.0) / max(size - 1, 1)
        for margin, size, other in ((margins[0], rows, columns), (margins[1], columns, rows))
    )
    both = reconciled.interaction_variance(query)
    return float(
        (rows - 1) * (columns - 1) * both
        + (rows - 1) * max(uneven[1], 0.0) * first
        + (columns - 1) * max(uneven[0], 0.0) * second
        + max(uneven[0], 0.0) * max(uneven[1], 0.0) * none
    )


def chance_squares(counts: Floats) -> tuple[float, float]:
    """The sum, and the sum of squares, of the variances that rows falling by chance give to the directions of the departure."""
    total = max(float(counts.sum()), 1.0)
    first, second = (np.clip(counts.sum(axis=other) / total, 0, 1) for other in (1, 0))
    sums = [1 - float((part**2).sum()) for part in (first, second)]
    squares = [
        float((part**2).sum() - 2 * (part**3).sum() + (part**2).sum() ** 2) for part in (first, second)
    ]
    return total * sums[0] * sums[1], total**2 * squares[0] * squares[1]


def _tail(squares: float, blurred: float, drawn: tuple[float, float], unit: float) -> float:
    """The chance of at least this sum of squares from noise and chance: a χ² with the mean and the variance of theirs (Satterthwaite 1946)."""
    mean = blurred + drawn[0]
    spread = blurred * unit + 2 * drawn[0] * unit + drawn[1]
    if not mean > 0 or not spread > 0:
        return 1.0 if squares <= mean else 0.0
    freedom = mean**2 / spread
    return float(gammaincc(freedom / 2, freedom * squares / mean / 2))
