"""Noisy tables that somebody else published: arrays, data frames, or CSV files with a count column, of levels or of groups of levels."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpcipher.errors import ParameterError, ReleaseError, WorkloadError, did_you_mean
from dpcipher.release.group_labels import code_labels
from dpcipher.schema.grouped import Grouped, read_groups, said, table_of
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Attrs, Axes
from dpcipher.tables.measurement import LARGEST_VALUE, Measurement, Noise, NoiseKind
from dpcipher.tables.query import Groups, Query

Counts = NDArray[np.float64] | NDArray[np.int64]
Value = TypeVar("Value", float, str)


def read_tables(
    tables: Mapping[Attrs, object],
    schema: Schema,
    *,
    scale: float | Mapping[Attrs, float],
    mechanism: str | Mapping[Attrs, str],
    groups: Mapping[Attrs, Mapping[str, Any]] | None,
    count: str,
) -> tuple[Measurement, ...]:
    """Check every table against the schema and put its axes in the schema's order."""
    checked: dict[Query, Measurement] = {}
    unknown = [key for key in groups or () if key not in tables]
    if unknown:
        raise ReleaseError(
            f"groups name {unknown[0]!r}, which is not a table{did_you_mean(str(unknown[0]), map(str, tables))}; use the keys of tables"
        )
    for given, source in tables.items():
        key = (given,) if isinstance(given, str) else tuple(given)
        table = _Table.parse(schema, given if isinstance(given, Grouped) else key, (groups or {}).get(given))
        name = " × ".join(table.attrs)
        noise = _mechanism(_for_table(mechanism, given, "mechanism"), _for_table(scale, given, "scale"), name)
        query, counts = table.counts(source, key, count)
        if query in checked:
            raise ReleaseError(f"tables name {said(table_of(schema, query))} twice; give each table once")
        try:
            checked[query] = Measurement(query, counts, noise)
        except ReleaseError:
            raise ReleaseError(
                f"table ({name}) must hold finite counts within ±2**62; it has NaN, infinite or larger ones"
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


def _mechanism(name: str, scale: float, table: str) -> Noise:
    real = isinstance(scale, (int, float, np.number)) and not isinstance(scale, bool)
    if not real or not math.isfinite(scale) or scale < 0:
        raise ReleaseError(
            f"scale ({scale!r}) of table {table} must be a finite number, 0 (exact) or above; "
            "it is the b of discrete Laplace or the sigma of discrete Gaussian noise"
        )
    if name not in ("laplace", "gaussian", "none"):
        hint = did_you_mean(str(name), ("laplace", "gaussian"))
        raise ReleaseError(f"mechanism ({name!r}) must be 'laplace' or 'gaussian'{hint}")
    return Noise("none", 0.0) if scale == 0 else Noise(cast(NoiseKind, name), float(scale))


@dataclass(frozen=True)
class _Table:
    """A published table: its attributes in the schema's order, and for each the groups of its levels, if any, and the places they were given at."""

    schema: Schema
    axes: Axes
    attrs: Attrs
    groups: tuple[Groups | None, ...] = ()
    order: tuple[list[int], ...] = ()

    @classmethod
    def parse(cls, schema: Schema, key: Attrs, groups: object) -> "_Table":
        """From the name of a table and what was said of its groups."""
        if groups is not None and (isinstance(key, Grouped) or not isinstance(groups, Mapping)):
            raise ReleaseError(
                f"groups of {key!r} ({groups!r:.60}) must be said once, by column; try groups={{('age', 'sex'): {{'age': [0, 18, 65]}}}}"
            )
        table = key if isinstance(key, Grouped) or not groups else Grouped(key, **groups)
        axes = schema.axes(table)
        attrs = schema.attrs_on(axes)
        if not isinstance(table, Grouped):
            return cls(schema, axes, attrs)
        specs = [table.groups.get(attr) for attr in attrs]
        read = [
            (None, []) if spec is None else read_groups(schema, attr, spec)
            for attr, spec in zip(attrs, specs, strict=True)
        ]
        return cls(schema, axes, attrs, tuple(form for form, _ in read), tuple(order for _, order in read))

    @property
    def forms(self) -> tuple[Groups | None, ...]:
        """For each column its groups; None for every level."""
        return self.groups or (None,) * len(self.axes)

    def counts(self, source: object, key: Attrs, count: str) -> tuple[Query, Counts]:
        """What is counted, and the counts with their axes in the schema's order."""
        if isinstance(source, (str, Path)):
            source = _read_csv(Path(source), " × ".join(self.attrs))
        return (
            self._from_frame(source, count)
            if isinstance(source, pd.DataFrame)
            else self._from_array(source, key)
        )

    def _from_array(self, source: object, key: Attrs) -> tuple[Query, Counts]:
        """An array has a place for each level or group, in the order in which the schema, or its groups, name them."""
        name = " × ".join(self.attrs)
        try:
            values = np.asarray(source)
            numbers: Counts = (
                values.astype(np.int64) if values.dtype.kind in "iu" else values.astype(np.float64)
            )
        except (TypeError, ValueError):
            raise ReleaseError(
                f"table ({name}) must hold numbers; give an array, a data frame or a CSV file"
            ) from None
        query = Query(self.axes, self.groups)
        places = [self.attrs.index(attr) for attr in key]
        sizes = [
            self.schema.shape[axis] if form is None else form.size
            for axis, form in zip(self.axes, self.forms, strict=True)
        ]
        expected = tuple(sizes[place] for place in places)
        if numbers.shape != expected:
            why = "as the schema and its groups say" if any(self.groups) else "as the schema says"
            raise ReleaseError(
                f"table ({' × '.join(key)}) of shape {numbers.shape} must have shape {expected}, {why}"
            )
        turned = numbers.transpose([key.index(attr) for attr in self.attrs])
        for place, order in enumerate(self.order):
            turned = turned.take(order, axis=place) if order else turned
        return query, cast(Counts, np.ascontiguousarray(turned.reshape(query.shape(self.schema.shape))))

    def _from_frame(self, frame: pd.DataFrame, count: str) -> tuple[Query, Counts]:
        """Place the counts of a long table by the labels of its levels or groups; every cell must be there once."""
        name = " × ".join(self.attrs)
        absent = [column for column in (*self.attrs, count) if column not in frame.columns]
        if absent:
            raise ReleaseError(
                f"table ({name}) has no column {absent[0]!r}; it needs {', '.join(self.attrs)} and {count!r}"
            )
        try:
            values = pd.to_numeric(frame[count]).to_numpy(dtype=np.float64)
        except (TypeError, ValueError):
            raise ReleaseError(f"table ({name}) must hold numbers in its column {count!r}") from None
        codes, forms = zip(
            *(
                self._codes(frame[attr], attr, form)
                for attr, form in zip(self.attrs, self.forms, strict=True)
            ),
            strict=True,
        )
        sizes = [
            self.schema.shape[axis] if form is None else form.size
            for axis, form in zip(self.axes, forms, strict=True)
        ]
        cells, size = np.ravel_multi_index(codes, sizes), math.prod(sizes)
        if len(cells) != size or len(np.unique(cells)) != size:
            raise ReleaseError(
                f"table ({name}) must hold each of its {size} cells once; it has {len(cells)} rows"
            )
        counts = np.empty(size)
        counts[cells] = values
        whole = (counts == np.round(counts)).all() and np.abs(counts).max() <= LARGEST_VALUE
        query = Query(self.axes, forms)
        return query, (counts.astype(np.int64) if whole else counts).reshape(query.shape(self.schema.shape))

    def _codes(
        self, values: pd.Series, attr: str, groups: Groups | None
    ) -> tuple[NDArray[np.int64], Groups | None]:
        """Codes of published levels, by the schema's own names or the labels that pages show, or of groups; and the groups."""
        texts = values.astype(str)
        try:
            known, found = code_labels(self.schema, attr, list(dict.fromkeys(texts)), groups)
        except WorkloadError as wrong:
            raise ReleaseError(str(wrong)) from None
        return texts.map(known).to_numpy(dtype=np.int64), found


def _read_csv(path: Path, name: str) -> pd.DataFrame:
    try:
        return pd.read_csv(path, dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:
        raise ReleaseError(
            f"table ({name}) cannot be read from {path}: {type(error).__name__}; check the file"
        ) from None
