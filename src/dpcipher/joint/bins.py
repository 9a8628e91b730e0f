"""Values of bins: those that a condition asks for, and middles in the place of values that were drawn.

The tables tell bins apart, not the values in them. `given={"age": 20}` therefore draws from the bin that holds 20, as the joint has it, and writes 20.
"""

from collections.abc import Collection, Mapping
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpcipher.errors import ParameterError, did_you_mean, warn
from dpcipher.schema.bins import Bins
from dpcipher.schema.cells import as_text, flat
from dpcipher.schema.columns import Column
from dpcipher.schema.conditions import column_mask, level_code, listed
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Codes, Floats

Asked = dict[str, dict[int, Floats]]


def asked_values(schema: Schema, given: Mapping[str, object]) -> Asked:
    """The values that were asked for in each bin of each column; bins that were asked for whole, by their label, are not listed."""
    asked: Asked = {}
    for name, wanted in given.items():
        column = schema.column(name) if name in schema.names else None
        if column is None or not column.draws_values:
            continue
        if isinstance(wanted, Mapping):
            _say_whole_bins(column, wanted)
            continue
        asked[name] = _by_bin(column, listed(wanted))
    return asked


def put_values(schema: Schema, table: pa.Table, asked: Asked, rng: np.random.Generator) -> pa.Table:
    """Rows with the values that were asked for; of several in one bin each is as likely."""
    for name, by_bin in asked.items():
        place, column = table.column_names.index(name), schema.column(name)
        cells = flat(table.column(name))
        codes = column.encode(cells)
        numbers = np.zeros(len(codes))
        for code, values in by_bin.items():
            inside = codes == code
            numbers[inside] = rng.choice(values, int(inside.sum()))
        changed = pa.array(np.isin(codes, list(by_bin)))
        table = table.set_column(
            place, name, pc.if_else(changed, typed_cells(column, numbers, cells.type), cells)
        )
    return table


def _by_bin(column: Column, wanted: list[object]) -> dict[int, Floats]:
    assert isinstance(column.domain, Bins)  # values are drawn in bins alone
    values: dict[int, list[float]] = {}
    whole = set()
    for value in wanted:
        code, number = level_code(column, value), column.domain.number_named(value)
        if np.isnan(number) or code >= column.domain.size:
            whole.add(code)
        else:
            values.setdefault(code, []).append(number)
    return {code: np.array(numbers) for code, numbers in values.items() if code not in whole}


def typed_cells(column: Column, numbers: NDArray[Any], kind: pa.DataType) -> pa.Array:
    """Numbers, days or seconds as cells of a column of this type."""
    assert isinstance(column.domain, Bins)
    typed = column.domain.scale.cells(numbers)
    return as_text(typed).cast(kind) if pa.types.is_string(kind) else typed.cast(kind)


def _say_whole_bins(column: Column, wanted: Mapping[str, object]) -> None:
    """Warn where a range cuts bins: only those inside it are drawn from."""
    chosen = np.flatnonzero(column_mask(column, wanted))
    ends = [
        column.find(value) for value in wanted.values() if value is not None and not _is_edge(column, value)
    ]
    if any(end is not None and end not in chosen for end in ends):
        labels = column.labels
        warn(
            f"given {column.name} ({dict(wanted)!r:.60}) cuts bins: rows are drawn from whole bins alone, {labels[chosen[0]]} to "
            f"{labels[chosen[-1]]}. Use their edges"
        )


def _is_edge(column: Column, value: object) -> bool:
    """Whether a number is where two bins meet: then it cuts neither, though one of them holds it."""
    return column.kind == "number" and isinstance(column.domain, Bins) and value in column.domain.edges


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
