"""Cells looked up by their code: where no value is drawn, a column has one cell for each code.

Texts need not be written out row by row: a dictionary array holds each text once, and the code of every row.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpcipher.errors import DataError
from dpcipher.schema.columns import Column
from dpcipher.tables.domain import CodeColumn

_FEW_LEVELS = 4096  # whose cells are worth making for any number of rows


def is_looked_up(column: Column, n_rows: int) -> bool:
    """Whether the cells of all codes are known, and fewer than the rows that need them."""
    return not column.draws_values and column.size <= max(_FEW_LEVELS, n_rows)


def looked_up(column: Column, codes: CodeColumn, *, dictionaries: bool) -> pa.Array:
    """The cell of each code; with `dictionaries`, texts as a dictionary array."""
    if len(codes) and not 0 <= int(codes.min()) <= int(codes.max()) < column.size:
        raise DataError(f"column {column.name!r}: codes must lie in 0..{column.size - 1}")
    cells = column.cells
    if dictionaries and pa.types.is_string(cells.type):
        return _dictionary(cells, codes)
    return cells.take(pa.array(codes))


def _dictionary(cells: pa.Array, codes: CodeColumn) -> pa.DictionaryArray:
    texts = cells.drop_null().unique()
    if len(texts) == len(cells):  # a text of its own for every code
        return pa.DictionaryArray.from_arrays(pa.array(codes.astype(_index_type(len(cells)))), texts)
    places = pc.fill_null(pc.index_in(cells, value_set=texts), -1).to_numpy(zero_copy_only=False)
    indices = places.astype(_index_type(len(cells)))[codes]
    absent = indices < 0 if cells.null_count else None
    return pa.DictionaryArray.from_arrays(pa.array(indices, mask=absent), texts)


def _index_type(size: int) -> np.dtype[np.signedinteger]:
    return np.dtype(np.int8 if size <= 2**7 else np.int16 if size <= 2**15 else np.int32)
