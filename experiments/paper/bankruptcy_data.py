"""The qualitative bankruptcy data of the paper's second experiment, as codes of five attributes, two of which cross two columns each.

The data are not part of this project. They are a public data set of the UCI Machine Learning Repository (number 281,
"Qualitative_Bankruptcy"): 250 businesses, six qualities rated P, A or N by experts, and whether the business went bankrupt (B, NB).
"""

import csv
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpcipher.errors import TableFileError

VARIABLE = "DPCIPHER_DATA"
PLACES = (
    "qualitative_bankruptcy.csv",
    "bankruptcy/qualitative_bankruptcy.csv",
    "Qualitative_Bankruptcy.data.txt",
    "bankruptcy/Qualitative_Bankruptcy.data.txt",
)
# Of the 250 rows, without a header, sorted, each ending in a newline: the order of the rows and the header differ between copies.
DIGEST = "ced9af6c6b69618c46398c6d0ccc02c544aa1c8d40d5111f287569c438f119a6"

NAMES = (
    "IndustrialRisk",
    "ManagementRisk",
    "FinancialFlexibility",
    "Credibility",
    "Competitiveness",
    "OperatingRisk",
    "Class",
)
OUTCOME = NAMES.index("Class")

LEVELS: Mapping[str, tuple[str, ...]] = {
    name: ("NB", "B") if name == "Class" else ("P", "A", "N") for name in NAMES
}
# The attributes. The supplement crosses what it expects to be associated, so that its pairs hold one 4-way, six 3-way and three 2-way tables.
ATTRS = (
    ("IndustrialRisk", "Competitiveness"),
    ("ManagementRisk",),
    ("FinancialFlexibility",),
    ("Class", "Credibility"),
    ("OperatingRisk",),
)
SHAPE = tuple(prod(len(LEVELS[name]) for name in attr) for attr in ATTRS)


@dataclass(frozen=True)
class Bankruptcy:
    """The rows as codes of the attributes."""

    codes: NDArray[np.int64]

    def table(self, rows: NDArray[np.intp] | None = None) -> NDArray[np.int64]:
        """The full table of counts of all rows, or of some."""
        cells = self.cells if rows is None else self.cells[rows]
        return np.bincount(cells, minlength=prod(SHAPE)).reshape(SHAPE)

    @cached_property
    def cells(self) -> NDArray[np.intp]:
        """The number of the cell of each row."""
        return np.asarray(np.ravel_multi_index(tuple(self.codes.T), SHAPE))


def load(folder: Path | None) -> Bankruptcy:
    """Read the data from a folder, by default the one that DPCIPHER_DATA names."""
    path = _find(folder)
    rows = [
        tuple(cell.strip() for cell in row)
        for row in csv.reader(path.read_text(encoding="utf-8-sig").splitlines())
        if row
    ]
    rows = [row for row in rows if row[-1] in ("B", "NB")]
    if digest(rows) != DIGEST:
        raise TableFileError(f"{path} does not hold the rows of the paper's data: {_where()}")
    levels = np.array(
        [[LEVELS[name].index(cell) for name, cell in zip(NAMES, row, strict=True)] for row in rows]
    )
    codes = [
        np.ravel_multi_index(
            [levels[:, NAMES.index(name)] for name in attr], [len(LEVELS[name]) for name in attr]
        )
        for attr in ATTRS
    ]
    return Bankruptcy(np.stack(codes, axis=1))


def digest(rows: list[tuple[str, ...]]) -> str:
    """The SHA-256 of the rows, sorted."""
    return hashlib.sha256("".join(sorted(f"{','.join(row)}\n" for row in rows)).encode()).hexdigest()


def _find(folder: Path | None) -> Path:
    given = folder or (Path(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None)
    if given is None:
        raise TableFileError(f"experiment 2 needs its data: give --data FOLDER or set {VARIABLE}. {_where()}")
    for place in PLACES:
        if (given / place).is_file():
            return given / place
    raise TableFileError(f"data ({given}) must hold {PLACES[0]}. {_where()}")


def _where() -> str:
    return (
        "It is data set 281, Qualitative_Bankruptcy, of the UCI Machine Learning Repository: 250 rows of P, A, N and a class B or NB; "
        f"without a header and sorted (LC_ALL=C sort), their sha256 is {DIGEST}"
    )


@cache
def columns_of_cells() -> NDArray[np.int64]:
    """The level of each of the seven columns in every cell of the full table: cells by columns."""
    codes = np.indices(SHAPE).reshape(len(SHAPE), -1)
    levels = np.empty((codes.shape[1], len(NAMES)), dtype=np.int64)
    for attr, code in zip(ATTRS, codes, strict=True):
        parts = np.unravel_index(code, [len(LEVELS[name]) for name in attr])
        for name, level in zip(attr, parts, strict=True):
            levels[:, NAMES.index(name)] = level
    return levels
