"""Rows as codes and codes as rows, column by column."""

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpcipher.errors import DataError, ParameterError
from dpcipher.marginals.arrays import Codes
from dpcipher.schema.zeros import move_out_of_zeros

if TYPE_CHECKING:
    from dpcipher.schema.schema import Schema


def encode(schema: "Schema", table: pa.RecordBatch | pa.Table) -> NDArray[np.int32]:
    """The codes of each row, one column for each attribute; columns are contiguous in memory."""
    _check_names(schema, table)
    codes = {column.name: column.encode(table.column(column.name)) for column in schema.columns}
    move_out_of_zeros(schema, codes)
    out = np.empty((table.num_rows, len(schema.attrs)), dtype=np.int32, order="F")
    for axis, attr in enumerate(schema.attrs):
        out[:, axis] = _crossed(schema, attr, codes)
    return out


def decode(schema: "Schema", codes: NDArray[np.int32], rng: np.random.Generator) -> pa.Table:
    """A value for each code, in the order of the user's columns."""
    codes = np.asarray(codes)
    if codes.ndim != 2 or codes.shape[1] != len(schema.attrs):
        raise ParameterError(
            f"codes must have one column for each of the {len(schema.attrs)} attributes, not {codes.shape}"
        )
    apart: dict[str, Codes] = {}
    for axis, attr in enumerate(schema.attrs):
        apart |= _uncrossed(schema, attr, codes[:, axis])
    arrays = [column.decode(apart[column.name], rng) for column in schema.columns]
    return pa.table(arrays, names=list(schema.names))


def _check_names(schema: "Schema", table: pa.RecordBatch | pa.Table) -> None:
    """Every column once. Names that only the table has are not quoted: a file without a header has cells there."""
    names = table.schema.names
    for name in schema.names:
        if names.count(name) != 1:
            state = "appears more than once in" if name in names else "is not in"
            raise DataError(f"column {name!r} {state} the table; check its column names")


def _crossed(schema: "Schema", attr: str, codes: dict[str, Codes]) -> Codes:
    parts = schema.parts(attr)
    crossed = codes[parts[0].name]
    for part in parts[1:]:
        crossed = crossed * np.int32(part.size) + codes[part.name]
    return crossed


def _uncrossed(schema: "Schema", attr: str, codes: Codes) -> dict[str, Codes]:
    parts = schema.parts(attr)
    if len(parts) == 1:
        return {parts[0].name: codes}
    apart = np.unravel_index(codes, [part.size for part in parts])
    return {part.name: code.astype(np.int32) for part, code in zip(parts, apart, strict=True)}
