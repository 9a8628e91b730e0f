"""From a formula and its columns to a regression: family, design matrix, and outcome of every cell or row."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from dpcipher.errors import ParameterError, did_you_mean
from dpcipher.inference.cells import Cells, Missing, make_cells
from dpcipher.inference.formula import (
    ParsedFormula,
    columns_of,
    evaluation_reason,
    not_finite,
    parse_formula,
    parsed,
    quoted,
    with_intercept,
)
from dpcipher.inference.regression import FAMILIES, Family, Fits, Regression
from dpcipher.schema.cut import Cut
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Axes, Floats

NUMERIC = ("linear", "poisson")


def check_family(family: str | None) -> None:
    """Refuse an unknown family; None leaves it to the outcome."""
    if family is not None and family not in FAMILIES:
        raise ParameterError(
            f"family ({family!r}) must be one of {', '.join(FAMILIES)}{did_you_mean(str(family), FAMILIES)}"
        )


def with_family(
    formula: ParsedFormula, family: Family | None, schema: Schema
) -> tuple[ParsedFormula, Family | None]:
    """The formula with its outcome as a category where its bins are the classes, and its family.

    A family that is not asked for is that of the outcome's column; None for an expression, which has to be
    computed first.
    """
    outcome = formula.plain_outcome
    if outcome is None:
        return formula, family
    family = family or _family_of_column(schema, outcome)
    if family in NUMERIC:
        return formula, family
    return replace(formula, categories=formula.categories | {outcome}), family


def _family_of_column(schema: Schema, name: str) -> Family:
    """The family for a column of a schema, or for several that are counted as one; missing is no class."""
    if name not in schema.names:
        return "multinomial"
    column = schema.column(name)
    if column.domain.size == 2:
        return "logistic"
    if isinstance(column, Cut):
        return "linear"
    return "ordinal" if column.kind == "ordinal" else "multinomial"


def _family_of_values(outcomes: Sequence[pd.Series]) -> Family:
    """The family for the values of an outcome: two classes, numbers, or levels that rank or do not."""
    dtype = outcomes[0].dtype
    if not isinstance(dtype, pd.CategoricalDtype):
        return "logistic" if pd.concat(outcomes).nunique() == 2 else "linear"
    if len(dtype.categories) == 2:
        return "logistic"
    return "ordinal" if dtype.ordered else "multinomial"


@dataclass(frozen=True)
class Design:
    """A design matrix, the names of its columns, and the columns of the table that each is about."""

    x: Floats
    names: tuple[str, ...]
    about: tuple[tuple[str, ...], ...]

    def without_intercept(self) -> "Design":
        """The columns that are about something."""
        kept = [number for number, name in enumerate(self.names) if name != "Intercept"]
        return Design(self.x[:, kept], tuple(self.names[k] for k in kept), tuple(self.about[k] for k in kept))


def make_regressions(
    formula: ParsedFormula, frames: Sequence[pd.DataFrame], family: Family | None
) -> list[Regression]:
    """The regression over the rows of each frame, all with the same parameters.

    Without a family it is that of the outcome's values.
    """
    outcomes = _outcomes(formula, frames)
    family = family or _family_of_values(outcomes)
    right = with_intercept(formula.right) if family == "ordinal" else formula.right
    designs = make_designs(right, formula, frames)
    first = designs[0]
    if not first.names:
        raise ParameterError(f"formula ({formula.text!r}) must have a term beside the outcome; try y ~ 1")
    if family in NUMERIC:
        values = _numbers(formula, outcomes, family)
        return [
            Regression(family, design.x, y, 0, first.names, first.about)
            for design, y in zip(designs, values, strict=True)
        ]
    values, classes = _classes(formula, outcomes, family)
    terms, about = first.names, first.about
    if family == "ordinal":
        designs = [design.without_intercept() for design in designs]
        cuts = tuple(f"{low}|{high}" for low, high in pairwise(classes))
        terms = (*cuts, *designs[0].names)
        about = (*(() for _ in cuts), *designs[0].about)
    elif family == "multinomial":
        terms = tuple(f"{name}: {term}" for name in classes[1:] for term in terms)
        about = about * (len(classes) - 1)
    return [
        Regression(family, design.x, y, len(classes), terms, about)
        for design, y in zip(designs, values, strict=True)
    ]


@dataclass(frozen=True)
class Task:
    """A regression over the cells of a formula's columns."""

    formula: ParsedFormula
    cells: Cells
    regression: Regression

    @property
    def terms(self) -> tuple[str, ...]:
        """The names of the parameters."""
        return self.regression.terms

    def fit(self, joints: Floats) -> Fits:
        """The coefficients of every joint distribution of the formula's columns."""
        return self.regression.fit_draws(self.weights(joints))

    def weights(self, joints: Floats) -> Floats:
        """The probability of every cell that the model uses, by draw."""
        return joints.reshape(len(joints), -1)[:, self.cells.keep]

    def sets(self) -> list[Axes]:
        """The outcome's columns and those of each parameter, by their place among the formula's columns."""
        outcome, columns = self.formula.outcome, self.formula.columns
        return [
            tuple(sorted({columns.index(name) for name in (*outcome, *about)}))
            for about in self.regression.about
        ]


