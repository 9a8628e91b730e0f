"""Rows as codes: whatever holds the rows, read through the schema."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcipher.errors import ParameterError
from dpcipher.schema.schema import Schema
from dpcipher.tables.read import open_table


def coded_rows(data: Any, schema: Schema, name: str) -> NDArray[np.int32]:
    """All rows of a table as integer codes; `name` is what messages call it."""
    parts = [schema.encode(batch) for batch in open_table(data).batches(schema.names)]
    codes = np.concatenate(parts) if parts else np.empty((0, len(schema.attrs)), dtype=np.int32)
    if not len(codes):
        raise ParameterError(f"{name} must hold at least one row; it has none")
    return codes
