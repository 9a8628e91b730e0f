"""From a formula and its cells to a regression: the design, the outcome of every cell, and what each coefficient is about."""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pandas as pd

from dpcipher.errors import ParameterError
from dpcipher.inference.family import Family, family_of_column
from dpcipher.inference.formula import (
    ParsedFormula,
    columns_of,
    evaluation_reason,
    parsed,
    quoted,
    with_intercept,
)
from dpcipher.inference.regressions import Regression
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Floats

NUMERIC = ("linear", "poisson")


@dataclass(frozen=True)
class Design:
    """A design matrix over cells, the names of its columns, and the columns of the table that each is about."""

    x: Floats
    names: tuple[str, ...]
    about: tuple[tuple[str, ...], ...]

    def without_intercept(self) -> "Design":
        """The columns that are about something."""
        kept = [number for number, name in enumerate(self.names) if name != "Intercept"]
        return Design(self.x[:, kept], tuple(self.names[k] for k in kept), tuple(self.about[k] for k in kept))


def with_family(
    formula: ParsedFormula, family: Family | None, schema: Schema
) -> tuple[ParsedFormula, Family | None]:
    """The formula with its outcome as a category where its bins are the classes, which are then called as the bins are; and its family.

    A family that is not asked for is that of the outcome; None for an expression, which has to be computed first.
    """
    outcome = formula.plain_outcome
    if outcome is None:
        return formula, family
    family = family or family_of_column(schema, outcome)
    if family in NUMERIC:
        return formula, family
    return replace(formula, categories=formula.categories | {outcome}), family


def make_regression(
    formula: ParsedFormula, frame: pd.DataFrame, family: str
) -> tuple[Regression, tuple[tuple[str, ...], ...]]:
    """The regression over the cells of a frame, and the columns that each of its coefficients is about."""
    right = with_intercept(formula.right) if family == "ordinal" else formula.right
    design = make_design(right, formula, frame)
    if not design.names:
        raise ParameterError(f"formula ({formula.text!r}) must have a term beside the outcome; try y ~ 1")
    if family in NUMERIC:
        y = _varying(_number(formula, frame, family), formula)
        return Regression(family, design.x, y, 0, design.names), design.about
    codes, names = _classes(formula, frame, family)
    _varying(codes, formula)
    if family == "ordinal":
        slopes = design.without_intercept()
        cuts = tuple(f"{low}|{high}" for low, high in pairwise(names))
        about = (*(() for _ in cuts), *slopes.about)
        return Regression(family, slopes.x, codes, len(names), (*cuts, *slopes.names)), about
    if family == "logistic":
        return Regression(family, design.x, codes, 2, design.names), design.about
    terms = tuple(f"{name}: {term}" for name in names[1:] for term in design.names)
    return Regression(family, design.x, codes, len(names), terms), design.about * (len(names) - 1)


def _varying(outcome: Floats, formula: ParsedFormula) -> Floats:
    """An outcome that is not the same in every cell."""
    if np.ptp(outcome) == 0:
        raise ParameterError(
            f"outcome ({formula.left}) must differ between levels, and is the same for all; check the names of levels and the bounds in it"
        )
    return outcome


def make_design(side: str, formula: ParsedFormula, frame: pd.DataFrame) -> Design:
    """One side of a formula as a matrix over the rows of a frame."""
    from formulaic.errors import FormulaicError

    try:
        with np.errstate(all="ignore"):
            matrix = parsed(side, formula.text).get_model_matrix(frame, na_action="ignore", drop_rows=[])
    except (FormulaicError, ValueError, TypeError) as error:
        reason = evaluation_reason(error, formula.text)
        raise ParameterError(
            f"formula ({formula.text!r}) cannot be used with the columns of the release: {reason}"
        ) from None
    x = np.asarray(matrix, dtype=float)
    names = tuple(str(name) for name in matrix.columns)
    broken = ~np.isfinite(x).all(axis=0)
    if broken.any():
        raise ParameterError(
            f"formula ({formula.text!r}): {names[int(np.argmax(broken))]} must be a finite number for every bin; "
            "give numbers for its bins with the option values, or another transform"
        )
    spec = matrix.model_spec
    about = {place: columns_of(term) for term, places in spec.term_indices.items() for place in places}
    return Design(x, names, tuple(about[place] for place in range(len(names))))


def _number(formula: ParsedFormula, frame: pd.DataFrame, family: str) -> Floats:
    """The outcome as a number."""
    name = formula.plain_outcome
    if name is not None and isinstance(frame[name].dtype, pd.CategoricalDtype):
        try:
            y = numeric_levels(frame[name])
        except ValueError:
            raise ParameterError(
                f"outcome ({name}) must be a number for family={family!r}; its levels are not: {_other_ways(frame[name])}"
            ) from None
    else:
        side = make_design(formula.left, formula, frame).without_intercept()
        if side.x.shape[1] != 1:
            raise ParameterError(
                f"formula ({formula.text!r}): the outcome {formula.left!r} must be one number; arithmetic stands in I(…), as I(a + b)"
            )
        y = side.x[:, 0]
    if family == "poisson" and (y < 0).any():
        raise ParameterError(
            f"outcome ({formula.left}) must be 0 or more for family='poisson'; try family='linear'"
        )
    return y


def numeric_levels(column: pd.Series) -> Floats:
    """A category as the numbers that its levels are; no and yes are 0 and 1, and other texts a ValueError."""
    truth = {"False": 0.0, "True": 1.0}
    numbers = [truth[text] if text in truth else float(text) for text in column.cat.categories]
    return np.asarray(np.array(numbers)[column.cat.codes.to_numpy()], dtype=float)


def _other_ways(column: pd.Series) -> str:
    """What else can be modelled of an outcome whose levels are words."""
    levels = list(column.cat.categories)
    families = "family='logistic'" if len(levels) == 2 else "family='multinomial' or 'ordinal'"
    return f"try {families}, or the share of one level, with the outcome I({quoted(str(column.name))} == {levels[-1]!r:.40})"


def _are_numbers(names: list[str]) -> bool:
    try:
        return bool([float(name) for name in names])
    except ValueError:
        return False


def _classes(formula: ParsedFormula, frame: pd.DataFrame, family: str) -> tuple[Floats, list[str]]:
    """The class of every cell, and the names of the classes, the reference (or lowest) first."""
    name = formula.plain_outcome
    if name is None:
        y = make_design(formula.left, formula, frame).without_intercept().x
        if y.shape[1] != 1 or not np.isin(y, (0, 1)).all() or family != "logistic":
            raise ParameterError(
                f"outcome ({formula.left}) must be one column for family={family!r}, or for 'logistic' a condition such as {{age > 40}}"
            )
        return y[:, 0], ["False", "True"]
    column = (
        frame[name] if isinstance(frame[name].dtype, pd.CategoricalDtype) else frame[name].astype("category")
    )
    names = [str(label) for label in column.cat.categories]
    if len(names) < 2:
        raise ParameterError(
            f"outcome ({name}) must have at least 2 levels, and has {len(names)}; model another column"
        )
    if family == "logistic" and len(names) != 2:
        linear = name in formula.binned or _are_numbers(names)
        others = "'multinomial', 'ordinal' or 'linear'" if linear else "'multinomial' or 'ordinal'"
        raise ParameterError(
            f"outcome ({name}) has {len(names)} levels and must have 2 for family='logistic'; try family={others}"
        )
    return column.cat.codes.to_numpy().astype(float), names
