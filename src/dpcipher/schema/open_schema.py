"""What an open schema becomes: the schema of its grid, on which rows are coded, and the closed schema once edges are found."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dpcipher.schema.domain import Binned
from dpcipher.schema.open_column import closed, on_grid
from dpcipher.schema.open_grid import MAX_GRID
from dpcipher.schema.rows import MAX_MASK_CELLS

if TYPE_CHECKING:
    from dpcipher.schema.schema import Schema


def grid_schema(schema: "Schema") -> "Schema":
    """The schema with the grid of every open column in its place; a grid is coarser where a structural zero crosses it with other columns."""
    if not schema.is_open:
        return schema
    columns = tuple(
        on_grid(column, _finest(schema, column.name)) if column.is_open else column
        for column in schema.columns
    )
    return replace(schema, columns=columns)


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
    """The schema closed at the edges that stand for those to be found."""
    domains = {column.name: column.domain for column in schema.columns if column.is_open}
    return closed_schema(
        schema, {name: list(domain.edges) for name, domain in domains.items() if isinstance(domain, Binned)}
    )


def closed_schema(schema: "Schema", edges: Mapping[str, Sequence[float]]) -> "Schema":
    """The schema with edges for every open column; a sign-off of the open one holds, since what was added is a private answer."""
    columns = tuple(
        closed(column, edges[column.name]) if column.is_open else column for column in schema.columns
    )
    if not schema.is_open:
        return schema
    found = ", ".join(column.name for column in schema.columns if column.is_open)
    notes = (*schema.provenance.notes, f"edges found privately (bins: auto): {found}")
    made = replace(schema, columns=columns, provenance=replace(schema.provenance, notes=notes))
    sign_off = schema.provenance.sign_off
    if not schema.signed or sign_off is None:
        return made
    return replace(
        made, provenance=replace(made.provenance, sign_off=replace(sign_off, hash=made.fingerprint()))
    )
