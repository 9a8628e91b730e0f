"""Heat maps of two-way tables: counts in steps of one hue, and gaps in standard errors in steps of two."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcipher.drawing.bars import level_names, short
from dpcipher.drawing.colours import GAP, HEAT
from dpcipher.drawing.html import rows, share
from dpcipher.drawing.svg import clip, element, hover, image, text

MAP_WIDTH, TOP = 360, 20
LONGEST_NAME, WIDEST_CELL, LOWEST_CELL, TALLEST_CELL = 16, 62.0, 11.0, 24.0
GAP_ENDS = (-3.0, -2.0, -1.0, 1.0, 2.0, 3.0)  # of the steps, in standard errors
IMPOSSIBLE = "impossible by the schema"


@dataclass(frozen=True)
class Grid:
    """A two-way table to draw: names, level names, values, the words for every cell, and the cells that get no colour.

    `faint` cells are gray, `impossible` ones hatched. Counts are drawn on a scale from 0 to `most`; gaps, where `most` is None, in standard errors.
    """

    names: tuple[str, str]
    labels: tuple[tuple[str, ...], tuple[str, ...]]
    values: NDArray[np.float64]
    faint: NDArray[np.bool_]
    impossible: NDArray[np.bool_]
    caption: str
    most: float | None
    shares: bool = False

    def step(self, i: int, j: int) -> str:
        """The colour of a cell."""
        value = float(self.values[i, j])
        if self.faint[i, j]:
            return "faint"
        if self.most is None:
            return f"d{int(np.searchsorted(GAP_ENDS, value))}"
        depth = float(np.clip(value / self.most, 0, 1)) ** 0.5 if self.most > 0 else 0.0
        return f"h{min(int(depth * HEAT), HEAT - 1)}"

    def number(self, value: float) -> str:
        """A value as people read it."""
        if self.most is None:
            words = f"{value:+.1f}".replace("-", "−")
            return "0.0" if words in ("+0.0", "−0.0") else words
        return share(value) if self.shares else rows(value).replace("-", "−")

    def told(self, i: int, j: int) -> str:
        """A cell in words."""
        value = IMPOSSIBLE if self.impossible[i, j] else self.number(float(self.values[i, j]))
        unit = " standard errors" if self.most is None and not self.impossible[i, j] else ""
        hidden = (
            ", hidden by the noise"
            if self.faint[i, j] and self.most is not None and self.values[i, j] > 0
            else ""
        )
        return f"{self.labels[0][i]}, {self.labels[1][j]}: {value}{unit}{hidden}"


@dataclass(frozen=True)
class _Place:
    """Where the cells of a map stand, and how large they are."""

    left: float
    wide: float
    tall: float
    numbered: bool


def heat_map(grid: Grid) -> str:
    """The map: first name down, second name across, and the scale of its colours below."""
    down, across = grid.values.shape
    place = _place(grid)
    cells = "".join(_cell(grid, i, j, place) for i in range(down) for j in range(across))
    names = "".join(
        text(
            place.left - 6,
            TOP + place.tall * (i + 0.5) + 4,
            clip(grid.labels[0][i], LONGEST_NAME),
            anchor="end",
        )
        for i in _spaced(down, place.tall)
    )
    bottom = TOP + place.tall * down
    under, height = level_names(grid.labels[1], place.left, place.wide, bottom + 9)
    scale, depth = _scale(grid, place.left, bottom + 14 + height)
    return image(
        MAP_WIDTH,
        bottom + 14 + height + depth,
        _heads(grid, place) + cells + names + under + scale,
        title=grid.caption,
        description=_says(grid),
    )


def _place(grid: Grid) -> _Place:
    """Cells as wide as there is room for, and numbers in them where all fit."""
    across = grid.values.shape[1]
    longest = min(max(len(label) for label in grid.labels[0]), LONGEST_NAME)
    # Names of columns are bold, and so wider.
    left = max(12 + 7.2 * longest, 12 + 8.2 * min(len(grid.names[0]) + 2, LONGEST_NAME))
    wide = min((MAP_WIDTH - left - 8) / across, WIDEST_CELL)
    digits = (
        max(len(grid.number(float(value))) for value in grid.values.ravel())
        if grid.values.size <= 100
        else 99
    )
    numbered = 7.2 * digits + 4 <= wide
    tall = TALLEST_CELL if numbered else float(np.clip(wide, LOWEST_CELL, TALLEST_CELL))
    return _Place(left, wide, tall, numbered)


def _heads(grid: Grid, place: _Place) -> str:
    room = int((MAP_WIDTH - place.left) / 7.6) - 2
    first = text(place.left - 6, 13, clip(grid.names[0], LONGEST_NAME - 2) + " ↓", anchor="end", class_="b")
    return first + text(place.left, 13, clip(grid.names[1], room) + " →", class_="b")


def _cell(grid: Grid, i: int, j: int, place: _Place) -> str:
    x, y = place.left + place.wide * j, TOP + place.tall * i
    wide, tall = max(place.wide - 1, 0.5), place.tall - 1
    words = hover(grid.told(i, j))
    if grid.impossible[i, j]:
        return _hatched(x, y, wide, tall, words)
    step = grid.step(i, j)
    drawn = element("rect", words, x=x, y=y, width=wide, height=tall, class_=f"f-{step}")
    if not place.numbered:
        return drawn
    ink = "soft" if step == "faint" else f"t{step}"
    number = text(
        x + wide / 2,
        y + tall / 2 + 4,
        grid.number(float(grid.values[i, j])),
        anchor="middle",
        class_=f"f-{ink}",
    )
    return drawn + number


def _hatched(x: float, y: float, wide: float, tall: float, words: str) -> str:
    """Parallel lines from the lower left to the upper right, cut at the edges of the cell."""
    lines = []
    for start in np.arange(4.0, wide + tall, 5.0).tolist():
        x0, y0 = x + max(start - tall, 0.0), y + min(start, tall)
        x1, y1 = x + min(start, wide), y + max(start - wide, 0.0)
        lines.append(f"M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}")
    back = element("rect", x=x, y=y, width=wide, height=tall, fill="none", pointer_events="all")
    return element("g", words + back + element("path", d="".join(lines), class_="l-hatch"))


def _scale(grid: Grid, left: float, top: float) -> tuple[str, float]:
    """The steps of colour with their numbers, what gray means, and what hatched means; and the height they take."""
    many, name = (GAP, "d") if grid.most is None else (HEAT, "h")
    wide = min((MAP_WIDTH - left - 14) / many, 24.0)
    swatches = [
        element("rect", x=left + wide * k, y=top, width=wide, height=9, class_=f"f-{name}{k}")
        for k in range(many)
    ]
    ends = {place: _number(value).replace("-", "−") for place, value in enumerate(GAP_ENDS, 1)}
    if grid.most is not None:
        ends = {place: _end(grid, place) for place in (0, 3, 6, HEAT)}
    numbers = [
        text(left + wide * place, top + 22, word, anchor="middle", class_="n") for place, word in ends.items()
    ]
    lines = [
        word
        for word, shown in {
            "standard errors": grid.most is None,
            "gray: nothing, or hidden by the noise": grid.most is not None
            and bool((grid.faint & ~grid.impossible).any()),
            "last colour: that many or more": grid.most is not None and bool((grid.values > grid.most).any()),
            "hatched: impossible by the schema": bool(grid.impossible.any()),
        }.items()
        if shown
    ]
    words = [text(left, top + 38 + 15 * row, line, class_="m") for row, line in enumerate(lines)]
    return "".join([*swatches, *numbers, *words]), 28.0 + 15 * len(lines)


def _end(grid: Grid, place: int) -> str:
    value = (grid.most or 0.0) * (place / HEAT) ** 2
    return share(value) if grid.shares else short(float(f"{value:.2g}") if place < HEAT else value)


def _number(value: float) -> str:
    return f"{value:+g}"


def _spaced(count: int, tall: float) -> range:
    """The rows that are named: all of them, or every few where rows are lower than a line of text."""
    return range(0, count, max(1, int(np.ceil(12 / tall))))


def _says(grid: Grid) -> str:
    """The largest cells in words, for screen readers."""
    size = np.where(grid.impossible, -np.inf, np.abs(grid.values))
    largest = np.argsort(size, axis=None)[::-1][:3]
    cells = [np.unravel_index(int(k), grid.values.shape) for k in largest]
    named = "; ".join(
        f"{grid.labels[0][i]} and {grid.labels[1][j]}: {grid.number(float(grid.values[i, j]))}"
        for i, j in cells
    )
    return f"{grid.names[0]} by {grid.names[1]}. Largest cells: {named}."
