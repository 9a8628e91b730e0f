"""A labelled table over a few attributes: counts or probabilities."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpcipher.errors import ParameterError, WorkloadError, did_you_mean


@dataclass(frozen=True, eq=False)
class Marginal(np.lib.mixins.NDArrayOperatorsMixin):
    """Values over the levels of `attrs`, one dimension for each, in their order.

    Arithmetic, comparison and indexing are those of the plain array, and give plain arrays.

    >>> table = Marginal(("sex",), (("F", "M"),), np.array([3.0, 4.0]))
    >>> table.to_frame()["value"].tolist()
    [3.0, 4.0]
    """

    attrs: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...]
    values: NDArray[np.generic]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", np.asarray(self.values))
        shape = tuple(len(labels) for labels in self.levels)
        if len(self.attrs) != len(self.levels) or self.values.shape != shape:
            raise ParameterError(
                f"values of shape {self.values.shape} must have the shape {shape} of their levels"
            )

    def __array__(self, dtype: object = None, copy: bool | None = None) -> NDArray[np.generic]:
        """The values, as numpy asks for them."""
        return np.array(self.values, dtype=dtype, copy=copy)  # type: ignore[call-overload, no-any-return]

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """What numpy does with the values."""
        plain = [part.values if isinstance(part, Marginal) else part for part in inputs]
        return getattr(ufunc, method)(*plain, **options)

    def __getitem__(self, place: Any) -> Any:
        """A value, or a plain array of some."""
        return self.values[place]

    def __len__(self) -> int:
        return len(self.values)

    def __getattr__(self, name: str) -> Any:
        """Whatever else an array has: `sum`, `max`, `tolist`, …"""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.values, name)

    @property
    def frame(self) -> pd.DataFrame:
        """One row for each cell: its levels and its value."""
        return self.to_frame()

    @property
    def shape(self) -> tuple[int, ...]:
        """How many levels each attribute has."""
        return self.values.shape

    def project(self, attrs: str | Sequence[str]) -> "Marginal":
        """The table of some of the attributes, in the order asked for, summed over the others."""
        attrs = (attrs,) if isinstance(attrs, str) else attrs
        for attr in attrs:
            if attr not in self.attrs:
                raise WorkloadError(
                    f"column {attr!r} is not in this table{did_you_mean(str(attr), self.attrs)}"
                )
        if len(set(attrs)) < len(attrs):
            raise WorkloadError(f"attrs ({attrs!r}) must be a sequence of names, each named once")
        kept = [attr for attr in self.attrs if attr in attrs]
        summed = self.values.sum(axis=tuple(i for i, attr in enumerate(self.attrs) if attr not in attrs))
        levels = tuple(self.levels[self.attrs.index(attr)] for attr in attrs)
        return Marginal(
            tuple(attrs), levels, np.asarray(summed).transpose([kept.index(attr) for attr in attrs])
        )

    def to_frame(self, value: str = "value") -> pd.DataFrame:
        """One row for each cell: its levels, and its value in the column `value`."""
        index = pd.MultiIndex.from_product(self.levels, names=list(self.attrs))
        return pd.DataFrame({value: self.values.ravel()}, index=index).reset_index()


class Bounds(NamedTuple):
    """The pair (low, high) of an interval for every cell of a table, each labelled."""

    low: Marginal
    high: Marginal

    @property
    def frame(self) -> pd.DataFrame:
        """One row for each cell: its levels, its lower and its upper bound."""
        return self.low.to_frame("low").assign(high=self.high.values.ravel())
