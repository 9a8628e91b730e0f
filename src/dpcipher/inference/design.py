"""Design matrices: the same parameters in every set, whichever levels a set happens to show."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from dpcipher.errors import ParameterError
from dpcipher.inference.formula import evaluation_reason, parsed
from dpcipher.tables.domain import Floats

EPOCH = pd.Timestamp(0, tz="UTC")


def data_frames(sets: Any) -> list[pd.DataFrame]:
    """The sets as data frames of the same columns."""
    several = isinstance(sets, list | tuple)
    frames = [_frame(data) for data in (sets if several else [sets])]
    if not frames or any(list(frame.columns) != list(frames[0].columns) for frame in frames):
        raise ParameterError(f"sets ({len(frames)}) must be one or more data sets with the same columns")
    return frames


def columns_of_model(
    frames: Sequence[pd.DataFrame], columns: Sequence[str], levels: Mapping[str, Sequence[Any]]
) -> tuple[list[pd.DataFrame], list[str]]:
    """The columns of a model, categories with the same levels in every set, so that every set has the same parameters; and which were dates.

    Dates count in days since 1970-01-01, as those of a release do. No error quotes a cell: rows may be private ones.
    """
    own = [frame[list(columns)].copy() for frame in frames]
    dates = [name for name in columns if name not in levels and _are_dates(own[0][name])]
    for name in columns:
        try:
            for frame in own if name in dates else ():
                frame[name] = (pd.to_datetime(frame[name], utc=True) - EPOCH) / pd.Timedelta(days=1)
            categories = _levels(name, own, levels)
        except (ValueError, TypeError):
            raise ParameterError(
                f"columns ({name}) must hold values of one kind: numbers, texts, or dates from 1678 to 2262; convert it, or leave it out of the formula"
            ) from None
        if categories is not None:
            for frame in own:
                ordered = getattr(frame[name].dtype, "ordered", False)
                frame[name] = pd.Categorical(frame[name], categories=categories, ordered=ordered)
    return own, dates


def _are_dates(cells: pd.Series) -> bool:
    """Whether a column holds dates, as pandas or Python has them; texts are none."""
    return pd.api.types.infer_dtype(cells, skipna=True) in ("date", "datetime", "datetime64")


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


def with_outcome(frames: list[pd.DataFrame], left: str, formula: str) -> tuple[list[pd.DataFrame], str]:
    """The sets with the left side of a formula as a column, and its name: a column as it stands, or an expression that gives one number."""
    name = left.strip("`")
    if name in frames[0].columns:
        return frames, name
    designs, terms = design_matrices(frames, left, formula)
    places = [place for place, term in enumerate(terms) if term != "Intercept"]
    if len(places) != 1:
        raise ParameterError(
            f"formula ({formula!r}): the outcome {left!r} must be one number; arithmetic stands in I(…), as I(a + b)"
        )
    return [frame.assign(**{left: x[:, places[0]]}) for frame, x in zip(frames, designs, strict=True)], left


def design_matrices(
    frames: list[pd.DataFrame], right: str, formula: str
) -> tuple[list[Floats], tuple[str, ...]]:
    """The design matrix of the right side of a formula for every set, with the same columns.

    Transforms that depend on all rows (`scale`, `poly`, `bs` …) take the rows of all sets together, so that a coefficient means the same in every set.
    """
    terms = parsed(right, formula)
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            spec = terms.get_model_matrix(pd.concat(frames), na_action="raise", drop_rows=[]).model_spec
            matrices = [spec.get_model_matrix(frame, drop_rows=[]) for frame in frames]
            designs = [np.asarray(matrix, dtype=float) for matrix in matrices]
    except Exception as error:  # a formula may call anything, and whatever that says may quote a cell
        raise ParameterError(
            f"formula ({formula!r}) cannot be used with the columns of the sets: {evaluation_reason(error, formula)}"
        ) from None
    broken = np.logical_or.reduce([~np.isfinite(x).all(axis=0) for x in designs])
    if broken.any():
        term = next(term for term, places in spec.term_indices.items() if broken[list(places)].any())
        raise ParameterError(
            f"formula ({formula!r}): {term} must be a finite number in every row; try another transform"
        )
    return designs, tuple(str(name) for name in matrices[0].columns)


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
