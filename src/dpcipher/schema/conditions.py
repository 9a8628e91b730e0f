"""What is asked of a schema by column name: conditions such as {"sex": "F", "age": {"min": 18}}, and the tables of some columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpcipher.errors import ConditionError, SchemaError, did_you_mean
from dpcipher.files.codec import as_plain, is_number
from dpcipher.schema.bins import Bins
from dpcipher.schema.columns import Column
from dpcipher.schema.cut import Cut
from dpcipher.tables.domain import Attrs, Axes, Bools, Floats

Cell = TypeVar("Cell", bound=np.generic)

_MANY = 10_000  # past it, looking for a similar label takes too long


def allowed_levels(columns: Mapping[str, Column], given: Mapping[str, object]) -> dict[int, Bools]:
    """The levels of each touched axis that a condition on columns, which stand in the order of the schema, allows."""
    masks: dict[int, Bools] = {}
    for name, wanted in given.items():
        if name not in columns:
            raise ConditionError(
                f"column {name!r:.100} is not in the schema{did_you_mean(str(name), columns)}"
            )
        check_possible(columns[name], wanted)
        mask = column_mask(columns[name], wanted)
        if not mask.any():
            raise ConditionError(f"given allows no level of {name!r}; name at least one")
        masks[list(columns).index(name)] = mask
    return masks


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
    if isinstance(column, Cut):
        words = dict(column.value_labels).values()
        hint = (
            did_you_mean(str(value), words) or f"; it has {column.describe_values()}{_describe_bins(column)}"
        )
    elif column.size <= _MANY:
        hint = did_you_mean(str(value), column.labels) or f"; it has {_some(column.labels)}"
    raise ConditionError(f"column {column.name!r} has no level {value!r:.100}{hint}")


def _some(labels: Sequence[str]) -> str:
    return ", ".join(labels[:6]) + (", …" if len(labels) > 6 else "")


def _describe_bins(column: Cut) -> str:
    """The first bins, where they hold several values each and are not too many to name."""
    few = column.draws_values and column.size <= _MANY
    return f"; its bins are {_some(column.domain.labels)}" if few else ""


def check_possible(column: Column, wanted: object) -> None:
    """Refuse values that no row can have, also where a private one would go to the nearest bin; ranges may reach beyond."""
    if not isinstance(column, Cut) or isinstance(wanted, Mapping):
        return
    for value in listed(wanted):
        if level_code(column, value) >= column.domain.size:  # a kind of missing
            continue
        number = column.domain.number_named(value)
        if number == number and not column.holds(number):
            raise ConditionError(
                f"column {column.name!r} has no value {value!r:.100}; it has {column.describe_values()}"
            )


def _range_mask(column: Column, wanted: Mapping[str, object]) -> Bools:
    """The bins that lie within a range, and the special values in it."""
    if not isinstance(column, Cut) or not wanted or not set(wanted) <= {"min", "max"}:
        raise ConditionError(
            f"column {column.name!r}: a condition must be a value or a list of values, "
            "or {min, max} for an integer, number, date or time column"
        )
    domain = column.domain
    low, high = _bound(domain, wanted.get("min"), -np.inf), _bound(domain, wanted.get("max"), np.inf)
    mask = np.zeros(column.size, dtype=np.bool_)
    mask[domain.between(low, high)] = True
    mask[domain.n_bins : domain.size] = [low <= value <= high for value in domain.special]
    if not mask.any():
        raise ConditionError(
            f"column {column.name!r} has no level within {dict(wanted)!r:.200}; widen the range to whole bins. "
            f"It has {column.describe_values()}{_describe_bins(column)}"
        )
    return mask


def _bound(domain: Bins, value: object, default: float) -> float:
    if value is None:
        return default
    kind = domain.scale.kind
    if kind in ("date", "time"):
        try:
            return domain.scale.parse(value, f"a {kind}")
        except SchemaError as wrong:
            raise ConditionError(str(wrong)) from None
    value = as_plain(value)
    if not is_number(value) or value != value:
        raise ConditionError(f"min and max of a condition must be numbers, not {value!r:.100}")
    return float(value)


@dataclass(frozen=True)
class Cover:
    """The axes of some columns, and how to get from their table to the table of the columns in the order of their names.

    `axes` are in the order of the schema; `fold` takes a table over `axes` and gives the table over `names`; `spread` goes the other way.
    """

    names: Attrs
    axes: Axes
    order: tuple[int, ...]  # the place of each name among the axes
    labels: tuple[tuple[str, ...], ...]
    shown: tuple[tuple[str, ...], ...]  # the levels as people read them

    @property
    def attrs(self) -> Attrs:
        """The names in the order of the schema."""
        return tuple(self.names[place] for place in np.argsort(self.order))

    def fold(self, table: Floats) -> Floats:
        """The table with its dimensions in the order of the names."""
        return np.asarray(table).transpose(self.order)

    def fold_stack(self, stack: Floats) -> Floats:
        """`fold` of every table of a stack, which runs along the first dimension."""
        return stack.transpose([0, *(1 + place for place in self.order)])

    def spread(self, values: NDArray[Cell]) -> NDArray[Cell]:
        """The table over `axes` of a table over `names`."""
        return values.transpose(np.argsort(self.order))
