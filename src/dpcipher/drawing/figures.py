"""Two sets of counts side by side, as figures of a page: bars with marks for a column, heat maps and their difference for a pair of columns."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from html import escape

import numpy as np
from numpy.typing import NDArray

from dpcipher.drawing.bars import Series, bar_chart, short
from dpcipher.drawing.html import figure, key_list
from dpcipher.drawing.maps import Grid, fold, heat_map
from dpcipher.drawing.svg import element

MOST_LEVELS = 120
_RANGE = re.compile(r"\[?(-?[\d.]*\d)(?:\.\.|, )(-?[\d.]*\d)[)\]]?")
_WHOLE_YEARS = re.compile(r"(\d{4})-01-01\.\.(\d{4})-12-31")


def samples(*, bar: str, mark: str = "", whisker: str = "") -> dict[str, str]:
    """What a bar, a mark and a whisker look like, by what they stand for."""
    drawn = {
        bar: element("rect", x=0, y=2, width=22, height=10, class_="f-bar"),
        whisker: element("path", d="M2 2v10M2 7H20M20 2v10", class_="l-ink", stroke_width=1.6, fill="none"),
        mark: element("path", d="M11 3l4.5 7h-9z", class_="f-mark"),
    }
    return {name: sample for name, sample in drawn.items() if name}


def legend(*, bar: str, mark: str, whisker: str = "") -> str:
    """What the bars, the marks and (if there are any) the whiskers of a bar chart stand for."""
    return key_list(samples(bar=bar, mark=mark, whisker=whisker))


def charts(figures: Iterable[str], *, flowing: bool = False) -> str:
    """Figures in as many columns as the page is wide enough for: side by side, or `flowing` down one column after the other, which leaves no gaps."""
    return f'<div class="charts{" flow" if flowing else ""}">{"".join(figures)}</div>'


def column_figure(series: Series, below: str = "") -> str:
    """The bar chart of a column, with its largest levels where it has too many to draw."""
    return figure(column_chart(series), series.largest(MOST_LEVELS).name, below)


def column_chart(series: Series) -> str:
    """The same as an image alone."""
    shown = series.largest(MOST_LEVELS)
    return bar_chart(replace(shown, labels=tuple(map(short_label, shown.labels))))


def pair_figure(
    title: str,
    names: tuple[str, str],
    labels: tuple[Sequence[str], Sequence[str]],
    tables: Mapping[str, NDArray[np.float64]],
    variance: NDArray[np.float64],
    impossible: NDArray[np.bool_] | None = None,
    *,
    gaps: NDArray[np.float64] | None = None,
    below: str = "",
) -> str:
    """The maps of a pair in a box with a heading."""
    maps = pair_maps(names, labels, tables, variance, impossible, gaps=gaps)
    drawn = charts(figure(svg, caption) for caption, svg in maps.items())
    return f'<div class="pair"><h3>{escape(title)}</h3>{drawn}{below}</div>'


def pair_maps(
    names: tuple[str, str],
    labels: tuple[Sequence[str], Sequence[str]],
    tables: Mapping[str, NDArray[np.float64]],
    variance: NDArray[np.float64],
    impossible: NDArray[np.bool_] | None = None,
    *,
    gaps: NDArray[np.float64] | None = None,
    shares: bool = False,
) -> dict[str, str]:
    """Heat maps of two-way tables on one scale of colour, by what each table shows; of two tables also the difference.

    Gray are the cells of the first table that are within two standard errors of zero, and those of the others that are empty. `gaps` are the variances that
    the difference is held against, if not `variance`. Variances of folded levels are added as if independent: they decide which
    cells are gray, and the size of a step of difference. Cells that are `impossible`, and groups of such cells alone, are hatched,
    whatever a table says of them.
    """
    possible = np.ones(variance.shape) if impossible is None else (~impossible).astype(float)
    against = variance if gaps is None else gaps
    given = [table * possible for table in tables.values()]
    down, folded = fold(labels[0], 0, *given, variance, against, possible)
    across, (*counts, variance, against, possible) = fold(labels[1], 1, *folded)
    levels = (tuple(map(short_label, down)), tuple(map(short_label, across)))
    most = float(max(table.max() for table in counts))
    hidden = [2 * np.sqrt(variance), *(np.zeros_like(variance) for _ in counts[1:])]
    captions = {kind: f"{names[0]} by {names[1]}, {kind}" for kind in (*tables, DIFFERENCE)}
    maps = {
        kind.capitalize(): heat_map(
            Grid(names, levels, table, table <= limit, possible == 0, captions[kind], most, shares)
        )
        for kind, table, limit in zip(tables, counts, hidden, strict=True)
    }
    if len(counts) == 2:
        gap = _in_errors(counts[1] - counts[0], against)
        none = np.zeros(gap.shape, dtype=bool)
        maps[DIFFERENCE.capitalize()] = heat_map(
            Grid(names, levels, gap, none, possible == 0, captions[DIFFERENCE], None)
        )
    return maps


DIFFERENCE = "difference, in standard errors"


def _in_errors(gap: NDArray[np.float64], variance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Gaps in standard errors; where a count is exact, any gap is large."""
    return np.where(
        variance > 0,
        gap / np.sqrt(np.maximum(variance, 1e-12)),
        np.where(np.abs(gap) > 0.5, 99.0 * np.sign(gap), 0.0),
    )


def short_label(label: str) -> str:
    """A range by its ends, short enough for an axis; all of it is in the table and told to the pointer.

    >>> short_label("2015-01-01..2016-12-31"), short_label("10..19"), short_label("[8000, 12000)"), short_label("[0.5, 1]")
    ('2015–2016', '10–19', '8k–12k', '0.5–1')
    """
    if years := _WHOLE_YEARS.fullmatch(label):
        return years[1] if years[1] == years[2] else f"{years[1]}–{years[2]}"
    ends = _RANGE.fullmatch(label)
    if not ends:
        return label
    first, last = (end.replace("-", "−") for end in ends.groups())
    if label.startswith("["):
        first, last = (short(float(end)).replace("-", "−") for end in ends.groups())
    return label if first == last else f"{first}–{last}"
