"""Noisy tables that somebody else published: arrays, data frames, or CSV files with a count column, of levels or of groups of levels.

Groups may be told by their labels, such as `0–4`, `18 or more`, `under 18`, `[0, 10)`, or levels joined by commas.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpcipher.errors import ParameterError, ReleaseError, WorkloadError, did_you_mean
from dpcipher.schema.bins import Bins
from dpcipher.schema.grouped import Grouped, check_once, labels_of, read_groups, said, table_of
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Attrs, Axes
from dpcipher.tables.measurement import LARGEST_VALUE, Measurement, Noise, NoiseKind
from dpcipher.tables.query import Groups, Query

# Between the ends of a run; a hyphen may also be a minus or part of a date.
_BETWEEN = ("..", "–", "—", " to ", "-")
_FROM = re.compile(r"(?P<low>.+?)(?: or (?:more|older|over|above)| and (?:more|older|over|above)|\s*\+)")
_TO = re.compile(
    r"(?:under|below|less than) (?P<stop>.+)|(?:up to )?(?P<high>.+?)(?: or (?:less|younger|under|below)| and (?:less|younger|under|below))?"
)
_INTERVAL = re.compile(r"\[(?P<low>[^,]+), (?P<stop>[^,]+)[)\]]")

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
        kind, size = _for_table(mechanism, given, "mechanism"), _for_table(scale, given, "scale")
        noise = _mechanism(kind, size, table.name)
        query, counts = table.counts(source, key, count)
        if query in checked:
            raise ReleaseError(f"tables name {said(table_of(schema, query))} twice; give each table once")
        try:
            checked[query] = Measurement(query, counts, noise)
        except ReleaseError:
            raise ReleaseError(
                f"table ({table.name}) must hold finite counts within ±2**62; it has NaN, infinite or larger ones"
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
    forms: tuple[Groups | None, ...]
    orders: tuple[list[int], ...]

    @classmethod
    def parse(cls, schema: Schema, key: Attrs, groups: object) -> "_Table":
        """From the name of a table and what was said of its groups."""
        if groups is not None and (isinstance(key, Grouped) or not isinstance(groups, Mapping)):
            raise ReleaseError(
                f"groups of {key!r} ({groups!r:.60}) must be said once, by column; try groups={{('age', 'sex'): {{'age': [0, 18, 65]}}}}"
            )
        table = key if isinstance(key, Grouped) or not groups else Grouped(key, **groups)
        axes, specs = schema.axes(table), table.groups if isinstance(table, Grouped) else {}
        attrs = schema.attrs_on(axes)
        read = [read_groups(schema, attr, specs[attr]) if attr in specs else (None, []) for attr in attrs]
        return cls(schema, axes, attrs, tuple(form for form, _ in read), tuple(order for _, order in read))

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return " × ".join(self.attrs)

    def counts(self, source: object, key: Attrs, count: str) -> tuple[Query, Counts]:
        """What is counted, and the counts with their axes in the schema's order."""
        if isinstance(source, (str, Path)):
            source = _read_csv(Path(source), self.name)
        given = self._from_frame(source, count) if isinstance(source, pd.DataFrame) else None
        forms, counts = given or (self.forms, self._from_array(source, key))
        query = Query(self.axes, forms)
        return query, cast(Counts, np.ascontiguousarray(counts.reshape(query.shape(self.schema.shape))))

    def _sizes(self, forms: Sequence[Groups | None]) -> list[int]:
        """How many levels or groups each column has."""
        both = zip(self.axes, forms, strict=True)
        return [self.schema.shape[axis] if form is None else form.size for axis, form in both]

    def _from_array(self, source: object, key: Attrs) -> Counts:
        """An array has a place for each level or group, in the order in which the schema, or its groups, name them."""
        try:
            values = np.asarray(source)
            whole = values.dtype.kind in "iu"
            numbers: Counts = values.astype(np.int64) if whole else values.astype(np.float64)
        except (TypeError, ValueError):
            raise ReleaseError(
                f"table ({self.name}) must hold numbers; give an array, a data frame or a CSV file"
            ) from None
        sizes = dict(zip(self.attrs, self._sizes(self.forms), strict=True))
        expected = tuple(sizes[attr] for attr in key)
        if numbers.shape != expected:
            why = "as the schema and its groups say" if any(self.forms) else "as the schema says"
            raise ReleaseError(
                f"table ({' × '.join(key)}) of shape {numbers.shape} must have shape {expected}, {why}"
            )
        turned = numbers.transpose([key.index(attr) for attr in self.attrs])
        for place, order in enumerate(self.orders):
            turned = turned.take(order, axis=place) if order else turned
        return turned

    def _from_frame(self, frame: pd.DataFrame, count: str) -> tuple[tuple[Groups | None, ...], Counts]:
        """Place the counts of a long table by the labels of its levels or groups; every cell must be there once."""
        absent = [column for column in (*self.attrs, count) if column not in frame.columns]
        if absent:
            raise ReleaseError(
                f"table ({self.name}) has no column {absent[0]!r}; it needs {', '.join(self.attrs)} and {count!r}"
            )
        try:
            values = pd.to_numeric(frame[count]).to_numpy(dtype=np.float64)
        except (TypeError, ValueError):
            raise ReleaseError(f"table ({self.name}) must hold numbers in its column {count!r}") from None
        both = zip(self.attrs, self.forms, strict=True)
        codes, forms = zip(*(self._codes(frame[attr], attr, form) for attr, form in both), strict=True)
        sizes = self._sizes(forms)
        cells, size = np.ravel_multi_index(codes, sizes), math.prod(sizes)
        if len(cells) != size or len(np.unique(cells)) != size:
            raise ReleaseError(
                f"table ({self.name}) must hold each of its {size} cells once; it has {len(cells)} rows"
            )
        counts = np.empty(size)
        counts[cells] = values
        whole = (counts == np.round(counts)).all() and np.abs(counts).max() <= LARGEST_VALUE
        return forms, counts.astype(np.int64) if whole else counts

    def _codes(
        self, values: pd.Series, attr: str, groups: Groups | None
    ) -> tuple[NDArray[np.int64], Groups | None]:
        """Codes of published levels, by the schema's own names or the labels that pages show, or of groups; and the groups."""
        texts = values.astype(str)
        try:
            known, found = _code_labels(self.schema, attr, list(dict.fromkeys(texts)), groups)
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


