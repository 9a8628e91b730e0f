"""What is asked of a schema by column name: conditions such as {"sex": "F", "age": {"min": 18}}, and the tables of some columns.

A column may be part of a compound attribute: conditions are spread over the compound, and of a table the other parts are summed out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpcipher.errors import ConditionError, SchemaError, WorkloadError, did_you_mean
from dpcipher.schema.binned import Binned
from dpcipher.schema.column import Column
from dpcipher.schema.points import parse_point
from dpcipher.schema.possible import is_possible, named_number, said_values
from dpcipher.tables.domain import Attrs, Axes, Bools, Floats

if TYPE_CHECKING:
    from dpcipher.schema.schema import Schema

Cell = TypeVar("Cell", bound=np.generic)

_MANY = 10_000  # past it, looking for a similar label takes too long


def allowed_levels(schema: "Schema", given: Mapping[str, object]) -> dict[int, Bools]:
    """The levels of each touched axis that a condition allows; refused where no row can meet it."""
    for name, wanted in given.items():
        if name in schema.names:
            check_possible(schema.column(name), wanted)
    masks = attr_masks(schema, given)
    for axis, mask in masks.items():
        if not mask.any():
            raise ConditionError(
                f"given allows no level of {schema.attrs[axis]!r}; its conditions contradict each other"
            )
    for axes, zero in schema.zero_masks:
        if set(axes) <= set(masks) and zero[np.ix_(*(masks[axis] for axis in axes))].all():
            raise ConditionError(
                f"given ({', '.join(given)}) asks for a structural zero of the schema; change it"
            )
    return masks


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
    raise ConditionError(f"column {name!r:.100} is not in the schema{did_you_mean(str(name), schema.names)}")


def _compound_mask(schema: "Schema", attr: str, wanted: object) -> Bools:
    """A compound is asked for by the names of its levels, such as 'P×NB', or as pages show them."""
    labels, shown = schema.labels(attr), schema.shown_labels(attr)
    mask = np.zeros(len(labels), dtype=np.bool_)
    for label in wanted if isinstance(wanted, list | tuple | set | frozenset) else [wanted]:
        names = labels if label in labels else shown
        if label not in names:
            raise ConditionError(f"{attr!r} has no level {label!r}{did_you_mean(str(label), labels)}")
        mask[names.index(label)] = True
    return mask


def column_mask(column: Column, wanted: object) -> Bools:
    """The levels of a column that a condition allows: a value, a list of values, or {min, max} for a cut column."""
    if isinstance(wanted, Mapping):
        return _range_mask(column, wanted)
    mask = np.zeros(column.size, dtype=np.bool_)
    for value in listed(wanted):
        mask[level_code(column, value)] = True
    return mask


def listed(wanted: object) -> list[object]:
    """The values that a condition names, one or several."""
    return list(wanted) if isinstance(wanted, list | tuple | set | frozenset | np.ndarray) else [wanted]


def level_code(column: Column, value: object) -> int:
    """The code of one level, asked for by its value or its label."""
    code = column.find(value)
    if code is not None:
        return code
    hint = ""
    if isinstance(column.domain, Binned):
        words = dict(column.value_labels or ()).values()
        hint = did_you_mean(str(value), words) or f"; it has {said_values(column)}{_said_bins(column)}"
    elif column.size <= _MANY:
        hint = did_you_mean(str(value), column.labels) or f"; it has {_some(column.labels)}"
    raise ConditionError(f"column {column.name!r} has no level {value!r:.100}{hint}")


def _some(labels: Sequence[str]) -> str:
    return ", ".join(labels[:6]) + (", …" if len(labels) > 6 else "")


def _said_bins(column: Column) -> str:
    """The first bins, where they hold several values each and are not too many to name."""
    domain = column.domain
    few = column.draws_values and column.size <= _MANY
    return f"; its bins are {_some(domain.labels)}" if few else ""


def check_possible(column: Column, wanted: object) -> None:
    """Refuse values that no row can have, also where a private one would go to the nearest bin; ranges may reach beyond."""
    if not isinstance(column.domain, Binned) or isinstance(wanted, Mapping):
        return
    for value in listed(wanted):
        if level_code(column, value) >= column.domain.size:  # a kind of missing
            continue
        number = named_number(column.domain, value)
        if number == number and not is_possible(column, number):
            raise ConditionError(
                f"column {column.name!r} has no value {value!r:.100}; it has {said_values(column)}"
            )


def _range_mask(column: Column, wanted: Mapping[str, object]) -> Bools:
    """The bins that lie within a range, and the special values in it."""
    domain = column.domain
    if not isinstance(domain, Binned) or not wanted or not set(wanted) <= {"min", "max"}:
        raise ConditionError(
            f"column {column.name!r}: a condition must be a value or a list of values, "
            "or {min, max} for an integer, number, date or time column"
        )
    low, high = _bound(domain, wanted.get("min"), -np.inf), _bound(domain, wanted.get("max"), np.inf)
    mask = np.zeros(column.size, dtype=np.bool_)
    mask[domain.between(low, high)] = True
    mask[domain.n_bins : domain.size] = [low <= value <= high for value in domain.special]
    if not mask.any():
        raise ConditionError(
            f"column {column.name!r} has no level within {dict(wanted)!r:.200}; widen the range to whole bins. "
            f"It has {said_values(column)}{_said_bins(column)}"
        )
    return mask


def _bound(domain: Binned, value: object, default: float) -> float:
    if value is None:
        return default
    if domain.kind in ("date", "time"):
        try:
            return parse_point(domain.kind, value, f"a {domain.kind}")
        except SchemaError as wrong:
            raise ConditionError(str(wrong)) from None
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or value != value:
        raise ConditionError(f"min and max of a condition must be numbers, not {value!r:.100}")
    return float(value)


@dataclass(frozen=True)
class Cover:
    """The attributes that cover some names, and how to get from their table to the table of the names.

    `attrs` and `axes` are in schema order; `fold` takes a table over `axes` and gives the table over `names`, in their order;
    `spread` goes the other way.
    """

    names: Attrs
    attrs: Attrs
    axes: Axes
    labels: tuple[tuple[str, ...], ...]
    opened: tuple[tuple[str, int], ...]  # the dimensions once compounds are taken apart: name and size
    shown: tuple[tuple[str, ...], ...] = ()  # the levels as people read them

    def fold(self, table: Floats) -> Floats:
        """Sum out what was not asked for, and put the axes in the order of the names."""
        return np.asarray(self.fold_stack(np.asarray(table)[None])[0])

    def fold_stack(self, stack: Floats) -> Floats:
        """`fold` of every table of a stack, which runs along the first dimension."""
        inner = [name for name, _ in self.opened]
        cubes = stack.reshape([len(stack), *(size for _, size in self.opened)])
        kept = [name for name in inner if name in self.names]
        summed = cubes.sum(axis=tuple(1 + i for i, name in enumerate(inner) if name not in self.names))
        return np.asarray(summed).transpose([0, *(1 + kept.index(name) for name in self.names)])

    def spread(self, values: NDArray[Cell]) -> NDArray[Cell]:
        """For each cell of the opened dimensions, the value of the cell over `names` that `fold` sums it into."""
        inner = [name for name, _ in self.opened]
        ordered = values.transpose(np.argsort([inner.index(name) for name in self.names]))
        shaped = ordered.reshape([size if name in self.names else 1 for name, size in self.opened])
        return np.broadcast_to(shaped, [size for _, size in self.opened])


def cover(schema: "Schema", names: str | Sequence[str]) -> Cover:
    """The attributes that cover `names`, each a column, a part of a compound, or a compound."""
    wanted = (names,) if isinstance(names, str) else tuple(names)
    homes = {name: _home(schema, name) for name in wanted}
    attrs = tuple(attr for attr in schema.attrs if attr in homes.values())
    opened = tuple(chain.from_iterable(_dimensions(schema, attr, wanted) for attr in attrs))
    if len(homes) < len(wanted) or not homes.keys() <= {name for name, _ in opened}:
        raise WorkloadError(f"columns ({', '.join(wanted)}) must name each column once; remove the repeats")
    labels = tuple(schema.labels(name) for name in wanted)
    shown = tuple(schema.shown_labels(name) for name in wanted)
    return Cover(wanted, attrs, tuple(schema.attrs.index(attr) for attr in attrs), labels, opened, shown)


def _home(schema: "Schema", name: str) -> str:
    for attr in schema.attrs:
        if name == attr or any(part.name == name for part in schema.parts(attr)):
            return attr
    raise WorkloadError(
        f"column {name!r:.100} is not in the schema{did_you_mean(str(name), (*schema.names, *schema.attrs))}"
    )


def _dimensions(schema: "Schema", attr: str, wanted: Attrs) -> list[tuple[str, int]]:
    if attr in wanted:
        return [(attr, schema.n_cells([attr]))]
    return [(part.name, part.size) for part in schema.parts(attr)]
