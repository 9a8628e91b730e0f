"""Rows as Stata and SPSS files: variables with labels, values with labels, and kinds of missing that those programs know as missing.

Levels that are whole numbers stay what they are. Texts, and numbers with a fraction, which neither program can label, become 1, 2, 3 … in the order of
the schema, with the level as the label. Dates and times of day are numbers that the program shows as such. What is missing altogether is the program's own
missing value; each kind of missing is one that the user defines: .a, .b … in Stata, a declared missing code in SPSS. A schema with more kinds than
the program can tell apart is refused before any row is drawn.
"""

import keyword
import math
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from dpcipher.errors import MissingExtra, TableFileError
from dpcipher.files import replacing
from dpcipher.schema.cells import as_number, by_type
from dpcipher.schema.columns import Column
from dpcipher.schema.levels import Levels
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Floats

ENDINGS = (".dta", ".sav")
LONGEST = {".dta": (80, 2000), ".sav": (250, 120)}  # bytes of a variable's label and of a value's
# How dates and times are shown, and how days since 1970 and seconds since midnight are counted: Stata has days and milliseconds from 1960, SPSS seconds
# from the beginning of the Gregorian calendar.
POINTS = {
    (".dta", "date"): ("%td", 1, 3_653),
    (".dta", "time"): ("%tcHH:MM:SS", 1_000, 0),
    (".sav", "date"): ("DATE11", 86_400, 141_428 * 86_400),
    (".sav", "time"): ("TIME8", 1, 0),
}
SPSS_CODES = 3  # single missing codes of an SPSS variable; or one range, and one code beside it
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
    """One column as a statistics program has it: numbers, their labels, how they are shown, and what stands for each kind of missing.

    `levels` are the numbers of listed levels. Other numbers are `factor` times what is `read`, and `origin`. `missing` is what pyreadstat is told.
    """

    column: Column
    read: Callable[[pa.Array], Floats]
    levels: tuple[int, ...] | None
    kinds: tuple[float | str, ...]
    labels: Mapping[float | str, str]
    missing: list[Any]
    format: str | None
    factor: int
    origin: int

    def cells(self, given: pa.ChunkedArray) -> "pd.Series[Any]":
        """The numbers of the cells; whole ones as such, where nothing is missing."""
        codes = np.asarray(self.column.encode(given), dtype=np.int64)
        missing = (
            codes - self.column.domain.size
        )  # 0, 1 … are kinds of missing, then comes what is missing altogether
        numbers = self._numbers(given) if self.levels is None else np.take(self.levels, codes, mode="clip")
        cells = pd.Series(
            np.where(missing >= 0, np.nan, numbers),
            dtype=object if any(isinstance(kind, str) for kind in self.kinds) else float,
        )
        for kind, code in enumerate(self.kinds):
            cells[missing == kind] = code
        if cells.dtype == object or cells.isna().any() or not (cells % 1 == 0).all():
            return cells
        return cells.astype("int64") if cells.abs().max() >= 2**31 else cells.astype("int32")

    def _numbers(self, given: pa.ChunkedArray) -> Floats:
        numbers = by_type(given, lambda part: pa.array(self.read(part))).to_numpy(zero_copy_only=False)
        return np.asarray(numbers * self.factor + self.origin)


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
    variables = {
        name: _variable(column, target)
        for name, column in zip(variable_names(schema.names), schema.columns, strict=True)
    }
    table = pa.concat_tables(list(batches))
    frame = pd.DataFrame({name: one.cells(table[one.column.name]) for name, one in variables.items()})
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
    longest, longest_value = LONGEST[ending]
    options: dict[str, Any] = {
        "file_label": _cut(title, 60),
        "column_labels": {name: _cut(one.column.heading, longest) for name, one in variables.items()},
        "variable_format": {name: one.format for name, one in variables.items() if one.format},
        "variable_value_labels": {
            # Where all cells are whole numbers, the writer wants them in labels, too.
            name: {
                int(value) if pd.api.types.is_integer_dtype(frame[name]) else value: _cut(
                    label, longest_value
                )
                for value, label in one.labels.items()
            }
            for name, one in variables.items()
            if one.labels
        },
    }
    missing = {name: one.missing for name, one in variables.items() if one.missing}
    if ending == ".dta":
        library.write_dta(frame, path, missing_user_values=missing, version=14, **options)
    else:
        lines = textwrap.wrap(note, LONGEST_LINE)
        library.write_sav(frame, path, missing_ranges=missing, note=lines or None, **options)


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


