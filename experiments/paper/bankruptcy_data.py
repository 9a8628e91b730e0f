"""The qualitative bankruptcy data of the paper's second experiment, and its schema: five attributes, two of which cross two columns each.

The data are not part of this project. They are a public data set of the UCI Machine Learning Repository (number 281,
"Qualitative_Bankruptcy"): 250 businesses, six qualities rated P, A or N by experts, and whether the business went bankrupt (B, NB).
"""

import csv
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpcipher.errors import TableFileError
from dpcipher.schema.declared import column
from dpcipher.schema.schema import Schema

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

# The supplement crosses what it expects to be associated, so that its pairs hold one 4-way, six 3-way and three 2-way tables.
CROSSED: Mapping[str, tuple[str, ...]] = {
    "IndustrialRisk×Competitiveness": ("IndustrialRisk", "Competitiveness"),
    "ManagementRisk": ("ManagementRisk",),
    "FinancialFlexibility": ("FinancialFlexibility",),
    "Class×Credibility": ("Class", "Credibility"),
    "OperatingRisk": ("OperatingRisk",),
}
LEVELS = {name: ("NB", "B") if name == "Class" else ("P", "A", "N") for name in NAMES}
SCHEMA = Schema(
    tuple(
        column(attr, "categorical", levels=tuple(map(" ".join, product(*(LEVELS[name] for name in names)))))
        for attr, names in CROSSED.items()
    )
)


@dataclass(frozen=True)
class Bankruptcy:
    """The rows as codes of the attributes of the schema."""

    codes: NDArray[np.int32]

    def table(self, rows: NDArray[np.intp] | None = None) -> NDArray[np.int64]:
        """The full table of counts of all rows, or of some."""
        cells = self.cells if rows is None else self.cells[rows]
        return np.bincount(cells, minlength=int(np.prod(SCHEMA.shape))).reshape(SCHEMA.shape)

    @cached_property
    def cells(self) -> NDArray[np.intp]:
        """The number of the cell of each row."""
        return np.asarray(np.ravel_multi_index(tuple(self.codes.T.astype(np.intp)), SCHEMA.shape))


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
    cells = {
        attr: [" ".join(row[NAMES.index(name)] for name in names) for row in rows]
        for attr, names in CROSSED.items()
    }
    return Bankruptcy(SCHEMA.encode(pa.table(cells)))


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
    codes = np.indices(SCHEMA.shape).reshape(len(SCHEMA.shape), -1)
    levels = np.empty((codes.shape[1], len(NAMES)), dtype=np.int64)
    for names, code in zip(CROSSED.values(), codes, strict=True):
        for name, level in zip(
            names, np.unravel_index(code, [len(LEVELS[name]) for name in names]), strict=True
        ):
            levels[:, NAMES.index(name)] = level
    return levels
