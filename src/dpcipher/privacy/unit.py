"""Who is protected: the neighbour relation and how many rows one person may have."""

from dataclasses import dataclass
from numbers import Integral
from typing import Literal, Self

from dpcipher.errors import ParameterError, did_you_mean

Relation = Literal["add-remove", "replace"]
RELATIONS: tuple[Relation, ...] = ("add-remove", "replace")


def _relation(value: object) -> Relation:
    """The relation of that name, or an error that lists both."""
    for relation in RELATIONS:
        if value == relation:
            return relation
    hint = did_you_mean(value.replace("_", "-"), RELATIONS) if isinstance(value, str) else ""
    raise ParameterError(f"unit ({value!r}) must be 'add-remove' or 'replace'{hint}; try unit='add-remove'")


def _max_rows(value: object) -> int:
    """A whole number of rows, at least one."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ParameterError(f"max_rows ({value!r}) must be a whole number of at least 1; try max_rows=1")
    return int(value)


@dataclass(frozen=True)
class Unit:
    """The difference that a release hides: one person's rows, at most `max_rows` of them.

    add-remove: the rows are there or are not. replace: each of the rows takes other values, so that the number
    of rows stays the same. All rows of one person may sit in one cell, so `max_rows` multiplies the L1 and the
    L2 sensitivity alike.

    >>> Unit("replace", 3).l1, Unit("replace", 3).l2_squared
    (6, 18)
    """

    relation: Relation
    max_rows: int = 1

    def __post_init__(self) -> None:
        _relation(self.relation)
        object.__setattr__(self, "max_rows", _max_rows(self.max_rows))

    @classmethod
    def parse(cls, unit: object, max_rows: object = 1) -> Self:
        """A unit from what a caller wrote: a name with `max_rows`, or a Unit as it is."""
        if isinstance(unit, cls):
            if _max_rows(max_rows) not in (1, unit.max_rows):
                raise ParameterError(
                    f"max_rows ({max_rows!r}) must agree with unit (max_rows={unit.max_rows}); give it once"
                )
            return unit
        return cls(_relation(unit), _max_rows(max_rows))

    @property
    def l1(self) -> int:
        """The L1 distance between the counts of one table on two neighbours."""
        return self.max_rows if self.relation == "add-remove" else 2 * self.max_rows

    @property
    def l2_squared(self) -> int:
        """The squared L2 distance between the counts of one table on two neighbours."""
        return self.max_rows**2 if self.relation == "add-remove" else 2 * self.max_rows**2

    @property
    def n_rows_is_public(self) -> bool:
        """Whether neighbours always have the same number of rows, so that it tells nothing about anybody."""
        return self.relation == "replace"

    def describe(self, *, n_rows_told: bool | None = None) -> str:
        """A sentence for people; `n_rows_told` says whether the exact number of rows goes with it, as it does by default under replacement.

        Told under add-remove, it gives presence away. What is left is the protection of values: one row replaced is one removed and
        one added, so that it holds for two steps at once.

        >>> Unit("add-remove").describe()
        'Protects the presence of any one row.'
        """
        rows = (
            "any one row" if self.max_rows == 1 else f"any one person's rows, up to {self.max_rows} of them"
        )
        told = self.n_rows_is_public if n_rows_told is None else n_rows_told
        if self.relation == "replace":
            return f"Protects the values of {rows}{'; the number of rows is public' if told else ''}."
        if not told:
            return f"Protects the presence of {rows}."
        return (
            f"Protects the values of {rows}, at twice the stated epsilon (four times a stated rho); presence is not protected, "
            "because the exact number of rows was declared public."
        )

    def as_dict(self) -> dict[str, str | int]:
        """Plain values, for a file."""
        return {"relation": self.relation, "max_rows": self.max_rows}
