"""Rows as Stata and SPSS files: variables with labels, values with labels, and kinds of missing that those programs know as missing.

Levels that are whole numbers stay what they are. Texts, and numbers with a fraction, which neither program can label, become 1, 2, 3 … in the order of
the schema, with the level as the label. What is missing altogether is the program's own missing value; each kind of missing is one that the user defines:
.a, .b … in Stata, a declared missing code in SPSS.
"""

import keyword
import math
import re
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from dpcipher.errors import MissingExtra, TableFileError
from dpcipher.files import replacing
from dpcipher.schema.cells import as_number, as_text
from dpcipher.schema.columns import Column
from dpcipher.schema.levels import Levels
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Floats

ENDINGS = (".dta", ".sav")
LONGEST = {".dta": (80, 2000), ".sav": (250, 120)}  # characters of a variable's label and of a value's
LONGEST_NAME = 32
LONGEST_LINE = 80  # of a note in SPSS
_RESERVED = {
    "all",
    "and",
    "by",
    "eq",
    "ge",
    "gt",
    "le",
    "lt",
    "ne",
    "not",
    "or",
    "to",
    "with",
    "if",
    "in",
    "using",
}
_RESERVED |= {"byte", "int", "long", "float", "double", "strl", *map(str.lower, keyword.kwlist)}


@dataclass(frozen=True)
class Variable:
    """One column as a statistics program has it: numbers or texts, with what stands for each kind of missing among them."""

    cells: "pd.Series[Any]"
    label: str
    labels: Mapping[float | str, str] = field(default_factory=dict)
    missing: tuple[float | str, ...] = ()


def is_labelled(path: str | PathLike[str]) -> bool:
    """Whether a path asks for such a file.

    >>> is_labelled("rows.dta"), is_labelled("rows.csv")
    (True, False)
    """
    return Path(path).suffix in ENDINGS


def write_labelled(
    path: str | PathLike[str],
    batches: Iterable[pa.Table],
    schema: Schema,
    *,
    about: str = "",
    note: str = "",
    force: bool = False,
) -> None:
    """Write rows with the labels of their schema: Stata (.dta) or SPSS (.sav), by the ending of the path. All rows are held in memory.

    The file's label is what it is `about`, then the schema's title; `note` goes to the documents of an SPSS file, for which pyreadstat has none in Stata's.
    """
    target = Path(path)
    try:
        import pyreadstat
    except ImportError:
        raise MissingExtra("stats", "pyreadstat, which writes .dta and .sav files,") from None
    table = pa.concat_tables(list(batches))
    names = variable_names(table.column_names)
    variables = {
        name: _variable(schema.column(given), table[given], target.suffix)
        for name, given in zip(names, table.column_names, strict=True)
    }
    frame = pd.DataFrame({name: variable.cells for name, variable in variables.items()})
    title = "; ".join(part for part in (about, schema.title) if part)
    with replacing(target, force=force) as temporary:
        try:
            _write(pyreadstat, frame, str(temporary), variables, title, note, target.suffix)
        except pyreadstat.PyreadstatError:
            raise TableFileError(
                f"{target}: cannot be written in this format; write .parquet and convert it"
            ) from None


def _write(
    library: Any,
    frame: pd.DataFrame,
    path: str,
    variables: Mapping[str, Variable],
    title: str,
    note: str,
    ending: str,
) -> None:
    said, shown = LONGEST[ending]
    options: dict[str, Any] = {
        "column_labels": {name: _cut(variable.label, said) for name, variable in variables.items()},
        "variable_value_labels": {
            name: {value: _cut(label, shown) for value, label in variable.labels.items()}
            for name, variable in variables.items()
            if variable.labels
        },
        "file_label": _cut(title, 60),
    }
    coded = {name: variable for name, variable in variables.items() if variable.missing}
    if ending == ".dta":
        letters = {name: sorted(set(variable.missing)) for name, variable in coded.items()}
        library.write_dta(frame, path, missing_user_values=letters, version=14, **options)
    else:
        ranges = {name: _ranges(variable.missing, variable.cells) for name, variable in coded.items()}
        lines = textwrap.wrap(note, LONGEST_LINE)
        library.write_sav(frame, path, missing_ranges=ranges, note=lines or None, **options)


def variable_names(names: Iterable[str]) -> list[str]:
    """Names that both programs take: letters, digits and underscores, a letter first, at most 32, none twice.

    >>> variable_names(["age", "2nd job", "with", "AGE"])
    ['age', 'v2nd_job', 'with_', 'AGE_2']
    """
    taken: list[str] = []
    for given in names:
        plain = re.sub(r"[^A-Za-z0-9_]", "_", given)
        plain = plain if re.match(r"[A-Za-z]", plain) else f"v{plain}"
        plain = f"{plain}_" if plain.lower() in _RESERVED else plain
        name, number = plain[:LONGEST_NAME], 1
        while name.lower() in map(str.lower, taken):
            number += 1
            name = f"{plain[: LONGEST_NAME - 5]}_{number}"
        taken.append(name)
    return taken


