"""Conditions such as {"sex": "F", "age": {"min": 18}}: which levels of each measured attribute they allow."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from dpcipher.errors import ConditionError, SchemaError, did_you_mean
from dpcipher.marginals.arrays import Bools
from dpcipher.schema.binned import Binned, parse_day
from dpcipher.schema.column import Column

if TYPE_CHECKING:
    from dpcipher.schema.schema import Schema


_MANY = 10_000  # past it, looking for a similar label takes too long


def column_mask(column: Column, wanted: object) -> Bools:
    """The levels of a column that a condition allows: a value, a list of values, or {min, max} for a cut column."""
    mask = np.zeros(column.size, dtype=np.bool_)
    if isinstance(wanted, Mapping):
        mask[_span(column, wanted)] = True
        return mask
    for value in wanted if isinstance(wanted, list | tuple | set | frozenset | np.ndarray) else [wanted]:
        mask[level_code(column, value)] = True
    return mask


def attr_masks(schema: "Schema", condition: Mapping[str, object]) -> dict[int, Bools]:
    """The levels of each touched axis that a condition on columns, parts or whole compounds allows."""
    masks: dict[int, Bools] = {}
    for name, wanted in condition.items():
        axis, mask = _axis_mask(schema, name, wanted)
        masks[axis] = masks[axis] & mask if axis in masks else mask
    return masks


def _axis_mask(schema: "Schema", name: str, wanted: object) -> tuple[int, Bools]:
    for axis, attr in enumerate(schema.attrs):
        parts = schema.parts(attr)
        for i, part in enumerate(parts):
            if part.name == name:
                shape = [-1 if i == j else 1 for j in range(len(parts))]
                mask = column_mask(part, wanted).reshape(shape)
                return axis, np.broadcast_to(mask, [p.size for p in parts]).ravel()
        if attr == name:
            return axis, _compound_mask(schema, attr, wanted)
    raise ConditionError(f"column {name!r} is not in the schema{did_you_mean(str(name), schema.names)}")


def _compound_mask(schema: "Schema", attr: str, wanted: object) -> Bools:
    """A compound is asked for by its labels, such as 'P×NB'."""
    labels = schema.labels(attr)
    mask = np.zeros(len(labels), dtype=np.bool_)
    for label in wanted if isinstance(wanted, list | tuple | set | frozenset) else [wanted]:
        if label not in labels:
            raise ConditionError(f"{attr!r} has no level {label!r}{did_you_mean(str(label), labels)}")
        mask[labels.index(label)] = True
    return mask


def level_code(column: Column, value: object) -> int:
    """The code of one level, asked for by its value or its label."""
    code = column.find(value)
    if code is None:
        hint = _hint(column, value)
        raise ConditionError(f"column {column.name!r} has no level {value!r}{hint}")
    return code


def _hint(column: Column, value: object) -> str:
    if column.size > _MANY:
        return ""
    labels = column.labels
    return did_you_mean(str(value), labels) or "; it has " + ", ".join(labels[:6]) + (
        ", …" if len(labels) > 6 else ""
    )


def _span(column: Column, wanted: Mapping[str, object]) -> slice:
    domain = column.domain
    if not isinstance(domain, Binned) or not wanted or not set(wanted) <= {"min", "max"}:
        raise ConditionError(
            f"column {column.name!r}: a condition must be a value or a list of values, "
            "or {min, max} for an integer, number or date column"
        )
    low, high = (
        _bound(domain, wanted.get(end), default) for end, default in (("min", -np.inf), ("max", np.inf))
    )
    span = domain.between(low, high)
    if span.start >= span.stop:
        raise ConditionError(
            f"column {column.name!r} has no level within {dict(wanted)}; widen the range to whole bins"
        )
    return span


def _bound(domain: Binned, value: object, default: float) -> float:
    if value is None:
        return default
    if domain.kind == "date":
        try:
            return parse_day(value, "a date")
        except SchemaError as wrong:
            raise ConditionError(str(wrong)) from None
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or value != value:
        raise ConditionError(f"min and max of a condition must be numbers, not {value!r}")
    return float(value)
