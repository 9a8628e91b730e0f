"""Rows as codes and codes as rows, column by column.

Where no value is drawn, a column has one cell for each code, which is looked up. Texts need not be written out row by row: a dictionary array holds
each text once, and the code of every row.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpcipher.errors import DataError
from dpcipher.schema.cells import code_type
from dpcipher.schema.columns import Column
from dpcipher.schema.rules.compiled import Rules
from dpcipher.tables.domain import CodeColumn, Codes, Floats

_FEW_LEVELS = 4096  # whose cells are worth making for any number of rows


def encode_columns(
    columns: Sequence[Column], rules: Rules, table: pa.RecordBatch | pa.Table
) -> list[CodeColumn]:
    """The codes of each column, each in the narrowest integer that holds them; rows are moved by rules, or refused."""
    _check_names(columns, table.schema.names)
    codes = {column.name: column.encode(table.column(column.name)) for column in columns}
    if rules.declared:
        wide: dict[str, CodeColumn] = {
            name: own.astype(np.int32) for name, own in codes.items()
        }  # moved in place
        rules.move_broken(wide)
        return [wide[column.name].astype(code_type(column.size)) for column in columns]
    if rules.zeros:
        moved = {name for zero in rules.zeros for name in zero.moves}
        codes = {name: own.copy() if name in moved else own for name, own in codes.items()}
        rules.move_broken(codes)
    return list(codes.values())


def _check_names(columns: Sequence[Column], names: list[str]) -> None:
    """Every column once. Names that only the table has are not quoted: a file without a header has cells there."""
    for column in columns:
        if names.count(column.name) != 1:
            state = "appears more than once in" if column.name in names else "is not in"
            raise DataError(f"column {column.name!r} {state} the table; check its column names")


def decode(
    columns: Sequence[Column],
    codes: Mapping[str, Codes],
    rng: np.random.Generator,
    *,
    masses: Mapping[str, Floats],
    dictionaries: bool,
) -> pa.Table:
    """A cell for each code; `masses` are the probabilities of the levels of some columns.

    With `dictionaries` the texts of columns in which no value is drawn come as dictionary arrays, each text once.
    """
    cells = {}
    for column in columns:
        own = codes[column.name]
        if not column.draws_values and (dictionaries or column.size <= max(_FEW_LEVELS, len(own))):
            cells[column.name] = _looked_up(column, own, dictionaries=dictionaries)
        else:
            cells[column.name] = column.decode(own, rng, masses=masses.get(column.name))
    return pa.table(cells)


def _looked_up(column: Column, codes: CodeColumn, *, dictionaries: bool) -> pa.Array:
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