def _variable(column: Column, target: Path) -> Variable:
    """What the schema says of a column, for the program that reads the file."""
    format, factor, origin = POINTS.get((target.suffix, column.kind), (None, 1, 0))
    domain, shown, codes = column.domain, column.shown_labels, column.missing_codes.texts
    labels: dict[float | str, str] = {}
    levels: tuple[int, ...] | None = None
    values: list[float]
    read: Callable[[pa.Array], Floats] = as_number
    if isinstance(domain, Levels):
        levels = _level_numbers(domain)
        values = list(levels)
        labels = {number: label for number, label in zip(levels, shown, strict=False) if str(number) != label}
    else:
        read = domain.scale.read
        values = [
            float(factor * value + origin) for value in (domain.edges[0], domain.edges[-1], *domain.special)
        ]
        texts = {str(text): label for text, label in column.value_labels if str(text) not in codes}
        points = factor * read(pa.array(list(texts), pa.string())) + origin
        # Labels of single values among numbers, such as a top code; Stata labels whole numbers alone.
        labels = {
            int(point): label for point, label in zip(points, texts.values(), strict=True) if point % 1 == 0
        }
    stated = (factor * read(pa.array(codes, pa.string())) + origin).tolist()
    kinds, missing = _kinds_of_missing(column.name, stated, values, () if levels is None else levels, target)
    labels |= dict(zip(kinds, shown[domain.size :], strict=False))
    return Variable(column, read, levels, kinds, labels, missing, format, factor, origin)


def _level_numbers(domain: Levels) -> tuple[int, ...]:
    """What stands for each level: itself where all are whole numbers, 0 and 1 for no and yes, else 1, 2, 3 …"""
    if all(isinstance(level, int) for level in domain.levels):  # false and true are 0 and 1
        return tuple(map(int, domain.levels))
    return tuple(range(1, len(domain.levels) + 1))


def _kinds_of_missing(
    name: str, stated: list[float], values: list[float], levels: tuple[int, ...], target: Path
) -> tuple[tuple[float | str, ...], list[Any]]:
    """What stands for each kind of missing, and how the program is told: letters in Stata; in SPSS the code itself if it is a number that no level has,
    else one below all values.
    """
    if target.suffix == ".dta":
        letters = tuple(ascii_lowercase[: len(stated)])
        if len(letters) < len(stated):
            raise TableFileError(
                f"{target}: column {name!r} has {len(stated)} kinds of missing, and Stata tells {len(letters)} apart; write .parquet or .csv"
            )
        return letters, list(letters)
    own = [number if math.isfinite(number) and number not in levels else None for number in stated]
    below = math.floor(min([0, *values, *(number for number in own if number is not None)]))
    kinds = [float(below - 1 - place) if number is None else number for place, number in enumerate(own)]
    if len(kinds) <= SPSS_CODES:
        return tuple(kinds), kinds
    ordered = sorted(kinds)
    for alone, lowest, highest in (
        ([], ordered[0], ordered[-1]),
        (ordered[:1], ordered[1], ordered[-1]),
        (ordered[-1:], ordered[0], ordered[-2]),
    ):
        if highest < min(values) or lowest > max(values):
            return tuple(kinds), [{"lo": lowest, "hi": highest}, *alone]
    raise TableFileError(
        f"{target}: column {name!r} has {len(kinds)} kinds of missing among its values, and SPSS takes {SPSS_CODES}, or one range beside the "
        "values and one more; write .dta, .parquet or .csv"
    )


def _cut(words: str, most: int) -> str:
    return words if len(words.encode()) <= most else words.encode()[: most - 3].decode(errors="ignore") + "…"