def make_task(
    schema: Schema,
    text: str,
    family: Family | None,
    *,
    levels: Mapping[str, Sequence[Any]] = MappingProxyType({}),
    missing: Missing = "drop",
    values: Mapping[str, Sequence[float]] = MappingProxyType({}),
) -> Task:
    """The regression of a formula over the cells of its columns."""
    formula, family = with_family(parse_formula(text, schema), family, schema)
    cells = make_cells(schema, formula, levels=levels, values=values, missing=missing)
    return Task(formula, cells, make_regressions(formula, [cells.frame], family)[0])


def make_designs(side: str, formula: ParsedFormula, frames: Sequence[pd.DataFrame]) -> list[Design]:
    """One side of a formula as a matrix for every frame, all with the same columns.

    Transforms that depend on all rows (`scale`, `poly`, `bs` …) take the rows of all frames together, so that
    a coefficient means the same in each.
    """
    from formulaic.errors import DataMismatchWarning

    terms = parsed(side, formula.text)
    rows = frames[0] if len(frames) == 1 else pd.concat(frames)
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", DataMismatchWarning)
            whole = terms.get_model_matrix(rows, na_action="raise", drop_rows=[])
            spec = whole.model_spec
            matrices = (
                [whole]
                if len(frames) == 1
                else [spec.get_model_matrix(frame, drop_rows=[]) for frame in frames]
            )
            designs = [np.asarray(matrix, dtype=float) for matrix in matrices]
    except (
        Exception
    ) as error:  # a formula may call anything, and any error or warning may quote a private cell
        raise _unusable(evaluation_reason(error, formula), formula) from None
    broken = np.logical_or.reduce([~np.isfinite(x).all(axis=0) for x in designs])
    if broken.any():
        term = next(term for term, places in spec.term_indices.items() if broken[list(places)].any())
        raise _unusable(not_finite(str(term), formula), formula)
    names = tuple(str(name) for name in whole.columns)
    about = {place: columns_of(term) for term, places in spec.term_indices.items() for place in places}
    return [Design(x, names, tuple(about[place] for place in range(len(names)))) for x in designs]


def _unusable(reason: str, formula: ParsedFormula) -> ParameterError:
    return ParameterError(
        f"formula ({formula.text!r}) cannot be used with the columns of the {formula.source}: {reason}"
    )


