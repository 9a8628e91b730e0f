"""What an open schema becomes: the schema of its grid, on which rows are coded, and the closed schema once edges are found."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dpcipher.schema.columns import Column
from dpcipher.schema.cut import Cut
from dpcipher.schema.open_bins import OpenBins
from dpcipher.schema.open_levels import OpenLevels
from dpcipher.tables.domain import Codes

if TYPE_CHECKING:
    from dpcipher.schema.schema import Schema


FOUND_NOTES = (
    "edges found privately (bins: auto)",
    "levels found privately (levels: discover)",
)  # as notes of a release begin


def grid_schema(schema: "Schema") -> "Schema":
    """The schema with the grid of every open column in its place."""
    if not schema.is_open:
        return schema
    columns = (
        column.on_grid() if isinstance(column, OpenBins | OpenLevels) else column for column in schema.columns
    )
    return replace(schema, columns=tuple(columns))


def stand_in_schema(schema: "Schema") -> "Schema":
    """The schema closed at the edges and levels that stand for those to be found."""
    return closed_schema(
        schema,
        {column.name: list(column.domain.edges) for column in schema.columns if isinstance(column, OpenBins)},
        {column.name: column.largest for column in schema.columns if isinstance(column, OpenLevels)},
    )


def recoded(codes: Codes, grid: "Schema", schema: "Schema") -> Codes:
    """Codes on a grid as those of a closed schema whose edges are among the points of the grid; cells beyond the ends go to the end bins."""
    out = np.array(codes)
    for axis, column in enumerate(schema.columns):
        fine = grid.columns[axis]
        if isinstance(fine, Cut) and isinstance(column, Cut) and fine.domain != column.domain:
            out[:, axis] = column.domain.homes(fine.domain, column.size)[codes[:, axis]]
    return out


def closed_schema(
    schema: "Schema", edges: Mapping[str, Sequence[float]], levels: Mapping[str, Sequence[str]]
) -> "Schema":
    """The schema with what was found for its open columns; a sign-off of the open one holds, since what was added is a private answer."""
    columns = tuple(_closed(column, edges, levels) for column in schema.columns)
    if columns == schema.columns:
        return schema
    told = dict(zip(FOUND_NOTES, (edges, levels), strict=True))
    notes = tuple(f"{what}: {', '.join(names)}" for what, names in told.items() if names)
    provenance = replace(schema.provenance, notes=(*schema.provenance.notes, *notes))
    made = replace(schema, columns=columns, provenance=provenance)
    sign_off = schema.provenance.sign_off
    if not schema.signed or sign_off is None:
        return made
    return replace(
        made, provenance=replace(made.provenance, sign_off=replace(sign_off, hash=made.fingerprint()))
    )


def _closed(
    column: Column, edges: Mapping[str, Sequence[float]], levels: Mapping[str, Sequence[str]]
) -> Column:
    if isinstance(column, OpenLevels) and column.name in levels:
        return column.closed(levels[column.name])
    if isinstance(column, OpenBins) and column.name in edges:
        return column.closed(edges[column.name])
    return column
