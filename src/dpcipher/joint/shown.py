"""A joint as people first see it: a card, and pictures of its columns and pairs."""

from typing import TYPE_CHECKING

import numpy as np

from dpcipher.drawing.bars import Series
from dpcipher.drawing.card import Card
from dpcipher.drawing.figures import column_chart, pair_maps
from dpcipher.drawing.html import share
from dpcipher.drawing.plot import Plot
from dpcipher.errors import ParameterError

if TYPE_CHECKING:
    from dpcipher.joint.joint import Joint

MOST_COLUMNS = 12
NOTE = "Shares of all rows. They come from a model of the noisy tables: no margin is drawn, since none would cover the model's error."


def card(joint: "Joint") -> Card:
    """Which engine made it, how well it fits, and what to do with it."""
    health, schema = joint.health, joint.schema
    worst = "" if health.worst is None else f"{health.worst[1]:.2g} sigmas ({' × '.join(health.worst[0])})"
    return Card(
        f"Joint of {schema.title}" if schema.title else "Joint",
        {
            "Columns": f"{len(schema.attrs):,}",
            "Rows": f"{joint.n_rows:,}",
            "Engine": health.engine,
            "Worst misfit": worst,
            "Converged": "" if health.converged else "no",
        },
        notes=[
            *health.warnings,
            "joint.sample() draws rows; joint.project(columns) gives any table; dc.plot(joint, columns) draws it.",
        ],
    )


def draw(joint: "Joint", columns: tuple[str, ...] | None) -> Plot:
    """One column as bars, two as a heat map, and without any the first dozen columns."""
    schema = joint.schema
    if columns is None:
        names = schema.attrs[:MOST_COLUMNS]
        hidden = len(schema.attrs) - len(names)
        more = f" {hidden:,} more columns are not drawn: name them." if hidden else ""
        panels = {schema.heading(name): column_chart(_series(joint, name)) for name in names}
        return Plot(schema.title or "The columns of the joint", panels, note=NOTE + more)
    if len(columns) == 1:
        series = _series(joint, columns[0])
        return Plot(series.name, {series.name: column_chart(series)}, note=NOTE)
    return _pair(joint, columns)


def _series(joint: "Joint", name: str) -> Series:
    shares = np.asarray(joint.project(name), dtype=float)
    labels = joint.schema.shown_labels(name)
    largest = int(np.argmax(shares))
    says = f"Bar chart of {len(labels)} levels. Largest: {labels[largest]}, {share(float(shares[largest]))}."
    return Series(joint.schema.heading(name), labels, shares, None, says, shares=True)


def _pair(joint: "Joint", names: tuple[str, ...]) -> Plot:
    if len(names) != 2:
        raise ParameterError(
            f"columns ({', '.join(names)}) must be one or two names; plot pairs of them one by one"
        )
    first, second = names
    schema = joint.schema
    shares = np.asarray(joint.project(names), dtype=float)
    labels = (schema.shown_labels(first), schema.shown_labels(second))
    maps = pair_maps((first, second), labels, {"shares": shares}, np.zeros_like(shares), shares=True)
    title = " × ".join(map(schema.heading, names))
    return Plot(title, {title: next(iter(maps.values()))}, note=NOTE)