def _outcomes(formula: ParsedFormula, frames: Sequence[pd.DataFrame]) -> list[pd.Series]:
    """The outcome of every row of each frame: a column, or the number that an expression gives."""
    if formula.plain_outcome is not None:
        outcomes = [frame[formula.plain_outcome] for frame in frames]
    else:
        designs = [design.without_intercept() for design in make_designs(formula.left, formula, frames)]
        if len(designs[0].names) != 1:
            raise ParameterError(
                f"formula ({formula.text!r}): the outcome {formula.left!r} must be one number; arithmetic "
                "stands in I(…), as I(a + b)"
            )
        outcomes = [pd.Series(design.x[:, 0]) for design in designs]
    if (
        formula.source == "release" and outcomes[0].nunique() < 2
    ):  # rows may be alike by chance, cells are not
        raise ParameterError(
            f"outcome ({formula.left}) must differ between levels, and is the same for all; check the names "
            "of levels and the bounds in it"
        )
    return outcomes


def _numbers(formula: ParsedFormula, outcomes: Sequence[pd.Series], family: str) -> list[Floats]:
    """The outcomes as numbers. A refusal quotes no value: rows may be private."""
    try:
        numbers = [_as_numbers(column) for column in outcomes]
        known = all(np.isfinite(y).all() for y in numbers)
    except Exception:  # of pandas or Arrow, which may quote the value
        known = False
    if not known:
        raise ParameterError(
            f"outcome ({formula.left}) must be a finite number for family={family!r}; try "
            f"{_other_families(formula, outcomes[0])}"
        )
    if family == "poisson" and any((y < 0).any() for y in numbers):
        raise ParameterError(
            f"outcome ({formula.left}) must be 0 or more for family='poisson'; try family='linear'"
        )
    return numbers


def _as_numbers(column: pd.Series) -> Floats:
    """A column as numbers; a category as those that its levels are, of which no and yes are 0 and 1."""
    if not isinstance(column.dtype, pd.CategoricalDtype):
        return np.asarray(column.to_numpy(dtype=float))
    truth = {"False": 0.0, "True": 1.0}
    numbers = [truth[level] if level in truth else float(level) for level in column.cat.categories]
    return np.asarray(np.array(numbers)[column.cat.codes.to_numpy()], dtype=float)


def _other_families(formula: ParsedFormula, column: pd.Series) -> str:
    """Models of an outcome that is no number. Levels are named where they are public: those of a schema."""
    if formula.source == "sets" or not isinstance(column.dtype, pd.CategoricalDtype):
        return "family='logistic' or 'multinomial'"
    levels = list(column.cat.categories)
    families = "family='logistic'" if len(levels) == 2 else "family='multinomial' or 'ordinal'"
    share = f"I({quoted(formula.outcome[0])} == {levels[-1]!r:.40})"
    return f"{families}, or the share of one level, with the outcome {share}"


def _classes(
    formula: ParsedFormula, outcomes: Sequence[pd.Series], family: str
) -> tuple[list[Floats], list[str]]:
    """The code of the class of every row, and the names of the classes, the reference (or lowest) first."""
    first = outcomes[0]
    if isinstance(first.dtype, pd.CategoricalDtype):
        classes = list(first.cat.categories)
    else:
        classes = sorted({value for column in outcomes for value in column.unique()})
    if len(classes) < 2:
        raise ParameterError(
            f"outcome ({formula.left}) must have at least 2 levels, and has {len(classes)}; model another "
            "column"
        )
    if family == "logistic" and len(classes) != 2:
        raise ParameterError(
            f"outcome ({formula.left}) must have 2 levels for family='logistic', and has more; "
            "try family='multinomial' or 'ordinal', or 'linear' for numbers"
        )
    codes = [pd.Categorical(column, categories=classes).codes.astype(float) for column in outcomes]
    return codes, [str(name) for name in classes]


def one_hot(codes: NDArray[np.integer], sizes: Sequence[int]) -> sparse.csr_matrix:
    """The design of coded rows: an intercept and one 0/1 column per level except each attribute's first."""
    starts = np.cumsum([0, *(size - 1 for size in sizes)])
    rows, columns = np.nonzero(codes)
    places = 1 + starts[columns] + codes[rows, columns] - 1
    n = len(codes)
    index = (np.r_[np.arange(n), rows], np.r_[np.zeros(n, dtype=np.int64), places])
    return sparse.csr_matrix((np.ones(len(index[0])), index), shape=(n, 1 + int(starts[-1])))
