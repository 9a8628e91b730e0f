"""Noisy tables that somebody else published: arrays, data frames, or CSV files with a count column."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpcipher.errors import ParameterError, ReleaseError, did_you_mean
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Attrs
from dpcipher.tables.measurement import LARGEST_VALUE, Measurement, Noise, NoiseKind
from dpcipher.tables.query import Query

Counts = NDArray[np.float64] | NDArray[np.int64]
Value = TypeVar("Value", float, str)


def read_tables(
    tables: Mapping[Attrs, object],
    schema: Schema,
    *,
    scale: float | Mapping[Attrs, float],
    mechanism: str | Mapping[Attrs, str],
    count: str,
) -> tuple[Measurement, ...]:
    """Check every table against the schema and put its axes in the schema's order."""
    checked: dict[Attrs, Measurement] = {}
    for given, source in tables.items():
        key = (given,) if isinstance(given, str) else tuple(given)
        axes = schema.axes(key)
        attrs = schema.attrs_on(axes)
        if attrs in checked:
            raise ReleaseError(f"tables name {' × '.join(attrs)} twice; give each set of attributes once")
        noise = _mechanism(
            _for_table(mechanism, given, "mechanism"), _for_table(scale, given, "scale"), attrs
        )
        counts = _counts(source, key, attrs, schema, count)
        try:
            checked[attrs] = Measurement(Query(axes), counts, noise)
        except ReleaseError:
            raise ReleaseError(
                f"table ({' × '.join(attrs)}) must hold finite counts within ±2**62; it has NaN, infinite or larger ones"
            ) from None
    return tuple(checked.values())


def checked_rows(n_rows: int | None) -> int | None:
    """A declared number of rows is a whole number above 0."""
    if n_rows is None:
        return None
    if isinstance(n_rows, bool) or not isinstance(n_rows, (int, np.integer)) or n_rows < 1:
        raise ParameterError(
            f"n_rows ({n_rows!r}) must be a whole number above 0, or None if the publisher does not state it"
        )
    return int(n_rows)


def _for_table(values: Value | Mapping[Attrs, Value], attrs: Attrs, name: str) -> Value:
    """One value for all tables, or the one given for this table."""
    if not isinstance(values, Mapping):
        return values
    if attrs not in values:
        raise ReleaseError(
            f"{name} has no entry for {attrs!r}; give one number for all tables or one per table"
        )
    return values[attrs]


def _mechanism(name: str, scale: float, attrs: Attrs) -> Noise:
    real = isinstance(scale, (int, float, np.number)) and not isinstance(scale, bool)
    if not real or not math.isfinite(scale) or scale < 0:
        raise ReleaseError(
            f"scale ({scale!r}) of table {' × '.join(attrs)} must be a finite number, 0 (exact) or above; "
            "it is the b of discrete Laplace or the sigma of discrete Gaussian noise"
        )
    if name not in ("laplace", "gaussian", "none"):
        hint = did_you_mean(str(name), ("laplace", "gaussian"))
        raise ReleaseError(f"mechanism ({name!r}) must be 'laplace' or 'gaussian'{hint}")
    return Noise("none", 0.0) if scale == 0 else Noise(cast(NoiseKind, name), float(scale))


def _counts(source: object, key: Attrs, attrs: Attrs, schema: Schema, count: str) -> Counts:
    name = " × ".join(attrs)
    if isinstance(source, (str, Path)):
        source = _read_csv(Path(source), name)
    if isinstance(source, pd.DataFrame):
        return _from_frame(source, attrs, schema, count)
    try:
        values = np.asarray(source)
        numbers: Counts = values.astype(np.int64) if values.dtype.kind in "iu" else values.astype(np.float64)
    except (TypeError, ValueError):
        raise ReleaseError(
            f"table ({name}) must hold numbers; give an array, a data frame or a CSV file"
        ) from None
    expected = tuple(schema.shape[schema.attrs.index(attr)] for attr in key)
    if numbers.shape != expected:
        raise ReleaseError(
            f"table ({' × '.join(key)}) of shape {numbers.shape} must have shape {expected}, as the schema says"
        )
    return cast(Counts, np.ascontiguousarray(numbers.transpose([key.index(attr) for attr in attrs])))


def _read_csv(path: Path, name: str) -> pd.DataFrame:
    try:
        return pd.read_csv(path, dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:
        raise ReleaseError(
            f"table ({name}) cannot be read from {path}: {type(error).__name__}; check the file"
        ) from None


def _from_frame(frame: pd.DataFrame, attrs: Attrs, schema: Schema, count: str) -> Counts:
    """Place the counts of a long table by the labels of its levels; every cell must be there once."""
    name = " × ".join(attrs)
    absent = [column for column in (*attrs, count) if column not in frame.columns]
    if absent:
        raise ReleaseError(
            f"table ({name}) has no column {absent[0]!r}; it needs {', '.join(attrs)} and {count!r}"
        )
    try:
        values = pd.to_numeric(frame[count]).to_numpy(dtype=np.float64)
    except (TypeError, ValueError):
        raise ReleaseError(f"table ({name}) must hold numbers in its column {count!r}") from None
    shape = tuple(schema.n_cells((attr,)) for attr in attrs)
    cells = np.ravel_multi_index([_level_codes(frame[attr], attr, schema) for attr in attrs], shape)
    size = int(np.prod(shape))
    if len(cells) != size or len(np.unique(cells)) != size:
        raise ReleaseError(
            f"table ({name}) must hold each of its {size} cells once; it has {len(cells)} rows"
        )
    counts = np.empty(size)
    counts[cells] = values
    whole = (counts == np.round(counts)).all() and np.abs(counts).max() <= LARGEST_VALUE
    return (counts.astype(np.int64) if whole else counts).reshape(shape)


def _level_codes(values: pd.Series, attr: str, schema: Schema) -> NDArray[np.int64]:
    """Codes of published level names: the schema's own, or the labels that pages show, exactly."""
    shown = {label: code for code, label in enumerate(schema.shown_labels(attr))}
    known = shown | {label: code for code, label in enumerate(schema.labels(attr))}
    codes = values.astype(str).map(known)
    if codes.isna().any():
        unknown = str(values[codes.isna()].iloc[0])
        raise ReleaseError(
            f"level ({unknown!r}) of {attr} must be one of the schema's{did_you_mean(unknown, known)}; "
            f"the schema has {', '.join(list(known)[:5])}{' …' if len(known) > 5 else ''}"
        )
    return np.asarray(codes, dtype=np.int64)
