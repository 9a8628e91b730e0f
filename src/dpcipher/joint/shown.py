"""A joint as people first see it: a card, and pictures of its columns and pairs."""

from typing import TYPE_CHECKING

import numpy as np

from dpcipher.drawing.bars import Series
from dpcipher.drawing.card import Card
from dpcipher.drawing.figures import column_chart, group_series, merged_note, pair_maps
from dpcipher.drawing.groups import EXPLAINED, MOST_ACROSS, MOST_BARS
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
    if columns is not None and len(columns) != 1:
        return _pair(joint, columns)
    names = columns or schema.attrs[:MOST_COLUMNS]
    drawn = [_series(joint, name) for name in names]
    hidden = 0 if columns else len(schema.attrs) - len(names)
    more = f" {hidden:,} more columns are not drawn: name them." if hidden else ""
    merged = f" {EXPLAINED}" if any(series.merged for series in drawn) else ""
    title = drawn[0].name if columns else schema.title or "The columns of the joint"
    return Plot(title, {series.name: column_chart(series) for series in drawn}, note=NOTE + merged + more)


def _series(joint: "Joint", name: str) -> Series:
    levels, groups = np.asarray(joint.project(name), dtype=float), joint.schema.groups(name, MOST_BARS)
    shares = groups.add_up(levels)
    return group_series(joint.schema.heading(name), groups, shares, shares=True)


def _pair(joint: "Joint", names: tuple[str, ...]) -> Plot:
    if len(names) != 2:
        raise ParameterError(
            f"columns ({', '.join(names)}) must be one or two names; plot pairs of them one by one"
        )
    first, second = names
    schema = joint.schema
    shares = np.asarray(joint.project(names), dtype=float)
    groups = (schema.groups(first, MOST_ACROSS), schema.groups(second, MOST_ACROSS))
    none = np.zeros([len(group.labels) for group in groups])
    maps = pair_maps((first, second), groups, {"shares": shares}, none, shares=True)
    title = " × ".join(map(schema.heading, names))
    note = f"{NOTE} {merged_note((first, second), groups)}".rstrip()
    return Plot(title, {title: next(iter(maps.values()))}, note=note)