def _variable(column: Column, cells: pa.ChunkedArray, ending: str) -> Variable:
    """A column by its kind: listed levels and numbers get labels, dates and times of day stay what they are."""
    if pa.types.is_dictionary(cells.type):
        cells = cells.cast(cells.type.value_type)
    domain = column.domain
    if isinstance(domain, Levels):
        numbers = _numbers_of(domain)
        return _labelled(column, cells, ending, [float(number) for number in numbers], numbers)
    if pa.types.is_date(cells.type):
        return Variable(cells.to_pandas(), column.heading)
    if column.kind in ("date", "time"):
        return Variable(as_text(cells).to_pandas().astype(object), column.heading)
    return _labelled(column, cells, ending, as_number(cells), None)


def _numbers_of(domain: Levels) -> list[int]:
    """What stands for each level: itself where all are whole numbers, 0 and 1 for no and yes, else 1, 2, 3 …"""
    levels = domain.levels
    if all(isinstance(level, int) for level in levels):  # false and true are 0 and 1
        return [int(level) for level in levels]
    return list(range(1, len(levels) + 1))


def _labelled(
    column: Column,
    cells: pa.ChunkedArray,
    ending: str,
    given: Floats | list[float],
    numbers: list[int] | None,
) -> Variable:
    """Numbers with labels; `given` is the number of every cell, or of every level where `numbers` are those of levels."""
    codes = np.asarray(column.encode(cells), dtype=np.int64)
    values = (
        np.asarray(given)[np.minimum(codes, len(given) - 1)] if numbers is not None else np.asarray(given)
    )
    kinds = _kinds(column, min(0.0, float(np.nanmin(values, initial=0.0))), ending)
    missing = codes - column.domain.size  # 0, 1 … are kinds of missing, then comes what is missing altogether
    found = pd.Series(
        np.where(missing >= 0, np.nan, values), dtype=object if ending == ".dta" and kinds else float
    )
    for kind, stands in enumerate(kinds):
        found[missing == kind] = stands
    shown = column.shown_labels
    labels: dict[float | str, str] = {}
    if numbers is not None:
        labels = {
            number: label for number, label in zip(numbers, shown, strict=False) if str(number) != label
        }
    else:
        labels = _special(column)
    labels |= dict(zip(kinds, shown[column.domain.size :], strict=False))
    written = _whole(found)
    if pd.api.types.is_integer_dtype(written):  # then the writer wants whole numbers everywhere
        return Variable(
            written,
            column.heading,
            {int(value): label for value, label in labels.items()},
            tuple(map(int, kinds)),
        )
    return Variable(written, column.heading, labels, tuple(kinds))


def _special(column: Column) -> dict[float | str, str]:
    """Labels of single values among numbers, such as a top code; Stata labels whole numbers alone."""
    shown = {str(text): label for text, label in dict(column.value_labels or ()).items()}
    texts = [text for text in shown if text not in column.missing_codes.texts]
    numbers = as_number(pa.array(texts, pa.string())) if texts else ()
    return {int(number): shown[text] for text, number in zip(texts, numbers, strict=True) if number % 1 == 0}


def _kinds(column: Column, lowest: float, ending: str) -> list[float | str]:
    """What stands for each kind of missing: letters in Stata; in SPSS the code itself if it is a number, else one below all values."""
    texts = column.missing_codes.texts
    if ending == ".dta":
        return [ascii_lowercase[min(place, 25)] for place in range(len(texts))]
    numbers = as_number(pa.array(texts, pa.string())) if texts else np.empty(0)
    below = math.floor(min([lowest, *(number for number in numbers if np.isfinite(number))]))
    return [
        float(number) if np.isfinite(number) else float(below - 1 - place)
        for place, number in enumerate(numbers)
    ]


def _whole(cells: "pd.Series[Any]") -> "pd.Series[Any]":
    """Whole numbers as such, where nothing is missing."""
    if cells.dtype == object or cells.isna().any() or not (cells % 1 == 0).all():
        return cells
    return cells.astype("int64") if cells.abs().max() >= 2**31 else cells.astype("int32")


def _ranges(missing: tuple[float | str, ...], cells: "pd.Series[Any]") -> list[Any]:
    """SPSS knows up to three missing codes, or one range: all of them where they lie together below the values, else the first three."""
    if len(missing) <= 3:
        return list(missing)
    values = cells[~cells.isin(missing)]
    lowest, highest = min(missing), max(missing)
    apart = values.empty or bool((values < lowest).all() or (values > highest).all())
    return [{"lo": lowest, "hi": highest}] if apart else list(missing[:3])


def _cut(words: str, most: int) -> str:
    return words if len(words.encode()) <= most else words.encode()[: most - 3].decode(errors="ignore") + "…"
