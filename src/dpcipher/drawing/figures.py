"""Two sets of counts side by side, as figures of a page: bars with marks for a column, two heat maps for a pair of columns."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from html import escape

import numpy as np
from numpy.typing import NDArray

from dpcipher.drawing.bars import BAR, MARK, WHISKER, Series, bar_chart
from dpcipher.drawing.heat import Grid, fold, heat_map
from dpcipher.drawing.html import figure
from dpcipher.drawing.svg import element

MOST_LEVELS = 120
_WHOLE_YEARS = re.compile(r"(\d{4})-01-01\.\.(\d{4})-12-31")


def legend(*, bar: str, mark: str, whisker: str = "") -> str:
    """What the bars, the marks and (if there are any) the whiskers of a bar chart stand for."""
    samples = {
        bar: element("rect", x=0, y=2, width=22, height=10, fill=BAR),
        whisker: element("path", d="M2 3v8M2 7H20M20 3v8", stroke=WHISKER, fill="none"),
        mark: element("path", d="M11 2l4 5-4 5-4-5z", fill=MARK),
    }
    items = "".join(
        f'<li><svg viewBox="0 0 22 14" aria-hidden="true">{sample}</svg>{escape(name)}</li>'
        for name, sample in samples.items()
        if name
    )
    return f'<ul class="key">{items}</ul>'


def charts(figures: Iterable[str]) -> str:
    """Figures in as many columns as the page is wide enough for."""
    return f'<div class="charts">{"".join(figures)}</div>'


def column_figure(series: Series, below: str = "") -> str:
    """The bar chart of a column, with its largest levels where it has too many to draw."""
    shown = series.largest(MOST_LEVELS)
    return figure(bar_chart(replace(shown, labels=tuple(map(_short, shown.labels)))), shown.name, below)


def pair_figure(
    title: str,
    names: tuple[str, str],
    labels: tuple[Sequence[str], Sequence[str]],
    tables: Mapping[str, NDArray[np.float64]],
    variance: NDArray[np.float64],
) -> str:
    """Heat maps of two-way tables on one scale of colour, by what each table shows.

    Gray are the cells of the first table that are within two standard errors of zero, and those of the others that are empty. The variances
    of folded levels are added as if independent: they only decide which cells are gray.
    """
    down, folded = fold(labels[0], 0, *tables.values(), variance)
    across, (*counts, variance) = fold(labels[1], 1, *folded)
    levels = (tuple(map(_short, down)), tuple(map(_short, across)))
    most = float(max(table.max() for table in counts))
    hidden = [2 * np.sqrt(variance), *(np.zeros_like(variance) for _ in counts[1:])]
    maps = [
        figure(
            heat_map(Grid(names, levels, table, table <= limit, most, f"{names[0]} by {names[1]}, {kind}")),
            kind.capitalize(),
        )
        for kind, table, limit in zip(tables, counts, hidden, strict=True)
    ]
    return f'<div class="pair"><h3>{escape(title)}</h3>{charts(maps)}</div>'


def _short(label: str) -> str:
    """A range of whole years by its years, so that it fits on an axis.

    >>> _short("2015-01-01..2016-12-31"), _short("2015-01-01..2016-06-30")
    ('2015–2016', '2015-01-01..2016-06-30')
    """
    years = _WHOLE_YEARS.fullmatch(label)
    return f"{years[1]}–{years[2]}" if years else label