def _code_labels(
    schema: Schema, attr: str, labels: Sequence[str], groups: Groups | None
) -> tuple[dict[str, int], Groups | None]:
    """The number of each label of a published table, and its groups: those given or, where the labels are no levels, those that the labels say."""
    known = _numbers(schema, attr, groups)
    if all(label in known for label in labels):
        return known, groups
    held = {
        label: _levels_in(schema, attr, label) for label in labels if groups is None or label not in known
    }
    unknown = next((label for label, codes in held.items() if codes is None), None)
    if unknown is not None:
        what = "one of the schema's" if groups is None else "one of its groups"
        raise WorkloadError(
            f"level ({unknown!r:.100}) of {attr} must be {what}{did_you_mean(unknown, known)}; "
            f"it has {', '.join(list(known)[:5])}{' …' if len(known) > 5 else ''}"
        )
    if groups is not None:
        whole = {
            frozenset(np.flatnonzero(np.array(groups.of) == group).tolist()): group
            for group in range(groups.size)
        }
        other = next((label for label, codes in held.items() if frozenset(codes or ()) not in whole), None)
        if other is not None:
            raise WorkloadError(
                f"level ({other!r:.100}) of {attr} must be one of its groups; it has {', '.join(list(known)[:5])}{' …' if len(known) > 5 else ''}"
            )
        return known | {label: whole[frozenset(codes or ())] for label, codes in held.items()}, groups
    lists = [list(codes or ()) for codes in held.values()]
    check_once(schema, attr, lists)
    found = Groups.of_lists(lists, schema.n_cells((attr,)))
    return {label: found.of[codes[0]] for label, codes in zip(held, lists, strict=True)}, found


def _numbers(schema: Schema, attr: str, groups: Groups | None) -> dict[str, int]:
    """Levels or groups by the schema's own labels and by those that pages show."""
    both = (labels_of(schema, attr, groups, shown=True), labels_of(schema, attr, groups))
    return {label: code for labels in both for code, label in enumerate(labels)}


def _levels_in(schema: Schema, attr: str, label: str) -> list[int] | None:
    """The levels that the label of a group names: `0–4`, `18 or more`, `under 18`, `[0, 10)`, or levels joined by commas; None where it names none."""
    known, column = _numbers(schema, attr, None), schema.column(attr)
    if label in known:
        return [known[label]]
    ordered = column.ordered_levels

    def code(text: str, *, last: bool = False) -> int | None:
        """The level that begins, or ends, with a value."""
        text = text.strip()
        if text in known:
            return known[text]
        found = column.find(text)
        if found is None or not isinstance(column.domain, Bins) or found >= column.domain.n_bins:
            return found
        return found if column.domain.ends[int(last)][found] == column.domain.number_named(text) else None

    for low, high in _ends(label):
        first, final = (
            (0 if low is None else code(low)),
            (ordered - 1 if high is None else code(high, last=True)),
        )
        if first is not None and final is not None and first <= final < (ordered or column.size):
            return list(range(first, final + 1))
    if ordered:
        under = _TO.fullmatch(label)
        if under and under["stop"] and (stop := code(under["stop"])):
            return list(range(stop))
    interval = _INTERVAL.fullmatch(label)
    if interval and isinstance(column.domain, Bins):
        edges = list(column.domain.edges)
        bottom, top = (column.domain.number_named(interval[end]) for end in ("low", "stop"))
        if bottom in edges and top in edges and (label[-1] == ")" or top == edges[-1]):
            return list(range(edges.index(bottom), edges.index(top)))
    codes = [known.get(part) for part in label.split(", ")]
    return None if None in codes else [part for part in codes if part is not None]


def _ends(label: str) -> Iterator[tuple[str | None, str | None]]:
    """The first and last value that a label may name, in each way of reading it; None where it has no end."""
    for mark in _BETWEEN:
        start = label.find(mark, 1)
        while start > 0:
            yield label[:start], label[start + len(mark) :]
            start = label.find(mark, start + 1)
    above = _FROM.fullmatch(label)
    if above:
        yield above["low"], None
    below = _TO.fullmatch(label)
    if below and below["high"] and below["high"] != label:
        yield None, below["high"]
