"""What comes out, for the README: a column and a pair of the demo's people, released and synthetic."""

from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
from pieces import heat, line, noisy, picture

import dpcipher as dc
from dpcipher.demo.people import SCHEMA, invent_people
from dpcipher.drawing.svg import element, text
from dpcipher.tables.domain import Codes, Floats

SCALE = 21.0  # all 21 pairs at epsilon = 1
COLUMN, PAIR = "income", ("age", "income")


def released() -> dc.Release:
    """The demo's release, with seeded noise so that the picture stays the same."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "people.yaml"
        path.write_text(SCHEMA, encoding="utf-8")
        schema = dc.Schema.load(path)
    codes = schema.encode(pa.Table.from_pandas(invent_people(), preserve_index=False))
    axes = list(combinations(range(len(schema.attrs)), 2))
    tables = {
        (schema.attrs[a], schema.attrs[b]): noisy(_counts(codes, (a, b), schema.shape), SCALE, number)
        for number, (a, b) in enumerate(axes)
    }
    return dc.Release.from_tables(tables, schema, scale=SCALE)


def plot_plan() -> str:
    """What `dc.plot(plan)` draws."""
    plan = dc.plan(released().schema, epsilon=1.0, unit="add-remove", n_rows=5_000)
    return dc.plot(plan).svg + "\n"


def plot_column() -> str:
    """What `dc.plot(release, "income")` draws."""
    return dc.plot(released(), COLUMN).svg + "\n"


def plot_pair() -> str:
    """What `dc.plot(release, ("age", "income"))` draws."""
    return dc.plot(released(), PAIR).svg + "\n"


def _counts(codes: Codes, axes: tuple[int, ...], shape: tuple[int, ...]) -> Floats:
    table = np.zeros([shape[axis] for axis in axes])
    np.add.at(table, tuple(codes[:, axis] for axis in axes), 1.0)
    return table


def what_comes_out() -> str:
    """Left a column with the margins of its noisy counts, right a pair, released beside synthetic."""
    release = released()
    joint = dc.solve(release)
    rows = joint.sample(5_000, seed=1)
    codes = release.schema.encode(pa.Table.from_pandas(rows, preserve_index=False))
    axes = release.schema.axes(PAIR)
    synthetic = {
        attrs: _counts(codes, release.schema.axes(attrs), release.schema.shape) for attrs in (PAIR, (COLUMN,))
    }
    parts = [*_bars(release, synthetic[COLUMN,]), text(440, 30, " × ".join(PAIR), class_="ink head")]
    tables = {"released": release.reconciled.table(axes), "synthetic": synthetic[PAIR]}
    most = max(float(table.max()) for table in tables.values())
    for number, (label, table) in enumerate(tables.items()):
        parts += [
            text(440 + 145 * number, 56, label, class_="soft"),
            heat(440 + 145 * number, 64, table, most),
        ]
    parts += [
        text(440, 212, "Down: age from 18 to 89. Across:", class_="soft", font_size=11),
        text(440, 227, "income from 0 to 200, and not given. Struck: below 0.", class_="soft", font_size=11),
    ]
    return picture(
        740,
        245,
        parts,
        title="What comes out",
        description="The demo's people at epsilon 1: income with 95 percent margins of the noisy counts and the synthetic rows' counts inside them; age by income, released and synthetic.",
    )


def _bars(release: dc.Release, synthetic: Floats) -> list[str]:
    """Released counts as bars with their 95 % margins, synthetic counts as dots."""
    labels = release.schema.shown_labels(COLUMN)
    low, high = (np.asarray(end) for end in release.interval(COLUMN))
    wide = 250 / float(high.max())
    parts = [text(20, 30, f"{COLUMN}, in thousands", class_="ink head")]
    for place, label in enumerate(labels):
        y = 50 + 22 * place
        middle = (low[place] + high[place]) / 2
        parts += [
            text(20, y + 12, label, class_="soft", font_size=11),
            element("rect", x=100, y=y, width=middle * wide, height=16, rx=2, class_="a", opacity="0.45"),
            line(100 + low[place] * wide, y + 8, 100 + high[place] * wide, y + 8, "line", 2),
            element("circle", cx=100 + synthetic[place] * wide, cy=y + 8, r=4, class_="b"),
        ]
    y = 50 + 22 * len(labels) + 14
    return [
        *parts,
        element("rect", x=20, y=y - 9, width=12, height=10, rx=2, class_="a", opacity="0.45"),
        text(38, y, "released, with 95 % margin", class_="soft", font_size=11),
        element("circle", cx=202, cy=y - 4, r=4, class_="b"),
        text(212, y, "5,000 synthetic rows", class_="soft", font_size=11),
    ]
