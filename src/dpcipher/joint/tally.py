"""What enforcing rules has cost a draw of rows: how many were drawn again, and how far each column moved by it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpcipher.tables.domain import Codes, Counts, Shape

_SHOWN = 3


@dataclass(frozen=True)
class RuleCost:
    """The share of rows that were replaced or changed, the share that only got other values inside their bins, and how far each column moved.

    `moved` is the total variation distance between the first draw and the rows handed out, by attribute.
    """

    n_rows: int
    redrawn: float
    values_redrawn: float
    moved: Mapping[str, float]

    @classmethod
    def from_dict(cls, values: object) -> "RuleCost":
        """What a file says of it; a ValueError where a value is not of its own type."""
        if isinstance(values, dict) and set(values) == {"n_rows", "redrawn", "values_redrawn", "moved"}:
            moved: Any = values["moved"]
            shares: list[Any] = [values["redrawn"], values["values_redrawn"]]
            shares += moved.values() if isinstance(moved, dict) else [None]
            if type(values["n_rows"]) is int and all(map(_is_share, shares)):
                return cls(**{**values, "moved": {str(attr): float(far) for attr, far in moved.items()}})
        raise ValueError("rules must hold shares of rows, and a distance for each attribute")

    def __str__(self) -> str:
        if not self.redrawn and not self.values_redrawn:
            return "rules: no drawn row broke one"
        moved = sorted(self.moved.items(), key=lambda item: -item[1])[:_SHOWN]
        most = ", ".join(f"{attr} {distance:.2g}" for attr, distance in moved if distance > 0)
        shares = f"rules: {self.redrawn:.2%} of rows were drawn again, {self.values_redrawn:.2%} got other values inside their bins"
        return f"{shares}; columns moved most (total variation): {most}" if most else shares


@dataclass
class Tally:
    """Counts while rows are drawn."""

    attrs: tuple[str, ...]
    shape: Shape
    n_rows: int = 0
    redrawn: int = 0
    values: int = 0
    _moved: dict[int, Counts] = field(default_factory=dict)

    def add(self, first: Codes, final: Codes) -> None:
        """Compare a chunk as it was drawn with what is handed out."""
        self.n_rows += len(first)
        if final is first:
            return
        self.redrawn += int((first != final).any(axis=1).sum())
        for axis, size in enumerate(self.shape):
            change = np.bincount(final[:, axis], minlength=size) - np.bincount(first[:, axis], minlength=size)
            self._moved[axis] = self._moved[axis] + change if axis in self._moved else change

    def merge(self, other: "Tally") -> None:
        """Add what was counted elsewhere."""
        self.n_rows += other.n_rows
        self.redrawn += other.redrawn
        self.values += other.values
        for axis, change in other._moved.items():
            self._moved[axis] = self._moved[axis] + change if axis in self._moved else change

    @property
    def cost(self) -> RuleCost:
        """The shares so far."""
        rows = max(self.n_rows, 1)
        moved = {
            attr: float(np.abs(self._moved[axis]).sum()) / 2 / rows if axis in self._moved else 0.0
            for axis, attr in enumerate(self.attrs)
        }
        return RuleCost(self.n_rows, self.redrawn / rows, self.values / rows, moved)


def _is_share(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= 1
