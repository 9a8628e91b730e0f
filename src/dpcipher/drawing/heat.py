"""Two-way tables as heat maps; cells that cannot be told from zero are gray."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcipher.drawing.bars import level_names
from dpcipher.drawing.numbers import rows
from dpcipher.drawing.svg import clip, element, image, text

WIDTH, LEFT, MOST_LEVELS = 360, 100, 24
FAINT = "#e3e3e3"
# From light to dark in one hue, so that the map also reads without colour.
LIGHT, DARK = np.array([222.0, 235.0, 247.0]), np.array([8.0, 48.0, 107.0])


@dataclass(frozen=True)
class Grid:
    """A two-way table to draw: names, level names, counts, the cells to leave gray, and the count that is darkest."""

    names: tuple[str, str]
    labels: tuple[tuple[str, ...], tuple[str, ...]]
    counts: NDArray[np.float64]
    faint: NDArray[np.bool_]
    most: float
    caption: str


def heat_map(grid: Grid) -> str:
    """The map: first name down, second name across."""
    down, across = grid.counts.shape
    step = (WIDTH - LEFT - 4) / across
    tall = float(np.clip(step, 10, 20))
    squares = "".join(
        _square(grid, i, j, LEFT + step * j, 18 + tall * i, step, tall)
        for i in range(down)
        for j in range(across)
    )
    names = [
        text(LEFT - 5, 18 + tall * (i + 0.5) + 4, clip(grid.labels[0][i], 13), anchor="end", class_="s")
        for i in _spaced(down, tall)
    ]
    bottom = 18 + tall * down
    heads = text(LEFT - 5, 12, clip(grid.names[0], 9) + " ↓", anchor="end", class_="b")
    heads += text(LEFT, 12, clip(grid.names[1], 32) + " →", class_="b")
    under, height = level_names(grid.labels[1], LEFT, step, bottom + 10)
    return image(
        WIDTH,
        bottom + 10 + height,
        heads + squares + "".join(names) + under,
        title=grid.caption,
        description=_says(grid),
    )


def _square(grid: Grid, i: int, j: int, x: float, y: float, wide: float, tall: float) -> str:
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
    if len(labels) <= MOST_LEVELS:
        return tuple(labels), list(tables)
    size = tables[0].sum(axis=1 - axis)
    keep = np.sort(np.argsort(size)[::-1][: MOST_LEVELS - 1])
    rest = np.setdiff1d(np.arange(len(labels)), keep)
    folded = [
        np.concatenate(
            [table.take(keep, axis), table.take(rest, axis).sum(axis=axis, keepdims=True)], axis=axis
        )
        for table in tables
    ]
    return (*(labels[k] for k in keep), f"{len(rest)} others"), folded
