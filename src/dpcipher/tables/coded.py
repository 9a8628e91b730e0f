"""Rows as codes: whatever holds the rows, read through the schema."""

from collections.abc import Sequence
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


def count_table(codes: NDArray[np.int32], shape: tuple[int, ...], axes: tuple[int, ...]) -> NDArray[np.int64]:
    """The counts of the table over `axes`."""
    sizes = [shape[axis] for axis in axes]
    return np.bincount(cell_numbers(codes, shape, axes), minlength=int(np.prod(sizes))).reshape(sizes)


def cell_numbers(codes: NDArray[np.int32], shape: Sequence[int], axes: tuple[int, ...]) -> NDArray[np.int64]:
    """The number of the cell of the table over `axes` that each row falls in, in row-major order."""
    number = np.zeros(len(codes), dtype=np.int64)
    for axis in axes:
        number = number * shape[axis] + codes[:, axis]
    return number
