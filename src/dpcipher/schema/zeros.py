"""Structural zeros: combinations of levels that no row can have."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpcipher.errors import ConditionError, DataError, SchemaError, SizeError
from dpcipher.marginals.arrays import Codes
from dpcipher.schema.condition import attr_masks, column_mask, level_code
from dpcipher.schema.plain import product_within

if TYPE_CHECKING:
    from dpcipher.schema.schema import Schema

MAX_MASK_CELLS = 2**27
_TOO_MANY = "a structural zero touches too many cells; name fewer columns in it"


@dataclass(frozen=True)
class Zero:
    """No row can meet all conditions of `impossible` at once; a row that does is moved to `becomes`, or refused."""

    impossible: Mapping[str, object]
    becomes: Mapping[str, object] = field(default_factory=dict)

    def check(self, schema: "Schema") -> None:
        """Refuse what the schema's columns cannot mean."""
        if (
            not isinstance(self.impossible, Mapping)
            or not self.impossible
            or not isinstance(self.becomes, Mapping)
        ):
            raise SchemaError(
                "a structural zero must be {impossible: {column: levels, …}, becomes: {column: level}}"
            )
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
            if len(listed) > schema.column(name).size or any(
                isinstance(one, list | tuple | Mapping) for one in listed
            ):
                raise SchemaError(f"a structural zero must list levels of {name!r}, each once")

    def moves(self, schema: "Schema") -> dict[str, int]:
        """The codes that `becomes` stands for."""
        return {name: level_code(schema.column(name), level) for name, level in self.becomes.items()}

    def mask(self, schema: "Schema") -> tuple[tuple[int, ...], NDArray[np.bool_]]:
        """The axes it touches, and True where no row can be."""
        masks = attr_masks(schema, self.impossible)
        axes = tuple(sorted(masks))
        if schema.n_cells([schema.attrs[axis] for axis in axes]) > MAX_MASK_CELLS:
            raise SizeError(_TOO_MANY)
        return axes, np.asarray(reduce(np.logical_and.outer, [masks[axis] for axis in axes]))

    def inside(self, schema: "Schema", codes: Mapping[str, Codes]) -> NDArray[np.bool_]:
        """Which coded rows lie in the zero."""
        hits = [
            column_mask(schema.column(name), wanted)[codes[name]] for name, wanted in self.impossible.items()
        ]
        return np.asarray(reduce(np.logical_and, hits))


def move_out_of_zeros(schema: "Schema", codes: dict[str, Codes]) -> None:
    """Move rows out of structural zeros where the schema says where to, and refuse the others."""
    for zero in schema.zeros:
        rows = zero.inside(schema, codes) if zero.becomes else None
        if rows is not None and rows.any():
            for name, code in zero.moves(schema).items():
                codes[name][rows] = code
    for zero in schema.zeros:
        if zero.inside(schema, codes).any():
            names = ", ".join(repr(name) for name in zero.impossible)
            raise DataError(
                f"columns {names}: rows in a structural zero are refused; say where they go with becomes, or correct them"
            )
