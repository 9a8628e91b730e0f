"""Cells of a few columns, or coded rows, as a frame: their values, and which of them a model uses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from dpcipher.errors import ParameterError, did_you_mean
from dpcipher.inference.formula import ParsedFormula, quoted
from dpcipher.schema.cut import Cut
from dpcipher.schema.levels import MISSING_LABEL
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Bools, Floats

Missing = Literal["drop", "level"]


@dataclass(frozen=True)
class Bins:
    """The bins of a column of numbers: the first and last value of each, and the value that stands for it.

    Levels of an ordinal column that are numbers are bins of one value.
    """

    column: str
    low: Floats
    high: Floats
    value: Floats

    @property
    def wide(self) -> bool:
        """Whether some bin holds more than one value."""
        return bool((self.high > self.low).any())


@dataclass(frozen=True)
class Cells:
    """One row of `frame` for each cell, or coded row, that a model uses.

    Those with a missing value are not used where that is left out.

    `keep` marks them among all; `codes` has the level of every column in each of them; `dropped` are the
    columns that have a missing level to leave out.
    """

    frame: pd.DataFrame
    codes: Mapping[str, np.ndarray]
    keep: Bools
    bins: Mapping[str, Bins]
    dropped: tuple[str, ...]

    def with_values(self, column: str, values: Floats) -> pd.DataFrame:
        """The frame with other values standing for the bins of a column."""
        return self.frame.assign(**{column: values[self.codes[column]]})


def make_cells(
    schema: Schema,
    formula: ParsedFormula,
    *,
    levels: Mapping[str, Sequence[Any]],
    values: Mapping[str, Sequence[float]],
    missing: Missing,
) -> Cells:
    """The cells of the formula's columns, in its order of columns."""
    shape = tuple(len(schema.labels(name)) for name in formula.columns)
    codes = dict(zip(formula.columns, np.indices(shape).reshape(len(shape), -1), strict=True))
    return coded_cells(schema, formula, codes, levels=levels, values=values, missing=missing)


def coded_cells(
    schema: Schema,
    formula: ParsedFormula,
    codes: Mapping[str, np.ndarray],
    *,
    levels: Mapping[str, Sequence[Any]],
    values: Mapping[str, Sequence[float]],
    missing: Missing,
) -> Cells:
    """The cells, or rows, that have these codes in the formula's columns."""
    _check_names(formula, levels, "levels")
    _check_names(formula, values, "values")
    if missing not in ("drop", "level"):
        raise ParameterError(f"missing ({missing!r}) must be 'drop' or 'level'")
    bins = {name: own for name in formula.columns if (own := _bins(schema, name, values)) is not None}
    numeric = set(bins) - formula.categories
    _check_uses(numeric, set(bins) - numeric, levels, values)
    dropped = tuple(
        name
        for name in formula.columns
        if _has_missing(schema, name) and (missing == "drop" or name in numeric or name in formula.outcome)
    )
    keep = np.ones(len(codes[formula.columns[0]]), dtype=bool)
    for name in dropped:
        keep &= codes[name] < schema.column(name).domain.size
    kept = {name: code[keep] for name, code in codes.items()}
    columns = {
        name: _numbers(bins[name].value)[code]
        if name in numeric
        else _category(schema, name, code, name in dropped, levels.get(name))
        for name, code in kept.items()
    }
    used = {name: bins[name] for name in bins if name in numeric}
    return Cells(pd.DataFrame(columns), kept, keep, used, dropped)


def _check_names(formula: ParsedFormula, given: Mapping[str, Any], option: str) -> None:
    for name in given:
        if name not in formula.columns:
            raise ParameterError(
                f"{option} ({name!r}) must be of a column in the "
                f"formula{did_you_mean(str(name), formula.columns)}"
            )


def _check_uses(
    numbers: set[str], categories: set[str], levels: Mapping[str, Any], values: Mapping[str, Any]
) -> None:
    """Refuse an order of the bins of a number and numbers for a category: they would have no effect."""
    for name in numbers & set(levels):
        raise ParameterError(
            f"levels ({name!r}) must be of a category, and the formula uses this column as a number; write "
            f"C({quoted(name)}), "
            "or say with values which numbers stand for its bins"
        )
    for name in categories & set(values):
        raise ParameterError(
            f"values ({name!r}) must be of a number, and the model uses this column as a category; leave "
            "them out"
        )


def _has_missing(schema: Schema, name: str) -> bool:
    return name in schema.names and schema.column(name).n_missing > 0


def _bins(schema: Schema, name: str, values: Mapping[str, Sequence[float]]) -> Bins | None:
    """The bins of a column of numbers, None for any other; by default the middle of a bin stands for it."""
    column = schema.column(name) if name in schema.names else None
    if isinstance(column, Cut):
        low, high = column.domain.ends
    elif column is not None and column.level_numbers is not None:
        low = high = np.array(column.level_numbers)
    elif name in values:
        raise ParameterError(
            f"values ({name!r}) must be of a column with bins, or whose levels are numbers; use levels for "
            "others"
        )
    else:
        return None
    value = (low + high) / 2 if name not in values else _given_values(values[name])
    if value.shape != low.shape or not np.isfinite(value).all():
        raise ParameterError(
            f"values of {name!r} ({value.size}) must be one finite number for each of its {len(low)} bins"
        )
    return Bins(name, low, high, value)


def _given_values(values: Sequence[float]) -> Floats:
    """Numbers as an array; of NaN where they are not numbers, which is refused."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return np.full(len(values), np.nan)


def _numbers(values: Floats) -> np.ndarray:
    """Whole numbers as integers, so that C(…) names them without a decimal point."""
    return values.astype(np.int64) if (values == np.floor(values)).all() else values


def _category(
    schema: Schema, name: str, code: np.ndarray, dropped: bool, order: Sequence[Any] | None
) -> pd.Categorical:
    """The levels of a column in their declared order, or in the given one: the first is the reference."""
    labels = list(schema.column(name).domain.labels if dropped else schema.labels(name))
    if order is None:
        return pd.Categorical.from_codes(code, categories=labels)
    wanted = [str(level) for level in order]
    if sorted(wanted) != sorted(labels):
        raise ParameterError(
            f"levels of {name!r} must be its levels in another order: {', '.join(labels):.300}"
            + (f"; {MISSING_LABEL} is left out" if dropped else "")
        )
    place = np.array([wanted.index(label) for label in labels])
    return pd.Categorical.from_codes(place[code], categories=wanted)
