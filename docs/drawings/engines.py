"""From three columns to a thousand: the table engine, the rows engine, and which tables are worth measuring."""

from itertools import combinations

import numpy as np
from pieces import arrow, line, picture

from dpcipher.drawing.svg import element, text
from dpcipher.selection.allocation import allocate_budget, interaction_risk, share_grid
from dpcipher.selection.prediction import posterior_distances
from dpcipher.tables.domain import Codes, Floats
from dpcipher.tables.measurement import Noise

COLUMNS = ("age", "school", "work", "health")


def table_engine() -> str:
    """A table that grows by one column a step."""
    parts, left, cells = (
        [text(20, 30, "one column more in every step, over all cells", class_="ink head")],
        20.0,
        1,
    )
    for number, (name, levels) in enumerate(zip(COLUMNS, (3, 2, 2, 3), strict=True)):
        cells *= levels
        for cell in range(cells):
            row, column = divmod(cell, 6)
            parts.append(
                element(
                    "rect",
                    x=left + 17 * column,
                    y=78 + 17 * row,
                    width=15,
                    height=15,
                    rx=2,
                    class_="a",
                    opacity=f"{0.35 + 0.15 * number:.2f}",
                )
            )
        wide = 17 * min(cells, 6)
        parts += [
            text(left, 66, f"+ {name}" if number else name, class_="ink"),
            text(left, 200, f"{cells} cells", class_="soft"),
        ]
        if number < 3:
            parts.append(arrow(left + wide + 8, 118, left + wide + 44))
        left += wide + 66
    parts.append(
        text(
            20, 232, "Exact, and as large as the product of all levels: up to 2 million cells.", class_="soft"
        )
    )
    return picture(
        720,
        250,
        parts,
        title="The table engine",
        description="A table of 3 cells becomes one of 6, 12 and 36 cells as columns are added.",
    )


def rows_engine() -> str:
    """A population of rows that gets one column a step."""
    rng = np.random.default_rng(2)
    parts = [text(20, 30, "one column more in every step, over a population of rows", class_="ink head")]
    for number in range(4):
        left = 20 + 175 * number
        parts.append(text(left, 66, f"+ {COLUMNS[number]}" if number else COLUMNS[0], class_="ink"))
        for row in range(7):
            for column in range(number + 1):
                style = ("a", "b", "c", "soft")[column]
                depth = 0.3 + 0.7 * rng.random()
                parts.append(
                    element(
                        "rect",
                        x=left + 26 * column,
                        y=78 + 17 * row,
                        width=23,
                        height=14,
                        rx=2,
                        class_=style,
                        opacity=f"{depth:.2f}",
                    )
                )
        if number < 3:
            parts.append(arrow(left + 26 * (number + 1) + 12, 135, left + 26 * (number + 1) + 46))
    parts.append(
        text(
            20,
            228,
            "Each new column is drawn given those before it, so that the rows' own pairs are the released ones.",
            class_="soft",
        )
    )
    parts.append(
        text(
            20,
            248,
            "As large as rows × columns: a thousand columns are no harder than ten, only longer.",
            class_="soft",
        )
    )
    return picture(
        720,
        265,
        parts,
        title="The rows engine",
        description="Seven rows get a first, second, third and fourth column, one after the other.",
    )


def selection() -> str:
    """Distances of all pairs from independence, read with noise, and the shares of the budget that follow from them."""
    rng = np.random.default_rng(4)
    n_rows, names = 3000, list("abcdefgh")
    rows = rng.integers(0, 4, (n_rows, 8))
    for left, right, strength in ((0, 1, 0.7), (1, 2, 0.6), (3, 4, 0.4), (5, 6, 0.25)):
        rows[:, right] = np.where(rng.random(n_rows) < strength, rows[:, left], rows[:, right])
    mechanism = Noise("gaussian", 80.0)
    pairs = list(combinations(range(8), 2))
    truth = np.array([_distance(rows[:, a], rows[:, b]) for a, b in pairs])
    read = np.round(truth + 80 * rng.standard_normal(len(pairs)))
    believed = posterior_distances(read, mechanism, 2.0 * n_rows)
    shares = _shares(believed, n_rows)
    order = np.argsort(-read)
    parts = [
        text(20, 30, "How far is each pair from chance? Read with noise, strongest first", class_="ink head")
    ]
    for place, pair in enumerate(order):
        x, tall = 26 + 24 * place, max(read[pair], 0) / n_rows * 110
        style = "a" if shares[pair] else "soft"
        level = 190 - truth[pair] / n_rows * 110
        parts.append(element("rect", x=x, y=190 - tall, width=16, height=max(tall, 1), rx=2, class_=style))
        parts.append(line(x - 1, level, x + 17, level, "sb", 2))
        parts.append(
            text(x + 8, 206, names[pairs[pair][0]] + names[pairs[pair][1]], anchor="middle", class_="ink")
        )
        deep = shares[pair] / shares.max() * 60
        parts.append(element("rect", x=x, y=240, width=16, height=deep, rx=2, class_="c") if deep else "")
    parts += [
        element("rect", x=380, y=50, width=14, height=14, rx=2, class_="a"),
        text(400, 62, "measured", class_="ink"),
        element("rect", x=380, y=74, width=14, height=14, rx=2, class_="soft"),
        text(400, 86, "left to what its columns say", class_="ink"),
        line(378, 105, 396, 105, "sb", 2),
        text(400, 109, "the truth, which nobody sees", class_="ink"),
        text(20, 232, "the share of the budget that each gets", class_="ink head"),
    ]
    return picture(
        720,
        315,
        parts,
        title="Choosing the tables",
        description=f"28 pairs of eight columns, sorted by their noisy distance from chance; {np.count_nonzero(shares)} of them are measured.",
    )


def _distance(left: Codes, right: Codes) -> float:
    """Twice n times the total variation distance of a pair from independence."""
    counts = np.histogram2d(left, right, bins=4)[0]
    return float(np.abs(counts - np.outer(counts.sum(1), counts.sum(0)) / counts.sum()).sum())


def _shares(distances: Floats, n_rows: int) -> Floats:
    """Each pair's share of a budget that would measure one pair with a standard deviation of 14 rows a cell."""
    grid = share_grid(1.0)
    expected = np.full((4, 4), n_rows / 16)
    risks = [interaction_risk(expected, distance, grid / 14.0**2) for distance in distances]
    return allocate_budget(np.array(risks), grid)
