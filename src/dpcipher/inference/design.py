"""Design matrices: the same parameters in every set, whichever levels a set happens to show."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from dpcipher.errors import ParameterError, did_you_mean
from dpcipher.inference.formula import parsed
from dpcipher.marginals.arrays import Floats


def data_frames(sets: Any, levels: Mapping[str, Sequence[Any]]) -> list[pd.DataFrame]:
    """Data frames whose categorical columns share their levels, so that every set has the same parameters."""
    several = isinstance(sets, list | tuple)
    frames = [_frame(data) for data in (sets if several else [sets])]
    if not frames or any(list(frame.columns) != list(frames[0].columns) for frame in frames):
        raise ParameterError(f"sets ({len(frames)}) must be one or more data sets with the same columns")
    for name in frames[0].columns:
        categories = _levels(name, frames, levels)
        if categories is not None:
            for frame in frames:
                frame[name] = pd.Categorical(frame[name], categories=categories)
    return frames


def _frame(data: Any) -> pd.DataFrame:
    """A copy as a data frame, of pandas or of whatever Arrow understands."""
    if isinstance(data, pd.DataFrame):
        return data.copy()
    try:
        return pa.table(data).to_pandas()
    except (TypeError, ValueError, pa.ArrowException):
        raise ParameterError(
            f"sets ({type(data).__name__}) must be data frames, or one release; give a pandas or polars frame, an Arrow table or a list of them"
        ) from None


def _levels(name: str, frames: list[pd.DataFrame], levels: Mapping[str, Sequence[Any]]) -> list[Any] | None:
    """The levels of a column: as given, as declared by its type, or sorted; none for a number."""
    if name in levels:
        return list(levels[name])
    first = frames[0][name]
    if isinstance(first.dtype, pd.CategoricalDtype):
        return list(
            dict.fromkeys(
                value for frame in frames for value in frame[name].astype("category").cat.categories
            )
        )
    if pd.api.types.is_numeric_dtype(first.dtype) and not pd.api.types.is_bool_dtype(first.dtype):
        return None
    return sorted({value for frame in frames for value in frame[name].dropna().unique()})


def split_formula(formula: str, frame: pd.DataFrame) -> tuple[str, str]:
    """The outcome and the right-hand side of "outcome ~ terms"."""
    left, tilde, right = formula.partition("~")
    outcome = left.strip().strip("`")
    if not tilde or not right.strip() or not outcome:
        raise ParameterError(f"formula ({formula!r}) must be 'outcome ~ terms'; try 'income ~ age + sex'")
    if outcome not in frame.columns:
        hint = did_you_mean(outcome, [str(name) for name in frame.columns])
        raise ParameterError(f"formula ({formula!r}): outcome {outcome!r} must be a column of the sets{hint}")
    return outcome, right.strip()


def design_matrices(
    frames: list[pd.DataFrame], right: str, formula: str
) -> tuple[list[Floats], tuple[str, ...]]:
    """The design matrix of the right side of a formula for every set, with the same columns.

    Transforms that depend on all rows (`scale`, `poly`, `bs` …) take the rows of all sets together, so that a coefficient means the same in every set.
    """
    terms = parsed(right, formula)
    from formulaic.errors import FormulaicError

    try:
        spec = terms.get_model_matrix(pd.concat(frames), na_action="raise", drop_rows=[]).model_spec
        matrices = [spec.get_model_matrix(frame, drop_rows=[]) for frame in frames]
    except (FormulaicError, ValueError, TypeError) as error:
        raise ParameterError(
            f"formula ({formula!r}) cannot be used with the columns of the sets: {error}"
        ) from None
    names = tuple(str(name) for name in matrices[0].columns)
    return [np.asarray(matrix, dtype=float) for matrix in matrices], names


def one_hot(codes: NDArray[np.integer], sizes: Sequence[int]) -> sparse.csr_matrix:
    """The design of coded rows: an intercept and one 0/1 column per level except each attribute's first."""
    starts = np.cumsum([0, *(size - 1 for size in sizes)])
    rows, columns = np.nonzero(codes)
    places = 1 + starts[columns] + codes[rows, columns] - 1
    n = len(codes)
    index = (np.r_[np.arange(n), rows], np.r_[np.zeros(n, dtype=np.int64), places])
    return sparse.csr_matrix((np.ones(len(index[0])), index), shape=(n, 1 + int(starts[-1])))


def identified(x: Floats) -> NDArray[np.bool_]:
    """The columns that earlier columns do not already determine (pivots of Gram-Schmidt, in order)."""
    _, r = np.linalg.qr(x)
    size = np.linalg.norm(x, axis=0)
    keep = np.zeros(x.shape[1], dtype=bool)
    diagonal = np.abs(np.diag(r))
    if (diagonal > 1e-9 * np.maximum(size[: len(diagonal)], 1e-300)).all() and len(diagonal) == x.shape[1]:
        return ~keep
    for column in range(x.shape[1]):
        chosen = x[:, [*np.flatnonzero(keep), column]]
        keep[column] = np.linalg.matrix_rank(chosen) == chosen.shape[1]
    return keep
