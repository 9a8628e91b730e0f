"""Two sets of counts side by side, as figures of a page: bars with marks for a column, heat maps and their difference for a pair of columns."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from html import escape

import numpy as np
from numpy.typing import NDArray

from dpcipher.drawing.bars import Series, bar_chart, short
from dpcipher.drawing.groups import EXPLAINED, Groups
from dpcipher.drawing.html import figure, key_list
from dpcipher.drawing.maps import Grid, heat_map
from dpcipher.drawing.svg import element

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


def group_series(
    name: str,
    groups: Groups,
    counts: NDArray[np.float64],
    compared: NDArray[np.float64] | None = None,
    bounds: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
    *,
    shares: bool = False,
) -> Series:
    """What a chart shows of the levels of a column or of groups of them: `counts` and `bounds` of each, and counts of each level to compare with."""
    drawn = None if compared is None else groups.add_up(compared)
    title = f"{name} ({groups.words})" if groups.words else name
    series = Series(
        title,
        groups.labels,
        counts,
        drawn,
        "",
        bounds,
        shares=shares,
        merged=bool(groups.words),
        others=groups.others,
    )
    largest = int(np.argmax(counts))
    says = f"Bar chart of {len(counts)} {'groups of levels' if series.merged else 'levels'}. Largest: {groups.labels[largest]}, {series.number(float(counts[largest]))}."
    return replace(series, says=says)


def merged_note(names: tuple[str, str], groups: tuple[Groups, Groups]) -> str:
    """Which levels of a pair were added up, and why; empty where none were."""
    words = [f"{name}: {group.words}." for name, group in zip(names, groups, strict=True) if group.words]
    return " ".join([*words, EXPLAINED]) if words else ""


def column_figure(series: Series, below: str = "") -> str:
    """The bar chart of a column in a box with its name."""
    return figure(column_chart(series), series.name, below)


def column_chart(series: Series) -> str:
    """The same as an image alone."""
    return bar_chart(replace(series, labels=tuple(map(short_label, series.labels))))


def pair_figure(title: str, maps: Mapping[str, str], below: str = "") -> str:
    """The maps of a pair in a box with a heading."""
    drawn = charts(figure(svg, caption) for caption, svg in maps.items())
    return f'<div class="pair"><h3>{escape(title)}</h3>{drawn}{below}</div>'


def pair_maps(
    names: tuple[str, str],
    groups: tuple[Groups, Groups],
    tables: Mapping[str, NDArray[np.float64]],
    variance: NDArray[np.float64],
    impossible: NDArray[np.bool_] | None = None,
    *,
    gaps: NDArray[np.float64] | None = None,
    shares: bool = False,
) -> dict[str, str]:
    """Heat maps of two-way tables on one scale of colour, by what each table shows; of two tables also the difference.

    `tables` and `impossible` have a cell for every two levels, `variance`, that of the first table, one for every two groups. Gray are the cells of the first
    table that are within two standard errors of zero, and those of the others that are empty. `gaps` are the variances that the difference is held against, if not
    `variance`. Cells that are `impossible`, and groups of such cells alone, are hatched, whatever a table says of them.
    """
    possible = np.ones((groups[0].n_levels, groups[1].n_levels))
    if impossible is not None:
        possible[impossible] = 0
    *counts, possible = (
        groups[1].add_up(groups[0].add_up(table), 1)
        for table in (*(table * possible for table in tables.values()), possible)
    )
    levels = (tuple(map(short_label, groups[0].labels)), tuple(map(short_label, groups[1].labels)))
    # The colours are for the levels that are drawn: sums of all others are as dark as they go.
    inside = tuple(slice(len(group.labels) - group.others) for group in groups)
    most = float(max(table[inside].max() for table in counts))
    hidden = [2 * np.sqrt(variance), *(np.zeros_like(variance) for _ in counts[1:])]
    captions = {kind: f"{names[0]} by {names[1]}, {kind}" for kind in (*tables, DIFFERENCE)}
    maps = {
        kind.capitalize(): heat_map(
            Grid(names, levels, table, table <= limit, possible == 0, captions[kind], most, shares)
        )
        for kind, table, limit in zip(tables, counts, hidden, strict=True)
    }
    if len(counts) == 2:
        gap = _in_errors(counts[1] - counts[0], variance if gaps is None else gaps)
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
