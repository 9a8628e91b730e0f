"""Bins written by their middle instead of by a value drawn inside them."""

from collections.abc import Collection
from typing import Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpcipher.errors import ParameterError, did_you_mean
from dpcipher.joint.given import typed_cells
from dpcipher.schema.bins import Bins
from dpcipher.schema.cells import flat
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Codes

Values = Literal["drawn", "middle"]


def checked_values(values: str) -> Values:
    """What stands in the rows for a bin: a value that is drawn inside it, or its middle."""
    known = get_args(Values)
    if values not in known:
        raise ParameterError(
            f"values ({values!r:.40}) must be one of {', '.join(known)}{did_you_mean(str(values), known)}"
        )
    return "middle" if values == "middle" else "drawn"


def put_middles(schema: Schema, codes: Codes, rows: pa.Table, *, kept: Collection[str] = ()) -> pa.Table:
    """Rows with the middle of its bin in the place of every value that was drawn, but in the columns that are `kept`.

    Rows keep the rules of the schema: those whose middles would break one (two of them may be equal) stay as they were drawn.
    """
    apart, middled = schema.by_column(codes), rows
    columns = [column for column in schema.columns if column.draws_values and column.name not in kept]
    for column in columns:
        assert isinstance(column.domain, Bins)  # values are drawn in bins alone
        own, cells = apart[column.name], flat(rows.column(column.name))
        inside = own < column.domain.n_bins
        middles = typed_cells(column, column.domain.middles[np.where(inside, own, 0)], cells.type)
        middled = _with_column(middled, column.name, pc.if_else(pa.array(inside), middles, cells))
    broken = schema.compiled.broken_rows(apart, middled)
    if broken.any():
        for column in columns:
            drawn, written = (flat(table.column(column.name)) for table in (rows, middled))
            middled = _with_column(middled, column.name, pc.if_else(pa.array(broken), drawn, written))
    return middled


def _with_column(table: pa.Table, name: str, cells: pa.Array) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, cells)
