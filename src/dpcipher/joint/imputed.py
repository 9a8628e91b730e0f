"""Rows that are a draw of the private table given one release, and that say so wherever they are taken.

The rule that combines several sets depends on where they come from, which rows alone do not show. pandas frames carry it in `attrs`, Arrow tables and
Parquet files in their metadata, where `pandas.read_parquet` finds it. Stata and SPSS files tell people in their label, which frames that are read from them do
not keep. CSV files, and frames of other libraries, cannot carry it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa

from dpcipher.io.write import PANDAS_ATTRS
from dpcipher.schema.bins import Bins
from dpcipher.schema.schema import Schema

KEY, RULE = "dpcipher", "imputations"

# For people, in files that have a place for it.
LABEL = "Imputation: pool by Rubin's rule"
NOTE = (
    "This file is one of several draws of a private table, given one noisy release. Analyse every file with all of its rows, and pool the results by "
    "Rubin's rule for multiple imputation."
)
BINNED = " Values of {names} were drawn inside bins, unrelated to the other columns: slopes on them come out too near 0."

# What an option of a draw does to Rubin's rule, which takes each set for a guess at the whole private table.
BREAKS: Mapping[str, str] = {
    "n_rows": "with another number of rows than the private table's the variance within sets has the wrong size: too small with more rows",
    "given": "a part of the table drawn with as many rows as all of it makes the variance within sets too small; draw all rows and keep those with the condition",
    "independent": "rows drawn independently scatter by the sampling error once more, which makes intervals too wide",
}


@dataclass(frozen=True)
class Imputed:
    """What makes rows one of m imputations: `binned` columns have values drawn inside their bins; `changed` are options that the rule does not allow for."""

    binned: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    @property
    def attrs(self) -> dict[str, Any]:
        """What a pandas frame says of such rows in its `attrs`."""
        return {KEY: {"rule": RULE, "binned": list(self.binned), "changed": list(self.changed)}}

    @property
    def note(self) -> str:
        """What a file says of such rows, in words."""
        return NOTE + (BINNED.format(names=", ".join(self.binned)) if self.binned else "")

    @classmethod
    def of(cls, rows: object) -> "Imputed | None":
        """What a frame or an Arrow table says of itself; None where it says nothing that we know."""
        match attrs_of(rows).get(KEY):
            case {"rule": "imputations", "binned": [*binned], "changed": [*changed]}:
                return cls(tuple(map(str, binned)), tuple(name for name in BREAKS if name in changed))
            case _:
                return None


def tells_release(rows: object) -> bool:
    """Whether rows say of themselves that they were drawn from a release; others may be private."""
    return KEY in attrs_of(rows)


def attrs_of(rows: object) -> Mapping[str, Any]:
    """What a frame or an Arrow table says of itself."""
    if isinstance(rows, pd.DataFrame):
        return {str(key): value for key, value in rows.attrs.items()}
    if not isinstance(rows, pa.Table):
        return {}
    try:
        attrs = json.loads((rows.schema.metadata or {}).get(PANDAS_ATTRS, b"{}"))
    except ValueError:
        return {}
    return attrs if isinstance(attrs, dict) else {}


def wide_bins(schema: Schema) -> tuple[str, ...]:
    """The columns whose values are drawn inside bins."""
    return tuple(column.name for column in schema.columns if column.draws_values and _is_wide(column.domain))


def _is_wide(domain: object) -> bool:
    assert isinstance(domain, Bins)  # values are drawn in bins alone
    low, high = domain.ends
    return bool((high > low).any())
