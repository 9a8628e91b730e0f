"""The family of a model, where none is asked for: it follows from the outcome.

Two classes have a logistic model, numbers a linear one, levels that rank an ordinal one, and other levels a multinomial one.
"""

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import pandas as pd

from dpcipher.errors import ParameterError, did_you_mean
from dpcipher.schema.bins import Bins
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Floats

Family = Literal["logistic", "multinomial", "ordinal", "linear", "poisson"]
FAMILIES: tuple[str, ...] = get_args(Family)


def check_family(family: str | None) -> None:
    """Refuse a family that is none of ours; None leaves it to the outcome."""
    if family is not None and family not in FAMILIES:
        raise ParameterError(
            f"family ({family!r}) must be one of {', '.join(FAMILIES)}{did_you_mean(str(family), FAMILIES)}"
        )


def family_of_column(schema: Schema, name: str) -> Family:
    """The family for a column of a schema, or for several that are counted as one; missing is no class."""
    if name not in schema.names:
        return "multinomial"
    column = schema.column(name)
    if column.domain.size == 2:
        return "logistic"
    if isinstance(column.domain, Bins):
        return "linear"
    return "ordinal" if column.kind == "ordinal" else "multinomial"


def family_of_expression(values: Floats) -> Family:
    """The family for what an expression gives: a condition, or a number."""
    return "logistic" if np.isin(values, (0, 1)).all() else "linear"


def family_of_cells(columns: Sequence[pd.Series]) -> Family:
    """The family for an outcome as sets of rows hold it."""
    dtype = columns[0].dtype
    if isinstance(dtype, pd.CategoricalDtype):
        if len(dtype.categories) == 2:
            return "logistic"
        return "ordinal" if dtype.ordered else "multinomial"
    return "logistic" if pd.concat(columns).nunique() == 2 else "linear"
