"""Bins written by their middle instead of by a value drawn inside them."""

from collections.abc import Collection
from typing import Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpcipher.errors import ParameterError, did_you_mean
from dpcipher.joint.given import typed_cells
from dpcipher.marginals.arrays import Codes
from dpcipher.schema.binned import Binned
from dpcipher.schema.cells import flat
from dpcipher.schema.rows import by_column
from dpcipher.schema.schema import Schema

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

    It comes after the rules of the schema were kept: two values that a rule compares may then be equal, where they are in one bin.
    """
    apart = by_column(schema, codes)
    for column in schema.columns:
        if not column.draws_values or column.name in kept:
            continue
        assert isinstance(column.domain, Binned)  # values are drawn in bins alone
        place, own = rows.column_names.index(column.name), apart[column.name]
        inside, cells = own < column.domain.n_bins, flat(rows.column(column.name))
        middles = typed_cells(column, column.domain.middles[np.where(inside, own, 0)], cells.type)
        rows = rows.set_column(place, column.name, pc.if_else(pa.array(inside), middles, cells))
    return rows
