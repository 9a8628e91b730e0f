"""A labelled table over a few attributes: counts or probabilities."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpcipher.drawing.card import MOST_LINES, Card, Shown
from dpcipher.drawing.curator_only import Released
from dpcipher.errors import ParameterError, WorkloadError, did_you_mean


@dataclass(frozen=True, eq=False, repr=False)
class Marginal(Released, np.lib.mixins.NDArrayOperatorsMixin, Shown):
    """Values over the levels of `attrs`, one dimension for each, in their order.

    Arithmetic, comparison and indexing are those of the plain array, and give plain arrays. `shown` are the levels as people read them, where the
    schema has labels for them.

    >>> table = Marginal(("sex",), (("F", "M"),), np.array([3.0, 4.0]))
    >>> table.to_frame()["value"].tolist()
    [3.0, 4.0]
    """

    attrs: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...]
    values: NDArray[np.generic]
    shown: tuple[tuple[str, ...], ...] = ()

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
        places = [self.attrs.index(attr) for attr in attrs]
        levels, shown = (
            tuple(names[place] for place in places) if names else () for names in (self.levels, self.shown)
        )
        return Marginal(
            tuple(attrs), levels, np.asarray(summed).transpose([kept.index(attr) for attr in attrs]), shown
        )

    def to_frame(self, value: str = "value", *, labels: bool = False) -> pd.DataFrame:
        """One row for each cell: its levels, and its value in the column `value`; with `labels`, the levels as people read them."""
        levels = self.shown if labels and self.shown else self.levels
        index = pd.MultiIndex.from_product(levels, names=list(self.attrs))
        return pd.DataFrame({value: self.values.ravel()}, index=index).reset_index()

    def _card(self) -> Card:
        return _card(self, {"value": self})


@dataclass(frozen=True, repr=False)
class Bounds(Released, Shown):
    """The pair (low, high) of an interval for every cell of a table, each labelled, and the estimate that they are for.

    It unpacks to the two bounds: `low, high = release.interval("age")`. `scope` says of which rows the counts are, where some may have been left out;
    it is in the frame's `attrs`, too.
    """

    low: Marginal
    high: Marginal
    estimate: Marginal
    scope: str = ""

    def __iter__(self) -> Iterator[Marginal]:
        return iter((self.low, self.high))

    def __len__(self) -> int:
        return 2

    def __getitem__(self, place: int) -> Marginal:
        return (self.low, self.high)[place]

    @property
    def frame(self) -> pd.DataFrame:
        """One row for each cell: its levels, the estimate, and its lower and upper bound."""
        return self.to_frame()

    def to_frame(self, *, labels: bool = False) -> pd.DataFrame:
        """The same; with `labels`, the levels as people read them."""
        frame = self.estimate.to_frame("estimate", labels=labels)
        frame = frame.assign(low=self.low.values.ravel(), high=self.high.values.ravel())
        frame.attrs |= {"scope": self.scope} if self.scope else {}
        return frame

    def _card(self) -> Card:
        card = _card(self.low, {"estimate": self.estimate, "low": self.low, "high": self.high})
        return replace(card, facts={**card.facts, "Scope": self.scope})


def _card(table: Marginal, values: dict[str, Marginal]) -> Card:
    """The first cells of a table, with their labels."""
    levels = table.shown or table.levels
    places = list(islice(np.ndindex(table.shape), MOST_LINES))
    lines = [
        (
            ", ".join(names[place] for names, place in zip(levels, cell, strict=True)),
            *(number(value.values[cell]) for value in values.values()),
        )
        for cell in places
    ]
    kind = "Table" if "value" in values else "Interval"
    return Card(
        f"{kind} of {' × '.join(table.attrs)}",
        {
            "Cells": f"{table.values.size:,}",
            **(
                {"Sum": number(table.values.sum())}
                if "value" in values and table.values.dtype != bool
                else {}
            ),
        },
        (", ".join(table.attrs), *values),
        lines,
        table.values.size,
        [".frame has all of it."] if table.values.size > MOST_LINES else [],
    )


def number(value: object) -> str:
    """A count or a probability with as many digits as it takes.

    >>> number(12345.678), number(0.01234), number(3)
    ('12,345.7', '0.01234', '3')
    """
    size = abs(float(value))  # type: ignore[arg-type]
    if size == round(size):
        return f"{value:,.0f}"
    return f"{value:,.1f}" if size >= 100 else f"{value:.4g}"
