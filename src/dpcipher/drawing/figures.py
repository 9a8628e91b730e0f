"""Two sets of counts side by side, as figures of a page: bars with marks for a column, two heat maps for a pair of columns."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape

import numpy as np
from numpy.typing import NDArray

from dpcipher.drawing.bars import BAR, MARK, WHISKER, Series, bar_chart, level_names
from dpcipher.drawing.html import figure, rows
from dpcipher.drawing.svg import clip, element, image, text

MOST_LEVELS = 120
MAP_WIDTH, MAP_LEFT, MOST_MAP_LEVELS = 360, 100, 24
FAINT, CROSS = "#e3e3e3", "#c4c9cf"
# From light to dark in one hue, so that the map also reads without colour.
LIGHT, DARK = np.array([222.0, 235.0, 247.0]), np.array([8.0, 48.0, 107.0])
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
    impossible: NDArray[np.bool_] | None = None,
) -> str:
    """Heat maps of two-way tables on one scale of colour, by what each table shows.

    Gray are the cells of the first table that are within two standard errors of zero, and those of the others that are empty. The variances
    of folded levels are added as if independent: they only decide which cells are gray. Cells that are `impossible`, and groups of such cells alone, are
    crossed out, whatever a table says of them.
    """
    possible = np.ones(variance.shape) if impossible is None else (~impossible).astype(float)
    down, folded = fold(labels[0], 0, *(table * possible for table in tables.values()), variance, possible)
    across, (*counts, variance, possible) = fold(labels[1], 1, *folded)
    levels = (tuple(map(_short, down)), tuple(map(_short, across)))
    most = float(max(table.max() for table in counts))
    hidden = [2 * np.sqrt(variance), *(np.zeros_like(variance) for _ in counts[1:])]
    maps = [
        figure(
            heat_map(
                Grid(
                    names,
                    levels,
                    table,
                    table <= limit,
                    most,
                    f"{names[0]} by {names[1]}, {kind}",
                    possible == 0,
                )
            ),
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


@dataclass(frozen=True)
class Grid:
    """A two-way table to draw: names, level names, counts, the cells to leave gray, the count that is darkest, and the cells to cross out."""

    names: tuple[str, str]
    labels: tuple[tuple[str, ...], tuple[str, ...]]
    counts: NDArray[np.float64]
    faint: NDArray[np.bool_]
    most: float
    caption: str
    crossed: NDArray[np.bool_]


def heat_map(grid: Grid) -> str:
    """The map: first name down, second name across."""
    down, across = grid.counts.shape
    step = (MAP_WIDTH - MAP_LEFT - 4) / across
    tall = float(np.clip(step, 10, 20))
    squares = "".join(
        _square(grid, i, j, MAP_LEFT + step * j, 18 + tall * i, step, tall)
        for i in range(down)
        for j in range(across)
    )
    names = [
        text(MAP_LEFT - 5, 18 + tall * (i + 0.5) + 4, clip(grid.labels[0][i], 13), anchor="end", class_="s")
        for i in _spaced(down, tall)
    ]
    bottom = 18 + tall * down
    heads = text(MAP_LEFT - 5, 12, clip(grid.names[0], 9) + " ↓", anchor="end", class_="b")
    heads += text(MAP_LEFT, 12, clip(grid.names[1], 32) + " →", class_="b")
    under, height = level_names(grid.labels[1], MAP_LEFT, step, bottom + 10)
    return image(
        MAP_WIDTH,
        bottom + 10 + height,
        heads + squares + "".join(names) + under,
        title=grid.caption,
        description=_says(grid),
    )


def _square(grid: Grid, i: int, j: int, x: float, y: float, wide: float, tall: float) -> str:
    if grid.crossed[i, j]:
        right, bottom = x + max(wide - 0.8, 0.5), y + tall - 0.8
        return element(
            "path",
            d=f"M{x:.1f} {y:.1f}L{right:.1f} {bottom:.1f}M{x:.1f} {bottom:.1f}L{right:.1f} {y:.1f}",
            stroke=CROSS,
        )
    depth = float(np.clip(grid.counts[i, j] / grid.most, 0, 1)) ** 0.5 if grid.most > 0 else 0.0
    colour = FAINT if grid.faint[i, j] else _mix(depth)
    return element("rect", x=x, y=y, width=max(wide - 0.8, 0.5), height=tall - 0.8, fill=colour)


def _mix(depth: float) -> str:
    red, green, blue = (LIGHT + (DARK - LIGHT) * depth).round().astype(int)
    return f"#{red:02x}{green:02x}{blue:02x}"


def _spaced(count: int, tall: float) -> range:
    """The rows that are named: all of them, or every few where rows are lower than a line of text."""
    return range(0, count, max(1, int(np.ceil(12 / tall))))


def _says(grid: Grid) -> str:
    """The largest cells in words, for screen readers."""
    largest = np.argsort(grid.counts, axis=None)[::-1][:3]
    cells = [np.unravel_index(int(k), grid.counts.shape) for k in largest]
    named = "; ".join(
        f"{grid.labels[0][i]} and {grid.labels[1][j]}: {rows(float(grid.counts[i, j]))}" for i, j in cells
    )
    return f"{grid.names[0]} by {grid.names[1]}. Largest cells: {named}."


def fold(
    labels: Sequence[str], axis: int, *tables: NDArray[np.float64]
) -> tuple[tuple[str, ...], list[NDArray[np.float64]]]:
    """Keep the levels that are largest in the first table, in their order, and sum the others into one, so that a map stays readable."""
    if len(labels) <= MOST_MAP_LEVELS:
        return tuple(labels), list(tables)
    size = tables[0].sum(axis=1 - axis)
    keep = np.sort(np.argsort(size)[::-1][: MOST_MAP_LEVELS - 1])
    rest = np.setdiff1d(np.arange(len(labels)), keep)
    folded = [
        np.concatenate(
            [table.take(keep, axis), table.take(rest, axis).sum(axis=axis, keepdims=True)], axis=axis
        )
        for table in tables
    ]
    return (*(labels[k] for k in keep), f"{len(rest)} others"), folded
