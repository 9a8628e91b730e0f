"""Tables that are chosen with a part of the budget: the options of the choice."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real

from dpcipher.errors import ParameterError, WorkloadError
from dpcipher.schema.grouped import Grouped
from dpcipher.schema.workload import MAX_TABLE_CELLS

LARGEST_WEIGHT = 1e6  # so that the product over a target stays finite


@dataclass(frozen=True, kw_only=True)
class Auto:
    """The options of automatic selection: tables of up to `max_order` columns and `max_cells` cells are candidates.

    `target` is the workload whose error should be small: an order, or a list of attrs; by default all tables of up to three columns, and larger
    ones that no smaller table explains. `predict` names a column instead: then error counts where it helps to predict that column. A target
    table weighs the product of its columns' `column_weights`, which are 1 unless given. Without a `max_order`, tables of up to four columns
    are looked for, and all columns together where that is a small table. Every column is measured, whatever its size.

    >>> import dpcipher as dc
    >>> schema = dc.Schema.from_domain({name: 4 for name in "abcdefghij"})
    >>> choose = dc.Auto(predict="a", max_order=2)
    >>> dc.plan(schema, workload=choose, epsilon=1.0, delta=1e-6, unit="add-remove", n_rows=5_000).selection.pairs
    9
    """

    max_order: int | None = None
    max_cells: int = 10_000
    target: int | Sequence[Sequence[str]] | None = None
    column_weights: Mapping[str, float] | None = None
    predict: str | None = None

    def __post_init__(self) -> None:
        if self.max_order is not None:
            _whole("max_order", self.max_order, 1, 3)
        _whole("max_cells", self.max_cells, 4, 10_000)
        if self.max_cells > MAX_TABLE_CELLS:
            raise ParameterError(
                f"max_cells ({self.max_cells}) must be at most {MAX_TABLE_CELLS}; try max_cells=10_000"
            )
        if self.target is not None and not _is_order(self.target) and not _is_list(self.target):
            raise WorkloadError(
                f"target ({self.target!r}) must be an order such as 2, or a list of tables such as [('age', 'sex')]"
            )
        if self.predict is not None and not isinstance(self.predict, str):
            raise ParameterError(
                f"predict ({self.predict!r}) must be the name of a column; try predict='income'"
            )
        if self.predict is not None and self.target is not None:
            raise ParameterError(
                f"predict ({self.predict!r}) must stand alone: it says which tables count, and so does target; leave one out"
            )
        if not isinstance(self.column_weights, Mapping | None):
            raise ParameterError(
                f"column_weights ({self.column_weights!r}) must give numbers by column; try column_weights={{'income': 2.0}}"
            )
        for name, weight in (self.column_weights or {}).items():
            if isinstance(weight, bool) or not isinstance(weight, Real) or not 0 <= weight <= LARGEST_WEIGHT:
                raise ParameterError(
                    f"column_weights[{name!r}] ({weight!r}) must be a number from 0 to 1e6; try 2.0, or leave it out for 1.0"
                )


def parse_auto(workload: object, *, weights: object = None) -> Auto | None:
    """How to choose tables, where `workload` is "auto" or an `Auto`; None where it names them."""
    if not isinstance(workload, Auto) and workload != "auto":
        if isinstance(workload, str):
            raise ParameterError(
                f"workload ({workload!r}) must be 'auto', an order such as 2, or a list of tables such as [('age', 'sex')]"
            )
        return None
    if weights is not None:
        raise ParameterError(
            "weights are for tables that are given; where they are chosen say workload=dc.Auto(column_weights={'income': 2.0}) instead"
        )
    return workload if isinstance(workload, Auto) else Auto()


def _is_order(target: object) -> bool:
    return isinstance(target, Integral) and not isinstance(target, bool)


def _is_list(target: object) -> bool:
    return isinstance(target, Sequence) and len(target) > 0 and all(map(_is_table, target))


def _is_table(names: object) -> bool:
    return (
        isinstance(names, Sequence)
        and not isinstance(names, str | Grouped)
        and len(names) > 0
        and all(isinstance(name, str) for name in names)
    )


def _whole(name: str, value: object, least: int, example: int) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ParameterError(
            f"{name} ({value!r}) must be a whole number of at least {least}; try {name}={example}"
        )
