"""Rows as codes and codes as rows, column by column; and the structural zeros, combinations of levels that no row can have."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from dpcipher.errors import ConditionError, DataError, ParameterError, SchemaError, SizeError
from dpcipher.schema.cells import code_type
from dpcipher.schema.conditions import attr_masks, column_mask, level_code
from dpcipher.schema.lookup import is_looked_up, looked_up
from dpcipher.schema.plain import product_within
from dpcipher.schema.refused import inside_zero
from dpcipher.tables.domain import Axes, Bools, CodeColumn, Codes, Floats

if TYPE_CHECKING:
    from dpcipher.schema.schema import Schema

MAX_MASK_CELLS = 2**27
_TOO_MANY = "a structural zero touches too many cells; name fewer columns in it"


@dataclass(frozen=True)
class Zero:
    """No row can meet all conditions of `impossible` at once; a row that does is moved to `becomes`, or refused."""

    impossible: Mapping[str, object]
    becomes: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def from_spec(cls, spec: object) -> "Zero":
        """The structural zero that a schema file declares; `check` sees whether it fits the columns."""
        if not isinstance(spec, Mapping) or not {"impossible"} <= set(spec) <= {"impossible", "becomes"}:
            raise _no_zero()
        return cls(spec["impossible"], spec.get("becomes") or {})

    def check(self, schema: "Schema") -> None:
        """Refuse what the schema's columns cannot mean."""
        if not (
            isinstance(self.impossible, Mapping) and self.impossible and isinstance(self.becomes, Mapping)
        ):
            raise _no_zero()
        self._check_sizes(schema)
        try:
            masks = {
                name: column_mask(schema.column(name), wanted) for name, wanted in self.impossible.items()
            }
            moves = self.moves(schema)
        except ConditionError as wrong:
            raise SchemaError(f"structural zero: {wrong}") from None
        if moves and all(masks[name][moves[name]] for name in moves if name in masks):
            raise SchemaError(
                "becomes of a structural zero must leave it: name a level that `impossible` does not list"
            )

    def _check_sizes(self, schema: "Schema") -> None:
        """Judge the sizes before any mask is made: a few bytes can name columns of millions of levels."""
        sizes = (schema.column(name).size for name in self.impossible)
        if product_within(sizes, MAX_MASK_CELLS) is None:
            raise SizeError(_TOO_MANY)
        for name, wanted in self.impossible.items():
            listed = wanted if isinstance(wanted, list | tuple) else ()
            nested = any(isinstance(level, list | tuple | Mapping) for level in listed)
            if nested or len(listed) > schema.column(name).size:
                raise SchemaError(f"a structural zero must list levels of {name!r}, each once")

    def moves(self, schema: "Schema") -> dict[str, int]:
        """The codes that `becomes` stands for."""
        return {name: level_code(schema.column(name), level) for name, level in self.becomes.items()}

    def mask(self, schema: "Schema") -> tuple[Axes, Bools]:
        """The axes it touches, and True where no row can be."""
        masks = attr_masks(schema, self.impossible)
        axes = tuple(sorted(masks))
        if schema.n_cells([schema.attrs[axis] for axis in axes]) > MAX_MASK_CELLS:
            raise SizeError(_TOO_MANY)
        return axes, np.asarray(reduce(np.logical_and.outer, [masks[axis] for axis in axes]))

    def inside(self, schema: "Schema", codes: Mapping[str, CodeColumn]) -> Bools:
        """Which coded rows lie in the zero."""
        hits = [
            column_mask(schema.column(name), wanted)[codes[name]] for name, wanted in self.impossible.items()
        ]
        return np.asarray(reduce(np.logical_and, hits))


def _no_zero() -> SchemaError:
    return SchemaError(
        "a structural zero must be {impossible: {column: levels, …}, becomes: {column: level}}"
    )


def encode(schema: "Schema", table: pa.RecordBatch | pa.Table) -> Codes:
    """The codes of each row, one column for each attribute; columns are contiguous in memory."""
    columns = encode_columns(schema, table)
    out = np.empty((table.num_rows, len(columns)), dtype=np.int32, order="F")
    for axis, column in enumerate(columns):
        out[:, axis] = column
    return out


def encode_columns(schema: "Schema", table: pa.RecordBatch | pa.Table) -> list[CodeColumn]:
    """The codes of each attribute, each in the narrowest integer that holds them."""
    _check_names(schema, table)
    codes = {column.name: column.encode(table.column(column.name)) for column in schema.columns}
    return attr_columns(schema, codes)


def attr_columns(schema: "Schema", codes: dict[str, CodeColumn]) -> list[CodeColumn]:
    """The codes of each attribute, given those of each column: rows moved out of zeros and by rules."""
    _move_out_of_zeros(schema, codes)
    if schema.rules:
        wide = {name: column.astype(np.int32) for name, column in codes.items()}  # moved in place
        schema.compiled.move_broken(wide)
        codes = {column.name: wide[column.name].astype(code_type(column.size)) for column in schema.columns}
    return [codes[name] for name in schema.names]


def decode(
    schema: "Schema",
    codes: Codes,
    rng: np.random.Generator,
    *,
    masses: Mapping[str, Floats] | None = None,
    dictionaries: bool = False,
) -> pa.Table:
    """A cell for each code, in the order of the user's columns; `masses` are the probabilities of the levels of some columns.

    With `dictionaries` the texts of columns in which no value is drawn come as dictionary arrays, each text once.
    """
    apart, known = by_column(schema, codes), masses or {}
    arrays = []
    for column in schema.columns:
        own = apart[column.name]
        if is_looked_up(column, len(own)) or (dictionaries and not column.draws_values):
            arrays.append(looked_up(column, own, dictionaries=dictionaries))
        else:
            arrays.append(column.decode(own, rng, masses=known.get(column.name)))
    return pa.table(arrays, names=list(schema.names))


def by_column(schema: "Schema", codes: Codes) -> dict[str, Codes]:
    """The codes of each column of the user's table, by name."""
    codes = np.asarray(codes)
    if codes.ndim != 2 or codes.shape[1] != len(schema.attrs):
        raise ParameterError(
            f"codes must have one column for each of the {len(schema.attrs)} attributes, not {codes.shape}"
        )
    return {name: codes[:, axis] for axis, name in enumerate(schema.names)}


def _check_names(schema: "Schema", table: pa.RecordBatch | pa.Table) -> None:
    """Every column once. Names that only the table has are not quoted: a file without a header has cells there."""
    names = table.schema.names
    for name in schema.names:
        if names.count(name) != 1:
            state = "appears more than once in" if name in names else "is not in"
            raise DataError(f"column {name!r} {state} the table; check its column names")


def _move_out_of_zeros(schema: "Schema", codes: dict[str, CodeColumn]) -> None:
    """Move rows out of structural zeros where the schema says where to, and refuse the others."""
    for zero in schema.zeros:
        rows = zero.inside(schema, codes) if zero.becomes else None
        if rows is not None and rows.any():
            for name, code in zero.moves(schema).items():
                codes[name] = np.where(rows, codes[name].dtype.type(code), codes[name])
    for zero in schema.zeros:
        if zero.inside(schema, codes).any():
            raise DataError(inside_zero(zero.impossible))
