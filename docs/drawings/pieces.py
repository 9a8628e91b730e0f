"""Pieces that the drawings share: a picture that reads on light and dark ground, small tables, and invented people."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pandas as pd

import dpcipher as dc
from dpcipher.drawing.svg import element, image, text
from dpcipher.tables.domain import Floats

STYLE = """
.ground{fill:#fff}.ink{fill:#1f2933}.soft{fill:#52606d}.line{stroke:#52606d;fill:none}.faint{stroke:#cbd2d9;fill:none}
.a{fill:#2563a8}.b{fill:#b4560f}.c{fill:#2f7d4f}.sa{stroke:#2563a8;fill:none}.sb{stroke:#b4560f;fill:none}.pale{fill:#e4edf7}.head{font-weight:600}
@media (prefers-color-scheme:dark){.ground{fill:#131416}.ink{fill:#e4e7eb}.soft{fill:#aab4bf}.line{stroke:#aab4bf}.faint{stroke:#3e4c59}
.a{fill:#7ab3ef}.b{fill:#f0a05a}.c{fill:#76c893}.sa{stroke:#7ab3ef}.sb{stroke:#f0a05a}.pale{fill:#1f2f42}}
"""


def picture(width: int, height: int, parts: Iterable[str], *, title: str, description: str) -> str:
    """A file of its own that is readable on light and on dark ground."""
    ground = element("rect", x=0, y=0, width=width, height=height, rx=8, class_="ground")
    content = element("style", STYLE) + ground + "".join(parts)
    svg = image(width, height, content, title=title, description=description)
    named = '<svg xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="13" '
    return svg.replace("<svg ", named, 1) + "\n"


def line(x1: float, y1: float, x2: float, y2: float, style: str = "line", width: float = 1.0) -> str:
    """A straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=style, stroke_width=width)


def arrow(x1: float, y: float, x2: float) -> str:
    """A horizontal arrow."""
    return line(x1, y, x2, y) + element(
        "path", d=f"M{x2 - 6:.1f},{y - 4:.1f} L{x2:.1f},{y:.1f} L{x2 - 6:.1f},{y + 4:.1f}", class_="line"
    )


def grid(
    x: float,
    y: float,
    cells: Floats,
    *,
    size: float = 40,
    words: Callable[[float], str] = "{:.0f}".format,
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
) -> str:
    """A small table with its numbers, darker where they are larger."""
    most = max(float(np.abs(cells).max()), 1e-9)
    parts = []
    for (i, j), value in np.ndenumerate(cells):
        left, top = x + j * size, y + i * size
        depth = max(float(value), 0.0) / most
        parts.append(
            element(
                "rect",
                x=left,
                y=top,
                width=size - 2,
                height=size - 2,
                rx=3,
                class_="a",
                opacity=f"{0.08 + 0.35 * depth:.2f}",
            )
        )
        parts.append(
            text(left + size / 2 - 1, top + size / 2 + 4, words(float(value)), anchor="middle", class_="ink")
        )
    parts += [
        text(x - 6, y + i * size + size / 2 + 4, name, anchor="end", class_="soft")
        for i, name in enumerate(rows)
    ]
    parts += [
        text(x + j * size + size / 2 - 1, y - 7, name, anchor="middle", class_="soft")
        for j, name in enumerate(columns)
    ]
    return "".join(parts)


def town(n_rows: int = 400) -> tuple[dc.Schema, pd.DataFrame]:
    """Three columns that go together: age, school, work."""
    rng = np.random.default_rng(11)
    age = rng.integers(0, 3, n_rows)
    school = np.where(rng.random(n_rows) < 0.35 + 0.15 * (age == 1), 1, 0)
    work = (rng.random(n_rows) < np.array([0.45, 0.8, 0.15])[age] + 0.15 * school).astype(int)
    columns = {"age": ["young", "mid", "old"], "school": ["short", "long"], "work": ["no", "yes"]}
    levels = {name: {"kind": "categorical", "levels": given} for name, given in columns.items()}
    rows = pd.DataFrame(
        {
            "age": np.array(columns["age"])[age],
            "school": np.array(columns["school"])[school],
            "work": np.array(columns["work"])[work],
        }
    )
    return dc.Schema.from_dict({"columns": levels}), rows


def counts(schema: dc.Schema, rows: pd.DataFrame, attrs: tuple[str, ...]) -> Floats:
    """The true table, which only a picture on invented people may show."""
    shape = [schema.shape[schema.attrs.index(name)] for name in attrs]
    codes = [
        rows[name].map({label: code for code, label in enumerate(schema.labels(name))}) for name in attrs
    ]
    table = np.zeros(shape)
    np.add.at(table, tuple(code.to_numpy() for code in codes), 1.0)
    return table


def noisy(table: Floats, scale: float, seed: int) -> Floats:
    """Seeded discrete Laplace noise, for pictures only."""
    rng = np.random.default_rng(seed)
    stop = 1 - np.exp(-1 / scale)
    return table + rng.geometric(stop, table.shape) - rng.geometric(stop, table.shape)


def heat(x: float, y: float, cells: Floats, most: float) -> str:
    """Cells as shades; below zero they are struck through."""
    parts = []
    for (i, j), value in np.ndenumerate(cells):
        left, top = x + 16 * j, y + 16 * i
        parts.append(element("rect", x=left, y=top, width=15, height=15, class_="pale"))
        parts.append(
            element(
                "rect",
                x=left,
                y=top,
                width=15,
                height=15,
                class_="a",
                opacity=f"{min(max(value, 0) / most, 1):.2f}",
            )
        )
        if value < 0:
            parts.append(line(left + 3, top + 12, left + 12, top + 3, "sb", 1.5))
    return "".join(parts)
