"""What an open schema becomes: the schema of its grid, on which rows are coded, and the closed schema once edges are found."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dpcipher.schema import text_column
from dpcipher.schema.binned import Binned
from dpcipher.schema.open_column import AUTO, closed, on_grid
from dpcipher.schema.open_grid import MAX_GRID
from dpcipher.schema.rows import MAX_MASK_CELLS
from dpcipher.tables.domain import Codes

if TYPE_CHECKING:
    from dpcipher.schema.column import Column
    from dpcipher.schema.schema import Schema


FOUND_NOTES = (
    "edges found privately (bins: auto)",
    "levels found privately (levels: discover)",
)  # as notes of a release begin


def grid_schema(schema: "Schema") -> "Schema":
    """The schema with the grid of every open column in its place; a grid is coarser where a structural zero crosses it with other columns."""
    if not schema.is_open:
        return schema
    return replace(schema, columns=tuple(_on_grid(schema, column) for column in schema.columns))


def _on_grid(schema: "Schema", column: "Column") -> "Column":
    if column.discovers:
        return text_column.on_grid(column)
    return on_grid(column, _finest(schema, column.name)) if column.is_open else column


def _finest(schema: "Schema", name: str) -> int:
    """The most cells of a column's grid, so that the mask of every zero that names it can be written out."""
    most = MAX_GRID
    for zero in schema.zeros:
        columns = [schema.column(other) for other in zero.impossible]
        if name in zero.impossible:
            n_open = sum(column.is_open for column in columns)
            room = MAX_MASK_CELLS // math.prod(column.size for column in columns if not column.is_open)
            most = min(most, int(room ** (1 / n_open)) // 2)
    return most


def stand_in_schema(schema: "Schema") -> "Schema":
    """The schema closed at the edges and levels that stand for those to be found."""
    domains = {column.name: column.domain for column in schema.columns if column.is_open}
    return closed_schema(
        schema,
        {name: list(domain.edges) for name, domain in domains.items() if isinstance(domain, Binned)},
        {column.name: text_column.stand_in_texts(column) for column in schema.columns if column.discovers},
    )


def recoded(codes: Codes, grid: "Schema", schema: "Schema") -> Codes:
    """Codes on a grid as those of a closed schema whose edges are among the points of the grid; cells beyond the ends go to the end bins."""
    out = np.array(codes)
    for axis, column in enumerate(schema.columns):
        fine, wide = grid.columns[axis].domain, column.domain
        if fine != wide and isinstance(fine, Binned) and isinstance(wide, Binned):
            home = np.searchsorted(np.asarray(wide.edges), np.asarray(fine.edges)[:-1], "right") - 1
            home = np.clip(home, 0, wide.n_bins - 1)
            out[:, axis] = np.concatenate([home, np.arange(wide.n_bins, column.size)])[codes[:, axis]]
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
    column: "Column", edges: Mapping[str, Sequence[float]], levels: Mapping[str, Sequence[str]]
) -> "Column":
    if column.discovers and column.name in levels:
        return text_column.closed(column, levels[column.name])
    if column.bins != AUTO or column.name not in edges:
        return column
    return closed(column, edges[column.name])
